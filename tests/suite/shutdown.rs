//! Being told to stop: the idle go at once, the busy may finish, nobody may stay for ever.

use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Process;
use crate::harness::server;
use crate::harness::upstream::{Scene, met};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

/// Far longer than an end takes that waits for nothing.
const FAST: Duration = Duration::from_secs(3);

fn start(drain_timeout_s: &str) -> Process {
    Process::start(&server::address(), &[("drain_timeout_s", drain_timeout_s)])
}

/// What a client is told that is sent away.
fn sent_away(client: &mut Client) {
    let rest = client.rest();
    assert_eq!(tags(&rest), "E", "{rest:?}");
    assert_eq!(rest[0].sqlstate(), "57P01");
    assert_eq!(rest[0].field(b'S').as_deref(), Some("FATAL"));
}

#[test]
fn idle_clients_are_sent_away_and_the_program_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut proxy = start("60");
        let mut clients = [0, 1, 2].map(|_| Client::login(&proxy.address, "postgres"));
        clients[0].run("SELECT oid FROM pg_class WHERE relname = 'x'");
        clients[1].queries(&["BEGIN", "SELECT 1", "COMMIT"]);
        proxy.signal(signal);
        clients.iter_mut().for_each(sent_away);
        let (status, time, summary) = proxy.ended();
        assert!(status.success() && time < FAST, "{status} after {time:?}");
        assert!(summary.contains("queries"), "{summary}");
    }
}

#[test]
fn a_client_that_has_not_logged_in_does_not_hold_up_the_end() {
    let mut proxy = start("60");
    let silent = Client::connect(&proxy.address);
    let mut half = Client::connect(&proxy.address);
    half.send(&[0, 0, 0, 50, 0, 3]);
    // They must have been accepted to be in the way.
    drop(Client::login(&proxy.address, "postgres"));
    proxy.signal(Signal::TERM);
    let (status, time, _) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
    drop(silent);
}

#[test]
fn a_running_query_is_waited_for() {
    let mut proxy = start("60");
    let mut client = Client::login(&proxy.address, "postgres");
    client.send(&frames::query("SELECT pg_sleep(0.7), 'x'"));
    std::thread::sleep(Duration::from_millis(200));
    proxy.signal(Signal::TERM);
    assert_eq!(tags(&client.until_ready()), "TDCZ");
    sent_away(&mut client);
    let (status, time, _) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
}

#[test]
fn a_transaction_may_come_to_its_end() {
    let mut proxy = start("60");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("BEGIN");
    proxy.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    client.run("SELECT oid FROM pg_class WHERE relname = 'x'");
    client.run("COMMIT");
    sent_away(&mut client);
    assert!(proxy.ended().0.success());
}

#[test]
fn nobody_is_waited_for_longer_than_the_time_to_drain() {
    let mut proxy = start("1");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("BEGIN");
    proxy.signal(Signal::TERM);
    let (status, time, _) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
    assert!(time > Duration::from_millis(500), "only {time:?}");
    sent_away(&mut client);
}

#[test]
fn a_second_signal_ends_the_drain_at_once() {
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::TERM, Signal::INT)] {
        let mut proxy = start("60");
        let mut client = Client::login(&proxy.address, "postgres");
        client.run("BEGIN");
        proxy.signal(first);
        std::thread::sleep(Duration::from_millis(200));
        client.run("SELECT 1");
        proxy.signal(second);
        sent_away(&mut client);
        let (status, time, _) = proxy.ended();
        assert!(status.success() && time < FAST, "{status} after {time:?}");
    }
}

#[test]
fn nobody_is_told_anything_in_the_middle_of_a_message() {
    let Scene {
        mut client,
        mut peer,
        stage,
        ..
    } = met(&[]);
    client.send(&frames::query("TABLE t"));
    peer.take("Q");
    let row = frames::row(&[&"x".repeat(1000)]);
    let half = [&frames::description(&["a"])[..], &row[..500]].concat();
    peer.send(&half);
    let mut seen = vec![0; half.len()];
    client.socket.read_exact(&mut seen).unwrap();
    assert!(seen == half);
    drop(stage.proxy);
    assert_eq!(client.socket.read(&mut seen).unwrap(), 0);
}

#[test]
fn signals_without_a_meaning_change_nothing() {
    let mut proxy = start("60");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("BEGIN");
    for signal in [Signal::HUP, Signal::USR2] {
        proxy.signal(signal);
        std::thread::sleep(Duration::from_millis(100));
        client.run("SELECT 1");
        Client::login(&proxy.address, "postgres").run("SELECT 1");
    }
    client.run("COMMIT");
    proxy.signal(Signal::TERM);
    sent_away(&mut client);
    let (status, _, log) = proxy.ended();
    assert!(status.success() && log.contains("SIGHUP"), "{status} {log}");
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let changes = [("drain_timeout_s", "60"), ("log_level", "trace")];
    let mut proxy = Process::start(&server::address(), &changes);
    let mut client = Client::login(&proxy.address, "postgres");
    // Far more than a pipe holds.
    for k in 0..2000 {
        client.run(&format!("SELECT oid FROM pg_class WHERE relname = 'x{k}'"));
    }
    for _ in 0..200 {
        proxy.signal(Signal::USR1);
        std::thread::sleep(Duration::from_millis(1));
    }
    Client::login(&proxy.address, "postgres").run("SELECT 1");
    client.run("SELECT 1");
    proxy.signal(Signal::TERM);
    sent_away(&mut client);
    let (status, time, log) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
    assert!(log.len() > 60_000, "only {} bytes", log.len());
}

#[test]
fn a_busy_client_keeps_nobody_from_hearing_of_the_end() {
    let mut proxy = start("60");
    let mut idle = Client::login(&proxy.address, "postgres");
    let busy = Client::login(&proxy.address, "postgres");
    let many = frames::query("SELECT 1, 'x'").repeat(2000);
    let mut writer = busy.socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || while writer.write_all(&many).is_ok() {});
    let mut reader = busy.socket.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while matches!(reader.read(&mut bytes), Ok(1..)) {}
    });
    std::thread::sleep(Duration::from_millis(300));
    proxy.signal(Signal::TERM);
    let started = Instant::now();
    sent_away(&mut idle);
    let told = started.elapsed();
    assert!(told < FAST, "after {told:?}");
    proxy.signal(Signal::TERM);
    let (status, time, _) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
    writing.join().unwrap();
    reading.join().unwrap();
}

#[test]
fn a_proxy_that_drains_lets_nobody_in_and_says_why() {
    let mut proxy = start("60");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("BEGIN");
    let mut busy = Client::login(&proxy.address, "postgres");
    busy.send(&frames::query("SELECT pg_sleep(50)"));
    std::thread::sleep(Duration::from_millis(200));
    // Who says nothing keeps nobody from being told.
    proxy.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    let _silent: Vec<_> = (0..20).map(|_| Client::connect(&proxy.address)).collect();
    for database in ["postgres", "pgautoprep"] {
        let mut late = Client::connect(&proxy.address);
        late.send(&frames::startup(&[
            ("user", "postgres"),
            ("database", database),
        ]));
        let said = late.rest();
        assert_eq!(tags(&said), "E", "{said:?}");
        assert_eq!(said[0].sqlstate(), "57P03");
        assert_eq!(said[0].field(b'S').as_deref(), Some("FATAL"));
        assert_eq!(
            said[0].field(b'M').as_deref(),
            Some("the proxy is shutting down")
        );
    }
    // Whoever is still here may be cancelled.
    let mut request = Client::connect(&proxy.address);
    request.send(&frames::cancel(busy.key.0, &busy.key.1));
    assert!(request.rest().is_empty());
    let answer = busy.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E');
    assert_eq!(error.unwrap().sqlstate(), "57014");
    sent_away(&mut busy);
    client.run("COMMIT");
    let (status, time, _) = proxy.ended();
    assert!(status.success() && time < FAST, "{status} after {time:?}");
    let refused = std::net::TcpStream::connect(&proxy.address);
    assert!(refused.is_err(), "somebody listens");
}

#[test]
fn a_signal_prints_the_counters() {
    let mut proxy = start("0");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("SELECT oid FROM pg_class WHERE relname = 'x'");
    proxy.signal(Signal::USR1);
    let stderr = BufReader::new(proxy.stderr());
    let mut lines = stderr.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("printed at  ")));
    let line = lines.find(|line| line.starts_with("queries")).unwrap();
    assert!(line.contains(" 1 ") && line.ends_with(" +1"), "{line}");
    client.run("SET app.tenant = 'secret'");
    client.run("SET app.tenant = 'another' -- secret");
    proxy.signal(Signal::USR1);
    let line = lines.find(|line| line.starts_with("queries")).unwrap();
    assert!(line.contains(" 3 ") && line.ends_with(" +2"), "{line}");
    assert!(lines.any(|line| line.starts_with("passed through most")));
    let shape = format!("  {:<26}{:>16}  SET app.tenant = ?", "not_preparable", 2);
    assert_eq!(lines.next().unwrap(), shape);
    assert!(lines.next().unwrap().starts_with("last changes"));
    client.run("SELECT 1");
}
