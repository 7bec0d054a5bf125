//! What applications write beside a key, or around it: whatever plan there is, at most one row
//! comes out. And what looks like that, and is not.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same};
use pgautoprep::metrics::{Counter, Summary};

/// Whether the values that decide come in this round.
const fn decides(round: usize) -> bool {
    matches!(round % 11, 7 | 8)
}

/// Orders with their customers, few enough to be read at a glance, and their items. One order of
/// ten has the common state.
const SHOP: &str = "CREATE TABLE kinds (id int PRIMARY KEY, name text, rank int); \
    INSERT INTO kinds SELECT g, 'k' || g, g % 3 FROM generate_series(1, 90) g; \
    CREATE TABLE customers (id int PRIMARY KEY, email varchar(80) UNIQUE, kind int); \
    INSERT INTO customers SELECT g, 'e' || g || '@x', g % 120 FROM generate_series(1, 2000) g; \
    CREATE TABLE orders (id int PRIMARY KEY, customer int, state varchar(20), coupon text, \
    day date); INSERT INTO orders SELECT g, 1 + g % 2500, \
    CASE WHEN g % 10 = 0 THEN 'open' ELSE 's' || g % 1999 END, \
    CASE WHEN g % 3 = 0 THEN 'c' || g % 7 END, current_date - g % 20 \
    FROM generate_series(1, 20000) g; \
    CREATE TABLE items (id int PRIMARY KEY, order_id int, n int); \
    INSERT INTO items SELECT g, g / 2, g % 5 FROM generate_series(1, 30000) g; \
    CREATE INDEX ON orders (state, day); CREATE INDEX ON orders (customer); \
    CREATE INDEX ON items (order_id); ANALYZE kinds, customers, orders, items";

/// Runs these with a number for `?` that is another each time, and for `$` another state.
fn all(client: &mut Client, round: usize, texts: &[&str]) {
    for k in 0..4 {
        let id = 10 * (1 + (round * 173 + k * 37) % 1900) + usize::from(!decides(round));
        let state = match decides(round) {
            true => "open".to_owned(),
            false => format!("s{}", id % 1999),
        };
        for text in texts {
            client.query(&text.replace('?', &id.to_string()).replace('$', &state));
        }
    }
}

fn is_planned_once(texts: &[&str]) {
    let summary = converts(SHOP, |client, round| all(client, round, texts));
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 60, "{summary}");
}

fn are_planned(summary: &Summary) {
    assert_ne!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
}

#[test]
fn a_list_beside_a_key_is_planned_once() {
    is_planned_once(&[
        "SELECT id, state FROM orders WHERE id = ? AND state IN ('$', 'paid')",
        "SELECT id, state FROM orders WHERE id = ? AND state IN ('$', 'a', 'b', 'c', 'd', 'e', \
         'f', 'g', 'h', 'i', 'j')",
        "SELECT id FROM orders WHERE id = ? AND state NOT IN ('$', 'paid', 'x') LIMIT 1",
        "SELECT id FROM orders WHERE id = ? AND customer IN (?, 7) AND state IN ('$', 'x')",
        "SELECT id FROM orders WHERE id = ? AND state = ANY ('{$,NULL,x}')",
        "UPDATE orders SET coupon = 'z' WHERE id = ? AND state IN ('$', 'x') RETURNING id, state",
        "DELETE FROM orders WHERE id = ? AND state IN ('$', 'x') AND customer NOT IN (1, 2)",
    ]);
}

/// Three rows of one `id`, which are found in another order by the common value of `s`.
#[test]
fn a_list_beside_what_is_no_key_is_planned_for_its_values() {
    let setup = "CREATE TABLE t (id int, s int, d int); \
        INSERT INTO t SELECT 10 + g, 100 + g, -g FROM generate_series(1, 6000) g; \
        INSERT INTO t SELECT 10000 + g, 1, 10 + g FROM generate_series(1, 2000) g; \
        INSERT INTO t VALUES (7, 1, 3), (7, 1, 2), (7, 1, 1); \
        CREATE UNIQUE INDEX ON t (id) WHERE id <> 7; CREATE INDEX ON t (id, s); \
        CREATE INDEX ON t (s, d); ANALYZE t";
    let summary = converts(setup, |client, round| {
        let (id, s) = match decides(round) {
            true => (7, 1),
            false => (10 + round, 100 + round),
        };
        for more in ["", " LIMIT 1"] {
            client.query(&format!(
                "SELECT id, d FROM t WHERE id = {id} AND s IN ({s}, -1){more}"
            ));
        }
    });
    are_planned(&summary);
}

#[test]
fn a_join_of_which_nothing_is_shown_is_planned_once() {
    is_planned_once(&[
        "SELECT count(*) FROM orders o LEFT JOIN customers c ON c.id = o.customer WHERE o.id = ?",
        "SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer \
         WHERE o.id = ? AND o.state = '$'",
        "SELECT count(o.id) FROM orders o LEFT JOIN customers c ON c.id = o.customer \
         LEFT JOIN kinds k ON k.id = c.kind WHERE o.id = ? AND o.coupon IS NULL",
        "SELECT count(*) FROM orders LEFT OUTER JOIN customers ON (orders.customer = customers.id) \
         WHERE orders.state = 'x?'",
    ]);
}

/// The name of a table that is left out is that of one that a view reads, which calls its columns
/// by other names.
#[test]
fn a_view_gives_its_columns_other_names_beside_a_join_that_is_left_out() {
    let setup = "CREATE TABLE t (id int, a int, b int, pad text); INSERT INTO t \
        SELECT g, CASE WHEN g % 10 = 0 THEN 0 ELSE 1 + g % 1999 END, -g, repeat('x', 50) \
        FROM generate_series(1, 20000) g; CREATE INDEX ON t (a, b); ANALYZE t; \
        CREATE VIEW v AS SELECT x.a, x.id FROM t AS x (a, id, b); \
        CREATE TABLE k (id int PRIMARY KEY); INSERT INTO k SELECT generate_series(1, 50)";
    let summary = converts(setup, |client, round| {
        if round.is_multiple_of(11) {
            client.query("SET enable_bitmapscan = off");
        }
        let value = if decides(round) { 0 } else { 300 + round };
        for text in [
            "SELECT v.a FROM v LEFT JOIN t AS x ON false WHERE v.id = ?",
            "SELECT v.a FROM v LEFT JOIN k AS x ON x.id = v.a WHERE v.id = ?",
        ] {
            client.query(&text.replace('?', &value.to_string()));
        }
    });
    are_planned(&summary);
}

/// The same of a function in SQL, whose query stands in its place.
#[test]
fn a_function_gives_columns_other_names_beside_a_join_that_is_left_out() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, a int, b int, pad text); INSERT INTO t \
        SELECT g, CASE WHEN g % 10 = 0 THEN 0 ELSE 1 + g % 1999 END, -g, repeat('x', 50) \
        FROM generate_series(1, 20000) g; CREATE INDEX ON t (a, b); ANALYZE t; \
        CREATE FUNCTION f() RETURNS TABLE (p int, q int) LANGUAGE sql STABLE AS \
        'SELECT x.a, x.id FROM t AS x (a, id, b)'";
    let summary = converts(setup, |client, round| {
        if round.is_multiple_of(11) {
            client.query("SET enable_bitmapscan = off");
        }
        let value = if decides(round) { 0 } else { 300 + round };
        client.query(&format!(
            "SELECT f.p FROM f() f LEFT JOIN t AS x ON x.id = f.p WHERE f.q = {value}"
        ));
    });
    are_planned(&summary);
}

/// Whether it is left out may depend on the value.
#[test]
fn a_join_that_is_not_always_left_out_is_the_same() {
    converts(SHOP, |client, round| {
        let always = if decides(round) { 1 } else { 2 };
        for text in [
            "SELECT o.id FROM orders o LEFT JOIN kinds k ON k.id = o.customer OR $ = 1 \
             WHERE o.id = ? AND o.coupon IS NULL",
            "SELECT o.id FROM orders o LEFT JOIN kinds k ON k.id = o.customer AND $ = 2 \
             WHERE o.id = ? AND o.coupon IS NULL",
            "SELECT o.id FROM orders o LEFT JOIN kinds k ON k.id = $ AND 1 / (k.rank - $) = 7 \
             WHERE o.id = ? AND o.coupon IS NULL",
        ] {
            let text = text.replace('?', &(10 * round + 1).to_string());
            client.query(&text.replace('$', &always.to_string()));
        }
    });
}

#[test]
fn a_row_joined_by_the_key_of_a_small_table_is_planned_once() {
    is_planned_once(&[
        "SELECT c.email, k.name FROM customers c JOIN kinds k ON k.id = c.kind \
         WHERE c.email = 'e?@x'",
        "SELECT c.email, k.name FROM customers c LEFT JOIN kinds k ON k.id = c.kind \
         WHERE c.email = 'e?@x'",
        "SELECT c.email, k.name FROM customers c LEFT OUTER JOIN kinds k ON (k.id = c.kind) \
         WHERE c.id = ? LIMIT 1",
        "SELECT o.id, c.email, k.name, k.rank FROM orders o \
         JOIN customers c ON c.id = o.customer JOIN kinds k ON k.id = c.kind \
         WHERE o.id = ? AND o.state = '$' AND k.rank <> 2",
        "UPDATE customers c SET kind = k.rank FROM kinds k WHERE k.id = c.kind AND c.id = ? \
         RETURNING c.id, k.name",
    ]);
}

/// Each table by a key of the other: which row is joined with which is no matter of one.
#[test]
fn rows_joined_by_keys_of_each_other_are_planned_for_their_values() {
    let setup = "CREATE TABLE d (id int PRIMARY KEY, current int); \
        CREATE TABLE v (id int PRIMARY KEY, doc int, author int, k int); \
        CREATE TABLE kinds (id int, name text); INSERT INTO kinds \
        SELECT g % 5, 'k' || g FROM generate_series(1, 20) g; \
        INSERT INTO d SELECT i * 7919 % 20011, i FROM generate_series(20000, 1, -1) i; \
        INSERT INTO v SELECT i, i * 7919 % 20011, \
        CASE WHEN i <= 10000 THEN 1 ELSE 10 + (i - 10000) / 8 END, i % 5 \
        FROM generate_series(1, 20000) i; CREATE INDEX ON v (author); ANALYZE d, v, kinds";
    let summary = converts(setup, |client, round| {
        let author = if decides(round) { 1 } else { 150 + round };
        for text in [
            "SELECT d.id, v.id FROM d JOIN v ON v.id = d.current AND d.id = v.doc \
             WHERE v.author = ? LIMIT 40",
            "SELECT v.id, k.name FROM v JOIN kinds k ON k.id = v.k WHERE v.id = ? AND v.k <> ?",
        ] {
            client.query(&text.replace('?', &author.to_string()));
        }
    });
    are_planned(&summary);
}

#[test]
fn a_key_beside_what_is_only_looked_for_is_planned_once() {
    is_planned_once(&[
        "SELECT c.id, c.email FROM customers c WHERE c.id = ? \
         AND EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.state = '$')",
        "SELECT c.id, c.email FROM customers c WHERE c.email = 'e?@x' \
         AND NOT EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.state = '$')",
        "SELECT o.id FROM orders o WHERE o.id = ? \
         AND o.id IN (SELECT i.order_id FROM items i WHERE i.n > 1)",
    ]);
}

/// By whatever plan, the row is the same: that a value would get another is no reason to plan the
/// statement for its values from then on.
#[test]
fn a_value_that_gets_another_plan_ends_no_plan_for_one_row() {
    let summary = converts(SHOP, |client, round| {
        for k in 0..8 {
            let id = 10 * (1 + (round * 173 + k * 37) % 1900);
            let state = if round + k == 0 { "s11" } else { "open" };
            client.query(&format!(
                "SELECT c.id, c.email FROM customers c WHERE c.id = {id} AND EXISTS \
                 (SELECT FROM orders o WHERE o.customer = c.id AND o.state = '{state}')"
            ));
        }
    });
    let count = |counter| summary.count(counter);
    assert_eq!(count(Counter::StatementsRenewed), 0, "{summary}");
    assert_eq!(count(Counter::AuditsFailed), 0, "{summary}");
    assert!(count(Counter::AuditsPassed) > 1, "{summary}");
}

/// Which rows a LIMIT leaves to be looked for, the plan says: by an index on `a` those come first
/// that stand last in the table.
#[test]
fn what_a_limit_leaves_to_be_looked_for_is_planned_for_its_values() {
    let setup = "CREATE TABLE p (id int PRIMARY KEY, v int); \
        INSERT INTO p SELECT g, g FROM generate_series(1, 3000) g; \
        CREATE TABLE r (id int, a int, b int); INSERT INTO r SELECT 1 + g % 3000, \
        CASE WHEN g % 2 = 0 THEN 0 ELSE 1 + g % 1999 END, -g FROM generate_series(1, 20000) g; \
        CREATE INDEX ON r (a, b); ANALYZE p, r";
    let summary = converts(setup, |client, round| {
        let a = if decides(round) { 0 } else { 301 + 2 * round };
        for id in [3, 5, 7, 2999, 2001, 1 + a] {
            client.query(&format!(
                "SELECT p.id FROM p WHERE p.id = {id} \
                 AND p.id IN (SELECT r.id FROM r WHERE r.a = {a} LIMIT 3)"
            ));
        }
    });
    are_planned(&summary);
}

#[test]
fn what_is_compared_beside_a_key_is_planned_once() {
    is_planned_once(&[
        "SELECT id FROM orders WHERE id = ? AND (state LIKE '%$%' OR coupon ILIKE 'C%')",
        "SELECT id FROM orders WHERE id = ? AND state NOT LIKE '$%'",
        "SELECT id FROM orders WHERE id = ? AND coupon IS NOT DISTINCT FROM 'c$'",
        "SELECT id FROM orders WHERE id = ? AND state IS DISTINCT FROM '$'",
        "SELECT id FROM orders WHERE id = ? AND day > CURRENT_DATE - 7",
        "SELECT id, day FROM orders WHERE id = ? AND day <= CURRENT_DATE + ?",
    ]);
}

/// A pattern that ends in its escape character is an error where a row is looked at, and a day may
/// be further away than there are days.
#[test]
fn what_is_compared_beside_a_key_may_be_wrong() {
    converts(SHOP, |client, round| {
        for id in [round + 1, 900_000] {
            let wrong = if decides(round) { "x\\" } else { "x" };
            client.query(&format!(
                "SELECT id FROM orders WHERE id = {id} AND (state LIKE '{wrong}' OR day IS NULL)"
            ));
            let days = match round % 11 {
                7 => 1_999_999_999,
                8 => 10_000_000,
                _ => round,
            };
            client.query(&format!(
                "SELECT id FROM orders WHERE id = {id} AND day > CURRENT_DATE - {days}"
            ));
            client.query(&format!(
                "SELECT id FROM orders WHERE id = {id} AND day < CURRENT_DATE + {days}"
            ));
        }
    });
}

/// Operators and collations of somebody's own decide what is matched, and may fail.
#[test]
fn patterns_of_somebodys_own_are_the_same() {
    let setup = "CREATE TABLE t (id text PRIMARY KEY, v text); \
        INSERT INTO t SELECT 'k' || g, 'v' || g FROM generate_series(1, 3000) g; ANALYZE t; \
        CREATE FUNCTION told(a text, b text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''% %'', a, b; RETURN a < b; END'; \
        CREATE OPERATOR ~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = told)";
    same(setup, |client, round| {
        if round.is_multiple_of(11) {
            client.query("SET search_path = public, pg_catalog");
        }
        client.query(&format!(
            "SELECT id FROM t WHERE id = 'k{round}' AND (v LIKE 'v%' OR v = 'x{round}')"
        ));
    });
}
