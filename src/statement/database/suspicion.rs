//! The suspicion that something which has run in a session has changed the catalog for others.
//!
//! A function that a query calls, or a DO block, may define anything, and no text shows it. The
//! next query of any session looks at the catalog first. Until that look has answered, the other
//! sessions rely on nothing either: their queries go through as they are.
//!
//! Invariants:
//! - a suspicion that is raised while a look is under way is another one, which has to be looked
//!   into again;
//! - nobody waits for a look that never answers: after [`LONGEST`] the regular ones take over.

use crate::statement::Millis;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Milliseconds for which a look may keep the others from relying on what they know. By then a
/// regular one is due.
const LONGEST: u64 = 1_000;

/// What is suspected of a database.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// It is to be looked into.
    is_raised: AtomicBool,
    /// When somebody has begun to look into it, in milliseconds plus one; zero if nobody does.
    looking: AtomicU64,
}

impl Suspicion {
    /// Something has run that may have changed the catalog.
    pub(super) fn raise(&self) {
        self.is_raised.store(true, Ordering::Release);
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }

    /// Somebody is about to look at the catalog.
    pub(super) fn look(&self, now: Millis) {
        // The others may see that nothing is suspected any more only once they see the look. One
        // that is raised meanwhile is looked into as well: the question is yet to be put.
        if self.is_raised() {
            self.looking.store(now.0 + 1, Ordering::Release);
            self.is_raised.store(false, Ordering::Release);
        }
    }

    /// A look has answered that was begun at this time. Of two that were begun in the same
    /// millisecond the other may have been before: for so long the clock does not tell.
    pub(super) fn looked(&self, asked: Millis) {
        let begun = self.looking.load(Ordering::Acquire);
        if begun > 0 && begun <= asked.0 + 1 {
            let order = Ordering::Relaxed;
            // If not, somebody looks into another one meanwhile.
            let _ = self.looking.compare_exchange(begun, 0, order, order);
        }
    }

    /// Whether somebody looks into one now.
    #[inline]
    pub(super) fn is_looked_into(&self, now: Millis) -> bool {
        let begun = self.looking.load(Ordering::Acquire);
        begun > 0 && now.0 < begun + LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_wait_for_the_look_that_was_begun_behind_it() {
        let suspicion = Suspicion::default();
        suspicion.look(Millis(5));
        assert!(!suspicion.is_looked_into(Millis(5)), "nothing is suspected");
        suspicion.raise();
        suspicion.look(Millis(10));
        assert!(!suspicion.is_raised());
        assert!(suspicion.is_looked_into(Millis(11)));
        suspicion.looked(Millis(9));
        assert!(suspicion.is_looked_into(Millis(12)), "that one was before");
        suspicion.raise();
        suspicion.look(Millis(20));
        suspicion.looked(Millis(10));
        assert!(suspicion.is_looked_into(Millis(21)), "it is another one");
        suspicion.looked(Millis(20));
        assert!(!suspicion.is_looked_into(Millis(21)));
        suspicion.raise();
        suspicion.look(Millis(30));
        assert!(suspicion.is_looked_into(Millis(1_030)));
        assert!(!suspicion.is_looked_into(Millis(1_031)), "it has no answer");
    }
}
