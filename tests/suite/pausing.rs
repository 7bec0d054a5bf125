//! PAUSE, RESUME, KILL, DISABLE and ENABLE at the console.

use crate::console::{Place, cell, found, refusal};
use crate::harness::client::Client;
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take that nothing holds up.
const SOON: Duration = Duration::from_secs(60);

/// As long as is looked whether nothing comes.
const MOMENT: Duration = Duration::from_millis(250);

/// Waits until this column of the database has this value.
fn await_database(console: &mut Client, name: &str, column: &str, value: &str) {
    let started = Instant::now();
    loop {
        let rows = found(console, "DATABASES", "name", name);
        if rows.first().is_some_and(|row| cell(row, column) == value) {
            return;
        }
        assert!(
            started.elapsed() < SOON,
            "{column} of {name} is not {value}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn state(console: &mut Client, key: &str) -> String {
    let row = found(console, "STATE", "key", key).remove(0);
    cell(&row, "value").to_owned()
}

#[test]
fn a_pause_waits_for_transactions_and_holds_back_what_comes_behind_them() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut console = place.enter("boss");
    let mut inside = Client::login(&place.path, "postgres");
    let mut outside = Client::login(&place.path, "postgres");
    let mut elsewhere = Client::login(&place.path, "template1");
    inside.queries(&["BEGIN", "SELECT 1"]);
    outside.run("SELECT 1");
    console.send(&frames::query("PAUSE postgres"));
    let mut other = place.enter("boss");
    await_database(&mut other, "postgres", "paused", "1");
    assert_eq!(refusal(&mut other, "PAUSE postgres"), "55000");
    // Who is in a transaction goes on to its end, who begins something waits, and others do not.
    assert_eq!(inside.value("SELECT 2"), "2");
    outside.send(&frames::query("SELECT 3"));
    assert!(!outside.hears_within(MOMENT) && !console.hears_within(MOMENT));
    assert_eq!(elsewhere.value("SELECT 4"), "4");
    inside.run("COMMIT");
    let answer = console.until_ready();
    assert_eq!(tags(&answer), "NCZ", "{answer:?}");
    assert!(answer[0].field(b'M').unwrap().starts_with("2 clients"));
    inside.send(&frames::query("BEGIN"));
    let mut late = Client::connect(&place.path);
    late.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert!(!inside.hears_within(MOMENT) && !late.hears_within(MOMENT));
    assert!(!outside.hears_within(Duration::from_millis(1)));
    assert_eq!(
        (state(&mut other, "paused"), state(&mut other, "active")),
        ("no".into(), "yes".into())
    );
    other.run("RESUME postgres");
    assert_eq!(tags(&outside.until_ready()), "TDCZ");
    assert_eq!(tags(&inside.until_ready()), "CZ");
    late.logged_in();
    assert_eq!(late.value("SELECT 5"), "5");
    assert_eq!(refusal(&mut other, "RESUME postgres"), "55000");
    await_database(&mut other, "postgres", "paused", "0");
}

#[test]
fn all_databases_are_paused_together_and_pipelines_stop_where_a_transaction_ends() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut console = place.enter("boss");
    let mut client = Client::login(&place.path, "postgres");
    client.run("SELECT 1");
    console.run("PAUSE");
    assert_eq!(
        (state(&mut console, "paused"), state(&mut console, "active")),
        ("yes".into(), "no".into())
    );
    assert_eq!(refusal(&mut console, "PAUSE"), "55000");
    let all = ["BEGIN", "SELECT 2", "COMMIT", "SELECT 3"].map(frames::query);
    client.send(&all.concat());
    assert!(!client.hears_within(MOMENT));
    console.run("RESUME");
    let answers: String = (0..4).map(|_| tags(&client.until_ready())).collect();
    assert_eq!(answers, "CZTDCZCZTDCZ");
    assert_eq!(refusal(&mut console, "RESUME"), "55000");
}

#[test]
fn a_pause_that_is_given_up_is_taken_back() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut watches = place.enter("boss");
    let mut inside = Client::login(&place.path, "postgres");
    let mut outside = Client::login(&place.path, "postgres");
    inside.queries(&["BEGIN", "SELECT 1"]);
    for way in ["leaves", "cancels", "is resumed"] {
        let mut console = place.enter("boss");
        console.send(&frames::query("PAUSE postgres"));
        await_database(&mut watches, "postgres", "paused", "1");
        // It is known to be paused a moment before the workers hear of it.
        outside.send(&frames::query("SELECT 1"));
        while outside.hears_within(MOMENT) {
            outside.until_ready();
            outside.send(&frames::query("SELECT 1"));
        }
        match way {
            "leaves" => drop(console),
            "cancels" => {
                let mut request = Client::connect(&place.path);
                request.send(&frames::cancel(console.key.0, &console.key.1));
                assert_eq!(request.rest(), []);
                assert_eq!(console.until_ready()[0].sqlstate(), "57014");
            }
            _ => {
                watches.run("RESUME postgres");
                assert_eq!(console.until_ready()[0].sqlstate(), "57014");
            }
        }
        assert_eq!(tags(&outside.until_ready()), "TDCZ", "{way}");
        await_database(&mut watches, "postgres", "paused", "0");
    }
    inside.run("COMMIT");
}

/// Clients that ask without a pause until they are told to stop; each counts its answers.
fn askers(place: &Place, database: &str, count: usize, ends: Instant) -> Vec<JoinHandle<usize>> {
    let clients = (0..count).map(|_| Client::login(&place.path, database));
    let ask = |mut client: Client| {
        move || {
            let mut answers = 0;
            while Instant::now() < ends {
                let sql = format!("SELECT id + {answers} FROM t WHERE id = {answers} % 10");
                assert_eq!(client.value(&sql), (answers + answers % 10).to_string());
                answers += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            answers
        }
    };
    clients
        .map(|client| std::thread::spawn(ask(client)))
        .collect()
}

#[test]
fn a_server_is_restarted_behind_a_pause_and_clients_of_a_pool_do_not_notice() {
    let place = Place::new();
    let setup = "CREATE TABLE t (id int PRIMARY KEY); \
                 INSERT INTO t SELECT generate_series(0, 9); ANALYZE t";
    let mut server = Server::start(setup);
    let settings = place.settings(&[
        ("catalog_watch_ms", "200"),
        ("pool_mode", "auto"),
        ("default_pool_size", "4"),
    ]);
    let _proxy = Proxy::with(&server.address(), &settings);
    let mut console = place.enter("boss");
    let ends = Instant::now() + Duration::from_secs(8);
    let clients = askers(&place, "postgres", 8, ends);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(500));
        let answer = console.query("PAUSE");
        assert_eq!(tags(&answer), "CZ", "nobody keeps a connection: {answer:?}");
        let left = found(&mut console, "SERVERS", "database", "postgres");
        assert!(left.is_empty(), "{left:?}");
        server.stop();
        server.start_again();
        console.run("RESUME");
    }
    for client in clients {
        let answers = client.join().expect("nobody notices");
        assert!(answers > 10, "{answers}");
    }
}

#[test]
fn a_killed_database_is_paused_and_a_disabled_one_takes_nobody() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut console = place.enter("boss");
    let mut idle = Client::login(&place.path, "postgres");
    let mut busy = Client::login(&place.path, "postgres");
    let mut other = Client::login(&place.path, "template1");
    idle.run("SELECT 1");
    busy.send(&frames::query("SELECT pg_sleep(60)"));
    assert!(!busy.hears_within(MOMENT));
    console.run("KILL postgres");
    for mut client in [idle, busy] {
        assert_eq!(client.rest().last().unwrap().sqlstate(), "57P01");
    }
    assert_eq!(other.value("SELECT 2"), "2");
    await_database(&mut console, "postgres", "paused", "1");
    console.run("DISABLE postgres");
    await_database(&mut console, "postgres", "disabled", "1");
    let refused = |database: &str| {
        let mut client = Client::connect(&place.path);
        client.send(&frames::startup(&[
            ("user", "postgres"),
            ("database", database),
        ]));
        let last = client.rest().pop().unwrap();
        (last.sqlstate(), last.field(b'M').unwrap())
    };
    let message = "database \"postgres\" is not currently accepting connections";
    assert_eq!(
        refused("postgres"),
        ("55000".to_owned(), message.to_owned())
    );
    console.run("RESUME postgres");
    assert_eq!(refused("postgres").0, "55000");
    console.run("ENABLE postgres");
    assert_eq!(
        Client::login(&place.path, "postgres").value("SELECT 3"),
        "3"
    );
    drop((console, other));
    proxy.await_connections(0);
    let summary = proxy.summary();
    let faults = [Counter::ErrorsOperator, Counter::ErrorsProxy];
    assert_eq!(faults.map(|fault| summary.count(fault)), [2, 0]);
}

#[test]
fn a_pause_that_waits_for_somebody_is_over_when_that_one_is_killed() {
    let place = Place::new();
    let _proxy = place.proxy();
    let mut inside = Client::login(&place.path, "postgres");
    inside.queries(&["BEGIN", "SELECT 1"]);
    let mut first = place.enter("boss");
    first.send(&frames::query("PAUSE postgres"));
    let mut second = place.enter("boss");
    await_database(&mut second, "postgres", "paused", "1");
    second.run("KILL postgres");
    assert_eq!(inside.rest()[0].sqlstate(), "57P01");
    let answer = first.until_ready();
    assert_eq!(tags(answer.as_slice()).trim_start_matches('N'), "CZ");
    await_database(&mut second, "postgres", "paused", "1");
    second.run("RESUME postgres");
    Client::login(&place.path, "postgres").run("SELECT 1");
}

/// The name may be misspelt, and then nothing is held back that should be.
#[test]
fn a_database_that_nobody_has_used_is_told_of() {
    let place = Place::new();
    let _proxy = place.proxy();
    Client::login(&place.path, "postgres").run("SELECT 1");
    let mut console = place.enter("boss");
    for (order, tags_of) in [
        ("PAUSE nosuch", "NCZ"),
        ("RECONNECT postgres", "CZ"),
        ("RESUME nosuch", "CZ"),
        ("KILL nosuch", "EZ"),
        ("RECONNECT other", "NCZ"),
        ("WAIT_CLOSE other", "NCZ"),
        ("DISABLE other", "NCZ"),
        ("ENABLE other", "CZ"),
        ("RECONNECT", "CZ"),
    ] {
        let answer = console.query(order);
        assert_eq!(tags(&answer), tags_of, "{order}: {answer:?}");
        if tags_of == "NCZ" {
            assert_eq!(answer[0].sqlstate(), "01000", "{order}");
            let said = answer[0].field(b'M').unwrap();
            assert!(
                said.starts_with("no client has used a database \""),
                "{said}"
            );
        }
    }
    // Nobody was ended, and nothing is held back.
    let answer = console.query("KILL nosuch");
    let told = "no client has used a database \"nosuch\" yet: nobody was ended";
    assert_eq!(answer[0].sqlstate(), "3D000");
    assert_eq!(answer[0].field(b'M').as_deref(), Some(told));
    assert_eq!(refusal(&mut console, "RESUME nosuch"), "55000");
    // Whoever holds it back first knows the name.
    console.run("PAUSE nosuch");
    console.run("KILL nosuch");
}

#[test]
fn a_proxy_that_ends_does_not_wait_for_who_is_held_back() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut console = place.enter("boss");
    let mut held = Client::login(&place.path, "postgres");
    held.run("SELECT 1");
    console.run("PAUSE");
    held.send(&frames::query("SELECT 2"));
    assert!(!held.hears_within(MOMENT));
    let started = Instant::now();
    drop(proxy);
    assert!(started.elapsed() < SOON);
    let said = held.rest();
    assert_eq!(tags(&said), "E", "{said:?}");
    assert_eq!(said[0].sqlstate(), "57P01");
}

#[test]
fn who_is_held_back_goes_on_when_another_process_takes_over() {
    let place = Place::new();
    let takeover = place.file("takeover");
    let settings = place.settings(&[("takeover_socket", takeover.to_str().unwrap())]);
    let _first = Process::start(&server::address(), &settings);
    let mut console = place.enter("boss");
    let mut held = Client::login(&place.path, "postgres");
    held.run("SELECT 1");
    console.run("PAUSE");
    held.send(&frames::query("SELECT 2"));
    assert!(!held.hears_within(MOMENT));
    let _next = Process::start(&server::address(), &settings);
    assert_eq!(tags(&held.until_ready()), "TDCZ");
    assert_eq!(
        Client::login(&place.path, "postgres").value("SELECT 3"),
        "3"
    );
}

#[test]
fn who_leaves_while_held_back_is_noticed_at_once() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut console = place.enter("boss");
    let mut clients: Vec<_> = (0..4)
        .map(|_| Client::login(&place.path, "postgres"))
        .collect();
    for client in &mut clients {
        client.run("SELECT 1");
    }
    console.run("PAUSE");
    // One has something to be answered, and one has asked, and says that it leaves.
    clients[0].send(&frames::query("SELECT 2"));
    clients[1].send(&[frames::query("SELECT 3"), frames::frame(b'X', b"")].concat());
    clients[2].send(&frames::frame(b'X', b""));
    let mut stays = clients.remove(0);
    drop(clients);
    // Two have left without anything to be answered.
    proxy.await_connections(3);
    std::thread::sleep(MOMENT);
    assert_eq!(proxy.summary().connections_open(), 3);
    console.run("RESUME");
    assert_eq!(tags(&stays.until_ready()), "TDCZ");
    proxy.await_connections(2);
}
