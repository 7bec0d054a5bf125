//! More statements than a server connection may hold: the oldest go, and come back under new names.

use crate::harness::matrix::same_under;
use pgautoprep::metrics::Counter;

const SETUP: &str =
    "CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM generate_series(1, 99) i";

#[test]
fn the_server_never_holds_more_statements_than_allowed() {
    let changes = [("max_statements", "3")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        // Each is used for a while and then no more, so that there is reason to make room.
        for width in 1..8 {
            let columns = vec!["name"; width].join(", ");
            for id in 0..15 {
                let id = id + round;
                client.query(&format!("SELECT {columns} FROM t WHERE id = {id}"));
            }
        }
        client.query(&format!("SELECT name FROM t WHERE id = {}", round + 1));
    });
    let prepared = summary.count(Counter::StatementsPrepared);
    let closed = summary.count(Counter::StatementsClosed);
    assert!(prepared > 50, "{summary}");
    // Two connections, of which each may hold three.
    assert!(prepared - closed <= 6, "{summary}");
}

#[test]
fn one_statement_is_enough_to_convert() {
    let changes = [("max_statements", "1")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        for id in 0..3 {
            client.query(&format!("SELECT name FROM t WHERE id = {}", id + round));
        }
        client.query(&format!("UPDATE t SET name = 'x' WHERE id = {round}"));
        client.queries(&[
            "BEGIN",
            &format!("SELECT name FROM t WHERE id = {round}"),
            "COMMIT",
        ]);
    });
    assert!(summary.count(Counter::Converted) > 0, "{summary}");
}

#[test]
fn forgetting_shapes_costs_time_only() {
    let changes = [("max_shapes", "1")];
    same_under(&changes, SETUP, |client, _, round| {
        for width in 1..40 {
            let columns = vec!["name"; width].join(", ");
            client.query(&format!("SELECT {columns} FROM t WHERE id = {round}"));
        }
    });
}
