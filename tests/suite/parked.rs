//! Warm connections to a scripted server, which does what no real one would.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, complete, execution, frame, ready};
use crate::harness::scene::{SQL, answer, seen};
use crate::harness::script::{SELECT, greeting};
use crate::harness::upstream::{Peer, Scene, learned};
use pgautoprep::metrics::Counter;
use std::time::{Duration, Instant};

/// Nothing is looked at in between.
const SLOWLY: [(&str, &str); 1] = [("catalog_watch_ms", "60000")];

/// A proxy that knows the database, and a client that has had its query executed on a connection
/// that may be left to another.
pub(crate) fn used() -> (Scene, Client, Peer, String) {
    used_with(&SLOWLY)
}

fn used_with(changes: &[(&str, &str)]) -> (Scene, Client, Peer, String) {
    let scene = learned(SQL, &SELECT, changes);
    let (mut client, mut peer) = scene.login();
    client.send(&frames::query(SQL));
    peer.answer_context();
    let name = peer.answer_parse(&SELECT);
    peer.expect_at_once(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
    (scene, client, peer, name)
}

pub(crate) fn leave(client: &mut Client) {
    client.send(&frame(b'X', b""));
    assert_eq!(client.rest(), []);
}

/// The same whose client has left.
fn parked() -> (Scene, Client, Peer, String) {
    let (scene, mut client, peer, name) = used();
    leave(&mut client);
    assert_eq!(scene.stage.proxy.summary().count(Counter::Parked), 1);
    (scene, client, peer, name)
}

/// Waits until a connection is kept for another client.
pub(crate) fn is_parked(scene: &Scene) {
    let started = Instant::now();
    while scene.stage.proxy.summary().count(Counter::Parked) == 0 {
        assert!(started.elapsed() < PATIENCE, "it is not kept");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connects and sends the startup packet.
pub(crate) fn arrive(scene: &Scene) -> Client {
    let mut client = Client::connect(scene.stage.proxy.address());
    client.send(&frames::startup(&[("user", "me"), ("database", "db")]));
    client
}

/// Fails unless the connection is closed, so that the next client gets one of its own.
fn is_gone(mut peer: Peer) {
    while !matches!(peer.stream.peek(&mut [0]), Ok(0) | Err(_)) {
        peer.next();
    }
}

#[test]
fn the_successor_is_welcomed_as_the_predecessor_was_but_for_the_key() {
    let (scene, first, mut peer, name) = parked();
    let mut client = arrive(&scene);
    let frames = client.logged_in();
    let mut expected = frames::cut(&greeting()).0;
    let key = expected.iter_mut().find(|frame| frame.tag == b'K').unwrap();
    key.body = [&7_u32.to_be_bytes()[..], &client.key.1].concat();
    assert_eq!(frames, expected);
    assert_eq!(client.key.0, first.key.0);
    assert!(client.key.1 != first.key.1 && client.key.1 != b"abcd");
    scene.stage.upstream.nobody_waits();
    client.send(&frames::query(SQL));
    peer.expect_at_once(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
    let summary = scene.stage.proxy.summary();
    assert_eq!(summary.count(Counter::Woken), 1, "{summary}");
}

#[test]
fn what_follows_the_last_word_of_the_predecessor_reaches_nobody() {
    let (scene, mut client, mut peer, name) = used();
    let more = [
        frame(b'X', b""),
        frames::query("DROP TABLE t"),
        vec![b'x'; 100_000],
    ]
    .concat();
    // The proxy may close its end before it has all of that.
    let _ = std::io::Write::write_all(&mut client.socket, &more);
    drop(client);
    is_parked(&scene);
    let mut client = arrive(&scene);
    client.logged_in();
    client.send(&frames::query(SQL));
    peer.expect_at_once(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
}

#[test]
fn a_connection_that_says_anything_while_nobody_listens_is_closed() {
    let sayings = [
        frames::parameter("TimeZone", "Asia/Tokyo"),
        frames::parameter("client_encoding", "UTF8"),
        frames::notice("hello"),
        frames::error(
            "57P01",
            "terminating connection due to administrator command",
        ),
        // Errors that lack what every error has.
        frames::report(b'E', &["Mno state"]),
        frames::report(b'E', &["SFATAL"]),
        frame(b'E', b""),
        frame(b'E', b"\0"),
        frame(b'E', b"C57P01"),
        frames::notification(7, "a", "b"),
        ready(b'I'),
        b"N".to_vec(),
        b"N\0\0\0\0".to_vec(),
        b"D\x7f\xff\xff\xff".to_vec(),
        vec![0; 70_000],
    ];
    for saying in sayings {
        let (scene, _, mut peer, _) = parked();
        peer.send(&saying);
        is_gone(peer);
        drop(scene.login());
    }
    let (scene, _, peer, _) = parked();
    drop(peer);
    // The proxy has to have seen it.
    std::thread::sleep(Duration::from_millis(50));
    drop(scene.login());
}

#[test]
fn nobody_waits_for_ever() {
    let changes = [SLOWLY[0], ("server_idle_timeout_s", "1")];
    let (_scene, mut client, mut peer, _) = used_with(&changes);
    leave(&mut client);
    peer.expect(&frame(b'X', b""));
    assert!(peer.is_closed());
    // Nor for an answer.
    let (_scene, mut client, mut peer, _) = used_with(&changes);
    let reset = frames::query("RESET ALL");
    client.send(&reset);
    peer.expect_at_once(&reset);
    peer.send(&[complete("RESET"), ready(b'I')].concat());
    client.expect(&[complete("RESET"), ready(b'I')].concat());
    leave(&mut client);
    peer.expect(&[reset, frame(b'X', b"")].concat());
    assert!(peer.is_closed());
}

#[test]
fn an_old_connection_is_closed_when_its_client_leaves() {
    let (_scene, mut client, mut peer, _) = used_with(&[SLOWLY[0], ("server_lifetime_s", "1")]);
    std::thread::sleep(Duration::from_secs(1));
    leave(&mut client);
    assert!(peer.is_closed());
}

/// A connection in which a setting was changed, whose client has left, and which is asked to take
/// that back.
fn resetting() -> (Scene, Peer) {
    let (scene, mut client, mut peer, _) = used();
    client.send(&frames::query("SET datestyle = 'German'"));
    peer.expect_at_once(&frames::query("SET datestyle = 'German'"));
    let answer = [
        complete("SET"),
        frames::parameter("DateStyle", "German"),
        ready(b'I'),
    ];
    peer.send(&answer.concat());
    client.expect(&answer.concat());
    leave(&mut client);
    peer.expect_at_once(&frames::query("RESET ALL"));
    (scene, peer)
}

#[test]
fn a_reset_that_is_not_answered_as_it_should_ends_the_connection() {
    let tag = || complete("RESET");
    let answers = [
        [frames::error("57014", "canceling"), ready(b'I')].concat(),
        [frames::report(b'E', &["Mno state"]), ready(b'I')].concat(),
        [frame(b'E', b""), ready(b'I')].concat(),
        [frame(b'E', b"C57014"), ready(b'I')].concat(),
        [complete("SET"), ready(b'I')].concat(),
        [tag(), ready(b'T')].concat(),
        [tag(), tag(), ready(b'I')].concat(),
        [tag(), ready(b'I'), ready(b'I')].concat(),
        [tag(), frames::notice("x"), ready(b'I')].concat(),
        // It was never reported at the login.
        [tag(), ready(b'I')].concat(),
        [
            frames::parameter("client_encoding", "LATIN1"),
            tag(),
            ready(b'I'),
        ]
        .concat(),
    ];
    for answer in answers {
        let (scene, mut peer) = resetting();
        peer.send(&answer);
        is_gone(peer);
        let other = scene.login();
        let summary = scene.stage.proxy.summary();
        assert_eq!(summary.count(Counter::Parked), 0, "{answer:?}");
        drop(other);
    }
}

#[test]
fn a_reset_that_breaks_off_after_any_byte_gives_nobody_anything() {
    let answer = [
        complete("RESET"),
        frames::parameter("DateStyle", "ISO, MDY"),
        ready(b'I'),
    ]
    .concat();
    for end in 0..answer.len() {
        let (scene, mut peer) = resetting();
        peer.send(&answer[..end]);
        drop(peer);
        // When that has left, its own may be kept.
        let other = scene.login();
        let summary = scene.stage.proxy.summary();
        assert_eq!(summary.count(Counter::Parked), 0, "{end}");
        drop(other);
    }
}

#[test]
fn what_a_server_still_has_to_say_is_heard_out() {
    let (scene, mut peer) = resetting();
    let (mut other, mut server) = scene.login();
    let text = frames::query("DROP DATABASE elsewhere");
    other.send(&text);
    server.expect(&text);
    peer.expect(&frame(b'X', b""));
    // Where nobody takes what it says, a server counts the session as abandoned.
    let wait = Duration::from_millis(100);
    peer.stream.set_read_timeout(Some(wait)).unwrap();
    let error = peer.stream.peek(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    peer.send(&[complete("RESET"), ready(b'I')].concat());
}

#[test]
fn nobody_is_given_a_connection_before_it_is_reset() {
    let (scene, mut client, mut peer, _) = used();
    let set = "SET work_mem = '7MB'";
    client.send(&frames::query(set));
    peer.expect_at_once(&frames::query(set));
    peer.send(&[complete("SET"), ready(b'I')].concat());
    client.expect(&[complete("SET"), ready(b'I')].concat());
    leave(&mut client);
    peer.expect_at_once(&frames::query("RESET ALL"));
    let answer = [complete("RESET"), ready(b'I')].concat();
    let mut others = Vec::new();
    for byte in &answer {
        others.push(scene.login());
        peer.send(&[*byte]);
    }
    is_parked(&scene);
    arrive(&scene).logged_in();
    scene.stage.upstream.nobody_waits();
}

#[test]
fn a_key_that_was_given_back_cancels_nothing() {
    let (scene, first, _peer, _) = parked();
    for key in [&first.key, &(7, b"abcd".to_vec())] {
        let mut request = Client::connect(scene.stage.proxy.address());
        request.send(&frames::cancel(key.0, &key.1));
        assert_eq!(request.rest(), []);
        scene.stage.upstream.nobody_waits();
    }
}

#[test]
fn who_is_asked_for_a_password_never_gets_a_warm_connection() {
    let (scene, _, peer, _) = parked();
    // Another identity: nothing is warm for it, so the server is asked.
    let mut other = Client::connect(scene.stage.proxy.address());
    other.send(&frames::startup(&[("user", "other"), ("database", "db")]));
    let mut server = scene.stage.upstream.accept();
    server.expect(&frames::startup(&[("user", "other"), ("database", "db")]));
    server.send(&frame(b'R', b"\0\0\0\x03"));
    other.expect(&frame(b'R', b"\0\0\0\x03"));
    other.send(&frame(b'p', b"secret\0"));
    server.expect(&frame(b'p', b"secret\0"));
    server.send(&greeting());
    other.logged_in();
    other.send(&frame(b'X', b""));
    server.expect(&frame(b'X', b""));
    drop(peer);
}

#[test]
fn warm_connections_make_room_for_a_login_that_finds_none() {
    let full = || frames::report(b'E', &["SFATAL", "VFATAL", "C53300", "Mtoo many"]);
    let packet = frames::startup(&[("user", "other"), ("database", "db")]);
    for said in [Vec::new(), frame(b'R', &[0; 4])] {
        let (scene, _, mut peer, _) = parked();
        for tries in [2, 1] {
            let mut other = Client::connect(scene.stage.proxy.address());
            other.send(&packet);
            for _ in 0..tries {
                let mut server = scene.stage.upstream.accept();
                server.expect(&packet);
                server.send(&[said.clone(), full()].concat());
            }
            other.expect(&[said.clone(), full()].concat());
            assert_eq!(other.rest(), []);
        }
        peer.expect(&frame(b'X', b""));
        assert!(peer.is_closed());
    }
    let (scene, _, _peer, _) = parked();
    let mut other = Client::connect(scene.stage.proxy.address());
    other.send(&packet);
    let mut server = scene.stage.upstream.accept();
    server.send(&[frame(b'R', &[0; 4]), full()].concat());
    let mut server = scene.stage.upstream.accept();
    server.expect(&packet);
    server.send(&greeting());
    assert_eq!(frames::tags(&other.logged_in()), "RSSSSKZ");
}
