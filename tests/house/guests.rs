//! Reads of one client on another's connection: what goes where, and how guests come home.

use crate::frames::{self, complete, execution, frame, ready, row};
use crate::stage::scene::{SQL, answer, seen};
use crate::stage::script::SELECT;
use crate::stage::{Client, Peer, Scene, Stage, met};
use pgautoprep::metrics::Counter;

/// Milliseconds without an answer after which guests ask at home.
const STALL: u64 = 20;

/// A client and its server, with the name the server holds the statement under.
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) peer: Peer,
    pub(crate) name: String,
}

impl Line {
    /// The client asks, and its own server is to be asked.
    pub(crate) fn at_home(&mut self) {
        self.client.send(&frames::query(SQL));
        self.is_asked();
        self.answers();
    }

    /// This server has been sent one execution.
    pub(crate) fn is_asked(&mut self) {
        self.peer.expect(&execution(&self.name, &["42"]));
    }

    /// The server answers a read of its own client.
    pub(crate) fn answers(&mut self) {
        self.peer.send(&answer(&SELECT, b'I'));
        self.client.expect(&seen(&SELECT, b'I'));
    }
}

/// Three clients that are alike. The last one's connection is the host of what the others read.
pub(crate) struct Guests {
    pub(crate) stage: Stage,
    pub(crate) guest: Line,
    pub(crate) other: Line,
    pub(crate) host: Line,
}

pub(crate) fn guests() -> Guests {
    guests_with(&[])
}

fn guests_with(changes: &[(&str, &str)]) -> Guests {
    guests_after(changes, |_, _| {})
}

/// The same, of which the first has done something before its read was proven to travel.
fn guests_after(changes: &[(&str, &str)], before: impl FnOnce(&Stage, &mut Line)) -> Guests {
    let (stage, mut guest) = alone_with(changes);
    before(&stage, &mut guest);
    with_two_more(stage, guest)
}

/// One client, whose server has prepared its read.
pub(crate) fn alone() -> (Stage, Line) {
    alone_with(&[])
}

fn alone_with(changes: &[(&str, &str)]) -> (Stage, Line) {
    let shared = [("shared_reads", "on"), ("catalog_watch_ms", "3600000")];
    let changes = [&shared[..], changes].concat();
    let Scene {
        mut client,
        mut peer,
        stage,
        ..
    } = met(&changes);
    stage.proves_nothing();
    client.send(&frames::query(SQL));
    peer.answer_context();
    let name = peer.answer_oracle(&SELECT);
    let mut guest = Line { client, peer, name };
    guest.is_asked();
    guest.answers();
    (stage, guest)
}

/// One more client, whose server has prepared the read, too.
pub(crate) fn one_more(stage: &Stage) -> Line {
    let (mut client, mut peer) = crate::stage::scene::Stage::login(stage);
    client.send(&frames::query(SQL));
    peer.answer_context();
    let name = peer.answer_parse(&SELECT);
    let mut line = Line { client, peer, name };
    line.is_asked();
    line.answers();
    line
}

/// Two more clients that are like the first, whose read may run elsewhere from now on.
pub(crate) fn with_two_more(stage: Stage, guest: Line) -> Guests {
    let [other, host] = [(), ()].map(|()| one_more(&stage));
    stage.lets_travel(SQL);
    let mut guests = Guests {
        stage,
        guest,
        other,
        host,
    };
    // The first finds nobody to share with, and the second makes its own connection a host.
    guests.guest.at_home();
    guests.host.at_home();
    guests
}

impl Guests {
    /// A client asks on the host's connection.
    pub(crate) fn visits(&mut self) {
        self.guest.client.send(&frames::query(SQL));
        self.host.is_asked();
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        let summary = self.stage.summary();
        let shared = summary.count(Counter::ReadsShared);
        (shared, summary.count(Counter::ReadsEscaped))
    }

    /// The guest has asked at home, and is answered there.
    pub(crate) fn comes_home(&mut self) {
        self.guest.is_asked();
        self.guest.answers();
    }
}

#[test]
fn a_read_runs_on_the_connection_of_a_client_that_is_alike() {
    let mut scene = guests();
    for _ in 0..3 {
        scene.visits();
        scene.host.peer.send(&answer(&SELECT, b'I'));
        scene.guest.client.expect(&seen(&SELECT, b'I'));
    }
    assert!(scene.guest.peer.stream.is_silent());
    assert_eq!(scene.counts(), (4, 0));
    assert_eq!(scene.stage.converted(), 8);
}

/// Its own server is not read from while it does not read; those of others are.
#[test]
fn who_does_not_read_is_no_guest() {
    let mut scene = guests();
    let unsent = frame(b'D', &[b'x'; 40_000]);
    scene.stage.owes(&unsent);
    scene.guest.client.send(&frames::query(SQL));
    scene.guest.is_asked();
    scene.guest.client.expect(&unsent);
    scene.guest.answers();
    scene.visits();
}

#[test]
fn reads_of_several_go_together_and_each_gets_its_own_answer() {
    let mut scene = guests();
    for (line, value) in [(&mut scene.guest, "1"), (&mut scene.other, "2")] {
        let sql = format!("SELECT name FROM t WHERE id = {value}");
        line.client.send(&frames::query(&sql));
        scene
            .host
            .peer
            .expect(&execution(&scene.host.name, &[value]));
    }
    scene
        .host
        .client
        .send(&frames::query("SELECT name FROM t WHERE id = 3"));
    scene.host.peer.expect(&execution(&scene.host.name, &["3"]));
    let of = |value: &str| {
        let rows = [row(&[value]), complete("SELECT 1"), ready(b'I')].concat();
        let description = frames::description(&["name"]);
        let bound = frame(b'2', b"");
        (
            [bound, description.clone(), rows.clone()].concat(),
            [description, rows].concat(),
        )
    };
    let answers = ["1", "2", "3"].map(of);
    let all: Vec<u8> = answers.iter().flat_map(|(said, _)| said.clone()).collect();
    // Cut where it hurts.
    for piece in all.chunks(7) {
        scene.host.peer.send(piece);
    }
    scene.guest.client.expect(&answers[0].1);
    scene.other.client.expect(&answers[1].1);
    scene.host.client.expect(&answers[2].1);
    assert_eq!(scene.counts(), (4, 0));
}

#[test]
fn a_guest_whose_read_fails_hears_the_error_from_its_own_server() {
    let mut scene = guests();
    scene.visits();
    let failed = [frames::error("22012", "division by zero"), ready(b'I')].concat();
    scene.host.peer.send(&failed);
    scene.comes_home();
    assert_eq!(scene.counts(), (1, 1));
    // It stays there for a time.
    scene.guest.at_home();
}

#[test]
fn an_answer_that_fails_half_way_is_not_begun() {
    let mut scene = guests();
    scene.visits();
    let begun = [
        frame(b'2', b""),
        frames::description(&["name"]),
        row(&["Ann"]),
    ];
    scene.host.peer.send(&begun.concat());
    assert!(scene.guest.client.socket.is_silent());
    scene.host.peer.send(&frames::error("57014", "canceled"));
    scene.host.peer.send(&ready(b'I'));
    scene.comes_home();
}

#[test]
fn an_answer_too_large_to_be_held_comes_from_home() {
    let mut scene = guests();
    scene.visits();
    let large = row(&[&"x".repeat(40_000)]);
    let end = [complete("SELECT 1"), ready(b'I')].concat();
    let description = [frame(b'2', b""), frames::description(&["name"])].concat();
    for piece in [description, large, end].concat().chunks(9_000) {
        scene.host.peer.send(piece);
    }
    scene.comes_home();
    scene.guest.at_home();
}

#[test]
fn whoever_has_the_connection_waits_until_its_guests_have_gone() {
    let mut scene = guests();
    scene.visits();
    scene.host.client.send(&frames::query("BEGIN"));
    assert!(scene.host.peer.stream.is_silent());
    // Nobody else is let in meanwhile: the next one's own connection is a host.
    scene.other.client.send(&frames::query(SQL));
    scene.other.is_asked();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
    scene.host.peer.expect(&frames::query("BEGIN"));
    scene.other.answers();
    let begun = [complete("BEGIN"), ready(b'T')].concat();
    scene.host.peer.send(&begun);
    scene.host.client.expect(&begun);
    // A connection with a transaction has no guests.
    scene.guest.client.send(&frames::query(SQL));
    scene.other.is_asked();
    scene.other.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
}

#[test]
fn what_is_no_query_waits_for_the_guests_too() {
    let mut scene = guests();
    scene.visits();
    let batch = [frames::parse("", "SELECT 1", &[]), frames::sync()].concat();
    scene.host.client.send(&batch);
    assert!(scene.host.peer.stream.is_silent());
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
    scene.host.peer.take("CCPS");
    let parsed = [frame(b'1', b""), ready(b'I')].concat();
    scene.host.peer.send(&frame(b'3', b"").repeat(2));
    scene.host.peer.send(&parsed);
    scene.host.client.expect(&parsed);
    // It is like no other from now on.
    scene.guest.at_home();
}

#[test]
fn guests_of_a_server_that_makes_no_progress_ask_at_home() {
    let mut scene = guests();
    scene.visits();
    scene.other.client.send(&frames::query(SQL));
    scene.host.is_asked();
    scene.stage.advance(STALL - 1);
    assert!(scene.guest.peer.stream.is_silent());
    scene.stage.advance(1);
    scene.comes_home();
    scene.other.is_asked();
    scene.other.answers();
    // The client of the connection waits until the server has been told, and has done with them.
    scene.host.client.send(&frames::query("BEGIN"));
    assert_eq!(scene.stage.hastens(), 1);
    assert!(scene.host.peer.stream.is_silent());
    let cancelled = [frames::error("57014", "canceled"), ready(b'I')].concat();
    scene.host.peer.send(&cancelled);
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.host.peer.expect(&frames::query("BEGIN"));
    let begun = [complete("BEGIN"), ready(b'T')].concat();
    scene.host.peer.send(&begun);
    scene.host.client.expect(&begun);
    assert_eq!(scene.counts(), (1, 2));
}

#[test]
fn nothing_is_sent_before_the_server_has_been_told_to_cancel() {
    let mut scene = guests();
    scene.visits();
    scene.stage.advance(STALL);
    scene.comes_home();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.host.client.send(&frames::query("BEGIN"));
    assert!(scene.host.peer.stream.is_silent());
    // What it says unasked meanwhile is not kept back.
    let news = frames::notification(7, "news", "all");
    scene.host.peer.send(&news);
    scene.host.client.expect(&news);
    assert_eq!(scene.stage.hastens(), 1);
    scene.host.peer.expect(&frames::query("BEGIN"));
}

#[test]
fn a_server_that_does_not_end_what_it_is_asked_to_is_asked_less_and_less() {
    let mut scene = guests();
    scene.visits();
    scene.stage.advance(STALL);
    scene.comes_home();
    assert_eq!(scene.stage.hastens(), 1);
    for doubled in [2, 4, 8] {
        scene.stage.advance(doubled * STALL - 1);
        assert_eq!(scene.stage.hastens(), 0);
        scene.stage.advance(1);
        assert_eq!(scene.stage.hastens(), 1);
    }
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.host.at_home();
}

#[test]
fn a_guest_that_is_cancelled_while_away_is_cancelled_when_it_comes_home() {
    let mut scene = guests();
    scene.visits();
    let key = (7, vec![1; 4]);
    scene.guest.client.socket.request_cancel(&key);
    scene.guest.client.socket.deliver_cancel();
    scene.stage.advance(STALL);
    let question = scene.guest.peer.take("Q").remove(0).body;
    assert!(question.starts_with(b"SELECT pg_catalog.pg_cancel_backend"));
    let cancelled = [frames::error("57014", "canceled"), ready(b'I')].concat();
    scene.guest.peer.send(&cancelled);
    scene.guest.client.expect(&cancelled);
}

#[test]
fn a_host_that_is_cancelled_while_it_waits_is_answered_as_cancelled() {
    let mut scene = guests();
    scene.visits();
    scene
        .host
        .client
        .send(&frames::query("SELECT 1 FROM pg_class"));
    let key = (7, vec![3; 4]);
    scene.host.client.socket.request_cancel(&key);
    // It hits the guest.
    let cancelled = [frames::error("57014", "canceled"), ready(b'I')].concat();
    scene.host.peer.send(&cancelled);
    scene.comes_home();
    scene.host.client.socket.deliver_cancel();
    scene.host.peer.take("Q");
    scene.host.peer.send(&cancelled);
    scene.host.client.expect(&cancelled);
}

#[test]
fn the_last_word_to_a_host_is_heard_by_its_client_alone() {
    let mut scene = guests();
    scene.visits();
    let fields = ["SFATAL", "VFATAL", "C57P01", "Mterminated"];
    let last = frames::report(b'E', &fields);
    scene.host.peer.send(&last);
    scene.host.client.expect(&last);
    scene.comes_home();
    scene.host.peer.stream.finish();
    assert_eq!(scene.host.client.rest(), []);
    scene.guest.at_home();
}

#[test]
fn the_guests_of_a_server_that_dies_ask_at_home() {
    let mut scene = guests();
    scene.visits();
    scene.host.peer.stream.finish();
    assert_eq!(scene.host.client.rest(), []);
    scene.comes_home();
}

#[test]
fn the_guests_of_a_client_that_leaves_ask_at_home() {
    let mut scene = guests();
    scene.visits();
    // Its server reads what was sent before the end.
    scene.host.client.socket.finish();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
    assert!(scene.host.peer.is_closed());
    scene.guest.at_home();
}

#[test]
fn a_setting_that_is_reported_on_the_way_is_the_hosts_and_ends_the_visits() {
    let mut scene = guests();
    scene.visits();
    let said = frames::parameter("TimeZone", "Asia/Tokyo");
    scene.host.peer.send(&said);
    scene.host.client.expect(&said);
    scene.comes_home();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    assert!(scene.guest.client.socket.is_silent());
}

#[test]
fn a_client_is_not_away_from_home_for_long() {
    let mut scene = guests();
    for step in 0..30 {
        scene.stage.advance(100);
        scene.guest.client.send(&frames::query(SQL));
        let is_away = scene.guest.peer.stream.is_silent();
        assert_eq!(is_away, step % 10 != 9, "step {step}");
        match is_away {
            true => {
                scene.host.is_asked();
                scene.host.peer.send(&answer(&SELECT, b'I'));
                scene.guest.client.expect(&seen(&SELECT, b'I'));
            }
            false => scene.comes_home(),
        }
    }
}

#[test]
fn what_travelling_saves_is_found_out_at_home_and_then_no_other_route_is_tried() {
    let mut scene = guests_with(&[("trials", "on"), ("statement_max_age_s", "86400")]);
    let saved = |scene: &Guests| scene.stage.summary().count(Counter::MicrosSaved);
    let mut originals = Vec::new();
    for round in 0..600 {
        // Long enough ago for the read to go home.
        scene.stage.advance(1_100);
        scene.guest.client.send(&frames::query(SQL));
        scene.stage.advance(1);
        if scene.guest.peer.next().tag == b'Q' {
            originals.push(round);
            scene.stage.advance(1);
            scene.guest.peer.send(&seen(&SELECT, b'I'));
            scene.guest.client.expect(&seen(&SELECT, b'I'));
        } else {
            scene.guest.peer.take("DES");
            scene.guest.answers();
        }
    }
    assert_eq!(originals.len(), 9, "{originals:?}");
    assert!(originals.last() < Some(&500), "{originals:?}");
    // Each of the last hundred has saved a millisecond, and so does one that is run elsewhere.
    assert!(saved(&scene) >= 100_000, "{}", saved(&scene));
    let before = loop {
        let before = saved(&scene);
        scene.guest.client.send(&frames::query(SQL));
        if !scene.host.peer.stream.is_silent() {
            break before;
        }
        scene.guest.is_asked();
        scene.guest.answers();
        scene.host.at_home();
    };
    scene.host.is_asked();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
    assert_eq!(saved(&scene) - before, 1_000);
}

#[test]
fn where_transactions_travel_no_other_route_is_tried_for_what_travels() {
    let changes = [
        ("trials", "on"),
        ("statement_max_age_s", "86400"),
        ("deferred_begin", "on"),
        ("unlocked_reads", "on"),
    ];
    let mut scene = guests_with(&changes);
    for _ in 0..200 {
        scene.stage.advance(1_100);
        scene.guest.at_home();
    }
}

/// By the text a read takes a millisecond more, which is known before it may run elsewhere.
#[test]
fn what_a_read_saves_at_home_it_saves_elsewhere() {
    let changes = [("trials", "on"), ("statement_max_age_s", "86400")];
    let mut scene = guests_after(&changes, |stage, guest| {
        for _ in 0..600 {
            guest.client.send(&frames::query(SQL));
            stage.advance(1);
            if guest.peer.next().tag == b'Q' {
                stage.advance(1);
                guest.peer.send(&seen(&SELECT, b'I'));
                guest.client.expect(&seen(&SELECT, b'I'));
            } else {
                guest.peer.take("DES");
                guest.answers();
            }
        }
    });
    let saved = |scene: &Guests| scene.stage.summary().count(Counter::MicrosSaved);
    let before = saved(&scene);
    scene.visits();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
    assert_eq!(saved(&scene) - before, 1_000);
}

#[test]
fn a_session_that_has_become_another_reads_at_home() {
    for sql in [
        "LISTEN news",
        "SELECT pg_advisory_lock(1)",
        "CREATE TEMP TABLE x (a int)",
    ] {
        let mut scene = guests();
        scene.guest.client.send(&frames::query(sql));
        let done = [complete("DONE"), ready(b'I')].concat();
        while let Some(frame) = Some(scene.guest.peer.next()) {
            let is_it = frame.body.starts_with(sql.as_bytes());
            scene.guest.peer.send(&done);
            if is_it {
                break;
            }
        }
        scene.guest.client.expect(&done);
        scene.guest.client.send(&frames::query(SQL));
        assert!(scene.host.peer.stream.is_silent(), "{sql}");
        assert!(!scene.guest.peer.stream.is_silent(), "{sql}");
        std::mem::forget(scene);
    }
}

#[test]
fn a_guest_whose_own_server_dies_is_told_and_not_answered() {
    let mut scene = guests();
    scene.visits();
    scene.guest.peer.stream.finish();
    let rest = scene.guest.client.rest();
    assert_eq!(rest.len(), 1, "its query was in flight: {rest:?}");
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.other.client.send(&frames::query(SQL));
    scene.host.is_asked();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.other.client.expect(&seen(&SELECT, b'I'));
}

/// Others wait behind it. Any read may take long once in a while.
#[test]
fn a_read_that_takes_long_elsewhere_is_sent_home() {
    let mut scene = guests();
    let mut answers = |long: bool| {
        scene.visits();
        scene.stage.advance(if long { 6 } else { 1 });
        scene.host.peer.send(&answer(&SELECT, b'I'));
        scene.guest.client.expect(&seen(&SELECT, b'I'));
    };
    for step in 0..60 {
        answers(step % 6 == 0);
    }
    for _ in 0..9 {
        answers(true);
    }
    for _ in 0..2 {
        scene.guest.client.send(&frames::query(SQL));
        scene.comes_home();
    }
    assert_eq!(scene.counts().1, 0, "none was sent twice");
    scene.stage.advance(300);
    scene.visits();
    scene.host.peer.send(&answer(&SELECT, b'I'));
    scene.guest.client.expect(&seen(&SELECT, b'I'));
}
