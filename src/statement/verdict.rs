//! What the oracle has said of a statement.

use super::hindrance::Hindrance;
use super::{Footprint, Millis, Terms};
use crate::reason::Reason;
use crate::sql::stays::Blame;
use std::sync::Arc;

/// What is known of a statement's right to stand for its original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The oracle has not been asked.
    Unasked,
    /// A session has been asking the oracle since then.
    Asking(Millis),
    /// The oracle agreed: the statement may stand for its original.
    Trusted {
        /// The database's catalog epoch when the oracle agreed.
        epoch: u64,
        /// When the oracle agreed.
        at: Millis,
        /// What the statement is trusted with.
        terms: Arc<Terms>,
        /// Whether other sessions' server processes may run it.
        footprint: Footprint,
    },
    /// The oracle agreed, but a client could see that a generic plan is used. At this catalog epoch
    /// only the statement with [`Plans::Custom`](super::Plans::Custom) is trusted.
    Specific {
        /// Why.
        hindrance: Hindrance,
        /// What of it is to blame, as far as that is known.
        blame: Blame,
        /// The database's catalog epoch when that was found.
        epoch: u64,
    },
    /// The oracle did not agree, at this catalog epoch.
    Declined {
        /// Why the statement may not stand for its original.
        reason: Reason,
        /// What of it is to blame, as far as that is known.
        blame: Blame,
        /// The database's catalog epoch when the oracle declined.
        epoch: u64,
    },
}

impl Verdict {
    /// The database's catalog epoch when it was found.
    pub(super) const fn epoch(&self) -> Option<u64> {
        match self {
            Self::Trusted { epoch, .. }
            | Self::Specific { epoch, .. }
            | Self::Declined { epoch, .. } => Some(*epoch),
            Self::Unasked | Self::Asking(_) => None,
        }
    }

    /// The bytes that the verdict takes beside its own size.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Trusted { terms, .. } => terms.bytes(),
            Self::Unasked | Self::Asking(_) | Self::Specific { .. } | Self::Declined { .. } => 0,
        }
    }
}
