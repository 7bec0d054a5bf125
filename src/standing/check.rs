//! Whether a session is in a state in which a text may be converted.

use super::{Encoding, Standing};
use crate::reason::Reason;
use crate::sql::scan::Scan;
use crate::wire::backend::Status;

impl Standing {
    /// What the session's state says before a text is looked at.
    ///
    /// # Errors
    /// Why nothing may be converted now.
    pub fn check(&self) -> Result<(), Reason> {
        if self.status == Status::Failed {
            return Err(Reason::FailedTransaction);
        }
        if self.is_dirty() {
            return Err(Reason::DirtyTransaction);
        }
        if self.context.is_some() {
            self.check_settings()?;
        }
        if !self.standard_strings {
            return Err(Reason::NonstandardStrings);
        }
        if self.encoding == Encoding::Unsafe {
            return Err(Reason::Encoding);
        }
        Ok(())
    }

    /// Whether the session discards all again, and nobody has asked what there is to take away.
    #[must_use]
    pub fn discards_unknown(&mut self) -> bool {
        self.discard.has_been && (self.context.is_none() || !self.knows_remains())
    }

    /// Whether it is known that nothing tells the client of the statements that the server gets.
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.context.is_some() && self.settings.is_quiet
    }

    /// Whether savepoints may be set and released among statements that are executed together:
    /// nothing would have to be followed from one to the next.
    #[must_use]
    pub(crate) fn may_mark(&self) -> bool {
        self.status == Status::Transaction && self.course.is_straight() && self.reads_texts()
    }

    /// Whether the transaction may be committed behind such statements: it has changed nothing that
    /// they would be decided otherwise for, in another.
    #[must_use]
    pub(crate) fn may_commit(&self) -> bool {
        let has_changed = self.has_moved() || self.altered.is_some() || self.has_changed();
        self.status == Status::Transaction && !has_changed && self.reads_texts()
    }

    /// Whether the settings, as last asked for, allow any conversion.
    ///
    /// # Errors
    /// [`Reason::PlanCacheMode`] or [`Reason::VerboseSession`].
    pub const fn check_settings(&self) -> Result<(), Reason> {
        if !self.settings.chooses_plans {
            return Err(Reason::PlanCacheMode);
        }
        if !self.settings.is_quiet {
            return Err(Reason::VerboseSession);
        }
        Ok(())
    }

    /// Whether arrays may stand for the rows that `scan` has found: none of them may be NULL that
    /// is not read as such, and the server must not need a file for them, as it needs none for the
    /// rows of VALUES.
    ///
    /// # Errors
    /// [`Reason::Unfit`] if they may not.
    pub fn check_rows(&self, scan: &Scan) -> Result<(), Reason> {
        let settings = &self.settings;
        if !settings.has_array_nulls || scan.rows_memory() as u64 > settings.work_memory {
            return Err(Reason::Unfit);
        }
        Ok(())
    }
}
