//! A plain BEGIN is answered at once. The server is told with the statement behind it, which spares
//! the client one of its waits for the server; or alone, a moment later.
//!
//! Invariants:
//! - nothing of the client runs before its transaction has begun. What carries the BEGIN is one
//!   batch with it, of which the server skips the rest if that fails (`PostgresMain` in
//!   `postgres.c`); everything else waits for its answer;
//! - a client of which the server hears nothing more has not begun anything;
//! - a client whose transaction cannot be begun is ended, because it has been told otherwise.

use super::Hop;
use crate::client::{Decided, Reopening, Then, Turn};
use crate::convert::{Decision, Policy};
use crate::hub::Task;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::begin::{Plain, leading_begin, may_begin, plain_begin};
use crate::statement::Millis;
use crate::upstream::Partial;
use crate::upstream::execution::Stage;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::frontend;

/// Milliseconds after which the server is told in any case. The beginning of a transaction is the
/// time that now() shows in it.
const MOMENT: u64 = 1;

impl Hop<'_> {
    /// Answers the text if it is a BEGIN that the server may be told of later; returns whether it
    /// is.
    #[inline]
    pub(super) fn defers(&mut self, text: &[u8], reason: Reason) -> bool {
        if !may_begin(text) || !self.lent.settings.deferred_begin {
            return false;
        }
        self.defers_short(text, reason)
    }

    #[inline(never)]
    fn defers_short(&mut self, text: &[u8], reason: Reason) -> bool {
        let Some(Plain { tag, .. }) = plain_begin(text) else {
            return false;
        };
        let may_defer = self.may_defer();
        if may_defer {
            self.defer(text, tag, reason);
        }
        may_defer
    }

    /// Whether a BEGIN may be answered before the server has heard of it. Behind one that it has
    /// heard of it holds notifications back, and in the other protocol the client might see what
    /// carries it.
    fn may_defer(&mut self) -> bool {
        self.may_speak_for_it()
            && !self.upstream.standing.may_listen()
            && !self.client.habits.speaks_extended()
            && self.client.habits.begins.are_held()
    }

    /// Whether the server may be told something other than what the client says, outside a
    /// transaction, and the client not see it: nothing is in flight, and the session has not asked
    /// to be told of each statement.
    pub(super) fn may_speak_for_it(&self) -> bool {
        let standing = &self.upstream.standing;
        self.lent.settings.mode == Policy::Convert
            && !self.is_only_relayed()
            && standing.status == Status::Idle
            && standing.is_quiet()
            && !standing.past.may_show_statements()
            && self.upstream.ledger.is_idle()
            // Not into the middle of what the server says unasked.
            && self.upstream.partial == Partial::default()
            && !self.upstream.told_fatal
            && !self.client.is_parting
    }

    #[inline(never)]
    fn defer(&mut self, text: &[u8], tag: &[u8], reason: Reason) {
        self.counts_passed(text, reason);
        self.says_begun(text, tag, reason);
        backend::ready_for_query(&mut self.client.out, Status::Transaction);
    }

    /// The client is told that its transaction has begun.
    fn says_begun(&mut self, text: &[u8], tag: &[u8], reason: Reason) {
        let effect = self.notes_effect(text, reason);
        self.upstream.standing.completed(tag, Some(effect));
        self.ready(Status::Transaction);
        let due = Millis(self.now.0.saturating_add(MOMENT));
        self.upstream.begin_due = Some(due);
        self.outbox.begins.push_back((due, self.client.link));
        backend::command_complete(&mut self.client.out, tag);
        self.client.turn = Turn::Free;
        self.untimed();
    }

    /// Executes the statements behind the BEGIN that a text of several begins with, or asks about
    /// them; returns whether it does. Some drivers send the first statement of a transaction so.
    ///
    /// The text must be one that the server can read to its end, or the transaction does not begin
    /// at all (`exec_simple_query` in `postgres.c`). So what stands behind the BEGIN is decided
    /// first, as if that had been heard.
    #[inline(never)]
    pub(super) fn begins_with(&mut self, text: &[u8], reason: Reason) -> bool {
        let is_idle = self.upstream.standing.status == Status::Idle;
        if !is_idle || !self.upstream.ledger.is_idle() {
            return false;
        }
        let Some((begin, tag)) = leading_begin(text) else {
            return false;
        };
        // Where an error is counts from the beginning of the text.
        let mut rest = vec![b' '; begin.len() + 1];
        rest.extend_from_slice(&text[rest.len()..]);
        match self.decide_behind(begin, &rest) {
            Ok(Decision::Ask(subject, about)) => {
                let start = about.start.max(begin.len() + 1).min(about.end);
                self.at_home(Ok(Decision::Ask(subject, start..about.end)), text);
            }
            decided @ Ok(Decision::Execute(..) | Decision::Series(_)) => {
                self.says_begun(begin, tag, reason);
                self.at_home(decided, &rest);
            }
            Ok(Decision::Visit(_)) | Err(_) => return false,
        }
        true
    }

    /// What is decided about a text behind this BEGIN, of which nobody has heard yet.
    fn decide_behind(&mut self, begin: &[u8], rest: &[u8]) -> Decided {
        let mut decided = Err(Reason::NotPreparable);
        if self.may_speak_for_it() {
            let before = self.upstream.standing.imagine_begun(begin);
            decided = self.circumstances().decide(rest);
            self.upstream.standing.has_not_begun(before);
        }
        if decided.is_ok() {
            return decided;
        }
        // What may be asked in front of it need not be in the transaction.
        let asked = self.circumstances().decide(rest);
        // What would be timed, and what is relayed, is more than the statement that was met.
        self.client.habits.timing = None;
        self.lent.met = None;
        match asked {
            Ok(Decision::Ask(..)) => asked,
            Ok(_) | Err(_) => decided,
        }
    }

    /// Puts the BEGIN that the server was not told of in front of the statement that follows in the
    /// same batch; returns where that stands then.
    #[inline]
    pub(super) fn carry_begin(&mut self) -> Stage {
        match self.upstream.begin_due.take() {
            Some(_) => self.carry(),
            None => Stage::Binding,
        }
    }

    #[inline(never)]
    fn carry(&mut self) -> Stage {
        // It takes longer than others of its kind.
        self.untimed();
        self.client.habits.begins.carried();
        self.lent.counters().add(Counter::BeginsCarried, 1);
        let (out, begin) = (&mut self.upstream.out, &self.upstream.standing.only_begun);
        self.upstream.carries_begin = true;
        frontend::parse(out, b"", begin, &[]);
        frontend::bind(out, b"", 0, |_, _| {});
        out.extend_from_slice(frontend::EXECUTE_FRAME);
        Stage::Beginning
    }

    /// Tells the server of the transaction before anything is done about the query.
    #[cold]
    pub(super) fn begin_before(&mut self, decided: Decided, text: &[u8]) {
        self.untimed();
        self.client.query.clear();
        self.client.query.extend_from_slice(text);
        self.begin(Then::Decided(Box::new(decided)));
    }

    /// Tells the server of the transaction if it has not heard of it by `due`; returns whether it
    /// is told now.
    pub(in crate::hub) fn begin_by(&mut self, due: Millis) -> bool {
        let is_due = self.upstream.begin_due == Some(due);
        if is_due {
            self.begin(Then::Nothing);
        }
        is_due
    }

    /// Tells the server of the transaction.
    #[cold]
    pub(super) fn begin(&mut self, then: Then) {
        self.upstream.begin_due = None;
        // What is decided again without having read anything is a trial, or has been cancelled: it
        // says nothing of what usually follows.
        if self.client.loose_reads() == 0 && !matches!(then, Then::Again) {
            self.client.habits.begins.missed();
        }
        let begin = std::mem::take(&mut self.upstream.standing.only_begun);
        self.tell_begin(&begin, &then);
        self.client.turn = Turn::Reopening(Box::new(Reopening {
            begin,
            owed: 1,
            tries: 0,
            error: Vec::new(),
            cancelled: false,
            then,
        }));
    }

    /// The transaction has begun that the client knows of.
    pub(super) fn has_begun(&mut self, reopening: Reopening) {
        let is_cancelled = reopening.cancelled;
        let has_read = self.client.forget_reads();
        match reopening.then {
            Then::Original if is_cancelled => self.ask_to_cancel(),
            Then::Original => self.send_original(),
            Then::Again if is_cancelled => self.ask_to_cancel(),
            Then::Again if self.end_if_cancelled(None) => {}
            Then::Again => {
                if !has_read {
                    self.upstream.standing.only_begun = reopening.begin;
                }
                self.resume();
            }
            // An idle server would have ignored the request.
            Then::Loose => {}
            Then::Nothing | Then::Late if has_read => {}
            Then::Nothing | Then::Late => {
                self.upstream.standing.only_begun = reopening.begin;
            }
            Then::Decided(_) if is_cancelled => self.ask_to_cancel(),
            Then::Decided(decided) => {
                self.upstream.standing.only_begun = reopening.begin;
                if !self.end_if_cancelled(None) {
                    let text = std::mem::take(&mut self.client.query);
                    self.at_home(*decided, &text);
                }
            }
        }
    }

    /// The transaction that the client believes to be in cannot be begun, for the reason that this
    /// frame says.
    pub(super) fn cannot_begin(&mut self, error: &[u8]) {
        let body = error.get(HEADER..).unwrap_or_default();
        let said = fields::field(body, fields::MESSAGE).unwrap_or_default();
        let said = String::from_utf8_lossy(said);
        let message = format!("the transaction could not be begun: {said}");
        backend::error_response(&mut self.client.out, "FATAL", "08006", &message);
        self.upstream.told_fatal = true;
        self.client.query.clear();
        self.outbox.tasks.push_back(Task::Finish(self.client.id));
    }
}
