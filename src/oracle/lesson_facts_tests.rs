//! What one lesson was told is not asked for again by the next.

use super::*;

const UPDATE: &str = "UPDATE t SET name = 42";

/// Other statements about the same table and column.
const OTHERS: [&str; 2] = [
    "UPDATE t SET name = 42 WHERE a IS NULL",
    "UPDATE t SET name = 42 WHERE b IS NULL",
];

/// Has the statement parsed, and says how many questions follow.
fn asked(room: &mut Room, text: &str) -> (Lesson, usize) {
    let mut lesson = room.teach(text);
    assert_eq!(room.answer(&mut lesson, &both_parsed()), Next::Asked);
    let asked = room.asks.questions;
    (lesson, asked)
}

/// A statement was learned, with all questions.
fn learned() -> Room {
    let mut room = Room::settled();
    let (mut lesson, asked) = asked(&mut room, UPDATE);
    assert_eq!(asked, 4);
    assert!(room.questions()[3].contains("pg_rewrite"));
    let catalog = rows(&[&["", "0", "0", "0", "0"], &["name", "integer"]]);
    let answers = [&alike()[..], &[catalog]].concat();
    assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
    room
}

#[test]
fn what_the_catalog_has_said_is_not_asked_again_about_another_statement() {
    let mut room = learned();
    let (mut lesson, asked) = asked(&mut room, OTHERS[0]);
    assert_eq!(asked, 3, "{:?}", room.questions());
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Learned);
    let verdict = room.verdict(OTHERS[0]);
    assert!(matches!(verdict, Verdict::Trusted { .. }), "{verdict:?}");
}

#[test]
fn it_is_asked_again_when_it_may_have_changed() {
    let mut room = learned();
    room.now = Millis(room.now.0 + 1_000_000 / 12 + 1);
    room.standing.database.take_watch(room.now, 1_000);
    assert_eq!(asked(&mut room, OTHERS[0]).1, 4);
    // Another user may see other tables by the same names.
    let room = learned();
    let mut other = WHO;
    other[6] = "somebody else";
    let mut room = room.another_as(other);
    assert_eq!(asked(&mut room, OTHERS[1]).1, 4);
}

#[test]
fn a_step_whose_answers_are_all_known_asks_nothing() {
    let text = "INSERT INTO t VALUES (1, 'a'), (2, 'b')";
    let columns = rows(&[&["id", "23", "1007", "b"], &["name", "25", "1009", "b"]]);
    let mut room = Room::settled();
    let mut lesson = room.teach(text);
    assert!(room.questions()[0].contains("typarray"));
    assert_eq!(room.answer(&mut lesson, &[columns]), Next::Asked);
    let another = format!("{text} ON CONFLICT DO NOTHING");
    room.teach(&another);
    assert!(
        room.questions()[1].contains("unnest($1"),
        "{:?}",
        room.questions()
    );
}
