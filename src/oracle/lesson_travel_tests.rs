//! Lessons that ask whether a statement may run elsewhere.

use super::*;
use crate::reason::Stay;
use crate::statement::Footprint;

/// The server's proof, and an answer of the catalog that objects to nothing.
const PROOF: &str =
    r#"[{"Plan": {"Node Type": "Gather", "Workers Planned": 1, "Single Copy": true}}]"#;
const REACHED: [&str; 13] = [
    "1", "rp", "0", "0", "0", "0", "0", "0", "", "", "", "0", "0",
];

/// Nothing is users' that a text may use without naming it, and the text mentions a plain table.
const OWN: [&str; 5] = ["0", "", "", "", ""];
const NEAR: [&str; 6] = ["r", "16400", "rp", "f", "23 0 ,25 100 ", "16403 0"];

/// One column of `int4`.
const RESULT: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";

/// The answers to the five questions.
fn answers() -> [Replies; 5] {
    [
        parsed(RESULT, &[23]),
        rows(&[&[PROOF]]),
        Vec::new(),
        rows(&[&OWN]),
        rows(&[&NEAR]),
    ]
}

/// A lesson that has come to the questions whether the statement may run elsewhere.
fn trusted() -> (Room, Lesson) {
    let mut room = Room::settled();
    room.lent.settings.proves_reads = true;
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Asked);
    (room, lesson)
}

impl Room {
    fn footprint(&mut self) -> Option<Footprint> {
        self.statement(SELECT, Plans::Generic).footprint()
    }
}

#[test]
fn a_trusted_read_is_asked_about_under_another_name_which_is_closed() {
    let (mut room, mut lesson) = trusted();
    let asked = room.questions();
    let [parse, explain, own, near] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(parse, "named SELECT name FROM t WHERE id = $1");
    assert!(explain.contains("debug_parallel_query = on") && explain.ends_with("_(NULL)"));
    assert!(own.contains("pg_policy"), "{own}");
    assert!(near.contains("pg_class"), "{near}");
    let statement = room.statement(SELECT, Plans::Generic);
    let entry = room.standing.mirror.lookup(statement.key()).unwrap();
    let probe = [entry.name.as_bytes(), b"_"].concat();
    let mut close = Vec::new();
    frontend::close_statement(&mut close, &probe);
    let closes = |bytes: &[u8]| memchr::memmem::find_iter(bytes, &close).count();
    assert_eq!(closes(&room.asks.bytes), 1);
    assert_eq!(room.answer(&mut lesson, &answers()), Next::Learned);
    assert_eq!(room.footprint(), Some(Footprint::Travels));
    assert_eq!(room.count(Counter::ReadsTravel), 1);
}

/// Has the lesson answered with these instead of the last two answers of [`answers`].
fn told(own: &[&str], near: &[&[&str]]) -> (Room, Lesson, Next) {
    let (mut room, mut lesson) = trusted();
    let mut answers = answers();
    answers[3] = rows(&[own]);
    answers[4] = rows(near);
    let next = room.answer(&mut lesson, &answers);
    (room, lesson, next)
}

#[test]
fn what_the_catalog_objects_to_stays() {
    let function: [&str; 6] = ["f", "16500", "name", "ss", "2200", "t"];
    let (mut room, _, next) = told(&OWN, &[&NEAR, &function]);
    assert_eq!(next, Next::Learned);
    let stays = Footprint::Stays(Stay::UserFunction);
    assert_eq!(room.footprint(), Some(stays));
    assert_eq!(room.metrics.summary().stays(Stay::UserFunction), 1);
}

#[test]
fn what_has_to_be_followed_is_asked_about_as_a_whole() {
    let view: [&str; 6] = ["r", "16400", "vp", "f", "23 0 ", ""];
    for (reached, found) in [
        ("0", Footprint::Travels),
        ("1", Footprint::Stays(Stay::UserObject)),
    ] {
        let (mut room, mut lesson, next) = told(&OWN, &[&view]);
        assert_eq!(next, Next::Asked);
        let asked = room.questions();
        assert!(asked.len() == 1 && asked[0].contains("WITH RECURSIVE named"));
        let mut whole = REACHED;
        whole[7] = reached;
        let answer = [rows(&[&whole])];
        assert_eq!(room.answer(&mut lesson, &answer), Next::Learned);
        assert_eq!(room.footprint(), Some(found));
    }
    let (mut room, mut lesson, _) = told(&OWN, &[&view]);
    let failed = [vec![error("XX000", "no")]];
    assert_eq!(room.answer(&mut lesson, &failed), Next::Learned);
    assert_eq!(room.footprint(), Some(Footprint::Unasked));
}

#[test]
fn casts_and_operators_of_users_are_asked_about_more_closely() {
    let stays = Footprint::Stays;
    for (own, finer, found) in [
        (["2", "", "", "", ""], ["0", "="], stays(Stay::UserOperator)),
        (["2", "", "", "", ""], ["1", "@"], stays(Stay::UserCast)),
        (["0", "@ =", "", "", ""], ["0", "@"], Footprint::Travels),
    ] {
        let (mut room, mut lesson, next) = told(&own, &[&NEAR]);
        assert_eq!(next, Next::Asked);
        let asked = room.questions();
        assert!(asked.len() == 1 && asked[0].contains("castsource"));
        assert_eq!(room.answer(&mut lesson, &[rows(&[&finer])]), Next::Learned);
        assert_eq!(room.footprint(), Some(found));
    }
    // Those of other names are not used.
    let (_, _, next) = told(&["0", "@ #", "", "", ""], &[&NEAR]);
    assert_eq!(next, Next::Learned);
}

#[test]
fn what_all_texts_have_in_common_is_asked_once() {
    let (mut room, mut lesson) = trusted();
    room.answer(&mut lesson, &answers());
    let mut lesson = room.teach("SELECT name FROM t WHERE name = 'a'");
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Asked);
    let asked = room.questions();
    assert!(asked.len() == 3 && !asked[2].contains("pg_policy"));
    let mut answers = answers().to_vec();
    answers.remove(3);
    assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
    assert_eq!(room.count(Counter::ReadsTravel), 2);
}

#[test]
fn a_question_that_fails_decides_nothing_and_the_statement_is_used() {
    for failed in [0, 1, 3, 4] {
        let (mut room, mut lesson) = trusted();
        let mut answers = answers();
        answers[failed] = vec![error("XX000", "no")];
        assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
        assert_eq!(room.footprint(), Some(Footprint::Unasked));
        let statement = room.statement(SELECT, Plans::Generic);
        assert!(room.is_ready(&statement));
    }
}

#[test]
fn what_a_changed_catalog_takes_back_takes_the_footprint_along() {
    let (mut room, mut lesson) = trusted();
    let before = room.standing.database.epoch();
    room.changed_past_the_proxy();
    room.answer(&mut lesson, &answers());
    assert_ne!(room.standing.database.epoch(), before);
    assert_ne!(room.footprint(), Some(Footprint::Travels));
}

#[test]
fn a_known_footprint_is_not_asked_about_again() {
    let (mut room, mut lesson) = trusted();
    room.answer(&mut lesson, &answers());
    let statement = room.statement(SELECT, Plans::Generic);
    let entry = room.standing.mirror.lookup(statement.key()).unwrap();
    let subject = Subject::Travel(Arc::clone(&statement), entry.name);
    let mut lesson = Lesson::new(subject, SELECT.as_bytes().to_vec());
    assert_eq!(room.begin(&mut lesson), Next::Learned);
}
