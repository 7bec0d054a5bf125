//! Conversations that are legal and rare: what the server owes, and what it may show.

use crate::harness::client::Client;
use crate::harness::frames::{bind, describe, execute, frame, parse, query, sync};
use crate::harness::matrix::{converts, same, same_with_two};
use crate::harness::proxy::Proxy;
use crate::harness::server;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 99) i; CREATE TABLE c (id int)";
const SHOW: &str = "SELECT name, statement FROM pg_prepared_statements";

fn read(client: &mut Client, round: usize) {
    client.query(&format!("SELECT name FROM t WHERE id = {}", round + 1));
}

fn batch(sql: &str) -> Vec<u8> {
    [parse("", sql, &[]), bind("", "", &[]), execute("", 0)].concat()
}

#[test]
fn a_text_that_a_parser_reads_for_ever_gets_its_answer() {
    same("", |client, round| {
        let (open, close) = ("position(".repeat(40), ")".repeat(40));
        client.query(&format!("SELECT {round}, {open}'a'{close}"));
        client.query(&format!("SELECT 5 {} {round}", "+".repeat(5_000)));
    });
}

#[test]
fn a_failed_copy_that_sync_alone_ends_owes_nothing_afterwards() {
    converts(SETUP, |client, round| {
        read(client, round);
        client.send(&[batch("COPY c FROM STDIN"), frame(b'H', b"")].concat());
        client.until(b'G');
        client.send(&frame(b'd', b"bad\n"));
        client.until(b'E');
        client.send(&sync());
        client.until_ready();
        let blind = [frame(b'd', b"1\n"), frame(b'c', b"")].concat();
        let slow = batch("SELECT 'of the batch', pg_sleep(0.05)");
        let missing = batch("COPY missing FROM STDIN");
        client.send(&[missing, sync(), blind, slow, sync()].concat());
        client.until_ready();
        client.send(&query(&format!(
            "SELECT name FROM t WHERE id = {}",
            round + 1
        )));
        client.until_ready();
        client.until_ready();
        read(client, round);
    });
}

#[test]
fn a_copy_that_fails_around_a_sync_is_followed_by_the_right_answers() {
    let setup = format!(
        "{SETUP}; CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN RAISE EXCEPTION ''no''; END'; CREATE TABLE n (id int); CREATE TRIGGER no BEFORE \
         INSERT ON n FOR EACH STATEMENT EXECUTE FUNCTION no()"
    );
    converts(&setup, |client, round| {
        read(client, round);
        // It fails before it reads anything: both Syncs are answered.
        client.send(&[batch("COPY n FROM STDIN"), sync()].concat());
        client.until_ready();
        client.send(&[frame(b'c', b""), sync()].concat());
        client.until_ready();
        read(client, round);
        read(client, round);
        client.send(&[batch("COPY c FROM STDIN"), sync()].concat());
        client.until(b'G');
        client.send(&frame(b'd', b"bad\n"));
        client.until(b'E');
        client.send(&[frame(b'c', b""), sync()].concat());
        client.until_ready();
        read(client, round);
        read(client, round);
        client.send(&[parse("", "SELEC", &[]), query("SELECT 1"), sync()].concat());
        client.until_ready();
        read(client, round);
        read(client, round);
    });
}

#[test]
fn a_function_call_may_change_the_search_path() {
    let setup = "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (d date); \
        CREATE TABLE b.t (d timestamptz); CREATE FUNCTION public.go(int) RETURNS int LANGUAGE sql \
        AS 'SELECT set_config(''search_path'', CASE $1 WHEN 0 THEN ''a, public'' \
        ELSE ''b, public'' END, false); SELECT 1'";
    same(setup, |client, round| {
        let before = client.record.as_ref().unwrap().len();
        let oid = client.query("SELECT 'public.go'::regproc::oid::int4");
        let row = oid.iter().find(|frame| frame.tag == b'D');
        let oid: u32 = row.unwrap().columns()[0]
            .as_deref()
            .unwrap()
            .parse()
            .unwrap();
        let argument = if round / 3 % 2 == 0 { b"0" } else { b"1" };
        let head = [
            &oid.to_be_bytes()[..],
            &[0, 0, 0, 1, 0, 0, 0, 1],
            argument,
            &[0, 0],
        ];
        client.send(&frame(b'F', &head.concat()));
        client.until_ready();
        // The function's OID is another in each database.
        client.record.as_mut().unwrap().truncate(before);
        for _ in 0..2 {
            client.query(&format!(
                "INSERT INTO t VALUES ('2020-01-{:02} 23:30+00')",
                round % 28 + 1
            ));
        }
        client.query("SELECT d::text FROM t ORDER BY d");
    });
}

#[test]
fn our_statements_are_seen_in_no_way() {
    converts(SETUP, |client, round| {
        read(client, round);
        // Prepared now, and executed when there would be more to see.
        match round % 11 {
            6 => drop(client.query(&format!("PREPARE shows AS {SHOW} WHERE name <> 'shows'"))),
            8..10 => drop(client.query("EXECUTE shows")),
            _ => read(client, round),
        }
        let unicode = r#"SELECT name FROM U&"pg\005fprepared_statements" WHERE name LIKE '%\_%'"#;
        client.query(unicode);
    });
    converts(SETUP, |client, round| {
        read(client, round);
        read(client, round);
        if round % 11 == 9 {
            // The second in a batch, and behind a query that is not answered yet.
            client.send(&[batch("SELECT 1"), batch(SHOW), sync()].concat());
            client.until_ready();
            client.send(&[query("SELECT pg_sleep(0.05)"), query(SHOW)].concat());
            client.until_ready();
            client.until_ready();
        }
    });
    converts(SETUP, |client, round| {
        read(client, round);
        read(client, round);
        if round % 11 == 4 {
            client.send(&[query("SELECT pg_sleep(0.05)"), query(SHOW)].concat());
            client.until_ready();
            client.until_ready();
        }
        if round % 11 == 8 {
            client.query(&format!("{SHOW} WHERE name <> '{}'", "x".repeat(1 << 21)));
        }
    });
}

#[test]
fn the_portal_of_a_converted_query_is_not_there_for_the_first_message_of_a_batch() {
    converts(SETUP, |client, round| {
        client.query("BEGIN");
        client.query("SELECT 1");
        read(client, round);
        if round % 11 == 10 {
            client.send(&[describe(b'P', ""), sync()].concat());
            client.until_ready();
        }
        client.query("ROLLBACK");
        read(client, round);
    });
}

#[test]
fn what_stands_behind_a_terminate_says_nothing() {
    same(SETUP, |client, round| {
        read(client, round);
        if round == 21 {
            let behind = query("SELECT name FROM t WHERE id = 7");
            client.send(&[frame(b'X', b""), behind, sync()].concat());
            client.rest();
        }
    });
    same(SETUP, |client, round| {
        read(client, round);
        if round == 21 {
            client.send(&parse("", "SELECT 1", &[]));
            client.socket.shutdown(std::net::Shutdown::Write).unwrap();
            client.rest();
        }
    });
}

#[test]
fn what_commit_and_chain_commits_is_there_for_all() {
    same_with_two(
        "CREATE FUNCTION f(int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''int'''",
        |one, two, round| {
            let read = |two: &mut Client| two.query(&format!("SELECT f('{round}'), {round}"));
            for _ in 0..3 {
                read(two);
            }
            one.queries(&[
                "BEGIN",
                "CREATE FUNCTION f(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''text'''",
                "COMMIT AND CHAIN",
            ]);
            for _ in 0..3 {
                read(two);
            }
            one.queries(&["DROP FUNCTION f(text)", "COMMIT AND CHAIN"]);
            for _ in 0..2 {
                read(two);
            }
            one.query("ROLLBACK");
        },
    );
}

#[test]
fn a_session_that_cannot_be_followed_any_more_shows_nothing_of_ours() {
    converts(SETUP, |client, round| {
        (0..5).for_each(|id| read(client, id));
        if round % 8 == 3 {
            let malformed = match round > 8 {
                true => [frame(b'H', b"x"), sync()].concat(),
                false => frame(b'S', b"x"),
            };
            client.send(&malformed);
            client.until_ready();
        }
        client.query(SHOW);
    });
}

/// The server names the portal of what has failed, also if that was executed by the proxy.
#[test]
fn what_has_failed_has_left_its_portal() {
    converts(SETUP, |client, round| {
        let divides = |by: usize| format!("SELECT 1 / (id - {by}) FROM t WHERE id = 5");
        (6..12).for_each(|by| drop(client.query(&divides(by))));
        client.queries(&["BEGIN", &divides(7), &divides(5)]);
        client.send(&[describe(b'P', ""), sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
        read(client, round);
    });
}

/// The server answers what stands before such a message, and closes the connection.
#[test]
fn what_stands_before_a_message_of_impossible_length_is_answered() {
    let upstream = server::address();
    let proxy = Proxy::start(&upstream);
    let version = Client::login(&upstream, "postgres").value("SHOW server_version_num");
    // 13 waits for all of what is too long.
    let short = [&b"Q\0\0\0\x01"[..], b"X\0\0\0\0"];
    let long = [&b"d\x7f\xff\xff\xff"[..], b"S\0\x10\0\0"];
    let long = long.into_iter().filter(|_| version.as_str() >= "14");
    for bad in short.into_iter().chain(long) {
        let answers = [&*upstream, proxy.address()].map(|address| {
            let mut client = Client::login(address, &server::database(SETUP));
            (0..5).for_each(|id| read(&mut client, id));
            client.send(&[&query("INSERT INTO c VALUES (5)"), bad].concat());
            client.rest()
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].len(), 2, "{:?}", answers[0]);
    }
}
