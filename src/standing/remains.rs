//! What the texts of a session have left in it, and how that is taken away.

use super::{Encoding, Standing};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::residue::{self, Residue};
use crate::sql::survey::Survey;
use crate::sql::touched::Touched;
use crate::statement::Recipe;
use std::sync::Arc;

/// A statement that takes away what is left in a session, and the tag it completes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Its text.
    pub text: &'static [u8],
    /// Its command tag.
    pub tag: &'static [u8],
    /// It answers with a row.
    pub has_row: bool,
    takes: Residue,
}

/// All of them, in the order in which they are to be sent: a time limit that the client has set is
/// to be gone first.
const RESETS: [Reset; 3] = [
    Reset {
        text: b"RESET ALL",
        tag: b"RESET",
        has_row: false,
        takes: Residue::SETTINGS,
    },
    Reset {
        text: b"SELECT pg_catalog.pg_advisory_unlock_all()",
        tag: b"SELECT 1",
        has_row: true,
        takes: Residue::LOCKS,
    },
    Reset {
        text: b"DISCARD SEQUENCES",
        tag: b"DISCARD SEQUENCES",
        has_row: false,
        takes: Residue::SEQUENCES,
    },
];

impl Standing {
    /// Something has run that leaves this.
    #[inline]
    pub fn leaves(&mut self, residue: Residue) {
        if residue.has(Residue::KEPT) && !self.residue.has(Residue::KEPT) {
            self.kept_since = self.database.epoch();
        }
        self.residue |= residue;
    }

    /// Whether nobody can tell what the server keeps of functions that have run: the catalog is as
    /// it was before the first of them, as far as is known.
    #[must_use]
    pub fn keeps_the_present(&self) -> bool {
        let concerns = |touched: &Touched| !touched.is_nothing();
        !self.residue.has(Residue::KEPT) || self.database.holds(self.kept_since, concerns).is_ok()
    }

    /// What a text leaves, of which this is the survey, with what is known of the names in it. It
    /// is anything as long as that is not enough.
    #[must_use]
    pub fn residue_of(&mut self, text: &[u8], survey: &Survey) -> Residue {
        let is_read = self.standard_strings && self.encoding != Encoding::Unsafe;
        let is_known = !survey.names || self.knows_names() && self.database.is_clear();
        if !is_read || !is_known {
            return Residue::ANYTHING;
        }
        residue::residue(text, survey, &**self.names())
    }

    /// The same of a text of which the recipe was met.
    fn residue_of_met(&mut self, text: &[u8], survey: &Survey, met: &Recipe) -> Residue {
        let names = Arc::clone(self.names());
        let is_read = self.standard_strings && self.encoding != Encoding::Unsafe;
        if !is_read || !self.knows_names() || !self.database.is_clear() {
            return self.residue_of(text, survey);
        }
        met.residue(&names, survey, || residue::residue(text, survey, &*names))
    }

    /// A text is relayed of which this is the survey. `met` is its recipe if that was found, and
    /// `is_idle` says that nothing is in flight before it.
    pub(super) fn relays_residue(
        &mut self,
        text: &[u8],
        survey: &Survey,
        (met, is_idle): (Option<&Recipe>, bool),
    ) {
        if self.residue.is_anything() {
            return;
        }
        // How it is read depends on what a text before it sets.
        let residue = match is_idle || !self.residue.has(Residue::SETTINGS) {
            true => match met {
                Some(recipe) => self.residue_of_met(text, survey, recipe),
                None => self.residue_of(text, survey),
            },
            false => Residue::ANYTHING,
        };
        self.may_limit(text, residue);
        self.leaves(residue);
    }

    /// What takes away what is left; `None` if nothing may be known to do that.
    #[must_use]
    pub fn resets(&self) -> Option<Vec<Reset>> {
        let left = self.residue;
        let needed = RESETS.iter().filter(|reset| left.has(reset.takes));
        (!left.is_anything()).then(|| needed.copied().collect())
    }

    /// A reset is about to be sent, behind which nothing else is in flight but others.
    pub fn sends_reset(&mut self, reset: Reset, is_first: bool) {
        if reset.takes == Residue::SETTINGS {
            self.relays_query(reset.text, None, (Reason::SessionEffect, is_first));
        }
    }

    /// A reset has completed.
    pub fn completes_reset(&mut self, reset: Reset) {
        if reset.takes == Residue::SETTINGS {
            self.completed(reset.tag, Some(Effect::Session));
        }
    }

    /// All that was left was taken away, but for what nothing takes away.
    pub const fn is_clean_again(&mut self) {
        let is_kept = self.residue.has(Residue::KEPT);
        self.residue = if is_kept {
            Residue::KEPT
        } else {
            Residue::NOTHING
        };
    }
}
