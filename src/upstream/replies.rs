//! What a connection does with the replies to a converted query, as their fate says.

use super::Upstream;
use super::execution::{Execution, Recovery, Stage, WholeReply};
use super::ledger::{Fate, Kind};
use crate::convert::{self, Lent, is_of_the_moment};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::stays::Blame;
use crate::standing::Standing;
use crate::statement::{Key, Terms, Verdict};
use crate::wire::backend;
use crate::wire::fields::{self, Change};
use crate::wire::frame::{self, HEADER};
use std::sync::Arc;

/// What a ReadyForQuery behind a converted query means.
#[derive(Debug)]
pub enum Settled {
    /// It is answered.
    Answered(Execution),
    /// Nothing of it has run, and its error was dropped: the original is to be sent.
    Replay(Execution),
}

impl Upstream {
    /// Settles the converted query in front if the whole answer to it is at the front of `bytes`,
    /// and is the usual one. Also returns its text, and what running it may have done.
    #[inline]
    pub fn whole_reply(&mut self, bytes: &[u8]) -> Option<(WholeReply, Vec<u8>, Effect)> {
        let reply = self.ledger.execution()?.whole_reply(bytes)?;
        let Some(Kind::Execution(execution)) = self.ledger.settle() else {
            return None;
        };
        if matches!(execution.statement().first(), Some(b'I' | b'i')) {
            self.inserted(bytes.get(reply.swallowed..).unwrap_or_default());
        }
        Some((reply, execution.text, execution.effect))
    }

    /// An INSERT was answered so, perhaps with rows that it returns.
    fn inserted(&self, mut bytes: &[u8]) {
        while let Ok(Some(header)) = frame::header(bytes)
            && header.tag != backend::COMMAND_COMPLETE
        {
            bytes = bytes.get(header.size..).unwrap_or_default();
        }
        self.standing.database.add_rows(backend::rows_added(bytes));
    }

    /// Takes the usual answer to a BEGIN that the converted query in front carries, if all of it is
    /// at the front of `bytes`: returns how long it is, or zero.
    pub fn begun(&mut self, bytes: &[u8]) -> usize {
        self.carries_begin = false;
        let execution = self.ledger.execution();
        execution
            .and_then(|execution| execution.begun(bytes))
            .unwrap_or(0)
    }

    /// Takes a whole reply to the converted query in front, which has this fate. What goes to its
    /// client is appended to `out`.
    pub fn take(&mut self, fate: Fate, tag: u8, frame: &[u8], out: &mut Vec<u8>, lent: &mut Lent) {
        let Some(execution) = self.ledger.execution() else {
            return;
        };
        match fate {
            Fate::Swallow => execution.swallowed(tag, out),
            Fate::Hold => {
                let commits = execution.commits();
                execution.hold(tag, frame, out);
                if tag == backend::COMMAND_COMPLETE {
                    self.completes(frame, commits);
                }
            }
            Fate::Release => {
                execution.release(tag, out);
                out.extend_from_slice(frame);
            }
            Fate::Repair if tag == backend::ERROR => self.take_error(frame, out, lent),
            Fate::Repair => self.take_notice(frame, out, lent),
            _ => out.extend_from_slice(frame),
        }
    }

    /// A statement of a converted query has completed so, perhaps the end of its transaction.
    fn completes(&mut self, frame: &[u8], commits: bool) {
        let standing = &mut self.standing;
        standing.database.add_rows(backend::rows_added(frame));
        if commits && let Some(tag) = backend::command_tag(&frame[HEADER..]) {
            standing.completed(tag, Some(Effect::Transaction));
        }
    }

    /// A row, notice or error too large to be looked at is about to be forwarded.
    pub fn take_large(&mut self, tag: u8, out: &mut Vec<u8>) {
        let Some(execution) = self.ledger.execution() else {
            return;
        };
        match tag {
            backend::DATA_ROW => execution.release(tag, out),
            backend::NOTICE => execution.passes_large_notice(out),
            backend::ERROR => {
                let mirror = &mut self.standing.mirror;
                execution.skipped().for_each(|key| mirror.skipped(key));
                if execution.parsing && execution.stage != Stage::Beginning {
                    mirror.revoke(execution.key);
                }
                execution.fail(out);
            }
            _ => {}
        }
    }

    /// ReadyForQuery behind the converted query in front: settles it.
    pub fn take_ready(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<Settled> {
        let Some(Kind::Execution(mut execution)) = self.ledger.settle() else {
            return None;
        };
        if execution.is_replayed() {
            return Some(Settled::Replay(execution));
        }
        execution.finish(out);
        out.extend_from_slice(frame);
        Some(Settled::Answered(execution))
    }

    /// The simple protocol sends notices before the RowDescription of a statement that returns what
    /// it writes, and before CommandComplete (H-26, H-27): so they overtake what is held.
    fn take_notice(&mut self, frame: &[u8], out: &mut Vec<u8>, lent: &mut Lent) {
        let body = &frame[HEADER..];
        let change = self.translation(body, lent);
        let put = |out: &mut Vec<u8>| fields::put_changed(out, backend::NOTICE, body, &change);
        match self.ledger.execution() {
            // Nothing comes behind the last word.
            Some(execution) if execution.is_early() && !self.told_crash => {
                execution.hold_notice(put, out);
            }
            _ => put(out),
        }
    }

    fn take_error(&mut self, frame: &[u8], out: &mut Vec<u8>, lent: &mut Lent) {
        let body = &frame[HEADER..];
        let Some(execution) = self.ledger.execution() else {
            return;
        };
        let mirror = &mut self.standing.mirror;
        execution.skipped().for_each(|key| mirror.skipped(key));
        if execution.stage == Stage::Beginning && is_error(body) {
            // Nothing of the client's has run, and nothing may before the transaction has begun.
            execution.recovery = match fields::field(body, fields::SQLSTATE) {
                Some(b"57014") => Recovery::ReopenCancelled,
                _ => Recovery::Reopen,
            };
            execution.drop_error();
            return;
        }
        let (early, recovery, key) = (execution.is_early(), execution.recovery, execution.key);
        let parsing = execution.parsing;
        // What follows may drop the statement.
        let terms = terms(&mut self.standing, key);
        if parsing {
            // Closed, and not parsed again.
            self.standing.mirror.revoke(key);
        } else if early {
            self.forget_if_stale(body, key);
        }
        let repair = early && repairs(recovery, body);
        if repair && recovery != Recovery::Again && !is_of_the_moment(body) {
            self.count_failure(key);
        }
        let Some(execution) = self.ledger.execution() else {
            return;
        };
        if repair {
            execution.drop_error();
            return;
        }
        execution.fail(out);
        let execution = &*execution;
        let change = translation(body, execution, (early, terms), &self.standing, lent);
        fields::put_changed(out, backend::ERROR, body, &change);
    }

    /// What must change in a reply to the converted query in front.
    fn translation(&mut self, body: &[u8], lent: &mut Lent) -> Change {
        let Some(execution) = self.ledger.execution() else {
            return Change::default();
        };
        let (early, key) = (execution.is_early(), execution.key);
        let terms = terms(&mut self.standing, key);
        let execution = &*execution;
        translation(body, execution, (early, terms), &self.standing, lent)
    }

    /// An execution of this statement had to be tried again: after too many it is given up.
    fn count_failure(&mut self, key: Key) {
        if let Some(entry) = self.standing.mirror.lookup(key)
            && entry.statement.count_failure()
        {
            let epoch = self.standing.database.epoch();
            entry.statement.record(Verdict::Declined {
                reason: Reason::Unstable,
                blame: Blame::default(),
                epoch,
            });
        }
    }

    /// 26000: the statement is gone. 0A000 from the plan cache: its result type has changed. Both
    /// are told by SQLSTATE and routine, never by translated text.
    fn forget_if_stale(&mut self, body: &[u8], key: Key) {
        match fields::field(body, fields::SQLSTATE) {
            Some(b"26000") => self.standing.mirror.revoke(key),
            Some(b"0A000")
                if fields::field(body, fields::ROUTINE) == Some(b"RevalidateCachedQuery") =>
            {
                self.standing.mirror.remove(key);
            }
            // Anything the catalog answers differently now: parse anew before the next execution.
            Some(state) if state.starts_with(b"42") => {
                self.standing.mirror.remove(key);
            }
            _ => {}
        }
    }
}

/// What must change in a reply to what is being executed.
fn translation(
    body: &[u8],
    execution: &Execution,
    said: (bool, Option<Arc<Terms>>),
    standing: &Standing,
    lent: &mut Lent,
) -> Change {
    let change = convert::translation(body, execution.statement(), said, standing, lent);
    match execution.chain {
        Some(_) => change.behind(body, execution.length_before(standing.unit())),
        None => change,
    }
}

/// What the statement at this key is executed with.
fn terms(standing: &mut Standing, key: Key) -> Option<Arc<Terms>> {
    let entry = standing.mirror.lookup(key)?;
    Some(Arc::clone(&entry.terms))
}

/// Whether this error is dropped, before BindComplete.
fn repairs(recovery: Recovery, body: &[u8]) -> bool {
    match recovery {
        Recovery::Translate => false,
        Recovery::Again => fields::field(body, fields::SQLSTATE) == Some(b"25P02"),
        Recovery::Replay | Recovery::Reopen | Recovery::ReopenCancelled => is_repairable(body),
    }
}

/// Whether an error that came before BindComplete may be dropped for a second try. Cancellation,
/// shutdown and everything fatal is final: the client must hear it. So is what came of waiting for
/// others, which the text itself would have done as long: `lock_timeout`, deadlocks, and conflicts
/// with them.
fn is_repairable(body: &[u8]) -> bool {
    let state = fields::field(body, fields::SQLSTATE).unwrap_or_default();
    let is_final = matches!(state.get(..2), Some(b"40" | b"57")) || state == b"55P03";
    is_error(body) && !is_final
}

/// Whether the connection lives on behind this error.
fn is_error(body: &[u8]) -> bool {
    fields::field(body, fields::SEVERITY) == Some(b"ERROR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_and_what_comes_of_waiting_are_final() {
        assert!(is_repairable(b"SERROR\0VERROR\0C22P02\0\0"));
        assert!(is_repairable(b"SERROR\0VERROR\0C26000\0\0"));
        for state in ["57014", "55P03", "40P01", "40001"] {
            let error = format!("SERROR\0VERROR\0C{state}\0\0");
            assert!(!is_repairable(error.as_bytes()), "{state}");
        }
        assert!(!is_repairable(b"SFATAL\0VFATAL\0C22P02\0\0"));
        assert!(!is_repairable(b""));
    }
}
