//! Being told to stop: the idle go at once, the busy may finish, nobody may stay for ever.

use crate::harness::client::Client;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::time::Duration;

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
    drop(client.rest());
}

#[test]
fn a_proxy_that_drains_accepts_nobody() {
    let mut proxy = start("60");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("BEGIN");
    proxy.signal(Signal::TERM);
    let mut refused = false;
    for _ in 0..100 {
        refused |= std::net::TcpStream::connect(&proxy.address).is_err();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(refused);
    client.run("COMMIT");
    assert!(proxy.ended().0.success());
}

#[test]
fn a_signal_prints_the_counters() {
    let mut proxy = start("0");
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("SELECT oid FROM pg_class WHERE relname = 'x'");
    proxy.signal(Signal::USR1);
    let stderr = BufReader::new(proxy.stderr());
    let line = stderr.lines().map_while(Result::ok);
    let line = line.into_iter().find(|line| line.starts_with("queries"));
    assert!(line.unwrap().contains(" 1 "));
    client.run("SELECT 1");
}
