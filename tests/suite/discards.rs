//! DISCARD ALL takes away what it does, also where the server is told less.

use crate::harness::client::Client;
use crate::harness::matrix::same_under;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::travel;
use crate::warm::{PROBES, SETUP};
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// Texts that leave something in the session, and some that do not.
const TEXTS: [&str; 23] = [
    "SET datestyle = 'German'",
    "INSERT INTO s (name) VALUES ('x') RETURNING id",
    "SELECT pg_advisory_lock(7), pg_advisory_lock_shared(8)",
    "SET work_mem = '2MB'; SET statement_timeout = '7s'",
    "SELECT nextval('s_id_seq')",
    "SELECT set_config('timezone', 'Asia/Tokyo', false)",
    "BEGIN; SET LOCAL timezone = 'Asia/Tokyo'; SELECT pg_advisory_xact_lock(7); COMMIT",
    "SELECT name FROM t WHERE id = 5",
    "UPDATE s SET name = 'z' WHERE id = 1",
    "SELECT 1 / 0",
    "SET search_path = pg_catalog; SET client_encoding = 'LATIN1'",
    "SELECT lower(name), now() > '2020-01-01' FROM t WHERE id = 7",
    "SET client_min_messages = 'log'; SET log_statement = 'all'",
    "SET my.var = 'x'",
    "CREATE TEMP TABLE t (id int, name int); INSERT INTO t VALUES (1, 2)",
    "LISTEN a; NOTIFY a",
    "PREPARE p AS SELECT 1",
    "SET ROLE pg_monitor",
    "SET SESSION AUTHORIZATION pg_monitor",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
    "SELECT setseed(0.1), random() < 2",
    "DO 'BEGIN PERFORM set_config(''datestyle'', ''German'', false); END'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
];

/// What only DISCARD ALL itself takes away stands behind these.
const LIGHT: usize = 12;

const WHO: &str = "SELECT current_schemas(false), current_user, session_user, \
                   pg_my_temp_schema() <> 0, current_setting('my.var', true)";

fn discards(client: &mut Client) {
    client.query("DISCARD ALL");
    client.query("SELECT name FROM t WHERE id = 1");
    client.query(WHO);
    // Not those whose answers differ from one server process to another.
    for (index, probe) in PROBES[..11].iter().enumerate() {
        if !matches!(index, 3 | 4) {
            client.query(probe);
        }
    }
}

#[test]
fn after_discard_all_a_session_is_as_it_was_at_its_login() {
    let changes = [("catalog_watch_ms", "1000"), ("prepare_threshold", "1")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        for (index, text) in TEXTS.iter().enumerate() {
            if (index + round) % 2 == 0 || round < 2 && index < LIGHT {
                // The server has to do it itself because of the probes, and then not again.
                client.query("DISCARD ALL");
                client.query(text);
                client.query(TEXTS[(index * 5 + round) % LIGHT]);
                discards(client);
            }
        }
        client.query("BEGIN");
        client.query("DISCARD ALL");
        client.query("ROLLBACK");
    });
    let (spared, converted) = (
        summary.count(Counter::DiscardsSpared),
        summary.count(Counter::Converted),
    );
    let least = if travel::major() < 14 { 0 } else { 60 };
    assert!(spared >= least && converted >= 100, "{summary}");
}

/// The settings are taken back by the last of what is sent, and by nothing before it: what is bound
/// behind it has the types of the table that is found then.
#[test]
fn behind_discard_all_names_mean_what_they_meant_at_the_login() {
    let setup = "CREATE SCHEMA a; \
                 CREATE TABLE a.moment (id int PRIMARY KEY, d timestamptz); \
                 CREATE TABLE moment (id int PRIMARY KEY, d date); \
                 CREATE TABLE written (id serial, x int); \
                 INSERT INTO a.moment SELECT i, '2020-01-01' FROM generate_series(1, 9) i; \
                 INSERT INTO moment SELECT i, '2020-01-01' FROM generate_series(1, 9) i";
    let changes = [("prepare_threshold", "1")];
    let summary = same_under(&changes, setup, |client, _, _| {
        for first in [
            "INSERT INTO written (x) VALUES (5)",
            "SELECT pg_advisory_lock(7)",
            "SELECT 1",
        ] {
            client.query("SET search_path = a, public");
            for id in 1..5 {
                client.query(&format!(
                    "UPDATE moment SET d = '2020-03-04 23:30-05' WHERE id = {id}"
                ));
            }
            client.query(first);
            client.query("DISCARD ALL");
            for id in 1..5 {
                client.query(&format!(
                    "UPDATE moment SET d = '2020-03-04 23:30-05' WHERE id = {id}"
                ));
            }
            client.query("SELECT id, d FROM moment ORDER BY id");
        }
    });
    let spared = summary.count(Counter::DiscardsSpared);
    let least = if travel::major() < 14 { 0 } else { 3 };
    assert!(spared >= least, "{summary}");
}

/// As a framework does that gives its connections back to a pool of its own: a few queries, then
/// all is discarded. None of the shapes comes so often in between that preparing it would pay, so
/// the session has to find out first that it has nothing to discard.
#[test]
fn who_always_discards_after_a_few_queries_comes_to_keep_its_statements() {
    if travel::major() < 14 {
        return;
    }
    let database = server::database(SETUP);
    let server = server::address();
    // All else is as a user has it.
    let settings = [("listen", "127.0.0.1:0"), ("upstream", &*server)];
    let proxy = Proxy::configured(&settings);
    let mut client = Client::login(proxy.address(), &database);
    let until = Instant::now() + Duration::from_secs(20);
    // Where RESET ALL has led has to be asked once as well, or each second one is lost.
    while proxy.converted() < 2_000 {
        assert!(Instant::now() < until, "{}", proxy.summary());
        for round in 0..100 {
            for id in [round, round + 1] {
                client.run(&format!("SELECT name FROM t WHERE id = {}", 1 + id));
                client.run(&format!("UPDATE s SET name = 'a{id}' WHERE id = 1"));
            }
            client.run("DISCARD ALL");
        }
    }
}

/// DISCARD ALL throws away the plans that functions keep, also where it is not done itself: those
/// that a change of the catalog leaves as they are.
#[test]
fn behind_discard_all_functions_call_what_there_is_by_then() {
    if travel::major() < 14 {
        return;
    }
    let database = server::database(SETUP);
    let server = server::address();
    let mut other = Client::login(&server, &database);
    let make = |name: &str, kind: &str, result: &str| {
        let body = format!("'SELECT ''{result}''::text'");
        format!("CREATE FUNCTION {name}({kind}) RETURNS text LANGUAGE sql AS {body}")
    };
    for (outer, inner) in FUNCTIONS {
        other.run(&make(inner, "bigint", "old"));
        let body = format!("'BEGIN RETURN {inner}(1); END'");
        other.run(&format!(
            "CREATE FUNCTION {outer}() RETURNS text LANGUAGE plpgsql AS {body}"
        ));
    }
    let settings = [
        ("listen", "127.0.0.1:0"),
        ("upstream", &*server),
        ("catalog_watch_ms", "200"),
    ];
    let proxy = Proxy::configured(&settings);
    let mut client = Client::login(proxy.address(), &database);
    comes_to_spare(&proxy, &mut client);
    for (outer, inner) in FUNCTIONS {
        let call = format!("SELECT {outer}()");
        assert_eq!(client.value(&call), "old");
        other.run(&make(inner, "int", "new"));
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(client.value(&call), "old", "the plan in it goes on");
        client.run("DISCARD ALL");
        assert_eq!(client.value(&call), "new");
        comes_to_spare(&proxy, &mut client);
    }
}

/// Functions, and those that they call: with a number that fits a parameter of another type better.
const FUNCTIONS: [(&str, &str); 2] = [("g", "h"), ("i", "j")];

/// Plays the client until much has been converted and DISCARD ALL spared.
fn comes_to_spare(proxy: &Proxy, client: &mut Client) {
    let until = Instant::now() + Duration::from_secs(20);
    let spared = || proxy.summary().count(Counter::DiscardsSpared);
    let (converted, discards) = (proxy.converted() + 500, spared() + 20);
    while proxy.converted() < converted || spared() < discards {
        assert!(Instant::now() < until, "{}", proxy.summary());
        for round in 0..20 {
            client.run(&format!("SELECT name FROM t WHERE id = {}", 1 + round));
            client.run(&format!("UPDATE s SET name = 'a{round}' WHERE id = 1"));
        }
        for (outer, _) in FUNCTIONS {
            client.run(&format!("SELECT {outer}()"));
        }
        client.run("DISCARD ALL");
    }
}

/// The same of plans that were made for other settings.
#[test]
fn behind_discard_all_functions_are_planned_for_the_settings_of_then() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, name text); \
        INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 99) i; \
        CREATE TABLE s (id int, name text); INSERT INTO s VALUES (1, 'a'); \
        CREATE TABLE backwards (v int PRIMARY KEY); \
        INSERT INTO backwards SELECT 1001 - i FROM generate_series(1, 1000) i; ANALYZE; \
        CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS 'DECLARE r int; \
        BEGIN SELECT v INTO r FROM backwards WHERE v > 0 LIMIT 1; RETURN r; END'; \
        CREATE FUNCTION i() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    let proxy = Proxy::start(&server::address());
    let mut client = Client::login(proxy.address(), &server::database(setup));
    if travel::major() >= 14 {
        comes_to_spare(&proxy, &mut client);
    }
    assert_eq!(client.value("SELECT g()"), "1000", "the first there is");
    for _ in 0..3 {
        client.run("DISCARD ALL");
        client.run("SET enable_seqscan = off");
        client.run("SET enable_bitmapscan = off");
        assert_eq!(client.value("SELECT g()"), "1", "the first by the index");
        client.run("DISCARD ALL");
        assert_eq!(client.value("SELECT g()"), "1000");
    }
}

/// Where no connection serves a second client and no read runs elsewhere, nobody wants to know what
/// a session leaves, but for its DISCARD ALL.
#[test]
fn where_nobody_wants_to_know_what_is_left_all_is_discarded() {
    let changes = [
        ("warm_connections", "off"),
        ("shared_reads", "off"),
        ("deferred_begin", "off"),
    ];
    let proxy = Proxy::with(&server::address(), &changes);
    let mut client = Client::login(proxy.address(), &server::database(SETUP));
    for _ in 0..3 {
        for round in 0..20 {
            client.run(&format!("SELECT name FROM t WHERE id = {}", 1 + round));
        }
        client.run("DISCARD ALL");
    }
    client.run("CREATE TEMP TABLE work (id int)");
    client.run("DISCARD ALL");
    assert_eq!(client.value("SELECT to_regclass('work') IS NULL"), "t");
    assert!(proxy.converted() > 0, "{}", proxy.summary());
}
