//! Transactions that have only read and of which the server does not hear: whatever they do, their
//! clients see what they would see in transactions.

use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::matrix::same_under;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

const ON: [(&str, &str); 5] = [
    ("audit", "off"),
    ("unlocked_reads", "on"),
    ("shared_reads", "on"),
    ("deferred_begin", "on"),
    ("catalog_watch_ms", "1000"),
];

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text, at timestamptz DEFAULT 'epoch'); \
    INSERT INTO t (id, v) SELECT i, 'v' || i FROM generate_series(1, 1000) i; \
    CREATE TABLE u (id int PRIMARY KEY, n int CHECK (n < 1000)); \
    INSERT INTO u SELECT i, 0 FROM generate_series(1, 1000) i; \
    CREATE VIEW recent AS SELECT id, v, now() AS seen FROM t; ANALYZE;";

fn read(id: usize) -> String {
    format!("SELECT v FROM t WHERE id = {id}")
}

#[test]
fn what_transactions_read_is_the_same() {
    let summary = same_under(&ON, SETUP, |client, _, round| {
        let (one, two) = (read(round + 1), read(round + 2));
        let other = format!("SELECT id, n FROM u WHERE id = {round}");
        for (begin, end) in [
            ("BEGIN", "COMMIT"),
            ("begin;", "end"),
            ("START TRANSACTION", "ROLLBACK"),
            (
                "BEGIN /* Some\\Class::it's */",
                "COMMIT /* Some\\Class::it's */",
            ),
        ] {
            client.queries(&[begin, &one, end]);
            client.queries(&[begin, &one, &two, &other, &one, end, &one]);
            client.queries(&[begin, end, end]);
        }
    });
    let spared = summary.count(Counter::TransactionsSpared);
    assert!(spared > 150, "{summary}");
}

#[test]
fn what_comes_behind_reads_in_a_transaction_is_the_same() {
    let summary = same_under(&ON, SETUP, |client, other, round| {
        let one = read(round + 1);
        let write = format!("UPDATE u SET n = {round} WHERE id = {round}");
        let back = format!("SELECT n FROM u WHERE id = {round}");
        let fails = format!("SELECT 7 / (n - n) FROM u WHERE id = {round}");
        let wrong = format!("SELECT v FROM t WHERE id = '{round}x'");
        let broken = format!("UPDATE u SET n = 1000 WHERE id = {round}");
        let scripts: [&[&str]; 16] = [
            &["BEGIN", &one, &write, &back, "COMMIT", &back],
            &["BEGIN", &one, &write, "ROLLBACK", &back],
            &["BEGIN", &one, &fails, &one, "COMMIT"],
            &["BEGIN", &one, &wrong, &one, "END", &one],
            &["BEGIN", &one, &broken, "ROLLBACK", &back],
            &[
                "BEGIN",
                &one,
                "SAVEPOINT a",
                &write,
                "ROLLBACK TO a",
                &back,
                "END",
            ],
            &[
                "BEGIN",
                &one,
                "SET LOCAL work_mem = '8MB'",
                "SHOW work_mem",
                "END",
            ],
            &["BEGIN", &one, "SHOW transaction_isolation", "COMMIT"],
            &["BEGIN", &one, "COMMIT AND CHAIN", &one, &write, "COMMIT"],
            &["BEGIN", &one, "BEGIN", &one, "COMMIT", "COMMIT"],
            &["BEGIN", &one, "", "nonsense", "COMMIT"],
            &["BEGIN", &one, "SELECT 1; SELECT 2", "COMMIT"],
            &["BEGIN", &one, "COMMIT; SELECT 1", &one],
            &[
                "BEGIN",
                &one,
                "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "END",
            ],
            &["BEGIN", &one, "COPY t TO STDOUT", "END"],
            &["BEGIN READ ONLY", &one, &write, "END"],
        ];
        for index in 0..scripts.len() {
            // Most of its transactions only read.
            client.queries(&["BEGIN", &one, "COMMIT", "BEGIN", &one, "END"]);
            client.queries(scripts[(index * 3 + round) % scripts.len()]);
            other.queries(&["BEGIN", &one, &back, "COMMIT"]);
        }
        let mut batch = frames::parse("", "SELECT 1", &[]);
        batch.extend(
            [
                frames::bind("", "", &[]),
                frames::execute("", 0),
                frames::sync(),
            ]
            .concat(),
        );
        other.queries(&["BEGIN", &one]);
        if round % 11 == 10 {
            other.send(&batch);
            other.until_ready();
        }
        other.query("ROLLBACK");
    });
    assert!(summary.count(Counter::TransactionsSpared) > 50, "{summary}");
    assert!(summary.count(Counter::ReadsRepeated) > 5, "{summary}");
    assert_eq!(summary.count(Counter::RepeatsFailed), 0, "{summary}");
}

/// What is committed meanwhile is seen, or is not, as the isolation says.
#[test]
fn transactions_of_each_isolation_see_what_they_should() {
    same_under(&ON, SETUP, |client, other, round| {
        let one = read(round + 1);
        let write = format!("UPDATE t SET v = 'w{round}' WHERE id = {}", round + 1);
        for level in ["read committed", "repeatable read", "serializable"] {
            client.query(&format!("SET default_transaction_isolation = '{level}'"));
            client.queries(&["BEGIN", &one]);
            other.query(&write);
            client.queries(&[&one, "COMMIT", &one]);
            client.query(&format!("BEGIN ISOLATION LEVEL {level}"));
            client.query(&one);
            other.query(&format!("UPDATE t SET v = 'v' WHERE id = {}", round + 1));
            client.queries(&[&one, "COMMIT", "RESET ALL"]);
        }
        for mode in ["read_only", "deferrable"] {
            client.query(&format!("SET default_transaction_{mode} = on"));
            let shown = format!("SHOW transaction_{mode}");
            client.queries(&["BEGIN", &one, &shown, "COMMIT"]);
            client.queries(&["BEGIN", &one, &write, "COMMIT", "RESET ALL"]);
        }
    });
}

/// A client whose read travels, and one of the server itself.
fn scene() -> (Proxy, Client, Client) {
    let database = server::database(SETUP);
    let proxy = Proxy::with(&server::address(), &ON);
    let mut client = Client::login(proxy.address(), &database);
    for id in 0..4 {
        client.query(&read(id));
    }
    let direct = Client::login(&server::address(), &database);
    (proxy, client, direct)
}

/// The client begins a transaction and reads this in it, without a lock: not each may be loose,
/// because the connection is used now and then, and questions come in between.
fn begins_loosely(client: &mut Client, direct: &mut Client, reads: &[String]) {
    let pid = client.key.0;
    for _ in 0..50 {
        client.queries(&[&reads[0], "BEGIN"]);
        reads.iter().for_each(|text| drop(client.query(text)));
        if locks(direct, pid) == [None] {
            return;
        }
        client.query("COMMIT");
    }
    panic!("it is not loose");
}

/// The relations on which a process holds locks, and which.
fn locks(direct: &mut Client, pid: u32) -> Vec<Option<String>> {
    let sql = format!(
        "SELECT string_agg(relation::regclass || ' ' || mode, ',' ORDER BY 1) \
         FROM (SELECT DISTINCT relation, mode FROM pg_locks WHERE pid = {pid} \
         AND locktype = 'relation') l"
    );
    let answer = direct.query(&sql);
    answer[1].columns()
}

#[test]
fn a_transaction_that_does_more_has_the_locks_of_its_reads() {
    let (proxy, mut client, mut direct) = scene();
    let (pid, own) = (client.key.0, direct.key.0);
    let mut third = Client::login(
        &server::address(),
        &direct.value("SELECT current_database()"),
    );
    let joined = "SELECT t.v, u.n FROM t JOIN u USING (id) WHERE t.id = 3";
    client.queries(&[joined, joined]);
    for reads in [vec![read(2)], vec![read(1), joined.to_owned()]] {
        begins_loosely(&mut client, &mut direct, &reads);
        client.query("SAVEPOINT a");
        direct.query("BEGIN");
        for text in &reads {
            direct.query(text);
        }
        assert_eq!(locks(&mut third, pid), locks(&mut third, own));
        direct.query("COMMIT");
        client.query("COMMIT");
        assert_eq!(locks(&mut direct, pid), [None]);
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::OpenedForMore) >= 2, "{summary}");
    assert!(summary.count(Counter::ReadsRepeated) >= 3, "{summary}");
}

#[test]
fn all_statements_of_a_transaction_see_the_same_time() {
    let (proxy, mut client, mut direct) = scene();
    let texts = [
        "SELECT now(), v FROM t WHERE id = 1",
        "SELECT current_timestamp, v FROM t WHERE id = 1",
        "SELECT seen, v FROM recent WHERE id = 1",
        "SELECT CAST('now' AS timestamptz), v FROM t WHERE id = 1",
    ];
    let shows = "SELECT count(*) FROM t WHERE at < 'now' AND id = 1";
    for text in texts.into_iter().chain([shows]) {
        (0..3).for_each(|_| drop(client.query(text)));
    }
    for text in texts {
        begins_loosely(&mut client, &mut direct, &[read(1)]);
        let first = client.value(text);
        client.queries(&[&read(2), shows]);
        for text in texts {
            assert_eq!(client.value(text), first, "{text}");
        }
        client.query("COMMIT");
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::OpenedForTime) > 0, "{summary}");
}

#[test]
fn what_has_been_dropped_meanwhile_fails_what_comes_next() {
    let (proxy, mut client, mut direct) = scene();
    // Who only reads does not hear of it.
    begins_loosely(&mut client, &mut direct, &[read(1)]);
    direct.run("ALTER TABLE t RENAME TO gone");
    assert_eq!(client.query("COMMIT")[0].body, b"COMMIT\0");
    direct.run("ALTER TABLE gone RENAME TO t");
    begins_loosely(&mut client, &mut direct, &[read(1)]);
    direct.run("ALTER TABLE t RENAME TO gone");
    let answer = client.query("SAVEPOINT a");
    assert_eq!((&*tags(&answer), &*answer[0].sqlstate()), ("EZ", "42P01"));
    assert_eq!(answer[0].field(b'P'), None);
    assert_eq!(answer[1].body, b"E");
    let answer = client.query("SELECT n FROM u WHERE id = 1");
    assert_eq!(answer[0].sqlstate(), "25P02");
    assert_eq!(client.query("COMMIT")[0].body, b"ROLLBACK\0");
    assert_eq!(proxy.summary().count(Counter::RepeatsFailed), 1);
}

#[test]
fn others_see_the_transaction_after_a_second() {
    let (_proxy, mut client, mut direct) = scene();
    let pid = client.key.0;
    begins_loosely(&mut client, &mut direct, &[read(1)]);
    let state = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    assert_eq!(direct.value(&state), "idle");
    let since = Instant::now();
    while direct.value(&state) != "idle in transaction" {
        assert!(since.elapsed() < Duration::from_secs(60), "still idle");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_ne!(locks(&mut direct, pid), [None]);
    assert_eq!(tags(&client.query(&read(1))), "TDCZ");
    client.query("COMMIT");
}

#[test]
fn a_transaction_that_opens_late_waits_for_nobody() {
    for end in ["COMMIT", "ROLLBACK"] {
        let (_proxy, mut client, mut direct) = scene();
        let other = "SELECT n FROM u WHERE id = 3";
        (0..5).for_each(|_| client.run(other));
        begins_loosely(&mut client, &mut direct, &[other.to_owned(), read(1)]);
        direct.run("BEGIN; LOCK TABLE t");
        std::thread::sleep(Duration::from_millis(1500));
        let started = Instant::now();
        client.run(end);
        assert!(started.elapsed() < Duration::from_secs(2), "{end}");
        // Nor does it hold up others behind what it has locked already.
        direct.run("SET lock_timeout = '2s'");
        direct.run("LOCK TABLE u");
        direct.run("ROLLBACK");
        assert_eq!(client.value("SHOW lock_timeout"), "0");
    }
}

#[test]
fn a_limit_to_idle_transactions_is_kept() {
    let (_proxy, mut client, _) = scene();
    client.query("SET idle_in_transaction_session_timeout = '200ms'");
    client.queries(&[&read(1), &read(2), "BEGIN", &read(1)]);
    let last = client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "25P03"));
}

#[test]
fn a_process_that_is_terminated_is_missed_as_one_in_a_transaction_is() {
    let (_proxy, mut client, mut direct) = scene();
    client.queries(&["BEGIN", &read(1)]);
    direct.query(&format!("SELECT pg_terminate_backend({})", client.key.0));
    let last = client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "57P01"));
}

/// Eight clients whose reads run on the connections of all, while one of them is ended.
#[test]
fn clients_in_transactions_read_their_own_rows() {
    let (proxy, first, mut direct) = scene();
    let database = direct.value("SELECT current_database()");
    let mut clients = vec![first];
    clients.extend((0..7).map(|_| Client::login(proxy.address(), &database)));
    for client in &mut clients {
        client.queries(&[&read(1), &read(2)]);
    }
    for round in 0..60 {
        for client in &mut clients {
            client.send(&frames::query("BEGIN"));
        }
        for client in &mut clients {
            assert_eq!(client.until_ready()[1].body, b"T");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&frames::query(&read(1 + (number * 17 + round) % 1000)));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let answer = client.until_ready();
            assert_eq!((&*tags(&answer), &answer[3].body[..]), ("TDCZ", &b"T"[..]));
            let expected = format!("v{}", 1 + (number * 17 + round) % 1000);
            assert_eq!(answer[1].columns(), [Some(expected)], "client {number}");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            if number == round % 8 {
                client.query(&format!("UPDATE u SET n = {round} WHERE id = {number}"));
            }
            assert_eq!(client.query("COMMIT")[1].body, b"I");
        }
        if round == 40 {
            let mut gone = clients.remove(0);
            direct.query(&format!("SELECT pg_terminate_backend({})", gone.key.0));
            assert_eq!(gone.rest()[0].sqlstate(), "57P01");
        }
    }
    let summary = proxy.summary();
    assert!(
        summary.count(Counter::TransactionsSpared) > 200,
        "{summary}"
    );
    assert!(summary.count(Counter::ReadsShared) > 200, "{summary}");
}
