//! Joins of tables that have partial indexes, whose predicates say what columns are equal to.

use crate::harness::matrix::same_under;
use pgautoprep::metrics::Counter;

/// An order with its items: the index of what is open names no column that is compared (but has
/// the letters of one), and says of none that it is equal to something.
#[test]
fn a_join_by_the_key_of_a_table_with_a_partial_index_is_planned_once() {
    let tables = "CREATE TABLE orders (id int PRIMARY KEY, status varchar(12), kind int, \
        gone boolean, note text); CREATE TABLE items (id int PRIMARY KEY, order_id int, n int); \
        INSERT INTO orders SELECT g, (ARRAY['new', 'paid', 'sent'])[1 + g % 3], g % 5, g % 7 = 0, \
        'n' || g FROM generate_series(1, 10000) g; \
        INSERT INTO items SELECT g, 1 + g % 10000, g FROM generate_series(1, 30000) g; \
        CREATE INDEX ON orders (status) WHERE status IN ('new', 'paid'); \
        CREATE INDEX ON orders (note) WHERE kind IN (1, 2); \
        CREATE INDEX ON orders (note) WHERE status = 'valid' AND NOT gone; \
        CREATE INDEX ON items (order_id); ANALYZE orders, items";
    let few = [("prepare_threshold", "3"), ("trials", "off")];
    let summary = same_under(&few, tables, |client, _, round| {
        for k in 0..5 {
            let id = 1 + (round * 1973 + k * 733) % 9000;
            client.query(&format!(
                "SELECT o.id, o.status, i.id, i.n FROM orders o JOIN items i ON i.order_id = o.id \
                 WHERE o.id = {id} ORDER BY i.id"
            ));
            client.query(&format!(
                "SELECT o.id, i.n FROM orders o LEFT JOIN items i ON i.order_id = o.id \
                 WHERE o.id = {id} AND o.status = 'paid' ORDER BY i.id"
            ));
        }
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 100, "{summary}");
}

/// What the index says is in no plan, and what the text says of it is no literal: where a value is
/// the same, the columns of both are equal for the planner, which joins in another order.
#[test]
fn a_value_may_equal_what_the_predicate_of_an_index_says() {
    let tables = "CREATE TABLE a (id serial, a int, x int); \
        CREATE TABLE b (id serial, b int, x int); CREATE TABLE c (id serial, x int); \
        INSERT INTO a (a, x) SELECT g, g % 50 FROM generate_series(1, 60) g; \
        INSERT INTO b (b, x) SELECT g, g % 50 FROM generate_series(1, 4000) g; \
        INSERT INTO c (x) SELECT g % 50 FROM generate_series(1, 20) g; CREATE INDEX ON c (x); \
        CREATE INDEX ON a (a); CREATE INDEX ON b (x) WHERE b = 7; \
        ANALYZE a, b, c; \
        INSERT INTO a (a, x) SELECT g % 20, g % 50 FROM generate_series(1, 400) g; \
        INSERT INTO b (b, x) SELECT g % 20, g % 50 FROM generate_series(1, 400) g";
    same_under(&[("prepare_threshold", "3")], tables, |client, _, round| {
        let other = (0..20).map(|k| 10 + (round + k) % 10);
        let values: Vec<_> = if matches!(round % 11, 7 | 8) {
            vec![7]
        } else {
            other.collect()
        };
        for a in values {
            for equal in [
                "b.b = 7",
                "b.b = num_nulls(NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            ] {
                client.query(&format!(
                    "SELECT a.id, b.id, c.id FROM a, c, b WHERE a.x < c.x AND b.x > c.x \
                     AND a.a = {a} AND {equal}"
                ));
            }
        }
    });
}
