//! Encodings: what a client writes by number or in bytes is the character it means.

use crate::harness::frames;
use crate::harness::matrix::{converts, same};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

const SETUP: &str = "CREATE TABLE t (id int, x text); \
    INSERT INTO t SELECT i, chr(200 + i) FROM generate_series(1, 40) i";

#[test]
fn a_character_by_its_number_is_the_same_in_every_encoding() {
    let encodings = [
        "LATIN1",
        "LATIN9",
        "WIN1252",
        "KOI8R",
        "EUC_JP",
        "SQL_ASCII",
        "UTF8",
    ];
    converts(SETUP, |client, round| {
        let at = 0xe0 + round % 16;
        for encoding in encodings {
            client.query(&format!("SET client_encoding = '{encoding}'"));
            for sql in [
                format!("SELECT id FROM t WHERE x = E'\\u{at:04x}'"),
                format!("SELECT id FROM t WHERE x = E'\\U{at:08x}' AND id > 1"),
                format!("SELECT id FROM t WHERE x IN (E'\\u{at:04x}', E'\\u0141')"),
                format!("SELECT id, U&'\\{at:04x}' = x FROM t WHERE id = {round}"),
                format!("SELECT id, U&'!{at:04x}' UESCAPE '!' FROM t WHERE id = {round}"),
                format!("SELECT id FROM t WHERE x = E'\\xc3\\x{:02x}'", at - 0x40),
                format!("SELECT id FROM t WHERE x = '\\u{at:04x}'"),
                format!("INSERT INTO t VALUES ({}, E'\\u{at:04x}')", 1000 + round),
            ] {
                client.query(&sql);
                client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
            }
            client.query("SET client_encoding = 'UTF8'");
            client.query("SELECT encode(x::bytea, 'hex') FROM t WHERE id > 999 ORDER BY 1");
            client.query("DELETE FROM t WHERE id > 999");
        }
    });
}

/// What the server shows to whoever says so is the old name.
#[test]
fn unicode_is_another_name_of_utf8() {
    let summary = converts(SETUP, |client, round| {
        client.query("SET client_encoding = 'UNICODE'");
        client.query("SHOW client_encoding");
        client.query(&format!("SELECT id FROM t WHERE x = 'é' AND id = {round}"));
    });
    assert_eq!(summary.passed(Reason::Encoding), 0, "{summary}");
}

#[test]
fn a_character_in_bytes_is_the_same_in_every_encoding() {
    same(SETUP, |client, round| {
        for encoding in ["UTF8", "LATIN1", "WIN1252", "SQL_ASCII"] {
            for transaction in [false, true] {
                client.query(&format!("SET client_encoding = '{encoding}'"));
                if transaction {
                    client.queries(&["BEGIN", "SELECT 1"]);
                }
                // As a character, as bytes of another encoding, cut short, too long, a surrogate.
                for bytes in [
                    &b"\xc3\xa9"[..],
                    b"\xe9",
                    b"\xc3",
                    b"\xc0\xaf",
                    b"\xed\xa0\x80",
                    b"e\xcc\x81",
                ] {
                    let front = format!("SELECT id FROM t WHERE id > {round} AND x = '");
                    let body = [front.as_bytes(), bytes, b"'\0"].concat();
                    client.send(&frames::frame(b'Q', &body));
                    client.until_ready();
                    if transaction {
                        client.queries(&["ROLLBACK", "BEGIN", "SELECT 1"]);
                    }
                }
                client.query("ROLLBACK");
                client.query("RESET client_encoding");
            }
        }
    });
}

#[test]
fn an_encoding_that_a_function_sets_is_heeded_at_once() {
    let setup = format!(
        "{SETUP}; CREATE FUNCTION speak(text) RETURNS text LANGUAGE sql AS \
         $$SELECT set_config('client_encoding', $1, false)$$"
    );
    converts(&setup, |client, round| {
        let at = 0xe0 + round % 16;
        let sql = format!("SELECT id FROM t WHERE x = E'\\u{at:04x}'");
        client.query(&sql);
        client.queries(&["BEGIN", "SELECT speak('LATIN1')", &sql, "COMMIT"]);
        client.query(&sql);
        client.query("SELECT speak('UTF8')");
        client.query(&sql);
    });
}

/// A database without an encoding converts nothing, and counts bytes in positions.
#[test]
fn a_database_without_an_encoding_takes_bytes_for_what_they_are() {
    let setup = "-- encoding: SQL_ASCII\n\
        CREATE TABLE t (id int PRIMARY KEY, x text, v varchar(3), c char(4)); \
        INSERT INTO t SELECT i, 'é' || i, 'é', 'ü' FROM generate_series(1, 40) i; ANALYZE t";
    let summary = converts(setup, |client, round| {
        for encoding in ["SQL_ASCII", "UTF8", "LATIN1"] {
            client.query(&format!("SET client_encoding = '{encoding}'"));
            let is_wrong = round % 4 == 3;
            let number = format!("{}{round}", if is_wrong { "ä" } else { "" });
            for sql in [
                format!("SELECT id, x, length(x), length('é') FROM t WHERE x = 'é{round}'"),
                format!("SELECT id, c FROM t WHERE c IN ('ü', 'é') AND id < {round} ORDER BY id"),
                format!(
                    "SELECT id FROM t WHERE x LIKE 'é{}%' ORDER BY id",
                    round % 4
                ),
                format!("UPDATE t SET v = 'é', x = 'ä\\{round}' WHERE id = {round}"),
                format!("SELECT id, upper('é' || {round}), $$ß$$ FROM t WHERE id = {round}"),
                // Positions behind such characters, and errors of lengths.
                format!("SELECT id FROM t WHERE x = 'éü' AND id = '{number}'"),
                format!("SELECT id FROM t WHERE x = 'éü' AND 'ä' = 1 / (id - id) AND id = {round}"),
                format!("SELECT id FROM t WHERE x = 'éü' AND id = {round} AND nowhere = 1"),
                format!("UPDATE t SET v = 'éé' WHERE id = {round}"),
                // Names, and characters by their numbers.
                format!("SELECT id AS \"é\" FROM t WHERE id = {round}"),
                format!("SELECT id FROM t WHERE x = E'\\u00e9{round}'"),
                format!("SELECT id FROM t WHERE x = E'\\xc3\\xa9{round}'"),
            ] {
                client.query(&sql);
                client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
            }
            for bytes in [&b"\xe9"[..], b"\xc3", b"\xc0\xaf"] {
                let front = format!("SELECT id FROM t WHERE id > {round} AND x = '");
                let body = [front.as_bytes(), bytes, b"'\0"].concat();
                client.send(&frames::frame(b'Q', &body));
                client.until_ready();
            }
        }
    });
    // Of 12 texts four are never converted, and of LATIN1 none.
    let converted = summary.count(Counter::Converted);
    assert!(converted > 200, "{summary}");
}
