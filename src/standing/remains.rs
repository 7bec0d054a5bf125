//! What the texts of a session have left in it.

use super::Standing;
use crate::sql::residue::{self, Residue};
use crate::sql::survey::Survey;

impl Standing {
    /// Something has run that leaves this.
    #[inline]
    pub fn leaves(&mut self, residue: Residue) {
        self.residue = self.residue.max(residue);
    }

    /// What a text leaves, of which this is the survey, with what is known of the names in it. It is
    /// anything as long as that is not enough.
    #[must_use]
    pub fn residue_of(&mut self, text: &[u8], survey: &Survey) -> Residue {
        if survey.names && !(self.knows_names() && self.database.is_clear()) {
            return Residue::Anything;
        }
        let names = self.names();
        residue::residue(text, survey, |name| names.leaves(name))
    }

    /// A text is relayed of which this is the survey.
    pub(super) fn relays_residue(&mut self, text: &[u8], survey: &Survey) {
        if self.residue < Residue::Anything {
            let residue = self.residue_of(text, survey);
            self.leaves(residue);
        }
    }
}
