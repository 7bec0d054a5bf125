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

use super::Hop;
use crate::client::{Cancelled, Reopening, Then, Turn};
use crate::upstream::execution::{Recovery, Stage};
use crate::wire::backend::{self, Status};
use crate::wire::frame::HEADER;
use crate::wire::{fields, frontend};

/// Has the server say what it says to a cancelled query, in its own words and language.
const CANCEL: &[u8] = b"SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";

/// SQLSTATE of a cancelled query.
const CANCELLED: &[u8] = b"57014";

/// How often a transaction is begun again that a request keeps from beginning.
const MAX_TRIES: u8 = 8;

impl Hop<'_> {
    /// Ends the query on hold if there is an `error` to answer it with, or if it was cancelled.
    /// Returns whether it ended.
    pub(super) fn end_if_cancelled(&mut self, error: Option<&[u8]>) -> bool {
        if self.client.is_loose {
            let is_over = error.is_some() || self.client.is_cancelled();
            if is_over {
                self.cancel_loosely();
            }
            return is_over;
        }
        match error {
            // An error ends the transaction, too; that of a question was undone.
            Some(_) if self.upstream.standing.status == Status::Transaction => {
                self.ask_to_cancel();
                true
            }
            Some(error) => {
                self.client.turn = Turn::Cancelled(Box::new(Cancelled {
                    error: error.to_vec(),
                    status: Some(self.upstream.standing.status),
                }));
                self.release();
                true
            }
            None if self.client.is_cancelled() => {
                self.ask_to_cancel();
                true
            }
            None => false,
        }
    }

    pub(super) fn ask_to_cancel(&mut self) {
        self.question(|out| frontend::query(out, CANCEL));
        self.client.turn = Turn::Cancelled(Box::default());
    }

    /// Sends the query on hold as the client wrote it, unless it was cancelled.
    pub(super) fn send_original(&mut self) {
        if self.end_if_cancelled(None) {
            return;
        }
        self.client.turn = Turn::Free;
        self.upstream.ledger.relay(self.client.id, frontend::QUERY);
        frontend::query(&mut self.upstream.out, &self.client.query);
        self.client.query.clear();
    }

    /// Begins the transaction again that has only begun, then sends the query on hold; or has it
    /// end as cancelled.
    pub(super) fn reopen(&mut self, cancelled: bool) {
        let begin = std::mem::take(&mut self.upstream.standing.only_begun);
        self.begin_again(Reopening {
            begin,
            owed: 0,
            tries: 0,
            error: Vec::new(),
            cancelled,
            then: Then::Original,
        });
    }

    fn begin_again(&mut self, mut reopening: Reopening) {
        self.question(|out| frontend::query(out, b"ROLLBACK"));
        self.tell_begin(&reopening.begin, &reopening.then);
        reopening.owed = 2;
        reopening.tries += 1;
        reopening.error.clear();
        self.client.turn = Turn::Reopening(Box::new(reopening));
    }

    /// A reply to what was asked outside a lesson. ReadyForQuery has been noted already.
    pub(super) fn repair_reply(&mut self, tag: u8, frame: &[u8]) {
        match &mut self.client.turn {
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
            Turn::Login
            | Turn::Free
            | Turn::Executing
            | Turn::Learning
            | Turn::Settling(_)
            | Turn::Discarding(_)
            | Turn::Visiting
            | Turn::Barred(_) => {}
        }
    }

    fn reopened(&mut self) {
        let Turn::Reopening(reopening) = std::mem::replace(&mut self.client.turn, Turn::Free)
        else {
            return;
        };
        let status = self.upstream.standing.status;
        let has_read = status == Status::Failed && self.client.loose_reads() > 0;
        match *reopening {
            undone if matches!(undone.then, Then::Loose) => match status {
                Status::Idle => self.loosens_again(),
                _ => self.cannot_repeat(undone),
            },
            begun if status == Status::Transaction => self.has_begun(begun),
            failed if has_read && !failed.is_to_be_tried_again(MAX_TRIES) => {
                self.cannot_repeat(failed);
            }
            again if again.cancelled && again.tries < MAX_TRIES => self.begin_again(again),
            // Outside the transaction nothing must run that the client believes to be in it.
            Reopening { error, .. } => self.cannot_begin(&error),
        }
    }

    /// Gives the answer to a cancelled query if it need not wait any longer; returns whether it
    /// did.
    pub(in crate::hub) fn release(&mut self) -> bool {
        let delivered = self.client.key.cancelled.all_delivered();
        let over = self.client.is_held() && delivered && !self.upstream.told_fatal;
        if over {
            self.answer_cancelled();
        }
        over
    }

    /// Gives the answer to a cancelled query if it is complete, and the server has not had its last
    /// word.
    pub(in crate::hub) fn answer_cancelled(&mut self) {
        if !self.upstream.told_fatal
            && let Turn::Cancelled(cancelled) = &self.client.turn
            && let Some(status) = cancelled.status
        {
            self.client.out.extend_from_slice(&cancelled.error);
            backend::ready_for_query(&mut self.client.out, status);
            self.client.turn = Turn::Free;
            self.client.query.clear();
        }
    }

    /// Takes the last of a client that has finished while its converted query is in flight, so that
    /// the server learns of the end as early as it would directly. Returns whether it does.
    ///
    /// That is at once if the query could not be sent again anyway, or if an error that can be
    /// repaired should have come by now.
    pub(in crate::hub) fn let_go(&mut self) -> bool {
        if !matches!(self.client.turn, Turn::Executing) || self.client.trail > 0 {
            return false;
        }
        let Some(execution) = self.upstream.ledger.execution() else {
            return false;
        };
        let repairable = match execution.stage {
            Stage::Beginning | Stage::Binding => {
                execution.recovery != Recovery::Translate && !self.client.is_late
            }
            Stage::Bound | Stage::Failed => false,
            Stage::Replay => true,
        };
        if repairable {
            return false;
        }
        execution.recovery = Recovery::Translate;
        self.client.turn = Turn::Free;
        true
    }
}

fn is_cancellation(frame: &[u8]) -> bool {
    let body = frame.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(CANCELLED)
}
