//! Settings of what becomes of statements, changed while the proxy runs: each does what it says
//! from then on, and what has begun otherwise is ended otherwise.

use crate::chosen::SKEWED;
use crate::console::{Place, cell, found, refusal, rows};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use std::time::{Duration, Instant};

/// A proxy with these settings, whoever changes them, and a database.
struct Scene {
    proxy: Proxy,
    console: Client,
    database: String,
    _place: Place,
}

impl Scene {
    fn new(settings: &[(&str, &str)], setup: &str) -> Self {
        let place = Place::new();
        // What the tests of this suite otherwise do without.
        let usual = [("catalog_watch_ms", "1000"), ("shared_reads", "on")];
        let is_other = |(key, _): &&(&str, &str)| settings.iter().all(|(other, _)| other != key);
        let usual = usual.iter().filter(is_other).copied().collect::<Vec<_>>();
        let settings = place.settings(&[&usual, settings].concat());
        let proxy = Proxy::with(&server::address(), &settings);
        Self {
            console: place.enter("boss"),
            database: server::database(setup),
            proxy,
            _place: place,
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.console.run(&format!("SET {key} = {value}"));
        let rows = found(&mut self.console, "CONFIG", "key", key);
        assert_eq!(cell(&rows[0], "value"), value, "{key}");
        assert_eq!(cell(&rows[0], "changeable"), "yes", "{key}");
        // Each worker has read it when it has answered this.
        self.console.run("SHOW CLIENTS");
    }

    fn client(&self) -> Client {
        Client::login(self.proxy.address(), &self.database)
    }

    /// By how much something is counted while this is done.
    fn counts(&self, counter: Counter, work: impl FnOnce()) -> u64 {
        let before = self.proxy.summary().count(counter);
        work();
        self.proxy.summary().count(counter) - before
    }

    /// How often this has been the reason meanwhile.
    fn passes(&self, reason: Reason, work: impl FnOnce()) -> u64 {
        let before = self.proxy.summary().passed(reason);
        work();
        self.proxy.summary().passed(reason) - before
    }
}

#[test]
fn plans_are_who_chooses_them_from_then_on() {
    let mut scene = Scene::new(&[("audit", "on")], SKEWED);
    let mut client = scene.client();
    // How often it was planned for its values, among the last ten.
    let mut renewed = |scene: &Scene| {
        let mut ask = |rounds: std::ops::Range<usize>| {
            for round in rounds {
                let day = 1 + round % 9;
                client.query(&format!(
                    "SELECT count(*), sum(kind) + 5 FROM t WHERE seen >= '2020-01-{day:02}' \
                     AND kind < 9"
                ));
            }
        };
        ask(0..40);
        scene.counts(Counter::StatementsRenewed, || ask(40..50))
    };
    assert!(renewed(&scene) > 0, "{}", scene.proxy.summary());
    scene.set("plans", "server");
    assert_eq!(renewed(&scene), 0, "{}", scene.proxy.summary());
    scene.set("plans", "proven");
    assert!(renewed(&scene) > 0, "{}", scene.proxy.summary());
}

#[test]
fn begins_are_held_back_from_then_on() {
    let table = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2); ANALYZE t";
    let mut scene = Scene::new(&[("deferred_begin", "off")], table);
    let carried = |scene: &Scene| {
        let mut client = scene.client();
        scene.counts(Counter::BeginsCarried, || {
            for _ in 0..12 {
                client.queries(&["BEGIN", "SELECT id FROM t WHERE id = 1", "COMMIT"]);
            }
        })
    };
    assert_eq!(carried(&scene), 0);
    scene.set("deferred_begin", "on");
    assert!(carried(&scene) > 5, "{}", scene.proxy.summary());
    // Of one that is held back the server is told as ever.
    let mut client = scene.client();
    for _ in 0..12 {
        client.queries(&["BEGIN", "SELECT id FROM t WHERE id = 1", "COMMIT"]);
    }
    client.run("BEGIN");
    scene.set("deferred_begin", "off");
    client.run("INSERT INTO t VALUES (3)");
    client.run("ROLLBACK");
    assert_eq!(client.value("SELECT count(*) FROM t"), "2");
    assert_eq!(carried(&scene), 0);
}

#[test]
fn transactions_that_only_read_are_spared_from_then_on() {
    let table = "CREATE TABLE t (id int PRIMARY KEY, n int); \
        INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i; ANALYZE t";
    let mut scene = Scene::new(&[("audit", "off"), ("deferred_begin", "on")], table);
    let read = |id: usize| format!("SELECT n FROM t WHERE id = {id}");
    let spared = |scene: &Scene| {
        let mut client = scene.client();
        scene.counts(Counter::TransactionsSpared, || {
            for id in 1..40 {
                client.queries(&[&read(id), "BEGIN", &read(id), "COMMIT"]);
            }
        })
    };
    assert_eq!(spared(&scene), 0);
    scene.set("unlocked_reads", "on");
    assert!(spared(&scene) > 10, "{}", scene.proxy.summary());
    // In the middle of one: it goes on, and ends as it should.
    let mut direct = Client::login(&server::address(), &scene.database);
    for value in ["off", "on", "off"] {
        scene.set("unlocked_reads", "on");
        let mut client = scene.client();
        let state = format!(
            "SELECT state FROM pg_stat_activity WHERE pid = {}",
            client.key.0
        );
        let mut tries = 0;
        loop {
            client.queries(&[&read(7), "BEGIN", &read(7)]);
            if direct.value(&state) == "idle" {
                break;
            }
            // Not each may be spared: questions come in between.
            client.query("COMMIT");
            tries += 1;
            assert!(tries < 50, "none is spared");
        }
        scene.set("unlocked_reads", value);
        assert_eq!(client.value(&read(8)), "0");
        client.run("UPDATE t SET n = 1 WHERE id = 8");
        assert_eq!(client.value(&read(8)), "1");
        assert_eq!(client.query("ROLLBACK").last().unwrap().body, b"I");
        assert_eq!(client.value(&read(8)), "0");
    }
    assert_eq!(spared(&scene), 0);
}

#[test]
fn announcements_are_listened_to_from_then_on_and_never_shown() {
    let mut scene = Scene::new(&[], "CREATE TABLE t (id int PRIMARY KEY)");
    let channels = "SELECT string_agg(l, ' ') FROM pg_listening_channels() l";
    let mut direct = Client::login(&server::address(), &scene.database);
    let work = |client: &mut Client| client.run("SELECT id FROM t WHERE id = 1");
    let mut quiet = scene.client();
    work(&mut quiet);
    scene.set("ddl_notices", "on");
    let mut told = scene.client();
    work(&mut told);
    assert_eq!(told.value(channels), "pgautoprep_ddl");
    scene.set("ddl_notices", "off");
    let mut deaf = scene.client();
    work(&mut deaf);
    direct.run("NOTIFY pgautoprep_ddl");
    for client in [&mut quiet, &mut told, &mut deaf] {
        for _ in 0..3 {
            assert_eq!(tags(&client.query("SELECT id FROM t WHERE id = 1")), "TCZ");
        }
    }
    assert!(deaf.query(channels)[1].columns()[0].is_none());
    assert_eq!(told.value(channels), "pgautoprep_ddl", "it was asked once");
}

/// Which process of the server serves each of five clients that come one after the other.
fn processes(scene: &Scene) -> usize {
    let mut all = Vec::new();
    for _ in 0..5 {
        let mut client = scene.client();
        all.push(client.value("SELECT pg_backend_pid()"));
        client.send(&frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
        std::thread::sleep(Duration::from_millis(100));
    }
    all.sort_unstable();
    all.dedup();
    all.len()
}

#[test]
fn connections_wait_for_the_next_client_from_then_on() {
    for (key, without, with) in [
        ("warm_connections", "off", "on"),
        ("catalog_watch_ms", "0", "1000"),
    ] {
        let mut scene = Scene::new(&[(key, without)], "");
        let pids = |scene: &Scene, wanted: bool| {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let count = processes(scene);
                if (count < 5) == wanted || Instant::now() > deadline {
                    return count;
                }
            }
        };
        assert_eq!(processes(&scene), 5, "{key}");
        scene.set(key, with);
        assert!(pids(&scene, true) < 5, "{key}");
        scene.set(key, without);
        assert_eq!(processes(&scene), 5, "{key}");
    }
    let place = Place::new();
    let settings = place.settings(&[("pool_mode", "auto"), ("catalog_watch_ms", "1000")]);
    let _proxy = Proxy::with(&server::address(), &settings);
    let mut console = place.enter("boss");
    for order in ["SET warm_connections = off", "SET catalog_watch_ms = 0"] {
        assert_eq!(refusal(&mut console, order), "F0000", "{order}");
    }
}

#[test]
fn shapes_and_texts_are_bounded_from_then_on() {
    let mut scene = Scene::new(&[], "CREATE TABLE t (id int, v text)");
    let shown = |scene: &mut Scene| rows(&scene.console.query("SHOW SHAPES")).len();
    let mut client = scene.client();
    for number in 0..60 {
        client.run(&format!("SELECT id AS a{number} FROM t WHERE id = 1"));
    }
    assert!(shown(&mut scene) >= 60);
    scene.set("max_shapes", "20");
    for number in 0..60 {
        client.run(&format!("SELECT id AS b{number} FROM t WHERE id = 1"));
    }
    let few = shown(&mut scene);
    assert!(few <= 20, "{few}");
    scene.set("max_shapes", "10000");
    for (key, few, usual, reason) in [
        ("max_query_bytes", "64", "65536", Reason::TooLong),
        ("max_literals", "4", "1000", Reason::TooManyLiterals),
    ] {
        let ask = |client: &mut Client, from: usize| {
            for id in from..from + 5 {
                client.run(&format!(
                    "SELECT id, v FROM t WHERE id = {id} OR v = 'a{id}' OR v = 'b{id}' \
                     OR v = 'c{id}' OR v = 'd{id}'"
                ));
            }
        };
        assert_eq!(scene.passes(reason, || ask(&mut client, 0)), 0, "{key}");
        scene.set(key, few);
        assert_eq!(scene.passes(reason, || ask(&mut client, 5)), 5, "{key}");
        scene.set(key, usual);
        assert_eq!(scene.passes(reason, || ask(&mut client, 10)), 0, "{key}");
    }
}

#[test]
fn rows_are_arrays_from_as_many_on_as_is_said_then() {
    let mut scene = Scene::new(&[], "CREATE TABLE t (id int, v text)");
    let mut client = scene.client();
    // How many shapes come of one to ten rows.
    let mut come = |scene: &mut Scene, table: &str| {
        client.run(&format!("CREATE TABLE {table} (id int, v text)"));
        for round in 0..3 {
            for count in 3..11 {
                let row = |number: usize| format!("({round}{number}, 'v{number}')");
                let all: Vec<_> = (0..count).map(row).collect();
                client.run(&format!("INSERT INTO {table} VALUES {}", all.join(", ")));
            }
        }
        assert_eq!(
            client.value(&format!("SELECT count(*) FROM {table}")),
            "156"
        );
        let shown = rows(&scene.console.query("SHOW SHAPES"));
        let is_meant = |row: &&Vec<(String, String)>| {
            cell(row, "text").starts_with(&format!("INSERT INTO {table}"))
        };
        shown.iter().filter(is_meant).count()
    };
    assert_eq!(come(&mut scene, "one"), 8);
    scene.set("min_array_rows", "2");
    assert_eq!(come(&mut scene, "two"), 1);
    scene.set("min_array_rows", "16");
    assert_eq!(come(&mut scene, "three"), 8);
}
