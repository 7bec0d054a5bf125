//! Tables that are dropped with others, by no word of the text that drops them: partitions. What
//! hid another table of its name hides it no longer.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::Instant;

const SETUP: &str = "CREATE SCHEMA front; CREATE SCHEMA back; \
    CREATE TABLE front.whole (d date, k int) PARTITION BY LIST (k); \
    CREATE TABLE front.part PARTITION OF front.whole FOR VALUES IN (1) PARTITION BY LIST (k); \
    CREATE TABLE front.leaf PARTITION OF front.part DEFAULT; \
    CREATE TABLE back.part (d timestamptz, k int); CREATE TABLE back.leaf (d timestamptz, k int)";

const DROPS: [&str; 3] = [
    "DROP TABLE front.whole",
    "DROP TABLE IF EXISTS front.whole RESTRICT",
    "DROP TABLE whole",
];

/// The tables under whose names two each are.
const NAMES: [&str; 2] = ["part", "leaf"];

/// Two sessions, in which the rows are converted that are inserted into the partitions.
fn settled(proxy: &Proxy) -> ([Client; 2], Client) {
    let database = server::database(SETUP);
    let mut clients = [(); 2].map(|()| Client::login(proxy.address(), &database));
    for client in &mut clients {
        client.run("SET search_path = front, back");
    }
    let before = proxy.summary();
    let until = Instant::now() + PATIENCE;
    while proxy.summary().since(&before).count(Counter::Warm) < 20 {
        assert!(Instant::now() < until, "nothing is converted");
        clients.iter_mut().for_each(insert);
    }
    (clients, Client::login(&server::address(), &database))
}

/// Has a date stored that is no midnight where it can be none.
fn insert(client: &mut Client) {
    for name in NAMES {
        let text = format!("INSERT INTO {name} (d, k) VALUES ('2020-01-01 23:30:00+00', 1)");
        client.run(&text);
    }
}

/// How many rows of the table behind are not what was said.
fn wrong(direct: &mut Client, name: &str) -> String {
    let wrong = format!("SELECT count(*) FROM back.{name} WHERE d <> '2020-01-01 23:30:00+00'");
    direct.value(&wrong)
}

#[test]
fn what_a_partition_has_hidden_is_seen_when_its_parent_is_dropped() {
    let proxy = Proxy::start(&server::address());
    for drop in DROPS {
        let (mut clients, mut direct) = settled(&proxy);
        clients[0].run(drop);
        for _ in 0..3 {
            clients.iter_mut().for_each(insert);
        }
        for name in NAMES {
            let stored = format!("SELECT count(*) FROM back.{name}");
            assert_eq!(direct.value(&stored), "6", "{drop}");
            assert_eq!(wrong(&mut direct, name), "0", "{drop}");
        }
    }
}

#[test]
fn a_dropped_parent_that_comes_back_has_its_partitions_again() {
    let proxy = Proxy::with(&server::address(), &[("prepare_threshold", "1")]);
    for (begin, end) in [
        ("BEGIN", "ROLLBACK"),
        ("BEGIN; SAVEPOINT s", "ROLLBACK TO s"),
    ] {
        let (mut clients, mut direct) = settled(&proxy);
        direct.run("TRUNCATE front.whole");
        let client = &mut clients[0];
        client.run(begin);
        client.run(DROPS[0]);
        insert(client);
        client.run(end);
        for _ in 0..3 {
            insert(client);
        }
        client.run("COMMIT");
        assert_eq!(
            direct.value("SELECT count(*) FROM front.whole"),
            "6",
            "{end}"
        );
        for name in NAMES {
            let stored = format!("SELECT count(*) FROM back.{name}");
            assert_eq!(direct.value(&stored), "0", "{end}");
        }
    }
}
