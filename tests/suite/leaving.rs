//! Clients that leave, or say that they have nothing more to say, while their query is in flight.

use crate::harness::client::Client;
use crate::harness::frames::{self, frame};
use crate::harness::proxy::Proxy;
use crate::harness::scene::{SQL, answer, seen};
use crate::harness::script::SELECT;
use crate::harness::server;
use crate::harness::upstream::{Scene, learned, met};
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// Terminate.
fn terminate() -> Vec<u8> {
    frame(b'X', b"")
}

/// Says that the client sends nothing more, though it may still read.
fn finish(client: &Client) {
    client.socket.shutdown(Shutdown::Write).unwrap();
}

/// Ends the client's connection with a reset.
fn reset(client: Client) {
    client.socket.set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
}

/// A client whose converted query is in flight.
fn executing() -> Scene {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    scene
}

#[test]
fn the_server_hears_of_the_end_while_a_converted_query_runs() {
    let mut scene = executing();
    finish(&scene.client);
    assert!(scene.peer.is_closed());
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    drop(scene.peer);
    assert_eq!(scene.client.rest(), []);
}

#[test]
fn the_server_hears_of_a_reset_while_a_converted_query_runs() {
    let Scene {
        client,
        mut peer,
        stage,
        ..
    } = executing();
    reset(client);
    assert!(peer.is_closed());
    stage.proxy.await_connections(0);
}

#[test]
fn the_query_of_a_client_that_was_reset_is_sent_behind_its_lesson() {
    let Scene {
        mut client,
        mut peer,
        stage,
        ..
    } = met(&[]);
    client.send(&frames::query(SQL));
    peer.take("Q");
    reset(client);
    std::thread::sleep(Duration::from_millis(50));
    peer.answer_rows(&["sign", "", "", "1"]);
    peer.expect(&frames::query(SQL));
    assert!(peer.is_closed());
    drop(peer);
    stage.proxy.await_connections(0);
}

#[test]
fn the_end_that_a_client_has_asked_for_is_no_error() {
    let direct = server::address();
    let proxy = Proxy::start(&direct);
    let open_batch = frames::parse("", "SELECT 1", &[]);
    let behind = [terminate(), frames::query("SELECT 1, 'x'")].concat();
    for (bytes, finishes) in [(&open_batch, true), (&behind, false), (&terminate(), false)] {
        let answers = [&direct[..], proxy.address()].map(|address| {
            let mut client = Client::login(address, "postgres");
            client.send(bytes);
            if finishes {
                finish(&client);
            }
            client.rest()
        });
        assert_eq!(answers[1], answers[0], "{}", bytes.escape_ascii());
    }
}

#[test]
fn whoever_sends_and_leaves_has_written() {
    let database = server::database("CREATE TABLE t (a int, b text)");
    let proxy = Proxy::start(&server::address());
    let mut reader = Client::login(&server::address(), &database);
    for k in 0..12 {
        let mut client = Client::login(proxy.address(), &database);
        if k % 2 == 0 {
            client.run(&format!("INSERT INTO t VALUES (-{k}, 'known')"));
        }
        let insert = frames::query(&format!("INSERT INTO t VALUES ({k}, 'last')"));
        match k % 3 {
            0 => client.send(&insert),
            1 => client.send(&[insert, terminate()].concat()),
            _ => {
                client.send(&insert);
                std::thread::sleep(Duration::from_millis(k));
                client.send(&terminate());
            }
        }
        drop(client);
    }
    let count = "SELECT count(*) FROM t WHERE b = 'last'";
    let deadline = Instant::now() + Duration::from_secs(60);
    while reader.value(count) != "12" {
        let seen = reader.value(count);
        assert!(Instant::now() < deadline, "only {seen} have written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the server sleeps for `client`.
fn await_sleep(admin: &mut Client, client: &Client) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND wait_event = 'PgSleep'",
        client.key.0
    );
    while admin.value(&sql) != "1" {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the server can look whether its client is still there.
fn looks(admin: &mut Client) -> bool {
    let version = admin.value("SELECT current_setting('server_version_num')");
    version.as_str() >= "140000"
}

#[test]
fn a_client_that_has_finished_is_answered_if_the_server_does_not_mind() {
    let mut admin = Client::login(&server::address(), "postgres");
    let database = server::database("CREATE TABLE nap AS SELECT 1 AS id, 1 AS seconds");
    let direct = server::address();
    let proxy = Proxy::start(&direct);
    let nap = |id| format!("SELECT pg_sleep(seconds), 'x' FROM nap WHERE id = {id}");
    let minds = looks(&mut admin);
    for interval in if minds { &["0", "50"][..] } else { &[""] } {
        let answers = [&direct[..], proxy.address()].map(|address| {
            let mut client = Client::login(address, &database);
            if minds {
                client.run(&format!(
                    "SET client_connection_check_interval = {interval}"
                ));
            }
            client.queries(&[&nap(2), &nap(3)]);
            client.send(&frames::query(&nap(1)));
            await_sleep(&mut admin, &client);
            finish(&client);
            client.rest()
        });
        assert_eq!(answers[1], answers[0], "{interval}");
        let is_cut = *interval == "50";
        assert_eq!(answers[0].is_empty(), is_cut, "{:?}", answers[0]);
    }
    assert_eq!(proxy.converted() % 3, 0, "{}", proxy.summary());
}

#[test]
fn the_server_gives_up_the_query_of_a_client_that_has_gone() {
    let mut admin = Client::login(&server::address(), "postgres");
    let looks = looks(&mut admin);
    let database = server::database("CREATE TABLE nap AS SELECT 1 AS id, 3 AS seconds");
    let proxy = Proxy::start(&server::address());
    for how in ["closed", "reset"] {
        let mut client = Client::login(proxy.address(), &database);
        if looks {
            client.run("SET client_connection_check_interval = 100");
        }
        let nap = |id| format!("SELECT pg_sleep(seconds) FROM nap WHERE id = {id}");
        client.queries(&[&nap(2), &nap(3)]);
        let running = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND wait_event = 'PgSleep'",
            client.key.0
        );
        client.send(&frames::query(&nap(1)));
        await_sleep(&mut admin, &client);
        let started = Instant::now();
        if how == "reset" {
            reset(client);
        } else {
            drop(client);
        }
        while admin.value(&running) != "0" {
            std::thread::sleep(Duration::from_millis(5));
        }
        let gave_up = started.elapsed() < Duration::from_secs(2);
        // 13 does not look: there the query runs on, as it does directly.
        assert_eq!(gave_up, looks, "{how}: {:?}", started.elapsed());
    }
    assert!(proxy.converted() >= 2, "{}", proxy.summary());
}
