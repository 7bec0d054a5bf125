//! Executions that fail or whose plans do not suit: what is sent again, parsed anew or renewed, and
//! what of the answers comes down, byte by byte.

use crate::frames::{self, complete, execution, frame, ready, row};
use crate::stage::scene::{SQL, answer, begin, bound, relay, seen};
use crate::stage::script::{INSERT, Oracle, SELECT};
use crate::stage::{Scene, execution_in_block, learned, met};
use pgautoprep::metrics::Counter;

#[test]
fn an_error_before_bind_complete_is_repaired_with_the_original() {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    let ours = frames::error("22P02", "ours");
    scene
        .peer
        .send(&[frames::notice("ours too"), ours, ready(b'I')].concat());
    scene.peer.expect_at_once(&frames::query(SQL));
    let theirs = [frames::error("22P02", "theirs"), ready(b'I')].concat();
    scene.peer.send(&theirs);
    scene.client.expect(&theirs);
    assert_eq!(scene.stage.summary().count(Counter::Replayed), 1);
}

#[test]
fn a_statement_the_server_has_lost_is_parsed_anew() {
    let lost = frames::error("26000", "prepared statement does not exist");
    let changed = [
        "SERROR",
        "VERROR",
        "C0A000",
        "Mno",
        "RRevalidateCachedQuery",
    ];
    let changed = frames::report(b'E', &changed);
    for (error, closes) in [(lost, false), (changed, true)] {
        let mut scene = learned(SQL, &SELECT, &[]);
        scene.client.send(&frames::query(SQL));
        scene.peer.take("BDES");
        scene.peer.send(&[error, ready(b'I')].concat());
        scene.peer.expect_at_once(&frames::query(SQL));
        scene.peer.send(&seen(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));

        scene.client.send(&frames::query(SQL));
        if closes {
            scene.peer.expect(&frames::close(b'S', &scene.name));
            scene.peer.send(&frame(b'3', b""));
        }
        let name = scene.peer.answer_parse(&SELECT);
        assert_ne!(name, scene.name);
        scene.peer.expect_at_once(&execution(&name, &["42"]));
    }
}

#[test]
fn a_transaction_that_has_only_begun_is_begun_again_unseen() {
    let mut scene = learned(SQL, &SELECT, &[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDECS");
    scene
        .peer
        .send(&[frames::error("26000", "gone"), ready(b'E')].concat());
    let again = ["ROLLBACK", "BEGIN"].map(frames::query).concat();
    scene.peer.expect_at_once(&again);
    scene
        .peer
        .send(&[complete("ROLLBACK"), ready(b'I')].concat());
    scene.peer.send(&[complete("BEGIN"), ready(b'T')].concat());
    scene.peer.expect_at_once(&frames::query(SQL));
    scene.peer.send(&seen(&SELECT, b'T'));
    scene.client.expect(&seen(&SELECT, b'T'));
}

#[test]
fn an_error_inside_a_transaction_is_about_the_original_text() {
    let sql = "SELECT name FROM t WHERE 'é' = city AND id = '42'";
    let oracle = Oracle {
        types: &[25, 23],
        plans: [
            "Result\n  Output: 'é'::text, 42",
            "Result\n  Output: $1, $2",
        ],
        ..SELECT
    };
    let mut scene = met(&[]);
    scene.client.send(&frames::query(sql));
    scene.peer.answer_context();
    scene.name = scene.peer.answer_oracle(&oracle);
    scene.peer.expect(&execution(&scene.name, &["é", "42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    begin(&mut scene);
    relay(
        &mut scene,
        "SAVEPOINT a",
        &[complete("SAVEPOINT"), ready(b'T')].concat(),
    );

    scene.client.send(&frames::query(sql));
    scene
        .peer
        .expect(&execution_in_block(&scene.name, &["é", "42"]));
    let fields = [
        "SERROR",
        "VERROR",
        "C22P02",
        "Mbad",
        "Wunnamed portal parameter $2 = '42'",
    ];
    scene
        .peer
        .send(&[frames::report(b'E', &fields), ready(b'E')].concat());
    let fields = ["SERROR", "VERROR", "C22P02", "Mbad", "P46"];
    scene
        .client
        .expect(&[frames::report(b'E', &fields), ready(b'E')].concat());
}

#[test]
fn command_complete_waits_for_what_follows_it() {
    let (done, end) = (complete("INSERT 0 1"), ready(b'I'));
    let failed = frames::error("23503", "deferred");
    let notice = frames::notice("deferred");
    let note = frames::notification(7, "news", "x");
    let status = frames::parameter("TimeZone", "UTC");
    for (after, expected) in [
        (vec![&failed], vec![&failed]),
        (vec![&notice], vec![&notice, &done]),
        (vec![&note], vec![&done, &note]),
        (vec![&status], vec![&done, &status]),
        (vec![&notice, &note], vec![&notice, &done, &note]),
        (vec![&notice, &failed], vec![&notice, &failed]),
    ] {
        let mut scene = learned("INSERT INTO t VALUES (42)", &INSERT, &[]);
        scene
            .client
            .send(&frames::query("INSERT INTO t VALUES (43)"));
        scene.peer.expect(&execution(&scene.name, &["43"]));
        let flat = |parts: Vec<&Vec<u8>>| parts.into_iter().flatten().copied().collect::<Vec<_>>();
        let after = flat(after);
        scene
            .peer
            .send(&[bound(&INSERT), done.clone(), after, end.clone()].concat());
        scene.client.expect(&[flat(expected), end.clone()].concat());
    }
}

#[test]
fn the_description_of_what_a_write_returns_waits_for_the_first_row() {
    let sql = "INSERT INTO t VALUES (42) RETURNING id";
    let oracle = Oracle {
        columns: &["id"],
        ..INSERT
    };
    let description = frames::description(&["id"]);
    let notice = frames::notice("from a trigger");
    let end = |parts: &[&[u8]]| [&parts.concat()[..], &ready(b'I')].concat();
    let rows = [row(&["42"]), complete("INSERT 0 1")].concat();
    let failed = frames::error("23505", "duplicate");
    for (after, expected) in [
        (end(&[&notice, &rows]), end(&[&notice, &description, &rows])),
        (end(&[&notice, &failed]), end(&[&notice, &failed])),
        (
            end(&[&complete("INSERT 0 0")]),
            end(&[&description, &complete("INSERT 0 0")]),
        ),
    ] {
        let mut scene = met(&[]);
        scene.client.send(&frames::query(sql));
        scene.peer.answer_context();
        let name = scene.peer.answer_oracle(&oracle);
        scene.peer.expect(&execution(&name, &["42"]));
        scene.peer.send(&[bound(&oracle), after].concat());
        scene.client.expect(&expected);
    }
}

#[test]
fn a_cancelled_bind_is_not_tried_again() {
    let mut scene = learned(SQL, &SELECT, &[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
    let cancelled = [frames::error("57014", "canceling"), ready(b'I')].concat();
    scene.peer.send(&cancelled);
    scene.client.expect(&cancelled);
    scene.client.send(&frames::query(SQL));
    scene.peer.expect(&execution(&scene.name, &["42"]));
}

/// The plan for all values is not the plan of the values any more.
const APART: [&str; 2] = ["Result\n  Output: 42", "Result\n  Filter: (id = $1)"];

/// Executes the query until its plan is looked at again, and answers with these plans.
fn audited(scene: &mut Scene, plans: [&str; 2]) {
    for _ in 0..20 {
        scene.client.send(&frames::query(SQL));
        let next = scene.peer.next();
        if next.tag == b'Q' {
            scene.peer.take("Q");
            plans.iter().for_each(|plan| scene.peer.answer_plan(plan));
            return;
        }
        scene.peer.take("DES");
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    panic!("no audit");
}

#[test]
fn an_audit_that_fails_ends_the_generic_plan() {
    let mut scene = learned(SQL, &SELECT, &[("audit", "on")]);
    audited(&mut scene, APART);
    scene.peer.expect(&frames::close(b'S', &scene.name));
    scene.peer.send(&frame(b'3', b""));
    // The server might plan for all values as it plans for these by now, but does not.
    let oracle = Oracle {
        plans: APART,
        ..SELECT
    };
    let generic = scene.peer.answer_oracle(&oracle);
    scene.peer.expect(&frames::close(b'S', &generic));
    scene.peer.send(&frame(b'3', b""));
    let name = scene.peer.answer_custom(&oracle);
    scene.peer.expect_at_once(&execution(&name, &["42"]));
    assert_eq!(scene.stage.summary().count(Counter::AuditsFailed), 1);
    let decisions = scene.stage.decisions();
    let failed = "an audit has failed: the plan has become another one for literal 1";
    assert!(decisions.iter().any(|it| it == failed), "{decisions:?}");
}

#[test]
fn a_generic_plan_that_has_fallen_behind_is_made_anew() {
    let mut scene = learned(SQL, &SELECT, &[("audit", "on")]);
    for failed in 1..=4 {
        audited(&mut scene, APART);
        scene.peer.expect(&frames::close(b'S', &scene.name));
        scene.peer.send(&frame(b'3', b""));
        scene.name = scene.peer.answer_oracle(&SELECT);
        scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
        assert_eq!(scene.stage.summary().count(Counter::AuditsFailed), failed);
    }
    // Whoever cannot keep up is planned for its values.
    audited(&mut scene, APART);
    scene.peer.expect(&frames::close(b'S', &scene.name));
    scene.peer.send(&frame(b'3', b""));
    let name = scene.peer.answer_custom(&SELECT);
    scene.peer.expect_at_once(&execution(&name, &["42"]));
}

/// A client whose query has been learned and is to be planned for its values each time.
fn specific(sql: &str) -> Scene {
    specific_with(sql, &[])
}

/// The same, with these settings.
pub(crate) fn specific_with(sql: &str, changes: &[(&str, &str)]) -> Scene {
    let mut scene = met(changes);
    scene.stage.proves_nothing();
    scene.client.send(&frames::query(sql));
    scene.peer.answer_context();
    let oracle = Oracle {
        plans: ["Result\n  Output: 42", "Result\n  Filter: (id = $1)"],
        ..SELECT
    };
    let generic = scene.peer.answer_oracle(&oracle);
    scene.peer.expect(&frames::close(b'S', &generic));
    scene.peer.send(&frame(b'3', b""));
    scene.name = scene.peer.answer_custom(&oracle);
    scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    scene
}

/// What renews the statement of [`SQL`].
pub(crate) fn renewal(name: &str) -> Vec<u8> {
    let parse = frames::parse(name, "SELECT name FROM t WHERE id = $1", &[23]);
    [frames::close(b'S', name), parse].concat()
}

#[test]
fn a_statement_planned_for_its_values_is_renewed_before_its_sixth_plan() {
    let mut scene = specific(SQL);
    // EXPLAIN EXECUTE was the first plan, then the query itself.
    let mut plans = 2;
    for _ in 0..12 {
        scene.client.send(&frames::query(SQL));
        let execution = execution(&scene.name, &["42"]);
        if plans < 5 {
            plans += 1;
            scene.peer.expect_at_once(&execution);
        } else {
            plans = 1;
            let renewed = [renewal(&scene.name), execution].concat();
            scene.peer.expect_at_once(&renewed);
            scene
                .peer
                .send(&[frame(b'3', b""), frame(b'1', b"")].concat());
        }
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    let summary = scene.stage.summary();
    assert_eq!(summary.count(Counter::StatementsRenewed), 2);
    assert_eq!(summary.count(Counter::Converted), 13);
}

#[test]
fn a_renewal_that_fails_is_repaired_with_the_original() {
    let mut scene = specific(SQL);
    for _ in 0..3 {
        scene.client.send(&frames::query(SQL));
        scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    scene.client.send(&frames::query(SQL));
    let execution = execution(&scene.name, &["42"]);
    let renewed = [renewal(&scene.name), execution].concat();
    scene.peer.expect_at_once(&renewed);
    let failed = frames::error("42P01", "no such table");
    let end = [frame(b'3', b""), failed.clone(), ready(b'I')].concat();
    scene.peer.send(&end);
    scene.peer.expect_at_once(&frames::query(SQL));
    scene.peer.send(&[failed.clone(), ready(b'I')].concat());
    scene.client.expect(&[failed, ready(b'I')].concat());
    // The server holds nothing under that name: no Close is owed.
    scene.client.send(&frames::query(SQL));
    scene.peer.take("PBECPDS");
}

/// Directly, nothing follows this but the end of the connection.
#[test]
fn a_server_that_ends_because_another_process_has_crashed_has_said_its_last_word() {
    let crash = frames::report(b'N', &["SWARNING", "VWARNING", "C57P02", "Mcrash"]);
    for converts in [false, true] {
        let mut scene = learned(SQL, &SELECT, &[]);
        if converts {
            scene.client.send(&frames::query(SQL));
            scene.peer.take("BDES");
        } else {
            scene.client.send(&frames::query("VACUUM t"));
            scene.peer.take("Q");
        }
        scene.peer.send(&crash);
        drop(scene.peer);
        assert_eq!(scene.client.rest(), frames::cut(&crash).0, "{converts}");
    }
}

/// A function may raise a warning with this state; the server goes on, and is lost later.
#[test]
fn a_warning_that_only_looks_like_a_crash_is_forgotten_when_the_server_goes_on() {
    let warning = frames::report(b'N', &["SWARNING", "VWARNING", "C57P02", "Mraised"]);
    for converts in [false, true] {
        let mut scene = learned(SQL, &SELECT, &[]);
        scene.client.send(&frames::query("VACUUM t"));
        scene.peer.take("Q");
        let done = [warning.clone(), frame(b'C', b"VACUUM\0"), ready(b'I')].concat();
        scene.peer.send(&done);
        scene.client.expect(&done);
        if converts {
            scene.client.send(&frames::query(SQL));
            scene.peer.take("BDES");
        } else {
            scene.client.send(&frames::query("VACUUM t"));
            scene.peer.take("Q");
        }
        drop(scene.peer);
        let said = scene.client.rest();
        assert_eq!(frames::tags(&said), "E", "{converts}");
    }
}
