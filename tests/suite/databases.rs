//! Several servers: where databases lead, who is let in as whom, what becomes of sessions when a
//! server gives way to another, and that nothing of one server is ever taken for another's.

use crate::console::{Place, cell, found};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::login::{Attempt, Users, asking, login_as};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// Two databases of one name that have nothing else in common.
const ONE: &str = "CREATE TABLE t (id int PRIMARY KEY, v int); \
    INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 500) i; \
    CREATE SCHEMA s; CREATE TABLE s.u (id int PRIMARY KEY, w numeric(8, 2)); \
    INSERT INTO s.u SELECT i, i FROM generate_series(1, 500) i; \
    CREATE TABLE u (id int PRIMARY KEY, w text); \
    CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'; \
    CREATE FUNCTION g(int) RETURNS int LANGUAGE sql AS 'SELECT $1'; \
    ALTER DATABASE postgres SET search_path = s, public; ANALYZE";
const TWO: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, (i * 10) || '.0' FROM generate_series(1, 500) i; \
    CREATE SCHEMA s; CREATE TABLE s.u (id int PRIMARY KEY, w int); \
    CREATE TABLE u (id int PRIMARY KEY, w text); \
    INSERT INTO u SELECT i, 'u' || i FROM generate_series(1, 500) i; \
    CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 2'; \
    CREATE FUNCTION g(int) RETURNS int LANGUAGE sql AS \
    'SELECT set_config(''my.left'', $1::text, false)::int'; \
    ALTER DATABASE postgres SET search_path = public; ANALYZE";

/// Texts that mean something else in each.
fn texts(id: usize) -> [String; 6] {
    [
        format!("SELECT v FROM t WHERE id = {id}"),
        format!("SELECT id FROM t WHERE v = '{}'", id * 10),
        format!("SELECT w FROM u WHERE id = {id}"),
        format!("SELECT f({id}) FROM t WHERE id = {id}"),
        format!("SELECT v || 'x', id FROM t WHERE id = {id} AND v > '5'"),
        format!("SELECT id + 1 FROM u WHERE w = '{id}'"),
    ]
}

/// A table for each of these.
fn tables(all: &[(&str, &str)]) -> String {
    let table = |(name, rest): &(&str, &str)| format!("[databases.\"{name}\"]\n{rest}\n");
    all.iter().map(table).collect()
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

fn woken(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Woken)
}

#[test]
fn the_console_calls_databases_what_clients_call_them() {
    let place = Place::new();
    let leads = format!("upstream = '{}'\ndbname = 'postgres'", server::address());
    let tables = tables(&[("one", &leads), ("two", &leads)]);
    let _proxy = Proxy::with_tables(&tables, &place.settings(&[]));
    let mut clients = ["one", "two"].map(|name| Client::login(&place.path, name));
    clients.iter_mut().for_each(|client| client.run("SELECT 1"));
    let mut console = place.enter("boss");
    for table in ["SERVERS", "CLIENTS", "POOLS", "STATS"] {
        let mut rows = |name| found(&mut console, table, "database", name).len();
        assert_eq!(
            [rows("one"), rows("two"), rows("postgres")],
            [1, 1, 0],
            "{table}"
        );
    }
    console.run("RECONNECT one");
    let mut closes = |name| {
        let row = found(&mut console, "SERVERS", "database", name).remove(0);
        cell(&row, "close_needed").to_owned()
    };
    assert_eq!([closes("one"), closes("two")], ["1", "0"]);
    drop(clients);
    console.run("WAIT_CLOSE one");
    let mut rows = |name| found(&mut console, "STATS", "database", name).len();
    assert_eq!([rows("one"), rows("postgres")], [1, 0]);
}

#[test]
fn connections_for_nobody_are_called_what_clients_call_their_database() {
    let place = Place::new();
    let leads = format!(
        "upstream = '{}'\ndbname = 'postgres'\nmin_pool_size = 3",
        server::address()
    );
    let settings = place.settings(&[("catalog_watch_ms", "1000")]);
    let _proxy = Proxy::with_tables(&tables(&[("one", &leads)]), &settings);
    Client::login(&place.path, "one").run("SELECT 1");
    let mut console = place.enter("boss");
    let started = Instant::now();
    while found(&mut console, "SERVERS", "database", "one").len() < 3 {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(found(&mut console, "SERVERS", "database", "postgres").is_empty());
}

#[test]
fn databases_of_one_name_on_two_servers_share_nothing() {
    let servers = [ONE, TWO].map(Server::start);
    let upstream = |index: usize| {
        let address: &Server = &servers[index];
        format!("upstream = '{}'\ndbname = 'postgres'", address.address())
    };
    let tables = tables(&[("one", &upstream(0)), ("two", &upstream(1))]);
    for shared in ["off", "on"] {
        let changes = [
            ("shared_reads", shared),
            ("catalog_watch_ms", "1000"),
            ("workers", "2"),
        ];
        let proxy = Proxy::with_tables(&tables, &changes);
        let mut direct = servers
            .each_ref()
            .map(|server| Client::login(&server.address(), "postgres"));
        let mut compare = |which: usize, client: &mut Client, id: usize| {
            for text in texts(id) {
                let expected = direct[which].query(&text);
                assert_eq!(client.query(&text), expected, "{which} {shared} {text}");
            }
        };
        // Clients that come and go, in turn, so that each finds what the other has left.
        for round in 0..30 {
            for (which, name) in ["one", "two"].into_iter().enumerate() {
                let mut client = Client::login(proxy.address(), name);
                compare(which, &mut client, 1 + round);
                compare(which, &mut client, 100 + round);
                assert_eq!(client.value("SELECT current_database()"), "postgres");
                if round % 5 == 4 {
                    // On the first it leaves nothing, so the next may have the connection.
                    client.query("SELECT g(5)");
                    leave(client);
                    let mut next = Client::login(proxy.address(), name);
                    let left = next.query("SELECT current_setting('my.left', true)");
                    assert_eq!(left[1].columns(), [None], "{name}");
                    leave(next);
                } else {
                    leave(client);
                }
            }
        }
        // Clients that stay, and read at once.
        let login = |name: &str| Client::login(proxy.address(), name);
        let mut all: Vec<_> = (0..12).map(|at| login(["one", "two"][at % 2])).collect();
        for round in 0..60 {
            let text = |at: usize| texts(1 + (at * 17 + round * 101) % 500)[round % 6].clone();
            for (at, client) in all.iter_mut().enumerate() {
                client.send(&frames::query(&text(at)));
            }
            for (at, client) in all.iter_mut().enumerate() {
                let expected = direct[at % 2].query(&text(at));
                assert_eq!(client.until_ready(), expected, "{at}: {}", text(at));
            }
        }
        let summary = proxy.summary();
        assert!(summary.count(Counter::Woken) > 20, "{summary}");
        assert!(summary.count(Counter::Converted) > 300, "{summary}");
        let travelled = summary.count(Counter::ReadsShared);
        assert_eq!(travelled > 0, shared == "on", "{summary}");
    }
}

#[test]
fn one_database_is_the_same_by_whatever_name() {
    let server = Server::start(ONE);
    let upstream = format!("upstream = '{}'", server.address());
    let real = format!("{upstream}\ndbname = 'postgres'");
    let tables = tables(&[("postgres", &upstream), ("alias", &real), ("*", &upstream)]);
    let changes = [("catalog_watch_ms", "1000"), ("workers", "1")];
    let proxy = Proxy::with_tables(&tables, &changes);
    let mut all = ["postgres", "alias"].map(|name| Client::login(proxy.address(), name));
    let text = |id: usize| texts(id)[0].clone();
    assert_eq!(all[0].value(&text(1)), "10");
    all[0].run("ALTER TABLE t ALTER v TYPE text");
    assert_eq!(all[1].value(&text(1)), "10");
    all[1].run("ALTER TABLE t ALTER v TYPE int USING v::int");
    for round in 0..20 {
        all[0].run(&format!("UPDATE t SET v = {round} WHERE id = 3"));
        assert_eq!(all[1].value(&text(3)), round.to_string());
    }
    let mut other = Client::login(proxy.address(), "template1");
    assert_eq!(other.value("SELECT current_database()"), "template1");
    // What the server does not know is the server's to say.
    let mut client = Client::connect(proxy.address());
    client.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "no"),
    ]));
    let said = client.rest();
    assert_eq!(said.last().unwrap().sqlstate(), "3D000");
}

fn enter(address: &str, user: &str, database: &str, password: &str) -> Attempt {
    let parameters = [("user", user), ("database", database)];
    login_as(Client::connect(address), &parameters, password)
}

const ROLES: &str = "SET password_encryption = 'scram-sha-256';\
    CREATE ROLE visitor LOGIN PASSWORD 'right';\
    CREATE ROLE shared LOGIN PASSWORD 'common'";

#[test]
fn a_database_that_no_table_is_for_does_not_exist() {
    let server = asking("scram-sha-256", ROLES);
    let upstream = format!("upstream = '{}'", server.host_port());
    let tables = tables(&[("postgres", &upstream)]);
    let relayed = Proxy::with_tables(&tables, &[]);
    let mut client = Client::connect(relayed.address());
    client.send(&frames::startup(&[
        ("user", "visitor"),
        ("database", "none"),
    ]));
    let said = client.rest();
    assert_eq!(tags(&said), "E");
    assert_eq!(said[0].sqlstate(), "3D000");
    assert_eq!(said[0].field(b'S').unwrap(), "FATAL");
    enter(relayed.address(), "visitor", "postgres", "right").entered();

    for (kind, password) in [("scram-sha-256", "right"), ("md5", "right"), ("trust", "")] {
        let users = Users::new(&[("visitor", "right"), ("other", "else")]);
        let changes = [("auth_type", kind), ("auth_file", users.path())];
        let proxy = Proxy::with_tables(&tables, &changes);
        let ours = enter(proxy.address(), "visitor", "none", password);
        let message = "database \"none\" does not exist".to_owned();
        assert_eq!(ours.refusal(), ("3D000".to_owned(), message), "{kind}");
        if kind == "scram-sha-256" {
            let theirs = enter(&server.host_port(), "visitor", "none", password);
            assert_eq!(ours.order(), theirs.order());
            assert_eq!(ours.refusal(), theirs.refusal());
        }
        // Who has not come in does not learn which there are.
        if kind != "trust" {
            let tried = |database| enter(proxy.address(), "visitor", database, "wrong");
            let [there, not] = ["postgres", "none"].map(tried);
            assert_eq!(there.order(), not.order(), "{kind}");
            assert_eq!(there.refusal(), not.refusal(), "{kind}");
            assert_eq!(there.refusal().0, "28P01", "{kind}");
        }
        enter(proxy.address(), "visitor", "postgres", password).entered();
    }
}

#[test]
fn a_table_says_as_whom_its_clients_log_in() {
    let server = asking("scram-sha-256", ROLES);
    let upstream = format!("upstream = '{}'", server.host_port());
    let forced = format!("{upstream}\ndbname = 'postgres'\nuser = 'shared'");
    let tables = tables(&[("postgres", &upstream), ("app", &forced), ("me", &forced)]);
    let users = Users::new(&[("visitor", "right"), ("me", "mine"), ("shared", "common")]);
    let changes = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("catalog_watch_ms", "200"),
    ];
    let proxy = Proxy::with_tables(&tables, &changes);
    let who = |mut client: Client| {
        let who = client.value("SELECT session_user || ' ' || current_database()");
        leave(client);
        who
    };
    let started = Instant::now();
    while woken(&proxy) < 5 {
        let attempt = enter(proxy.address(), "visitor", "app", "right");
        assert_eq!(who(attempt.entered()), "shared postgres");
        let attempt = enter(proxy.address(), "me", "app", "mine");
        assert_eq!(who(attempt.entered()), "shared postgres");
        // Whose connection could be had is told the same.
        let refusal = enter(proxy.address(), "visitor", "app", "mine").refusal();
        assert_eq!(refusal.0, "28P01");
        let refusal = enter(proxy.address(), "visitor", "app", "common").refusal();
        assert_eq!(refusal.0, "28P01");
        assert!(started.elapsed() < Duration::from_secs(30), "not warm");
    }
    let attempt = enter(proxy.address(), "visitor", "postgres", "right");
    assert_eq!(who(attempt.entered()), "visitor postgres");
    // The database is the client's user's name, and not the other's.
    let parameters = [("user", "me")];
    let attempt = login_as(Client::connect(proxy.address()), &parameters, "mine");
    assert_eq!(who(attempt.entered()), "shared postgres");
    // A new password in the file is what the next login is by.
    let mut admin = Client::login(&server.host_port(), "postgres");
    admin.run("ALTER ROLE shared PASSWORD 'new'");
    let started = Instant::now();
    loop {
        let attempt = enter(proxy.address(), "visitor", "app", "right");
        match attempt.client {
            Some(client) => leave(client),
            None => break,
        }
        assert!(started.elapsed() < Duration::from_millis(1_500), "believed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One user has another password on each server, and none of them is in the file.
#[test]
fn a_table_says_by_what_its_clients_log_in() {
    let role = |password| {
        format!(
            "SET password_encryption = 'scram-sha-256';\
             CREATE ROLE shared LOGIN PASSWORD '{password}'"
        )
    };
    let servers = ["one", "two"].map(|password| asking("scram-sha-256", &role(password)));
    let table = |server: usize, password: &str| {
        let upstream = servers[server].host_port();
        format!(
            "upstream = '{upstream}'\ndbname = 'postgres'\nuser = 'shared'\n\
             password = '{password}'"
        )
    };
    let all = [table(0, "one"), table(1, "two"), table(1, "one")];
    let names = ["a", "b", "wrong"];
    let all: Vec<_> = names
        .into_iter()
        .zip(all.iter().map(String::as_str))
        .collect();
    let users = Users::new(&[("visitor", "right"), ("shared", "neither")]);
    let changes = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("catalog_watch_ms", "1000"),
    ];
    let proxy = Proxy::with_tables(&tables(&all), &changes);
    let enters = |name| enter(proxy.address(), "visitor", name, "right");
    let started = Instant::now();
    // Warm ones are of one table, too.
    while woken(&proxy) < 4 {
        for (name, port) in ["a", "b"].into_iter().zip(&servers) {
            let mut client = enters(name).entered();
            let text = "SELECT session_user || ' ' || current_setting('port')";
            let port = port.host_port();
            let port = port.rsplit(':').next().unwrap();
            assert_eq!(client.value(text), format!("shared {port}"));
            leave(client);
        }
        assert!(started.elapsed() < Duration::from_secs(30), "not warm");
    }
    assert_eq!(enters("wrong").refusal().0, "28P01");
}

#[test]
fn who_logs_in_for_others_needs_what_can_be_shown() {
    let users = Users::new(&[(
        "shared",
        "SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    )]);
    let text = format!(
        "auth_type = 'md5'\nauth_file = '{}'\n[databases.a]\nupstream = '/s'\nuser = 'shared'",
        users.path()
    );
    let config = pgautoprep::config::Config::from_text(&text).unwrap();
    let error = pgautoprep::net::check(&config).unwrap_err();
    let expected = "auth_file has a SCRAM secret for the user shared of [databases]";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn a_cancel_request_goes_to_the_server_of_its_client() {
    let servers = [ONE, TWO].map(Server::start);
    let upstream = |at: usize| {
        format!("upstream = '{}'\ndbname = 'postgres'", {
            let server: &Server = &servers[at];
            server.address()
        })
    };
    let tables = tables(&[("one", &upstream(0)), ("two", &upstream(1))]);
    let proxy = Proxy::with_tables(&tables, &[]);
    for name in ["one", "two", "one"] {
        let mut client = Client::login(proxy.address(), name);
        client.send(&frames::query("SELECT pg_sleep(30)"));
        std::thread::sleep(Duration::from_millis(50));
        let mut request = Client::connect(proxy.address());
        request.send(&frames::cancel(client.key.0, &client.key.1));
        assert_eq!(request.rest(), []);
        let answer = client.until_ready();
        let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
        assert_eq!(error.sqlstate(), "57014");
    }
}

/// The port of the server that a new session leads to.
fn port(proxy: &Proxy, database: &str) -> Result<String, (String, String)> {
    let mut client = Client::connect(proxy.address());
    let parameters = [("user", "postgres"), ("database", database)];
    client.send(&frames::startup(&parameters));
    let said = client.until_ready();
    if let Some(error) = said.iter().find(|frame| frame.tag == b'E') {
        return Err((error.sqlstate(), error.field(b'M').unwrap()));
    }
    let port = client.value("SELECT current_setting('port')");
    leave(client);
    Ok(port)
}

/// The ports of the servers that a few sessions lead to.
fn ports(proxy: &Proxy, database: &str) -> String {
    let mut found: Vec<_> = (0..40).map(|_| port(proxy, database).unwrap()).collect();
    found.sort();
    found.dedup();
    found.join(" ")
}

/// A primary and a standby that have nothing else in common, and a proxy that leads to both, by a
/// database for each choice and `random`.
struct Pair {
    primary: Server,
    standby: Server,
    proxy: Proxy,
    first: String,
    second: String,
}

impl Pair {
    fn new() -> Self {
        let primary = Server::start(ONE);
        let mut standby = Server::start(TWO);
        standby.demote();
        let both = format!(
            "upstream = ['{}', '{}']\ndbname = 'postgres'",
            primary.address(),
            standby.address()
        );
        let mut text = format!("[databases.random]\n{both}\nload_balance_hosts = 'random'\n");
        for attrs in [
            "any",
            "read-write",
            "read-only",
            "primary",
            "standby",
            "prefer-standby",
        ] {
            text += &format!("[databases.{attrs}]\n{both}\ntarget_session_attrs = '{attrs}'\n");
        }
        let users = Users::new(&[("postgres", "")]);
        let changes = [
            ("auth_type", "trust"),
            ("auth_file", users.path()),
            ("catalog_watch_ms", "200"),
        ];
        let port = |server: &Server| server.scratch().port().to_string();
        Self {
            proxy: Proxy::with_tables(&text, &changes),
            first: port(&primary),
            second: port(&standby),
            primary,
            standby,
        }
    }

    /// A client of this database sees what a client of the second server does.
    fn is_second(&self, database: &str) {
        let mut client = Client::login(self.proxy.address(), database);
        let mut direct = Client::login(&self.standby.address(), "postgres");
        for id in 1..20 {
            for text in texts(id) {
                let expected = direct.query(&text);
                assert_eq!(client.query(&text), expected, "{database} {text}");
            }
        }
    }
}

/// Who has no server connection waits for one of the server that its session was of only as long as
/// new sessions go there.
#[test]
fn who_has_no_connection_does_not_wait_for_a_server_that_another_has_replaced() {
    let (mut first, second) = (Server::start(ONE), Server::start(ONE));
    let upstream = format!(
        "upstream = ['{}', '{}']\ndbname = 'postgres'\npool_mode = 'auto'\npool_size = 1",
        first.address(),
        second.address()
    );
    let users = Users::new(&[("postgres", "")]);
    let changes = [
        ("auth_type", "trust"),
        ("auth_file", users.path()),
        ("catalog_watch_ms", "200"),
        ("query_wait_timeout_s", "60"),
    ];
    let proxy = Proxy::with_tables(&tables(&[("db", &upstream)]), &changes);
    let port = "SELECT current_setting('port')";
    let mut clients: Vec<_> = (0..4)
        .map(|_| Client::login(proxy.address(), "db"))
        .collect();
    let before = clients[0].value(port);
    clients
        .iter_mut()
        .for_each(|it| assert_eq!(it.value(port), before));
    first.stop();
    let mut late = Client::login(proxy.address(), "db");
    assert_ne!(late.value(port), before);
    let started = Instant::now();
    clients
        .iter_mut()
        .for_each(|it| it.send(&frames::query(port)));
    for client in &mut clients {
        let told = client.rest();
        let told = told.iter().find(|frame| frame.tag == b'E').unwrap();
        assert!(["57P01", "08006"].contains(&&*told.sqlstate()), "{told:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10), "they waited");
    assert_ne!(late.value(port), before);
}

#[test]
fn new_sessions_find_the_server_that_fits() {
    let mut pair = Pair::new();
    let (first, second) = (pair.first.clone(), pair.second.clone());
    for (name, expected) in [
        ("any", &first),
        ("read-write", &first),
        ("read-only", &second),
        ("primary", &first),
        ("standby", &second),
        ("prefer-standby", &second),
    ] {
        assert_eq!(ports(&pair.proxy, name), *expected, "{name}");
    }
    let random = ports(&pair.proxy, "random");
    assert!(
        random.contains(&first) && random.contains(&second),
        "{random}"
    );
    let summary = pair.proxy.summary();
    assert!(summary.count(Counter::Woken) > 0, "{summary}");

    // The primary goes: its sessions end as they would directly, and there is none for now.
    let mut session = Client::login(pair.proxy.address(), "primary");
    assert_eq!(session.value("SELECT v FROM t WHERE id = 3"), "30");
    pair.primary.stop();
    let said = session.rest();
    assert_eq!(said.last().unwrap().sqlstate(), "57P01", "{said:?}");
    for (name, why) in [
        ("read-write", "session is read-only"),
        ("primary", "server is in hot standby mode"),
    ] {
        let message = format!("could not connect to the server: {why}");
        let refusal = ("08006".to_owned(), message);
        assert_eq!(port(&pair.proxy, name), Err(refusal));
    }
    assert_eq!(port(&pair.proxy, "any").as_ref(), Ok(&second));
    assert_eq!(port(&pair.proxy, "prefer-standby").as_ref(), Ok(&second));

    // The standby becomes the primary. Nothing that was known of the other is taken for its own.
    let mut before = Client::login(pair.proxy.address(), "standby");
    assert_eq!(before.value("SELECT v FROM t WHERE id = 3"), "30.0");
    pair.standby.promote();
    assert_eq!(before.value("SELECT v FROM t WHERE id = 4"), "40.0");
    for name in ["any", "read-write", "primary", "random", "prefer-standby"] {
        assert_eq!(ports(&pair.proxy, name), second, "{name}");
        pair.is_second(name);
    }
    let (state, message) = await_refusal(&pair.proxy, "standby");
    assert_eq!(state, "08006");
    let why = "server is not in hot standby mode";
    assert!(message.ends_with(why), "{message}");
}

#[test]
fn a_server_that_has_become_a_standby_is_one() {
    let mut pair = Pair::new();
    for name in ["any", "read-write", "primary", "standby"] {
        ports(&pair.proxy, name);
    }
    pair.primary.demote();
    pair.standby.promote();
    for (name, expected) in [
        ("read-write", &pair.second),
        ("primary", &pair.second),
        ("standby", &pair.first),
        ("prefer-standby", &pair.first),
        ("any", &pair.first),
    ] {
        await_port(&pair.proxy, name, expected);
        assert_eq!(ports(&pair.proxy, name), *expected, "{name}");
    }
}

/// Sessions are refused soon.
fn await_refusal(proxy: &Proxy, database: &str) -> (String, String) {
    let started = Instant::now();
    loop {
        match port(proxy, database) {
            Err(refusal) => return refusal,
            Ok(_) => assert!(started.elapsed() < Duration::from_secs(3), "{database}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sessions lead there soon.
fn await_port(proxy: &Proxy, database: &str, expected: &str) {
    let started = Instant::now();
    while port(proxy, database).as_deref() != Ok(expected) {
        assert!(started.elapsed() < Duration::from_secs(3), "{database}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_starts_again_at_its_address_is_another() {
    let mut server = Server::start(ONE);
    let upstream = format!("upstream = '{}'\ndbname = 'postgres'", server.address());
    let changes = [
        ("shared_reads", "on"),
        ("catalog_watch_ms", "1000"),
        ("workers", "1"),
    ];
    let proxy = Proxy::with_tables(&tables(&[("app", &upstream)]), &changes);
    for round in 0..3 {
        let mut client = Client::login(proxy.address(), "app");
        let mut direct = Client::login(&server.address(), "postgres");
        for id in 1..20 {
            for text in texts(id) {
                assert_eq!(client.query(&text), direct.query(&text), "{round} {text}");
            }
        }
        leave(client);
        // While nobody can see it, everything becomes something else.
        let change = match round % 2 {
            0 => {
                "ALTER TABLE t ALTER v TYPE text; DROP FUNCTION public.f(int); \
                 CREATE FUNCTION public.f(int) RETURNS text LANGUAGE sql AS 'SELECT ''f'' || $1'; \
                 ALTER DATABASE postgres SET search_path = public; \
                 INSERT INTO public.u VALUES (3, 'w') ON CONFLICT DO NOTHING"
            }
            _ => {
                "ALTER TABLE t ALTER v TYPE int USING v::int; DROP FUNCTION public.f(int); \
                 CREATE FUNCTION public.f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'; \
                 ALTER DATABASE postgres SET search_path = s, public"
            }
        };
        direct.run(change);
        server.stop();
        server.start_again();
    }
}

#[test]
fn each_database_asks_about_its_users_where_its_table_says() {
    const SECRETS: &str = "CREATE ROLE keeper LOGIN; CREATE ROLE other LOGIN; \
        CREATE ROLE visitor LOGIN; CREATE DATABASE elsewhere; \
        CREATE TABLE secrets (name text, secret text); \
        INSERT INTO secrets VALUES ('visitor', 'one'); \
        GRANT SELECT ON secrets TO keeper";
    let server = Server::start(SECRETS);
    Client::login(&server.address(), "elsewhere").run(
        "CREATE TABLE secrets (name text, secret text); \
         INSERT INTO secrets VALUES ('visitor', 'two'); GRANT SELECT ON secrets TO other",
    );
    let users = Users::new(&[("listed", "three")]);
    let query = "SELECT name, secret FROM public.secrets WHERE name = $1";
    let upstream = format!("upstream = '{}'", server.address());
    let tables = tables(&[
        (
            "one",
            &format!("{upstream}\ndbname = 'postgres'\nauth_user = 'keeper'"),
        ),
        (
            "two",
            &format!(
                "{upstream}\ndbname = 'postgres'\nauth_user = 'other'\n\
                      auth_dbname = 'elsewhere'"
            ),
        ),
        // Its own query, which finds nobody.
        (
            "none",
            &format!(
                "{upstream}\ndbname = 'postgres'\nauth_user = 'keeper'\n\
                 auth_query = '{query} AND false'"
            ),
        ),
        // Nobody asks for it.
        ("file", &format!("{upstream}\ndbname = 'postgres'")),
        ("elsewhere", &upstream),
        ("postgres", &upstream),
    ]);
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("auth_query", query),
    ];
    let proxy = Proxy::with_tables(&tables, &settings);
    let login = |database, password| {
        let who = [("user", "visitor"), ("database", database)];
        login_as(Client::connect(proxy.address()), &who, password)
    };
    // Twice, so that what was found once and the connections that are left are there, too.
    for _ in 0..2 {
        for (database, good, wrong) in [("one", "one", "two"), ("two", "two", "one")] {
            let mut client = login(database, good).entered();
            assert_eq!(client.value("SELECT current_user"), "visitor");
            leave(client);
            assert_eq!(login(database, wrong).refusal().0, "28P01", "{database}");
        }
        for database in ["none", "file"] {
            for password in ["one", "two"] {
                assert_eq!(login(database, password).refusal().0, "28P01", "{database}");
            }
        }
    }
}
