//! One test for each bug found, named after what it broke.

use crate::harness::frames::{self, bind, execute, parse, sync};
use crate::harness::matrix::{converts, same};

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
