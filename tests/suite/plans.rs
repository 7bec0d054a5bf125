//! Which values share a plan. Another plan shows in the order of the rows, and under LIMIT in the
//! rows themselves.

use crate::harness::client::Client;
use crate::harness::matrix::{converts, same};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::Duration;

/// Ninety of a hundred rows are of kind 1; kinds from 100 on have one row each. An index on kind
/// finds them in another order than the table holds them.
const SKEWED: &str = "CREATE TABLE t (id int PRIMARY KEY, kind int, name text, pad text) \
    WITH (autovacuum_enabled = off); \
    INSERT INTO t SELECT i, CASE WHEN i % 10 = 0 THEN 100 + i ELSE 1 END, \
    CASE WHEN i % 10 = 0 THEN 'n' || i ELSE 'common' END, repeat('x', 200) \
    FROM generate_series(1, 5000) i ORDER BY i % 7, i; \
    CREATE INDEX ON t (kind, id DESC); CREATE INDEX ON t (name, id DESC); ANALYZE t";

/// Rare values until a generic plan might be in use, then the common one, then rare ones again.
fn kind(round: usize) -> usize {
    if round % 11 == 8 { 1 } else { 100 + round * 10 }
}

#[test]
fn a_common_value_after_rare_ones_gets_its_own_plan() {
    let summary = converts(SKEWED, |client, round| {
        let kind = kind(round);
        client.query(&format!("SELECT id FROM t WHERE kind = {kind} LIMIT 3"));
        client.query(&format!("SELECT id FROM t WHERE kind = {kind}"));
        client.query(&format!("SELECT id FROM t WHERE kind IN ({kind}, 7, 8)"));
        let name = if kind == 1 {
            "common".to_owned()
        } else {
            format!("n{kind}")
        };
        client.query(&format!("SELECT id FROM t WHERE name = '{name}'"));
        client.query(&format!(
            "SELECT id FROM t WHERE kind = {kind} FOR UPDATE LIMIT 9"
        ));
        client.query(&format!(
            "SELECT id FROM t WHERE kind > {kind} AND kind < 300"
        ));
        client.query(&format!(
            "SELECT max(id), count(*) FROM t WHERE kind = {kind}"
        ));
    });
    let converted = summary.count(Counter::Converted);
    assert!(converted > 100, "{summary}");
}

#[test]
fn what_a_unique_key_finds_is_planned_once() {
    let summary = converts(SKEWED, |client, round| {
        client.query(&format!(
            "SELECT name FROM t WHERE kind = 1 AND id = {}",
            11 + round
        ));
        client.query(&format!("UPDATE t SET pad = 'z' WHERE id = {round}"));
        client.query(&format!(
            "INSERT INTO t VALUES ({}, 1, 'new', '')",
            6000 + round
        ));
        client.query(&format!("SELECT {round} + 1, 'x'"));
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    assert!(summary.count(Counter::Converted) > 60, "{summary}");
}

#[test]
fn a_partial_index_is_used_for_its_values_only() {
    let setup = "CREATE TABLE t (id int, state text); INSERT INTO t SELECT i, 's' || i \
        FROM generate_series(1, 3000) i ORDER BY i % 5; \
        CREATE INDEX ON t (id DESC) WHERE state = 's2000'; \
        CREATE UNIQUE INDEX ON t (id) WHERE state = 's3000'; ANALYZE t";
    converts(setup, |client, round| {
        let state = if round % 11 == 9 { 2000 } else { round };
        client.query(&format!(
            "SELECT id FROM t WHERE state = 's{state}' AND id > 5"
        ));
        client.query(&format!("SELECT id FROM t WHERE id = {round}"));
    });
}

#[test]
fn a_deferred_key_may_be_violated_for_a_while() {
    let setup = "CREATE TABLE t (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, v int); \
        INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i; ANALYZE t";
    converts(setup, |client, round| {
        client.query("BEGIN");
        client.query(&format!(
            "INSERT INTO t VALUES ({round}, -1), ({round}, -2)"
        ));
        client.query(&format!("SELECT v FROM t WHERE id = {round}"));
        client.query("ROLLBACK");
        client.query(&format!("SELECT v FROM t WHERE id = {round}"));
    });
}

#[test]
fn joins_by_key_are_planned_once_and_others_for_their_values() {
    let setup = format!(
        "{SKEWED}; CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t); \
         INSERT INTO u SELECT i, 1 + i % 5000 FROM generate_series(1, 2000) i; ANALYZE u"
    );
    converts(&setup, |client, round| {
        client.query(&format!(
            "SELECT t.name FROM u JOIN t ON t.id = u.t WHERE u.id = {round}"
        ));
        let kind = kind(round);
        client.query(&format!(
            "SELECT u.id FROM u JOIN t ON t.id = u.t WHERE t.kind = {kind}"
        ));
        client.query(&format!(
            "SELECT id FROM t WHERE kind = {kind} AND id = {}",
            10 * round
        ));
    });
}

#[test]
fn triggers_that_look_at_the_query_see_the_clients_text() {
    let setup = "CREATE TABLE t (id serial, x text); CREATE TABLE log (q text); \
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN INSERT INTO log VALUES (current_query()); RETURN NEW; END'; \
        CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()";
    same(setup, |client, round| {
        client.query(&format!(
            "INSERT INTO t (x) VALUES ('v{round}') RETURNING id"
        ));
        client.query("SELECT q FROM log ORDER BY q");
    });
}

#[test]
fn rows_of_an_insert_are_planned_once_and_converted_in_time() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, \"Na me\" varchar(5), s smallint, \
        n numeric(4,1), at timestamp(0), kind text DEFAULT 'd'); CREATE SEQUENCE q";
    let row = |id: usize, name: &str, s: usize| {
        format!("({id}, '{name}', {s}, 1.25, '2024-01-01 10:00:00.6', 7)")
    };
    let summary = converts(setup, |client, round| {
        let (a, b) = (row(2 * round, "ab", 5), row(2 * round + 1, "é", round));
        client.query(&format!("INSERT INTO t VALUES {a}, {b}"));
        client.query(&format!(
            "INSERT INTO t (\"Na me\", id) VALUES ('x', {}), ('y', {}) RETURNING *",
            1000 + 2 * round,
            1001 + 2 * round
        ));
        client.query(&format!(
            "INSERT INTO t (id) VALUES ({round}) ON CONFLICT (id) DO UPDATE SET \"Na me\" = 'n{}'",
            round % 10
        ));
        client.query("SELECT * FROM t ORDER BY id");
    });
    assert_eq!(summary.count(Counter::StatementsRenewed), 0, "{summary}");
    converts(setup, |client, round| {
        let name = if round % 11 > 6 {
            "much too long"
        } else {
            "ab"
        };
        let s = if round % 11 == 10 { 70_000 } else { 7 };
        let (a, b) = (row(2 * round, "ab", 5), row(2 * round + 1, name, s));
        client.query(&format!("INSERT INTO t VALUES {a}, {b}"));
        let set = format!("SET \"Na me\" = '{name}'");
        client.query(&format!(
            "INSERT INTO t (id) VALUES ({round}) ON CONFLICT (id) DO UPDATE {set}"
        ));
        client.query(&format!(
            "INSERT INTO t (id, s) VALUES ({}, nextval('q')), (1, {s})",
            round + 1000
        ));
        client.query("SELECT last_value FROM q");
    });
}

/// Statistics change without notice, what keys follow from does not.
#[test]
fn what_follows_from_statistics_is_asked_about_sooner() {
    let database = server::database(SKEWED);
    let changes = [("statement_max_age_s", "1"), ("audit", "off")];
    for (column, lesson) in [("id", 0), ("kind", 1)] {
        let proxy = Proxy::with(&server::address(), &changes);
        let mut client = Client::login(proxy.address(), &database);
        let mut reads = |from: usize| {
            for value in from..from + 110 {
                client.query(&format!("SELECT name FROM t WHERE {column} = {value}0"));
            }
        };
        reads(10);
        let converted = proxy.converted();
        assert!(converted > 90, "{column}: {}", proxy.summary());
        let asked = || proxy.summary().count(Counter::OracleQuestions);
        let before = asked();
        std::thread::sleep(Duration::from_millis(1_200));
        reads(200);
        assert_eq!(asked() - before, lesson, "{column}: {}", proxy.summary());
    }
}
