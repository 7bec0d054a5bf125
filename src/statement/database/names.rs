//! What is known of the names of a database.

use super::Database;
use crate::sql::define::Definition;
use crate::statement::lock;
use crate::statement::names::Names;
use crate::statement::names::transition::Basis;
use crate::statement::naming::Naming;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Database {
    /// Counts the changes of the names whose use has hazards.
    #[must_use]
    pub fn naming(&self) -> u64 {
        self.naming.load(Ordering::Acquire)
    }

    /// The names, if the question `since` or a later one was answered, with the count of their
    /// changes.
    #[must_use]
    pub fn names(&self, since: u64) -> (u64, Option<Arc<Names>>) {
        let names = lock(&self.names);
        (self.naming(), names.known(since).map(Arc::clone))
    }

    /// The number of the next question: its answer will hold everything that is in the catalog now.
    #[must_use]
    pub fn names_from_now(&self) -> u64 {
        lock(&self.names).next_question()
    }

    /// Whether it is known which names leave something in the sessions that use them.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        lock(&self.names).is_clear()
    }

    /// Whether something was defined since the names were asked for.
    #[must_use]
    pub fn has_old_names(&self) -> bool {
        let names = lock(&self.names);
        !names.is_clear() || names.is_doubtful()
    }

    /// The names that were told last, though they may be no longer known.
    #[must_use]
    pub fn told(&self) -> Option<Basis> {
        lock(&self.names).told().cloned()
    }

    /// What was defined since these names were asked for and before those that were told last, as
    /// far as it may leave something; `None` if it may be anything, or nobody has seen all of it.
    #[must_use]
    pub fn defined_since(&self, before: &Basis) -> Option<Vec<Arc<Definition>>> {
        lock(&self.names).defined_since(before)
    }

    /// Whether what was defined since is no matter for a text, whose words are all that it names.
    #[must_use]
    pub fn is_clear_of(&self, text: &[u8]) -> bool {
        lock(&self.names).is_clear_of(text)
    }

    /// Whether it is known what draws from sequences when it is written.
    #[must_use]
    pub fn knows_draws(&self) -> bool {
        self.knows_draws.load(Ordering::Acquire)
    }

    /// Whether names are known, but should be asked for again.
    #[must_use]
    pub fn doubts_names(&self) -> bool {
        lock(&self.names).is_doubtful()
    }

    /// Notes what the names know now of what draws from sequences.
    pub(super) fn notes_draws(&self, names: &Naming) {
        self.knows_draws
            .store(names.knows_draws(), Ordering::Release);
    }
}
