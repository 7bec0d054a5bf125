//! The exact bytes of a conversion: what goes up for a Query, and what of the answers comes down.

use crate::harness::client::Client;
use crate::harness::frames::{self, complete, execution, frame, ready, row};
use crate::harness::proxy::Proxy;
use crate::harness::upstream::{CONTEXT, INSERT, Oracle, Peer, SELECT, Upstream, careful, parsed};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// A client, its server, and the statement both have already agreed on.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) peer: Peer,
    pub(crate) name: String,
    pub(crate) proxy: Proxy,
    pub(crate) upstream: Upstream,
}

pub(crate) const SQL: &str = "SELECT name FROM t WHERE id = 42";

/// A client that has logged in and sent nothing. Audits come only where they are wanted.
pub(crate) fn met(changes: &[(&str, &str)]) -> Scene {
    let upstream = Upstream::listen();
    let mut changes = changes.to_vec();
    if !changes.contains(&("audit", "on")) {
        changes.push(("audit", "off"));
    }
    let proxy = Proxy::with(&upstream.address(), &changes);
    let (client, peer) = upstream.login(&proxy);
    Scene {
        client,
        peer,
        name: String::new(),
        proxy,
        upstream,
    }
}

/// A client whose query has been learned and executed once.
pub(crate) fn learned(sql: &str, oracle: &Oracle<'_>, changes: &[(&str, &str)]) -> Scene {
    let mut scene = met(changes);
    scene.client.send(&frames::query(sql));
    scene.peer.answer_context();
    scene.name = scene.peer.answer_oracle(oracle);
    let up = execution(&scene.name, &["42"]);
    scene.peer.expect_at_once(&up);
    scene.peer.send(&answer(oracle, b'I'));
    scene.client.expect(&seen(oracle, b'I'));
    scene
}

/// The server's answer to an execution.
pub(crate) fn answer(oracle: &Oracle<'_>, status: u8) -> Vec<u8> {
    [bound(oracle), result(oracle), ready(status)].concat()
}

/// What the client is to see of it.
pub(crate) fn seen(oracle: &Oracle<'_>, status: u8) -> Vec<u8> {
    let description = match oracle.columns {
        [] => Vec::new(),
        columns => frames::description(columns),
    };
    [description, result(oracle), ready(status)].concat()
}

/// BindComplete and the description of the result.
pub(crate) fn bound(oracle: &Oracle<'_>) -> Vec<u8> {
    let description = match oracle.columns {
        [] => frame(b'n', b""),
        columns => frames::description(columns),
    };
    [frame(b'2', b""), description].concat()
}

fn result(oracle: &Oracle<'_>) -> Vec<u8> {
    match oracle.columns {
        [] => complete("INSERT 0 1"),
        _ => [row(&["Ann"]), row(&["Bob"]), complete("SELECT 2")].concat(),
    }
}

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
    let summary = scene.proxy.summary();
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
            frames::parse("", "SELECT name FROM t WHERE id = 42", &[]),
        ]
        .concat(),
    );
    scene
        .peer
        .expect(&[frames::describe(b'S', ""), frames::sync()].concat());
    let rewritten = "SELECT name FROM t WHERE id = $1";
    scene.peer.expect(&careful());
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
    let (mut client, mut peer) = scene.upstream.login(&scene.proxy);
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
    let (mut client, mut peer) = scene.upstream.login(&scene.proxy);
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
    scene.peer.take("PBEPDSPBEPDS");
    scene.peer.send(&parsed(&["name"], &[]));
    scene.peer.send(&parsed(&["other"], &[23]));
    for _ in 0..3 {
        scene.peer.expect_at_once(&frames::query(SQL));
        scene.peer.send(&seen(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
        scene.client.send(&frames::query(SQL));
    }
    assert_eq!(scene.proxy.summary().count(Counter::OracleDeclined), 1);
}

#[test]
fn an_error_of_the_oracle_does_not_reach_the_client() {
    let mut scene = met(&[]);
    scene.client.send(&frames::query(SQL));
    scene.peer.answer_context();
    scene.peer.take("PBEPDSPBEPDS");
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
    scene.peer.answer_rows(&["sign", ""]);
    scene.peer.take("Q");
    scene
        .peer
        .send(&[complete("SELECT 0"), ready(b'I')].concat());
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
        scene.client.send(&frames::query(sql));
        scene.peer.expect_at_once(&frames::query(sql));
        let done = [complete(sql), ready(b'I')].concat();
        scene.peer.send(&done);
        scene.client.expect(&done);
        // Nothing is owed a Close; the statement gets another name.
        scene.client.send(&frames::query(SQL));
        scene.peer.answer_context();
        let name = scene.peer.answer_parse(&SELECT);
        assert_ne!(name, scene.name);
        scene.peer.expect_at_once(&execution(&name, &["42"]));
    }
}

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
    assert_eq!(scene.proxy.summary().count(Counter::Replayed), 1);
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

/// Sends `BEGIN` through to the server.
pub(crate) fn begin(scene: &mut Scene) {
    relay(scene, "BEGIN", &[complete("BEGIN"), ready(b'T')].concat());
}

/// Sends a query that is not converted.
fn relay(scene: &mut Scene, sql: &str, answer: &[u8]) {
    scene.client.send(&frames::query(sql));
    scene.peer.expect_at_once(&frames::query(sql));
    scene.peer.send(answer);
    scene.client.expect(answer);
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
fn a_transaction_that_has_only_begun_is_begun_again_unseen() {
    let mut scene = learned(SQL, &SELECT, &[]);
    begin(&mut scene);
    scene.client.send(&frames::query(SQL));
    scene.peer.take("BDES");
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
    scene.peer.expect(&execution(&scene.name, &["é", "42"]));
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

#[test]
fn an_audit_that_fails_ends_the_generic_plan() {
    let mut scene = learned(SQL, &SELECT, &[("audit", "on")]);
    let mut executions = 1;
    let plans = ["Result\n  Output: 42", "Result\n  Filter: (id = $1)"];
    loop {
        scene.client.send(&frames::query(SQL));
        let next = scene.peer.next();
        if next.tag == b'Q' {
            scene.peer.take("Q");
            plans.iter().for_each(|plan| scene.peer.answer_plan(plan));
            break;
        }
        scene.peer.take("DES");
        scene.peer.send(&answer(&SELECT, b'I'));
        scene.client.expect(&seen(&SELECT, b'I'));
        executions += 1;
        assert!(executions < 20, "no audit");
    }
    scene.peer.expect(&frames::close(b'S', &scene.name));
    scene.peer.send(&frame(b'3', b""));
    let name = scene.peer.answer_custom(&SELECT);
    scene.peer.expect_at_once(&execution(&name, &["42"]));
    assert_eq!(scene.proxy.summary().count(Counter::AuditsFailed), 1);
}

/// A client whose query has been learned and is to be planned for its values each time.
fn specific(sql: &str) -> Scene {
    let mut scene = met(&[]);
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
fn renewal(name: &str) -> Vec<u8> {
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
    let summary = scene.proxy.summary();
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
    scene.peer.take("PBEPDS");
}

#[test]
fn a_statement_past_its_age_is_parsed_anew() {
    let mut scene = learned(SQL, &SELECT, &[("statement_max_age_s", "1")]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
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
        assert_eq!(scene.proxy.converted(), 0);
    }
}

#[test]
fn more_new_shapes_than_the_oracle_may_be_asked_about_wait() {
    let mut scene = learned(SQL, &SELECT, &[("oracle_per_second", "1")]);
    let sql = "SELECT other FROM t WHERE id = 42";
    relay(&mut scene, sql, &seen(&SELECT, b'I'));
    assert_eq!(scene.proxy.summary().passed(Reason::Budget), 1);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    scene.client.send(&frames::query(sql));
    scene.peer.answer_oracle(&SELECT);
}

#[test]
fn a_shape_met_inside_a_transaction_is_learned_behind_it() {
    let mut scene = met(&[]);
    begin(&mut scene);
    relay(&mut scene, SQL, &seen(&SELECT, b'T'));
    relay(
        &mut scene,
        "COMMIT",
        &[complete("COMMIT"), ready(b'I')].concat(),
    );
    // The next query, whatever it is, has to wait for the lesson.
    scene.client.send(&frames::query("SHOW port"));
    scene.peer.answer_context();
    scene.peer.answer_oracle(&SELECT);
    scene.peer.expect_at_once(&frames::query("SHOW port"));
}

#[test]
fn a_shape_seen_once_leaves_nothing_behind() {
    let mut scene = met(&[("prepare_threshold", "2")]);
    for _ in 0..2 {
        for number in 0..20 {
            let sql = format!("SELECT name AS n{number} FROM t WHERE id = 42");
            // The second sighting of the first shape is the one that counts.
            if scene.proxy.summary().passed(Reason::Threshold) == 20 {
                scene.client.send(&frames::query(&sql));
                scene.peer.answer_context();
                return;
            }
            relay(&mut scene, &sql, &seen(&SELECT, b'I'));
        }
    }
    panic!("nothing was learned: {}", scene.proxy.summary());
}
