//! Clients that are let in while all connections of their pool are in use: they have none before
//! they send something.

use crate::harness::client::Client;
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::login::{DATABASE, Users, asking, login};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::collections::HashSet;
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text);\
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t";

/// Process ids from here on are those of no process.
const NO_PROCESS: u32 = 1 << 30;

/// As long as is looked whether nothing comes.
const MOMENT: Duration = Duration::from_millis(200);

/// A proxy with pools of this size, which lets in whoever comes.
fn proxy(upstream: &str, size: &str, users: &Users, changes: &[(&str, &str)]) -> Proxy {
    let mut all = vec![
        ("catalog_watch_ms", "3600000"),
        ("pool_mode", "auto"),
        ("default_pool_size", size),
        ("auth_type", "trust"),
        ("auth_file", users.path()),
    ];
    all.extend(changes);
    Proxy::with(upstream, &all)
}

fn select(client: &mut Client, id: usize) {
    let text = format!("SELECT name FROM t WHERE id = {id}");
    assert_eq!(client.value(&text), format!("name {id}"));
}

/// The server could not end for being idle who is not in a session of his own.
#[test]
fn who_may_not_be_idle_for_long_waits_for_a_connection() {
    let (users, database) = (anybody(), server::database(SETUP));
    let mut direct = Client::login(&server::address(), &database);
    let version: u32 = direct.value("SHOW server_version_num").parse().unwrap();
    if version < 140_000 {
        return;
    }
    direct.run(&format!(
        "ALTER DATABASE \"{database}\" SET idle_session_timeout = '1h'"
    ));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let mut waiting = Client::connect(proxy.address());
    waiting.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", &database),
    ]));
    assert!(!waiting.hears_within(MOMENT));
    assert_eq!(homeless(&proxy), 0, "{}", proxy.summary());
    // Nobody leaves a home for it either.
    holder.run("COMMIT");
    assert!(!waiting.hears_within(MOMENT));
    drop(holder);
    assert!(tags(&waiting.until_ready()).starts_with('R'));
    select(&mut waiting, 7);
}

/// Reads until the catalog has been looked at, which comes before anything is converted.
fn settle(proxy: &Proxy, client: &mut Client) {
    let before = proxy.summary().count(Counter::Converted);
    let is_converted = |id: usize| {
        select(client, 1 + id % 100);
        proxy.summary().count(Counter::Converted) > before
    };
    assert!((0..200).any(is_converted), "{}", proxy.summary());
}

/// A client that has the only connection of its pool, in a transaction.
fn holder(proxy: &Proxy, login: impl Fn() -> Client) -> Client {
    // Of the first connection to a database it is not known how others would begin.
    let open = proxy.summary().connections_open();
    let mut first = login();
    settle(proxy, &mut first);
    drop(first);
    proxy.await_connections(open);
    let mut holder = login();
    select(&mut holder, 1);
    holder.run("BEGIN");
    select(&mut holder, 1);
    holder
}

fn homeless(proxy: &Proxy) -> u64 {
    proxy.summary().count(Counter::Homeless)
}

fn anybody() -> Users {
    Users::new(&[("postgres", "")])
}

#[test]
fn who_sends_nothing_costs_no_connection_and_is_told_what_others_are() {
    let (users, database) = (anybody(), server::database(SETUP));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let mut direct = Client::login(&server::address(), &database);
    let login = |_| Client::login(proxy.address(), &database);
    let mut clients: Vec<_> = (0..40).map(login).collect();
    assert_eq!(homeless(&proxy), 40, "{}", proxy.summary());
    let keys: HashSet<_> = clients.iter().map(|client| client.key.clone()).collect();
    assert_eq!(keys.len(), clients.len());
    for client in &clients {
        assert_eq!(client.parameters, direct.parameters);
        assert!(client.key.0 >= NO_PROCESS);
        assert_eq!(client.key.1.len(), direct.key.1.len());
    }
    // Beside the pool's one, this one's, and one by which the proxy may have just asked.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let count: u32 = direct.value(sessions).parse().unwrap();
    assert!((2..=3).contains(&count), "{count} sessions");
    // Some leave without a word, in both ways, and the others find a home as they need one.
    for client in clients.drain(..10) {
        drop(client);
    }
    for mut client in clients.drain(..10) {
        client.send(&frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
    }
    proxy.await_connections(21);
    holder.run("COMMIT");
    for round in 0..3 {
        for (index, client) in clients.iter_mut().enumerate() {
            select(client, 1 + (index + round) % 100);
        }
    }
    select(&mut holder, 5);
    let count: u32 = direct.value(sessions).parse().unwrap();
    assert!((2..=3).contains(&count), "{count} sessions");
    assert_eq!(proxy.summary().count(Counter::ErrorsProxy), 0);
}

#[test]
fn the_first_query_waits_for_a_home_and_no_longer_than_it_may() {
    let (users, database) = (anybody(), server::database(SETUP));
    let limit = [("query_wait_timeout_s", "2")];
    let proxy = proxy(&server::address(), "1", &users, &limit);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    // One sends its query with the login, one behind it.
    let startup = frames::startup(&[("user", "postgres"), ("database", &database)]);
    let mut hasty = Client::connect(proxy.address());
    hasty.send(&[startup, frames::query("SELECT 1")].concat());
    hasty.logged_in();
    let mut other = Client::login(proxy.address(), &database);
    other.send(&frames::query("SELECT 2"));
    assert!(!hasty.hears_within(MOMENT) && !other.hears_within(MOMENT));
    assert_eq!(homeless(&proxy), 2);
    holder.run("COMMIT");
    assert_eq!(tags(&hasty.until_ready()), "TDCZ");
    assert_eq!(tags(&other.until_ready()), "TDCZ");
    // A batch of the extended protocol does the same.
    holder.run("BEGIN");
    let mut batch = Client::login(proxy.address(), &database);
    let parts = [
        frames::parse("", "SELECT 3", &[]),
        frames::bind("", "", &[]),
        frames::execute("", 0),
        frames::sync(),
    ];
    batch.send(&parts.concat());
    assert!(!batch.hears_within(MOMENT));
    holder.run("COMMIT");
    assert_eq!(tags(&batch.until_ready()), "12DCZ");
    drop(batch);
    proxy.await_connections(3);
    select(&mut holder, 1);
    holder.run("BEGIN");
    select(&mut holder, 1);
    let mut late = Client::login(proxy.address(), &database);
    let started = Instant::now();
    late.send(&frames::query("SELECT 1"));
    let told = late.rest();
    let message = told[0].field(b'M').unwrap();
    assert_eq!((tags(&told).as_str(), &*told[0].sqlstate()), ("E", "53300"));
    assert!(message.contains("query_wait_timeout"), "{message}");
    assert!(started.elapsed() >= Duration::from_millis(1_900));
}

#[test]
fn the_connection_of_one_who_has_left_for_good_is_a_home() {
    let (users, database) = (anybody(), server::database(SETUP));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let process = holder.key.0;
    // It stays where it is, and what it leaves is taken back.
    holder.run("SET work_mem = '7MB'");
    holder.run("COMMIT");
    let mut client = Client::login(proxy.address(), &database);
    assert_eq!(homeless(&proxy), 1);
    client.send(&frames::query("SHOW work_mem"));
    assert!(!client.hears_within(MOMENT));
    holder.send(&frames::frame(b'X', b""));
    let answer = client.until_ready();
    assert_ne!(answer[1].columns(), [Some("7MB".to_owned())]);
    assert_eq!(client.value("SELECT pg_backend_pid()"), process.to_string());
}

fn cancel(proxy: &Proxy, client: &Client) {
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
}

#[test]
fn a_request_before_the_first_home_cancels_what_waits_and_nothing_else() {
    let (users, database) = (anybody(), server::database(SETUP));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let mut client = Client::login(proxy.address(), &database);
    assert_eq!(homeless(&proxy), 1);
    let mut bystander = Client::login(proxy.address(), &database);
    // There is nothing to be cancelled yet: nobody notices.
    cancel(&proxy, &client);
    bystander.send(&frames::query("SELECT 1"));
    client.send(&frames::query("SELECT 1"));
    std::thread::sleep(MOMENT);
    cancel(&proxy, &client);
    let told = client.until_ready();
    assert_eq!(
        (tags(&told).as_str(), &*told[0].sqlstate()),
        ("EZ", "57014")
    );
    select(&mut holder, 3);
    holder.run("COMMIT");
    assert_eq!(tags(&bystander.until_ready()), "TDCZ");
    select(&mut client, 4);
    // Its key is as good as any as soon as it has one.
    client.send(&frames::query("SELECT pg_sleep(30)"));
    while !client.hears_within(Duration::from_millis(100)) {
        cancel(&proxy, &client);
    }
    let told = client.until_ready();
    let error = told.iter().find(|frame| frame.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "57014");
}

#[test]
fn a_pause_holds_back_the_first_query_and_the_login_and_nobody_else_waits_for_them() {
    let (users, database) = (anybody(), server::database(SETUP));
    let changes = [("admin_users", "postgres")];
    let proxy = proxy(&server::address(), "1", &users, &changes);
    let mut console = Client::login(proxy.address(), "pgautoprep");
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let mut client = Client::login(proxy.address(), &database);
    assert_eq!(homeless(&proxy), 1);
    holder.run("COMMIT");
    console.run(&format!("PAUSE {database}"));
    client.send(&frames::query("SELECT 1"));
    let mut late = Client::connect(proxy.address());
    late.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", &database),
    ]));
    // What was known of logins before is not true for ever.
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(!client.hears_within(MOMENT) && !late.hears_within(MOMENT));
    console.run(&format!("RESUME {database}"));
    assert_eq!(tags(&client.until_ready()), "TDCZ");
    late.logged_in();
    select(&mut late, 5);
    select(&mut holder, 6);
}

#[test]
fn a_server_that_is_gone_lets_nobody_in_and_who_is_in_finds_it_again() {
    let mut server = Server::start(SETUP);
    let users = anybody();
    let proxy = proxy(&server.address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), "postgres"));
    let mut client = Client::login(proxy.address(), "postgres");
    let mut asks = Client::login(proxy.address(), "postgres");
    assert_eq!(homeless(&proxy), 2);
    asks.send(&frames::query("SELECT name FROM t WHERE id = 8"));
    server.stop();
    let told = holder.rest();
    assert_eq!(told[0].sqlstate(), "57P01");
    // What the server has told others a moment ago is void.
    let mut late = Client::connect(proxy.address());
    late.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert!(!late.hears_within(MOMENT));
    assert_eq!(homeless(&proxy), 2);
    server.start_again();
    assert_eq!(tags(&asks.until_ready()), "TDCZ");
    select(&mut client, 9);
    late.logged_in();
    select(&mut late, 10);
}

#[test]
fn what_a_session_would_have_begun_with_it_has_or_it_ends() {
    let (users, database) = (anybody(), server::database(SETUP));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    let login = || Client::login(proxy.address(), &database);
    let (mut before, mut lost) = (login(), login());
    assert_eq!(homeless(&proxy), 2);
    let mut direct = Client::login(&server::address(), &database);
    direct.run(&format!("ALTER DATABASE {database} SET work_mem = '5MB'"));
    // The pool's connection is from before the change, as both logins are.
    holder.run("COMMIT");
    assert_ne!(before.value("SHOW work_mem"), "5MB");
    assert_ne!(holder.value("SHOW work_mem"), "5MB");
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    direct.run(terminate);
    assert_eq!(holder.rest()[0].sqlstate(), "57P01");
    lost.send(&frames::query("SHOW work_mem"));
    assert_eq!(lost.rest()[0].sqlstate(), "57P01");
    assert_eq!(login().value("SHOW work_mem"), "5MB");
}

#[test]
fn a_reload_is_known_to_who_logs_in_behind_it() {
    let server = Server::start(SETUP);
    let users = anybody();
    let proxy = proxy(&server.address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), "postgres"));
    let mut before = Client::login(proxy.address(), "postgres");
    assert_eq!(homeless(&proxy), 1);
    let mut direct = Client::login(&server.address(), "postgres");
    direct.run("ALTER SYSTEM SET datestyle = 'SQL, DMY'");
    direct.run("SELECT pg_reload_conf()");
    // What the proxy has been told may be so old.
    std::thread::sleep(Duration::from_millis(1_100));
    // The pool's only connection does not listen: it would be told something else at first.
    let startup = frames::startup(&[("user", "postgres"), ("database", "postgres")]);
    let mut behind = Client::connect(proxy.address());
    behind.send(&startup);
    assert!(!behind.hears_within(MOMENT));
    assert_eq!(homeless(&proxy), 1);
    holder.run("COMMIT");
    behind.logged_in();
    let told = |client: &Client| {
        let known = client.parameters.iter();
        let found = known.filter(|(name, _)| name == "DateStyle");
        found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(&behind), ["SQL, DMY"]);
    assert_ne!(told(&before), ["SQL, DMY"]);
    before.send(&frames::query("SELECT '2001-02-03'::date"));
    let frames = before.until_ready();
    let reports = frames.iter().filter(|frame| frame.tag == b'S');
    assert!(
        reports
            .clone()
            .any(|it| it.body == b"DateStyle\0SQL, DMY\0")
    );
    let row = frames.iter().find(|frame| frame.tag == b'D').unwrap();
    assert_eq!(row.columns(), [Some("03/02/2001".to_owned())]);
}

#[test]
fn who_may_not_log_in_is_not_let_in_without_a_connection_either() {
    let server = asking(
        "scram-sha-256",
        "SET password_encryption = 'scram-sha-256';\
         CREATE ROLE visitor LOGIN PASSWORD 'right'; CREATE TABLE t (id int, name text);\
         INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; ANALYZE t;\
         GRANT SELECT ON t TO PUBLIC",
    );
    let verifier = Client::login(&server.host_port(), DATABASE)
        .value("SELECT rolpassword FROM pg_authid WHERE rolname = 'visitor'");
    let users = Users::new(&[("visitor", &verifier)]);
    let changes = [
        ("auth_type", "scram-sha-256"),
        ("query_wait_timeout_s", "2"),
    ];
    let mut all = vec![
        ("catalog_watch_ms", "3600000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
        ("auth_file", users.path()),
    ];
    all.extend(changes);
    let proxy = Proxy::with(&server.host_port(), &all);
    let enter = |password: &str| login(proxy.address(), "visitor", password);
    let mut holder = holder(&proxy, || enter("right").entered());
    // What the server asks is behind the client, and what the proxy asks is before.
    let attempt = enter("right");
    assert!(
        attempt.order().starts_with("10 11 12 0 S "),
        "{}",
        attempt.order()
    );
    let mut client = attempt.entered();
    assert_eq!(homeless(&proxy), 1);
    assert_eq!(enter("wrong").refusal().0, "28P01");
    assert_eq!(homeless(&proxy), 1);
    // Past the proxy the role is told to stay away: the server is asked within a second.
    let mut admin = Client::login(&server.host_port(), DATABASE);
    admin.run("ALTER ROLE visitor NOLOGIN");
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(enter("right").refusal().0, "53300", "it has waited");
    assert_eq!(homeless(&proxy), 1);
    admin.run("ALTER ROLE visitor LOGIN PASSWORD 'other'");
    // Nobody is given the connection that was there before, and another needs the new password.
    holder.run("COMMIT");
    client.send(&frames::query("SELECT 1"));
    assert_eq!(client.rest()[0].sqlstate(), "28P01");
}

/// Where clients come all at once, one of them asks the server for all.
#[test]
fn many_that_come_at_once_are_let_in_by_one_question() {
    let (users, database) = (anybody(), server::database(SETUP));
    let proxy = proxy(&server::address(), "1", &users, &[]);
    let mut holder = holder(&proxy, || Client::login(proxy.address(), &database));
    // Nobody has asked lately.
    std::thread::sleep(Duration::from_millis(1_100));
    let sessions = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()";
    let mut direct = Client::login(&server::address(), &database);
    let version: u32 = direct.value("SHOW server_version_num").parse().unwrap();
    let has_count = version >= 140_000;
    let count = |direct: &mut Client| direct.value(sessions).parse::<i64>().unwrap();
    let before = has_count.then(|| count(&mut direct));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let login = |_| Client::login(proxy.address(), &database);
                let clients: Vec<_> = (0..25).map(login).collect();
                assert!(clients.iter().all(|client| client.key.0 >= NO_PROCESS));
            });
        }
    });
    assert_eq!(homeless(&proxy), 100);
    if let Some(before) = before {
        std::thread::sleep(Duration::from_millis(1_500));
        let asked = count(&mut direct) - before;
        assert!(asked <= 4, "{asked} logins");
    }
    holder.run("COMMIT");
    select(&mut holder, 2);
}
