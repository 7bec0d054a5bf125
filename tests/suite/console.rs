//! The console: who comes in, what is shown, what is done, and that nobody there can put the proxy
//! out of order.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame};
use crate::harness::login::{Users, login_as};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long anything at the console may take.
const SOON: Duration = Duration::from_secs(60);

/// A directory with a place for a socket to listen on.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    pub(crate) path: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let path = path.to_str().unwrap().to_owned();
        Self { directory, path }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Settings of a proxy that listens here, with these users.
    pub(crate) fn settings<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = [
            ("listen", self.path.as_str()),
            ("admin_users", "boss"),
            ("stats_users", "guest"),
        ];
        [&own, more].concat()
    }

    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::with(&server::address(), &self.settings(&[]))
    }

    pub(crate) fn enter(&self, user: &str) -> Client {
        enter(&self.path, user)
    }
}

pub(crate) fn enter(address: &str, user: &str) -> Client {
    Client::login_with(address, &[("user", user), ("database", "pgautoprep")])
}

/// The rows of an answer, each value after the name of its column.
pub(crate) fn rows(answer: &[Frame]) -> Vec<Vec<(String, String)>> {
    let head = answer.iter().find(|frame| frame.tag == b'T').unwrap();
    let mut names = Vec::new();
    let mut rest = &head.body[2..];
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        names.push(String::from_utf8(rest[..end].to_vec()).unwrap());
        rest = &rest[end + 19..];
    }
    let all = answer.iter().filter(|frame| frame.tag == b'D');
    all.map(|row| {
        let values = row.columns().into_iter().map(Option::unwrap_or_default);
        names.iter().cloned().zip(values).collect()
    })
    .collect()
}

/// The rows of a table in which this column has this value.
pub(crate) fn found(
    console: &mut Client,
    table: &str,
    column: &str,
    value: &str,
) -> Vec<Vec<(String, String)>> {
    let answer = console.query(&format!("SHOW {table}"));
    let all = rows(&answer).into_iter();
    all.filter(|row| {
        row.iter()
            .any(|(name, cell)| name == column && cell == value)
    })
    .collect()
}

pub(crate) fn cell<'r>(row: &'r [(String, String)], column: &str) -> &'r str {
    let found = row.iter().find(|(name, _)| name == column);
    found.map(|(_, value)| value.as_str()).unwrap()
}

/// What a query is refused with.
pub(crate) fn refusal(console: &mut Client, text: &str) -> String {
    let answer = console.query(text);
    assert_eq!(frames::tags(&answer), "EZ", "{text}: {answer:?}");
    answer[0].sqlstate()
}

fn refused_login(address: &str, user: &str, database: &str) -> (String, String) {
    let mut client = Client::connect(address);
    client.send(&frames::startup(&[("user", user), ("database", database)]));
    let said = client.rest();
    let error = said.last().unwrap();
    assert_eq!(error.tag, b'E', "{said:?}");
    (error.sqlstate(), error.field(b'M').unwrap())
}

#[test]
fn without_users_the_servers_own_database_of_that_name_is_meant() {
    let proxy = Proxy::start(&server::address());
    for name in ["pgautoprep", "pgbouncer"] {
        let (sqlstate, message) = refused_login(proxy.address(), "postgres", name);
        assert_eq!(sqlstate, "3D000", "{message}");
    }
}

#[test]
fn whoever_runs_as_the_proxy_comes_in_by_a_unix_socket() {
    let place = Place::new();
    let proxy = place.proxy();
    for (user, database) in [("boss", "pgautoprep"), ("guest", "pgbouncer")] {
        let parameters = [
            ("user", user),
            ("database", database),
            ("extra_float_digits", "2"),
            ("whatever", "it is"),
        ];
        let mut console = Client::login_with(&place.path, &parameters);
        assert!(console.value("SHOW VERSION").starts_with("pgautoprep "));
        assert_eq!(console.parameters[0].0, "server_version");
        let extended = [
            frames::parse("", "SHOW LISTS", &[]),
            frames::execution("", &[]),
        ];
        console.send(&extended.concat());
        let answer = console.until_ready();
        assert!(frames::tags(&answer).starts_with("12TDDD"), "{answer:?}");
        console.send(&frames::frame(b'X', b""));
        assert!(console.rest().is_empty());
    }
    let (sqlstate, message) = refused_login(&place.path, "postgres", "pgautoprep");
    assert_eq!(sqlstate, "42501");
    assert!(message.contains("admin_users"), "{message}");
    // Others are the server's.
    assert_eq!(
        Client::login(&place.path, "postgres").value("SELECT 1"),
        "1"
    );
    proxy.await_connections(0);
}

#[test]
fn by_other_ways_a_password_is_asked_for_if_there_is_one() {
    let settings = [("admin_users", "boss"), ("listen", "127.0.0.1:0")];
    let proxy = Proxy::with(&server::address(), &settings);
    let (sqlstate, message) = refused_login(proxy.address(), "boss", "pgautoprep");
    assert_eq!(sqlstate, "28000");
    assert!(message.contains("auth_file"), "{message}");
    let users = Users::new(&[("boss", "right"), ("other", "right")]);
    let with_file = [("auth_file", users.path())];
    let proxy = Proxy::with(&server::address(), &[&settings[..], &with_file].concat());
    let attempt = |user, password| {
        let parameters = [("user", user), ("database", "pgautoprep")];
        let client = Client::connect(proxy.address());
        login_as(client, &parameters, password)
    };
    assert!(
        attempt("boss", "right")
            .entered()
            .value("SHOW VERSION")
            .starts_with("pga")
    );
    assert_eq!(attempt("boss", "wrong").refusal().0, "28P01");
    assert_eq!(attempt("nobody", "right").refusal().0, "28P01");
    assert_eq!(attempt("other", "right").refusal().0, "42501");
    // All other logins are still left to the server.
    assert_eq!(
        Client::login(proxy.address(), "postgres").value("SELECT 1"),
        "1"
    );
    for kind in ["scram-sha-256", "md5", "plain"] {
        let with_kind = [with_file[0], ("auth_type", kind)];
        let proxy = Proxy::with(&server::address(), &[&settings[..], &with_kind].concat());
        let attempt = |password| {
            let parameters = [("user", "boss"), ("database", "pgbouncer")];
            let client = Client::connect(proxy.address());
            login_as(client, &parameters, password)
        };
        let mut console = attempt("right").entered();
        assert_eq!(console.value("SHOW client_encoding"), "UTF8", "{kind}");
        assert_eq!(attempt("wrong").refusal().0, "28P01", "{kind}");
    }
}

/// The one shape that was run often is shown, in the table and by itself.
fn shows_the_shape(console: &mut Client) {
    let text = "SELECT relname FROM pg_class WHERE relname = ?";
    let shape = found(console, "SHAPES", "text", text).remove(0);
    assert_eq!(cell(&shape, "state"), "prepared");
    let executions: u64 = cell(&shape, "converted").parse().unwrap();
    assert!((30..45).contains(&executions), "{shape:?}");
    let number = cell(&shape, "shape").to_owned();
    let whole = console.query(&format!("SHOW SHAPE {number}"));
    let whole = rows(&whole);
    let line = |key: &str| {
        let row = whole.iter().find(|row| cell(row, "key") == key);
        cell(row.unwrap(), "value").to_owned()
    };
    assert_eq!(
        (line("state"), line("text")),
        ("prepared".to_owned(), text.to_owned())
    );
}

/// One more, who is not let in yet.
fn waits_to_be_let_in(place: &Place, database: &str) -> std::thread::JoinHandle<()> {
    let (path, name) = (place.path.clone(), database.to_owned());
    std::thread::spawn(move || {
        let mut client = Client::login_with(&path, &[("user", "postgres"), ("database", &name)]);
        client.run("SELECT 3");
    })
}

#[test]
fn how_long_clients_take_and_wait_is_counted() {
    let place = Place::new();
    let pool = [
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
        ("prepare_threshold", "1"),
    ];
    let proxy = Proxy::with(&server::address(), &place.settings(&pool));
    let database = server::database("CREATE TABLE t AS SELECT 5 AS id");
    let login = || {
        let parameters = [("user", "postgres"), ("database", &*database)];
        Client::login_with(&place.path, &parameters)
    };
    let (mut first, mut second) = (login(), login());
    for id in 0..5 {
        first.run(&format!("SELECT id FROM t WHERE id = {id}"));
    }
    first.run("BEGIN");
    first.run("SELECT 1");
    second.send(&frames::query("SELECT 2"));
    std::thread::sleep(Duration::from_millis(60));
    let mut console = place.enter("guest");
    let waiting = found(&mut console, "CLIENTS", "state", "waiting").remove(0);
    let pool = found(&mut console, "POOLS", "cl_waiting", "1").remove(0);
    let micros = |row, columns: [&str; 2]| {
        let [seconds, micros] = columns.map(|it| cell(row, it).parse::<u64>().unwrap());
        seconds * 1_000_000 + micros
    };
    let waits = micros(&waiting, ["wait", "wait_us"]);
    assert!(waits >= 50_000, "{waiting:?}");
    let longest = micros(&pool, ["maxwait", "maxwait_us"]);
    assert!(longest >= waits, "{pool:?}");
    let third = waits_to_be_let_in(&place, &database);
    found(&mut console, "POOLS", "cl_waiting", "2");
    first.run("COMMIT");
    third.join().unwrap();
    second.until_ready();
    second.send(&frames::sync());
    second.until_ready();
    let batch = [
        frames::parse("", "SELECT 3", &[]),
        frames::bind("", "", &[]),
        frames::sync(),
    ];
    second.send(&batch.concat());
    second.until_ready();
    // A transaction in the extended protocol is one, too.
    for text in ["BEGIN", "COMMIT"] {
        let batch = [
            frames::parse("", text, &[]),
            frames::bind("", "", &[]),
            frames::execute("", 0),
            frames::sync(),
        ];
        second.send(&batch.concat());
        second.until_ready();
        std::thread::sleep(Duration::from_millis(1_500));
    }
    let stats = found(&mut console, "STATS", "database", &database).remove(0);
    let figure = |name: &str| cell(&stats, name).parse::<u64>().unwrap();
    assert!(figure("total_wait_time") >= 60_000, "{stats:?}");
    let (queries, all) = (figure("total_query_time"), figure("total_xact_time"));
    assert!(all >= queries + 1_550_000, "{stats:?}");
    // Eight of the first, two of those that waited, and two by the extended protocol.
    assert_eq!(figure("total_query_count"), 12, "{stats:?}");
    assert_eq!(figure("total_xact_count"), 9, "{stats:?}");
    assert_eq!(proxy.summary().count(Counter::Executes), 2);
    assert_eq!(figure("total_client_parse_count"), 3);
    assert!(figure("total_server_parse_count") > 0, "{stats:?}");
    let converted = proxy.summary().count(Counter::Converted);
    assert_eq!(figure("total_bind_count"), converted + 3);
}

#[test]
fn what_clients_do_is_shown() {
    let place = Place::new();
    let _proxy = place.proxy();
    let parameters = [
        ("user", "postgres"),
        ("database", "postgres"),
        ("application_name", "app"),
    ];
    let mut client = Client::login_with(&place.path, &parameters);
    for id in 0..40 {
        client.run(&format!(
            "SELECT relname FROM pg_class WHERE relname = 'none{id}'"
        ));
    }
    let mut console = place.enter("guest");
    let stats = found(&mut console, "STATS", "database", "postgres").remove(0);
    assert_eq!(cell(&stats, "total_query_count"), "40");
    assert_eq!(cell(&stats, "total_xact_count"), "40");
    assert_ne!(cell(&stats, "total_query_time"), "0");
    assert_eq!(cell(&stats, "total_client_login_count"), "1");
    let converted: u64 = cell(&stats, "total_converted_count").parse().unwrap();
    assert!((30..=40).contains(&converted), "{stats:?}");
    assert!(cell(&stats, "total_received").parse::<u64>().unwrap() > 40 * 50);
    let pool = found(&mut console, "POOLS", "database", "postgres").remove(0);
    let counts = ["cl_active", "sv_active", "sv_idle", "user"].map(|name| cell(&pool, name));
    assert_eq!(counts, ["1", "1", "0", "postgres"]);
    let shown = found(&mut console, "CLIENTS", "application_name", "app").remove(0);
    let columns = ["type", "state", "addr", "queries", "waits_for"];
    assert_eq!(
        columns.map(|name| cell(&shown, name)),
        ["C", "active", "unix", "40", "client"]
    );
    let server = found(&mut console, "SERVERS", "type", "S").remove(0);
    assert_eq!(cell(&server, "link"), cell(&shown, "ptr"));
    assert_eq!(cell(&server, "ptr"), cell(&shown, "link"));
    let pid = client.value("SELECT pg_backend_pid()");
    assert_eq!(cell(&server, "remote_pid"), pid);
    assert_ne!(cell(&server, "prepared_statements"), "0");
    shows_the_shape(&mut console);
    client.queries(&["BEGIN", "COMMIT"]);
    let reason = found(&mut console, "REASONS", "reason", "not_preparable").remove(0);
    assert_eq!(
        (cell(&reason, "kind"), cell(&reason, "count")),
        ("passed", "2")
    );
    let noted = found(&mut console, "SHAPES", "text", "BEGIN").remove(0);
    assert_eq!(
        (cell(&noted, "state"), cell(&noted, "shape")),
        ("passed", "")
    );
    // What it did is not forgotten when it has left.
    client.send(&frames::frame(b'X', b""));
    assert!(client.rest().is_empty());
    let started = Instant::now();
    loop {
        let stats = found(&mut console, "STATS", "database", "postgres").remove(0);
        assert_eq!(cell(&stats, "total_query_count"), "43");
        assert_eq!(cell(&stats, "total_xact_count"), "42", "one of two");
        let pool = found(&mut console, "POOLS", "database", "postgres");
        if pool.iter().all(|pool| cell(pool, "cl_active") == "0") {
            break;
        }
        assert!(started.elapsed() < SOON, "{pool:?}");
    }
    let databases = found(&mut console, "DATABASES", "name", "postgres");
    assert_eq!(cell(&databases[0], "current_client_connections"), "0");
}

#[test]
fn when_a_client_last_sent_something_is_shown() {
    let place = Place::new();
    let _proxy = Proxy::with(&server::address(), &place.settings(&[]));
    let mut client = Client::login(&place.path, &server::database(""));
    client.run("SELECT 1");
    let mut console = place.enter("boss");
    let mut times = |table: &str| {
        let rows = found(&mut console, table, "state", "active");
        let shown = |row: &Vec<(String, String)>| {
            ["connect_time", "request_time"].map(|it| cell(row, it).to_owned())
        };
        let rows = rows
            .iter()
            .filter(|row| cell(row, "database") != "pgautoprep");
        rows.map(shown).collect::<Vec<_>>()
    };
    let before = times("CLIENTS");
    // They are shown in whole seconds.
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!(times("CLIENTS"), before);
    client.run("SELECT 2");
    for table in ["CLIENTS", "SERVERS"] {
        let [connected, requested] = times(table).remove(0);
        assert!(connected < requested, "{table}: {connected}, {requested}");
    }
}

#[test]
fn a_client_is_ended_by_its_number() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut client = Client::login(&place.path, "postgres");
    client.run("SELECT 1");
    let mut console = place.enter("boss");
    assert_eq!(refusal(&mut console, "KILL_CLIENT 4711"), "42704");
    let shown = found(&mut console, "CLIENTS", "user", "postgres").remove(0);
    let kill = format!("KILL_CLIENT {}", cell(&shown, "id"));
    assert_eq!(refusal(&mut place.enter("guest"), &kill), "42501");
    client.run("SELECT 1");
    console.run(&kill);
    let said = client.rest();
    assert_eq!(said.last().unwrap().sqlstate(), "57P01", "{said:?}");
    assert_eq!(refusal(&mut console, &kill), "42704");
    // Somebody at the console, too.
    let mut other = place.enter("guest");
    other.run("SHOW VERSION");
    let shown = found(&mut console, "CLIENTS", "user", "guest").remove(0);
    console.run(&format!("KILL_CLIENT {}", cell(&shown, "id")));
    assert_eq!(other.rest().last().unwrap().sqlstate(), "57P01");
    drop(console);
    proxy.await_connections(0);
}

/// Whether a server process is still at work on something that holds this word.
fn works_on(direct: &mut Client, word: &str) -> bool {
    let question = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND \
         query LIKE '%{word}%' AND pid <> pg_backend_pid()"
    );
    direct.value(&question) != "0"
}

#[test]
fn what_the_server_does_for_a_client_that_is_ended_is_cancelled() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut direct = Client::login(&server::address(), "postgres");
    let mut console = place.enter("boss");
    for (order, word) in [
        ("KILL_CLIENT", "ended_by_number"),
        ("KILL", "ended_by_database"),
    ] {
        let mut client = Client::login(&place.path, "postgres");
        let text = |seconds: &str| format!("SELECT pg_sleep({seconds}) AS {word}");
        // So that it is converted at last.
        (0..9).for_each(|n| client.run(&text(&format!("0.00{n}"))));
        client.send(&frames::query(&text("600")));
        let begun = Instant::now();
        while !works_on(&mut direct, word) {
            assert!(begun.elapsed() < SOON, "{order}");
        }
        let shown = found(&mut console, "CLIENTS", "user", "postgres").remove(0);
        match order {
            "KILL" => console.run("KILL postgres"),
            _ => console.run(&format!("KILL_CLIENT {}", cell(&shown, "id"))),
        }
        assert_eq!(client.rest().last().unwrap().sqlstate(), "57P01", "{order}");
        while works_on(&mut direct, word) {
            assert!(begun.elapsed() < SOON, "{order}: it runs on");
        }
        if order == "KILL" {
            console.run("RESUME postgres");
        }
    }
}

#[test]
fn who_has_a_server_connection_now_is_not_hit_when_who_had_it_is_ended() {
    let place = Place::new();
    let pool = [
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
    ];
    let _proxy = Proxy::with(&server::address(), &place.settings(&pool));
    let mut console = place.enter("boss");
    let database = server::database("CREATE TABLE t AS SELECT 5 AS id");
    let login = || {
        let parameters = [("user", "postgres"), ("database", &*database)];
        Client::login_with(&place.path, &parameters)
    };
    let mut first = login();
    for id in 0..5 {
        first.run(&format!("SELECT id FROM t WHERE id = {id}"));
    }
    let killed = found(&mut console, "CLIENTS", "database", &database).remove(0);
    let mut second = login();
    second.send(&frames::query("SELECT pg_sleep(1) AS not_hit"));
    let begun = Instant::now();
    let mut direct = Client::login(&server::address(), "postgres");
    while !works_on(&mut direct, "not_hit") {
        assert!(begun.elapsed() < SOON);
    }
    console.run(&format!("KILL_CLIENT {}", cell(&killed, "id")));
    assert_eq!(first.rest().last().unwrap().sqlstate(), "57P01");
    assert_eq!(frames::tags(&second.until_ready()), "TDCZ");
    second.run("SELECT 2");
}

#[test]
fn clients_are_ended_for_their_server_connections_if_that_is_to_be_fast() {
    let place = Place::new();
    let settings = place.settings(&[("server_fast_close", "on"), ("catalog_watch_ms", "200")]);
    let _proxy = Proxy::with(&server::address(), &settings);
    let mut console = place.enter("boss");
    let [mut idle, mut begun, mut busy] = [0; 3].map(|_| Client::login(&place.path, "postgres"));
    idle.run("SELECT 1");
    begun.run("BEGIN");
    busy.run("BEGIN");
    busy.run("SELECT relname FROM pg_class WHERE relname = 'none'");
    console.run("RECONNECT elsewhere");
    idle.run("SELECT 1");
    console.run("RECONNECT");
    let told = idle.rest();
    assert_eq!(told.last().unwrap().sqlstate(), "57P01", "{told:?}");
    for client in [&mut begun, &mut busy] {
        client.run("SELECT relname FROM pg_class WHERE relname = 'none'");
        client.run("COMMIT");
        let told = client.rest();
        assert_eq!(told.last().unwrap().sqlstate(), "57P01", "{told:?}");
    }
    console.run("WAIT_CLOSE");
    let mut next = Client::login(&place.path, "postgres");
    next.run("SELECT 1");
    console.run("SET server_fast_close = off");
    console.run("RECONNECT");
    next.run("SELECT 1");
}

#[test]
fn server_connections_are_renewed_as_they_become_free() {
    let place = Place::new();
    // Without looks at the catalog nothing is kept.
    let settings = place.settings(&[("catalog_watch_ms", "200")]);
    let _proxy = Proxy::with(&server::address(), &settings);
    let mut console = place.enter("boss");
    let mut stays = Client::login(&place.path, "postgres");
    let started = Instant::now();
    while found(&mut console, "SERVERS", "state", "idle").is_empty() {
        assert!(started.elapsed() < SOON, "nothing is kept");
        let mut leaves = Client::login(&place.path, "postgres");
        leaves.run("SELECT relname FROM pg_class WHERE relname = 'none'");
        leaves.send(&frames::frame(b'X', b""));
        assert!(leaves.rest().is_empty());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The last may be on its way there.
    std::thread::sleep(Duration::from_millis(300));
    console.run("WAIT_CLOSE");
    console.run("RECONNECT elsewhere");
    assert_eq!(found(&mut console, "SERVERS", "state", "idle").len(), 1);
    console.run("RECONNECT");
    console.run("WAIT_CLOSE elsewhere");
    let left = found(&mut console, "SERVERS", "type", "S");
    let seen = |row: &Vec<(String, String)>| {
        (
            cell(row, "state").to_owned(),
            cell(row, "close_needed").to_owned(),
        )
    };
    let left: Vec<_> = left.iter().map(seen).collect();
    assert_eq!(left, [("active".to_owned(), "1".to_owned())]);
    stays.run("SELECT 1");
    console.send(&frames::query("WAIT_CLOSE"));
    std::thread::sleep(Duration::from_millis(300));
    console.socket.set_nonblocking(true).unwrap();
    let mut none = [0; 1];
    assert!(console.socket.read(&mut none).is_err(), "it does not wait");
    console.socket.set_nonblocking(false).unwrap();
    drop(stays);
    assert_eq!(frames::tags(&console.until_ready()), "CZ");
    assert!(found(&mut console, "SERVERS", "type", "S").is_empty());
}

#[test]
fn a_full_proxy_has_room_at_the_console() {
    let place = Place::new();
    let settings = place.settings(&[("max_clients", "1")]);
    let _proxy = Proxy::with(&server::address(), &settings);
    let _only = Client::login(&place.path, "postgres");
    assert_eq!(
        refused_login(&place.path, "postgres", "postgres").0,
        "53300"
    );
    let mut console = place.enter("guest");
    let lists = rows(&console.query("SHOW LISTS"));
    let free = lists
        .iter()
        .find(|row| cell(row, "list") == "free_clients")
        .unwrap();
    assert_eq!(cell(free, "items"), "0");
    // But not for everybody.
    let others: Vec<_> = (1..56).map(|_| place.enter("guest")).collect();
    assert_eq!(refused_login(&place.path, "guest", "pgautoprep").0, "53300");
    let bosses: Vec<_> = (0..8).map(|_| place.enter("boss")).collect();
    assert_eq!(refused_login(&place.path, "boss", "pgautoprep").0, "53300");
    drop((others, bosses));
    let started = Instant::now();
    loop {
        let mut client = Client::connect(&place.path);
        client.send(&frames::startup(&[
            ("user", "guest"),
            ("database", "pgautoprep"),
        ]));
        match client.until(b'Z').last().map(|frame| frame.tag) {
            Some(b'Z') => break,
            _ => assert!(started.elapsed() < SOON, "nobody has left"),
        }
    }
}

/// The value of a setting, and whether it can be changed.
fn value(console: &mut Client, key: &str) -> (String, String) {
    let row = found(console, "CONFIG", "key", key).remove(0);
    (
        cell(&row, "value").to_owned(),
        cell(&row, "changeable").to_owned(),
    )
}

/// Single settings are changed until all is read again.
fn changes_single_settings(console: &mut Client, address: &str) {
    console.run("SET stats_users = 'a, b'");
    enter(address, "b").run("SHOW STATS");
    assert_eq!(value(console, "stats_users").0, "a, b");
    for (text, sqlstate) in [
        ("SET unix_socket_mode = '0700'", "55P02"),
        ("SET auth_type = trust", "55P02"),
        ("SET nothing = 1", "42704"),
        ("SET log_level = loud", "F0000"),
        ("SET admin_users = 'a,,b'", "F0000"),
    ] {
        assert_eq!(refusal(console, text), sqlstate, "{text}");
    }
}

#[test]
fn who_gives_orders_cannot_be_locked_out_by_one() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut boss = place.enter("boss");
    let answer = boss.query("SET admin_users = ''");
    assert_eq!(frames::tags(&answer), "EZ", "{answer:?}");
    assert_eq!(answer[0].sqlstate(), "55000");
    place.enter("boss").run("SHOW STATS");
    // Somebody else may be meant, and whoever is there can take it back.
    let answer = boss.query("SET admin_users = 'other'");
    assert_eq!(frames::tags(&answer), "NCZ", "{answer:?}");
    let told = "admin_users does not name you any more";
    assert_eq!(answer[0].field(b'M').as_deref(), Some(told));
    assert_eq!(refused_login(&place.path, "boss", "pgautoprep").0, "42501");
    let answer = boss.query("SET admin_users = 'boss, other'");
    assert_eq!(frames::tags(&answer), "CZ", "{answer:?}");
    place.enter("boss").run("SHOW STATS");
}

#[test]
fn what_was_not_read_meanwhile_is_told_when_conversion_is_switched_on_again() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut boss = place.enter("boss");
    for (text, tags) in [
        ("SET mode = convert", "CZ"),
        ("SET mode = off", "CZ"),
        ("SET mode = observe", "CZ"),
        ("SET audit = off", "CZ"),
        ("SET mode = convert", "NCZ"),
    ] {
        let answer = boss.query(text);
        assert_eq!(frames::tags(&answer), tags, "{text}: {answer:?}");
    }
}

/// What turned bad is told, where that is and what was expected, and changes nothing.
fn what_turned_bad_is_told(console: &mut Client, address: &str, config: &Path) {
    let in_file = |place: &str| format!("{}:{place}", config.display());
    for (bad, place, expected) in [
        (
            "log_level = 'loud'\n",
            in_file("2:13: log_level: "),
            "expected off, error, warn, info, debug, trace, or a filter such as \
             info,pgautoprep=debug, found \"loud\"",
        ),
        (
            "max_shapes = 'many'\n",
            in_file("2:14: max_shapes: "),
            "expected a whole number, found \"many\"",
        ),
        (
            "no_setting = 1\n",
            in_file("2:1: unknown key `no_setting`, "),
            "expected one of `listen`, `upstream`, ",
        ),
        (
            "[\n",
            in_file("2:2: "),
            "unquoted keys cannot be empty, expected letters, numbers, `-`, `_`",
        ),
        (
            "client_tls_sslmode = 'require'\n",
            "default: client_tls_key_file: ".to_owned(),
            "expected a file, because of client_tls_sslmode, found \"\"",
        ),
    ] {
        std::fs::write(config, format!("admin_users = 'other'\n{bad}")).unwrap();
        let answer = console.query("RELOAD");
        assert_eq!(frames::tags(&answer), "EZ", "{bad}: {answer:?}");
        assert_eq!(answer[0].sqlstate(), "F0000");
        let message = answer[0].field(b'M').unwrap();
        assert!(
            message.starts_with(&format!("{place}{expected}")),
            "{message}"
        );
        enter(address, "boss").run("SHOW STATS");
        assert_eq!(refused_login(address, "other", "pgautoprep").0, "42501");
    }
}

#[test]
fn the_configuration_is_read_again_or_nothing_changes() {
    let place = Place::new();
    let config = place.file("config.toml");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    write("admin_users = 'boss'\nlog_level = 'info'\nunix_socket_mode = '0770'\n");
    let settings = [
        ("listen", &*place.path),
        ("config", config.to_str().unwrap()),
    ];
    let mut process = Process::start(&server::address(), &settings);
    let mut console = enter(&process.address, "boss");
    assert_eq!(
        refused_login(&process.address, "guest", "pgautoprep").0,
        "42501"
    );
    write(
        "admin_users = 'boss'\nstats_users = 'guest'\nlog_level = 'debug'\n\
         unix_socket_mode = '0700'\n",
    );
    let answer = console.query("RELOAD");
    assert_eq!(frames::tags(&answer), "NCZ", "{answer:?}");
    assert!(
        answer[0]
            .field(b'M')
            .unwrap()
            .ends_with(" unix_socket_mode"),
        "{answer:?}"
    );
    let pair = |value: &str, changeable: &str| (value.to_owned(), changeable.to_owned());
    assert_eq!(value(&mut console, "log_level"), pair("debug", "yes"));
    assert_eq!(value(&mut console, "unix_socket_mode"), pair("0770", "no"));
    enter(&process.address, "guest").run("SHOW STATS");
    // As long as logins are left to the server, the file of users is the console's alone.
    let users = place.file("users");
    std::fs::write(&users, "\"boss\" \"x\"\n").unwrap();
    let users = users.to_str().unwrap();
    write(&format!("admin_users = 'boss'\nauth_file = '{users}'\n"));
    let answer = console.query("RELOAD");
    assert!(!format!("{answer:?}").contains("auth_file"), "{answer:?}");
    assert_eq!(value(&mut console, "auth_file").0, users);
    what_turned_bad_is_told(&mut console, &process.address, &config);
    std::fs::remove_file(&config).unwrap();
    assert_eq!(refusal(&mut console, "RELOAD"), "F0000");
    changes_single_settings(&mut console, &process.address);
    console.run("SET mode = off");
    write("admin_users = 'other'\n");
    let answer = console.query("RELOAD");
    let told = answer.iter().filter_map(|frame| frame.field(b'M'));
    let told = told.collect::<Vec<_>>().join("\n");
    for expected in [
        "admin_users does not name you",
        "only relayed until they end",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    console.run("SET stats_users = 'a, b'");
    write("admin_users = 'boss'\n");
    process.signal(rustix::process::Signal::HUP);
    let started = Instant::now();
    while !value(&mut console, "stats_users").0.is_empty() {
        assert!(started.elapsed() < SOON, "SIGHUP does nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    console.run("SHUTDOWN");
    let (status, _, log) = process.ended();
    assert!(status.success(), "{log}");
    assert!(
        log.contains("unix_socket_mode"),
        "what SIGHUP could not change is logged: {log}"
    );
}

#[test]
fn the_proxy_ends_as_it_is_told() {
    let start = |place: &Place| {
        let settings = place.settings(&[("drain_timeout_s", "60")]);
        Process::start(&server::address(), &settings)
    };
    // When all have left by themselves: those at the console see it to its end.
    let place = Place::new();
    let mut process = start(&place);
    let mut idle = Client::login(&place.path, "postgres");
    let mut console = place.enter("boss");
    console.run("SHUTDOWN WAIT_FOR_CLIENTS");
    std::thread::sleep(Duration::from_millis(200));
    idle.run("SELECT 1");
    assert_eq!(found(&mut console, "MODE", "value", "draining").len(), 1);
    drop(idle);
    assert_eq!(console.rest().last().unwrap().sqlstate(), "57P01");
    let (status, _, log) = process.ended();
    assert!(status.success(), "{log}");
    // As at a signal: idle clients go, busy ones may finish.
    let place = Place::new();
    let mut process = start(&place);
    let mut idle = Client::login(&place.path, "postgres");
    let mut busy = Client::login(&place.path, "postgres");
    busy.send(&frames::query("SELECT pg_sleep(1)"));
    let mut console = place.enter("boss");
    // Until the query has come.
    while found(&mut console, "CLIENTS", "waits_for", "server").is_empty() {}
    console.run("SHUTDOWN DRAIN");
    assert_eq!(idle.rest().last().unwrap().sqlstate(), "57P01");
    assert_eq!(frames::tags(&busy.until_ready()), "TDCZ");
    assert!(process.ended().0.success());
    // At once, also behind one of the others.
    let place = Place::new();
    let mut process = start(&place);
    let mut busy = Client::login(&place.path, "postgres");
    busy.send(&frames::query("SELECT pg_sleep(30)"));
    let mut console = place.enter("boss");
    while found(&mut console, "CLIENTS", "waits_for", "server").is_empty() {}
    console.run("SHUTDOWN WAIT_FOR_CLIENTS");
    console.run("SHUTDOWN");
    assert_eq!(busy.rest().last().unwrap().sqlstate(), "57P01");
    let (status, time, log) = process.ended();
    assert!(status.success() && time < SOON, "{log}");
}

#[test]
fn nonsense_is_refused_and_the_next_command_is_understood() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut console = place.enter("boss");
    let long = "x".repeat(1 << 20);
    for (text, sqlstate) in [
        (format!("SHOW {long}"), "54000"),
        (format!("SET log_level = '{long}'"), "54000"),
        ("SHOW STATS\0STATS".to_owned(), "08P01"),
        ("SELECT * FROM pg_class".to_owned(), "42601"),
        ("COPY t FROM STDIN".to_owned(), "42601"),
        ("SHOW SHAPE 18446744073709551616".to_owned(), "42601"),
        ("/* ".to_owned(), "42601"),
    ] {
        let shown: String = text.chars().take(40).collect();
        assert_eq!(refusal(&mut console, &text), sqlstate, "{shown}");
        assert!(console.value("SHOW VERSION").starts_with("pgautoprep "));
    }
    // A long message of the extended protocol, and others behind it.
    let all = [
        frames::parse("", &format!("SHOW {long}"), &[]),
        frames::execution("", &[]),
        frames::query("SHOW VERSION"),
    ];
    console.send(&all.concat());
    assert_eq!(frames::tags(&console.until_ready()), "EZ");
    assert_eq!(frames::tags(&console.until_ready()), "TDCZ");
    // Commands in one write, and bytes one by one.
    console.send(&frames::query("SHOW STATE").repeat(50));
    for _ in 0..50 {
        assert_eq!(frames::tags(&console.until_ready()), "TDDDCZ");
    }
    for byte in frames::query("SHOW STATE") {
        console.send(&[byte]);
    }
    assert_eq!(frames::tags(&console.until_ready()), "TDDDCZ");
    console.send(b"Q\xff\xff\xff\xff");
    assert_eq!(console.rest(), []);
    let mut console = place.enter("boss");
    console.send(b"?\0\0\0\x04");
    assert_eq!(console.rest().last().unwrap().sqlstate(), "08P01");
}

#[test]
fn who_does_not_read_keeps_nobody_waiting() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut client = Client::login(&place.path, "postgres");
    let mut deaf: Vec<_> = (0..8).map(|_| place.enter("guest")).collect();
    let commands = frames::query("SHOW CONFIG; SHOW CLIENTS; SHOW SHAPES; SHOW STATS").repeat(200);
    for console in &mut deaf {
        console.socket.set_nonblocking(true).unwrap();
        // As much as is taken.
        while console.socket.write(&commands).is_ok() {}
    }
    let started = Instant::now();
    for id in 0..200 {
        client.run(&format!(
            "SELECT relname FROM pg_class WHERE relname = 'none{id}'"
        ));
    }
    let mut console = place.enter("guest");
    for _ in 0..20 {
        console.run("SHOW CLIENTS");
    }
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    drop((client, console, deaf));
    proxy.await_connections(0);
}

/// What can be shown.
const SHOWN: [&str; 27] = [
    "ACTIVE_SOCKETS",
    "ADVICE",
    "CLIENTS",
    "CONFIG",
    "DATABASES",
    "DNS_HOSTS",
    "DNS_ZONES",
    "FDS",
    "HELP",
    "LISTS",
    "MEM",
    "MODE",
    "PEER_POOLS",
    "PEERS",
    "POOLS",
    "REASONS",
    "SERVERS",
    "SHAPE 1",
    "SHAPES",
    "SOCKETS",
    "STATE",
    "STATS",
    "STATS_AVERAGES",
    "STATS_TOTALS",
    "TOTALS",
    "USERS",
    "VERSION",
];

/// What does something.
const ORDERS: [&str; 14] = [
    "DISABLE postgres",
    "ENABLE postgres",
    "KILL postgres",
    "KILL_CLIENT 1",
    "PAUSE postgres",
    "RECONNECT",
    "RELOAD",
    "RESUME postgres",
    "SET MODE off FOR SHAPE 1",
    "SET log_level = info",
    "SHUTDOWN",
    "SHUTDOWN DRAIN",
    "SHUTDOWN WAIT_FOR_CLIENTS",
    "WAIT_CLOSE",
];

/// How the console begins what it says of a command that it does not take.
const TOLD: [(&str, &str); 12] = [
    ("42501", "permission denied"),
    ("42601", "unterminated "),
    ("42601", "expected SET key = value"),
    (
        "42601",
        "expected SET MODE off|on FOR SHAPE number [IN database]",
    ),
    ("42704", "there is nothing to show called \""),
    ("42704", "no shape has the number "),
    ("42704", "no client has the number "),
    ("3D000", "there is no database "),
    ("3D000", "no client has used a database \""),
    ("55000", ""),
    // This proxy has no log of its own.
    (
        "55P02",
        "the setting \"log_level\" can be changed only by a restart",
    ),
    ("F0000", "log_level: expected "),
];

/// Whether what was said of a command is what the console says, and about that command.
fn is_told(text: &str, sqlstate: &str, message: &str) -> bool {
    if let Some(word) = message.strip_prefix("unknown or malformed command: ") {
        return sqlstate == "42601" && text.to_lowercase().contains(&word.to_lowercase());
    }
    if let Some(usage) = message.strip_prefix("expected ") {
        let (verb, text) = (usage.split([' ', ',']).next(), text.to_uppercase());
        if sqlstate == "42601" && verb.is_some_and(|verb| text.starts_with(verb)) {
            return true;
        }
    }
    let mut known = TOLD.iter();
    known.any(|(state, begin)| *state == sqlstate && message.starts_with(begin))
}

/// What is said of some commands, word for word.
#[test]
fn what_is_wrong_with_a_command_is_said() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut boss = place.enter("boss");
    for (text, sqlstate, expected) in [
        (
            "NONSENSE",
            "42601",
            "unknown or malformed command: NONSENSE",
        ),
        (
            "KILL_CLIENT abc",
            "42601",
            "expected KILL_CLIENT number, the id of SHOW CLIENTS",
        ),
        ("DISABLE", "42601", "expected DISABLE database"),
        (
            "SHOW NONSENSE",
            "42704",
            "there is nothing to show called \"NONSENSE\"",
        ),
        ("SHOW SHAPE 77", "42704", "no shape has the number 77"),
        (
            "SHOW SHAPE x",
            "42601",
            "expected SHOW table, SHOW SHAPE number, or SHOW setting",
        ),
        ("KILL_CLIENT 77", "42704", "no client has the number 77"),
        ("SET x", "42601", "expected SET key = value"),
        ("SET x = 1", "42704", "there is no setting \"x\""),
        (
            "SET query_timeout = 5",
            "42704",
            "there is no setting \"query_timeout\", but there is \"query_timeout_s\"",
        ),
        (
            "SET max_clients = many",
            "F0000",
            "max_clients: expected a whole number from 1 to 1000000, found \"many\"",
        ),
        (
            "SET MODE off FOR NOBODY 1",
            "42601",
            "expected SET MODE off|on FOR SHAPE number [IN database]",
        ),
        ("SHOW 'STATS", "42601", "unterminated quoted text"),
        ("SUSPEND", "0A000", "SUSPEND is not offered"),
    ] {
        let answer = boss.query(text);
        assert_eq!(frames::tags(&answer), "EZ", "{text}: {answer:?}");
        let told = (answer[0].sqlstate(), answer[0].field(b'M').unwrap());
        assert_eq!(told, (sqlstate.to_owned(), expected.to_owned()), "{text}");
    }
}

#[test]
fn every_command_is_understood_or_refused_whoever_gives_it_with_whatever_behind_it() {
    let place = Place::new();
    let proxy = place.proxy();
    // It may be ended on the way.
    let client = Client::login(&place.path, "postgres");
    let mut boss = place.enter("boss");
    let mut guest = place.enter("guest");
    for shown in SHOWN {
        let text = format!("SHOW {shown}");
        let all = boss.query(&text);
        let some = guest.query(&text);
        assert_eq!(all[0].tag, some[0].tag, "{text}: {all:?} {some:?}");
        // There is no such shape yet.
        let refused = shown == "SHAPE 1";
        assert_eq!(all[0].tag == b'E', refused, "{text}: {all:?}");
    }
    for order in ORDERS {
        assert_eq!(refusal(&mut guest, order), "42501", "{order}");
    }
    let nonsense = [
        "'",
        "\"",
        "$1",
        "(1)",
        "99999999999999999999999",
        "-1",
        "a b c d",
        "\u{1f4a5}",
        "=",
        "--",
        "\u{7f}\r\n",
        "E'\\x00'",
        "FOR SHAPE",
        "SHAPE SHAPE",
        "%s%n",
        "/*",
        "NULL",
    ];
    let shows = SHOWN.map(|shown| format!("SHOW {shown}"));
    let all = shows.iter().map(String::as_str).chain(ORDERS);
    let mut otherwise = Vec::new();
    for (command, more) in all.flat_map(|it| nonsense.map(|more| (it, more))) {
        for text in [format!("{command} {more}"), format!("{more} {command}")] {
            let is_end = command.starts_with("SHUTDOWN") && ["--"].contains(&more);
            for console in [&mut boss, &mut guest] {
                if is_end {
                    continue;
                }
                let answer = console.query(&text);
                if let Some(said) = answer.iter().find(|frame| frame.tag == b'E') {
                    let (state, message) = (said.sqlstate(), said.field(b'M').unwrap());
                    if !is_told(&text, &state, &message) {
                        otherwise.push(format!("{text}: {state} {message}"));
                    }
                }
                assert_eq!(answer.last().unwrap().tag, b'Z', "{text}");
            }
        }
    }
    assert!(otherwise.is_empty(), "{otherwise:#?}");
    boss.query("RESUME");
    boss.query("RESUME postgres");
    boss.query("ENABLE postgres");
    assert!(boss.value("SHOW VERSION").starts_with("pgautoprep "));
    assert!(guest.value("SHOW VERSION").starts_with("pgautoprep "));
    drop((boss, guest, client));
    proxy.await_connections(0);
}
