//! What a server owes: replies or runs of them, whom each is for, and what becomes of it.

use super::execution::Execution;
use crate::ids::ClientId;
use crate::sql::effect::Effect;

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

/// Whether none of it may be answered.
pub(super) const fn is_maybe(entry: &Expectation) -> bool {
    matches!(entry.kind, Kind::Bare(Bare { least: 0, .. }))
}
