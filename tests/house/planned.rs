//! Reads that are planned for their values each time, on another client's connection: the statement
//! is parsed anew there, too, before the server might plan it once.

use crate::frames::{self, execution, frame, ready};
use crate::guests::{Guests, Line, with_two_more};
use crate::recovery::{renewal, specific_with};
use crate::stage::Scene;
use crate::stage::scene::{SQL, answer, seen};
use crate::stage::script::SELECT;
use pgautoprep::metrics::Counter;

/// Executions behind which the server might plan a statement once.
const CUSTOM_PLANS: usize = 5;

/// Milliseconds without an answer after which guests ask at home.
const STALL: u64 = 20;

/// Three clients that are alike, whose read is planned for its values. On the last one's
/// connection, where the others read, it counts as planned three times.
fn guests() -> Guests {
    let shared = [("shared_reads", "on"), ("catalog_watch_ms", "3600000")];
    let Scene {
        client,
        peer,
        stage,
        name,
        ..
    } = specific_with(SQL, &shared);
    with_two_more(stage, Line { client, peer, name })
}

/// What the server says of a statement that it has parsed anew.
fn renewed() -> Vec<u8> {
    [frame(b'3', b""), frame(b'1', b"")].concat()
}

impl Guests {
    /// The host's statement may be planned once the next time.
    fn is_spent(&mut self) {
        for _ in 3..CUSTOM_PLANS {
            self.visits();
            self.is_answered(&[]);
        }
    }

    /// The guest asks on the host's connection, where the statement is parsed anew for that.
    fn visits_anew(&mut self) {
        self.guest.client.send(&frames::query(SQL));
        let name = &self.host.name;
        let sent = [renewal(name), execution(name, &["42"])].concat();
        self.host.peer.expect_at_once(&sent);
    }

    /// The host's server answers with this in front.
    fn is_answered(&mut self, before: &[u8]) {
        let whole = [before, &answer(&SELECT, b'I')].concat();
        self.host.peer.send(&whole);
        self.guest.client.expect(&seen(&SELECT, b'I'));
    }
}

#[test]
fn a_statement_is_parsed_anew_on_the_host_before_its_sixth_plan() {
    let mut scene = guests();
    let before = scene.stage.summary();
    scene.is_spent();
    for _ in 0..2 {
        scene.visits_anew();
        scene.is_answered(&renewed());
        for _ in 1..CUSTOM_PLANS {
            scene.visits();
            scene.is_answered(&[]);
        }
    }
    assert!(scene.guest.peer.stream.is_silent());
    let after = scene.stage.summary();
    let count = |counter| after.count(counter) - before.count(counter);
    assert_eq!(count(Counter::StatementsRenewed), 2);
    assert_eq!(count(Counter::ReadsShared), 2 + 2 * 5);
    assert_eq!(count(Counter::ReadsEscaped), 0);
}

#[test]
fn the_answer_is_whole_however_it_is_cut() {
    let whole = [renewed(), answer(&SELECT, b'I')].concat();
    for end in 1..whole.len() {
        let mut scene = guests();
        scene.is_spent();
        scene.visits_anew();
        scene.host.peer.send(&whole[..end]);
        scene.host.peer.send(&whole[end..]);
        scene.guest.client.expect(&seen(&SELECT, b'I'));
        scene.visits();
        scene.is_answered(&[]);
    }
}

#[test]
fn a_statement_that_cannot_be_parsed_anew_is_gone_from_the_host() {
    let mut scene = guests();
    scene.is_spent();
    scene.visits_anew();
    let failed = frames::error("42P01", "no such table");
    let end = [frame(b'3', b""), failed, ready(b'I')].concat();
    scene.host.peer.send(&end);
    scene.comes_home();
    assert_eq!(scene.counts().1, 1);
    // Its own client asks for it again, and no Close is owed.
    scene.host.client.send(&frames::query(SQL));
    scene.host.name = scene.host.peer.answer_parse(&SELECT);
    scene.host.is_asked();
}

#[test]
fn what_is_cancelled_while_it_is_parsed_anew_is_gone_or_not_as_the_server_says() {
    for is_parsed in [false, true] {
        let mut scene = guests();
        scene.is_spent();
        scene.visits_anew();
        scene.stage.advance(STALL);
        assert_eq!(scene.stage.hastens(), 1);
        scene.comes_home();
        let cancelled = frames::error("57014", "canceled");
        let said = match is_parsed {
            true => renewed(),
            false => frame(b'3', b"").to_vec(),
        };
        scene
            .host
            .peer
            .send(&[said, cancelled, ready(b'I')].concat());
        scene.host.client.send(&frames::query(SQL));
        if !is_parsed {
            scene.host.name = scene.host.peer.answer_parse(&SELECT);
        }
        scene.host.is_asked();
    }
}
