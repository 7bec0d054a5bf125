//! Reads whose statement is not prepared at home: where they run, and what becomes of them there.

use crate::frames::{self, complete, ready, row};
use crate::guests::{Guests, Line, alone, guests};
use crate::stage::Stage;
use crate::stage::scene::{SQL, answer, seen};
use crate::stage::script::SELECT;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// What the stranger has learned, so that its context is known.
const OTHER: &str = "SELECT name FROM u WHERE id = 42";

/// Three that are alike, and one more whose connection does not hold the statement that they share:
/// it has to be met oftener there than it is.
fn with_a_stranger() -> (Guests, Line) {
    let scene = guests();
    let stranger = stranger(&scene.stage);
    (scene, stranger)
}

fn stranger(stage: &Stage) -> Line {
    let (mut client, mut peer) = crate::stage::scene::Stage::login(stage);
    client.send(&frames::query(OTHER));
    peer.answer_context();
    let name = peer.answer_oracle(&SELECT);
    let mut stranger = Line { client, peer, name };
    stranger.is_asked();
    stranger.answers();
    stage.waits_for_more();
    stranger
}

/// What a server says to the original.
fn original() -> Vec<u8> {
    let rows = [row(&["Ann"]), complete("SELECT 1"), ready(b'I')].concat();
    [frames::description(&["name"]), rows].concat()
}

/// The original is sent to the stranger's own server, whose answer is handed on as it is.
fn goes_through(stranger: &mut Line) {
    stranger.peer.expect(&frames::query(SQL));
    stranger.peer.send(&original());
    stranger.client.expect(&original());
}

#[test]
fn a_read_that_is_not_prepared_at_home_runs_where_it_is() {
    let (mut scene, mut stranger) = with_a_stranger();
    let before = scene.stage.converted();
    stranger.client.send(&frames::query(SQL));
    scene.host.is_asked();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    stranger.client.expect(&seen(&SELECT, b'I'));
    assert!(stranger.peer.stream.is_silent());
    assert_eq!(scene.counts(), (2, 0));
    assert_eq!(scene.stage.converted(), before + 1);
}

/// Nobody visits anybody, so the connection that has the statement is not known as a host.
#[test]
fn a_read_that_is_not_prepared_at_home_runs_where_only_its_client_reads() {
    let (stage, mut reader) = alone();
    stage.lets_travel(SQL);
    let mut stranger = stranger(&stage);
    // All connections are looked through only once in a while.
    stage.advance(60);
    for _ in 0..2 {
        stranger.client.send(&frames::query(SQL));
        reader.is_asked();
        reader.peer.send(&answer(&SELECT, b'I'));
        stranger.client.expect(&seen(&SELECT, b'I'));
    }
    assert!(stranger.peer.stream.is_silent());
    assert_eq!(stage.summary().count(Counter::ReadsShared), 2);
    reader.at_home();
}

#[test]
fn a_read_that_fails_elsewhere_goes_through_at_home() {
    let (mut scene, mut stranger) = with_a_stranger();
    stranger.client.send(&frames::query(SQL));
    scene.host.is_asked();
    let failed = [frames::error("22012", "division by zero"), ready(b'I')].concat();
    scene.host.peer.send(&failed);
    goes_through(&mut stranger);
    assert_eq!(scene.counts(), (1, 1));
    assert_eq!(scene.stage.summary().passed(Reason::Threshold), 1);
}

#[test]
fn a_read_that_finds_no_host_goes_through_at_home() {
    let (mut scene, mut stranger) = with_a_stranger();
    let begins = frames::query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    let begun = [complete("BEGIN"), ready(b'T')].concat();
    for line in [&mut scene.guest, &mut scene.other, &mut scene.host] {
        line.client.send(&begins);
        line.peer.expect(&begins);
        line.peer.send(&begun);
        line.client.expect(&begun);
    }
    stranger.client.send(&frames::query(SQL));
    goes_through(&mut stranger);
    assert_eq!(scene.stage.summary().count(Counter::ReadsShared), 1);
}

#[test]
fn whoever_is_not_alike_is_no_guest_without_a_statement_either() {
    let (scene, mut stranger) = with_a_stranger();
    let locks = frames::query("SELECT pg_advisory_lock(1)");
    let done = [complete("SELECT 1"), ready(b'I')].concat();
    stranger.client.send(&locks);
    stranger.peer.expect(&locks);
    stranger.peer.send(&done);
    stranger.client.expect(&done);
    stranger.client.send(&frames::query(SQL));
    goes_through(&mut stranger);
    assert!(scene.host.peer.stream.is_silent());
    assert_eq!(scene.counts(), (1, 0));
}

#[test]
fn who_only_observes_has_nothing_run_elsewhere() {
    let (scene, mut stranger) = with_a_stranger();
    scene.stage.only_observes();
    stranger.client.send(&frames::query(SQL));
    // What is prepared is not needed any more.
    stranger.peer.take("CQ");
    let closed = frames::frame(b'3', b"");
    stranger.peer.send(&[closed, original()].concat());
    stranger.client.expect(&original());
    assert_eq!(scene.counts(), (1, 0));
}

#[test]
fn what_is_prepared_where_it_is_used_often_is_no_visit_without() {
    let (mut scene, mut stranger) = with_a_stranger();
    for round in 1..3 {
        stranger.client.send(&frames::query(SQL));
        scene.host.is_asked();
        scene.host.peer.send(&answer(&SELECT, b'I'));
        stranger.client.expect(&seen(&SELECT, b'I'));
        assert_eq!(scene.counts(), (1 + round, 0));
    }
    stranger.client.send(&frames::query(SQL));
    stranger.name = stranger.peer.answer_parse(&SELECT);
    stranger.is_asked();
    stranger.answers();
}
