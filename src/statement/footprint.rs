//! What a statement needs of the session that runs it.

use super::{Statement, Verdict, lock};
use crate::reason::Stay;

/// Whether a statement may be run on the server connection of another session that is like its
/// own. It is part of a verdict and goes with it: with the catalog's epoch, and with its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Footprint {
    /// Nobody has asked.
    #[default]
    Unasked,
    /// It may: its answer depends on the database and on what both sessions have in common.
    Travels,
    /// It may not.
    Stays(Stay),
}

/// Executions of a statement before it is asked about. The questions take 3 to 4 ms of the server's
/// processor time (15), and a quick read that shares a connection would save some 25 µs.
const PAYS: u32 = 160;

impl Statement {
    /// Whether it was executed so often that asking what it needs may pay.
    #[must_use]
    pub fn earns_footprint(&self) -> bool {
        self.executions() >= PAYS
    }

    /// What running it elsewhere would need, if it is trusted.
    #[must_use]
    pub fn footprint(&self) -> Option<Footprint> {
        match *lock(&self.verdict) {
            Verdict::Trusted { footprint, .. } => Some(footprint),
            _ => None,
        }
    }

    /// Notes what it needs of the session that runs it, if it is trusted as of this catalog epoch.
    /// Nothing that a mirror holds depends on that.
    pub fn note_footprint(&self, at: u64, found: Footprint) {
        if let Verdict::Trusted {
            epoch, footprint, ..
        } = &mut *lock(&self.verdict)
            && *epoch == at
        {
            *footprint = found;
        }
    }
}
