//! How many clients there may be of a database and of a user, and what holds for some users alone.

use crate::console::{Place, cell, found};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::login::Users;
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::time::Instant;

const SETUP: &str = "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; \
    CREATE TABLE t (id int PRIMARY KEY, name text); \
    INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 100) n; \
    GRANT SELECT ON t TO ann, bob";

/// Begins to log in.
fn knock(proxy: &Proxy, user: &str, database: &str) -> Client {
    let mut client = Client::connect(proxy.address());
    client.send(&frames::startup(&[("user", user), ("database", database)]));
    client
}

fn login(proxy: &Proxy, user: &str, database: &str) -> Client {
    let mut client = knock(proxy, user, database);
    client.logged_in();
    client
}

fn select(client: &mut Client, id: usize) {
    let text = format!("SELECT name FROM t WHERE id = {id}");
    assert_eq!(client.value(&text), format!("name {id}"));
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert!(client.rest().is_empty());
}

/// A client is not let in because of this setting; what it is sent instead.
fn refused(proxy: &Proxy, user: &str, database: &str, bound: &str) -> String {
    let told = knock(proxy, user, database).rest();
    let error = told.last().unwrap();
    let expected = format!("no more connections allowed ({bound})");
    assert_eq!(error.field(b'M'), Some(expected), "{user} {database}");
    assert_eq!(error.sqlstate(), "53300");
    tags(&told)
}

/// Logs in as soon as there is room.
fn soon(proxy: &Proxy, user: &str, database: &str) -> Client {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut client = knock(proxy, user, database);
        let told = client.until_ready();
        if told.iter().all(|frame| frame.tag != b'E') {
            return client;
        }
        assert!(Instant::now() < until, "there is never any room");
    }
}

#[test]
fn there_are_no_more_clients_than_there_may_be() {
    let server = Server::start(SETUP);
    let upstream = format!("dbname = 'postgres'\nupstream = '{}'\n", server.address());
    let tables = format!(
        "[databases.a]\nmax_db_client_connections = 2\n{upstream}[databases.b]\n{upstream}\
         [users.bob]\nmax_user_client_connections = 1\n"
    );
    let users = Users::new(&[("ann", ""), ("bob", "")]);
    let asked = [("auth_type", "trust"), ("auth_file", users.path())];
    for (settings, order) in [(&[][..], "E"), (&asked, "RE")] {
        let most = [("max_user_client_connections", "3"), ("stats_users", "ann")];
        let proxy = Proxy::with_tables(&tables, &[&most, settings].concat());
        let [one, mut two] = [(); 2].map(|()| login(&proxy, "ann", "a"));
        let of_database = "max_db_client_connections";
        assert_eq!(refused(&proxy, "ann", "a", of_database), order);
        assert_eq!(refused(&proxy, "bob", "a", of_database), order);
        let mut other = login(&proxy, "ann", "b");
        let of_user = "max_user_client_connections";
        assert_eq!(refused(&proxy, "ann", "b", of_user), order);
        let mut bob = login(&proxy, "bob", "b");
        assert_eq!(refused(&proxy, "bob", "b", of_user), order);
        // Who leaves makes room, once for each.
        leave(one);
        let mut three = soon(&proxy, "ann", "a");
        refused(&proxy, "ann", "a", of_database);
        for client in [&mut two, &mut other, &mut bob, &mut three] {
            select(client, 7);
        }
        // Those who are not let in are none of them.
        drop((two, three));
        soon(&proxy, "ann", "a");
        if order == "RE" {
            // The console is no database, and the view that it has shows what holds.
            let mut console = login(&proxy, "ann", "pgautoprep");
            let row = found(&mut console, "USERS", "name", "bob").remove(0);
            let shown = cell(&row, "max_user_client_connections");
            assert_eq!(shown, "1");
            let row = found(&mut console, "DATABASES", "name", "a").remove(0);
            let shown = cell(&row, "max_client_connections");
            assert_eq!(shown, "2");
        }
    }
}

#[test]
fn what_holds_for_a_user_goes_before_what_holds_for_its_database() {
    let server = Server::start(SETUP);
    let tables = format!(
        "[databases.'*']\nupstream = '{}'\n[users.bob]\npool_mode = 'auto'\npool_size = 1\n\
         [users.ann]\nmax_user_connections = 2\n",
        server.address()
    );
    let users = Users::new(&[("postgres", ""), ("ann", ""), ("bob", "")]);
    let settings = [
        ("catalog_watch_ms", "1000"),
        ("query_wait_timeout_s", "1"),
        ("stats_users", "postgres"),
        ("auth_type", "trust"),
        ("auth_file", users.path()),
    ];
    let proxy = Proxy::with_tables(&tables, &settings);
    // Clients of his share one connection.
    let mut bobs: Vec<_> = (0..4).map(|_| login(&proxy, "bob", "postgres")).collect();
    for round in 1..4 {
        bobs.iter_mut().for_each(|client| select(client, round));
    }
    bobs[0].run("BEGIN");
    bobs[1].send(&frames::query("SELECT 1"));
    assert_eq!(bobs[1].rest().last().unwrap().sqlstate(), "53300");
    // Hers keep theirs, of which there are two.
    let mut anns = [(); 2].map(|()| login(&proxy, "ann", "postgres"));
    let told = knock(&proxy, "ann", "postgres").rest();
    assert_eq!(told.last().unwrap().sqlstate(), "53300");
    anns.iter_mut().for_each(|client| select(client, 9));
    let mut others = [(); 3].map(|()| login(&proxy, "postgres", "postgres"));
    others.iter_mut().for_each(|client| select(client, 8));
    assert_eq!(proxy.summary().count(Counter::WaitTimeouts), 2);
    let mut console = login(&proxy, "postgres", "pgautoprep");
    let mut mode = |user: &str| {
        let rows = found(&mut console, "POOLS", "user", user);
        cell(&rows[0], "pool_mode").to_owned()
    };
    assert_eq!(mode("bob"), "auto");
    assert_eq!(mode("ann"), "session");
}

#[test]
fn limits_of_users_are_those_that_were_read_last() {
    let place = Place::new();
    let file = place.file("config.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("");
    let settings = place.settings(&[("config", file.to_str().unwrap())]);
    let _process = Process::start(&server::address(), &settings);
    let mut console = place.enter("boss");
    let mut read = |text: &str| {
        write(text);
        assert_eq!(tags(&console.query("RELOAD")), "CZ", "{text}");
    };
    let come = || {
        let mut client = Client::connect(&place.path);
        client.send(&frames::startup(&[("user", "postgres")]));
        let told = client.until_ready();
        let refused = told.iter().find(|frame| frame.tag == b'E');
        (client, refused.and_then(|error| error.field(b'M')))
    };
    // Who is there already counts.
    let [_one, _two] = [(); 2].map(|()| come());
    read("[users.postgres]\nmax_user_client_connections = 3\n");
    let (_three, refused) = come();
    assert_eq!(refused, None);
    let of_user = "no more connections allowed (max_user_client_connections)";
    assert_eq!(come().1.as_deref(), Some(of_user));
    read("max_db_client_connections = 2\n");
    let of_database = "no more connections allowed (max_db_client_connections)";
    assert_eq!(come().1.as_deref(), Some(of_database));
    read("");
    assert_eq!(come().1, None);
    write("[users.postgres]\npool_sise = 1\n");
    let told = console.query("RELOAD");
    let message = told[0].field(b'M').unwrap();
    assert!(
        message.contains("unknown key `pool_sise` in users.postgres"),
        "{message}"
    );
}
