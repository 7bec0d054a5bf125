//! The cancel requests of a client, and what its query has become because of them.

use super::Decided;
use crate::wire::backend::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The secret of the cancel key given to the client, and how it was used.
///
/// The process id beside it is the server's own: clients compare it with `pg_backend_pid()`.
#[derive(Debug, Clone)]
pub struct CancelKey {
    /// Secret bytes; as many as the server's own key has are given out.
    pub secret: [u8; 32],
    /// Counted by whoever relays cancel requests for this key.
    pub cancelled: Arc<Cancels>,
}

/// The cancel requests of one client: counted by whoever relays them, looked at by its hub.
#[derive(Debug, Default)]
pub struct Cancels {
    requested: AtomicU32,
    delivered: AtomicU32,
    insisters: AtomicU32,
}

/// Somebody who has the server told once more, in the name of requests that it may not have heard,
/// and holds the client back meanwhile. Several may at once, and each lets go for itself.
#[derive(Debug, Clone)]
pub struct Insister {
    /// Those requests.
    pub cancels: Arc<Cancels>,
    /// Which of those who insist in their name.
    pub number: u32,
}

impl Insister {
    /// Another one.
    #[must_use]
    pub fn new(cancels: &Arc<Cancels>) -> Self {
        Self {
            cancels: Arc::clone(cancels),
            number: cancels.insisters.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl Cancels {
    /// A request has come, and is about to be relayed.
    pub fn request(&self) {
        self.requested.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has reached the server, or cannot. An answer may be held back until then.
    pub fn deliver(&self) {
        self.delivered.fetch_add(1, Ordering::Release);
    }

    /// Requests so far.
    #[inline]
    #[must_use]
    pub fn requested(&self) -> u32 {
        self.requested.load(Ordering::Relaxed)
    }

    /// Whether all requests have reached the server, or cannot.
    #[must_use]
    pub fn all_delivered(&self) -> bool {
        self.delivered.load(Ordering::Acquire) == self.requested()
    }
}

/// A query that is answered as cancelled.
#[derive(Debug, Default)]
pub struct Cancelled {
    /// The server's error as a frame; empty until it has come.
    pub error: Vec<u8>,
    /// The status to answer with, once the answer is complete.
    pub status: Option<Status>,
}

/// What follows when a transaction has begun that the client believes to have begun before.
#[derive(Debug)]
pub enum Then {
    /// The query on hold is sent as the client wrote it.
    Original,
    /// This is done about the query on hold.
    Decided(Box<Decided>),
    /// What becomes of the query on hold is decided in the transaction, of which the reads so far
    /// were planned again.
    Again,
    /// The client's next frame is taken.
    Nothing,
    /// The same, and none waits: the transaction was loose for too long.
    Late,
    /// The transaction is loose: the server has rolled back what it has begun.
    Loose,
}

/// A transaction that is begun, or begun again, on the server alone.
#[derive(Debug)]
pub struct Reopening {
    /// What began it.
    pub begin: Vec<u8>,
    /// Replies still owed.
    pub owed: u8,
    /// How often it was tried.
    pub tries: u8,
    /// The first error, as a frame.
    pub error: Vec<u8>,
    /// A request has hit one of the two.
    pub cancelled: bool,
    /// What follows.
    pub then: Then,
}

impl Reopening {
    /// Whether it has failed only because of a request that was not meant for it, and not so often:
    /// nothing of the client's waits that could end.
    #[must_use]
    pub fn is_to_be_tried_again(&self, most: u8) -> bool {
        self.cancelled && self.tries < most && matches!(self.then, Then::Nothing)
    }
}
