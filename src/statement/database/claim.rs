//! Who asks for the names of a database.

use super::Database;
use crate::statement::names::Names;
use crate::statement::naming::Question;
use crate::statement::{Millis, lock};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The right to ask for the names of a database. When it is dropped without an answer, another
/// session may ask at once.
#[derive(Debug)]
pub struct NamesClaim {
    pub(super) database: Arc<Database>,
    pub(super) question: Question,
    pub(super) asked: Millis,
    pub(super) answered: bool,
}

impl NamesClaim {
    /// Records the answer: the names that the database has.
    pub fn answer(mut self, names: Names, now: Millis) {
        self.answered = true;
        let took = now.since(self.asked);
        self.database.asking.spend(took, now);
        self.database.pooling.spend(took, now);
        self.database.names_from.store(0, Ordering::Relaxed);
        let mut naming = lock(&self.database.names);
        if naming.answer(self.question, names) {
            self.database.notes_draws(&naming);
            self.database.naming.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for NamesClaim {
    fn drop(&mut self) {
        lock(&self.database.names).asked_no_more(self.question);
        if !self.answered {
            self.database.names_from.store(0, Ordering::Relaxed);
        }
    }
}
