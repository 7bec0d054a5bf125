//! Requests to cancel, and ends of sessions, while a client leaves and while what it has left is
//! taken back, at every byte: whoever comes next notices nothing of it.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, complete, frame, ready};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::harness::upstream::{Peer, Scene};
use crate::parked::{arrive, is_parked, leave, used};
use crate::warm::{SETUP, until_woken};
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

type Key = (u32, Vec<u8>);

fn request(scene: &Scene, key: &Key) -> Client {
    let mut request = Client::connect(scene.stage.proxy.address());
    request.send(&frames::cancel(key.0, &key.1));
    request
}

fn parked(scene: &Scene) -> u64 {
    scene.stage.proxy.summary().count(Counter::Parked)
}

/// A connection in which a setting was changed, whose client has left, with the client's key.
fn resetting() -> (Scene, Peer, Key) {
    let (scene, mut client, mut peer, _) = used();
    let set = frames::query("SET work_mem = '7MB'");
    client.send(&set);
    peer.expect_at_once(&set);
    let answer = [complete("SET"), ready(b'I')].concat();
    peer.send(&answer);
    client.expect(&answer);
    let key = client.key.clone();
    leave(&mut client);
    peer.expect_at_once(&frames::query("RESET ALL"));
    (scene, peer, key)
}

/// A request that comes in the middle of a client's last message, and has not reached the server
/// when that is over: it might hit whoever is given the connection, so nobody is.
#[test]
fn a_request_in_the_middle_of_the_last_word_hits_nobody_who_comes_next() {
    let last = frame(b'X', b"");
    for end in 0..last.len() {
        let (scene, mut client, mut peer, _) = used();
        client.send(&last[..end]);
        let mut request = request(&scene, &client.key);
        let mut server = scene.stage.upstream.accept();
        server.expect(&frames::cancel(7, b"abcd"));
        client.send(&last[end..]);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(parked(&scene), 0, "{end}");
        drop(server);
        assert_eq!(request.rest(), []);
        // It is the server's to end, as if nothing were kept.
        peer.expect(&last);
        drop(peer);
        assert_eq!(client.rest(), []);
        // Held, for what it leaves would be kept.
        let _next = scene.login();
        assert_eq!(parked(&scene), 0, "{end}");
    }
}

/// The key of a client that has left is worth nothing at any byte of what is taken back behind it,
/// and neither is the server's own.
#[test]
fn a_request_in_the_middle_of_a_reset_reaches_nobody() {
    let answer = [complete("RESET"), ready(b'I')].concat();
    for end in 0..=answer.len() {
        let (scene, mut peer, key) = resetting();
        peer.send(&answer[..end]);
        for key in [&key, &(7, b"abcd".to_vec())] {
            assert_eq!(request(&scene, key).rest(), [], "{end}");
        }
        peer.send(&answer[end..]);
        is_parked(&scene);
        arrive(&scene).logged_in();
        // Neither for a request, nor for a login of its own.
        scene.stage.upstream.nobody_waits();
    }
}

/// A server that ends the session in the middle of a reset, in its own words: nobody is given it,
/// and whoever comes logs in as if it had never been there.
#[test]
fn a_session_that_is_killed_in_the_middle_of_a_reset_is_given_to_nobody() {
    let answer = [complete("RESET"), ready(b'I')].concat();
    let fatal = ["SFATAL", "VFATAL", "C57P01", "Mterminating connection"];
    let killed = frames::report(b'E', &fatal);
    for end in 0..answer.len() {
        let (scene, mut peer, _) = resetting();
        peer.send(&[&answer[..end], &killed].concat());
        drop(peer);
        let (mut other, mut server) = scene.login();
        assert_eq!(parked(&scene), 0, "{end}");
        other.send(&frames::query("SHOW work_mem"));
        server.expect(&frames::query("SHOW work_mem"));
    }
}

/// An administrator ends or cancels a session of a real server at whatever moment of all that, past
/// the proxy. The next client comes in, and finds the settings of a fresh login.
#[test]
fn whoever_ends_or_cancels_a_session_that_is_left_spoils_nothing_for_the_next() {
    let proxy = Proxy::with(&server::address(), &[("catalog_watch_ms", "1000")]);
    let database = server::database(SETUP);
    let mut admin = Client::login(&server::address(), "postgres");
    let select = "SELECT name FROM t WHERE id = 7";
    let work = |client: &mut Client| assert_eq!(client.value(select), "name 7");
    let usual = Client::login(&server::address(), &database).value("SHOW work_mem");
    leave(&mut until_woken(&proxy, &database, work).0);
    for round in 0..60_u32 {
        let mut client = Client::login(proxy.address(), &database);
        work(&mut client);
        client.run("SET work_mem = '7MB'; SET datestyle = 'German'");
        let pid = client.key.0;
        client.send(&frame(b'X', b""));
        std::thread::sleep(Duration::from_micros(u64::from(round / 2) * 25));
        if round % 2 == 0 {
            admin.query(&format!("SELECT pg_cancel_backend({pid})"));
        } else {
            admin.query(&format!("SELECT pg_terminate_backend({pid})"));
            let count = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
            let started = Instant::now();
            while admin.value(&count) != "0" {
                assert!(started.elapsed() < PATIENCE, "it goes on");
            }
        }
        let mut next = Client::login(proxy.address(), &database);
        work(&mut next);
        assert_eq!(next.value("SHOW work_mem"), usual, "{round}");
        assert_eq!(
            next.value("SELECT '2020-01-31'::date"),
            "2020-01-31",
            "{round}"
        );
        leave(&mut next);
    }
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
}
