//! Bounds of server connections that hold for several pools together, and what a pool may have
//! beyond its size.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::login::Users;
use crate::harness::proxy::Proxy;
use pgautoprep::metrics::Counter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE DATABASE other; \
    CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; \
    GRANT SELECT ON t TO ann, bob";

/// The sessions of clients that there are besides the one that asks. The proxy's own, by which it
/// sees whether the server lets somebody in, are told from them by what they have asked.
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query <> ''";

fn start(changes: &[(&str, &str)]) -> (Server, Proxy) {
    let server = Server::start(SETUP);
    let proxy = Proxy::with(&server.address(), changes);
    (server, proxy)
}

fn login(proxy: &Proxy, user: &str, database: &str) -> Client {
    Client::login_with(proxy.address(), &[("user", user), ("database", database)])
}

fn select(client: &mut Client, id: usize) {
    let text = format!("SELECT name FROM t WHERE id = {id}");
    assert_eq!(client.value(&text), format!("name {id}"));
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert!(client.rest().is_empty());
}

/// Begins to log in.
fn knock(proxy: &Proxy, user: &str, database: &str) -> Client {
    let mut client = Client::connect(proxy.address());
    client.send(&frames::startup(&[("user", user), ("database", database)]));
    client
}

/// So many clients come, and go together, until as many connections stay behind them.
fn visit(proxy: &Proxy, direct: &mut Client, count: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let clients: Vec<_> = (0..count)
            .map(|_| login(proxy, "ann", "postgres"))
            .collect();
        for mut client in clients {
            select(&mut client, 1);
            leave(client);
        }
        if direct.value(SESSIONS) == count.to_string() {
            return;
        }
        assert!(
            Instant::now() < until,
            "{} sessions",
            direct.value(SESSIONS)
        );
    }
}

/// The row of a table of the console's that begins with this name.
fn row(console: &mut Client, table: &str, name: &str) -> Option<Vec<Option<String>>> {
    let frames = console.query(table);
    let rows = frames.iter().filter(|frame| frame.tag == b'D');
    let mut rows = rows.map(|row| row.columns());
    rows.find(|row| row[0].as_deref() == Some(name))
}

/// Waits until the server has so many sessions.
fn sessions(direct: &mut Client, expected: &str) {
    let until = Instant::now() + PATIENCE;
    while direct.value(SESSIONS) != expected {
        assert!(
            Instant::now() < until,
            "{} sessions",
            direct.value(SESSIONS)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_database_has_no_more_connections_than_its_bound() {
    let users = Users::new(&[("postgres", ""), ("ann", ""), ("bob", "")]);
    let (server, proxy) = start(&[
        ("max_db_connections", "3"),
        // The console asks one worker after the other, which is no moment.
        ("workers", "1"),
        ("stats_users", "postgres"),
        ("auth_type", "trust"),
        ("auth_file", users.path()),
    ]);
    let is_over = AtomicBool::new(false);
    let (open, sessions) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut direct = Client::login(&server.address(), "postgres");
            let mut console = login(&proxy, "postgres", "pgautoprep");
            let (mut open, mut sessions) = (Vec::new(), Vec::new());
            while !is_over.load(Ordering::SeqCst) {
                let row = row(&mut console, "SHOW DATABASES", "postgres");
                open.extend(row.and_then(|row| row[12].as_ref()?.parse::<u32>().ok()));
                sessions.push(direct.value(SESSIONS).parse::<u32>().unwrap());
            }
            (open, sessions)
        });
        let clients = (0..8).map(|number| {
            let (proxy, user) = (&proxy, ["ann", "bob", "postgres"][number % 3]);
            scope.spawn(move || {
                for id in 1..=30 {
                    let mut client = login(proxy, user, "postgres");
                    select(&mut client, id);
                    leave(client);
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        watcher.join().unwrap()
    });
    assert!(
        open.iter().max() <= Some(&3) && open.contains(&3),
        "{open:?}"
    );
    // The server may take a moment to end a session whose connection is closed.
    let above = sessions.iter().filter(|count| **count > 3).count();
    assert!(above * 10 < sessions.len(), "{sessions:?}");
    assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 0);
}

#[test]
fn who_comes_when_there_is_no_place_waits_for_one() {
    let (_server, proxy) = start(&[
        ("max_db_connections", "2"),
        ("query_wait_timeout_s", "2"),
        ("warm_connections", "off"),
    ]);
    let [one, mut two] = [(), ()].map(|()| login(&proxy, "ann", "postgres"));
    // Another database has its own.
    let mut elsewhere = login(&proxy, "ann", "other");
    assert_eq!(elsewhere.value("SELECT 1"), "1");
    let mut waits = knock(&proxy, "bob", "postgres");
    assert!(!waits.hears_within(Duration::from_millis(400)));
    leave(one);
    waits.logged_in();
    select(&mut waits, 1);
    select(&mut two, 2);
    let started = Instant::now();
    let told = knock(&proxy, "bob", "postgres").rest();
    assert_eq!(tags(&told), "E");
    assert_eq!(told[0].sqlstate(), "53300");
    assert!(started.elapsed() >= Duration::from_millis(1950));
    // Who breaks off has taken nothing.
    drop(knock(&proxy, "bob", "postgres"));
    leave(two);
    select(&mut login(&proxy, "bob", "postgres"), 3);
}

#[test]
fn a_pool_of_sessions_has_a_size_where_its_table_says_so() {
    let server = Server::start(SETUP);
    let upstream = format!("upstream = '{}'\n", server.address());
    // Two more names for one database, the second without a size.
    let tables = format!(
        "[databases.small]\ndbname = 'postgres'\npool_size = 2\n{upstream}\
         [databases.free]\ndbname = 'postgres'\n{upstream}"
    );
    let settings = [("query_wait_timeout_s", "2"), ("default_pool_size", "1")];
    let proxy = Proxy::with_tables(&tables, &settings);
    let [one, mut two] = [(), ()].map(|()| login(&proxy, "ann", "small"));
    // Another user has a pool of its own, and so have the clients of another name.
    select(&mut login(&proxy, "bob", "small"), 1);
    let mut free = [(); 4].map(|()| login(&proxy, "ann", "free"));
    free.iter_mut().for_each(|client| select(client, 2));
    let mut waits = knock(&proxy, "ann", "small");
    // It keeps its connection, idle as it is.
    assert!(!waits.hears_within(Duration::from_millis(400)));
    leave(one);
    waits.logged_in();
    select(&mut waits, 3);
    select(&mut two, 4);
    let started = Instant::now();
    let told = knock(&proxy, "ann", "small").rest();
    assert_eq!(tags(&told), "E");
    assert_eq!(told[0].sqlstate(), "53300");
    let message = told[0].field(b'M').unwrap();
    assert!(message.starts_with("query_wait_timeout"), "{message}");
    assert!(started.elapsed() >= Duration::from_millis(1950));
    assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 1);
    // A connection that waits warm for a session of another kind makes room.
    leave(two);
    let other = [
        ("user", "ann"),
        ("database", "small"),
        ("application_name", "x"),
    ];
    select(&mut Client::login_with(proxy.address(), &other), 5);
}

#[test]
fn a_user_has_no_more_connections_than_the_bound() {
    let (_server, proxy) = start(&[("max_user_connections", "1")]);
    let mut ann = login(&proxy, "ann", "postgres");
    select(&mut ann, 1);
    let mut waits = knock(&proxy, "ann", "other");
    select(&mut login(&proxy, "bob", "postgres"), 2);
    assert!(!waits.hears_within(Duration::from_millis(400)));
    // What she leaves stays warm, and makes room.
    leave(ann);
    waits.logged_in();
    assert_eq!(waits.value("SELECT current_database()"), "other");
}

#[test]
fn a_connection_without_a_client_makes_room_for_another_user() {
    let (server, proxy) = start(&[("max_db_connections", "2"), ("catalog_watch_ms", "1000")]);
    let mut direct = Client::login(&server.address(), "other");
    visit(&proxy, &mut direct, 2);
    let started = Instant::now();
    let mut bob = login(&proxy, "bob", "postgres");
    select(&mut bob, 2);
    // An idle connection would stay for ten minutes.
    assert!(started.elapsed() < PATIENCE / 2);
    sessions(&mut direct, "2");
}

#[test]
fn pools_that_share_a_bound_serve_who_has_waited_longest() {
    let (_server, proxy) = start(&[
        ("max_db_connections", "2"),
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "10"),
    ]);
    // Idle clients leave their homes also for another user.
    let mut idle = [(), ()].map(|()| login(&proxy, "ann", "postgres"));
    idle.iter_mut().for_each(|client| select(client, 1));
    let mut bob = login(&proxy, "bob", "postgres");
    select(&mut bob, 2);
    idle.iter_mut().for_each(|client| select(client, 3));
    // So do those that are never idle for long.
    let is_over = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        for mut client in (0..6).map(|_| login(&proxy, "ann", "postgres")) {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    select(&mut client, 4);
                }
            });
        }
        let waits = (0..5).map(|id| {
            let started = Instant::now();
            select(&mut bob, 5 + id);
            std::thread::sleep(Duration::from_millis(300));
            started.elapsed()
        });
        let longest = waits.max();
        is_over.store(true, Ordering::SeqCst);
        longest.unwrap()
    });
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 0);
}

#[test]
fn nobody_makes_room_for_who_has_given_up() {
    let (server, proxy) = start(&[
        ("max_db_connections", "1"),
        ("query_wait_timeout_s", "1"),
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
    ]);
    let mut direct = Client::login(&server.address(), "other");
    let mut session = || direct.value("SELECT pid FROM pg_stat_activity WHERE usename = 'ann'");
    let mut ann = login(&proxy, "ann", "postgres");
    // Once more, because the first query of all is followed by questions.
    (0..4).for_each(|id| select(&mut ann, 1 + id));
    ann.run("BEGIN");
    select(&mut ann, 5);
    let before = session();
    let told = knock(&proxy, "bob", "postgres").rest();
    assert_eq!(told[0].sqlstate(), "53300");
    ann.run("COMMIT");
    std::thread::sleep(Duration::from_millis(500));
    select(&mut ann, 6);
    assert_eq!(session(), before);
}

#[test]
fn a_pool_has_its_reserve_once_somebody_has_waited() {
    let (_server, proxy) = start(&[
        ("reserve_pool_size", "1"),
        ("reserve_pool_timeout_s", "1"),
        ("query_wait_timeout_s", "3"),
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
    ]);
    let mut holder = login(&proxy, "ann", "postgres");
    holder.run("BEGIN");
    select(&mut holder, 1);
    let started = Instant::now();
    let mut second = login(&proxy, "ann", "postgres");
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(950), "{waited:?}");
    second.run("BEGIN");
    select(&mut second, 2);
    let third = knock(&proxy, "ann", "postgres").rest();
    assert_eq!(third[0].sqlstate(), "53300", "there is one, not more");
}

#[test]
fn the_console_shows_the_bounds() {
    let users = Users::new(&[("postgres", "")]);
    let (_server, proxy) = start(&[
        ("max_db_connections", "7"),
        ("max_user_connections", "6"),
        ("reserve_pool_size", "5"),
        ("min_pool_size", "1"),
        ("stats_users", "postgres"),
        ("auth_type", "trust"),
        ("auth_file", users.path()),
    ]);
    select(&mut login(&proxy, "postgres", "postgres"), 1);
    let mut console = login(&proxy, "postgres", "pgautoprep");
    let mut cells = |text: &str, name: &str, columns: [usize; 4]| {
        let row = row(&mut console, text, name).unwrap();
        columns.map(|at| row[at].clone().unwrap_or_default())
    };
    let shown = cells("SHOW DATABASES", "postgres", [6, 7, 9, 11]);
    assert_eq!(shown, ["1", "5", "session", "7"]);
    let shown = cells("SHOW USERS", "postgres", [4, 0, 0, 0]);
    assert_eq!(shown[0], "6");
}
