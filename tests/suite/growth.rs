//! Tables that grow without notice, by what the client itself inserts: the plan that was proven for
//! all values is not the one that a text gets any more.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same_under};
use pgautoprep::metrics::Counter;

/// Round in which the tables grow: the plans for all values are in use by then, and no audit is
/// near.
const GROWS: usize = 7;

/// What a round asks about, among what does not grow: one of several that is alone until then.
const fn number(round: usize) -> usize {
    match round < GROWS {
        true => 1 + round,
        false => 21 + round % 5,
    }
}

/// A few rows of which the plan reads all, and an index that finds those of one of several in
/// another order.
const SEVERAL: &str = "CREATE TABLE t (id int, k int, v int); \
    CREATE TABLE u (tid int, a int, x int DEFAULT 1, y int DEFAULT 1); \
    CREATE INDEX ON t (k); CREATE INDEX ON u (tid, a); \
    INSERT INTO t SELECT i, i, 0 FROM generate_series(1, 30) i; \
    INSERT INTO u SELECT i, 9 FROM generate_series(1, 30) i; \
    INSERT INTO u SELECT i, 1 FROM generate_series(21, 25) i; ANALYZE t; ANALYZE u";

/// Lets `u` grow, by rows that nothing joins.
fn grow(client: &mut Client, round: usize, columns: &str) {
    if round == GROWS {
        let rows = format!("INSERT INTO u {columns} FROM generate_series(1, 20000) i");
        client.query(&rows);
    }
}

#[test]
fn which_of_several_rows_is_taken_does_not_follow_from_an_old_size() {
    converts(SEVERAL, |client, round| {
        grow(client, round, "SELECT 1000 + i, 1");
        client.query(&format!(
            "UPDATE t SET v = u.a FROM u WHERE u.tid = t.id AND u.x = u.y AND t.k = {} \
             RETURNING t.id, t.v",
            number(round)
        ));
    });
}

#[test]
fn no_row_is_looked_at_that_fails_and_would_not_be() {
    let setup = "CREATE TABLE t (id int, k int); CREATE TABLE u (tid int, a int, b int); \
        CREATE INDEX ON t (k); CREATE INDEX ON u (tid); \
        INSERT INTO t SELECT i, i FROM generate_series(1, 30) i; \
        INSERT INTO u SELECT i, 1, 1 FROM generate_series(1, 30) i; ANALYZE t; ANALYZE u";
    converts(setup, |client, round| {
        grow(client, round, "SELECT 1000 + i, 1, 0");
        client.query(&format!(
            "SELECT t.id FROM t, u WHERE u.tid = t.id AND t.k = {} AND u.a / u.b = u.a",
            number(round)
        ));
    });
}

/// Who reads all of a table is in the way of everybody that writes to it.
#[test]
fn what_a_serializable_transaction_locks_does_not_follow_from_an_old_size() {
    let setup = "CREATE TABLE t (id int, v int); CREATE INDEX ON t (id); \
        INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i; ANALYZE t";
    let options = [("prepare_threshold", "1")];
    let summary = same_under(&options, setup, |client, other, round| {
        let read = |id: usize| format!("SELECT v FROM t WHERE id = {id}");
        let write = |id: usize| format!("UPDATE t SET v = v + 1 WHERE id = {id}");
        if round == GROWS {
            client.query("INSERT INTO t SELECT 1000 + i, 0 FROM generate_series(1, 20000) i");
        }
        let is_large = round >= GROWS;
        let begin = match is_large {
            true => "BEGIN ISOLATION LEVEL SERIALIZABLE",
            false => "BEGIN",
        };
        for who in [&mut *client, &mut *other] {
            who.query(begin);
        }
        client.query(&read(21 + round));
        other.query(&read(51 + round));
        let far = if is_large { 15_000 + 200 * round } else { 91 };
        client.query(&write(1 + round));
        other.query(&write(far));
        client.query("COMMIT");
        other.query("COMMIT");
    });
    assert!(summary.count(Counter::Converted) > 20, "{summary}");
}

/// What the client itself inserts is seen, by many rows at a time or one by one.
#[test]
fn rows_come_in_the_order_of_the_plan_that_a_text_gets_by_now() {
    let read = |client: &mut Client, round: usize| {
        client.query(&format!(
            "SELECT u.a FROM t, u WHERE u.tid = t.id AND u.x = u.y AND t.k = {}",
            number(round)
        ));
    };
    let options = [
        ("prepare_threshold", "1"),
        ("audit", "off"),
        ("trials", "off"),
    ];
    let summary = same_under(&options, SEVERAL, |client, _, round| {
        grow(client, round, "SELECT 1000 + i, 1");
        read(client, round);
    });
    assert!(summary.count(Counter::Converted) > 10, "{summary}");
    let summary = same_under(&options, SEVERAL, |client, _, round| {
        for row in 0..if round == GROWS { 1_500 } else { 0 } {
            let returning = if row % 2 == 0 { "" } else { " RETURNING a" };
            client.query(&format!(
                "INSERT INTO u VALUES ({}, 1){returning}",
                1_000 + row
            ));
        }
        read(client, round);
    });
    assert!(summary.count(Counter::Converted) > 1_000, "{summary}");
}
