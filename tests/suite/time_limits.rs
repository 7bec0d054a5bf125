//! Clients that do what they do for longer than they may are told so and disconnected, and no
//! others are.

use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use std::time::{Duration, Instant};

/// The limit in the tests, and for how long nobody is told who does not reach it.
const LIMIT: Duration = Duration::from_secs(1);
const LONGER: Duration = Duration::from_millis(2200);

/// The pause of a client that is not idle for long.
const PAUSE: Duration = Duration::from_millis(300);

fn proxy(limit: &str, others: &[(&str, &str)]) -> Proxy {
    Proxy::with(&server::address(), &[&[(limit, "1")], others].concat())
}

fn login(proxy: &Proxy) -> Client {
    Client::login(proxy.address(), "postgres")
}

/// Waits until a client is told that a limit is over, and no other than this.
fn is_told(client: &mut Client, sqlstate: &str, word: &str) {
    let started = Instant::now();
    let told = client.rest();
    let taken = started.elapsed();
    assert_eq!(tags(&told), "E", "{word}: {told:?}");
    assert_eq!(told[0].sqlstate(), sqlstate);
    assert_eq!(told[0].field(b'S').as_deref(), Some("FATAL"));
    let message = told[0].field(b'M').unwrap_or_default();
    assert!(message.starts_with(word), "{message}");
    let least = LIMIT - Duration::from_millis(50);
    assert!(taken > least && taken < 5 * LIMIT, "{word}: {taken:?}");
}

/// Sends these texts by turns, with pauses, for longer than the limit.
fn goes_on(client: &mut Client, texts: &[&str], pause: Duration) {
    let started = Instant::now();
    for text in texts.iter().cycle() {
        client.run(text);
        std::thread::sleep(pause);
        if started.elapsed() > LONGER {
            return;
        }
    }
}

/// Does things at the same time.
fn together(all: Vec<Box<dyn FnOnce() + Send + '_>>) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(one)).collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}

#[test]
fn an_idle_client_is_told_to_go() {
    let pool = [("pool_mode", "auto"), ("catalog_watch_ms", "1000")];
    let pooled = proxy(
        "client_idle_timeout_s",
        &[&pool[..], &[("default_pool_size", "1")]].concat(),
    );
    let proxy = proxy("client_idle_timeout_s", &[]);
    let told = |mut client: Client| is_told(&mut client, "57P05", "client_idle_timeout");
    together(vec![
        Box::new(|| told(login(&proxy))),
        Box::new(|| {
            let mut client = login(&proxy);
            client.run("SELECT pg_sleep(1.5)");
            told(client);
        }),
        Box::new(|| goes_on(&mut login(&proxy), &["SELECT 1"], PAUSE)),
        Box::new(|| goes_on(&mut login(&proxy), &["BEGIN", "COMMIT"], LIMIT / 2)),
        Box::new(|| {
            let mut client = login(&proxy);
            client.run("BEGIN");
            std::thread::sleep(LONGER);
            client.run("COMMIT");
        }),
        // One of these two has no home.
        Box::new(|| {
            let mut clients = [login(&pooled), login(&pooled)];
            clients.iter_mut().for_each(|client| client.run("SELECT 2"));
            together(
                clients
                    .map(|client| -> Box<dyn FnOnce() + Send> { Box::new(|| told(client)) })
                    .into(),
            );
        }),
    ]);
}

#[test]
fn an_idle_transaction_is_ended() {
    let proxy = proxy("idle_transaction_timeout_s", &[]);
    let name = "time_limits_idle_transaction";
    let mut direct = Client::login(&server::address(), "postgres");
    together(vec![
        Box::new(|| {
            let mut client = login(&proxy);
            client.run(&format!("BEGIN; CREATE TABLE {name} (a int)"));
            is_told(&mut client, "25P03", "idle_transaction_timeout");
            let began = Instant::now();
            direct.run(&format!("CREATE TABLE {name} (a int); DROP TABLE {name}"));
            assert!(began.elapsed() < LIMIT, "its transaction is rolled back");
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            let failed = client.query("BEGIN; SELECT 1 / 0");
            assert_eq!(tags(&failed), "CEZ");
            is_told(&mut client, "25P03", "idle_transaction_timeout");
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            std::thread::sleep(LONGER);
            client.run("BEGIN");
            client.run("SELECT pg_sleep(2)");
            goes_on(&mut client, &["SELECT 1", "SELECT 2"], PAUSE);
            client.run("COMMIT");
        }),
    ]);
}

#[test]
fn a_query_that_takes_too_long_is_cancelled_with_its_client() {
    let proxy = proxy("query_timeout_s", &[]);
    let mut direct = Client::login(&server::address(), "postgres");
    together(vec![
        Box::new(|| {
            let mut client = login(&proxy);
            let text = "SELECT pg_sleep(30), 'takes too long for query_timeout'";
            client.send(&frames::query(text));
            is_told(&mut client, "57014", "query_timeout");
            let others =
                format!("SELECT count(*) FROM pg_stat_activity WHERE query = $q${text}$q$");
            let until = Instant::now() + 5 * LIMIT;
            while direct.value(&others) != "0" {
                assert!(Instant::now() < until, "the server still works for it");
                std::thread::sleep(LIMIT / 20);
            }
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            std::thread::sleep(LONGER);
            goes_on(&mut client, &["SELECT 1"], Duration::ZERO);
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            client.run("BEGIN");
            goes_on(&mut client, &["SELECT pg_sleep(0.4)"], Duration::ZERO);
        }),
    ]);
}

#[test]
fn a_transaction_that_takes_too_long_is_ended() {
    let proxy = proxy("transaction_timeout_s", &[]);
    let told = |mut client: Client| is_told(&mut client, "25P04", "transaction_timeout");
    together(vec![
        Box::new(|| {
            let mut client = login(&proxy);
            client.run("BEGIN");
            client.run("SELECT 1");
            told(client);
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            client.send(&frames::query("SELECT pg_sleep(30)"));
            told(client);
        }),
        Box::new(|| {
            let mut client = login(&proxy);
            std::thread::sleep(LONGER);
            let texts = ["BEGIN", "SELECT 1", "COMMIT"];
            goes_on(&mut client, &texts, Duration::from_millis(200));
        }),
        Box::new(|| {
            let texts = ["BEGIN", "SELECT 1", "COMMIT", "SELECT 2"];
            goes_on(&mut login(&proxy), &texts, Duration::ZERO);
        }),
    ]);
}
