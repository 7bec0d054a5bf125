//! Transactions of which the client is told before the server.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::harness::matrix::same_under;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The catalog is looked at, so that it is known what a session may have left.
const WATCHED: (&str, &str) = ("catalog_watch_ms", "1000");
const ON: [(&str, &str); 2] = [("deferred_begin", "on"), WATCHED];

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n < 1000)); \
    INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i";

#[test]
fn what_follows_a_begin_is_the_same() {
    let carried = same_under(&ON, SETUP, |client, _, round| {
        let read = format!("SELECT id, n FROM t WHERE id = {round}");
        let write = format!("UPDATE t SET n = {round} WHERE id = {round}");
        for begin in [
            "BEGIN",
            "begin;",
            "BEGIN WORK",
            " Begin Transaction ;",
            "START TRANSACTION",
            "BEGIN /* Some\\Class::it's */ ",
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            "START TRANSACTION ISOLATION LEVEL READ COMMITTED;",
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
        ] {
            client.queries(&[begin, &read, &write, &read, "ROLLBACK"]);
            client.queries(&[begin, &write, "COMMIT"]);
        }
        // What others have by default.
        let level = ["repeatable read", "serializable", "read committed"][round % 3];
        let level = format!("SET default_transaction_isolation = '{level}'");
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
        client.queries(&[&level, begin, &read, "SHOW transaction_isolation", "COMMIT"]);
        client.queries(&[begin, &write, &read, "COMMIT", "BEGIN", &read, "COMMIT"]);
        client.query("RESET default_transaction_isolation");
        // What fails behind it: before, and while it runs.
        let wrong = format!("SELECT n FROM t WHERE id = '{round}x'");
        client.queries(&["BEGIN", &wrong, &read, "COMMIT", &read]);
        let wrong = format!("SELECT 7 / (n - n) FROM t WHERE id = {round}");
        client.queries(&["BEGIN", &wrong, &read, "ROLLBACK", &read]);
        let wrong = format!("UPDATE t SET n = 1000 WHERE id = {round}");
        client.queries(&["BEGIN", &wrong, "END", &read]);
    });
    let carried = carried.count(Counter::BeginsCarried);
    assert!(carried > 20, "{carried}");
}

/// What always follows a BEGIN is found out to pay or not like everything else: a trial of it
/// begins behind the BEGIN, which is told to the server alone for once.
#[test]
fn what_follows_a_begin_is_timed() {
    let changes = [ON[0], ON[1], ("trials", "on")];
    let summary = same_under(&changes, SETUP, |client, _, round| {
        for id in 0..150 {
            let write = format!("UPDATE t SET n = n + {} WHERE id = {}", id % 3, round + 1);
            client.queries(&["BEGIN", &write, "COMMIT"]);
            let read = format!("SELECT n FROM t WHERE id = {}", id % 100 + 1);
            client.queries(&["BEGIN", &read, "SAVEPOINT a", "ROLLBACK"]);
        }
        let wrong = format!("UPDATE t SET n = n + 1000 WHERE id = {}", round + 1);
        client.queries(&["BEGIN", &wrong, "COMMIT"]);
    });
    assert!(summary.count(Counter::Trials) > 10, "{summary}");
    assert!(summary.count(Counter::BeginsCarried) > 100, "{summary}");
}

/// The first statement says what all of them see, whether the BEGIN comes with it or not.
#[test]
fn what_a_transaction_sees_again_it_sees_from_its_first_statement_on() {
    let carried = same_under(&ON, SETUP, |client, direct, round| {
        let id = round % 7 + 1;
        let read = format!("SELECT id, n FROM t WHERE id = {id}");
        let write = format!("UPDATE t SET n = n + 1 WHERE id = {id}");
        for begin in [
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "start transaction isolation level repeatable read;",
        ] {
            client.query(begin);
            direct.query(&write);
            client.query(&read);
            direct.query(&write);
            client.queries(&[&read, "SHOW transaction_isolation", &write, &read]);
            client.queries(&["ROLLBACK", &read, begin, &read, "COMMIT"]);
        }
    });
    let carried = carried.count(Counter::BeginsCarried);
    assert!(carried > 10, "{carried}");
}

/// After some of these the BEGINs are sent at once, so the order is another in each round.
#[test]
fn what_cannot_carry_a_begin_is_the_same_behind_it() {
    let level = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE";
    same_under(&ON, SETUP, |client, _, round| {
        let read = format!("SELECT id, n FROM t WHERE id = {round}");
        let write = format!("UPDATE t SET n = {round} WHERE id = {round}");
        let others: [&[&str]; 10] = [
            &["BEGIN", "COMMIT", "BEGIN", "ROLLBACK", "BEGIN", "BEGIN"],
            &[
                "END",
                "BEGIN",
                "SAVEPOINT a",
                &write,
                "ROLLBACK TO a",
                "END",
            ],
            &["BEGIN", "SET LOCAL work_mem = '8MB'", &read, "END"],
            &["BEGIN", level, &read, "SHOW transaction_isolation", "END"],
            &["BEGIN", &read, level, &read, "END"],
            &["BEGIN", "LOCK TABLE t", &read, "END", "BEGIN; SELECT 1"],
            &[
                "COMMIT",
                "BEGIN",
                "",
                &read,
                "COMMIT AND CHAIN",
                &read,
                "END",
            ],
            &["BEGIN", "nonsense", &read, "END"],
            &["BEGIN", "COPY t TO STDOUT", &read, "END"],
            &["BEGIN", "SELECT 1; SELECT 2", &read, "END"],
        ];
        for index in 0..others.len() {
            client.queries(others[(index * 3 + round) % others.len()]);
        }
    });
}

/// A proxy and a client that has run a statement, and sees it converted.
fn warm() -> (Proxy, Client, Client) {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &ON);
    let mut client = Client::login(proxy.address(), &database);
    client.query("SELECT n FROM t WHERE id = 1");
    client.query("SELECT n FROM t WHERE id = 2");
    client.query("UPDATE t SET n = 1 WHERE id = 1");
    client.query("UPDATE t SET n = 2 WHERE id = 2");
    let direct = Client::login(&server::address(), &database);
    (proxy, client, direct)
}

#[test]
fn a_transaction_begins_when_the_client_was_told_so() {
    let (proxy, mut client, _) = warm();
    for pause in [0, 300] {
        client.query("BEGIN");
        sleep(Duration::from_millis(pause));
        let ago = "SELECT extract(epoch FROM clock_timestamp() - now()) * 1000 FROM t WHERE id = 1";
        let ago: f64 = client.value(ago).parse().unwrap();
        let pause = pause as f64;
        assert!(ago > pause - 100.0 && ago < pause + 5_000.0, "{ago}");
        client.query("COMMIT");
    }
    assert_eq!(proxy.summary().count(Counter::ErrorsProxy), 0);
}

#[test]
fn others_see_the_transaction_of_a_client_that_does_nothing_in_it() {
    let (_proxy, mut client, mut direct) = warm();
    let pid = client.value("SELECT pg_backend_pid()");
    client.query("BEGIN");
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    let since = Instant::now();
    while direct.value(&state) != "idle in transaction" {
        assert!(since.elapsed() < PATIENCE, "still idle");
    }
}

/// The server ends in front of the statement that carries the BEGIN: the client hears of it as of
/// any end.
#[test]
fn a_server_that_has_gone_begins_nothing() {
    let (_proxy, mut client, mut direct) = warm();
    let pid = client.value("SELECT pg_backend_pid()");
    client.query("BEGIN");
    direct.query(&format!("SELECT pg_terminate_backend({pid})"));
    let last = client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "57P01"));
}

/// Whatever a cancel request hits, the transaction is there, and one that has failed has failed.
#[test]
fn a_cancelled_statement_ends_in_its_transaction() {
    let (proxy, mut client, mut direct) = warm();
    direct.run("BEGIN; LOCK TABLE t");
    let (pid, secret) = client.key.clone();
    for round in 0..20 {
        client.query("BEGIN");
        client.send(&frames::query("UPDATE t SET n = 5 WHERE id = 7"));
        sleep(Duration::from_millis(round % 4));
        // A request that finds the server idle hits nothing.
        loop {
            let mut request = Client::connect(proxy.address());
            request.send(&frames::cancel(pid, &secret));
            assert_eq!(request.rest(), []);
            if client.hears_within(Duration::from_millis(50)) {
                break;
            }
        }
        let waiting = client.until_ready();
        assert_eq!(tags(&waiting), "EZ");
        assert_eq!(waiting[0].sqlstate(), "57014");
        assert_eq!(waiting[1].body, b"E");
        client.query("ROLLBACK");
    }
}

/// Who wants to be told of each statement that the server gets is told of BEGIN, too.
#[test]
fn a_session_that_is_told_of_statements_is_told_of_its_begin() {
    same_under(&ON, SETUP, |client, _, round| {
        let read = format!("SELECT id, n FROM t WHERE id = {round}");
        client.queries(&["BEGIN", &read, "COMMIT"]);
        client.queries(&["SET client_min_messages = log", "SET log_statement = 'all'"]);
        client.queries(&["BEGIN", &read, "COMMIT", "RESET ALL"]);
        client.queries(&["BEGIN", &read, "COMMIT"]);
    });
}

/// What is known by its words is the statement behind the BEGIN, and not the text that is relayed.
#[test]
fn what_stands_behind_a_begin_is_not_the_whole_text() {
    let proxy = Proxy::with(&server::address(), &[("prepare_threshold", "10"), WATCHED]);
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    for id in 1..20 {
        client.run(&format!("SELECT n FROM t WHERE id = {id}"));
    }
    assert!(proxy.converted() > 0, "{}", proxy.summary());
    for id in 1..5 {
        client.run(&format!("SELECT id FROM t WHERE id = {id}"));
    }
    let answer = client.query("BEGIN; SELECT id FROM t WHERE id = 5");
    assert_eq!(tags(&answer), "CTDCZ");
}
