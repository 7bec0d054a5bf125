//! Cancel requests of the proxy's own, which the server may take its time for.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::cluster::Server;
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Proxy;
use pgautoprep::metrics::Counter;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); \
    INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i; ANALYZE";

/// The process that all others of the server are made by, and that passes on cancel requests.
fn postmaster(direct: &mut Client) -> Pid {
    let file = direct.value("SHOW data_directory") + "/postmaster.pid";
    let text = std::fs::read_to_string(file).unwrap();
    let pid = text.lines().next().unwrap().trim().parse().unwrap();
    Pid::from_raw(pid).unwrap()
}

/// A read of one client waits on the connection of another, and the proxy has the server cancel it.
/// The server hears of that when the read is long over, and its owner runs something else there.
#[test]
fn a_request_that_comes_late_hits_nothing_that_nobody_wanted_to_cancel() {
    let server = Server::start(SETUP);
    let changes = [
        ("shared_reads", "on"),
        ("catalog_watch_ms", "1000"),
        ("connect_timeout_s", "1"),
    ];
    let proxy = Proxy::with(&server.address(), &changes);
    let mut clients: Vec<_> = (0..3)
        .map(|_| Client::login(proxy.address(), "postgres"))
        .collect();
    let until = Instant::now() + PATIENCE;
    while proxy.summary().count(Counter::ReadsShared) < 30 {
        assert!(Instant::now() < until, "nothing is shared");
        for client in &mut clients {
            client.send(&frames::query("SELECT v FROM t WHERE id = 5"));
        }
        for client in &mut clients {
            assert_eq!(tags(&client.until_ready()), "TDCZ");
        }
    }
    let mut direct = Client::login(&server.address(), "postgres");
    let postmaster = postmaster(&mut direct);
    direct.queries(&["BEGIN", "LOCK TABLE t IN ACCESS EXCLUSIVE MODE"]);
    kill_process(postmaster, Signal::STOP).unwrap();
    clients[1].send(&frames::query("SELECT v FROM t WHERE id = 9"));
    std::thread::sleep(Duration::from_millis(2500));
    direct.run("COMMIT");
    // The reader may have to wait until it is certain that nothing hits it.
    for reader in [0, 2] {
        clients[reader].send(&frames::query("SELECT pg_sleep(3)"));
    }
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(postmaster, Signal::CONT).unwrap();
    for client in &mut clients {
        let answer = client.until_ready();
        assert_eq!(tags(&answer), "TDCZ", "{answer:?}");
    }
}
