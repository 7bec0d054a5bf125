//! Cancel requests for a query that the server does not run at the moment: it waits for a lesson,
//! or is about to be sent again.
//!
//! A server that is idle ignores a request, and one that runs a question of ours ends that. The
//! client means its query either way. So the query is not sent any more, and is answered with the
//! error of the question that was hit, or with the one the server makes when it is asked to cancel
//! itself, which no other statement can be hit by.
//!
//! Invariants:
//! - a request that comes between a query and its answer ends that query or none;
//! - a query that ends here is answered only after all requests have reached the server, so none of
//!   them can hit a later one;
//! - a transaction that is begun again has begun before anything runs in it.

use super::{Session, Turn};
use crate::upstream::execution::{Recovery, Stage};
use crate::wire::backend::{self, Status};
use crate::wire::frame::HEADER;
use crate::wire::{fields, frontend};
use std::sync::atomic::{AtomicU32, Ordering};

/// Has the server say what it says to a cancelled query, in its own words and language.
const CANCEL: &[u8] = b"SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";

/// SQLSTATE of a cancelled query.
const CANCELLED: &[u8] = b"57014";

/// How often a transaction is begun again that a request keeps from beginning.
const MAX_TRIES: u8 = 8;

/// The cancel requests of one client: counted by whoever relays them, looked at by its session.
#[derive(Debug, Default)]
pub struct Cancels {
    requested: AtomicU32,
    delivered: AtomicU32,
}

impl Cancels {
    /// A request has come, and is about to be relayed.
    pub fn request(&self) {
        self.requested.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has reached the server, or cannot. The session may wait for that.
    pub fn deliver(&self) {
        self.delivered.fetch_add(1, Ordering::Release);
    }

    /// Requests so far.
    #[inline]
    pub(super) fn requested(&self) -> u32 {
        self.requested.load(Ordering::Relaxed)
    }

    fn all_delivered(&self) -> bool {
        self.delivered.load(Ordering::Acquire) == self.requested()
    }
}

/// A query that is answered as cancelled.
#[derive(Debug, Default)]
pub(super) struct Cancelled {
    /// The server's error as a frame; empty until it has come.
    error: Vec<u8>,
    /// The status to answer with, once the answer is complete.
    status: Option<Status>,
}

/// A transaction that is begun again for the query on hold.
#[derive(Debug)]
pub(super) struct Reopening {
    /// What began it.
    begin: Vec<u8>,
    /// Replies still owed.
    owed: u8,
    tries: u8,
    /// The first error, as a frame.
    error: Vec<u8>,
    /// A request has hit one of the two.
    cancelled: bool,
}

impl Session {
    /// Whether a cancel request has come since the query in hand did.
    pub(super) fn is_cancelled(&self) -> bool {
        self.key.cancelled.requested() != self.cancels_before
    }

    /// Ends the query on hold if it was cancelled; `error` is the frame of the question that was
    /// hit. Returns whether it was.
    pub(super) fn end_if_cancelled(&mut self, error: Option<&[u8]>) -> bool {
        match error {
            Some(error) => {
                self.turn = Turn::Cancelled(Box::new(Cancelled {
                    error: error.to_vec(),
                    status: Some(self.upstream.standing.status),
                }));
                self.release();
                true
            }
            None if self.is_cancelled() => {
                self.ask_to_cancel();
                true
            }
            None => false,
        }
    }

    fn ask_to_cancel(&mut self) {
        self.question(|out| frontend::query(out, CANCEL));
        self.turn = Turn::Cancelled(Box::default());
    }

    /// Sends the query on hold as the client wrote it, unless it was cancelled.
    pub(super) fn send_original(&mut self) {
        if self.end_if_cancelled(None) {
            return;
        }
        self.turn = Turn::Free;
        self.upstream.ledger.relay(self.client, frontend::QUERY);
        frontend::query(&mut self.upstream.out, &self.query);
        self.query.clear();
    }

    /// Begins the transaction again that has only begun, then sends the query on hold.
    pub(super) fn reopen(&mut self) {
        let begin = std::mem::take(&mut self.upstream.standing.only_begun);
        self.begin_again(Reopening {
            begin,
            owed: 0,
            tries: 0,
            error: Vec::new(),
            cancelled: false,
        });
    }

    fn begin_again(&mut self, mut reopening: Reopening) {
        self.question(|out| frontend::query(out, b"ROLLBACK"));
        self.question(|out| frontend::query(out, &reopening.begin));
        reopening.owed = 2;
        reopening.tries += 1;
        reopening.error.clear();
        self.turn = Turn::Reopening(Box::new(reopening));
    }

    /// A reply to what was asked outside a lesson. ReadyForQuery has been noted already.
    pub(super) fn repair_reply(&mut self, tag: u8, frame: &[u8]) {
        match &mut self.turn {
            Turn::Cancelled(cancelled) => match tag {
                backend::ERROR if is_cancellation(frame) => cancelled.error = frame.to_vec(),
                backend::READY_FOR_QUERY => {
                    if cancelled.error.is_empty() {
                        // The function is not to be called by everybody everywhere.
                        let message = "canceling statement due to user request";
                        backend::error_response(&mut cancelled.error, "ERROR", "57014", message);
                    }
                    cancelled.status = Some(self.upstream.standing.status);
                    self.release();
                }
                _ => {}
            },
            Turn::Reopening(reopening) => match tag {
                backend::ERROR => {
                    reopening.cancelled |= is_cancellation(frame);
                    if reopening.error.is_empty() {
                        reopening.error.extend_from_slice(frame);
                    }
                }
                backend::READY_FOR_QUERY => {
                    reopening.owed -= 1;
                    if reopening.owed == 0 {
                        self.reopened();
                    }
                }
                _ => {}
            },
            Turn::Login | Turn::Free | Turn::Executing | Turn::Learning(_) => {}
        }
    }

    fn reopened(&mut self) {
        let Turn::Reopening(reopening) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        let has_begun = self.upstream.standing.status == Status::Transaction;
        match *reopening {
            Reopening { cancelled, .. } if has_begun && cancelled => self.ask_to_cancel(),
            _ if has_begun => self.send_original(),
            again if again.cancelled && again.tries < MAX_TRIES => self.begin_again(again),
            // Outside the transaction the query must not run.
            Reopening { error, .. } => {
                self.end_if_cancelled(Some(&error));
            }
        }
    }

    /// Whether the answer to a cancelled query waits until all requests have reached the server.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(&self.turn, Turn::Cancelled(cancelled) if cancelled.status.is_some())
    }

    /// Gives the answer to a cancelled query if it need not wait any longer; returns whether it
    /// did.
    pub fn release(&mut self) -> bool {
        let over = self.is_held() && self.key.cancelled.all_delivered();
        if over {
            self.answer_cancelled();
        }
        over
    }

    /// Gives the answer to a cancelled query if it is complete.
    pub(super) fn answer_cancelled(&mut self) {
        if let Turn::Cancelled(cancelled) = &self.turn
            && let Some(status) = cancelled.status
        {
            self.to_client.extend_from_slice(&cancelled.error);
            backend::ready_for_query(&mut self.to_client, status);
            self.turn = Turn::Free;
            self.query.clear();
        }
    }

    /// The client has finished: what it has sent last may still have to be read. From now on
    /// nothing is converted or learned, so nothing has to be repaired behind which the server could
    /// not be told of the end.
    pub const fn client_finishes(&mut self) {
        self.parting = true;
    }

    /// Whether the client has finished, and what it has sent last is not taken yet.
    #[must_use]
    #[inline]
    pub const fn keeps_waiting(&self) -> bool {
        self.parting && !self.accepts_client()
    }

    /// Takes the last of a client that has finished while its converted query is in flight, so that
    /// the server learns of the end as early as it would directly. Returns whether it does.
    ///
    /// That is at once if the query could not be sent again anyway, or if `late` says that an error
    /// that can be repaired should have come by now.
    pub fn let_go(&mut self, late: bool) -> bool {
        if !matches!(self.turn, Turn::Executing) {
            return false;
        }
        let Some(execution) = self.upstream.ledger.execution() else {
            return false;
        };
        let repairable = match execution.stage {
            Stage::Binding => execution.recovery != Recovery::Translate && !late,
            Stage::Bound | Stage::Failed => false,
            Stage::Replay => true,
        };
        if repairable {
            return false;
        }
        execution.recovery = Recovery::Translate;
        self.turn = Turn::Free;
        true
    }
}

fn is_cancellation(frame: &[u8]) -> bool {
    let body = frame.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(CANCELLED)
}
