//! What a server owes: replies or runs of them, whom each is for, and what becomes of it.

use super::execution::Execution;
use crate::ids::ClientId;
use crate::sql::effect::Effect;
use crate::wire::backend;

/// Whom a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipient {
    /// The client with this name, as long as it is there.
    Client(ClientId),
    /// The lesson that this connection is asked for.
    Lesson,
}

/// One reply, or run of replies, that the server owes.
#[derive(Debug)]
pub struct Expectation {
    /// Whom it is for.
    pub to: Recipient,
    /// What it is.
    pub kind: Kind,
    /// How many of the kind follow each other.
    pub(super) times: u32,
}

/// What becomes of the replies to a request.
#[derive(Debug)]
pub enum Kind {
    /// Forward all: a client's own Query or FunctionCall, with what its text may do.
    Query(Effect),
    /// Forward all: what a client's own Sync ends.
    Sync(End),
    /// Forward all: Syncs of a client's that end nothing.
    Bare(Bare),
    /// Swallow this many CloseComplete; settled by the last, not by ReadyForQuery.
    Closes(usize),
    /// A converted query.
    Execution(Execution),
    /// A question of our own: collect, forward nothing.
    Question,
}

/// Where a CopyDone or CopyFail was sent before a Sync, and behind the Sync or Query before that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct End {
    /// Before the first message of the batch, or there is no batch.
    pub(super) before: bool,
    /// Behind it.
    pub(super) within: bool,
}

/// A run of bare Syncs: of these so many are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bare {
    pub(super) least: u32,
    pub(super) most: u32,
    /// An end of a copy was sent before the first of them.
    pub(super) ended: bool,
}

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

/// Whether none of it may be answered.
pub(super) const fn is_maybe(entry: &Expectation) -> bool {
    matches!(entry.kind, Kind::Bare(Bare { least: 0, .. }))
}
