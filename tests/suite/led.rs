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
fn a_pool_has_its_new_size_for_who_comes() {
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
    let mut second = Client::connect(&scene.process.address);
    let names = [("user", "postgres"), ("database", "shop")];
    second.send(&frames::startup(&names));
    assert!(!second.hears_within(MOMENT), "there is one connection");
    assert_eq!(scene.reads(&sized(3)), "CZ");
    std::thread::sleep(MOMENT);
    let mut others = [(); 3].map(|()| scene.leads("shop", &database));
    others.iter_mut().for_each(|client| client.run("BEGIN"));
    // Who waits already waits for what it was promised.
    assert!(!second.hears_within(MOMENT));
    first.run("COMMIT");
    second.logged_in();
    others.iter_mut().for_each(|client| client.run("COMMIT"));
    assert_eq!(scene.reads(&table("shop", &database)), "CZ");
    std::thread::sleep(MOMENT);
    let mut kept = scene.leads("shop", &database);
    let pid = kept.value("SELECT pg_backend_pid()");
    let another = scene.leads("shop", &database);
    assert_eq!(kept.value("SELECT pg_backend_pid()"), pid);
    drop(another);
}
