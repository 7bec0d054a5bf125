//! The last changes of the catalog of one database, as far as they moved its epoch.
//!
//! Invariants:
//! - entries are in order and each takes over where the one before it ends, unless the epoch was
//!   moved by what is not written down here: then nothing is known of what was before;
//! - there are at most [`MAX`] entries, each of bounded size.

use crate::sql::tag::Command;
use crate::sql::touched::Touched;
use std::collections::VecDeque;

/// The most changes that are remembered. Whoever has not looked for so long learns anew.
const MAX: usize = 64;

/// One change, or several in a row that touch the same.
#[derive(Debug)]
struct Move {
    /// The epoch before.
    from: u64,
    /// The epoch after.
    to: u64,
    touched: Touched,
    tag: Command,
}

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct Changes(VecDeque<Move>);

impl Changes {
    /// Writes down what has moved the epoch.
    pub(super) fn push(&mut self, (from, to): (u64, u64), touched: &Touched, tag: Command) {
        if let Some(last) = self.0.back_mut()
            && last.to == from
            && last.touched == *touched
            && last.tag == tag
        {
            last.to = to;
            return;
        }
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        let touched = touched.clone();
        self.0.push_back(Move {
            from,
            to,
            touched,
            tag,
        });
    }

    /// Whether nothing that `concerns` has changed between these epochs.
    ///
    /// # Errors
    /// The tag of what has, or may have.
    pub(super) fn between(
        &self,
        (since, now): (u64, u64),
        concerns: impl Fn(&Touched) -> bool,
    ) -> Result<(), Command> {
        let mut at = None;
        for change in self.0.iter().filter(|change| change.to > since) {
            // An epoch inside of the first one is as good as its beginning.
            let follows = at.map_or(change.from <= since, |at| change.from == at);
            if !follows {
                return Err(Command::UNSEEN);
            }
            if concerns(&change.touched) {
                return Err(change.tag);
            }
            at = Some(change.to);
        }
        match at.unwrap_or(since) == now {
            true => Ok(()),
            false => Err(Command::UNSEEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Touched {
        Touched::names(vec![name.as_bytes().into()])
    }

    fn ask(changes: &Changes, since: u64, now: u64, text: &str) -> Result<(), Command> {
        changes.between((since, now), |touched| touched.concerns(text.as_bytes()))
    }

    #[test]
    fn what_no_change_concerns_holds_and_the_first_that_does_is_named() {
        let mut changes = Changes::default();
        let [made, gone] = [&b"CREATE TABLE"[..], b"DROP TABLE"].map(Command::of);
        changes.push((1, 3), &names("a"), made);
        changes.push((3, 4), &names("a"), made);
        changes.push((4, 9), &names("b"), gone);
        assert_eq!(changes.0.len(), 2, "the first two are one");
        for since in [1, 3, 4, 9] {
            assert_eq!(ask(&changes, since, 9, "select c"), Ok(()), "{since}");
        }
        assert_eq!(ask(&changes, 1, 9, "select a, b"), Err(made));
        assert_eq!(
            ask(&changes, 3, 9, "select a, b"),
            Err(made),
            "it may be part of it"
        );
        assert_eq!(ask(&changes, 4, 9, "select a, b"), Err(gone));
        assert_eq!(ask(&changes, 9, 9, "select a, b"), Ok(()));
    }

    #[test]
    fn what_moved_the_epoch_otherwise_leaves_nothing_known() {
        let mut changes = Changes::default();
        assert_eq!(
            ask(&changes, 1, 2, ""),
            Err(Command::UNSEEN),
            "nothing is written down"
        );
        changes.push((2, 3), &names("a"), Command::UNSEEN);
        assert_eq!(ask(&changes, 1, 3, ""), Err(Command::UNSEEN), "before it");
        assert_eq!(ask(&changes, 2, 4, ""), Err(Command::UNSEEN), "behind it");
        changes.push((4, 5), &names("a"), Command::UNSEEN);
        assert_eq!(ask(&changes, 2, 5, ""), Err(Command::UNSEEN), "in between");
        assert_eq!(ask(&changes, 4, 5, ""), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut changes = Changes::default();
        for at in 0..3 * MAX as u64 {
            changes.push((at, at + 1), &names(&format!("t{at}")), Command::UNSEEN);
        }
        let now = 3 * MAX as u64;
        assert_eq!(changes.0.len(), MAX);
        assert_eq!(ask(&changes, now - MAX as u64, now, "x"), Ok(()));
        assert_eq!(
            ask(&changes, now - MAX as u64 - 1, now, "x"),
            Err(Command::UNSEEN)
        );
    }
}
