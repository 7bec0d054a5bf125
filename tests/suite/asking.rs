//! What the server is asked where applications connect for a moment, or keep changing the catalog.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::time::Instant;

const SETUP: &str = "\
    CREATE TABLE people (id int PRIMARY KEY, name text, town int); \
    INSERT INTO people SELECT i, 'name ' || i, i % 10 FROM generate_series(1, 1000) i; \
    CREATE TABLE towns AS SELECT i AS id, 'town ' || i AS name FROM generate_series(0, 9) i";

/// The defaults of what the suite otherwise changes.
const DEFAULT: [(&str, &str); 2] = [("prepare_threshold", "3"), ("oracle_per_second", "200")];

/// A visit: three statements that are sent `often` times, and three that are sent once.
fn visit(address: &str, database: &str, number: usize, often: usize) {
    let mut client = Client::login(address, database);
    for once in ["town", "name", "id, name"] {
        client.query(&format!("SELECT {once} FROM people WHERE id = {number}"));
    }
    for time in 0..often {
        let id = (number + time) % 1000 + 1;
        assert_eq!(
            client.value(&format!("SELECT name AS a FROM people WHERE id = {id}")),
            format!("name {id}")
        );
        let joined = "FROM people p JOIN towns t ON t.id = p.town";
        assert_eq!(
            client.value(&format!("SELECT t.name {joined} WHERE p.id = {id}")),
            format!("town {}", id % 10)
        );
        client.query(&format!("UPDATE people SET town = town WHERE id = {id}"));
    }
    client.query("SELECT 1");
}

#[test]
fn short_connections_prepare_what_they_use_often_and_nothing_else() {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &DEFAULT);
    let mut visits = 0;
    let mut five_visits = || {
        let before = proxy.summary();
        for _ in 0..5 {
            visit(proxy.address(), &database, visits, 400);
            proxy.await_connections(0);
            visits += 1;
        }
        proxy.summary().since(&before)
    };
    let first = five_visits();
    // On a busy machine a question costs more than may be spent at once.
    let started = Instant::now();
    let settled = loop {
        let done = five_visits();
        // Three statements of 400 executions each, all but those that found out about the session.
        if done.count(Counter::Converted) > 5 * 1_200 - 100 {
            break done;
        }
        assert!(started.elapsed() < PATIENCE, "{first}{done}");
    };
    // One of the three may have needed a second try.
    let prepared = settled.count(Counter::StatementsPrepared);
    assert!((15..20).contains(&prepared), "{settled}");
    assert_eq!(settled.passed(Reason::Trivial), 5, "{settled}");
    let summary = proxy.summary();
    let asked = summary.count(Counter::OracleQuestions);
    assert!((3..=6).contains(&asked), "{summary}");
}

#[test]
fn connections_that_send_each_statement_a_few_times_are_asked_nothing_in_the_end() {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &DEFAULT);
    let visits = |from: usize, count: usize| {
        for number in from..from + count {
            visit(proxy.address(), &database, number, 5);
            proxy.await_connections(0);
        }
        proxy.summary()
    };
    let started = Instant::now();
    let mut last = visits(0, 10);
    for from in (10..).step_by(40) {
        let before = std::mem::replace(&mut last, visits(from, 40));
        if last.count(Counter::Questions) == before.count(Counter::Questions) {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{before}{last}");
    }
    // On a busy machine a connection may be gone before what it has asked is answered.
    let asked = last.count(Counter::OracleQuestions);
    assert!((3..=6).contains(&asked), "{last}");
}

/// As installers do, one program for each part: what is asked behind the transaction is of use to
/// nobody, because the client leaves. The first of a database may look at the catalog in front of
/// what it makes, in case it goes on for long.
#[test]
fn connections_for_one_transaction_each_are_asked_nothing_behind_it() {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &DEFAULT);
    let mut first = 0;
    for part in 0..8 {
        let mut client = Client::login(proxy.address(), &database);
        client.query("BEGIN");
        client.query(&format!("CREATE TABLE part_{part} (id int, name text)"));
        for id in 0..200 {
            client.query(&format!("INSERT INTO part_{part} VALUES ({id}, 'name')"));
        }
        client.query("COMMIT");
        drop(client);
        proxy.await_connections(0);
        if part == 0 {
            first = proxy.summary().count(Counter::Questions);
        }
    }
    let summary = proxy.summary();
    assert!(first < 100, "{summary}");
    assert_eq!(summary.count(Counter::Questions), first, "{summary}");
    assert!(summary.count(Counter::Converted) < 200, "{summary}");
}

#[test]
fn a_database_that_keeps_changing_is_asked_less_and_less() {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &DEFAULT);
    let mut client = Client::login(proxy.address(), &database);
    let mut rounds = |from: usize, count: usize| {
        let before = proxy.summary().count(Counter::OracleQuestions);
        for number in from..from + count {
            client.run(&format!("ALTER TABLE people ADD COLUMN made_{number} int"));
            for id in 1..=6 {
                client.query(&format!("SELECT name FROM people WHERE id = {id}"));
                client.query(&format!("SELECT town FROM people WHERE id = {id}"));
            }
        }
        proxy.summary().count(Counter::OracleQuestions) - before
    };
    let first = rounds(0, 10);
    let second = rounds(10, 10);
    let last = rounds(20, 30);
    let summary = proxy.summary();
    assert!(first > 3 && second < first, "{first} {second} {last}");
    assert!(last * 10 < first * 30, "{first} {second} {last}\n{summary}");
    assert!(summary.count(Counter::LessonsUnpaid) > 3, "{summary}");
}

/// A look that is taken in front of a definition is of no use where the transaction sees an old
/// catalog, which only the answer tells. It keeps nobody from looking when it is over.
#[test]
fn a_definition_that_sees_an_old_catalog_keeps_nobody_from_asking() {
    let database = server::database(SETUP);
    let seldom = [&DEFAULT[..], &[("catalog_watch_ms", "60000")]].concat();
    let proxy = Proxy::with(&server::address(), &seldom);
    let mut client = Client::login(proxy.address(), &database);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    client.query(begin);
    client.query("CREATE TABLE IF NOT EXISTS towns (id int, name text)");
    client.query("COMMIT");
    for id in 1..=300 {
        client.query(begin);
        client.query(&format!("SELECT name FROM people WHERE id = {id}"));
        client.query(&format!("UPDATE people SET town = 3 WHERE id = {id}"));
        client.query("COMMIT");
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) > 300, "{summary}");
}
