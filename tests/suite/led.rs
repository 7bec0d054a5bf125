//! Tables of databases that are written otherwise and read again: who comes is led as they say, and
//! who is there stays where it was led.

use crate::console::{Place, cell, enter, found, refusal};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Process;
use crate::harness::server;
use std::time::{Duration, Instant};

/// As long as is looked whether nothing comes.
const MOMENT: Duration = Duration::from_millis(250);

/// A proxy that reads its tables from a file.
struct Scene {
    place: Place,
    process: Process,
    console: Client,
}

impl Scene {
    fn new(tables: &str) -> Self {
        let place = Place::new();
        let file = place.file("config.toml");
        let config = file.to_str().unwrap();
        std::fs::write(config, tables).unwrap();
        let more = [("config", config), ("catalog_watch_ms", "1000")];
        let process = Process::start(&server::address(), &place.settings(&more));
        let console = enter(&process.address, "boss");
        Self {
            place,
            process,
            console,
        }
    }

    /// Has these tables read, and returns what the console says.
    fn reads(&mut self, tables: &str) -> String {
        std::fs::write(self.place.file("config.toml"), tables).unwrap();
        tags(&self.console.query("RELOAD"))
    }

    fn login(&self, database: &str) -> Client {
        Client::login(&self.process.address, database)
    }

    /// Waits until who comes is led there.
    fn leads(&self, database: &str, there: &str) -> Client {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut client = self.login(database);
            if client.value("SELECT current_database()") == there {
                return client;
            }
            assert!(Instant::now() < until, "{database} does not lead there");
        }
    }
}

/// A table of a database that leads to another.
fn table(name: &str, dbname: &str) -> String {
    format!("[databases.{name}]\ndbname = '{dbname}'\n")
}

fn refused(address: &str, database: &str) -> String {
    let mut client = Client::connect(address);
    let names = [("user", "postgres"), ("database", database)];
    client.send(&frames::startup(&names));
    client.rest().last().unwrap().sqlstate()
}

#[test]
fn who_comes_is_led_as_the_tables_say_now() {
    let (one, two) = (server::database(""), server::database(""));
    let mut scene = Scene::new(&table("shop", &one));
    let mut old = scene.leads("shop", &one);
    assert_eq!(refused(&scene.process.address, "more"), "3D000");
    assert_eq!(
        scene.reads(&(table("shop", &two) + &table("more", &one))),
        "CZ"
    );
    scene.leads("shop", &two);
    scene.leads("more", &one);
    assert_eq!(old.value("SELECT current_database()"), one, "it was there");
    let row = found(&mut scene.console, "DATABASES", "name", "shop").remove(0);
    assert_eq!(cell(&row, "database"), two);
    // What cannot be used changes nothing.
    assert_eq!(scene.reads("[databases.shop]\npool_size = 'x'\n"), "EZ");
    scene.leads("shop", &two);
    // A table that is gone.
    assert_eq!(scene.reads(&table("more", &two)), "CZ");
    let until = Instant::now() + PATIENCE;
    while refused(&scene.process.address, "shop") != "3D000" {
        assert!(Instant::now() < until, "shop leads somewhere");
    }
    assert_eq!(old.value("SELECT current_database()"), one, "it was there");
    assert_eq!(refusal(&mut scene.console, "SET upstream = 'h:1'"), "55P02");
}

#[test]
fn who_was_held_back_meanwhile_is_led_elsewhere() {
    let (one, two) = (server::database(""), server::database(""));
    let mut scene = Scene::new(&table("shop", &one));
    scene.leads("shop", &one);
    scene.console.run("PAUSE shop");
    let mut late = Client::connect(&scene.process.address);
    late.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "shop"),
    ]));
    assert!(!late.hears_within(MOMENT));
    assert_eq!(scene.reads(&table("shop", &two)), "CZ");
    // Also in a moment in which nobody has heard of it yet.
    std::thread::sleep(MOMENT);
    scene.console.run("RESUME shop");
    late.logged_in();
    assert_eq!(late.value("SELECT current_database()"), two);
}

#[test]
fn a_pool_has_its_new_size_at_once() {
    let database = server::database("");
    let sized = |size| {
        format!(
            "{}pool_mode = 'auto'\npool_size = {size}\n",
            table("shop", &database)
        )
    };
    let mut scene = Scene::new(&sized(1));
    let mut first = scene.leads("shop", &database);
    first.run("BEGIN");
    let begins = |scene: &Scene| {
        let mut client = Client::connect(&scene.process.address);
        client.send(&frames::startup(&[
            ("user", "postgres"),
            ("database", "shop"),
        ]));
        client
    };
    let mut second = begins(&scene);
    assert!(!second.hears_within(MOMENT), "there is one connection");
    assert_eq!(scene.reads(&sized(3)), "CZ");
    second.logged_in();
    second.run("BEGIN");
    let mut third = scene.leads("shop", &database);
    third.run("BEGIN");
    let mut fourth = begins(&scene);
    assert!(!fourth.hears_within(MOMENT), "there are three");
    // Nobody is turned out, and nobody is let in before there is room.
    assert_eq!(scene.reads(&sized(1)), "CZ");
    std::thread::sleep(MOMENT);
    for client in [&mut first, &mut second] {
        client.run("COMMIT");
        assert!(!fourth.hears_within(MOMENT), "there are more than one");
    }
    third.run("COMMIT");
    fourth.logged_in();
    assert_eq!(scene.reads(&table("shop", &database)), "CZ");
    std::thread::sleep(MOMENT);
    let mut kept = scene.leads("shop", &database);
    let pid = kept.value("SELECT pg_backend_pid()");
    let another = scene.leads("shop", &database);
    assert_eq!(kept.value("SELECT pg_backend_pid()"), pid);
    drop(another);
}

/// Whoever is there when a bound is written down counts as well.
#[test]
fn a_bound_counts_who_was_there_before_it() {
    let database = server::database("");
    let bounded =
        |most: usize| format!("max_db_connections = {most}\n{}", table("shop", &database));
    let mut scene = Scene::new(&table("shop", &database));
    let mut there = [(); 2].map(|()| scene.leads("shop", &database));
    assert_eq!(scene.reads(&bounded(2)), "CZ");
    std::thread::sleep(MOMENT);
    let mut waits = Client::connect(&scene.process.address);
    let names = [("user", "postgres"), ("database", "shop")];
    waits.send(&frames::startup(&names));
    assert!(!waits.hears_within(MOMENT), "there are two");
    let [first, second] = &mut there;
    first.send(&frames::frame(b'X', b""));
    assert_eq!(first.rest(), []);
    waits.logged_in();
    second.run("SELECT 1");
    let mut next = Client::connect(&scene.process.address);
    next.send(&frames::startup(&names));
    assert!(!next.hears_within(MOMENT), "there are two again");
    assert_eq!(scene.reads(&bounded(3)), "CZ");
    next.logged_in();
}

/// A misspelt name must not make a script go on that pauses a database before it restarts a server.
#[test]
fn the_console_knows_which_databases_there_can_be() {
    let database = server::database("");
    let mut scene = Scene::new(&table("shop", &database));
    for order in [
        "PAUSE shp",
        "KILL shp",
        "DISABLE shp",
        "ENABLE shp",
        "RESUME shp",
        "RECONNECT shp",
        "WAIT_CLOSE shp",
        "SET MODE off FOR SHAPE 1 IN shp",
    ] {
        assert_eq!(refusal(&mut scene.console, order), "3D000", "{order}");
    }
    assert!(found(&mut scene.console, "DATABASES", "name", "shp").is_empty());
    scene.console.run("PAUSE shop");
    scene.console.run("RESUME shop");
    // Who is there of a table that is gone, can be acted on.
    let _there = scene.leads("shop", &database);
    assert_eq!(scene.reads(&table("other", &database)), "CZ");
    scene.console.run("PAUSE shop");
}

/// Waits until a database has so many sessions, past the proxy.
fn await_sessions(watcher: &mut Client, database: &str, wanted: &str) {
    let text = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    let until = Instant::now() + PATIENCE;
    loop {
        let found = watcher.value(&text);
        if found == wanted {
            return;
        }
        assert!(Instant::now() < until, "{found} sessions");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_minimum_is_kept_once_however_often_the_numbers_change() {
    for mode in ["auto", "session"] {
        let (one, two) = (server::database(""), server::database(""));
        let numbers = |least: usize, size: usize, to: &str| {
            format!(
                "pool_mode = '{mode}'\nserver_idle_timeout_s = 1\nmin_pool_size = {least}\n\
                default_pool_size = {size}\nmax_user_connections = {size}\n{}",
                table("shop", to)
            )
        };
        let mut scene = Scene::new(&numbers(3, 10, &one));
        let mut watcher = Client::login(&server::address(), "postgres");
        let visit = |scene: &Scene, to: &str| {
            let mut client = scene.leads("shop", to);
            client.send(&frames::frame(b'X', b""));
            assert_eq!(client.rest(), []);
        };
        visit(&scene, &one);
        await_sessions(&mut watcher, &one, "3");
        for size in [11, 12, 9] {
            assert_eq!(scene.reads(&numbers(3, size, &one)), "CZ");
            visit(&scene, &one);
            std::thread::sleep(MOMENT);
            await_sessions(&mut watcher, &one, "3");
        }
        assert_eq!(scene.reads(&numbers(5, 12, &one)), "CZ");
        await_sessions(&mut watcher, &one, "5");
        assert_eq!(scene.reads(&numbers(0, 12, &one)), "CZ");
        await_sessions(&mut watcher, &one, "0");
        // Of what leads elsewhere none are kept where it led.
        assert_eq!(scene.reads(&numbers(2, 12, &one)), "CZ");
        visit(&scene, &one);
        await_sessions(&mut watcher, &one, "2");
        assert_eq!(scene.reads(&numbers(2, 12, &two)), "CZ");
        await_sessions(&mut watcher, &one, "0");
        visit(&scene, &two);
        await_sessions(&mut watcher, &two, "2");
        assert_eq!(scene.reads(&table("other", &two)), "CZ");
        await_sessions(&mut watcher, &two, "0");
    }
}
