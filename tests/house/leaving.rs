//! Clients that say that they have nothing more to say, or leave, while their query is in flight.

use crate::frames::{self, frame, ready};
use crate::stage::scene::{SQL, answer, begin, relay, seen};
use crate::stage::script::SELECT;
use crate::stage::{Scene, learned, met};
use pgautoprep::hub::GRACE;

/// Terminate.
fn terminate() -> Vec<u8> {
    frame(b'X', b"")
}

/// A client whose converted query is in flight.
fn executing() -> Scene {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    scene
}

#[test]
fn the_server_hears_of_the_end_once_no_error_is_to_be_expected() {
    let mut scene = executing();
    scene.client.socket.finish();
    scene.stage.advance(GRACE - 1);
    assert!(scene.peer.stream.is_silent());
    scene.stage.advance(1);
    assert!(scene.peer.is_closed());
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    drop(scene.peer);
    assert_eq!(scene.client.rest(), []);
}

#[test]
fn what_was_sent_before_the_end_comes_before_it() {
    let Scene {
        mut client,
        mut peer,
        stage,
        ..
    } = executing();
    client.send(&[frames::query(SQL), frames::query("COMMIT"), terminate()].concat());
    drop(client);
    assert!(peer.stream.is_silent());
    stage.advance(GRACE);
    peer.expect(&[frames::query(SQL), frames::query("COMMIT"), terminate()].concat());
    assert!(peer.is_closed());
    drop(peer);
    assert!(stage.is_empty());
}

#[test]
fn a_query_that_fails_to_bind_is_still_sent_again_for_a_client_that_has_finished() {
    let mut scene = executing();
    scene.client.socket.finish();
    scene
        .peer
        .send(&[frames::error("22P02", "invalid"), ready(b'I')].concat());
    scene.peer.expect(&frames::query(SQL));
    assert!(scene.peer.is_closed());
    let exact = [frames::error("22P02", "exact"), ready(b'I')].concat();
    scene.peer.send(&exact);
    scene.client.expect(&exact);
}

#[test]
fn inside_a_transaction_the_server_hears_of_the_end_at_once() {
    let mut scene = learned(SQL, &SELECT, &[]);
    begin(&mut scene);
    let done = [frames::complete("SAVEPOINT"), ready(b'T')].concat();
    relay(&mut scene, "SAVEPOINT a", &done);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDECS");
    scene.client.socket.finish();
    assert!(scene.peer.is_closed());
}

/// A client whose query is being learned.
fn learning() -> Scene {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    scene
}

#[test]
fn a_lesson_ends_when_its_client_has_finished_and_the_query_is_sent() {
    let mut scene = learning();
    scene.client.socket.finish();
    scene.peer.answer_rows(&["sign", "", "", "1"]);
    scene.peer.expect(&frames::query(SQL));
    assert!(scene.peer.is_closed());
    scene.peer.send(&seen(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
}

#[test]
fn the_query_of_a_client_that_has_gone_is_sent_behind_its_lesson() {
    for how in ["closed", "terminated"] {
        let Scene {
            mut client,
            mut peer,
            stage,
            ..
        } = learning();
        if how == "terminated" {
            client.send(&terminate());
        }
        drop(client);
        peer.answer_rows(&["sign", "", "", "1"]);
        peer.expect(&frames::query(SQL));
        if how == "terminated" {
            peer.expect(&terminate());
        }
        assert!(peer.is_closed(), "{how}");
        drop(peer);
        assert!(stage.is_empty());
    }
}
