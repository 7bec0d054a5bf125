//! Transactions of which the client is told before the server: what carries the BEGIN, when the
//! server is told of it alone, and what becomes of one that fails.

use crate::cancel::{cancel_itself, cancelled, delivered};
use crate::frames::{self, complete, frame, query, ready, tags};
use crate::stage::scene::{SQL, answer, relay, seen};
use crate::stage::script::SELECT;
use crate::stage::{Scene, execution_in_block, learned};
use pgautoprep::metrics::Counter;

/// The catalog is looked at, so that it is known what a session may have left.
const ON: [(&str, &str); 2] = [("deferred_begin", "on"), ("catalog_watch_ms", "3600000")];

/// What the server says to the BEGIN of a batch.
fn begun() -> Vec<u8> {
    [frame(b'1', b""), frame(b'2', b""), complete("BEGIN")].concat()
}

/// The BEGIN in front of an execution.
fn carrier(text: &str) -> Vec<u8> {
    [
        frames::parse("", text, &[]),
        frames::bind("", "", &[]),
        frames::execute("", 0),
    ]
    .concat()
}

/// A client that knows a statement, and has begun a transaction of which the server knows nothing.
fn promised(text: &str, tag: &str) -> Scene {
    let mut scene = learned(SQL, &SELECT, &ON);
    promise(&mut scene, text, tag);
    scene
}

fn promise(scene: &mut Scene, text: &str, tag: &str) {
    scene.client.send(&query(text));
    scene.client.expect(&[complete(tag), ready(b'T')].concat());
    assert!(scene.peer.stream.is_silent());
}

fn carried(scene: &Scene) -> u64 {
    scene.stage.summary().count(Counter::BeginsCarried)
}

/// The server is told to begin again, whatever it has made of the first BEGIN, and does.
fn begins_again(scene: &mut Scene) {
    let again = ["ROLLBACK", "BEGIN"].map(query).concat();
    scene.peer.expect_at_once(&again);
    let rolled_back = [complete("ROLLBACK"), ready(b'I')].concat();
    scene.peer.send(&rolled_back);
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
}

/// Ends the transaction.
fn commit(scene: &mut Scene) {
    relay(scene, "COMMIT", &[complete("COMMIT"), ready(b'I')].concat());
}

#[test]
fn a_begin_rides_with_the_statement_behind_it() {
    for (text, tag) in [
        ("BEGIN", "BEGIN"),
        ("start transaction;", "START TRANSACTION"),
    ] {
        for piece in [usize::MAX, 1] {
            let mut scene = promised(text, tag);
            scene.stage.cut_into(piece);
            scene.client.send(&query(SQL));
            let up = [carrier(text), execution_in_block(&scene.name, &["42"])].concat();
            scene.peer.expect(&up);
            let begun = [frame(b'1', b""), frame(b'2', b""), complete(tag)].concat();
            scene.peer.send(&[begun, answer(&SELECT, b'T')].concat());
            scene.client.expect(&seen(&SELECT, b'T'));
            assert_eq!(carried(&scene), 1);
            // The next is as any other.
            scene.client.send(&query(SQL));
            scene.peer.expect(&execution_in_block(&scene.name, &["42"]));
            scene.peer.send(&answer(&SELECT, b'T'));
            scene.client.expect(&seen(&SELECT, b'T'));
            scene.stage.cut_into(usize::MAX);
            commit(&mut scene);
        }
    }
}

#[test]
fn what_is_said_unasked_comes_through_beside_a_begin() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(SQL));
    scene.peer.take("PBEBDECS");
    let status = frames::parameter("application_name", "x");
    let parts = [
        status.clone(),
        frame(b'1', b""),
        status.clone(),
        frame(b'2', b""),
        complete("BEGIN"),
        status.clone(),
        answer(&SELECT, b'T'),
    ];
    scene.peer.send(&parts.concat());
    scene
        .client
        .expect(&[status.repeat(3), seen(&SELECT, b'T')].concat());
}

#[test]
fn the_server_is_told_alone_if_nothing_follows() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.stage.advance(1);
    scene.peer.expect_at_once(&query("BEGIN"));
    // What comes meanwhile waits for the answer.
    scene.client.send(&query(SQL));
    assert!(scene.peer.stream.is_silent());
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    scene
        .peer
        .expect_at_once(&execution_in_block(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
    assert_eq!(carried(&scene), 0);
}

#[test]
fn what_cannot_carry_a_begin_waits_for_it() {
    let text = "SET LOCAL work_mem = '8MB'";
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(text));
    scene.peer.expect_at_once(&query("BEGIN"));
    assert!(scene.peer.stream.is_silent());
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    scene.peer.expect_at_once(&query(text));
    let answer = [complete("SET"), ready(b'T')].concat();
    scene.peer.send(&answer);
    scene.client.expect(&answer);
}

#[test]
fn a_message_of_the_other_protocol_waits_for_the_begin() {
    let batch = [frames::parse("", "SELECT 1", &[]), frames::sync()].concat();
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&batch);
    scene.peer.expect_at_once(&query("BEGIN"));
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    assert_eq!(tags(&scene.peer.take("CCPS")), "CCPS");
    scene.peer.send(
        &[
            frame(b'3', b""),
            frame(b'3', b""),
            frame(b'1', b""),
            ready(b'T'),
        ]
        .concat(),
    );
    scene
        .client
        .expect(&[frame(b'1', b""), ready(b'T')].concat());
    commit(&mut scene);
    // From now on it might see what carries a BEGIN.
    relay(
        &mut scene,
        "BEGIN",
        &[complete("BEGIN"), ready(b'T')].concat(),
    );
}

#[test]
fn a_client_that_leaves_has_begun_before() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&frame(b'X', b""));
    scene.peer.expect_at_once(&query("BEGIN"));
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    scene.peer.expect_at_once(&frame(b'X', b""));
}

#[test]
fn nothing_runs_behind_a_begin_that_fails() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(SQL));
    scene.peer.take("PBEBDECS");
    let failed = [frames::error("53200", "out of memory"), ready(b'I')].concat();
    scene.peer.send(&failed);
    let again = ["ROLLBACK", "BEGIN"].map(query).concat();
    scene.peer.expect_at_once(&again);
    let warning = frames::notice("there is no transaction in progress");
    scene
        .peer
        .send(&[warning, complete("ROLLBACK"), ready(b'I')].concat());
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    scene.peer.expect_at_once(&query(SQL));
    scene.peer.send(&seen(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
}

#[test]
fn a_transaction_that_cannot_begin_ends_the_client() {
    let failed = [frames::error("53200", "out of memory"), ready(b'I')].concat();
    let over = |scene: &mut Scene| {
        let last = scene.client.rest();
        assert_eq!(tags(&last), "E");
        assert_eq!(last[0].sqlstate(), "08006");
    };
    // Of its own, told alone.
    let mut scene = promised("BEGIN", "BEGIN");
    scene.stage.advance(1);
    scene.peer.expect_at_once(&query("BEGIN"));
    scene.peer.send(&failed);
    over(&mut scene);
    // And with a statement behind it.
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(SQL));
    scene.peer.take("PBEBDECS");
    scene.peer.send(&failed);
    scene.peer.take("QQ");
    scene
        .peer
        .send(&[complete("ROLLBACK"), ready(b'I')].concat());
    scene.peer.send(&failed);
    over(&mut scene);
}

#[test]
fn a_request_that_hits_the_begin_ends_the_statement_in_its_transaction() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(SQL));
    scene.peer.take("PBEBDECS");
    delivered(&scene);
    scene.peer.send(&cancelled(b'I'));
    begins_again(&mut scene);
    cancel_itself(&mut scene, b'E');
    scene.client.expect(&cancelled(b'E'));
}

#[test]
fn a_request_of_an_idle_client_does_not_end_its_transaction() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.stage.advance(1);
    scene.peer.expect_at_once(&query("BEGIN"));
    delivered(&scene);
    scene.peer.send(&cancelled(b'I'));
    begins_again(&mut scene);
    scene.client.send(&query(SQL));
    scene
        .peer
        .expect_at_once(&execution_in_block(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
}

#[test]
fn a_statement_that_fails_behind_its_begin_is_tried_again_in_the_transaction() {
    let mut scene = promised("BEGIN", "BEGIN");
    scene.client.send(&query(SQL));
    scene.peer.take("PBEBDECS");
    let ours = frames::error("22P02", "ours");
    scene.peer.send(&[begun(), ours, ready(b'E')].concat());
    begins_again(&mut scene);
    scene.peer.expect_at_once(&query(SQL));
    let theirs = [frames::error("22P02", "theirs"), ready(b'E')].concat();
    scene.peer.send(&theirs);
    scene.client.expect(&theirs);
}

#[test]
fn clients_that_are_slow_to_go_on_are_not_held_up_again_and_again() {
    let mut scene = learned(SQL, &SELECT, &ON);
    let mut held = Vec::new();
    for round in 0..40 {
        scene.client.send(&query("BEGIN"));
        let is_held = scene.peer.stream.is_silent();
        if is_held {
            scene
                .client
                .expect(&[complete("BEGIN"), ready(b'T')].concat());
            held.push(round);
            scene.stage.advance(1);
        }
        scene.peer.expect_at_once(&query("BEGIN"));
        let begun = [complete("BEGIN"), ready(b'T')].concat();
        scene.peer.send(&begun);
        if !is_held {
            scene.client.expect(&begun);
        }
        commit(&mut scene);
    }
    assert_eq!(held, [0, 1, 3, 7, 15, 31]);
}

#[test]
fn a_session_that_may_listen_begins_at_once() {
    let mut scene = learned(SQL, &SELECT, &ON);
    relay(
        &mut scene,
        "LISTEN news",
        &[complete("LISTEN"), ready(b'I')].concat(),
    );
    relay(
        &mut scene,
        "BEGIN",
        &[complete("BEGIN"), ready(b'T')].concat(),
    );
}

#[test]
fn a_server_that_goes_says_no_more_of_a_begin_than_of_an_idle_transaction() {
    for is_told in [false, true] {
        let mut scene = promised("BEGIN", "BEGIN");
        if is_told {
            scene.stage.advance(1);
            scene.peer.expect_at_once(&query("BEGIN"));
        }
        scene.peer.stream.finish();
        assert!(scene.client.rest().is_empty());
    }
}
