//! How far a database is known not to have changed.

use super::Database;
use crate::sql::touched::Touched;
use crate::statement::lock;
use crate::statement::sight::{Difference, Seen, Sight};
use std::sync::atomic::Ordering;

impl Database {
    /// Counts the changes of the catalog that are known of: those that may have been made through
    /// the proxy, and those that a look has found since another.
    #[must_use]
    pub fn alterations(&self) -> u64 {
        self.alterations.load(Ordering::Acquire)
    }

    /// Whether it was found that all operators, functions, casts and types that look like the
    /// server's own are, and no change of the catalog is known of since.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.built_in.load(Ordering::Acquire) == self.alterations() + 1
    }

    /// That was found by a question that was put no earlier than this count of
    /// [`alterations`](Self::alterations).
    pub fn found_built_in(&self, at: u64) {
        self.built_in.store(at + 1, Ordering::Release);
    }

    pub(super) fn alters(&self) {
        self.alterations.fetch_add(1, Ordering::AcqRel);
    }

    /// Something has run in a session that may have changed the catalog, and is committed if it
    /// has: others are to look before they rely on what they know.
    pub fn suspect(&self) {
        self.alters();
        self.suspicion.raise();
    }

    /// A session locks this until it [`unlocks`](Self::unlocks) it. Returns its number, which is
    /// `own` if it has locked something already.
    pub fn locks(&self, own: Option<u64>, touched: &Touched) -> u64 {
        self.held.hold(own, touched)
    }

    /// The session of this number has nothing locked any more.
    pub fn unlocks(&self, number: u64) {
        self.held.release(number);
    }

    /// Whether a session has locked something.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held.is_any()
    }

    /// Whether a session other than that of the number `own` has locked what this text names.
    #[must_use]
    pub fn is_held_from(&self, own: Option<u64>, text: &[u8]) -> bool {
        self.held.concerns(own, text)
    }

    /// Takes in what a look has seen.
    pub(super) fn look(&self, seen: &mut Seen, sight: Sight, suspect: bool) -> Option<Difference> {
        let is_first = !seen.is_any();
        let difference = seen.look(sight, suspect);
        // A first look has nothing to compare with.
        if !is_first && difference.is_some() {
            self.alters();
        }
        difference
    }

    /// Whether the catalog was ever looked at, so that looks tell what has changed since.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        lock(&self.seen).is_any()
    }
}
