//! One client: what it is in the habit of, what it waits for, and the bytes it is to be given.
//!
//! It knows no server connection but by name.

mod cancel;
mod greeting;
mod loose;

pub use cancel::{CancelKey, Cancelled, Cancels, Insister, Reopening, Then};
pub use greeting::{Asks, Greeting, Login};
pub use loose::{Loose, Opening};

use crate::convert::{Decision, Habits};
use crate::ids::{ClientId, UpstreamId};
use crate::reason::Reason;
use crate::statement::{Micros, Millis};
use std::collections::VecDeque;

/// What a client waits for.
#[derive(Debug)]
pub enum Turn {
    /// Startup and authentication are relayed.
    Login,
    /// For nothing: its frames are taken.
    Free,
    /// A converted query is in flight.
    Executing,
    /// Its read, whose text is in `query`, runs on another client's server connection.
    Visiting,
    /// Its query waits in `query` until its server connection has no visits. What was decided about
    /// it, unless that is to be decided again.
    Barred(Option<Box<Decided>>),
    /// Questions of ours are in flight; its query, if any, waits in `query`.
    Learning,
    /// Its query is answered as cancelled.
    Cancelled(Box<Cancelled>),
    /// Its transaction is begun, or begun again, for the query in `query` if there is one.
    Reopening(Box<Reopening>),
    /// The server is asked how the session began, which the client is about to leave, or has come
    /// to.
    Settling(Box<Settling>),
    /// Statements are in flight that do all that its DISCARD ALL does, which is in `query`.
    Discarding(Box<Discarding>),
}

/// What is still to be answered of what stands for a DISCARD ALL.
#[derive(Debug)]
pub struct Discarding {
    /// With which command tag each statement completes, in order.
    pub tags: VecDeque<&'static [u8]>,
    /// The one in front has completed.
    pub is_complete: bool,
    /// Some has not.
    pub has_failed: bool,
}

/// The answer to the question how a session began.
#[derive(Debug, Default)]
pub struct Settling {
    /// The row.
    pub row: Vec<u8>,
    /// There will be none.
    pub has_failed: bool,
}

/// What becomes of a query.
pub type Decided = Result<Decision, Reason>;

/// One client.
#[derive(Debug)]
pub struct Client {
    /// Its name.
    pub id: ClientId,
    /// What it is called in the log.
    pub number: u64,
    /// The server connection that is held for it; [`UpstreamId::NONE`] while it is adrift.
    pub link: UpstreamId,
    /// It gives its server connection back while it can do without.
    pub is_pooled: bool,
    /// How many cancel requests had come when it was given its server connection.
    pub cancels_at_home: u32,
    /// What it waits for.
    pub turn: Turn,
    /// How many queries of it are executed one behind the other; zero if that is at most one.
    pub trail: u16,
    /// Its next query waits until what was sent is answered, to be executed behind it.
    pub waits_behind: bool,
    /// What was sent as it came, to be timed, could have been executed.
    pub is_tried: bool,
    /// The text of the query on hold; empty if there is none.
    pub query: Vec<u8>,
    /// The server has not heard of its transaction, which has only read.
    pub is_loose: bool,
    /// What is kept of such a transaction; afterwards its room, for the next.
    pub loose: Option<Box<Loose>>,
    /// Lessons taken for the query on hold.
    pub lessons: u8,
    /// What it is in the habit of.
    pub habits: Habits,
    /// When its server connection was last given something of it.
    pub at_home: Millis,
    /// When its query came, if that may run elsewhere; else zero.
    pub asked: Micros,
    /// When its query was sent to its server connection, if its answer is timed; else zero.
    pub sent_at: Micros,
    /// When its batch of the extended protocol was first to execute something; else zero.
    pub batch_since: Micros,
    /// The query that it waits for, if that is relayed and told of in case it takes long.
    pub relayed: Option<Box<Unconverted>>,
    /// Its cancel key.
    pub key: CancelKey,
    /// How many cancel requests had come when the query in hand came.
    pub cancels_before: u32,
    /// Who has the server told once more to cancel the query in hand: until it has been, nothing
    /// else of the client goes there.
    pub insisters: Vec<u32>,
    /// It sends nothing more than it has sent already.
    pub is_parting: bool,
    /// It has finished, and the time for which its query was kept ready is over.
    pub is_late: bool,
    /// It has said that it leaves, and its server connection is to be kept: what else comes of it
    /// is for nobody.
    pub leaves: bool,
    /// This is its second try to log in, because the server had no room for the first.
    pub is_second: bool,
    /// What it has run may have changed who may log in, which others find when it is committed.
    pub changes_logins: bool,
    /// Its frames are relayed, and never read.
    pub relay_only: bool,
    /// It is not encrypted and its server connection is, so it is not offered to bind its login to
    /// the server's certificate.
    pub hides_binding: bool,
    /// The server waits for its part of the authentication.
    pub is_challenged: bool,
    /// Bytes still to come that are relayed unseen: of a large frame, or all (`usize::MAX`).
    pub skip: usize,
    /// Queries of it, and those that were run as prepared statements.
    pub counts: Counts,
    /// When its transaction block began, if it is in one, and `counts.micros` then.
    pub block: Option<(Micros, u64)>,
    /// Bytes for it.
    pub out: Vec<u8>,
}

/// A query that was sent as it came.
#[derive(Debug)]
pub struct Unconverted {
    /// Its text; empty if that is too long to be kept.
    pub text: Vec<u8>,
    /// Why it is not converted.
    pub reason: Reason,
}

/// What is counted of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Simple queries, as the counter of all of them counts.
    pub queries: u64,
    /// Those that were run as prepared statements.
    pub converted: u64,
    /// What it has executed by the extended protocol.
    pub executes: u64,
    /// Queries and batches that have begun a transaction, which most are all of.
    pub transactions: u64,
    /// Microseconds that those queries took which were timed (`metrics::times`), and batches.
    pub micros: u64,
    /// Microseconds in transaction blocks that were not among these: between two queries, mostly.
    pub between: u64,
    /// Microseconds that it has waited for a server connection of its pool.
    pub waited: u64,
    /// Statements that it has prepared itself.
    pub parses: u64,
    /// Portals that it has bound itself.
    pub binds: u64,
    /// Statements that the proxy has prepared for it.
    pub prepared: u64,
}

impl Client {
    /// A client that is about to log in over this server connection.
    #[must_use]
    pub fn new(
        id: ClientId,
        link: UpstreamId,
        number: u64,
        key: CancelKey,
        relay_only: bool,
    ) -> Self {
        Self {
            id,
            number,
            link,
            is_pooled: false,
            cancels_at_home: 0,
            turn: Turn::Login,
            trail: 0,
            waits_behind: false,
            is_tried: false,
            query: Vec::new(),
            is_loose: false,
            loose: None,
            lessons: 0,
            habits: Habits::default(),
            at_home: Millis(0),
            asked: Micros::default(),
            sent_at: Micros::default(),
            batch_since: Micros::default(),
            relayed: None,
            key,
            cancels_before: 0,
            insisters: Vec::new(),
            is_parting: false,
            is_late: false,
            leaves: false,
            is_second: false,
            changes_logins: false,
            relay_only,
            hides_binding: false,
            is_challenged: false,
            skip: 0,
            counts: Counts::default(),
            block: None,
            out: Vec::new(),
        }
    }

    /// A transaction block begins or goes on.
    pub fn is_in_block(&mut self, clock: Micros) {
        let micros = self.counts.micros;
        self.block.get_or_insert((clock, micros));
    }

    /// The block is over, if there was one.
    pub fn leaves_block(&mut self, clock: Micros) {
        if let Some((began, before)) = self.block.take() {
            let timed = self.counts.micros.saturating_sub(before);
            self.counts.between += clock.since(began).saturating_sub(timed);
        }
    }

    /// Whether its next frame would be taken now.
    #[must_use]
    #[inline]
    pub const fn accepts(&self) -> bool {
        let is_free = self.skip > 0 || matches!(self.turn, Turn::Free | Turn::Login);
        is_free && self.insisters.is_empty() && !self.waits_behind
    }

    /// It leaves, and its server connection is to be kept.
    pub const fn leaves(&mut self) {
        self.is_parting = true;
        self.leaves = true;
        self.skip = usize::MAX;
    }

    /// Whether its login is over.
    #[must_use]
    #[inline]
    pub const fn is_logged_in(&self) -> bool {
        !matches!(self.turn, Turn::Login)
    }

    /// Whether it has finished, and what it has sent last is not taken yet.
    #[must_use]
    #[inline]
    pub const fn keeps_waiting(&self) -> bool {
        self.is_parting && !self.accepts()
    }

    /// Whether the answer to its cancelled query waits until all requests have reached the server.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(&self.turn, Turn::Cancelled(cancelled) if cancelled.status.is_some())
    }

    /// Whether a cancel request has come since the query in hand did.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.key.cancelled.requested() != self.cancels_before
    }

    /// Gives it these bytes of a server.
    #[inline]
    pub fn forward(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.out.extend_from_slice(bytes);
        }
    }
}
