//! With `plans = server` a statement stays prepared and the server chooses its plans. Rows that
//! nothing orders may come in another order; everything else is the same to the byte.

use crate::harness::client::Client;
use crate::harness::matrix::{same_in_any_order, same_under};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::{Counter, Summary};

/// The values that decide come when a generic plan may be in use.
const fn decides(round: usize) -> bool {
    matches!(round % 11, 7 | 8)
}

/// One row of ten has a kind of its own; an index finds them in another order.
pub(crate) const SKEWED: &str = "CREATE TABLE t (id int PRIMARY KEY, kind int, name text, \
    seen date, pad text); \
    INSERT INTO t SELECT i, CASE WHEN i % 10 = 0 THEN 100 + i ELSE 1 END, 'n' || i, \
    date '2020-01-01' + i % 700, repeat('x', 100) FROM generate_series(1, 5000) i \
    ORDER BY i % 7, i; \
    CREATE INDEX ON t (kind, id DESC); CREATE INDEX ON t (name text_pattern_ops); \
    CREATE INDEX ON t (seen, id); \
    CREATE TABLE u (id int PRIMARY KEY, t int, note varchar(9)); \
    INSERT INTO u SELECT i, 1 + i % 5000, 'u' || i % 50 FROM generate_series(1, 4000) i; \
    CREATE INDEX ON u (t); ANALYZE t; ANALYZE u";

/// Statements that `plans = proven` plans for their values each time, of which `plans = server`
/// plans none.
fn stays_prepared(setup: &str, text: impl Fn(usize) -> String) {
    let body = |client: &mut Client, round: usize| {
        client.query(&text(round));
    };
    // Where an UPDATE puts a row depends on when the server last tidied up the page.
    let strict = same_in_any_order("proven", setup, |client, _, round| body(client, round));
    let summary = same_in_any_order("server", setup, |client, _, round| body(client, round));
    let renewed = |summary: &Summary| summary.count(Counter::StatementsRenewed);
    assert!(renewed(&strict) > 0, "{}\n{strict}", text(5));
    assert_eq!(renewed(&summary), 0, "{}\n{summary}", text(5));
    assert!(
        summary.count(Counter::Converted) > 15,
        "{}\n{summary}",
        text(5)
    );
}

#[test]
fn ranges_stay_prepared() {
    stays_prepared(SKEWED, |round| {
        let to = if decides(round) { 4000 } else { round + 9 };
        format!("SELECT id, name FROM t WHERE id BETWEEN {round} AND {to} AND kind > 0")
    });
    stays_prepared(SKEWED, |round| {
        format!(
            "SELECT count(*), sum(kind) + 5 FROM t WHERE seen >= '2020-01-{:02}' AND kind < 9",
            1 + round
        )
    });
}

#[test]
fn patterns_stay_prepared() {
    stays_prepared(SKEWED, |round| {
        let prefix = if decides(round) { "" } else { "n30" };
        format!("SELECT id FROM t WHERE name LIKE '{prefix}{round}%' OR kind = {round} + 100")
    });
}

#[test]
fn limits_on_ordered_rows_stay_prepared() {
    let summary = same_under(&[("plans", "server")], SKEWED, |client, _, round| {
        let kind = if decides(round) { 1 } else { 100 + 10 * round };
        client.query(&format!(
            "SELECT id, name FROM t WHERE kind = {kind} ORDER BY seen DESC, id LIMIT {}",
            2 + round % 5
        ));
        client.query(&format!(
            "SELECT t.id, u.note FROM t JOIN u ON u.t = t.id WHERE t.seen > '2021-01-{:02}' \
             ORDER BY u.id LIMIT 7 OFFSET {round}",
            1 + round
        ));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 30, "{summary}");
}

#[test]
fn common_values_stay_prepared() {
    stays_prepared(SKEWED, |round| {
        let kind = if round % 2 == 0 { 1 } else { 100 + 10 * round };
        format!("SELECT id FROM t WHERE kind = {kind} AND name <> 'x'")
    });
    stays_prepared(SKEWED, |round| {
        let kind = if round % 2 == 0 { 1 } else { 100 + 10 * round };
        format!(
            "UPDATE t SET pad = 'p{round}' WHERE kind = {kind} AND id > {round} \
             RETURNING id, 1 + kind"
        )
    });
}

#[test]
fn joins_stay_prepared() {
    stays_prepared(SKEWED, |round| {
        let kind = if decides(round) { 1 } else { 100 + 10 * round };
        format!(
            "SELECT t.name, u.note, t.id * 2 FROM u JOIN t ON t.id = u.t \
             WHERE t.kind = {kind} AND u.note <> 'u{round}'"
        )
    });
}

#[test]
fn errors_of_constants_come_before_the_rows() {
    let summary = same_in_any_order("server", SKEWED, |client, _, round| {
        let value = if decides(round) { 99_999 } else { round };
        // The planner makes a smallint of it; a generic plan would when a row comes.
        client.query(&format!(
            "UPDATE t SET kind = {value}::smallint WHERE seen < '1999-01-01'"
        ));
        client.query(&format!(
            "SELECT id FROM t WHERE kind < 500 / {}",
            round % 11
        ));
        let last = if decides(round) { "\\" } else { "%" };
        client.query(&format!(
            "SELECT id FROM t WHERE name LIKE 'n{round}{last}'"
        ));
        let regex = if decides(round) { "[" } else { "n" };
        client.query(&format!(
            "SELECT id FROM t WHERE id > 4900 AND name ~ '{regex}'"
        ));
    });
    assert!(summary.count(Counter::Converted) > 0, "{summary}");
}

#[test]
fn which_rows_are_looked_at_does_not_show() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, s int, v text, pat text, z int); \
        INSERT INTO t SELECT g, CASE WHEN g % 2 = 0 THEN 1 ELSE 1000 + g END, 'a', \
        CASE WHEN g % 16 = 3 THEN '(' ELSE 'a' END, g % 2 FROM generate_series(1, 20000) g; \
        CREATE INDEX ON t (s); ANALYZE t; \
        CREATE FUNCTION said(i int) RETURNS int VOLATILE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''%'', i; RETURN i; END'";
    same_in_any_order("server", setup, |client, _, round| {
        let s = if decides(round) { 1003 } else { 1 };
        let id = 2 + 2 * round;
        client.query(&format!(
            "SELECT s FROM t WHERE v ~ pat AND id < {id} AND s = {s}"
        ));
        client.query(&format!(
            "SELECT s FROM t WHERE id < {id} AND 5 / z = 5 AND s > {s}"
        ));
        client.query(&format!(
            "SELECT id FROM t WHERE id < {id} AND said(id) > 0 AND s = {s}"
        ));
        client.query(&format!(
            "SELECT 1 / z FROM t WHERE id < {id} AND s = {s} ORDER BY id LIMIT 3"
        ));
    });
}

#[test]
fn what_the_planner_tries_out_is_tried_out_each_time() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, tenant int, a int); \
        INSERT INTO t SELECT g, g % 5, g FROM generate_series(1, 2000) g; ANALYZE t; \
        CREATE FUNCTION f() RETURNS int STABLE LANGUAGE plpgsql AS \
        'BEGIN RAISE NOTICE ''called''; RETURN 7; END'; \
        CREATE FUNCTION set_tenant(i text) RETURNS text LANGUAGE plpgsql AS \
        'BEGIN RETURN set_config(''app.tenant'', i, false); END'";
    same_in_any_order("server", setup, |client, _, round| {
        let tenant = if decides(round) { "" } else { "3" };
        client.query(&format!("SELECT set_tenant('{tenant}')"));
        let text = format!(
            "SELECT id FROM t WHERE a > {} AND tenant = current_setting('app.tenant')::int",
            if decides(round) { 5000 } else { 1900 }
        );
        client.query(&text);
        client.query(&format!("SELECT id FROM t WHERE a = f() AND id > {round}"));
    });
}

#[test]
fn predicate_locks_are_those_of_the_literals() {
    let locks = "SELECT relation::regclass, locktype, page, tuple FROM pg_locks \
        WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1, 2, 3, 4";
    same_in_any_order("server", SKEWED, |client, _, round| {
        let kind = if decides(round) { 1 } else { 100 + 10 * round };
        let text = format!(
            "SELECT id FROM t WHERE kind >= {kind} AND kind < {}",
            kind + 9
        );
        client.query(&text);
        client.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
        client.query(&text);
        client.query(locks);
        client.query("COMMIT");
    });
}

/// A generic plan locks every partition, a plan for the values those it reads.
#[test]
fn a_locked_partition_that_is_not_read_is_not_waited_for() {
    let setup = "CREATE TABLE p (k int, v int) PARTITION BY LIST (k); \
        CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); \
        CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2); \
        INSERT INTO p SELECT 1 + i % 2, i FROM generate_series(1, 1000) i; ANALYZE p";
    let summary = same_in_any_order("server", setup, |client, other, round| {
        client.query("SET lock_timeout = 300");
        if round % 11 == 8 {
            other.query("BEGIN");
            other.query("LOCK TABLE p2 IN ACCESS EXCLUSIVE MODE");
        }
        client.query(&format!(
            "SELECT v FROM p WHERE k = 1 AND v < {}",
            10 + round
        ));
        other.query("ROLLBACK");
    });
    assert!(summary.count(Counter::Converted) > 0, "{summary}");
}

#[test]
fn a_text_may_be_proven_on_one_proxy_and_chosen_on_another() {
    let upstream = server::address();
    let database = server::database(SKEWED);
    let renewed = ["proven", "server"].map(|plans| {
        let proxy = Proxy::with(&upstream, &[("plans", plans)]);
        let mut client = Client::login(proxy.address(), &database);
        for round in 0..20 {
            client.query(&format!(
                "SELECT id FROM t WHERE seen > '2021-11-{:02}'",
                1 + round
            ));
        }
        proxy.summary().count(Counter::StatementsRenewed)
    });
    assert!(renewed[0] > 0 && renewed[1] == 0, "{renewed:?}");
}
