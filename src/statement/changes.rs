//! The last changes of the catalog of one database, as far as they moved its epoch.
//!
//! Invariants:
//! - entries are in order and each takes over where the one before it ends, unless the epoch was
//!   moved by what is not written down here: then nothing is known of what was before;
//! - there are at most [`MAX`] entries, each of bounded size.

use super::Millis;
use super::journal::{Cause, Event};
use crate::sql::tag::Command;
use crate::sql::touched::Touched;
use std::collections::VecDeque;
use std::sync::Arc;

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
    event: Arc<Event>,
}

/// What has moved the epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'c> {
    /// What it may concern.
    pub(super) touched: &'c Touched,
    /// That as the text has named it.
    pub(super) named: &'c Touched,
    pub(super) tag: Command,
    pub(super) at: Millis,
}

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct Changes(VecDeque<Move>);

impl Changes {
    /// Writes down what has moved the epoch. Returns the event, unless it was another time of the
    /// last.
    pub(super) fn push(
        &mut self,
        (from, to): (u64, u64),
        change: Change<'_>,
    ) -> Option<Arc<Event>> {
        let Change {
            touched,
            named,
            tag,
            at,
        } = change;
        if let Some(last) = self.0.back_mut()
            && last.to == from
            && last.touched == *touched
            && last.event.tag == tag
        {
            last.to = to;
            last.event.again(at);
            return None;
        }
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        let event = Arc::new(Event::new(tag, named, touched, at));
        self.0.push_back(Move {
            from,
            to,
            touched: touched.clone(),
            event: Arc::clone(&event),
        });
        Some(event)
    }

    /// Counts a statement that has outlived what came between these epochs; returns the tags.
    pub(super) fn outlived(&self, (since, now): (u64, u64)) -> impl Iterator<Item = Command> {
        let is_between = move |change: &&Move| change.to > since && change.to <= now;
        self.0.iter().filter(is_between).map(|change| {
            change.event.is_outlived();
            change.event.tag
        })
    }

    /// Whether nothing that `concerns` has changed between these epochs.
    ///
    /// # Errors
    /// What has, or may have.
    pub(super) fn between(
        &self,
        (since, now): (u64, u64),
        concerns: impl Fn(&Touched) -> bool,
    ) -> Result<(), Cause> {
        let mut at = None;
        for change in self.0.iter().filter(|change| change.to > since) {
            // An epoch inside of the first one is as good as its beginning.
            let follows = at.map_or(change.from <= since, |at| change.from == at);
            if !follows {
                return Err(Cause::UNSEEN);
            }
            if concerns(&change.touched) {
                return Err(Cause {
                    tag: change.event.tag,
                    event: Some(Arc::clone(&change.event)),
                });
            }
            at = Some(change.to);
        }
        match at.unwrap_or(since) == now {
            true => Ok(()),
            false => Err(Cause::UNSEEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Touched {
        Touched::names(vec![name.as_bytes().into()])
    }

    fn push(changes: &mut Changes, epochs: (u64, u64), touched: &Touched, tag: Command) {
        let change = Change {
            touched,
            named: touched,
            tag,
            at: Millis(epochs.1),
        };
        changes.push(epochs, change);
    }

    fn ask(changes: &Changes, since: u64, now: u64, text: &str) -> Result<(), Command> {
        let concerns = |touched: &Touched| touched.concerns(text.as_bytes());
        let found = changes.between((since, now), concerns);
        found.map_err(|cause| cause.tag)
    }

    #[test]
    fn what_no_change_concerns_holds_and_the_first_that_does_is_named() {
        let mut changes = Changes::default();
        let [made, gone] = [&b"CREATE TABLE"[..], b"DROP TABLE"].map(Command::of);
        push(&mut changes, (1, 3), &names("a"), made);
        push(&mut changes, (3, 4), &names("a"), made);
        push(&mut changes, (4, 9), &names("b"), gone);
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
        push(&mut changes, (2, 3), &names("a"), Command::UNSEEN);
        assert_eq!(ask(&changes, 1, 3, ""), Err(Command::UNSEEN), "before it");
        assert_eq!(ask(&changes, 2, 4, ""), Err(Command::UNSEEN), "behind it");
        push(&mut changes, (4, 5), &names("a"), Command::UNSEEN);
        assert_eq!(ask(&changes, 2, 5, ""), Err(Command::UNSEEN), "in between");
        assert_eq!(ask(&changes, 4, 5, ""), Ok(()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut changes = Changes::default();
        for at in 0..3 * MAX as u64 {
            push(
                &mut changes,
                (at, at + 1),
                &names(&format!("t{at}")),
                Command::UNSEEN,
            );
        }
        let now = 3 * MAX as u64;
        assert_eq!(changes.0.len(), MAX);
        assert_eq!(ask(&changes, now - MAX as u64, now, "x"), Ok(()));
        assert_eq!(
            ask(&changes, now - MAX as u64 - 1, now, "x"),
            Err(Command::UNSEEN)
        );
    }

    #[test]
    fn what_a_change_was_to_statements_is_counted_with_it() {
        let mut changes = Changes::default();
        let [made, gone] = [&b"CREATE TABLE"[..], b"DROP TABLE"].map(Command::of);
        push(&mut changes, (1, 2), &names("a"), made);
        push(&mut changes, (2, 3), &names("a"), made);
        push(&mut changes, (3, 4), &names("b"), gone);
        let cause = changes.between((1, 4), |touched| touched.concerns(b"select b"));
        cause.expect_err("it is gone").count();
        assert_eq!(changes.outlived((1, 4)).collect::<Vec<_>>(), [made, gone]);
        assert_eq!(changes.outlived((3, 4)).collect::<Vec<_>>(), [gone]);
        assert_eq!(changes.outlived((4, 4)).count(), 0);
        let told = |at: usize| {
            let event = &changes.0[at].event;
            (
                event.times(),
                event.at().0,
                event.outdated(),
                event.outlived(),
            )
        };
        assert_eq!([told(0), told(1)], [(2, 3, 0, 1), (1, 4, 1, 2)]);
    }
}
