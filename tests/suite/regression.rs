//! One test for each bug found, named after what it broke.

use crate::harness::client::Client;
use crate::harness::frames::{self, bind, execute, parse, sync};
use crate::harness::matrix::{converts, same};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

#[test]
fn a_position_added_to_an_error_stood_before_its_context() {
    converts("CREATE TABLE t (j jsonb)", |client, round| {
        let good = ["{}", "{a: 1}"][round % 2];
        client.queries(&["BEGIN", "SELECT 1"]);
        client.query(&format!("SELECT * FROM t WHERE j @> '{good}'"));
        client.query("ROLLBACK");
    });
}

#[test]
fn a_query_without_its_zero_byte_was_given_one() {
    same("", |client, _| {
        client.send(&frames::frame(b'Q', b"SELECT 1"));
        client.until_ready();
    });
}

#[test]
fn a_large_row_of_a_write_ended_the_connection() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, n int, big text); \
        INSERT INTO t VALUES (1, 0, repeat('x', 300000))";
    converts(setup, |client, round| {
        client.query(&format!(
            "UPDATE t SET n = {round} WHERE id = 1 RETURNING big, n"
        ));
    });
}

#[test]
fn a_large_notice_or_error_ended_the_connection() {
    let setup = "CREATE TABLE t AS SELECT i AS id FROM generate_series(399990, 400020) i; \
        CREATE FUNCTION shout(n int) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''%'', repeat(''n'', n); RETURN n; END'; \
        CREATE FUNCTION scream(n int) RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RAISE EXCEPTION ''%'', repeat(''e'', n); END'";
    converts(setup, |client, round| {
        client.query(&format!(
            "SELECT shout(id) FROM t WHERE id = {}",
            400_000 + round % 9
        ));
        client.query(&format!(
            "SELECT scream(id) FROM t WHERE id = {}",
            400_000 + round % 9
        ));
        client.query("SELECT 1");
    });
}

#[test]
fn a_plan_too_long_to_be_read_ended_the_connection() {
    same("", |client, round| {
        client.query(&format!(
            "SELECT length(repeat('x', {})), 'a'",
            400_000 + round
        ));
        client.query(&format!("SELECT repeat('x', {}), 'a'", 400_000 + round));
    });
}

#[test]
fn statements_were_shown_to_a_query_without_literals() {
    converts("CREATE TABLE t (id int)", |client, round| {
        client.query(&format!("SELECT * FROM t WHERE id = {round}"));
        client.query("SELECT name, statement FROM pg_prepared_statements");
    });
}

#[test]
fn the_settings_of_a_query_too_long_to_be_read_went_unseen() {
    let setup = "CREATE TABLE t (id int, x text); INSERT INTO t VALUES (1, NULL)";
    converts(setup, |client, round| {
        let read = "SELECT id FROM t WHERE x = NULL AND id = 1";
        client.queries(&[read, read]);
        let filler = " ".repeat(200_000);
        let setting = ["on", "off"][round % 2];
        client.query(&format!("SET transform_null_equals = {setting}; {filler}"));
        client.queries(&[read, read]);
        client.query("CREATE TEMP TABLE IF NOT EXISTS u (id int)");
        client.query(&format!(
            "DROP TABLE u; {filler} ALTER TABLE t ALTER x TYPE varchar"
        ));
        client.queries(&[read, read]);
        client.query(&format!("{filler} ALTER TABLE t ALTER x TYPE text"));
    });
}

#[test]
fn statements_were_shown_to_the_extended_protocol() {
    converts("CREATE TABLE t (id int)", |client, round| {
        client.query(&format!("SELECT * FROM t WHERE id = {round}"));
        let sql = "SELECT name FROM pg_prepared_statements WHERE name <> ''";
        let batch = [
            parse("", sql, &[]),
            bind("", "", &[]),
            execute("", 0),
            sync(),
        ];
        client.send(&batch.concat());
        client.until_ready();
    });
}

#[test]
fn errors_and_messages_told_of_parameters_and_portals() {
    for setting in [
        "log_parameter_max_length_on_error = -1",
        "log_parameter_max_length_on_error = 9",
        "client_min_messages = debug2",
    ] {
        let summary = same("CREATE TABLE t (a int UNIQUE, x text)", |client, round| {
            client.query(&format!("SET {setting}"));
            if round % 5 == 4 {
                client.query("RESET ALL");
            }
            client.query(&format!("INSERT INTO t VALUES ({}, 'a')", round / 2));
            client.query(&format!("SELECT 10 / (a - {round}) FROM t WHERE x = 'a'"));
        });
        assert!(
            summary.passed(Reason::VerboseSession) > 20,
            "{setting}\n{summary}"
        );
    }
}

#[test]
fn a_value_has_the_size_it_was_stored_with() {
    let setup = "CREATE TABLE t (a int, x text); CREATE VIEW v AS SELECT a, x FROM t; \
        CREATE FUNCTION put() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN INSERT INTO t VALUES (new.a, new.x); RETURN new; END'; \
        CREATE TRIGGER i INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION put()";
    same(setup, |client, round| {
        let values: Vec<_> = (0..20).map(|k| format!("({k}, 'a{round}')")).collect();
        let values = values.join(", ");
        client.query(&format!(
            "INSERT INTO v VALUES {values} RETURNING pg_column_size(x)"
        ));
        client.query(&format!("SELECT pg_column_size('a{round}')"));
    });
}

/// What a database cannot hold is said where the text is read, or where a parameter is.
#[test]
fn a_character_the_database_has_not_was_complained_about_elsewhere() {
    let proxy = Proxy::with(&server::address(), &[("min_array_rows", "4")]);
    let addresses = [server::address(), proxy.address().to_owned()];
    let mut answers = Vec::new();
    for (address, name) in addresses.iter().zip(["latin_direct", "latin_proxied"]) {
        Client::login(&server::address(), "postgres").run(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' \
             LC_COLLATE 'C' LC_CTYPE 'C'"
        ));
        let mut client = Client::login(address, name);
        client.run("SET client_encoding = UTF8");
        client.run("CREATE TABLE t (a int, x text)");
        let insert = |a: &str, x: &str| format!("INSERT INTO t (a, x) VALUES ('{a}', {x})");
        let rows = |x: &str| format!("INSERT INTO t (x) VALUES ('a'), ('b'), ('c'), ({x})");
        for _ in 0..6 {
            for good in [insert("1", "'a'"), insert("2", "E'\\u00e9'"), rows("'d'")] {
                client.run(&good);
            }
        }
        for bad in [
            insert("b", "'€'"),
            insert("1", "'€'"),
            insert("1", "E'\\u20ac'"),
            rows("'€'"),
            insert("1", "'é'"),
        ] {
            for begin in ["SELECT 1", "BEGIN; SELECT 1"] {
                for text in [begin, &bad, "ROLLBACK"] {
                    answers.push(client.query(text));
                }
            }
        }
    }
    let (direct, proxied) = answers.split_at(answers.len() / 2);
    assert_eq!(direct, proxied);
    assert!(proxy.summary().count(Counter::Converted) > 5);
}

#[test]
fn range_types_of_users_leave_everything_else_convertible() {
    // Behind the cast from a range to its multirange is a function in the language `internal`.
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v text); \
        INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 30) n; \
        CREATE TYPE spans AS RANGE (subtype = float8)";
    converts(setup, |client, round| {
        client.query(&format!("SELECT v FROM t WHERE id = {}", 1 + round % 30));
    });
}
