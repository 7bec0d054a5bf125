//! The exact bytes of a conversion: what goes up for a Query, and what of the answers comes down.

use crate::frames::{self, complete, execution, frame, ready, row};
use crate::stage::scene::{SQL, answer, bound, relay, seen};
use crate::stage::script::{CONTEXT, INSERT, Oracle, SELECT, careful, parsed};
use crate::stage::{learned, met};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

#[test]
fn a_warm_query_is_bind_describe_execute_sync_in_one_write() {
    let mut scene = learned(SQL, &SELECT, &[]);
    for id in ["1", "22", "333"] {
        let sql = format!("SELECT name FROM t WHERE id = {id}");
        scene.client.send(&frames::query(&sql));
        scene.peer.expect_at_once(&execution(&scene.name, &[id]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    let summary = scene.stage.summary();
    assert_eq!(summary.count(Counter::Queries), 4);
    assert_eq!(summary.count(Counter::Converted), 4);
    assert_eq!(summary.count(Counter::StatementsPrepared), 1);
}

#[test]
fn a_lesson_parses_the_original_and_the_rewritten_text() {
    let mut scene = met(&[]);
    scene
        .client
        .send(&frames::query(" SELECT name FROM t WHERE id = 42; "));
    scene.peer.answer_context();
    scene.peer.expect(
        &[
            careful(),
            frames::close(b'S', ""),
            frames::parse("", "SELECT name FROM t WHERE id = 42", &[]),
        ]
        .concat(),
    );
    scene
        .peer
        .expect(&[frames::describe(b'S', ""), frames::sync()].concat());
    let rewritten = "SELECT name FROM t WHERE id = $1";
    scene
        .peer
        .expect(&[careful(), frames::close(b'S', "")].concat());
    let parse = scene.peer.next();
    let end = parse.body.iter().position(|byte| *byte == 0).unwrap();
    let name = std::str::from_utf8(&parse.body[..end]).unwrap();
    assert!(name.starts_with("_pgautoprep_"), "{name}");
    assert_eq!(parse.bytes(), frames::parse(name, rewritten, &[23]));
    scene
        .peer
        .expect(&[frames::describe(b'S', name), frames::sync()].concat());
}

#[test]
fn a_conversation_is_the_same_however_its_bytes_are_cut() {
    for piece in [1, 2, 3, 5, 7, 64] {
        let mut scene = met(&[]);
        scene.stage.cut_into(piece);
        scene.client.send(&frames::query(SQL));
        scene.peer.answer_context();
        let name = scene.peer.answer_oracle(&SELECT);
        let twice = [frames::query(SQL), frames::query(SQL)].concat();
        scene.client.send(&twice);
        for _ in 0..2 {
            scene.peer.expect_at_once(&execution(&name, &["42"]));
            scene.peer.send(&answer(&SELECT, b'I'));
            scene.client.expect(&seen(&SELECT, b'I'));
        }
        scene.peer.expect_at_once(&execution(&name, &["42"]));
        let failed = [frames::error("22P02", "ours"), ready(b'I')].concat();
        scene.peer.send(&failed);
        scene.peer.expect_at_once(&frames::query(SQL));
        scene.peer.send(&seen(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
        assert_eq!(scene.stage.summary().count(Counter::Replayed), 1);
    }
}

#[test]
fn nothing_is_asked_below_the_threshold() {
    let mut scene = met(&[("prepare_threshold", "3")]);
    for _ in 0..2 {
        scene.client.send(&frames::query(SQL));
        scene.peer.expect_at_once(&frames::query(SQL));
        scene.peer.send(&seen(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    let name = scene.peer.answer_oracle(&SELECT);
    scene.peer.expect(&execution(&name, &["42"]));
}

#[test]
fn a_statement_is_not_used_before_its_parse_is_complete() {
    let mut scene = met(&[]);
    // Two in one write: the second waits until the first is answered.
    let twice = [frames::query(SQL), frames::query(SQL)].concat();
    scene.client.send(&twice);
    scene.peer.answer_context();
    let name = scene.peer.answer_oracle(&SELECT);
    for _ in 0..2 {
        scene.peer.expect_at_once(&execution(&name, &["42"]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
}

#[test]
fn another_connection_parses_a_trusted_statement_without_asking_again() {
    let mut scene = learned(SQL, &SELECT, &[]);
    let (mut client, mut peer) = scene.login();
    client.send(&frames::query(SQL));
    peer.answer_context();
    let name = peer.answer_parse(&SELECT);
    peer.expect_at_once(&execution(&name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
    scene.client.send(&frames::query(SQL));
    scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
}

#[test]
fn a_statement_that_infers_other_types_elsewhere_is_not_used() {
    let scene = learned(SQL, &SELECT, &[]);
    let (mut client, mut peer) = scene.login();
    client.send(&frames::query(SQL));
    peer.answer_context();
    peer.answer_parse(&Oracle {
        types: &[25],
        ..SELECT
    });
    peer.expect(&frames::query(SQL));
}

#[test]
fn what_the_oracle_refuses_is_passed_through_for_good() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    scene.peer.take("PBECPDSPBECPDS");
    scene.peer.send(&parsed(&["name"], &[]));
    scene.peer.send(&parsed(&["other"], &[23]));
    scene.peer.expect_at_once(&frames::query(SQL));
    scene.peer.send(&seen(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    for _ in 0..2 {
        relay(&mut scene, SQL, &seen(&SELECT, b'I'));
    }
    assert_eq!(scene.stage.summary().count(Counter::OracleDeclined), 1);
}

#[test]
fn an_error_of_the_oracle_does_not_reach_the_client() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    scene.peer.take("PBECPDSPBECPDS");
    let failed = [frames::error("42P01", "no such table"), ready(b'I')].concat();
    scene.peer.send(&[&failed[..], &failed].concat());
    scene.peer.expect_at_once(&frames::query(SQL));
    scene.peer.send(&failed);
    scene.client.expect(&failed);
}

#[test]
fn notifications_and_settings_during_a_lesson_reach_the_client() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("Q");
    scene.peer.answer_rows(&["sign", "", "", "1"]);
    for _ in 0..2 {
        scene.peer.take("Q");
        scene
            .peer
            .send(&[complete("SELECT 0"), ready(b'I')].concat());
    }
    scene.peer.take("Q");
    let note = frames::notification(7, "news", "x");
    let status = frames::parameter("application_name", "x");
    let answer = [row(&CONTEXT), complete("SELECT 1"), ready(b'I')].concat();
    scene.peer.send(&[&note[..], &status, &answer].concat());
    scene.client.expect(&[note, status].concat());
    let name = scene.peer.answer_oracle(&SELECT);
    scene.peer.expect(&execution(&name, &["42"]));
}

#[test]
fn an_evicted_statement_is_closed_and_its_name_not_used_again() {
    let mut scene = learned(SQL, &SELECT, &[("max_statements", "1")]);
    let mut names = vec![scene.name.clone()];
    for (column, round) in ["a", "b", "c"].into_iter().zip(1..) {
        let sql = format!("SELECT {column} FROM t WHERE id = 42");
        // The one that is there stays until it has not been used for a while.
        let mut passed = 0;
        let closed = loop {
            scene.client.send(&frames::query(&sql));
            let next = scene.peer.next();
            if next.tag != b'Q' {
                break next.bytes();
            }
            scene.peer.send(&seen(&SELECT, b'I'));
            scene.client.expect(&seen(&SELECT, b'I'));
            passed += 1;
            assert!(passed < 20, "no room is made");
        };
        assert_eq!(closed, frames::close(b'S', &names[round - 1]));
        scene.peer.send(&frame(b'3', b""));
        names.push(scene.peer.answer_oracle(&SELECT));
        scene
            .peer
            .expect_at_once(&execution(&names[round], &["42"]));
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4);
}

#[test]
fn discard_all_and_deallocate_all_forget_the_statements() {
    for sql in ["DISCARD ALL", "DEALLOCATE ALL"] {
        let mut scene = learned(SQL, &SELECT, &[]);
        for round in 0..3 {
            // Without something to discard the server would only be told to reset the settings.
            let prepared = [complete("PREPARE"), ready(b'I')].concat();
            relay(&mut scene, "PREPARE p AS SELECT 1", &prepared);
            relay(&mut scene, sql, &[complete(sql), ready(b'I')].concat());
            // Nothing is owed a Close; the statement gets another name.
            scene.client.send(&frames::query(SQL));
            // What has become of the settings is asked once.
            if sql == "DISCARD ALL" && round == 0 {
                scene.peer.answer_context();
            }
            let name = scene.peer.answer_parse(&SELECT);
            assert_ne!(name, scene.name);
            scene.peer.expect_at_once(&execution(&name, &["42"]));
            scene.peer.send(&answer(&SELECT, b'I'));
            scene.client.expect(&seen(&SELECT, b'I'));
            scene.name = name;
        }
    }
}

#[test]
fn copying_in_does_not_make_queries_longer() {
    let mut scene = learned(SQL, &SELECT, &[]);
    relay(&mut scene, "COPY t FROM STDIN", &frame(b'G', &[0, 0, 0]));
    let data = [frame(b'd', b"1\n"), frame(b'c', b"")].concat();
    scene.client.send(&data);
    scene.peer.expect(&data);
    let answer_copy = [complete("COPY 1"), ready(b'I')].concat();
    scene.peer.send(&answer_copy);
    scene.client.expect(&answer_copy);
    scene.client.send(&frames::query(SQL));
    // No Close: the client has no unnamed statement that a Query would have dropped.
    scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
}

#[test]
fn a_statement_past_its_age_is_parsed_anew() {
    let mut scene = learned(SQL, &SELECT, &[("statement_max_age_s", "1")]);
    // Nothing follows from statistics here, so it lasts ten times as long.
    scene.stage.advance(9_900);
    scene.client.send(&frames::query(SQL));
    scene.peer.expect_at_once(&execution(&scene.name, &["42"]));
    scene.peer.send(&answer(&SELECT, b'I'));
    scene.client.expect(&seen(&SELECT, b'I'));
    scene.stage.advance(200);
    scene.client.send(&frames::query(SQL));
    // It may be that nothing is as it was: the oracle is asked again, too.
    scene.peer.expect(&frames::close(b'S', &scene.name));
    scene.peer.send(&frame(b'3', b""));
    let name = scene.peer.answer_oracle(&SELECT);
    scene.peer.expect_at_once(&execution(&name, &["42"]));
}

#[test]
fn the_modes_off_and_observe_change_no_byte() {
    for mode in ["off", "observe"] {
        let mut scene = met(&[("mode", mode)]);
        for _ in 0..3 {
            relay(&mut scene, SQL, &seen(&SELECT, b'I'));
        }
        assert_eq!(scene.stage.converted(), 0);
    }
}

#[test]
fn more_new_shapes_than_the_oracle_may_be_asked_about_wait() {
    let mut scene = learned(SQL, &SELECT, &[("oracle_per_second", "1")]);
    let sql = "SELECT other FROM t WHERE id = 42";
    relay(&mut scene, sql, &seen(&SELECT, b'I'));
    assert_eq!(scene.stage.summary().passed(Reason::Budget), 1);
    scene.stage.advance(1100);
    scene.client.send(&frames::query(sql));
    let name = scene.peer.answer_oracle(&SELECT);
    scene.peer.expect_at_once(&execution(&name, &["42"]));
}

#[test]
fn a_shape_seen_once_leaves_nothing_behind() {
    let mut scene = met(&[("prepare_threshold", "2")]);
    for _ in 0..2 {
        for number in 0..20 {
            let sql = format!("SELECT name AS n{number} FROM t WHERE id = 42");
            // The second sighting of the first shape is the one that counts.
            if scene.stage.summary().passed(Reason::Threshold) == 20 {
                scene.client.send(&frames::query(&sql));
                scene.peer.answer_context();
                scene.peer.take("PBECPDSPBECPDS");
                return;
            }
            relay(&mut scene, &sql, &seen(&SELECT, b'I'));
        }
    }
    panic!("nothing was learned: {}", scene.stage.summary());
}

const INSERTED: &str = "INSERT INTO t VALUES (42)";

#[test]
fn several_statements_are_one_batch_with_one_sync() {
    let sync = frames::sync();
    for piece in [1, usize::MAX] {
        let mut scene = learned(INSERTED, &INSERT, &[]);
        let sql = |id: &str| format!("INSERT INTO t VALUES ({id})");
        let query = [sql("1"), " ".to_owned(), sql("22"), sql("333")].join(";");
        scene.client.send(&frames::query(&query));
        let part = |id: &str| {
            let whole = execution(&scene.name, &[id]);
            whole[..whole.len() - sync.len()].to_vec()
        };
        let parts = [part("1"), part("22"), part("333")].concat();
        scene.peer.expect_at_once(&[parts, sync.clone()].concat());
        let (done, end) = (complete("INSERT 0 1"), ready(b'I'));
        let answered = [bound(&INSERT), done.clone()].concat();
        scene.stage.cut_into(piece);
        scene.peer.send(&[answered.repeat(3), end.clone()].concat());
        scene.client.expect(&[done.repeat(3), end].concat());
    }
}

#[test]
fn an_error_in_the_first_of_several_statements_is_repaired_and_in_another_translated() {
    let mut scene = learned(INSERTED, &INSERT, &[]);
    let query = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)";
    let end = ready(b'I');
    scene.client.send(&frames::query(query));
    scene.peer.take("BDEBDES");
    let ours = frames::error("22P02", "ours");
    scene.peer.send(&[ours, end.clone()].concat());
    scene.peer.expect_at_once(&frames::query(query));
    let theirs = [frames::error("22P02", "theirs"), end.clone()].concat();
    scene.peer.send(&theirs);
    scene.client.expect(&theirs);

    scene.client.send(&frames::query(query));
    scene.peer.take("BDEBDES");
    let said = ["SERROR", "VERROR", "C22003", "Mbad"];
    let parameter = "Wunnamed portal parameter $1 = '2'";
    let ours = frames::report(b'E', &[&said[..], &[parameter]].concat());
    let done = complete("INSERT 0 1");
    scene
        .peer
        .send(&[bound(&INSERT), done.clone(), ours, end.clone()].concat());
    let theirs = frames::report(b'E', &[&said[..], &["P49"]].concat());
    scene.client.expect(&[done, theirs, end].concat());
}

/// Outside of a transaction what answers with rows can be repaired if it fails, but behind others.
#[test]
fn what_answers_with_rows_behind_another_statement_goes_through() {
    let mut scene = learned(SQL, &SELECT, &[]);
    let query = format!("{SQL}; {SQL}");
    scene.client.send(&frames::query(&query));
    scene.peer.expect_at_once(&frames::query(&query));
    scene.peer.send(&ready(b'I'));
    scene.client.expect(&ready(b'I'));
}
