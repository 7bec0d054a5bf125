//! Lessons inside a client's transaction: what they ask is undone, and whatever happens to them,
//! the transaction does not notice.

use crate::cancel::{cancel_itself, cancelled, delivered};
use crate::frames::{self, Frame, complete, ready};
use crate::stage::scene::{SQL, answer, begin, relay, seen};
use crate::stage::script::{self, CONTEXT, SELECT, plan};
use crate::stage::{Scene, execution_in_block, learned, met};
use pgautoprep::reason::Reason;

const ENTER: &str = "SAVEPOINT _pgautoprep; SHOW transaction_isolation";
const UNDO: &str = "ROLLBACK TO SAVEPOINT _pgautoprep";
const LEAVE: &str = "RELEASE SAVEPOINT _pgautoprep";

fn text(frame: &Frame) -> String {
    let end = frame.body.len().saturating_sub(1);
    String::from_utf8_lossy(&frame.body[..end]).into_owned()
}

fn status(mut answer: Vec<u8>, status: u8) -> Vec<u8> {
    if let Some(last) = answer.last_mut() {
        *last = status;
    }
    answer
}

/// Answers ENTER.
fn enter(scene: &mut Scene, level: &str) {
    assert_eq!(text(&scene.peer.next()), ENTER);
    let rows = [frames::row(&[level]), complete("SHOW"), ready(b'T')].concat();
    scene.peer.send(&rows);
}

fn expect(scene: &mut Scene, texts: &[&str]) {
    for wanted in texts {
        assert_eq!(text(&scene.peer.next()), *wanted);
        scene.peer.send(&[complete("OK"), ready(b'T')].concat());
    }
}

/// Answers one step with one question by one row.
fn step(scene: &mut Scene, mentions: &str, row: &[&str]) {
    enter(scene, "read committed");
    let question = text(&scene.peer.next());
    assert!(question.contains(mentions), "{question}");
    let rows = if row.is_empty() {
        Vec::new()
    } else {
        frames::row(row)
    };
    scene
        .peer
        .send(&[rows, complete("SELECT 1"), ready(b'T')].concat());
    expect(scene, &[UNDO, LEAVE]);
}

/// Answers what comes before the statement's own questions.
fn answer_context(scene: &mut Scene) {
    step(scene, "concat_ws('|', (SELECT", &["sign", "", "", "1"]);
    step(scene, "; SELECT EXISTS (", &["t", "t"]);
    step(scene, "p.prorettype", &[]);
    step(scene, "SHOW ALL", &CONTEXT);
}

/// Answers the Parse of the original and of the statement; returns its name.
fn answer_parse(scene: &mut Scene) -> String {
    enter(scene, "read committed");
    let mut name = String::new();
    for types in [&[][..], SELECT.types] {
        let frames = scene.peer.take("PBECPDS");
        name = text(&frames[4]).split('\0').next().unwrap().to_owned();
        scene
            .peer
            .send(&status(script::parsed(SELECT.columns, types), b'T'));
        expect(scene, &[UNDO]);
    }
    expect(scene, &[LEAVE]);
    name
}

fn answer_plans(scene: &mut Scene) {
    enter(scene, "read committed");
    let [original, generic] = SELECT.plans;
    for drawn in [original, original, generic] {
        assert!(text(&scene.peer.next()).contains("EXPLAIN"));
        let row = frames::row(&[&plan(drawn)]);
        scene
            .peer
            .send(&[row, complete("EXPLAIN"), ready(b'T')].concat());
        expect(scene, &[UNDO]);
    }
    expect(scene, &[LEAVE]);
}

#[test]
fn a_shape_met_inside_a_transaction_is_learned_there() {
    let mut scene = met(&[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    answer_context(&mut scene);
    let name = answer_parse(&mut scene);
    answer_plans(&mut scene);
    scene
        .peer
        .expect_at_once(&execution_in_block(&name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
}

/// Its transaction may see other rights than others do, and others must not be told of those.
#[test]
fn a_session_that_is_asked_inside_a_transaction_is_asked_for_its_rights() {
    let mut scene = met(&[]);
    let (mut client, mut peer) = crate::stage::scene::Stage::login(&scene.stage);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    step(&mut scene, "concat_ws('|', (SELECT", &["sign", "", "", "1"]);
    step(&mut scene, "; SELECT EXISTS (", &["t", "t"]);
    step(&mut scene, "p.prorettype", &[]);
    step(&mut scene, "aclexplode", &CONTEXT);
    answer_parse(&mut scene);
    answer_plans(&mut scene);
    // The next one does not take its word.
    client.send(&frames::query(SQL));
    let asked = peer.answer_context();
    assert!(asked.contains("aclexplode"), "{asked}");
    std::mem::forget((scene, client, peer));
}

#[test]
fn what_sees_the_catalog_as_it_was_is_not_asked() {
    let mut scene = met(&[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    enter(&mut scene, "repeatable read");
    scene.peer.take("Q");
    scene
        .peer
        .send(&[complete("SELECT 0"), ready(b'T')].concat());
    expect(&mut scene, &[UNDO, LEAVE]);
    scene.peer.expect_at_once(&frames::query(SQL));
    scene.peer.send(&seen(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
    // Nor is it asked again before the transaction has ended.
    relay(&mut scene, SQL, &seen(&SELECT, b'T'));
    assert_eq!(scene.stage.summary().passed(Reason::InTransaction), 2);
    let ended = [complete("COMMIT"), ready(b'I')].concat();
    relay(&mut scene, "COMMIT", &ended);
    // The next query, whatever it is, has to wait for the lesson.
    scene.client.send(&frames::query("SHOW port"));
    scene.peer.answer_context();
    scene.peer.answer_oracle(&SELECT);
    scene.peer.expect_at_once(&frames::query("SHOW port"));
}

#[test]
fn a_serializable_transaction_is_asked_nothing() {
    let mut scene = met(&[]);
    let begun = [complete("BEGIN"), ready(b'T')].concat();
    relay(&mut scene, "BEGIN ISOLATION LEVEL SERIALIZABLE", &begun);
    relay(&mut scene, SQL, &seen(&SELECT, b'T'));
}

#[test]
fn a_question_that_fails_does_not_fail_the_transaction() {
    let mut scene = met(&[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    answer_context(&mut scene);
    answer_parse(&mut scene);
    enter(&mut scene, "read committed");
    for _ in SELECT.plans.iter().chain(&["generic"]) {
        scene.peer.take("Q");
        let error = frames::error("55P03", "canceling statement due to lock timeout");
        scene.peer.send(&[error, ready(b'E')].concat());
        expect(&mut scene, &[UNDO]);
    }
    expect(&mut scene, &[LEAVE]);
    let frames = scene.peer.take("Q");
    assert_eq!(text(&frames[0]), SQL);
    scene.peer.send(&seen(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
}

#[test]
fn a_query_that_is_cancelled_while_it_waits_fails_its_transaction() {
    for hits in [false, true] {
        let mut scene = learned(SQL, &SELECT, &[]);
        let sql = "SELECT name AS other FROM t WHERE id = 42";
        begin(&mut scene);
        scene.client.send(&frames::query(sql));
        enter(&mut scene, "read committed");
        for index in 0..2 {
            scene.peer.take("PBECPDS");
            if hits && index == 0 {
                scene.peer.send(&cancelled(b'E'));
            } else {
                let types = if index == 0 { &[] } else { SELECT.types };
                scene
                    .peer
                    .send(&status(script::parsed(SELECT.columns, types), b'T'));
            }
            expect(&mut scene, &[UNDO]);
        }
        if !hits {
            delivered(&scene);
        }
        expect(&mut scene, &[LEAVE]);
        cancel_itself(&mut scene, b'E');
        scene.client.expect(&cancelled(b'E'));
    }
}

#[test]
fn an_error_that_cannot_be_undone_is_the_answer() {
    let mut scene = learned(SQL, &SELECT, &[]);
    begin(&mut scene);
    scene
        .client
        .send(&frames::query("SELECT name AS other FROM t WHERE id = 42"));
    let lost = frames::error("53200", "out of memory");
    scene.peer.take("Q");
    scene.peer.send(&[&lost[..], &ready(b'E')].concat());
    for _ in 0..2 {
        scene.peer.take("PBECPDS");
        scene
            .peer
            .send(&[frames::error("25P02", "aborted"), ready(b'E')].concat());
        assert_eq!(text(&scene.peer.next()), UNDO);
        scene
            .peer
            .send(&[frames::error("3B001", "no savepoint"), ready(b'E')].concat());
    }
    assert_eq!(text(&scene.peer.next()), LEAVE);
    scene
        .peer
        .send(&[frames::error("25P02", "aborted"), ready(b'E')].concat());
    scene.client.expect(&[lost, ready(b'E')].concat());
}
