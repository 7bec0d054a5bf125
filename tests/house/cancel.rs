//! Cancel requests that hit what the proxy asks for a query, or what it does to send it again.

use crate::frames::{self, complete, ready, row, tags};
use crate::stage::scene::{SQL, begin};
use crate::stage::script::{SELECT, parsed};
use crate::stage::{Scene, learned, met};
use pgautoprep::hub::Unheard;

/// Sends a cancel request that the server has dealt with.
pub(crate) fn delivered(scene: &Scene) {
    scene.client.socket.request_cancel(&scene.client.key);
    scene.client.socket.deliver_cancel();
}

/// Nothing has come for the client.
fn hears_nothing(scene: &Scene) {
    assert!(scene.client.socket.is_silent());
}

/// A request that comes while the first question of a lesson is in flight.
fn cancelled_lesson() -> Scene {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    delivered(&scene);
    scene
}

/// What a server says to whom it cancels.
pub(crate) fn cancelled(status: u8) -> Vec<u8> {
    [frames::error("57014", "canceling statement"), ready(status)].concat()
}

/// Expects that the server is asked to cancel itself, and has it do so.
pub(crate) fn cancel_itself(scene: &mut Scene, status: u8) {
    let sql = "SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";
    scene.peer.expect_at_once(&frames::query(sql));
    let row = [frames::description(&["pg_cancel_backend"]), row(&["t"])].concat();
    scene.peer.send(&[row, cancelled(status)].concat());
}

/// The next query is learned and executed as if nothing had been.
fn goes_on(scene: &mut Scene) {
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    let name = scene.peer.answer_oracle(&SELECT);
    scene
        .peer
        .expect_at_once(&frames::execution(&name, &["42"]));
}

#[test]
fn a_cancelled_lesson_is_a_cancelled_query() {
    let mut scene = cancelled_lesson();
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
    goes_on(&mut scene);
}

#[test]
fn a_request_between_two_questions_ends_the_query() {
    let mut scene = cancelled_lesson();
    scene.peer.answer_rows(&["sign", "", "", "1"]);
    cancel_itself(&mut scene, b'I');
    scene.client.expect(&cancelled(b'I'));
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    let name = scene.peer.answer_oracle(&SELECT);
    scene
        .peer
        .expect_at_once(&frames::execution(&name, &["42"]));
}

#[test]
fn a_lesson_that_was_cancelled_is_given_again() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    // The statement is parsed twice, and then there is no further question.
    scene.peer.take("PBECPDSPBECPDS");
    delivered(&scene);
    let parsed = [parsed(&["name"], &[]), parsed(&["name"], &[23])].concat();
    scene.peer.send(&parsed);
    cancel_itself(&mut scene, b'I');
    scene.client.expect(&cancelled(b'I'));
    scene.client.send(&frames::query(SQL));
    scene.peer.take("C");
    scene.peer.send(&frames::frame(b'3', b""));
    let name = scene.peer.answer_oracle(&SELECT);
    scene
        .peer
        .expect_at_once(&frames::execution(&name, &["42"]));
}

#[test]
fn a_server_that_may_not_cancel_itself_ends_the_query_all_the_same() {
    let mut scene = cancelled_lesson();
    scene.peer.answer_rows(&["sign", "", "", "1"]);
    scene.peer.take("Q");
    scene
        .peer
        .send(&[frames::error("42501", "denied"), ready(b'I')].concat());
    let answer = scene.client.until_ready();
    assert_eq!(tags(&answer), "EZ");
    assert_eq!(answer[0].sqlstate(), "57014");
}

#[test]
fn the_answer_to_a_cancelled_query_waits_for_the_request_to_arrive() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    scene.client.socket.request_cancel(&scene.client.key);
    scene.peer.send(&cancelled(b'I'));
    hears_nothing(&scene);
    scene.client.socket.deliver_cancel();
    scene.client.expect(&cancelled(b'I'));
    goes_on(&mut scene);
}

#[test]
fn a_question_that_somebody_else_cancels_ends_the_query() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
    goes_on(&mut scene);
}

#[test]
fn a_request_before_the_last_query_cancels_nothing() {
    let mut scene = met(&[]);
    delivered(&scene);
    goes_on(&mut scene);
}

#[test]
fn a_query_that_is_about_to_be_sent_again_is_cancelled() {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    scene.peer.send(&frames::error("22P02", "invalid"));
    delivered(&scene);
    scene.peer.send(&ready(b'I'));
    cancel_itself(&mut scene, b'I');
    scene.client.expect(&cancelled(b'I'));
    scene.client.send(&frames::query(SQL));
    scene
        .peer
        .expect_at_once(&frames::execution(&scene.name, &["42"]));
}

#[test]
fn a_query_whose_transaction_is_begun_again_is_cancelled_in_it() {
    for hit in [false, true] {
        let mut scene = learned(SQL, &SELECT, &[]);
        begin(&mut scene);
        scene.client.send(&frames::query(SQL));
        scene.peer.take("BDECS");
        let gone = [frames::error("22P02", "invalid"), ready(b'E')].concat();
        scene.peer.send(&gone);
        let again = ["ROLLBACK", "BEGIN"].map(frames::query).concat();
        let ended = [complete("ROLLBACK"), ready(b'I')].concat();
        let begun = [complete("BEGIN"), ready(b'T')].concat();
        scene.peer.expect_at_once(&again);
        if hit {
            // By another session: the proxy knows of it by the error alone.
            scene.peer.send(&[&ended[..], &cancelled(b'I')].concat());
            scene.peer.expect_at_once(&again);
        } else {
            delivered(&scene);
        }
        scene.peer.send(&[ended, begun].concat());
        cancel_itself(&mut scene, b'E');
        scene.client.expect(&cancelled(b'E'));
    }
}

#[test]
fn nothing_runs_outside_a_transaction_that_cannot_begin_again() {
    let mut scene = learned(SQL, &SELECT, &[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDECS");
    scene
        .peer
        .send(&[frames::error("22P02", "invalid"), ready(b'E')].concat());
    scene.peer.take("QQ");
    let failed = [frames::error("53200", "no memory"), ready(b'I')].concat();
    scene
        .peer
        .send(&[complete("ROLLBACK"), ready(b'I')].concat());
    scene.peer.send(&failed);
    let last = scene.client.rest();
    assert_eq!((&*tags(&last), &*last[0].sqlstate()), ("E", "08006"));
}

/// Two requests have come for a query, and somebody has the server told once more for each of them.
#[test]
fn a_client_is_held_back_until_all_have_let_go_who_insist() {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    delivered(&scene);
    let (one, found) = scene.client.socket.insist();
    assert_eq!(found, Unheard::Statement);
    let (other, found) = scene.client.socket.insist();
    assert_eq!(found, Unheard::Statement);
    scene.peer.send(&cancelled(b'I'));
    scene.client.expect(&cancelled(b'I'));
    scene.client.send(&frames::query(SQL));
    // Who finds that nothing runs any more has held nobody back, and lets nobody go.
    let (late, found) = scene.client.socket.insist();
    assert_eq!(found, Unheard::Not);
    for lets_go in [late, other] {
        scene.client.socket.relent(&lets_go);
        assert!(scene.peer.stream.is_silent(), "another has not let go");
    }
    scene.client.socket.relent(&one);
    scene.peer.take("BDES");
}
