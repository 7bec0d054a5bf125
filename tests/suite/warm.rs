//! Server connections that outlive their clients.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t; \
    CREATE TABLE s (id serial PRIMARY KEY, name text)";

const SELECT: &str = "SELECT name FROM t WHERE id = ";

/// A proxy that looks at the catalog as it does by default.
fn proxy() -> Proxy {
    Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")])
}

/// Says that the client leaves, and waits until the proxy has closed the connection.
fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

fn woken(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Woken)
}

/// Clients come and go, and do `work` each, until one of them has been given a warm connection.
/// Returns it, and the process id of its predecessor.
fn until_woken(proxy: &Proxy, database: &str, work: impl Fn(&mut Client)) -> (Client, u32) {
    let started = Instant::now();
    let mut last = 0;
    loop {
        let before = woken(proxy);
        let mut client = Client::login(proxy.address(), database);
        if woken(proxy) > before {
            return (client, last);
        }
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "no warm connection"
        );
        work(&mut client);
        last = client.key.0;
        leave(client);
        // Resets take a moment.
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_statement_stays_prepared_for_the_next_client() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let work = |client: &mut Client| assert_eq!(client.value(&format!("{SELECT}7")), "name 7");
    let (mut client, last) = until_woken(&proxy, &database, work);
    assert_eq!(client.key.0, last, "the same process");
    let prepared = proxy.summary().count(Counter::StatementsPrepared);
    for id in 1..=30 {
        assert_eq!(client.value(&format!("{SELECT}{id}")), format!("name {id}"));
        leave(client);
        client = Client::login(proxy.address(), &database);
    }
    let own = client.value("SELECT pg_backend_pid()");
    assert_eq!(own, client.key.0.to_string());
    let summary = proxy.summary();
    assert!(summary.count(Counter::Woken) >= 25, "{summary}");
    let again = summary.count(Counter::StatementsPrepared) - prepared;
    assert!(again <= 3, "prepared {again} times\n{summary}");
}
