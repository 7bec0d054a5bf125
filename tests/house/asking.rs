//! Which questions the server is asked, and which not, because they would not pay.

use crate::frames::{self, complete, execution, frame, ready};
use crate::stage::scene::{SQL, answer, relay, seen};
use crate::stage::script::{CONTEXT, SELECT, is_about_names};
use crate::stage::{Client, Peer, Scene, met};
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;

/// What is the default, and what the tests otherwise change.
const DEFAULT: (&str, &str) = ("prepare_threshold", "3");

/// A statement that is used once or twice by each connection.
const RARE: &str = "SELECT name FROM rare WHERE id = 42";

type Connection = (Client, Peer);

/// The query goes through as it is.
fn pass((client, peer): &mut Connection, sql: &str) {
    client.send(&frames::query(sql));
    peer.expect_at_once(&frames::query(sql));
    peer.send(&seen(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
}

/// The query that was sent is run as this statement.
fn run((client, peer): &mut Connection, name: &str) {
    peer.expect_at_once(&execution(name, &["42"]));
    peer.send(&answer(&SELECT, b'I'));
    client.expect(&seen(&SELECT, b'I'));
}

/// A connection that sends the statement so often, which is learned or else prepared in front of
/// the query with this number.
fn visit(scene: &Scene, times: u32, first: Option<u32>, learns: bool) {
    let mut connection = scene.login();
    let mut name: Option<String> = None;
    for time in 1..=times {
        match (&name, first) {
            (Some(name), _) => {
                connection.0.send(&frames::query(SQL));
                run(&mut connection, name);
            }
            (None, Some(first)) if time >= first => {
                connection.0.send(&frames::query(SQL));
                connection.1.answer_context();
                let made = match learns {
                    true => connection.1.answer_oracle(&SELECT),
                    false => connection.1.answer_parse(&SELECT),
                };
                run(&mut connection, &made);
                name = Some(made);
            }
            _ => pass(&mut connection, SQL),
        }
    }
    for _ in 0..2 {
        pass(&mut connection, RARE);
    }
}

fn asked(scene: &Scene) -> u64 {
    scene.stage.summary().count(Counter::OracleQuestions)
}

#[test]
fn what_each_connection_sends_once_or_twice_is_not_asked_about() {
    let scene = met(&[DEFAULT]);
    for _ in 0..50 {
        let mut connection = scene.login();
        for number in 0..6 {
            pass(&mut connection, &format!("{SQL} AND x{number} > 0"));
        }
        pass(&mut connection, &format!("{SQL} AND x0 > 0"));
    }
    let summary = scene.stage.summary();
    assert_eq!(summary.count(Counter::Questions), 0, "{summary}");
    assert_eq!(summary.passed(Reason::Threshold), 350, "{summary}");
}

#[test]
fn what_connections_send_often_is_prepared_by_the_next_at_once() {
    let scene = met(&[DEFAULT]);
    // Nothing is known yet: the third query shows that it is used more than once.
    visit(&scene, 300, Some(3), true);
    for _ in 0..3 {
        visit(&scene, 300, Some(3), false);
    }
    for _ in 0..3 {
        visit(&scene, 300, Some(1), false);
    }
    let summary = scene.stage.summary();
    assert_eq!(asked(&scene), 1, "{summary}");
    assert_eq!(summary.count(Counter::StatementsPrepared), 7, "{summary}");
}

#[test]
fn a_new_connection_is_asked_nothing_if_such_connections_do_not_stay() {
    let scene = met(&[DEFAULT]);
    visit(&scene, 60, Some(3), true);
    for _ in 0..3 {
        visit(&scene, 60, Some(3), false);
    }
    // What it costs to ask a new one for its context is more than sixty executions save.
    for _ in 0..5 {
        visit(&scene, 60, None, false);
    }
    // It shows by itself that it stays.
    visit(&scene, 300, Some(200), false);
}

#[test]
fn a_statement_that_is_used_thrice_by_each_is_not_prepared_for_ever() {
    let scene = met(&[DEFAULT]);
    visit(&scene, 4, Some(3), true);
    for _ in 0..3 {
        visit(&scene, 4, Some(3), false);
    }
    for _ in 0..20 {
        visit(&scene, 4, None, false);
    }
    assert_eq!(asked(&scene), 1);
}

#[test]
fn a_thousand_shapes_once_each_ask_nothing() {
    let mut scene = met(&[DEFAULT]);
    for number in 0..1000 {
        let sql = format!("SELECT name AS n{number} FROM t WHERE id = 42");
        relay(&mut scene, &sql, &seen(&SELECT, b'I'));
    }
    assert_eq!(scene.stage.summary().count(Counter::Questions), 0);
}

#[test]
fn trivial_statements_are_not_asked_about() {
    let mut scene = met(&[DEFAULT]);
    let trivial = ["SELECT 1", "SELECT 'x'", "SELECT 1 + 2 AS three"];
    for sql in trivial.into_iter().cycle().take(300) {
        relay(&mut scene, sql, &seen(&SELECT, b'I'));
    }
    let summary = scene.stage.summary();
    assert_eq!(summary.count(Counter::Questions), 0, "{summary}");
    // The first sighting of each only left a mark.
    assert_eq!(summary.passed(Reason::Trivial), 297, "{summary}");
}

#[test]
fn a_transaction_with_settings_of_its_own_is_not_followed_by_questions() {
    let scene = &mut met(&[DEFAULT]);
    for _ in 0..20 {
        let begun = [complete("BEGIN"), ready(b'T')].concat();
        relay(scene, "BEGIN ISOLATION LEVEL SERIALIZABLE", &begun);
        let set = [complete("SET"), ready(b'T')].concat();
        relay(scene, "SET LOCAL x = 1", &set);
        relay(scene, SQL, &seen(&SELECT, b'T'));
        let committed = [complete("COMMIT"), ready(b'I')].concat();
        relay(scene, "COMMIT", &committed);
    }
    assert!(scene.peer.stream.is_silent());
    let summary = scene.stage.summary();
    assert_eq!(summary.passed(Reason::DirtyTransaction), 0, "{summary}");
}

#[test]
fn a_statement_that_keeps_losing_its_verdict_is_asked_about_less_and_less() {
    let scene = met(&[("prepare_threshold", "2"), ("statement_max_age_s", "1")]);
    let mut connection = scene.login();
    let mut passed = Vec::new();
    for round in 0..5 {
        let mut count = 0;
        loop {
            count += 1;
            connection.0.send(&frames::query(SQL));
            let next = connection.1.next();
            if next.tag != b'Q' || !next.body.starts_with(SQL.as_bytes()) {
                break;
            }
            connection.1.send(&seen(&SELECT, b'I'));
            connection.0.expect(&seen(&SELECT, b'I'));
        }
        passed.push(count);
        if round == 0 {
            // What was read was the question what the catalog looks like.
            connection.1.answer_rows(&["sign", "", "", "1"]);
            connection.1.answer_context();
        } else {
            // It was the Close of the statement that has grown old.
            connection.1.send(&frame(b'3', b""));
        }
        let name = connection.1.answer_oracle(&SELECT);
        run(&mut connection, &name);
        scene.stage.advance(10_100);
    }
    assert_eq!(passed, [2, 4, 8, 16, 32]);
    let unpaid = scene.stage.summary().count(Counter::LessonsUnpaid);
    assert_eq!(unpaid, 4);
}

#[test]
fn a_statement_that_pays_is_asked_about_again_at_once() {
    let scene = met(&[("prepare_threshold", "2"), ("statement_max_age_s", "1")]);
    let mut connection = scene.login();
    pass(&mut connection, SQL);
    connection.0.send(&frames::query(SQL));
    connection.1.answer_context();
    let name = connection.1.answer_oracle(&SELECT);
    run(&mut connection, &name);
    for _ in 0..100 {
        connection.0.send(&frames::query(SQL));
        run(&mut connection, &name);
    }
    scene.stage.advance(10_100);
    connection.0.send(&frames::query(SQL));
    connection.1.expect(&frames::close(b'S', &name));
    connection.1.send(&frame(b'3', b""));
    let name = connection.1.answer_oracle(&SELECT);
    run(&mut connection, &name);
    assert_eq!(scene.stage.summary().count(Counter::LessonsUnpaid), 0);
}

#[test]
fn when_much_was_asked_a_statement_has_to_be_met_often_first() {
    let scene = met(&[("prepare_threshold", "2")]);
    let mut connection = scene.login();
    let sql = |number: u32| format!("SELECT name AS n{number} FROM t WHERE id = 42");
    for number in 0..3 {
        pass(&mut connection, &sql(number));
        connection.0.send(&frames::query(&sql(number)));
        if number == 0 {
            connection.1.answer_context();
        }
        scene.stage.advance(200);
        let name = connection.1.answer_oracle(&SELECT);
        run(&mut connection, &name);
    }
    (0..50).for_each(|_| pass(&mut connection, &sql(3)));
    connection.0.send(&frames::query(&sql(3)));
    let name = connection.1.answer_oracle(&SELECT);
    run(&mut connection, &name);
}

#[test]
fn questions_take_their_share_of_the_time_and_no_more() {
    let scene = met(&[("prepare_threshold", "2")]);
    let mut connection = scene.login();
    let put_off = || scene.stage.summary().passed(Reason::Budget);
    let mut numbers = 0..;
    // Meets a new shape so often that a lesson is likely to pay, and learns it if that is not put
    // off; its first questions take so long.
    let mut learn = |took: u64| {
        let number = numbers.next().unwrap();
        let sql = format!("SELECT name AS n{number} FROM t WHERE id = 42");
        let is_easy = number < 3;
        (0..if is_easy { 1 } else { 50 }).for_each(|_| pass(&mut connection, &sql));
        let before = put_off();
        connection.0.send(&frames::query(&sql));
        if put_off() > before {
            connection.1.expect_at_once(&frames::query(&sql));
            connection.1.send(&seen(&SELECT, b'I'));
            connection.0.expect(&seen(&SELECT, b'I'));
            return false;
        }
        if number == 0 {
            connection.1.answer_context();
        }
        scene.stage.advance(took);
        let name = connection.1.answer_oracle(&SELECT);
        run(&mut connection, &name);
        true
    };
    let first = (0..100).take_while(|_| learn(200)).count();
    assert!((24..=28).contains(&first), "five seconds at first: {first}");
    let mut later = 0;
    for _ in 0..100 {
        scene.stage.advance(1_000);
        later += usize::from(learn(200));
    }
    // Two seconds in a hundred.
    assert!((8..=11).contains(&later), "{later}");
    scene.stage.advance(100_000);
    assert!((0..5).all(|_| learn(200)), "what was not spent was saved");
    let spent = scene.stage.summary().count(Counter::QuestionsMillis);
    assert_eq!(spent, (first + later + 5) as u64 * 200);
}

#[test]
fn what_another_session_outdates_is_asked_again_only_where_everything_is_asked() {
    for (threshold, asks_again) in [("1", true), ("2", false)] {
        let scene = met(&[("prepare_threshold", threshold)]);
        let (mut connection, mut other) = (scene.login(), scene.login());
        let sql = "SELECT name AS again FROM t WHERE id = 42";
        if !asks_again {
            pass(&mut connection, sql);
        }
        connection.0.send(&frames::query(sql));
        let question = loop {
            let question = connection.1.take("Q").remove(0).body;
            let question = String::from_utf8_lossy(&question).into_owned();
            if is_about_names(&question) {
                let answer = [complete("SELECT 0"), ready(b'I')].concat();
                connection.1.send(&answer);
            } else if question.contains("concat_ws('|', (SELECT") {
                connection.1.answer_rows(&["sign", "", "", "1"]);
            } else {
                break question;
            }
        };
        assert!(question.contains("SHOW ALL"), "{question}");
        let changes = "ALTER ROLE somebody SET work_mem = '1MB'";
        let altered = [complete("ALTER ROLE"), ready(b'I')].concat();
        other.0.send(&frames::query(changes));
        other.1.expect_at_once(&frames::query(changes));
        other.1.send(&altered);
        other.0.expect(&altered);
        connection.1.answer_rows(&CONTEXT);
        if asks_again {
            connection.1.answer_context();
            let name = connection.1.answer_oracle(&SELECT);
            run(&mut connection, &name);
        } else {
            connection.1.expect_at_once(&frames::query(sql));
            connection.1.send(&seen(&SELECT, b'I'));
            connection.0.expect(&seen(&SELECT, b'I'));
            assert_eq!(scene.stage.summary().passed(Reason::Unproven), 1);
        }
    }
}
