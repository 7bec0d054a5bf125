//! Server connections whose clients have prepared statements of their own, in either protocol: they
//! serve others, who find none of them.

use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::warm::{PROBES, SETUP, leave, until_woken};
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// A proxy that looks at the catalog as it does by default.
fn proxy() -> Proxy {
    Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")])
}

fn select(id: u32) -> String {
    format!("SELECT name FROM t WHERE id = {id}")
}

/// What has to be known before a connection can be kept.
fn work(client: &mut Client) {
    assert_eq!(client.value(&select(7)), "name 7");
}

/// Sends these messages and a Sync, and reads the answers.
fn batch(client: &mut Client, messages: &[Vec<u8>]) -> String {
    client.send(&[messages.concat(), frames::sync()].concat());
    tags(&client.until_ready())
}

/// Has a text prepared under this name and run.
fn prepared(client: &mut Client, name: &str, text: &str, arguments: &[&str]) -> String {
    let messages = [
        frames::parse(name, text, &[]),
        frames::describe(b'S', name),
        frames::bind("", name, arguments),
        frames::execute("", 0),
    ];
    batch(client, &messages)
}

/// All that a client may leave of this kind.
fn prepare_much(client: &mut Client) {
    work(client);
    let text = "SELECT name FROM t WHERE id = $1";
    assert_eq!(prepared(client, "s", text, &["5"]), "1tT2DCZ");
    assert_eq!(prepared(client, "", text, &["6"]), "1tT2DCZ");
    assert!(prepared(client, "f", "SELECT 1 / $1::int", &["0"]).ends_with("EZ"));
    assert_eq!(prepared(client, "s", "SELECT 1", &[]), "EZ", "it is there");
    let long = "long ".repeat(20);
    assert_eq!(prepared(client, &long, "BEGIN", &[]), "1tn2CZ");
    let portal = [
        frames::bind("c", "s", &["8"]),
        frames::execute("c", 1),
        frames::describe(b'P', "c"),
    ];
    assert_eq!(batch(client, &portal), "2DsTZ");
    assert_eq!(prepared(client, "", "COMMIT", &[]), "1tn2CZ");
    for text in [
        "SET search_path = pg_catalog, public",
        "SET client_encoding = 'LATIN1'",
        "SET statement_timeout = 30000",
    ] {
        assert!(prepared(client, "set", text, &[]).ends_with("Z"), "{text}");
        assert!(prepared(client, "", text, &[]).contains('C'), "{text}");
    }
    let draws = "INSERT INTO s (name) VALUES ($1) RETURNING id";
    assert_eq!(prepared(client, "w", draws, &["x"]), "1tT2DCZ");
    client.run("PREPARE p (int) AS SELECT name FROM t WHERE id = $1");
    assert_eq!(client.value("EXECUTE p (9)"), "name 9");
    client.run("PREPARE \"Q q\" AS UPDATE s SET name = 'y' WHERE id = 1");
    client.run("EXECUTE \"Q q\"");
    client.run("PREPARE gone AS SELECT 1");
    client.run("DEALLOCATE gone");
    assert_eq!(batch(client, &[frames::close(b'S', "f")]), "3Z");
}

#[test]
fn what_one_client_has_prepared_is_gone_for_the_next() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let (mut client, _) = until_woken(&proxy, &database, prepare_much);
    let prepared = || proxy.summary().count(Counter::StatementsPrepared);
    let started = Instant::now();
    let (mut kept, mut again) = (0, 0);
    while kept < 8 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{}",
            proxy.summary()
        );
        let pid = client.key.0;
        work(&mut client);
        let before = prepared();
        prepare_much(&mut client);
        leave(client);
        std::thread::sleep(Duration::from_millis(10));
        client = Client::login(proxy.address(), &database);
        // Now and then the server is asked whether it would still let the client in.
        if client.key.0 == pid {
            kept += 1;
            if kept < 8 {
                work(&mut client);
                again += prepared() - before;
            }
        }
    }
    // Of ours, none was dropped with the clients'.
    assert!(again <= 1, "prepared {again} times\n{}", proxy.summary());
    let mut fresh = Client::login(&server::address(), &database);
    assert_eq!(client.parameters, fresh.parameters);
    for name in ["s", "", "set", "w", "p", "Q q", "f", &"long ".repeat(20)] {
        for messages in [
            [frames::bind("", name, &[]), frames::execute("", 0)],
            [frames::describe(b'S', name), frames::close(b'S', name)],
        ] {
            for client in [&mut client, &mut fresh] {
                client.send(&[messages.concat(), frames::sync()].concat());
            }
            let answer = client.until_ready();
            assert_eq!(answer[0].sqlstate(), "26000", "{name}");
            assert_eq!(answer, fresh.until_ready(), "{name}");
        }
        let text = format!("EXECUTE \"{name}\"");
        assert_eq!(client.query(&text), fresh.query(&text), "{name}");
    }
    for probe in PROBES {
        assert_eq!(client.query(probe), fresh.query(probe), "{probe}");
    }
}

/// Says these things, and tells whether the next client has the same connection.
fn is_kept_once(proxy: &Proxy, database: &str, says: impl Fn(&mut Client)) -> bool {
    let (mut client, _) = until_woken(proxy, database, work);
    let pid = client.key.0;
    says(&mut client);
    leave(client);
    std::thread::sleep(Duration::from_millis(10));
    let mut next = Client::login(proxy.address(), database);
    let is_kept = next.key.0 == pid;
    work(&mut next);
    leave(next);
    is_kept
}

/// The same, tried again: a login goes to the server now and then, whatever was said.
fn is_kept(proxy: &Proxy, database: &str, says: impl Fn(&mut Client)) -> bool {
    (0..5).any(|_| is_kept_once(proxy, database, &says))
}

/// Says these things, after which the connection must not serve another client.
fn is_ended(proxy: &Proxy, database: &str, says: impl Fn(&mut Client)) -> bool {
    !is_kept_once(proxy, database, says)
}

/// A database with functions of users', and a type.
fn peopled() -> String {
    server::database(&format!(
        "{SETUP}; CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS \
         'SELECT length(pg_read_file(''PG_VERSION''))'; \
         CREATE FUNCTION named() RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN current_schema(); END'; CREATE TYPE mood AS ENUM ('sad')"
    ))
}

#[test]
fn what_is_parsed_leaves_what_its_text_leaves() {
    let (proxy, database) = (proxy(), peopled());
    let tainting: [&[(&str, &str)]; 13] = [
        &[("", "SELECT setseed(0.5)")],
        &[("s", "CREATE TEMP TABLE x (id int)")],
        &[("s", "SELECT f($1)")],
        &[("s", "SET my.var = 'x'")],
        &[("s", "SELECT set_config($1, 'x', false)")],
        &[("", "LOAD 'plpgsql'")],
        &[("s", "EXECUTE s")],
        &[("s", "PREPARE p AS SELECT 1")],
        &[("_pgautoprep_abcd_1", "SELECT 1")],
        &[("\u{e9}", "SELECT 1")],
        &[("s", "SET search_path = public"), ("t", "SELECT named()")],
        &[("s", "CREATE TEMP TABLE x (id int)"), ("", "DISCARD TEMP")],
        &[("s", "DO 'BEGIN END'")],
    ];
    for texts in tainting {
        let says = |client: &mut Client| {
            for (name, text) in texts {
                prepared(client, name, text, &[]);
            }
        };
        assert!(is_ended(&proxy, &database, says), "{texts:?}");
    }
    let quiet: [&[(&str, &str)]; 5] = [
        &[("", "DISCARD TEMP")],
        &[("s", "SELECT $1::text"), ("t", "SELECT named()")],
        &[
            ("", "BEGIN"),
            ("", "SET LOCAL work_mem = '1MB'"),
            ("", "COMMIT"),
        ],
        &[("s", "SELECT 1"), ("", "DEALLOCATE s")],
        &[("s", "SELECT 1"), ("", "DEALLOCATE ALL")],
    ];
    for texts in quiet {
        let says = |client: &mut Client| {
            for (name, text) in texts {
                let arguments: &[&str] = if text.contains("$1") { &["x"] } else { &[] };
                let answer = prepared(client, name, text, arguments);
                assert!(answer.ends_with("CZ"), "{text}: {answer}");
            }
        };
        assert!(is_kept(&proxy, &database, says), "{texts:?}");
    }
}

#[test]
fn what_is_prepared_by_sql_leaves_what_its_text_leaves() {
    let (proxy, database) = (proxy(), peopled());
    let simple: [&[&str]; 7] = [
        &["PREPARE p AS SELECT setseed(0.5)"],
        &["PREPARE p AS SELECT 1", "EXECUTE p; SELECT 1"],
        &["PREPARE p (mood) AS SELECT f($1::text::int)"],
        &["EXECUTE nothing"],
        &["PREPARE p (int) AS SELECT $1", "EXECUTE p (f(1))"],
        &["DEALLOCATE nothing"],
        &[
            "PREPARE p AS SELECT 1",
            "CREATE TABLE x AS EXECUTE p",
            "DROP TABLE x",
        ],
    ];
    for texts in simple {
        let says = |client: &mut Client| client.queries(texts);
        assert!(is_ended(&proxy, &database, says), "{texts:?}");
    }
}

#[test]
fn what_messages_do_not_tell_ends_the_connection() {
    let (proxy, database) = (proxy(), peopled());
    let batches: [&[Vec<u8>]; 4] = [
        // Of a type of a user's, of which the text does not tell.
        &[frames::parse("s", "SELECT $1", &[20_000])],
        &[frames::bind("", "s", &[]), frames::execute("", 0)],
        // How the second is read depends on the first.
        &[
            frames::parse("", "SET standard_conforming_strings = off", &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
            frames::parse("", "SELECT 'a\\', setseed(0.5) --'", &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
        ],
        &[frames::frame(b'P', b"s\0SELECT 1\0\0\x01")],
    ];
    for messages in batches {
        let says = |client: &mut Client| drop(batch(client, messages));
        assert!(is_ended(&proxy, &database, says), "{messages:?}");
    }
    let calls = |client: &mut Client| {
        let call = frames::frame(b'F', &[0, 0, 3, 0xb5, 0, 0, 0, 0, 0, 0]);
        client.send(&call);
        client.until_ready();
    };
    assert!(is_ended(&proxy, &database, calls), "the fast path");
}

/// What was parsed means something else when the catalog has changed.
#[test]
fn a_statement_that_runs_after_a_change_may_leave_anything() {
    let proxy = proxy();
    let setup = format!(
        "{SETUP}; CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'"
    );
    let database = server::database(&setup);
    let changed = |client: &mut Client| {
        prepared(client, "s", "SELECT g()", &[]);
        let mut other = Client::login(proxy.address(), &database);
        other.run(
            "CREATE OR REPLACE FUNCTION g() RETURNS int LANGUAGE plpgsql AS \
             'BEGIN PERFORM setseed(0.5); RETURN 2; END'",
        );
        work(client);
        let run = [frames::bind("", "s", &[]), frames::execute("", 0)];
        assert_eq!(batch(client, &run), "2DCZ");
    };
    assert!(is_ended(&proxy, &database, changed));
}

/// A batch without an end is never committed by what is said for somebody else.
#[test]
fn a_batch_that_is_left_open_is_undone() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let open = |client: &mut Client| {
        let insert = [
            frames::parse("", "INSERT INTO s (name) VALUES ('never')", &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
            frames::frame(b'H', b""),
        ];
        client.send(&insert.concat());
        assert_eq!(tags(&client.until(b'C')), "12C");
    };
    assert!(is_ended(&proxy, &database, open));
    let mut client = Client::login(&server::address(), &database);
    assert_eq!(client.value("SELECT count(*) FROM s"), "0");
}

/// More than is remembered ends the connection, as it did before.
#[test]
fn names_without_end_are_not_remembered() {
    let proxy = proxy();
    let database = server::database(SETUP);
    let many = |count: usize| {
        move |client: &mut Client| {
            for number in 0..count {
                let name = format!("s{number}");
                assert_eq!(
                    batch(client, &[frames::parse(&name, "SELECT 1", &[])]),
                    "1Z"
                );
            }
        }
    };
    assert!(is_kept(&proxy, &database, many(256)));
    assert!(is_ended(&proxy, &database, many(257)));
    let closed = |client: &mut Client| {
        for number in 0..300 {
            let name = format!("s{number}");
            batch(client, &[frames::parse(&name, "SELECT 1", &[])]);
            batch(client, &[frames::close(b'S', &name)]);
        }
    };
    assert!(is_kept(&proxy, &database, closed));
}
