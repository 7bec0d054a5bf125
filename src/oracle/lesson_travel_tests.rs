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

/// One column of `int4`.
const RESULT: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";

/// The answers to the four questions.
fn answers() -> [Replies; 4] {
    [
        parsed(RESULT, &[23]),
        rows(&[&[PROOF]]),
        Vec::new(),
        rows(&[&REACHED]),
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
    let [parse, explain, reach] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(parse, "named SELECT name FROM t WHERE id = $1");
    assert!(explain.contains("debug_parallel_query = on") && explain.ends_with("_(NULL)"));
    assert!(reach.contains("pg_policy"), "{reach}");
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

#[test]
fn what_the_catalog_objects_to_stays() {
    let (mut room, mut lesson) = trusted();
    let mut answers = answers();
    let mut reached = REACHED;
    reached[2] = "1";
    answers[3] = rows(&[&reached]);
    assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
    let stays = Footprint::Stays(Stay::UserFunction);
    assert_eq!(room.footprint(), Some(stays));
    assert_eq!(room.metrics.summary().stays(Stay::UserFunction), 1);
}

#[test]
fn a_question_that_fails_decides_nothing_and_the_statement_is_used() {
    for failed in [0, 1, 3] {
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
