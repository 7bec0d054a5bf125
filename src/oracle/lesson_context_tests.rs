//! What a session is asked to find out its context.

use super::*;
use crate::oracle::settings::Rights;

/// What comes behind the settings if the server says this of the role's rights.
const fn saying(rights: &str) -> [&str; 7] {
    ["1048576", rights, "7", "1763880000.5", "0", "0", "who"]
}

#[test]
fn a_session_that_another_process_answers_is_only_relayed_and_so_is_who_comes_next() {
    let of_another = ["1048576", "0 70", "8", "1763880000.5", "0", "0", "who"];
    let of_nobody = ["1048576", "0 70", "", "1763880000.5", "0", "0", "who"];
    for answer in [of_another, of_nobody] {
        let mut room = Room::new();
        let (_, next) = room.asked_for_context(&[answer]);
        assert_eq!(next, Next::Over(Reason::RelayOnly));
        assert!(room.standing.is_unfollowed && room.standing.residue.is_anything());
        assert_eq!(room.standing.context, None);
        let mut room = room.newcomer();
        room.standing.may_be_pooled(Millis(room.now.0 + 60_001));
        assert!(!room.standing.is_unfollowed);
        room.standing.may_be_pooled(Millis(room.now.0 + 60_000));
        assert!(room.standing.is_unfollowed);
    }
}

#[test]
fn a_look_or_a_glance_that_another_process_answers_shows_it_too() {
    let mut room = Room::new();
    let mut lesson = Lesson::behind(Subject::Watch, Vec::new());
    assert_eq!(room.begin(&mut lesson), Next::Asked);
    let looked = rows(&[&["sign", "rest", "", "1 8 5 10000 1 90:90: -7 100"]]);
    let over = Next::Over(Reason::RelayOnly);
    assert_eq!(room.answer(&mut lesson, &[looked]), over);
    assert!(room.standing.is_unfollowed);
    assert!(!room.standing.database.is_direct());
}

/// Whether the question about the context asks for rights.
fn asks_for_rights(question: &str) -> Option<Rights> {
    question.contains("SHOW ALL").then(|| {
        let asks = question.contains("aclexplode");
        if asks { Rights::Asked } else { Rights::Known }
    })
}

impl Room {
    /// A new session with the same database, which is to be asked for its context.
    fn newcomer(self) -> Self {
        Self {
            standing: standing(&self.lent),
            ..self
        }
    }

    /// Asks the session, whose server answers the question about the context so each time; returns
    /// how it was asked, and what became of it.
    fn asked_for_context(&mut self, answers: &[[&str; 7]]) -> (Vec<Rights>, Next) {
        let mut lesson = Lesson::behind(Subject::Watch, Vec::new());
        let mut next = self.begin(&mut lesson);
        let (mut asked, mut answers) = (Vec::new(), answers.iter());
        while next == Next::Asked {
            let answer = match &*self.questions()[0] {
                question if question.contains("concat_ws('|'") => {
                    rows(&[&["sign", "rest", "", "1"]])
                }
                question => match asks_for_rights(question) {
                    Some(rights) => {
                        asked.push(rights);
                        context(*answers.next().unwrap())
                    }
                    None => Vec::new(),
                },
            };
            next = self.answer(&mut lesson, &[answer]);
        }
        assert!(answers.next().is_none());
        (asked, next)
    }
}

/// How a session is asked that is to tell its context then.
fn asks(room: &mut Room, answers: &[[&str; 7]]) -> Vec<Rights> {
    let (asked, next) = room.asked_for_context(answers);
    assert_eq!(next, Next::Learned);
    asked
}

#[test]
fn the_rights_of_a_role_are_asked_for_once() {
    let mut room = Room::settled_as(saying("1 70"));
    let first = room.standing.context;
    room = room.newcomer();
    assert_eq!(asks(&mut room, &[saying("70")]), [Rights::Known]);
    assert_eq!(room.standing.context, first);
    assert!(room.standing.settings.has_indirect_rights);
}

#[test]
fn another_role_is_asked_for_its_own() {
    let mut room = Room::settled_as(saying("1 70"));
    for asked in [&[Rights::Known, Rights::Asked][..], &[Rights::Known]] {
        room = room.newcomer();
        let answers = [saying("71"), saying("0 71")];
        assert_eq!(asks(&mut room, &answers[..asked.len()]), asked);
        assert!(!room.standing.settings.has_indirect_rights);
    }
}

#[test]
fn who_may_have_something_temporary_is_asked_for_everything() {
    let mut room = Room::settled();
    room = room.newcomer();
    let both = [Rights::Known, Rights::Asked];
    assert_eq!(asks(&mut room, &[saying(""), saying("0 70")]), both);
    assert!(room.standing.context.is_some());
    room.standing.context = None;
    assert_eq!(asks(&mut room, &[saying("0 70")]), [Rights::Asked]);
}

#[test]
fn rights_that_may_have_changed_are_asked_for_again() {
    let mut room = Room::settled();
    room.standing.database.advance_cluster();
    room = room.newcomer();
    assert_eq!(asks(&mut room, &[saying("0 70")]), [Rights::Asked]);
}

#[test]
fn an_answer_without_what_was_asked_for_is_none() {
    let mut room = Room::new();
    let (asked, next) = room.asked_for_context(&[saying("70")]);
    assert_eq!(asked, [Rights::Asked]);
    assert_eq!(next, Next::Over(Reason::OracleFailed));
}
