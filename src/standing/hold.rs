//! What the session has locked that it may be about to change, as others are told.

use super::Standing;
use crate::sql::define;
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey::{self, Survey};
use crate::sql::touched::{Name, Touched};
use crate::statement::database::Database;
use std::sync::Arc;

/// What others are told that this session has locked: until this is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    database: Arc<Database>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.database.unlocks(self.number);
    }
}

impl Standing {
    /// A text is relayed that may lock something until its transaction ends; returns whether it
    /// may.
    pub(super) fn may_lock(&mut self, text: &[u8], survey: &Survey) -> bool {
        if may_lock_unseen(survey) {
            self.may_lock_anything();
            return true;
        }
        let Some(touched) = define::locks(text) else {
            return false;
        };
        let touched = match touched {
            Touched::Names(names) if self.standard_strings && !self.may_be_views(&names) => {
                let families = self.database.resolved(&Touched::families(names.clone()));
                families.and(self.database.resolved(&Touched::users(names)))
            }
            _ => Touched::Everything,
        };
        self.holds(&touched);
        true
    }

    /// A converted query is about to run that may do anything.
    #[cold]
    #[inline(never)]
    pub fn runs_unseen(&mut self, text: &[u8]) {
        let is_known = self.knows_names();
        if !is_known || may_lock_unseen(&survey::survey(text, &**self.names())) {
            self.may_lock_anything();
        }
    }

    /// Something runs of which it is not known what it locks, and may be about to change.
    pub(super) fn may_lock_anything(&mut self) {
        self.holds(&Touched::Everything);
    }

    /// From now on until the transaction ends, others are told that this is locked.
    fn holds(&mut self, touched: &Touched) {
        let database = Arc::clone(&self.database);
        let number = database.locks(self.own_hold(), touched);
        if self.hold.is_none() {
            self.hold = Some(Hold { database, number });
        }
    }

    /// Whether what has one of these names may be a view: what it reads is locked with it, which no
    /// name in the text says (`LockViewRecurse` in `lockcmds.c`).
    fn may_be_views(&self, names: &[Name]) -> bool {
        let made = &self.definitions;
        made.is_opaque || !made.list.is_empty() || self.database.may_be_views(names)
    }

    fn own_hold(&self) -> Option<u64> {
        self.hold.as_ref().map(|hold| hold.number)
    }

    /// Whether a statement with this text may wait for another session that is about to change what
    /// the text names.
    #[inline]
    #[must_use]
    pub fn is_held_up(&self, text: &[u8]) -> bool {
        self.database.is_held() && self.database.is_held_from(self.own_hold(), text)
    }
}

/// Whether what a text runs may lock what no name in it says: a function's body does, or the text
/// is none that is read.
const fn may_lock_unseen(survey: &Survey) -> bool {
    let hazards = survey.hazards;
    let is_unread = matches!(survey.effect, Effect::Unknown) && !hazards.has(Hazards::ANYTHING);
    hazards.has(Hazards::LOCKS) || is_unread
}
