//! Settings that are changed while the proxy runs, at the console: who is there already follows.

use crate::console::{Place, cell, found, refusal};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE SCHEMA one; CREATE SCHEMA two; \
    CREATE TABLE one.t AS SELECT g AS id, 'one' AS v FROM generate_series(0, 99) g; \
    CREATE TABLE two.t AS SELECT g AS id, 'two' AS v FROM generate_series(0, 99) g; \
    ALTER TABLE one.t ADD PRIMARY KEY (id); ALTER TABLE two.t ADD PRIMARY KEY (id)";

fn read(client: &mut Client, id: usize) -> String {
    client.value(&format!("SELECT v FROM t WHERE id = {id}"))
}

/// Reads until something is so of what the proxy has counted since `before`.
fn reads_until(proxy: &Proxy, client: &mut Client, is_so: impl Fn(&Proxy) -> bool) {
    let until = Instant::now() + PATIENCE;
    for id in (0..100).cycle() {
        if is_so(proxy) {
            return;
        }
        assert!(Instant::now() < until, "it never comes to that");
        read(client, id);
    }
}

fn reads_until_converted(proxy: &Proxy, client: &mut Client) {
    let before = proxy.converted();
    reads_until(proxy, client, |proxy| proxy.converted() > before + 5);
}

/// Reads until texts pass through for this reason.
fn reads_until_passed(proxy: &Proxy, client: &mut Client, reason: Reason) {
    let before = proxy.summary().passed(reason);
    let since = |proxy: &Proxy| proxy.summary().passed(reason) - before;
    reads_until(proxy, client, |proxy| since(proxy) > 0);
}

/// A proxy that looks at catalogs, and lets reads travel.
fn proxy(place: &Place, more: &[(&str, &str)]) -> Proxy {
    let usual = [("catalog_watch_ms", "1000"), ("shared_reads", "on")];
    let settings = place.settings(&[&usual, more].concat());
    Proxy::with(&server::address(), &settings)
}

fn login(place: &Place, database: &str) -> Client {
    let mut client = Client::login(&place.path, database);
    client.run("SET search_path = one");
    client
}

#[test]
fn converting_can_be_stopped_and_begun_again() {
    let database = server::database(SETUP);
    let place = Place::new();
    let proxy = proxy(&place, &[]);
    let (mut old, mut console) = (login(&place, &database), place.enter("boss"));
    reads_until_converted(&proxy, &mut old);
    let own = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE '%'";
    for mode in ["off", "observe"] {
        console.run(&format!("SET mode = {mode}"));
        let row = found(&mut console, "CONFIG", "key", "mode").remove(0);
        assert_eq!(cell(&row, "value"), mode);
        reads_until_passed(&proxy, &mut old, Reason::Mode);
        let converted = proxy.converted();
        (0..20).for_each(|id| assert_eq!(read(&mut old, id), "one"));
        assert_eq!(proxy.converted(), converted, "{mode}");
        assert_eq!(old.value(own), "0", "ours are gone");
    }
    // Nobody looks at that.
    old.run("SET search_path = two");
    old.run("DISCARD ALL");
    old.run("SET search_path = two");
    console.run("SET mode = convert");
    // Who was there meanwhile is not known well enough any more; who comes now is.
    reads_until_passed(&proxy, &mut old, Reason::RelayOnly);
    (0..20).for_each(|id| assert_eq!(read(&mut old, id), "two"));
    let mut new = login(&place, &database);
    reads_until_converted(&proxy, &mut new);
    assert_eq!(read(&mut new, 1), "one");
    assert_eq!(
        refusal(&mut place.enter("guest"), "SET mode = off"),
        "42501"
    );
    assert_eq!(refusal(&mut console, "SET mode = no"), "F0000");
}

#[test]
fn a_transaction_that_is_open_when_converting_stops_goes_on() {
    let database = server::database(SETUP);
    for habit in ["off", "on"] {
        let place = Place::new();
        let proxy = proxy(
            &place,
            &[("deferred_begin", habit), ("unlocked_reads", habit)],
        );
        let (mut client, mut console) = (login(&place, &database), place.enter("boss"));
        let mut others = [(); 3].map(|()| login(&place, &database));
        for client in others.iter_mut().chain([&mut client]) {
            reads_until_converted(&proxy, client);
        }
        others[0].run("BEGIN");
        others[1].run("BEGIN; UPDATE t SET v = 'new' WHERE id = 7");
        others[2].run("BEGIN");
        assert_eq!(read(&mut others[2], 3), "one");
        console.run("SET mode = off");
        reads_until_passed(&proxy, &mut client, Reason::Mode);
        for (other, expected) in others.iter_mut().zip(["one", "new", "one"]) {
            assert_eq!(read(other, 7), expected);
            let asked = "SELECT now() = statement_timestamp()";
            assert_eq!(other.value(asked), "f", "the transaction has begun before");
            other.run("ROLLBACK");
            assert_eq!(read(other, 7), "one");
        }
    }
}

#[test]
fn reads_can_be_kept_at_home_and_let_go_again() {
    let database = server::database(SETUP);
    let place = Place::new();
    let proxy = proxy(&place, &[]);
    let mut clients = [(); 4].map(|()| login(&place, &database));
    let mut console = place.enter("boss");
    // All read at once, so that some read elsewhere.
    let mut round = || {
        let before = proxy.summary();
        for id in 0..50 {
            let text = format!("SELECT v FROM t WHERE id = {id}");
            let frame = frames::query(&text);
            clients.iter_mut().for_each(|client| client.send(&frame));
            for client in &mut clients {
                let answer = client.until(b'Z');
                assert_eq!(answer[1].columns(), [Some("one".to_owned())]);
            }
        }
        proxy.summary().since(&before).count(Counter::ReadsShared)
    };
    let until = Instant::now() + PATIENCE;
    while round() == 0 {
        assert!(Instant::now() < until, "no read travels");
    }
    console.run("SET shared_reads = off");
    while round() > 0 {
        assert!(Instant::now() < until, "reads go on travelling");
    }
    console.run("SET shared_reads = on");
    while round() == 0 {
        assert!(Instant::now() < until, "no read travels any more");
    }
}

#[test]
fn limits_of_time_hold_for_who_is_there() {
    let place = Place::new();
    let _proxy = proxy(&place, &[]);
    let mut client = Client::login(&place.path, "postgres");
    client.run("BEGIN");
    std::thread::sleep(Duration::from_millis(1200));
    client.run("SELECT 1");
    place
        .enter("boss")
        .run("SET idle_transaction_timeout_s = 1");
    assert_eq!(client.rest().last().unwrap().sqlstate(), "25P03");
}

#[test]
fn what_waits_for_nobody_is_closed_as_soon_as_it_may_wait_no_longer() {
    let database = server::database(SETUP);
    let place = Place::new();
    let proxy = proxy(&place, &[]);
    let mut direct = Client::login(&server::address(), "postgres");
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    let until = Instant::now() + PATIENCE;
    while direct.value(&count) == "0" {
        assert!(Instant::now() < until, "nothing is kept");
        let mut client = login(&place, &database);
        reads_until_converted(&proxy, &mut client);
        client.send(&frames::frame(b'X', b""));
        client.rest();
        std::thread::sleep(Duration::from_millis(50));
    }
    place.enter("boss").run("SET server_idle_timeout_s = 1");
    while direct.value(&count) != "0" {
        assert!(Instant::now() < until, "it is kept all the same");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_pools_need_stays() {
    let place = Place::new();
    let _proxy = proxy(&place, &[("pool_mode", "auto")]);
    let mut console = place.enter("boss");
    let answer = console.query("SET mode = off");
    let told = answer[0].field(b'M').unwrap_or_default();
    assert!(
        told.contains("mode: expected convert, because of pool_mode = auto"),
        "{told}"
    );
    let row = found(&mut console, "CONFIG", "key", "mode").remove(0);
    assert_eq!(cell(&row, "value"), "convert");
}

/// A pool of one connection, which a client keeps, and the time that others wait for it at first.
fn full(place: &Place, database: &str, limit: &str) -> (Proxy, Client) {
    let settings = [
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
        ("query_wait_timeout_s", limit),
    ];
    let proxy = proxy(place, &settings);
    let mut keeps = Client::login(&place.path, database);
    keeps.run("BEGIN");
    (proxy, keeps)
}

#[test]
fn who_waits_for_a_connection_does_so_as_long_as_is_said_by_then() {
    let database = server::database(SETUP);
    for (before, after) in [("60", "1"), ("0", "1"), ("3", "0")] {
        let place = Place::new();
        let (proxy, mut keeps) = full(&place, &database, before);
        let ours = [("user", "postgres"), ("database", &*database)];
        // One that was logged in while there was room, and one that is not yet.
        keeps.run("COMMIT");
        let mut inside = Client::login(&place.path, &database);
        keeps.run("BEGIN");
        let mut outside = Client::connect(&place.path);
        outside.send(&frames::startup(&ours));
        inside.send(&frames::query("SELECT 1"));
        std::thread::sleep(Duration::from_millis(500));
        let mut console = place.enter("boss");
        console.run(&format!("SET query_wait_timeout_s = {after}"));
        if after == "0" {
            std::thread::sleep(Duration::from_secs(4));
            assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 0);
            keeps.run("COMMIT");
            assert_eq!(inside.until_ready()[1].columns(), [Some("1".to_owned())]);
            outside.logged_in();
            continue;
        }
        for mut waits in [inside, outside] {
            assert_eq!(waits.rest().last().unwrap().sqlstate(), "53300", "{before}");
        }
        assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 2);
    }
}

#[test]
fn connections_become_as_old_as_is_said_by_then() {
    let database = server::database(SETUP);
    for (before, after, ends) in [("0", "1", true), ("600", "1", true), ("6", "600", false)] {
        let place = Place::new();
        let _proxy = proxy(&place, &[("server_lifetime_s", before)]);
        let come = || {
            let mut client = Client::login(&place.path, &database);
            let process = client.value("SELECT pg_backend_pid()");
            (client, process)
        };
        // Until connections are kept.
        let until = Instant::now() + PATIENCE;
        let mut first = String::new();
        let mut client = loop {
            let (mut client, process) = come();
            if first == process {
                break client;
            }
            assert!(Instant::now() < until, "nothing is kept");
            first = process;
            client.send(&frames::frame(b'X', b""));
            client.rest();
            std::thread::sleep(Duration::from_millis(50));
        };
        place
            .enter("boss")
            .run(&format!("SET server_lifetime_s = {after}"));
        let old = if ends { 1200 } else { 6200 };
        std::thread::sleep(Duration::from_millis(old));
        client.send(&frames::frame(b'X', b""));
        client.rest();
        std::thread::sleep(Duration::from_millis(300));
        let mut direct = Client::login(&server::address(), "postgres");
        let alive = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {first}");
        let expected = if ends { "0" } else { "1" };
        assert_eq!(direct.value(&alive), expected, "from {before} to {after}");
    }
}
