//! Connections of a few dozen queries each, whose server connections are given to nobody else: what
//! they read runs on connections that stay, and nothing has to be prepared for them.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, a int, v text); \
    INSERT INTO t SELECT i, i % 50, 'v' || i FROM generate_series(1, 1000) i; ANALYZE;";

/// What a short connection sends.
const QUERIES: usize = 40;

/// Reads of ten shapes, each four times.
fn visits(client: &mut Client, seed: usize) {
    for number in 0..QUERIES {
        let (shape, id) = (number % 10, 1 + (seed * 37 + number * 11) % 1000);
        let sql = format!("SELECT v || '-{shape}' FROM t t{shape} WHERE id = {id}");
        assert_eq!(client.value(&sql), format!("v{id}-{shape}"));
    }
}

/// Two connections that go on reading until they are told to stop.
fn stay(address: &str, database: &str, stop: &AtomicBool) {
    let mut clients = [(); 2].map(|()| Client::login(address, database));
    for seed in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        clients.iter_mut().for_each(|client| visits(client, seed));
    }
}

/// What is passed through and prepared while a short connection comes and goes.
fn passed_and_prepared(proxy: &Proxy, database: &str, seed: usize) -> [u64; 2] {
    let counted = || {
        let summary = proxy.summary();
        let passed = summary.count(Counter::Queries) - summary.count(Counter::Converted);
        [passed, summary.count(Counter::StatementsPrepared)]
    };
    let before = counted();
    visits(&mut Client::login(proxy.address(), database), seed);
    proxy.await_connections(2);
    let after = counted();
    [0, 1].map(|at| after[at].saturating_sub(before[at]))
}

#[test]
fn short_connections_read_on_those_that_stay() {
    let database = server::database(SETUP);
    let changes = [
        ("prepare_threshold", "3"),
        ("oracle_per_second", "200"),
        ("shared_reads", "on"),
        ("warm_connections", "off"),
        ("trials", "off"),
        ("catalog_watch_ms", "1000"),
    ];
    let proxy = Proxy::with(&server::address(), &changes);
    let stop = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(|| stay(proxy.address(), &database, &stop));
        let found = (0..).any(|seed| {
            let [passed, prepared] = passed_and_prepared(&proxy, &database, seed);
            passed <= QUERIES as u64 / 4 && prepared == 0 || Instant::now() > deadline
        });
        stop.store(true, Ordering::Relaxed);
        assert!(found && Instant::now() < deadline, "{}", proxy.summary());
    });
}
