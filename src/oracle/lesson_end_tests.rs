//! Lessons that end before they are over: what they leave to others, and what they take along.

use super::*;
use crate::statement::Footprint;

#[test]
fn a_lesson_that_ends_early_leaves_the_question_for_names_to_others() {
    let mut room = Room::new();
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &[rows(&[&["sign", "rest", "", "1"]])]);
    let database = Arc::clone(&room.standing.database);
    assert!(
        database.claim_names(room.now, false).is_none(),
        "it is being asked"
    );
    drop(lesson);
    assert!(database.claim_names(room.now, false).is_some());
}

#[test]
fn the_error_of_a_question_that_is_cancelled_is_kept() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    let cancelled = error("57014", "canceling statement due to user request");
    let answers = [vec![cancelled.clone()], parsed(b"name", &[23])];
    let over = Next::Over(Reason::Pipelined);
    assert_eq!(room.answer(&mut lesson, &answers), over);
    assert_eq!(lesson.cancelled(), Some(&*cancelled));
    assert_eq!(room.verdict(SELECT), Verdict::Unasked);
    assert!(!room.standing.setbacks.rest(room.now), "nothing has failed");
}

#[test]
fn a_pointless_lesson_leaves_nothing_behind() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    room.is_pointless = true;
    let over = Next::Over(Reason::Pipelined);
    assert_eq!(room.answer(&mut lesson, &both_parsed()), over);
    assert!(room.asks.bytes.is_empty());
    assert!(room.standing.mirror.is_empty() && room.standing.mirror.owes());
    assert_eq!(room.verdict(SELECT), Verdict::Unasked, "others may ask");
    assert_eq!(lesson.cancelled(), None);
}

#[test]
fn a_pointless_lesson_takes_nothing_from_other_sessions() {
    let room = Room::settled();
    let database = Arc::clone(&room.standing.database);
    let epoch = database.epoch();
    room.changed_past_the_proxy();
    let mut room = room.another();
    assert!(database.epoch() > epoch);
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &both_parsed());
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Learned);
    // The lesson of yet another session began before the catalog changed, and ends now.
    let statement = room.statement(SELECT, Plans::Generic);
    let Verdict::Trusted { at, terms, .. } = statement.verdict() else {
        panic!("{:?}", statement.verdict());
    };
    let footprint = Footprint::Unasked;
    statement.record(Verdict::Trusted {
        epoch,
        at,
        terms,
        footprint,
    });
    let mut room = room.another();
    let mut lesson = room.teach(SELECT);
    room.is_pointless = true;
    let over = Next::Over(Reason::Pipelined);
    assert_eq!(room.answer(&mut lesson, &both_parsed()), over);
    assert_eq!(statement.verdict(), Verdict::Unasked, "others may ask");
    assert!(!statement.is_withdrawn(), "it is ready elsewhere");
}

#[test]
fn an_error_of_the_moment_settles_nothing_and_gives_a_pause() {
    for (answers, owes) in [
        ([vec![error("55P03", "lock")], parsed(b"name", &[23])], true),
        ([parsed(b"name", &[]), vec![error("42P05", "taken")]], false),
    ] {
        let mut room = Room::settled();
        let mut lesson = room.teach(SELECT);
        let over = Next::Over(Reason::OracleFailed);
        assert_eq!(room.answer(&mut lesson, &answers), over);
        assert!(room.standing.setbacks.rest(room.now));
        assert!(room.standing.mirror.is_empty());
        assert_eq!(room.standing.mirror.owes(), owes);
        assert_eq!(room.verdict(SELECT), Verdict::Unasked);
    }
}

#[test]
fn who_asks_about_everything_at_once_waits_for_nobody_who_asks_for_the_names() {
    for (threshold, asks) in [(1, true), (2, false)] {
        let mut room = Room::new();
        room.lent.settings.prepare_threshold = threshold;
        let mut lesson = room.teach(SELECT);
        let _other = room.standing.database.claim_names(room.now, false).unwrap();
        let next = room.answer(&mut lesson, &[rows(&[&["sign", "rest", "", "1"]])]);
        assert_eq!(next == Next::Asked, asks, "{threshold}: {next:?}");
    }
}
