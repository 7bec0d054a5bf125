//! Looks at the catalog, and the glances that take their place.

use super::*;
use crate::sql::define::Definitions;
use crate::wire::backend::Status;

/// A look's answer, with these times, the start of the server, snapshot, roles and count of rows.
fn seen(sign: &str, horizon: &str) -> Replies {
    rows(&[&[sign, "rest", "", &format!("1 {horizon}")]])
}

fn is_look(question: &str) -> bool {
    question.contains("concat_ws('|'")
}

fn asks_for_rows(question: &str) -> bool {
    question.contains("FILTER")
}

/// Has the catalog looked at, by glances if they do. Each question gets one answer; returns what
/// was asked.
fn look(room: &mut Room, answers: &[Replies]) -> Vec<String> {
    let mut lesson = Lesson::new(Subject::Watch, Vec::new());
    let mut next = room.begin(&mut lesson);
    let mut asked = Vec::new();
    for answer in answers {
        assert_eq!(next, Next::Asked, "{asked:?}");
        asked.append(&mut room.questions());
        next = room.answer(&mut lesson, std::slice::from_ref(answer));
    }
    assert_eq!(next, Next::Learned, "{:?}", room.questions());
    asked
}

/// One whose last look has seen a quiet cluster with a hundred rows.
fn quiet() -> Room {
    let mut room = Room::settled();
    let asked = look(&mut room, &[seen("sign", "7 5 9000 1 90:90: -7 100")]);
    assert!(is_look(&asked[0]), "nothing was known to be quiet");
    room
}

#[test]
fn where_nothing_was_written_a_glance_does() {
    let mut room = quiet();
    let epoch = room.standing.database.epoch();
    let asked = look(&mut room, &[rows(&[&["7 5 10000 1 90:90:"]])]);
    assert!(!is_look(&asked[0]) && !asks_for_rows(&asked[0]));
    assert_eq!(room.standing.database.epoch(), epoch);
    assert!(!room.standing.database.was_looked_at(room.now));
    assert!(room.standing.database.was_looked_at(Millis(8)));
}

#[test]
fn where_nothing_that_matters_was_written_rows_do() {
    let mut room = quiet();
    let epoch = room.standing.database.epoch();
    let answers = [
        rows(&[&["7 5 10000 1 92:92:"]]),
        rows(&[&["7 5 10001 1 92:93:92 -7 100 0"]]),
    ];
    let asked = look(&mut room, &answers);
    assert!(!is_look(&asked[0]) && !is_look(&asked[1]));
    assert!(asked[1].contains("'90'::pg_catalog.xid"), "{}", asked[1]);
    // Now a transaction is under way, and rows of it would be new.
    let asked = look(&mut room, &[rows(&[&["7 5 10002 1 92:93:92 -7 100 0"]])]);
    assert!(asks_for_rows(&asked[0]) && asked[0].contains("'92'::pg_catalog.xid"));
    assert_eq!(room.standing.database.epoch(), epoch);
}

#[test]
fn what_is_otherwise_is_looked_at() {
    for rows_seen in [
        "7 5 10001 1 92:92: -7 100 1",
        "7 5 10001 1 92:92: -7 99 0",
        "7 5 10001 1 92:92: 8 100 0",
        "7 5 10001 2 92:92: -7 100 0",
        "7 9500 10001 1 92:92: -7 100 0",
        "nonsense",
    ] {
        let mut room = quiet();
        let epoch = room.standing.database.epoch();
        let answers = [
            rows(&[&["7 5 10000 1 92:92:"]]),
            rows(&[&[rows_seen]]),
            seen("another sign", "7 5 10002 1 92:92: -7 101"),
        ];
        let asked = look(&mut room, &answers);
        assert!(asks_for_rows(&asked[1]) && is_look(&asked[2]));
        assert!(room.standing.database.epoch() > epoch, "{rows_seen}");
    }
    // An answer that fails says nothing.
    let mut room = quiet();
    let failed = vec![error("55P03", "locked")];
    let answers = [
        failed.clone(),
        failed,
        seen("sign", "7 5 10002 1 92:92: -7 100"),
    ];
    assert!(is_look(&look(&mut room, &answers)[2]));
}

#[test]
fn glances_in_vain_are_few() {
    let mut room = quiet();
    let mut asked = Vec::new();
    for xid in 100..140 {
        let mut lesson = Lesson::new(Subject::Watch, Vec::new());
        let mut next = room.begin(&mut lesson);
        while next == Next::Asked {
            let question = room.questions().remove(0);
            let answer = match is_look(&question) {
                true => seen("sign", &format!("7 5 10000 1 {xid}:{xid}: -7 7{xid}")),
                false => rows(&[&[&format!("7 5 10000 1 {xid}:{xid}: -7 7{xid} 0")]]),
            };
            asked.push(is_look(&question));
            next = room.answer(&mut lesson, &[answer]);
        }
    }
    let glances = asked.iter().filter(|looks| !**looks).count();
    assert_eq!(asked.len() - glances, 40);
    assert!((8..20).contains(&glances), "{glances}");
}

#[test]
fn a_transaction_is_not_glanced_at_from_inside() {
    let mut room = quiet();
    room.standing.status = Status::Transaction;
    let mut lesson = Lesson::new(Subject::Watch, Vec::new());
    assert_eq!(room.begin(&mut lesson), Next::Asked);
    assert!(room.questions().iter().any(|question| is_look(question)));
    // What it has seen holds for itself alone.
    let nothing = Vec::new();
    let answers = [
        rows(&[&["read committed"]]),
        seen("sign", "7 5 10000 1 95:95: -7 100"),
        nothing.clone(),
        nothing,
    ];
    assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
    room.standing.status = Status::Idle;
    let answer = seen("sign", "7 5 10000 1 95:95: -7 100");
    assert!(is_look(&look(&mut room, &[answer])[0]));
}

#[test]
fn what_was_made_is_looked_at() {
    let mut room = quiet();
    room.standing.database.defined(&Definitions::opaque());
    let mut lesson = Lesson::new(Subject::Watch, Vec::new());
    assert_eq!(room.begin(&mut lesson), Next::Asked);
    assert!(is_look(&room.questions()[0]));
}
