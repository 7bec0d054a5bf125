//! Transactions that have only read and of which the server has not heard: they are *loose*.
//!
//! BEGIN is answered as one that is held back (`begin`), and so far its transaction is that: the
//! first thing that is more than a read which may run elsewhere *opens* it, on the server. The
//! reads before that travel as reads outside of transactions do, or visit their own home, and
//! COMMIT and ROLLBACK behind them are answered here.
//!
//! Who looks at the server sees no transaction and no locks. Its client could tell it from one by
//! what a transaction of the usual isolation shows: that each statement has its own snapshot, and
//! all the same time. So:
//!
//! Invariants:
//! - a transaction is loose only in a session whose transactions see with each statement what is
//!   committed by then, that hears nothing unasked, and that no limit ends while it is idle;
//! - as far as the server knows the session is idle, and as far as the client knows it is in a
//!   transaction; nothing of the client is sent home but visits;
//! - a read in it does not look at the time at which the transaction began;
//! - before anything else of the client runs, the transaction has begun, and what was read in it
//!   was planned again there, so that it has the locks that it would have. If that fails, the
//!   transaction has failed;
//! - it is opened by itself after [`LONGEST`] milliseconds, so its beginning moves by no more.

use super::Hop;
use super::travel::AWAY;
use crate::client::{Cancelled, Decided, Opening, Reopening, Then, Turn};
use crate::convert::{Call, Decision, Policy};
use crate::hub::fitness::MAX_UNSENT;
use crate::hub::timers::Timer;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::begin::{Plain, may_begin, next_word, plain_begin};
use crate::sql::travel;
use crate::statement::{Clock, Micros, Millis};
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::frontend;

/// Milliseconds after which the server is told of the transaction in any case: as long as a client
/// may be away from home. Whoever looks for idle transactions looks for such as last longer.
const LONGEST: u64 = 1000;

/// Milliseconds after which that is tried again if the client or its connection is busy.
const AGAIN: u64 = 5;

/// The longest text that may end a transaction, in bytes: some have the name of a function in a
/// comment.
const MAX_END: usize = 1024;

/// The command tag of a text that ends a transaction and says nothing more but in comments.
fn plain_end(text: &[u8]) -> Option<&'static [u8]> {
    if text.len() > MAX_END || !text.is_ascii() {
        return None;
    }
    let text = text.trim_ascii();
    let mut rest = text.strip_suffix(b";").unwrap_or(text);
    let first = next_word(&mut rest)?;
    let is = |name: &[u8]| first.eq_ignore_ascii_case(name);
    let tag: &[u8] = match () {
        () if is(b"commit") || is(b"end") => b"COMMIT",
        () if is(b"rollback") || is(b"abort") => b"ROLLBACK",
        () => return None,
    };
    match next_word(&mut rest) {
        None => Some(tag),
        Some(word) => {
            let says = |name: &[u8]| word.eq_ignore_ascii_case(name);
            let is_plain = says(b"work") || says(b"transaction");
            (is_plain && next_word(&mut rest).is_none()).then_some(tag)
        }
    }
}

const fn counter(opening: Opening) -> Counter {
    match opening {
        Opening::More => Counter::OpenedForMore,
        Opening::Time => Counter::OpenedForTime,
        Opening::Many => Counter::OpenedForMany,
        Opening::Late => Counter::OpenedLate,
        Opening::Home => Counter::OpenedAtHome,
    }
}

impl Hop<'_> {
    /// A client's Query with this text, where transactions may be loose.
    #[inline(never)]
    pub(super) fn query_loosely(&mut self, text: &[u8]) {
        if self.client.is_loose && self.ends_loosely(text) {
            return;
        }
        self.client.loose_opening(Opening::More);
        let decided = self.circumstances().decide(text);
        match &decided {
            Ok(Decision::Execute(call, _)) if call.travels && self.leaves_loosely(call, text) => {
                return self.depart(decided, text);
            }
            Ok(Decision::Visit(_)) if !self.client.is_loose && self.may_leave(text) => {
                return self.depart(decided, text);
            }
            Err(reason) if !self.client.is_loose && self.loosens(text, *reason) => return,
            _ => {}
        }
        self.at_home(decided, text);
        // Whatever is relayed later is another text.
        self.lent.met = None;
    }

    /// Whether a read is to be sent elsewhere, in a transaction or outside.
    fn leaves_loosely(&mut self, call: &Call, text: &[u8]) -> bool {
        if !self.client.is_loose {
            return self.may_depart(call, text);
        }
        if !self.may_travel(call, text) {
            return false;
        }
        let entry = self.upstream.standing.mirror.held(call.key);
        let sees_time = match entry.map(|entry| entry.statement.clock()) {
            Some(Clock::Unseen) => false,
            Some(Clock::ByValue) => travel::may_say_now(text),
            Some(Clock::Seen) | None => true,
        };
        let Some(loose) = &mut self.client.loose else {
            return false;
        };
        loose.opening = match loose.has_room(text) {
            _ if sees_time => Opening::Time,
            false => Opening::Many,
            true => Opening::Home,
        };
        loose.opening == Opening::Home
    }

    /// Answers a text that begins a transaction if that may be loose; returns whether it does.
    fn loosens(&mut self, text: &[u8], reason: Reason) -> bool {
        if !may_begin(text) {
            return false;
        }
        // Reads that run elsewhere each see what is there then.
        let plain = plain_begin(text).filter(|plain| !plain.is_repeated);
        let Some(Plain { tag, .. }) = plain.filter(|_| self.may_loosen()) else {
            return false;
        };
        self.lent.met = None;
        self.counts_passed(text, reason);
        let loose = self.client.loose.get_or_insert_default();
        loose.begin(text, tag, reason);
        self.client.is_loose = true;
        self.client.is_in_block(self.clock);
        let due = Millis(self.now.0.saturating_add(LONGEST));
        self.upstream.begin_due = Some(due);
        self.outbox.timers.set(self.client.id, Timer::Loose, due);
        self.answer_loosely(tag, Status::Transaction);
        true
    }

    /// Whether a transaction that begins now may be loose. Others may be reading on the connection.
    fn may_loosen(&mut self) -> bool {
        let upstream = &*self.upstream;
        let standing = &upstream.standing;
        self.lent.settings.looses
            && self.lent.settings.mode == Policy::Convert
            && !self.is_only_relayed()
            && standing.may_be_loose()
            && standing.is_quiet()
            && !standing.past.may_show_statements()
            && upstream.ledger.is_idle()
            && upstream.partial.pass == 0
            && upstream.begin_due.is_none()
            && !upstream.told_fatal
            && self.lesson.is_none()
            && !self.client.is_parting
            && !self.client.habits.speaks_extended()
            && self.now.since(self.client.at_home) < AWAY
            && self.client.out.len() <= MAX_UNSENT
            && self.client.habits.readings.are_loose()
    }

    fn answer_loosely(&mut self, tag: &[u8], status: Status) {
        let out = &mut self.client.out;
        backend::command_complete(out, tag);
        backend::ready_for_query(out, status);
        self.client.turn = Turn::Free;
        self.untimed();
    }

    /// Ends the transaction if the text says so and nothing else; returns whether it does.
    fn ends_loosely(&mut self, text: &[u8]) -> bool {
        let Some(tag) = plain_end(text).filter(|_| !self.upstream.told_fatal) else {
            return false;
        };
        self.counts_passed(text, Reason::NotPreparable);
        self.lent.counters().add(Counter::TransactionsSpared, 1);
        if self.client.loose_reads() > 0 {
            self.client.habits.readings.ended();
        }
        self.forgets_loose();
        self.answer_loosely(tag, Status::Idle);
        true
    }

    /// The transaction is over, and there was none.
    pub(super) fn forgets_loose(&mut self) {
        self.client.is_loose = false;
        self.client.leaves_block(self.clock);
        self.upstream.begin_due = None;
        self.client.forget_reads();
    }

    /// What is decided about the query is to be done on a connection that has not heard of its
    /// transaction: returns it if that can be done now, else the server is told first.
    #[inline(never)]
    pub(super) fn at_beginning(&mut self, decided: Decided, text: &[u8]) -> Option<Decided> {
        if self.client.is_loose {
            if matches!(decided, Ok(Decision::Ask(..))) {
                // The server knows of no transaction that this could be seen in.
                return Some(decided);
            }
            self.opens();
        }
        if self.client.loose_reads() > 0 {
            self.client.query.clear();
            self.client.query.extend_from_slice(text);
            self.untimed();
            self.begin(Then::Again);
            return None;
        }
        let executes = decided.as_ref().is_ok_and(Decision::executes);
        if self.client.habits.timing.take().is_some()
            && (!executes || self.client.habits.begins.tries())
        {
            // What carries a BEGIN takes longer than others of its kind. So the trial begins behind
            // it, by deciding once more.
            self.client.query.clear();
            self.client.query.extend_from_slice(text);
            self.client.sent_at = Micros::default();
            self.begin(Then::Again);
            return None;
        }
        if executes {
            return Some(decided);
        }
        self.begin_before(decided, text);
        None
    }

    /// From now on the transaction is one whose BEGIN is held back: the server is about to be told,
    /// unless something carries it.
    pub(super) fn opens(&mut self) {
        if !std::mem::take(&mut self.client.is_loose) {
            return;
        }
        let Some(loose) = self.client.loose.take() else {
            return;
        };
        self.lent.counters().add(counter(loose.opening), 1);
        if loose.count() > 0 {
            let count = loose.count() as u64;
            self.lent.counters().add(Counter::ReadsRepeated, count);
            self.client.habits.readings.opened();
        }
        let met = self.lent.met.take();
        let reason = loose.reason.unwrap_or(Reason::NotPreparable);
        let effect = self.before_relay(&loose.begin, reason);
        self.lent.met = met;
        self.upstream.standing.completed(loose.tag, Some(effect));
        self.upstream.ready(Status::Transaction);
        self.client.loose = Some(loose);
    }

    /// Sends BEGIN, and has what was read planned again behind it.
    pub(super) fn tell_begin(&mut self, begin: &[u8], then: &Then) {
        let waits = !matches!(then, Then::Late);
        match self.client.loose.take() {
            Some(loose) if loose.count() > 0 => {
                self.question(|out| loose.put(begin, waits, out));
                self.client.loose = Some(loose);
            }
            loose => {
                self.client.loose = loose;
                self.question(|out| frontend::query(out, begin));
            }
        }
    }

    /// Ends the query on hold as cancelled, in the transaction, which is opened for that.
    pub(super) fn cancel_loosely(&mut self) {
        self.client.loose_opening(Opening::Home);
        self.opens();
        self.begin(Then::Again);
        if let Turn::Reopening(reopening) = &mut self.client.turn {
            reopening.cancelled = true;
        }
    }

    /// Opens the transaction if it has been loose for so long; returns when to see again, if it is
    /// still loose.
    pub(in crate::hub) fn opens_late(&mut self) -> Option<Millis> {
        let due = self.upstream.begin_due.filter(|_| self.client.is_loose)?;
        if due == Millis::NEVER || self.client.is_parting {
            return None;
        }
        if due > self.now {
            return Some(due);
        }
        self.visits.is_wanted |= self.visits.is_busy();
        if self.visits.is_busy() || !matches!(self.client.turn, Turn::Free) || self.client.skip > 0
        {
            return Some(Millis(self.now.0.saturating_add(AGAIN)));
        }
        self.client.loose_opening(Opening::Late);
        self.opens();
        self.begin(Then::Late);
        None
    }

    /// What was read in the transaction cannot be planned again in it.
    ///
    /// A query that waits fails with the error, and its transaction has failed. Where none waits,
    /// nobody is to hear of it: the transaction is loose again, and not opened for its age.
    pub(super) fn cannot_repeat(&mut self, reopening: Reopening) {
        self.lent.counters().add(Counter::RepeatsFailed, 1);
        match reopening.then {
            Then::Again => {
                self.client.forget_reads();
                self.client.query.clear();
                self.client.turn = Turn::Cancelled(Box::new(Cancelled {
                    error: without_position(&reopening.error),
                    status: Some(self.upstream.standing.status),
                }));
                self.release();
            }
            Then::Late | Then::Loose => {
                self.question(|out| frontend::query(out, b"ROLLBACK"));
                self.client.turn = Turn::Reopening(Box::new(Reopening {
                    owed: 1,
                    then: Then::Loose,
                    ..reopening
                }));
            }
            // What waits is relayed, and the server refuses it.
            Then::Nothing | Then::Original | Then::Decided(_) => {
                self.client.forget_reads();
            }
        }
    }

    /// The transaction was rolled back on the server, and the client has not heard of that.
    pub(super) fn loosens_again(&mut self) {
        self.client.is_loose = true;
        self.upstream.begin_due = Some(Millis::NEVER);
    }
}

/// The error without the position, which is one in another text.
fn without_position(error: &[u8]) -> Vec<u8> {
    let body = error.get(HEADER..).unwrap_or_default();
    let mut out = Vec::new();
    fields::put_without(&mut out, backend::ERROR, body, fields::POSITION);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_says_anything_more_is_not_plain() {
        for (text, tag) in [
            ("commit", &b"COMMIT"[..]),
            (" COMMIT ;", b"COMMIT"),
            ("END", b"COMMIT"),
            ("end transaction", b"COMMIT"),
            ("Rollback\tWork;", b"ROLLBACK"),
            ("ABORT", b"ROLLBACK"),
            (
                "/* a */ COMMIT /* Database::commit (Some\\Name) */",
                b"COMMIT",
            ),
        ] {
            assert_eq!(plain_end(text.as_bytes()), Some(tag), "{text}");
        }
        for text in [
            "",
            ";",
            "commits",
            "commit;;",
            "commit and chain",
            "commit and no chain",
            "commit prepared 'a'",
            "commit; select 1",
            "commit -- a",
            "end /* a /* b */ */",
            "rollback to a",
            "rollback to savepoint a",
            "end work transaction",
            "commit /* \u{e9} */",
            &format!("commit /*{}*/", "a".repeat(MAX_END)),
        ] {
            assert_eq!(plain_end(text.as_bytes()), None, "{text}");
        }
    }
}
