//! Errors: the same fields, at the same place in the text, with the same state afterwards.

use crate::harness::frames;
use crate::harness::matrix::{converts, same};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name varchar(5) NOT NULL, n numeric(4,1), \
    at date, j jsonb, CONSTRAINT few CHECK (n < 100)); CREATE TABLE ref (id int PRIMARY KEY, \
    t int REFERENCES t); INSERT INTO t VALUES (1, 'one', 1, '2024-01-01', '{}'); \
    CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0); CREATE TABLE dom (e even, v varchar(3)); \
    CREATE FUNCTION fail(t text) RETURNS int LANGUAGE plpgsql AS \
    'BEGIN RAISE EXCEPTION ''failed: %'', t USING ERRCODE = ''ZZ001'', DETAIL = ''d'', \
    HINT = ''h'',     TABLE = ''tt''; END'";

/// Texts with a place `{}` for a literal, one that is right there and one that is not; `{n}` is a
/// number that grows.
const STATEMENTS: [(&str, &str, &str); 26] = [
    ("SELECT * FROM t WHERE id = '{}'", "1", "abc"),
    (
        "SELECT * FROM t WHERE at = '{}' AND name = 'x'",
        "2024-01-01",
        "2024-13-01",
    ),
    (
        "SELECT 'é', * FROM t WHERE name = 'žluť' AND id = '{}'",
        "1",
        "ž",
    ),
    ("SELECT id FROM t WHERE j @> '{}'", "{\"a\": 1}", "{a: 1}"),
    ("SELECT 1 / {} FROM t WHERE id = 1", "1", "0"),
    // It fails where it is planned, and the string is a range as it should be.
    (
        "SELECT id FROM t WHERE int4range(id, 9) IN ('[3,9)', int4range(7, {}))",
        "8",
        "5",
    ),
    (
        "SELECT id FROM t WHERE numrange(id, 9) IN ('[3.5,9.25)', numrange(7, {}))",
        "8",
        "5",
    ),
    (
        "SELECT id FROM t WHERE daterange(at::date, NULL) IN ('[2024-01-01,2024-02-01)', \
         daterange('2024-01-01'::date + 7, '2024-01-01'::date + {}))",
        "8",
        "5",
    ),
    (
        "SELECT id FROM t WHERE tsrange(at, NULL) IN ('[2024-01-01 10:00:00,2024-02-01 00:00:00)', \
         tsrange('2024-01-01'::date + 7, '2024-01-01'::date + {}))",
        "8",
        "5",
    ),
    (
        "SELECT id FROM t WHERE tstzrange(at, NULL) IN \
         ('[\"2024-01-01 10:00:00+00\",\"2024-02-01 00:00:00+00\")', \
         tstzrange('2024-01-01'::date + 7, '2024-01-01'::date + {}))",
        "8",
        "5",
    ),
    ("SELECT id FROM t WHERE id = {}", "1", "3000000000"),
    ("SELECT 10000 * {} FROM t", "2", "2000000"),
    ("SELECT name::int FROM t WHERE name = '{}'", "zz", "one"),
    ("SELECT substring(name from 1 for {}) FROM t", "1", "-1"),
    ("SELECT fail(name) FROM t WHERE id = {}", "0", "1"),
    ("INSERT INTO t VALUES ({}, 'new')", "1{n}", "1"),
    ("INSERT INTO t VALUES (2{n}, '{}')", "ok", "too long"),
    ("INSERT INTO t VALUES (3{n}, 'n', {})", "1.5", "99999"),
    ("INSERT INTO t VALUES (4{n}, 'n', {})", "1.5", "100"),
    ("INSERT INTO t (id, name) VALUES (5{n}, {})", "'n'", "NULL"),
    ("INSERT INTO ref VALUES ({n}, {})", "1", "99"),
    ("INSERT INTO t VALUES ({}, 'r') RETURNING id", "6{n}", "1"),
    ("INSERT INTO dom VALUES ({}, 'abc')", "2", "3"),
    ("INSERT INTO dom VALUES (2, '{}')", "abc", "abcd"),
    (
        "UPDATE t SET name = '{}' WHERE id = 1",
        "one",
        "much too long",
    ),
    ("DELETE FROM t WHERE id = {}", "5", "1"),
];

/// [`STATEMENTS`], of which every third round has the wrong literals.
fn statements(round: usize) -> impl Iterator<Item = String> {
    STATEMENTS.iter().map(move |(text, right, wrong)| {
        let literal = if round % 3 == 2 { wrong } else { right };
        let number = format!("{round:02}");
        text.replace("{}", literal).replace("{n}", &number)
    })
}

#[test]
fn errors_outside_transactions_are_the_same() {
    converts(SETUP, |client, round| {
        for sql in statements(round) {
            client.query(&sql);
        }
    });
}

#[test]
fn errors_inside_transactions_are_the_same() {
    converts(SETUP, |client, round| {
        for sql in statements(round) {
            client.queries(&["BEGIN", "SELECT 1", &sql, "SELECT 2 + 2", "ROLLBACK"]);
        }
    });
}

#[test]
fn errors_first_thing_in_a_transaction_are_the_same() {
    converts(SETUP, |client, round| {
        for sql in statements(round) {
            let begin = ["BEGIN ISOLATION LEVEL REPEATABLE READ", "start transaction"][round % 2];
            client.queries(&[begin, &sql, "SHOW transaction_isolation", "COMMIT"]);
        }
    });
}

#[test]
fn errors_behind_savepoints_are_the_same() {
    converts(SETUP, |client, round| {
        client.query("BEGIN");
        for sql in statements(round) {
            client.queries(&["SAVEPOINT s", &sql, "ROLLBACK TO s"]);
        }
        client.query("COMMIT");
    });
}

/// Tests the fidelity rule H-33.
#[test]
fn positions_count_characters_of_the_original() {
    let setup = "CREATE TABLE t (id int, \"naïve\" text)";
    converts(setup, |client, round| {
        let bad = if round % 2 == 0 { "1" } else { "x" };
        for sql in [
            format!("SELECT 'ééé', id FROM t WHERE id = '{bad}'"),
            format!("SELECT \"naïve\" /* ž */ FROM t WHERE id IN ('1', '{bad}')"),
            format!("/* 🐎 */ SELECT id FROM t WHERE \"naïve\" = 'ž' AND id = '{bad}'"),
            format!("\n\n  SELECT id FROM t WHERE id = 12345 AND id = '{bad}'"),
            format!("SELECT id FROM t WHERE id = 1 AND missing = '{bad}'"),
            format!("SELECT missing('ž', '{bad}') FROM t"),
            format!("SELECT 'ž' || id + '{bad}' FROM t"),
        ] {
            client.query(&sql);
            client.queries(&["BEGIN", "SELECT 1", &sql, "ROLLBACK"]);
        }
    });
}

#[test]
fn a_dropped_table_gives_the_servers_own_error() {
    converts("", |client, round| {
        client.query("CREATE TABLE gone (id int PRIMARY KEY, t text)");
        client.query(&format!("SELECT t FROM gone WHERE id = {round}"));
        client.query(&format!("SELECT t FROM gone WHERE id = {}", round + 1));
        client.query("DROP TABLE gone");
        client.query(&format!("SELECT t FROM gone WHERE id = {round}"));
    });
}

#[test]
fn timeouts_are_the_same() {
    same("", |client, round| {
        if round % 4 == 0 {
            client.query("SET statement_timeout = 30");
            client.query("SELECT pg_sleep(5), 'x'");
            client.query("SET statement_timeout = 0");
        }
        client.query(&format!("SELECT pg_sleep(0.0{})", round % 10));
    });
}

#[test]
fn what_is_said_of_a_literal_is_said_whenever_it_is_executed() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 9)";
    converts(setup, |client, round| {
        for (id, query) in [(1, "a"), (2, ""), (3, ""), (4, "b"), (5, "")] {
            let id = id + round % 3;
            client.query(&format!(
                "SELECT id FROM t WHERE id = {id} AND 'a'::tsvector @@ '{query}'::tsquery"
            ));
            client.query(&format!(
                "SELECT id FROM t WHERE id = {id} AND 'a'::tsvector @@ E'{query}\\x20'::tsquery"
            ));
            client.query(&format!(
                "SELECT id, '{query}' < '{query}'::tsquery FROM t WHERE id = {id}"
            ));
        }
    });
}

#[test]
fn what_is_said_at_great_length_arrives() {
    let setup = "CREATE FUNCTION shout(n int) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''%'', repeat(''n'', n); RETURN n; END'; \
        CREATE FUNCTION scream(n int) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RAISE EXCEPTION ''%'', repeat(''e'', n); END'";
    converts(setup, |client, round| {
        client.query(&format!("SELECT shout({})", 400_000 + round));
        client.query(&format!("SELECT scream({})", 400_000 + round));
        client.query("SELECT 1");
    });
}

#[test]
fn malformed_messages_get_the_servers_own_answer() {
    let unterminated = frames::frame(b'Q', b"SELECT 1");
    let two = frames::frame(b'Q', b"SELECT 1\0SELECT 2\0");
    let invalid = frames::frame(b'Q', b"SELECT '\xff', 1\0");
    same("", |client, _| {
        for bytes in [&unterminated, &two, &invalid, &frames::frame(b'Q', b"")] {
            client.send(bytes);
            client.until_ready();
        }
        client.query("SELECT 1");
    });
}
