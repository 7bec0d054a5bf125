//! A text in flight that is followed, and how much of it has completed.

use crate::sql::moves::Move;

/// A text in flight that is followed.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) does: Move,
    /// A transaction was open when it was sent.
    pub(super) is_inside: bool,
    /// The text did not show by its verb that it changes settings.
    pub(super) is_unseen: bool,
    /// How many of its statements have completed, if there are several.
    completed: usize,
    /// It has completed, as this says.
    pub(super) done: Option<Done>,
}

/// How a text has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// As it should.
    Well,
    /// It was to commit a transaction that had failed.
    RolledBack,
}

impl Pending {
    /// What is about to be sent.
    pub(super) const fn new(does: Move, is_inside: bool, is_unseen: bool) -> Self {
        Self {
            does,
            is_inside,
            is_unseen,
            completed: 0,
            done: None,
        }
    }

    /// A statement has completed with this tag; returns whether it can be one of the text's.
    pub(super) fn completes(&mut self, tag: &[u8]) -> bool {
        if self.done.is_some() {
            return false;
        }
        self.done = match (&self.does, tag) {
            (Move::Several(parts), _) => {
                let expected = parts.get(self.completed);
                if !expected.is_some_and(|part| part.completes_with(tag)) {
                    return false;
                }
                self.completed += 1;
                (self.completed == parts.len()).then_some(Done::Well)
            }
            (Move::Commit, b"ROLLBACK") => Some(Done::RolledBack),
            (Move::Commit, b"COMMIT")
            | (Move::Rollback | Move::RollbackTo(_), b"ROLLBACK")
            | (Move::Savepoint(_), b"SAVEPOINT")
            | (Move::Release(_), b"RELEASE")
            | (Move::DiscardAll, b"DISCARD ALL")
            | (Move::ResetAll, b"RESET")
            | (Move::Settings(_), b"SET" | b"RESET" | b"SELECT 1")
            | (Move::Nothing, b"SET" | b"SET CONSTRAINTS" | b"DEALLOCATE" | b"DEALLOCATE ALL") => {
                Some(Done::Well)
            }
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::moves;

    #[test]
    fn all_statements_of_a_text_complete_in_their_order() {
        let text = b"SELECT pg_advisory_unlock_all(); CLOSE ALL; RESET ALL; SET ROLE a";
        let tags: [&[u8]; 4] = [b"SELECT 1", b"CLOSE CURSOR ALL", b"RESET", b"SET"];
        let pending = || Pending::new(moves::read(text).expect("a move"), false, false);
        let mut whole = pending();
        for (count, tag) in tags.iter().enumerate() {
            assert_eq!(whole.done, None, "{count}");
            assert!(whole.completes(tag), "{count}");
        }
        assert_eq!(whole.done, Some(Done::Well));
        assert!(!whole.completes(b"SELECT 1"), "there is no fifth");
        let mut other = pending();
        assert!(other.completes(b"SELECT 1"));
        assert!(!other.completes(b"RESET"), "the second closes cursors");
        assert_eq!(other.done, None);
    }
}
