//! Shapes that somebody has switched off: they pass through, here or everywhere, also in the next
//! process.

use crate::console::{Place, cell, found, refusal, rows};
use crate::harness::client::Client;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::reason::Reason;
use std::path::Path;
use std::time::{Duration, Instant};

const TEXT: &str = "SELECT relname FROM pg_class WHERE relname = ?";

fn text(id: usize) -> String {
    TEXT.replace('?', &format!("'none{id}'"))
}

/// A proxy that listens there and keeps switches in this file.
fn proxy(place: &Place, file: &Path) -> Proxy {
    let file = file.to_str().unwrap();
    Proxy::with(
        &server::address(),
        &place.settings(&[("switches_file", file)]),
    )
}

/// How many of these queries are converted, and how many passed through because of a switch.
fn counts(proxy: &Proxy, client: &mut Client, queries: usize) -> (u64, u64) {
    let count = || {
        let switched = proxy.summary().passed(Reason::SwitchedOff);
        (proxy.converted(), switched)
    };
    let before = count();
    (0..queries).for_each(|id| client.run(&text(id)));
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

/// What the table of shapes says in this column.
fn shown(console: &mut Client, column: &str) -> String {
    let shape = found(console, "SHAPES", "text", TEXT).remove(0);
    cell(&shape, column).to_owned()
}

#[test]
fn a_shape_that_is_switched_off_passes_through_until_it_is_switched_on() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut client = Client::login(&place.path, "postgres");
    let mut console = place.enter("boss");
    let (converted, _) = counts(&proxy, &mut client, 20);
    assert!(converted > 10, "{converted}");
    let number = shown(&mut console, "shape");
    let order = format!("SET MODE off FOR SHAPE {number}");
    assert_eq!(refusal(&mut place.enter("guest"), &order), "42501");
    assert_eq!(
        refusal(&mut console, "SET MODE off FOR SHAPE 999999"),
        "42704"
    );
    let answer = console.query(&order);
    assert_eq!(answer[0].tag, b'N', "it is not kept, and that is said");
    assert_eq!(counts(&proxy, &mut client, 20), (0, 20));
    let told = ["shape", "state", "mode", "reason"].map(|it| shown(&mut console, it));
    assert_eq!(told, [&*number, "declined", "off", "switched_off"]);
    let row = found(&mut console, "MODE", "key", "off").remove(0);
    assert_eq!(cell(&row, "value"), TEXT);
    // Another shape is not meant.
    let other = (0..20).map(|id| format!("SELECT relname FROM pg_class WHERE oid = {id}"));
    let before = proxy.converted();
    other.for_each(|text| client.run(&text));
    assert!(proxy.converted() > before + 10);
    console.run(&format!("SET MODE on FOR SHAPE {number}"));
    let (converted, switched) = counts(&proxy, &mut client, 20);
    assert!(converted > 10 && switched == 0, "{converted}");
    assert_eq!(shown(&mut console, "mode"), "on");
    assert!(found(&mut console, "MODE", "key", "off").is_empty());
}

#[test]
fn the_story_of_a_shape_tells_what_was_decided() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut client = Client::login(&place.path, "postgres");
    let mut console = place.enter("boss");
    counts(&proxy, &mut client, 20);
    let number = shown(&mut console, "shape");
    let mut history = || {
        let told = rows(&console.query(&format!("SHOW SHAPE {number}")));
        let lines = told.iter().filter(|row| cell(row, "key") == "history");
        let lines = lines.map(|row| {
            cell(row, "value")
                .split_once(" s ago: ")
                .unwrap()
                .1
                .to_owned()
        });
        let lines: Vec<_> = lines.collect();
        console.run(&format!("SET MODE off FOR SHAPE {number}"));
        lines
    };
    let before = history();
    assert_eq!(before.last().unwrap(), "the server is asked");
    assert!(before[0].starts_with("converted"), "{before:?}");
    assert_eq!(history()[0], "switched off");
}

#[test]
fn a_switch_for_one_database_holds_there_only() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut here = Client::login(&place.path, "postgres");
    let mut there = Client::login(&place.path, "template1");
    let mut console = place.enter("boss");
    counts(&proxy, &mut here, 20);
    let number = shown(&mut console, "shape");
    console.run(&format!("SET MODE off FOR SHAPE {number} IN template1"));
    assert_eq!(shown(&mut console, "mode"), "off in template1");
    assert_eq!(counts(&proxy, &mut there, 10), (0, 10));
    let (converted, switched) = counts(&proxy, &mut here, 20);
    assert!(converted > 10 && switched == 0, "{converted}");
    console.run(&format!("SET MODE off FOR SHAPE {number}"));
    let one = format!("SET MODE on FOR SHAPE {number} IN template1");
    assert_eq!(refusal(&mut console, &one), "55000");
    assert_eq!(counts(&proxy, &mut here, 10), (0, 10));
    console.run("SET MODE on FOR SHAPE ALL");
    let (converted, switched) = counts(&proxy, &mut there, 20);
    assert!(converted > 10 && switched == 0, "{converted}");
}

#[test]
fn what_was_switched_off_is_so_in_the_next_process() {
    let place = Place::new();
    let file = place.file("switches.toml");
    {
        let proxy = proxy(&place, &file);
        let mut client = Client::login(&place.path, "postgres");
        counts(&proxy, &mut client, 10);
        let mut console = place.enter("boss");
        let number = shown(&mut console, "shape");
        let answer = console.query(&format!("SET MODE off FOR SHAPE {number} IN postgres"));
        assert_eq!(answer[0].tag, b'C', "{answer:?}");
    }
    let proxy = proxy(&place, &file);
    let mut client = Client::login(&place.path, "postgres");
    let (converted, switched) = counts(&proxy, &mut client, 20);
    assert!(converted == 0 && switched > 10, "{switched}");
    let mut console = place.enter("boss");
    // What stands in the file holds for shapes that nobody has met yet.
    let other = "SELECT oid FROM pg_class WHERE relname = ?";
    std::fs::write(&file, format!("[[off]]\ntext = '{other}'")).unwrap();
    console.run("RELOAD");
    let (converted, switched) = counts(&proxy, &mut client, 20);
    assert!(converted > 10 && switched == 0, "{converted}");
    for id in 0..10 {
        client.run(&other.replace('?', &format!("'none{id}'")));
    }
    assert!(proxy.summary().passed(Reason::SwitchedOff) > 5);
    // A damaged file changes nothing, and the error says which it is.
    std::fs::write(&file, "[[off]]\ntext = 'a'\nwhat = 1").unwrap();
    let answer = console.query("RELOAD");
    let told = answer[0].field(b'M').unwrap();
    assert!(
        told.contains("switches.toml") && told.contains("what"),
        "{told}"
    );
    let rows = rows(&console.query("SHOW MODE"));
    assert!(
        rows.iter().any(|row| cell(row, "value") == other),
        "{rows:?}"
    );
}

#[test]
fn switches_that_come_and_go_under_load_answer_as_the_server_does() {
    let place = Place::new();
    let proxy = place.proxy();
    let ends = Instant::now() + Duration::from_secs(2);
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let mut client = Client::login(&place.path, "postgres");
            std::thread::spawn(move || {
                let mut count = 0;
                while Instant::now() < ends {
                    let sql = format!("SELECT count(*) + {count} FROM pg_class WHERE oid = 1259");
                    assert_eq!(client.value(&sql), (count + 1).to_string());
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut console = place.enter("boss");
    let mut orders = 0;
    while Instant::now() < ends {
        let text = "SELECT count(*) + ? FROM pg_class WHERE oid = ?";
        if let Some(shape) = found(&mut console, "SHAPES", "text", text).first() {
            let word = ["off", "on"][orders % 2];
            console.run(&format!(
                "SET MODE {word} FOR SHAPE {}",
                cell(shape, "shape")
            ));
            orders += 1;
        }
    }
    let asked: u64 = clients
        .into_iter()
        .map(|client| client.join().unwrap())
        .sum();
    let summary = proxy.summary();
    let switched = summary.passed(Reason::SwitchedOff);
    assert!(
        orders > 2 && switched > 0 && switched < asked,
        "{orders} {switched} of {asked}"
    );
}
