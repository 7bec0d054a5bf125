//! What becomes of a reply: the answers that the ledger gives.

use crate::wire::backend;

/// What becomes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes to its recipient, and nobody has to look at it.
    Pass,
    /// It goes to its recipient as it is, and what it says of the request is noted.
    Note,
    /// It goes to its recipient as it is, and says nothing of the request.
    Aside,
    /// It is ours alone.
    Swallow,
    /// It goes to its recipient when what comes behind it is known.
    Hold,
    /// It goes to its recipient behind what was held for it.
    Release,
    /// It is about a rewritten text, and made to be about the original, or leads to that.
    Repair,
    /// It is part of the answer to a question of ours.
    Collect,
    /// A statement was closed for us.
    Close,
    /// ReadyForQuery behind something of ours: the expectation in front is settled.
    Settle,
    /// It cannot follow what was sent.
    Unexpected,
}

impl Fate {
    /// What becomes of the reply, of this type, if it is too large to be looked at whole.
    #[must_use]
    pub const fn of_large(self, tag: u8) -> Self {
        match (self, tag) {
            (Self::Pass | Self::Note, _) | (Self::Release, backend::DATA_ROW) => self,
            (Self::Repair, backend::NOTICE | backend::ERROR) => self,
            (Self::Collect, backend::DATA_ROW | backend::NOTICE | backend::ERROR) => self,
            _ => Self::Unexpected,
        }
    }
}
