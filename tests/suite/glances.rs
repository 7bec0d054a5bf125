//! Most looks at the catalog are glances where little is written: what could escape one.

use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::Duration;

const SETUP: [&str; 3] = [
    "CREATE SCHEMA a; CREATE TABLE w (n int); CREATE TABLE t (x real); \
     INSERT INTO t VALUES (0.1); CREATE TABLE r (id int); INSERT INTO r VALUES (1); \
     ALTER TABLE r ENABLE ROW LEVEL SECURITY; CREATE ROLE u LOGIN; \
     GRANT SELECT ON r, t TO u; GRANT USAGE ON SCHEMA a TO u",
    "CREATE FUNCTION f(int) RETURNS text LANGUAGE sql AS 'SELECT ''int'''",
    "INSERT INTO w VALUES (0)",
];

const CALL: &str = "SELECT f('5')";
const STORED: &str = "SELECT count(*) FROM t WHERE x = '0.1'";
const SECURED: &str = "SELECT count(*) FROM r WHERE id = '1'";

/// Texts, and what gives each another answer: rows of the catalog that are new, that are others,
/// that are gone; and roles, of which not everybody may read which transactions wrote them.
const CHANGES: [(&str, &str); 7] = [
    (
        CALL,
        "CREATE FUNCTION f(text) RETURNS text LANGUAGE sql AS 'SELECT ''text'''",
    ),
    (CALL, "DROP FUNCTION f(text)"),
    (STORED, "ALTER TABLE t ALTER x TYPE float8 USING 0.1"),
    (
        STORED,
        "CREATE TABLE a.t (x real); GRANT SELECT ON a.t TO u; INSERT INTO a.t VALUES (1), (2)",
    ),
    (STORED, "ALTER TABLE a.t RENAME TO other"),
    (SECURED, "ALTER ROLE u BYPASSRLS"),
    (SECURED, "ALTER ROLE u NOBYPASSRLS"),
];

/// Plays the changes past the proxy, with other writes to the server between all queries or none.
fn notices(writes: bool) {
    let server = server::own();
    let proxy = Proxy::with(&server.host_port(), &[("catalog_watch_ms", "50")]);
    let mut direct = Client::login(&server.host_port(), "postgres");
    SETUP.iter().for_each(|sql| direct.run(sql));
    // So the log shows what was asked.
    direct.run("ALTER ROLE u SET log_statement = 'all'");
    let login = |address: &str| {
        let who = [("user", "u"), ("database", "postgres")];
        let mut client = Client::login_with(address, &who);
        client.run("SET search_path = a, public");
        client
    };
    let mut client = login(proxy.address());
    for (text, change) in CHANGES {
        let before = login(&server.host_port()).value(text);
        for _ in 0..40 {
            if writes {
                direct.run("INSERT INTO w VALUES (1)");
            }
            assert_eq!(client.value(text), before, "{text} before {change}");
            std::thread::sleep(Duration::from_millis(20));
        }
        // The end of the log is too short for the other questions.
        let mut glances = (0..200).map(|_| {
            client.value(text);
            std::thread::sleep(Duration::from_millis(20));
            server.log_tail().contains("txid_current_snapshot())")
        });
        assert!(writes || glances.any(|found| found), "no glance");
        direct.run(change);
        let after = login(&server.host_port()).value(text);
        // Of a column of another type the right answer is the same, and that of a statement
        // that was prepared before would not be.
        if !change.contains("TYPE") {
            assert_ne!(after, before, "{change}");
        }
        // A look that took long is not repeated at once.
        std::thread::sleep(Duration::from_secs(2));
        client.value(text);
        assert_eq!(client.value(text), after, "{text} behind {change}");
    }
    let summary = proxy.summary();
    assert!(summary.count(Counter::Converted) > 150, "{summary}");
}

#[test]
fn changes_are_noticed_where_nothing_else_is_written() {
    notices(false);
}

#[test]
fn changes_are_noticed_where_rows_are_written() {
    notices(true);
}

/// In a database of this name: where `f` leads its session.
fn named(body: &str) -> [String; 2] {
    let tables = "CREATE SCHEMA a; CREATE TABLE a.t (id int PRIMARY KEY, d date); \
                  CREATE TABLE t (id int PRIMARY KEY, d timestamptz)";
    let function = format!(
        "CREATE FUNCTION f(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN {body} RETURN $1; END$$"
    );
    [tables.to_owned(), function]
}

/// Another database gets the name of one that the proxy knows, and has as many rows of its catalog,
/// none of them new: what is known of the one is not true of the other.
#[test]
fn another_database_of_the_same_name_is_noticed() {
    for through in [false, true] {
        let server = server::own();
        let address = server.host_port();
        let proxy = Proxy::with(&address, &[("catalog_watch_ms", "500")]);
        let login = |address: &str, database: &str| Client::login(address, database);
        let mut direct = login(&address, "postgres");
        for (database, body) in [
            ("one", ""),
            ("two", "PERFORM set_config('search_path', 'a', false);"),
        ] {
            direct.run(&format!("CREATE DATABASE {database}"));
            let mut client = login(&address, database);
            named(body).iter().for_each(|sql| client.run(sql));
        }
        let uses = |client: &mut Client, first: u32| {
            for id in first..first + 60 {
                client.run(&format!(
                    "INSERT INTO t (id, d) VALUES ({id}, '2020-01-01 23:30-05')"
                ));
                client.run("SELECT public.f('x')");
            }
        };
        let mut client = login(proxy.address(), "one");
        uses(&mut client, 0);
        for round in 1..4 {
            std::thread::sleep(Duration::from_millis(700));
            uses(&mut client, round * 100);
        }
        drop(client);
        let mut renames = match through {
            true => login(proxy.address(), "postgres"),
            false => login(&address, "postgres"),
        };
        direct.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'one'");
        std::thread::sleep(Duration::from_millis(300));
        renames.run("ALTER DATABASE one RENAME TO old");
        renames.run("ALTER DATABASE two RENAME TO one");
        if !through {
            std::thread::sleep(Duration::from_millis(1_500));
        }
        let mut client = login(proxy.address(), "one");
        client.run("INSERT INTO t (id, d) VALUES (900, '2020-01-01 23:30-05')");
        uses(&mut client, 0);
        client.run("INSERT INTO t (id, d) VALUES (901, '2020-01-01 23:30-05')");
        let stored = "SELECT string_agg(id || ' ' || d, ',') FROM a.t WHERE id > 900";
        let stored = login(&address, "one").value(stored);
        assert_eq!(stored, "901 2020-01-01", "through the proxy: {through}");
        assert!(proxy.converted() > 100, "{}", proxy.summary());
    }
}
