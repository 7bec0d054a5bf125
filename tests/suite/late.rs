//! Sessions whose first statements came before it was known what the names of the database leave:
//! they gain like others, unless these statements have left something.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i; \
    CREATE FUNCTION fine(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END'; \
    CREATE FUNCTION hears() RETURNS int LANGUAGE plpgsql AS \
    'BEGIN EXECUTE ''LISTEN '' || ''news''; RETURN 1; END'; \
    CREATE FUNCTION odd() RETURNS int LANGUAGE plpgsql AS \
    'BEGIN EXECUTE ''SELECT 1''; RETURN 1; END'; \
    CREATE TABLE heard (id int); \
    CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS \
    'BEGIN EXECUTE ''LISTEN '' || ''news''; RETURN NULL; END'; \
    CREATE TRIGGER fires AFTER INSERT ON heard FOR EACH ROW EXECUTE FUNCTION fires(); ANALYZE";

/// Without a literal, so that nothing is asked because of them.
const HARMLESS: [&str; 5] = [
    "SELECT version()",
    "SELECT fine(id) FROM t ORDER BY id LIMIT NULL",
    "SET TimeZone TO DEFAULT",
    "SELECT count(*) FROM t",
    "COMMIT",
];

/// Each leaves the session listening.
const LISTENING: [&[&str]; 7] = [
    &["LISTEN news"],
    &["SELECT hears()"],
    &["INSERT INTO heard DEFAULT VALUES"],
    &["BEGIN", "INSERT INTO heard DEFAULT VALUES", "COMMIT"],
    // These go on while the server is asked, which does not tell before they are over.
    &["BEGIN", "LISTEN news"],
    &["BEGIN; LISTEN news"],
    &["BEGIN", "SELECT hears()"],
];

/// How many BEGINs are carried of a client that has begun with these.
fn carried(first: &[&str]) -> u64 {
    let database = server::database(SETUP);
    let changes = [("deferred_begin", "on"), ("catalog_watch_ms", "1000")];
    let proxy = Proxy::with(&server::address(), &changes);
    let mut client = Client::login(proxy.address(), &database);
    client.queries(first);
    let before = proxy.summary().count(Counter::BeginsCarried);
    for round in 0..40 {
        let read = format!("SELECT v FROM t WHERE id = {}", 1 + round);
        client.run("BEGIN");
        assert_eq!(client.value(&read), format!("v{}", 1 + round));
        client.run("COMMIT");
    }
    proxy.summary().count(Counter::BeginsCarried) - before
}

#[test]
fn the_first_session_holds_its_begins_back_unless_it_listens() {
    for first in [
        &HARMLESS[..],
        &["BEGIN", "SELECT version()"],
        // What nobody can read, but the server says that it was no LISTEN.
        &["DO 'BEGIN EXECUTE ''SELECT 1''; END'"],
        &["BEGIN", "SELECT odd()"],
        &["LISTEN news", "UNLISTEN *"],
    ] {
        // Of a client that is slow, because the machine is, few are.
        let most = carried(first);
        assert!(most >= 3, "{first:?}: {most}");
    }
    for first in LISTENING {
        assert_eq!(carried(first), 0, "{first:?}");
    }
}

/// How many reads run on others' connections, of eight clients of which each has begun with these.
fn shared(first: &[&str], meanwhile: &str) -> u64 {
    let database = server::database(SETUP);
    let changes = [("shared_reads", "on"), ("catalog_watch_ms", "1000")];
    let proxy = Proxy::with(&server::address(), &changes);
    let login = |_| Client::login(proxy.address(), &database);
    let mut clients: Vec<Client> = (0..8).map(login).collect();
    for client in &mut clients {
        client.queries(first);
    }
    if !meanwhile.is_empty() {
        Client::login(proxy.address(), &database).run(meanwhile);
    }
    let read = |id: usize| format!("SELECT v FROM t WHERE id = {id}");
    for round in 0..4 {
        for client in &mut clients {
            assert_eq!(client.value(&read(1 + round)), format!("v{}", 1 + round));
        }
    }
    for round in 0..60 {
        let id = |number: usize| 1 + (number * 7 + round) % 100;
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&frames::query(&read(id(number))));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let answer = client.until_ready();
            let expected = format!("v{}", id(number));
            assert_eq!(answer[1].columns(), [Some(expected)], "client {number}");
        }
    }
    proxy.summary().count(Counter::ReadsShared)
}

#[test]
fn the_reads_of_first_sessions_travel_unless_these_have_left_something() {
    let most = shared(&HARMLESS, "");
    assert!(most > 20, "{most}");
    for first in LISTENING {
        assert_eq!(shared(first, ""), 0, "{first:?}");
    }
    for first in [
        "CREATE TEMP TABLE t (id int, v text); INSERT INTO t SELECT i, 'v' || i \
         FROM generate_series(1, 100) i",
        "SELECT odd()",
        "DO 'BEGIN EXECUTE ''SELECT 1''; END'",
    ] {
        assert_eq!(shared(&[first], ""), 0, "{first}");
    }
    // Nobody knows what it did when it was called.
    let replaced = "CREATE OR REPLACE FUNCTION hears() RETURNS int LANGUAGE plpgsql \
        AS 'BEGIN RETURN 1; END'";
    assert_eq!(shared(&["SELECT hears()"], replaced), 0);
    assert_eq!(
        shared(&["SELECT odd()"], &replaced.replace("hears", "odd")),
        0
    );
}
