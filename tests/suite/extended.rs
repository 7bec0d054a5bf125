//! The client's own prepared statements beside ours: relayed, never mixed up with them.

use crate::harness::frames::{bind, close, describe, execute, frame, parse, query, sync};
use crate::harness::matrix::{converts, same};

const SETUP: &str =
    "CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 99) i";

#[test]
fn named_statements_and_portals_are_the_same() {
    converts(SETUP, |client, round| {
        let id = round.to_string();
        let plain = format!("SELECT name FROM t WHERE id = {round}");
        let name = format!("mine{round}");
        client.send(
            &[
                parse(&name, "SELECT name FROM t WHERE id = $1", &[]),
                sync(),
            ]
            .concat(),
        );
        client.until_ready();
        client.query(&plain);
        client.send(&[describe(b'S', &name), bind("p", &name, &[&id]), sync()].concat());
        client.until_ready();
        client.query(&plain);
        client.query("BEGIN");
        client.send(&[bind("p", &name, &[&id]), execute("p", 1), sync()].concat());
        client.until_ready();
        client.query(&plain);
        client.send(&[execute("p", 1), close(b'P', "p"), execute("p", 1), sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
        client.send(&[close(b'S', &name), bind("", &name, &[&id]), sync()].concat());
        client.until_ready();
        client.query(&plain);
    });
}

#[test]
fn unnamed_statements_are_the_same() {
    converts(SETUP, |client, round| {
        let id = round.to_string();
        let text = "SELECT name FROM t WHERE id = $1";
        for max in [0, 1] {
            let batch = [
                parse("", text, &[23]),
                bind("", "", &[&id]),
                describe(b'P', ""),
                execute("", max),
                sync(),
            ];
            client.send(&batch.concat());
            client.until_ready();
            client.query(&format!("SELECT name FROM t WHERE id = {round}"));
        }
        client.send(&[parse("", "SELEC", &[]), bind("", "", &[]), sync()].concat());
        client.until_ready();
        client.send(
            &[
                parse("", "", &[]),
                bind("", "", &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        client.until_ready();
    });
}

#[test]
fn prepare_and_execute_by_sql_are_the_same() {
    converts(SETUP, |client, round| {
        let plain = format!("SELECT name FROM t WHERE id = {round}");
        client.query("PREPARE mine (int) AS SELECT name FROM t WHERE id = $1");
        client.query(&format!("EXECUTE mine ({round})"));
        client.query(&plain);
        client.query("EXECUTE mine ('x')");
        client.query("DEALLOCATE mine");
        client.query("EXECUTE mine (1)");
        client.query(&plain);
    });
}

#[test]
fn a_flush_brings_answers_before_the_sync() {
    same(SETUP, |client, round| {
        client.send(&[parse("", "SELECT 1", &[]), frame(b'H', b"")].concat());
        client.next();
        client.send(&[bind("", "", &[]), execute("", 0), frame(b'H', b"")].concat());
        (0..3).for_each(|_| drop(client.next()));
        client.send(&sync());
        client.until_ready();
        client.query(&format!("SELECT name FROM t WHERE id = {round}"));
    });
}

#[test]
fn a_statement_that_changes_things_is_seen_however_it_is_sent() {
    converts(SETUP, |client, round| {
        let read = format!("SELECT id, name FROM t WHERE name = 'n{round}'");
        let ddl = if round % 2 == 0 { "char(8)" } else { "text" };
        let ddl = format!("ALTER TABLE t ALTER name TYPE {ddl}");
        client.queries(&[&read, &read]);
        client.send(
            &[
                parse("", &ddl, &[]),
                bind("", "", &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        client.until_ready();
        client.queries(&[&read, &read]);
        let set = format!("SET timezone = 'UTC+{}'", round % 5);
        client.send(
            &[
                parse("", &set, &[]),
                bind("", "", &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
        );
        client.until_ready();
        client.query("SELECT '2024-01-01 00:00+00'::timestamptz, 1");
        client.query(&read);
    });
}

#[test]
fn a_function_call_is_the_same() {
    converts(SETUP, |client, round| {
        client.query(&format!("SELECT name FROM t WHERE id = {round}"));
        // int4abs(-5): OID 1397, no formats but text, one argument, text result.
        let body = [
            &1397_u32.to_be_bytes()[..],
            &[0, 0, 0, 1, 0, 0, 0, 2],
            b"-5",
            &[0, 0],
        ]
        .concat();
        client.send(&frame(b'F', &body));
        client.until_ready();
        client.send(&[frame(b'F', &body), query("SELECT 1")].concat());
        client.until_ready();
        client.until_ready();
        client.query(&format!("SELECT name FROM t WHERE id = {round}"));
    });
}

#[test]
fn an_unknown_message_gets_the_servers_own_answer() {
    same(SETUP, |client, round| {
        if round == 21 {
            client.send(&frame(b'!', b"what"));
            client.rest();
        } else {
            client.query(&format!("SELECT name FROM t WHERE id = {round}"));
        }
    });
}

#[test]
fn a_query_drops_the_unnamed_statement_and_portal() {
    converts(SETUP, |client, round| {
        let plain = format!("SELECT name FROM t WHERE id = {round}");
        client.send(&[parse("", "SELECT 'mine'", &[]), sync()].concat());
        client.until_ready();
        client.query(&plain);
        client.send(&[bind("", "", &[]), execute("", 0), sync()].concat());
        client.until_ready();
        client.query("BEGIN");
        let rows = "SELECT generate_series(1, 5)";
        client.send(
            &[
                parse("", rows, &[]),
                bind("", "", &[]),
                execute("", 2),
                sync(),
            ]
            .concat(),
        );
        client.until_ready();
        client.query(&plain);
        client.send(&[execute("", 2), sync()].concat());
        client.until_ready();
        client.query("ROLLBACK");
    });
}

#[test]
fn a_client_that_prepares_many_texts_before_its_first_query_is_converted_all_the_same() {
    converts(SETUP, |client, round| {
        if round % 11 == 0 {
            for number in 0..200 {
                let text = format!("SELECT name, {number} FROM t WHERE id = $1");
                let name = format!("mine{number}");
                client.send(&[parse(&name, &text, &[]), sync()].concat());
                client.until_ready();
            }
        }
        client.query(&format!("SELECT name FROM t WHERE id = {round}"));
    });
}

#[test]
fn what_the_proxy_has_parsed_without_a_name_is_not_there_for_the_client() {
    // Behind the first queries of the second connection, one of which the statement is parsed for.
    for at in 11..14 {
        converts(SETUP, |client, round| {
            let plain = format!("SELECT name FROM t WHERE id = {round}");
            client.query(&plain);
            if round == at {
                // Skipped, so that it drops nothing.
                client.send(&[bind("", "none", &[]), query(&plain), sync()].concat());
                client.until_ready();
                client.send(&[bind("", "", &["5"]), execute("", 0), sync()].concat());
                client.until_ready();
            }
            client.query(&plain);
        });
    }
}

#[test]
fn a_begin_that_a_statement_has_carried_is_no_statement_of_the_client() {
    converts(SETUP, |client, round| {
        let plain = format!("SELECT name FROM t WHERE id = {round}");
        client.queries(&["BEGIN", &plain]);
        if round == 20 {
            client.send(&[describe(b'S', ""), sync()].concat());
            client.until_ready();
        }
        client.query("ROLLBACK");
    });
}
