//! What server processes come to hold that run the reads of many clients for a long time.
//!
//! `PGAUTOPREP_LASTING_SHAPES=10000` makes a longer run of it, with the default bounds, and prints
//! the figures with `--nocapture`.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i; ANALYZE t";

/// Clients that read the same shapes at the same time, so that some of them are hosts.
const CLIENTS: usize = 4;

/// Reads of each shape by each client: it is learned, prepared by all, and travels.
const ROUNDS: usize = 4;

/// Shapes of a quick run, and the statements that a connection may hold in it.
const SHAPES: usize = 400;
const STATEMENTS: usize = 20;

/// The default of `max_statements`.
const MOST: usize = 200;

/// KiB of memory that a server process shares with nobody.
///
/// It cannot be asked for its memory contexts: the proxy takes its statements away from a session
/// that looks for them.
fn resident(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.unwrap().parse().unwrap()
}

/// All read rows of their own with the shape of this number, at once.
fn all_read(clients: &mut [Client], shape: usize) {
    for round in 0..ROUNDS {
        let id = |number: usize| 1 + (shape * 7 + round * 31 + number * 101) % 1000;
        for (number, client) in clients.iter_mut().enumerate() {
            let id = id(number);
            let text = format!("SELECT v AS c{shape}, id FROM t WHERE id = {id}");
            client.send(&frames::query(&text));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let answer = client.until_ready();
            assert_eq!(frames::tags(&answer), "TDCZ", "{answer:?}");
            let id = id(number);
            let expected = [Some(format!("v{id}")), Some(id.to_string())];
            assert_eq!(answer[1].columns(), expected, "client {number}");
        }
    }
}

/// What is held after a quarter of the shapes, when there were more than can be held, must be about
/// all that is ever held.
#[test]
fn the_memory_of_hosts_is_bounded_however_many_shapes_there_are() {
    let wanted = std::env::var("PGAUTOPREP_LASTING_SHAPES").ok();
    let (shapes, most) = match wanted {
        Some(wanted) => (wanted.parse().unwrap(), MOST),
        None => (SHAPES, STATEMENTS),
    };
    let database = server::database(SETUP);
    let allowed = most.to_string();
    let changes = [
        ("shared_reads", "on"),
        ("catalog_watch_ms", "1000"),
        ("max_statements", &*allowed),
    ];
    let proxy = Proxy::with(&server::address(), &changes);
    let login = |_| Client::login(proxy.address(), &database);
    let mut clients: Vec<_> = (0..CLIENTS).map(login).collect();
    let ask = |client: &mut Client| client.value("SELECT pg_backend_pid()");
    let pids: Vec<_> = clients.iter_mut().map(ask).collect();
    let mut seen = Vec::new();
    for quarter in 0..4 {
        for shape in quarter * shapes / 4..(quarter + 1) * shapes / 4 {
            all_read(&mut clients, shape);
        }
        let resident: Vec<_> = pids.iter().map(|pid| resident(pid)).collect();
        let summary = proxy.summary();
        let count = |counter| summary.count(counter);
        let held = count(Counter::StatementsPrepared) - count(Counter::StatementsClosed);
        println!(
            "after quarter {}: {held} statements, {resident:?} KiB",
            quarter + 1
        );
        seen.push((held, resident));
    }
    let summary = proxy.summary();
    println!("{summary}");
    let shared = summary.count(Counter::ReadsShared);
    assert!(
        shared > shapes as u64,
        "{shared} reads of {shapes} shapes\n{summary}"
    );
    let most = (most * CLIENTS) as u64;
    for (held, _) in &seen {
        assert!(
            *held <= most && *held > most / 2,
            "{held} of {most} statements"
        );
    }
    // Whoever asks for the others holds more of the catalog, and who that is may change.
    let largest = |quarter: usize| seen[quarter].1.iter().max().copied().unwrap();
    assert!(largest(3) <= largest(0) * 5 / 4, "{seen:?}");
}
