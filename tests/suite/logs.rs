//! The lines of the log: who comes and goes, and that none of them comes thousands of times.

use crate::console::{Place, cell, found};
use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// The lines that a program has logged as JSON until it ended.
fn lines(mut process: Process) -> Vec<Value> {
    process.signal(Signal::TERM);
    let (_, _, text) = process.ended();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn with_message<'l>(lines: &'l [Value], message: &str) -> Vec<&'l Value> {
    lines
        .iter()
        .filter(|line| line["message"] == message)
        .collect()
}

#[test]
fn who_comes_and_goes_is_logged_with_the_reason_if_that_is_wanted() {
    for wanted in ["on", "off"] {
        let settings = [
            ("log_format", "json"),
            ("log_connections", wanted),
            ("log_disconnections", wanted),
        ];
        let process = Process::start(&server::address(), &settings);
        let odd = [
            ("user", "postgres"),
            ("database", "postgres"),
            ("application_name", "a\nb\"c"),
        ];
        let mut leaves = Client::login_with(&process.address, &odd);
        leaves.run("SELECT 1");
        leaves.send(&frames::frame(b'X', b""));
        assert!(leaves.rest().is_empty());
        let mut ended = Client::login(&process.address, "postgres");
        let mut own = Client::login(&process.address, "postgres");
        own.run(&format!("SELECT pg_terminate_backend({})", ended.key.0));
        assert_eq!(ended.rest().last().unwrap().sqlstate(), "57P01");
        let mut hostile = Client::connect(&process.address);
        hostile.send(b"\0\0\0\x08\0\0\0\0");
        assert!(!hostile.rest().is_empty());
        drop(own);
        std::thread::sleep(Duration::from_millis(100));
        let all = lines(process);
        let came = with_message(&all, "login attempt");
        let gone = with_message(&all, "disconnected");
        let early = with_message(&all, "disconnected before its login was over");
        if wanted == "off" {
            assert!(
                came.is_empty() && gone.is_empty() && early.is_empty(),
                "{all:?}"
            );
            continue;
        }
        assert_eq!((came.len(), gone.len(), early.len()), (3, 3, 1), "{all:?}");
        for line in came.iter().chain(&gone) {
            let address = line["address"].as_str().unwrap();
            assert!(address.starts_with("127.0.0.1:"), "{line}");
        }
        let (first, last) = (came[0], gone[0]);
        assert_eq!(
            (&first["client"], &first["user"]),
            (&last["client"], &last["user"])
        );
        assert_eq!(first["database"], "postgres");
        assert_eq!(first["application"], "ab\"c");
        assert!(first["address"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert_eq!(
            (&last["reason"], &last["queries"]),
            (&"the client has left".into(), &1.into())
        );
        assert!(last["seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(gone[1]["reason"], "the server has ended the session");
        assert_eq!(early[0]["fault"], "Client");
    }
}

#[test]
fn a_line_that_repeats_itself_is_left_out_and_counted() {
    let settings = [("log_format", "json"), ("admin_users", "boss")];
    let process = Process::start(&server::address(), &settings);
    let refused = || {
        let mut client = Client::connect(&process.address);
        let startup = [("user", "nobody"), ("database", "pgautoprep")];
        client.send(&frames::startup(&startup));
        assert_eq!(client.rest()[0].tag, b'E');
    };
    (0..200).for_each(|_| refused());
    std::thread::sleep(Duration::from_millis(1100));
    refused();
    let all = lines(process);
    let written = with_message(&all, "no console").len() as u64;
    let left_out = with_message(&all, "lines like the next one were left out");
    let left_out: u64 = left_out
        .iter()
        .map(|line| line["left_out"].as_u64().unwrap())
        .sum();
    assert_eq!(written + left_out, 201);
    assert!((20..150).contains(&written), "{written} were written");
}

#[test]
fn what_takes_long_is_logged_by_its_shape_and_route() {
    let place = Place::new();
    let settings = [
        ("listen", &*place.path),
        ("log_format", "json"),
        ("admin_users", "boss"),
        ("log_slow_ms", "40"),
        ("prepare_threshold", "1"),
        ("trials", "off"),
    ];
    let process = Process::start(&server::address(), &settings);
    let mut client = Client::login(&place.path, "postgres");
    let slow = |client: &mut Client, id: usize| {
        let sql =
            format!("SELECT pg_sleep(0.05) FROM pg_class WHERE relname <> 'secret{id}' LIMIT 1");
        client.run(&sql);
    };
    (0..4).for_each(|id| slow(&mut client, id));
    client.run("DO $$ BEGIN PERFORM pg_sleep(0.05); END $$ /* secret */");
    client.run("SELECT relname FROM pg_class WHERE relname = 'secret'");
    let mut console = place.enter("boss");
    console.run("SET log_slow_ms = 0");
    slow(&mut client, 5);
    console.run("SET log_slow_ms = 30");
    slow(&mut client, 6);
    drop((client, console));
    let all = lines(process);
    let mut told = with_message(&all, "slow statement");
    // On a busy machine others may have taken long, too.
    told.retain(|line| line["shape"] != "SELECT relname FROM pg_class WHERE relname = ?");
    assert_eq!(told.len(), 6, "{all:?}");
    let prepared = told.iter().filter(|line| line["route"] == "prepared");
    assert!(prepared.count() >= 4, "{told:?}");
    let passed = told
        .iter()
        .find(|line| line["route"] == "passed" && line["shape"] == "DO ?");
    let passed = passed.unwrap_or_else(|| panic!("{told:?}"));
    assert_eq!(passed["reason"], "not_preparable");
    for line in &told {
        assert_eq!(line["database"], "postgres");
        assert!(line["ms"].as_f64().unwrap() >= 30.0, "{line}");
        assert!(line["client"].is_u64(), "{line}");
        assert!(
            !line.to_string().contains("secret"),
            "a value is shown: {line}"
        );
    }
}

#[test]
fn a_session_that_is_tainted_is_told_of_once_with_the_reason_if_that_is_wanted() {
    for wanted in ["on", "off"] {
        let place = Place::new();
        let settings = [
            ("listen", &*place.path),
            ("log_format", "json"),
            ("admin_users", "boss"),
            ("log_taints", wanted),
            ("catalog_watch_ms", "1000"),
        ];
        let process = Process::start(&server::address(), &settings);
        let mut clean = Client::login(&place.path, "postgres");
        clean.run("SELECT 1");
        let mut text = Client::login(&place.path, "postgres");
        text.run("CREATE TEMP TABLE tainted (a text DEFAULT 'secret')");
        text.run("LISTEN tainted");
        let mut protocol = Client::login(&place.path, "postgres");
        protocol.send(&[frames::bind("", "nothing", &[]), frames::sync()].concat());
        protocol.until_ready();
        protocol.run("LISTEN tainted");
        let mut console = place.enter("boss");
        let shown = found(&mut console, "REASONS", "kind", "tainted");
        let counts = shown
            .iter()
            .map(|row| (cell(row, "reason"), cell(row, "count")));
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [("text", "1"), ("protocol", "1")]);
        drop((clean, text, protocol, console));
        let all = lines(process);
        let message = "a session is tainted: its server connection serves no other client";
        let told = with_message(&all, message);
        if wanted == "off" {
            assert!(told.is_empty(), "{told:?}");
            continue;
        }
        assert_eq!(told.len(), 2, "{all:?}");
        assert_eq!(told[0]["reason"], "text");
        assert_eq!(
            told[0]["shape"],
            "CREATE TEMP TABLE tainted (a text DEFAULT ?)"
        );
        assert_eq!(told[1]["reason"], "protocol");
        assert_eq!(told[1]["shape"], Value::Null);
        for line in told {
            assert_eq!(line["database"], "postgres");
            assert_eq!(line["level"], "INFO");
            assert!(line["client"].is_u64(), "{line}");
            assert!(
                !line.to_string().contains("secret"),
                "a value is shown: {line}"
            );
        }
    }
}

#[test]
fn what_stays_at_home_is_logged_if_that_is_wanted() {
    let place = Place::new();
    let settings = [
        ("listen", &*place.path),
        ("log_format", "json"),
        ("log_level", "info,pgautoprep::oracle::travel=debug"),
        ("prepare_threshold", "1"),
        ("shared_reads", "on"),
        ("trials", "off"),
    ];
    let process = Process::start(&server::address(), &settings);
    let mut client = Client::login(&place.path, "postgres");
    for id in 0..8 {
        client.run(&format!(
            "SELECT relname FROM pg_class WHERE oid = {id} FOR UPDATE"
        ));
    }
    drop(client);
    let all = lines(process);
    let told = with_message(&all, "stays at home");
    assert!(!told.is_empty(), "{all:?}");
    assert_eq!(
        (&told[0]["stay"], &told[0]["level"]),
        (&"locks".into(), &"DEBUG".into())
    );
    let shape = told[0]["shape"].as_str().unwrap();
    assert!(shape.starts_with("SELECT relname FROM pg_class"), "{shape}");
}

#[test]
fn trouble_is_logged_without_being_asked_for() {
    // Nobody listens there.
    let upstream = "127.0.0.1:1";
    let process = Process::start(upstream, &[("log_format", "json")]);
    let mut refused = Client::connect(&process.address);
    refused.send(&frames::startup(&[("user", "postgres")]));
    assert_eq!(refused.rest().last().unwrap().sqlstate(), "08006");
    let all = lines(process);
    let told = with_message(&all, "could not connect to the server");
    assert_eq!(told.len(), 1, "{all:?}");
    assert_eq!(
        (&told[0]["level"], &told[0]["server"]),
        (&"WARN".into(), &upstream.into())
    );
    assert!(with_message(&all, "a client was ended").is_empty());

    let settings = [
        ("log_format", "json"),
        ("catalog_watch_ms", "1000"),
        ("pool_mode", "auto"),
        ("default_pool_size", "1"),
        ("query_wait_timeout_s", "1"),
    ];
    let process = Process::start(&server::address(), &settings);
    let mut first = Client::login(&process.address, "postgres");
    first.run("BEGIN");
    let mut second = Client::connect(&process.address);
    second.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert_eq!(second.rest().last().unwrap().sqlstate(), "53300");
    drop((first, second));
    let all = lines(process);
    let told = with_message(&all, "a client was ended");
    assert_eq!(told.len(), 1, "{all:?}");
    assert_eq!(
        (&told[0]["level"], &told[0]["fault"]),
        (&"WARN".into(), &"proxy".into())
    );
}
