//! What changes who may log in, or with which settings, by what a string holds: in a `DO`, or in
//! the body of a function. The next login through the proxy finds it.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::Instant;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 50) i; ANALYZE; \
    GRANT SELECT ON t TO PUBLIC";

/// With these, `?` becomes the change.
const WAYS: [(&str, &str); 5] = [
    ("", "?"),
    ("", "DO $x$ BEGIN EXECUTE '?'; END $x$"),
    ("", "DO $x$ BEGIN EXECUTE format('%s', '?'); END $x$"),
    (
        "CREATE FUNCTION says() RETURNS void LANGUAGE plpgsql AS \
         $x$ BEGIN EXECUTE '?'; END $x$",
        "SELECT says()",
    ),
    (
        "CREATE FUNCTION says() RETURNS void LANGUAGE plpgsql AS \
         $x$ BEGIN EXECUTE '?'; END $x$; CREATE FUNCTION calls() RETURNS int LANGUAGE plpgsql AS \
         $x$ BEGIN PERFORM says(); RETURN 1; END $x$",
        "BEGIN; SELECT calls(); COMMIT",
    ),
];

/// Has logins answered by connections that were used before.
fn settle(proxy: &Proxy, login: impl Fn() -> Client) {
    let woken = || proxy.summary().count(Counter::Woken);
    let (before, until) = (woken(), Instant::now() + PATIENCE);
    while woken() < before + 3 {
        assert!(Instant::now() < until, "not warm");
        let mut client = login();
        for id in 1..9 {
            let text = format!("SELECT v FROM t WHERE id = {id}");
            assert_eq!(client.value(&text), format!("v{id}"));
        }
        client.send(&frames::frame(b'X', b""));
        client.rest();
    }
}

#[test]
fn the_next_login_finds_what_a_string_has_changed() {
    let own = server::own();
    // Nobody looks in between.
    let proxy = Proxy::with(&own.host_port(), &[("catalog_watch_ms", "60000")]);
    let mut direct = Client::login(&own.host_port(), "postgres");
    direct.run("CREATE ROLE visitor LOGIN");
    direct.run("CREATE DATABASE other");
    direct.run(SETUP);
    let parameters = [("user", "visitor"), ("database", "postgres")];
    let login = || Client::login_with(proxy.address(), &parameters);
    let mut number = 0;
    for (made, way) in WAYS {
        for database in ["postgres", "other"] {
            settle(&proxy, login);
            number += 1;
            let change = format!("ALTER ROLE visitor SET my.var = {number}");
            let mut admin = Client::login(proxy.address(), database);
            let with = |text: &str| text.replace('?', &change);
            if !made.is_empty() {
                admin.run("DROP FUNCTION IF EXISTS calls(), says()");
                admin.run(&with(made));
                // What is made leads to real logins as well.
                settle(&proxy, login);
            }
            admin.run(&with(way));
            let found = login().value("SHOW my.var");
            assert_eq!(found, number.to_string(), "{way} in {database}");
        }
    }
}
