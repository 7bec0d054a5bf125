//! Fewer server connections than clients (`pool_mode = "auto"`).

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t";

/// A proxy whose pools have this size.
fn proxy(size: &str) -> Proxy {
    with(size, &[])
}

fn with(size: &str, changes: &[(&str, &str)]) -> Proxy {
    let mut all = vec![
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", size),
    ];
    all.extend(changes);
    Proxy::with(&server::address(), &all)
}

fn select(client: &mut Client, id: usize) {
    let text = format!("SELECT name FROM t WHERE id = {id}");
    assert_eq!(client.value(&text), format!("name {id}"));
}

#[test]
fn many_clients_share_few_server_connections() {
    let proxy = proxy("5");
    let database = server::database(SETUP);
    let mut clients: Vec<_> = (0..200)
        .map(|_| Client::login(proxy.address(), &database))
        .collect();
    for round in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            select(client, 1 + (index + round) % 100);
        }
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let mut direct = Client::login(&server::address(), &database);
    let count: usize = direct.value(sessions).parse().unwrap();
    assert!((2..=6).contains(&count), "{count} sessions");
    let summary = proxy.summary();
    assert!(summary.count(Counter::HomesFound) > 500, "{summary}");
    assert_eq!(summary.count(Counter::WaitTimeouts), 0, "{summary}");
}
