//! Where little is converted the catalog is not looked at, and nothing is relied on.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SETUP: &str = "\
    CREATE SCHEMA a; CREATE SCHEMA b; \
    CREATE TABLE a.t (id int PRIMARY KEY, who text); INSERT INTO a.t SELECT i, 'a' FROM \
    generate_series(1, 100) i; CREATE TABLE b.t AS SELECT id, 'b' AS who FROM a.t; \
    ALTER TABLE b.t ADD PRIMARY KEY (id); ANALYZE; \
    CREATE FUNCTION harmless() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'";

/// Those who ask about whatever they meet look in any case.
const SETTINGS: [(&str, &str); 2] = [("catalog_watch_ms", "500"), ("prepare_threshold", "3")];

fn read(client: &mut Client, id: usize) -> String {
    client.value(&format!("SELECT who FROM t WHERE id = {}", 1 + id % 100))
}

/// Reads as fast as it goes until so many reads of a hundred in a row are converted.
fn until_converted(proxy: &Proxy, client: &mut Client, who: &str) {
    let started = Instant::now();
    loop {
        let before = proxy.converted();
        for id in 0..100 {
            assert_eq!(read(client, id), who);
        }
        if proxy.converted() >= before + 95 {
            return;
        }
        let took = started.elapsed();
        assert!(took < Duration::from_secs(60), "{}", proxy.summary());
    }
}

/// Reads now and then, until that is passed through.
fn until_rest(proxy: &Proxy, client: &mut Client, who: &str) {
    let rare = || proxy.summary().passed(Reason::Rare);
    let (started, before) = (Instant::now(), rare());
    while rare() < before + 3 {
        assert_eq!(read(client, 5), who);
        sleep(Duration::from_millis(150));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(60), "{}", proxy.summary());
    }
}

#[test]
fn nobody_looks_at_the_catalog_for_a_few_statements() {
    let proxy = Proxy::with(&server::address(), &SETTINGS);
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    client.run("SET search_path = a, public");
    until_converted(&proxy, &mut client, "a");
    until_rest(&proxy, &mut client, "a");
    let asked = proxy.summary().count(Counter::Questions);
    for _ in 0..20 {
        read(&mut client, 7);
        sleep(Duration::from_millis(100));
    }
    assert_eq!(
        proxy.summary().count(Counter::Questions),
        asked,
        "{}",
        proxy.summary()
    );
    // Once much is sent again it is converted, inside transactions, too.
    until_converted(&proxy, &mut client, "a");
    until_rest(&proxy, &mut client, "a");
    client.run("BEGIN");
    until_converted(&proxy, &mut client, "a");
    client.run("COMMIT");
}

/// A function that was harmless when the catalog was looked at last, and is again when it is looked
/// at next, has moved the session elsewhere in between.
#[test]
fn what_has_run_while_nobody_looked_is_not_taken_for_what_has_its_name_now() {
    const MOVES: &str = "CREATE OR REPLACE FUNCTION harmless() RETURNS int LANGUAGE plpgsql AS \
        'BEGIN PERFORM set_config(''search_path'', ''b, public'', false); RETURN 1; END'";
    const RETURNS: &str = "CREATE OR REPLACE FUNCTION harmless() RETURNS int LANGUAGE plpgsql AS \
        'BEGIN RETURN 1; END'";
    let proxy = Proxy::with(&server::address(), &SETTINGS);
    let database = server::database(SETUP);
    let mut client = Client::login(proxy.address(), &database);
    let mut past = Client::login(&server::address(), &database);
    client.run("SET search_path = a, public");
    client.run("SELECT public.harmless()");
    until_converted(&proxy, &mut client, "a");
    until_rest(&proxy, &mut client, "a");
    past.run(MOVES);
    client.run("SELECT public.harmless()");
    past.run(RETURNS);
    until_converted(&proxy, &mut client, "b");
}
