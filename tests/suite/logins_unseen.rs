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

/// In a database of which the proxy has not asked yet what its functions do.
#[test]
fn the_next_login_finds_what_an_unknown_function_has_changed() {
    let own = server::own();
    let proxy = Proxy::with(&own.host_port(), &[("catalog_watch_ms", "60000")]);
    let mut direct = Client::login(&own.host_port(), "postgres");
    direct.run("CREATE ROLE visitor LOGIN");
    direct.run("CREATE DATABASE other");
    direct.run(SETUP);
    let mut other = Client::login(&own.host_port(), "other");
    other.run(
        "CREATE FUNCTION calls() RETURNS int LANGUAGE plpgsql AS \
         $x$ BEGIN ALTER ROLE visitor SET my.var = 7; RETURN 1; END $x$",
    );
    let parameters = [("user", "visitor"), ("database", "postgres")];
    let login = || Client::login_with(proxy.address(), &parameters);
    settle(&proxy, login);
    let mut admin = Client::login(proxy.address(), "other");
    assert_eq!(admin.value("SELECT calls()"), "1");
    assert_eq!(login().value("SHOW my.var"), "7");
}

/// What an administrator does before others log in, and after it.
struct Again {
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
}

fn again(before: &[&str], after: &[&str]) -> Again {
    let queries = |texts: &[&str]| texts.iter().map(|text| frames::query(text)).collect();
    Again {
        before: queries(before),
        after: queries(after),
    }
}

/// How many of the ways call `says`: the first.
const CALLING: usize = 9;

/// Ways to run, later and again, what calls `says`, whose OID this is, or changes logins itself.
fn ways_to_run_again(oid: u32) -> Vec<Again> {
    let says = "SELECT says()";
    let parsed = |text: &str| Again {
        before: vec![[frames::parse("s", text, &[]), frames::sync()].concat()],
        after: vec![frames::execution("s", &[])],
    };
    let call = [&oid.to_be_bytes()[..], &[0; 6]].concat();
    vec![
        again(&[says; 4], &[says]),
        again(&[says, says, "BEGIN"], &[says, "COMMIT"]),
        again(&["PREPARE p AS SELECT says()"], &["EXECUTE p"]),
        again(
            &["DO $x$ BEGIN EXECUTE 'PREPARE q AS SELECT says()'; END $x$"],
            &["EXECUTE q"],
        ),
        again(
            &["BEGIN; DECLARE c CURSOR FOR SELECT says()"],
            &["FETCH c; COMMIT"],
        ),
        again(
            &[],
            &["DO $x$ BEGIN EXECUTE 'SELECT say' || 's()'; END $x$"],
        ),
        again(&[], &["INSERT INTO told VALUES (1)"]),
        parsed(says),
        Again {
            before: Vec::new(),
            after: vec![frames::frame(b'F', &call)],
        },
        parsed("ALTER ROLE visitor SET my.var = 70"),
        parsed("DO $x$ BEGIN EXECUTE 'ALTER ROLE visitor SET my.var = 71'; END $x$"),
    ]
}

#[test]
fn the_next_login_finds_what_has_run_again() {
    let own = server::own();
    let proxy = Proxy::with(&own.host_port(), &[("catalog_watch_ms", "60000")]);
    let mut direct = Client::login(&own.host_port(), "postgres");
    direct.run("CREATE ROLE visitor LOGIN; ALTER ROLE visitor SET my.var = 0");
    direct.run("CREATE DATABASE other");
    direct.run(SETUP);
    let mut other = Client::login(&own.host_port(), "other");
    other.run(
        "CREATE SEQUENCE n; CREATE TABLE told (a int); \
         CREATE FUNCTION says() RETURNS int LANGUAGE plpgsql AS $x$ BEGIN \
         EXECUTE format('ALTER ROLE visitor SET my.var = %s', nextval('n')); RETURN 1; END $x$; \
         CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS \
         $x$ BEGIN PERFORM says(); RETURN NEW; END $x$; \
         CREATE TRIGGER fires BEFORE INSERT ON told FOR EACH ROW EXECUTE FUNCTION fires()",
    );
    let oid = other.value("SELECT 'says'::regproc::oid").parse().unwrap();
    let parameters = [("user", "visitor"), ("database", "postgres")];
    let login = || Client::login_with(proxy.address(), &parameters);
    for (number, way) in ways_to_run_again(oid).into_iter().enumerate() {
        // In the other database nothing changes logins but by what it spells.
        let database = if number < CALLING {
            "other"
        } else {
            "postgres"
        };
        let mut admin = Client::login(proxy.address(), database);
        let mut ask = |bytes: &Vec<u8>| {
            admin.send(bytes);
            let answer = admin.until_ready();
            assert!(!frames::tags(&answer).contains('E'), "{number}: {answer:?}");
        };
        way.before.iter().for_each(&mut ask);
        settle(&proxy, login);
        way.after.iter().for_each(&mut ask);
        let expected = Client::login_with(&own.host_port(), &parameters).value("SHOW my.var");
        assert_eq!(login().value("SHOW my.var"), expected, "way {number}");
    }
}
