//! DISCARD ALL from sessions of which it is known what they have left.

use crate::cancel::{cancel_itself, cancelled, delivered};
use crate::frames::{self, complete, execution, frame, query, ready, row, tags};
use crate::stage::scene::{SQL, answer, relay, seen};
use crate::stage::script::{CONTEXT, SELECT};
use crate::stage::{Scene, learned};
use pgautoprep::metrics::Counter;

/// The catalog is looked at, so that it is known what a session may have left.
const ON: [(&str, &str); 1] = [("catalog_watch_ms", "3600000")];

const TEXT: &str = "DISCARD ALL";
const LOCKS: &str = "SELECT pg_advisory_lock(1) /* pgautoprep: off */";
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()";

fn done(tag: &str) -> Vec<u8> {
    [complete(tag), ready(b'I')].concat()
}

/// The client says DISCARD ALL, for which the server is told so much.
fn discards(scene: &mut Scene, texts: &[&str]) {
    scene.client.send(&query(TEXT));
    let told: Vec<u8> = texts.iter().flat_map(|text| query(text)).collect();
    scene.peer.expect_at_once(&told);
}

fn spared(scene: &Scene) -> u64 {
    scene.stage.summary().count(Counter::DiscardsSpared)
}

/// The statement is there still.
fn executes(scene: &mut Scene) {
    scene.client.send(&query(SQL));
    scene.peer.expect(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
}

#[test]
fn what_is_prepared_stays_where_nothing_else_would_go() {
    let mut scene = learned(SQL, &SELECT, &ON);
    for (text, piece) in [("DISCARD ALL", usize::MAX), ("discard all;", 1)] {
        scene.stage.cut_into(piece);
        scene.client.send(&query(text));
        scene.stage.cut_into(usize::MAX);
        scene.peer.expect_at_once(&query("RESET ALL"));
        // What comes meanwhile waits.
        scene.client.send(&query(SQL));
        assert!(scene.peer.stream.is_silent());
        let report = frames::parameter("application_name", "reset");
        let reset = [complete("RESET"), report.clone(), ready(b'I')].concat();
        scene.peer.send(&reset);
        let discarded = [complete(TEXT), report, ready(b'I')].concat();
        scene.client.expect(&discarded);
        if piece > 1 {
            // Where that leads is asked once.
            scene.peer.take("Q");
            scene.peer.answer_rows(&CONTEXT);
        }
        scene.peer.expect(&execution(&scene.name, &["42"]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    assert_eq!(spared(&scene), 2);
}

#[test]
fn what_was_left_goes() {
    let mut scene = learned(SQL, &SELECT, &ON);
    for text in [LOCKS, "SELECT nextval('s') /* pgautoprep: off */"] {
        relay(&mut scene, text, &done("SELECT 1"));
    }
    discards(&mut scene, &[UNLOCK, "DISCARD SEQUENCES", "RESET ALL"]);
    let unlocked = [frame(b'T', b"\0\0"), row(&[""]), done("SELECT 1")].concat();
    scene.peer.send(&unlocked);
    scene.peer.send(&done("DISCARD SEQUENCES"));
    scene.peer.send(&done("RESET"));
    scene.client.expect(&done(TEXT));
    // The settings are others now: where that has led is asked.
    scene.client.send(&query(SQL));
    scene.peer.take("Q");
    scene.peer.answer_rows(&CONTEXT);
    scene.peer.expect(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    // And is not taken away once more.
    discards(&mut scene, &["RESET ALL"]);
}

#[test]
fn what_only_discard_all_takes_away_is_left_to_it() {
    for (text, tag) in [
        ("LISTEN a", "LISTEN"),
        ("CREATE TEMP TABLE a ()", "CREATE TABLE"),
        ("PREPARE a AS SELECT 1", "PREPARE"),
        ("SET ROLE a", "SET"),
        ("SET my.a = 1", "SET"),
    ] {
        let mut scene = learned(SQL, &SELECT, &ON);
        relay(&mut scene, text, &done(tag));
        relay(&mut scene, TEXT, &done(TEXT));
        assert_eq!(spared(&scene), 0, "{text}");
    }
}

#[test]
fn behind_a_discard_of_the_servers_own_nothing_is_left() {
    let mut scene = learned(SQL, &SELECT, &ON);
    relay(&mut scene, "LISTEN a", &done("LISTEN"));
    relay(&mut scene, TEXT, &done(TEXT));
    // Where that has led is asked, and what it took away is prepared again.
    scene.client.send(&query(SQL));
    scene.peer.take("Q");
    scene.peer.answer_rows(&CONTEXT);
    scene.name = scene.peer.answer_parse(&SELECT);
    scene.peer.expect(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    discards(&mut scene, &["RESET ALL"]);
    scene.peer.send(&done("RESET"));
    scene.client.expect(&done(TEXT));
    assert_eq!(spared(&scene), 1);
}

#[test]
fn a_session_that_is_told_of_its_statements_has_them_as_they_are() {
    let mut scene = learned(SQL, &SELECT, &ON);
    let loud = "SET client_min_messages = 'log'";
    relay(&mut scene, loud, &done("SET"));
    relay(&mut scene, TEXT, &done(TEXT));
    assert_eq!(spared(&scene), 0);
}

#[test]
fn of_what_is_sent_behind_a_discard_something_may_be_left() {
    let mut scene = learned(SQL, &SELECT, &ON);
    relay(&mut scene, "LISTEN a", &done("LISTEN"));
    scene
        .client
        .send(&[query(TEXT), query("LISTEN b")].concat());
    scene
        .peer
        .expect(&[query(TEXT), query("LISTEN b")].concat());
    scene.peer.send(&[done(TEXT), done("LISTEN")].concat());
    scene.client.expect(&[done(TEXT), done("LISTEN")].concat());
    relay(&mut scene, TEXT, &done(TEXT));
}

#[test]
fn inside_a_transaction_it_is_for_the_server_to_refuse() {
    let mut scene = learned(SQL, &SELECT, &ON);
    let begin = "BEGIN READ ONLY";
    relay(
        &mut scene,
        begin,
        &[complete("BEGIN"), ready(b'T')].concat(),
    );
    let refused = [frames::error("25001", "in a block"), ready(b'E')].concat();
    relay(&mut scene, TEXT, &refused);
    assert_eq!(spared(&scene), 0);
}

#[test]
fn what_fails_is_done_by_the_server_itself() {
    for failing in 0..2 {
        let mut scene = learned(SQL, &SELECT, &ON);
        relay(&mut scene, LOCKS, &done("SELECT 1"));
        discards(&mut scene, &[UNLOCK, "RESET ALL"]);
        let failed = [frames::error("57014", "too slow"), ready(b'I')].concat();
        let notice = frames::notice("by the way");
        for (index, tag) in ["SELECT 1", "RESET"].into_iter().enumerate() {
            let said = if index == failing {
                failed.clone()
            } else {
                done(tag)
            };
            scene.peer.send(&[notice.clone(), said].concat());
        }
        scene.peer.expect_at_once(&query(TEXT));
        scene.peer.send(&done(TEXT));
        scene
            .client
            .expect(&[notice.repeat(2), done(TEXT)].concat());
    }
}

#[test]
fn a_request_ends_it() {
    let mut scene = learned(SQL, &SELECT, &ON);
    discards(&mut scene, &["RESET ALL"]);
    delivered(&scene);
    scene.peer.send(&cancelled(b'I'));
    cancel_itself(&mut scene, b'I');
    scene.client.expect(&cancelled(b'I'));
    // Nothing of it is still to come.
    executes(&mut scene);
}

#[test]
fn a_server_that_ends_meanwhile_is_told_of() {
    let mut scene = learned(SQL, &SELECT, &ON);
    discards(&mut scene, &["RESET ALL"]);
    scene.peer.stream.finish();
    let last = scene.client.rest();
    assert_eq!(tags(&last), "E");
    assert_eq!(last[0].sqlstate(), "08006");
}
