//! A converted query in flight: what goes up, and what becomes of each reply.

use super::{INSPECT_LIMIT, Session, Turn};
use crate::convert::Lent;
use crate::metrics::Counter;
use crate::oracle::is_of_the_moment;
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::rewrite;
use crate::statement::mirror::{Entry, Name};
use crate::statement::{Key, Recipe, Statement, Verdict};
use crate::upstream::ledger::{Execution, Kind, Recovery, Stage};
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};
use std::sync::Arc;

/// Replies that wait for the one after them. Each is bounded by what is inspected at all, and the
/// notices by [`MAX_NOTICES`].
#[derive(Debug, Default)]
pub(super) struct Held {
    description: Vec<u8>,
    complete: Vec<u8>,
    notices: Vec<u8>,
}

impl Held {
    pub(super) const fn has_description(&self) -> bool {
        !self.description.is_empty()
    }

    const fn is_empty(&self) -> bool {
        self.description.is_empty() && self.complete.is_empty() && self.notices.is_empty()
    }

    pub(super) const fn buffers(&mut self) -> [&mut Vec<u8>; 3] {
        [&mut self.description, &mut self.complete, &mut self.notices]
    }
}

/// Bytes of notices held until BindComplete. A statement that says more while it is planned is
/// rare; its notices then go out at once and an early error is translated instead of repaired.
const MAX_NOTICES: usize = 64 * 1024;

/// What is to be executed.
#[derive(Debug)]
pub(super) struct Call {
    /// The statement's place in the connection's cache.
    pub key: Key,
    /// Its name on the server.
    pub name: Name,
    pub hold_description: bool,
    /// What running it may do to the session.
    pub effect: Effect,
    /// The statement, if it must be parsed anew first.
    pub renewed: Option<Arc<Statement>>,
}

/// A whole answer to a converted query, of which the client gets all but the first bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeReply {
    /// Its bytes.
    pub size: usize,
    /// Those at its front that are ours.
    pub swallowed: usize,
}

impl Call {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            key: entry.statement.key(),
            name: entry.name,
            hold_description: entry.statement.hold_description(),
            effect: entry.terms.effect,
            renewed: None,
        }
    }
}

impl Session {
    /// Sends Bind, Describe, Execute and Sync for the query in `self.query`, which the worker's
    /// scanner has just scanned.
    pub(super) fn execute(&mut self, call: &Call, recipe: &Recipe, lent: &Lent) {
        let name = &call.name;
        let extended = self.habits.speaks_extended();
        if extended {
            // As a Query does: a client that uses both protocols might miss it.
            self.to_upstream
                .extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
        }
        if let Some(statement) = &call.renewed {
            let out = &mut self.to_upstream;
            frontend::close_statement(out, name.as_bytes());
            frontend::parse(out, name.as_bytes(), statement.text(), statement.oids());
            lent.counters().add(Counter::StatementsRenewed, 1);
        }
        let text = &self.query;
        let literals = lent.scan.literals();
        let arguments = recipe.eligible().map_or(&[][..], |e| &e.arguments);
        let mut lifted = literals
            .iter()
            .zip(arguments)
            .filter_map(|(literal, argument)| argument.then_some(literal));
        let count = arguments.iter().filter(|argument| **argument).count();
        frontend::bind(&mut self.to_upstream, name.as_bytes(), count, |_, out| {
            if let Some(literal) = lifted.next() {
                rewrite::argument(text, &lent.scan, literal, out);
            }
        });
        self.to_upstream
            .extend_from_slice(frontend::DESCRIBE_EXECUTE);
        if extended {
            self.to_upstream
                .extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
        }
        self.to_upstream.extend_from_slice(frontend::SYNC_FRAME);
        let recovery = match (
            self.upstream.standing.status,
            &*self.upstream.standing.only_begun,
        ) {
            (Status::Idle, _) => Recovery::Replay,
            (_, []) => Recovery::Translate,
            _ => Recovery::Reopen,
        };
        let execution = Execution {
            key: call.key,
            stage: Stage::Binding,
            recovery,
            hold_description: call.hold_description,
            effect: call.effect,
            parsing: call.renewed.is_some(),
        };
        self.upstream
            .ledger
            .expect(self.client, Kind::Execution(execution));
        self.turn = Turn::Executing;
    }

    /// Settles the query in flight if the whole answer to it is at the front of `bytes`, and is the
    /// usual one: BindComplete, which is known to be there, a description and rows or NoData,
    /// CommandComplete, ReadyForQuery. Then nothing has to be held, since what would be waited for
    /// is there.
    #[inline]
    pub(super) fn usual_answer(&mut self, bytes: &[u8]) -> Option<WholeReply> {
        let execution = self.execution()?;
        let effect = execution.effect;
        if execution.stage != Stage::Binding || execution.parsing || !self.held.is_empty() {
            return None;
        }
        let (answer, status) = usual_answer(bytes)?;
        self.upstream.ledger.settle();
        self.executed(Some(status), effect);
        Some(answer)
    }

    pub(super) fn execution_reply(
        &mut self,
        tag: u8,
        frame: &[u8],
        lent: &mut Lent,
    ) -> Result<(), Error> {
        let Some(execution) = self.execution() else {
            return Ok(());
        };
        match tag {
            backend::BIND_COMPLETE => {
                execution.stage = Stage::Bound;
                self.to_client.append(&mut self.held.notices);
            }
            backend::PARSE_COMPLETE => execution.parsing = false,
            backend::NO_DATA | backend::CLOSE_COMPLETE => {}
            backend::ROW_DESCRIPTION => self.held.description.extend_from_slice(frame),
            backend::DATA_ROW => {
                self.release_description();
                self.to_client.extend_from_slice(frame);
            }
            backend::COMMAND_COMPLETE => {
                self.release_description();
                self.held.complete.extend_from_slice(frame);
            }
            backend::NOTICE => self.execution_notice(frame, lent),
            backend::NOTIFICATION | backend::PARAMETER_STATUS => {
                self.to_client.append(&mut self.held.complete);
                self.to_client.extend_from_slice(frame);
            }
            backend::ERROR => self.execution_error(frame, lent),
            backend::READY_FOR_QUERY => self.execution_ready(frame, lent),
            _ => {
                return Err(Error::Unexpected {
                    tag: char::from(tag),
                });
            }
        }
        Ok(())
    }

    /// A row, notice or error too large to be looked at goes to the client as it is.
    pub(super) fn large_execution_reply(&mut self, tag: u8) -> Option<bool> {
        match tag {
            backend::DATA_ROW => self.release_description(),
            backend::NOTICE => {
                self.to_client.append(&mut self.held.notices);
                let execution = self.execution()?;
                if execution.stage == Stage::Binding {
                    execution.recovery = Recovery::Translate;
                }
            }
            backend::ERROR => {
                self.execution()?.stage = Stage::Failed;
                self.drop_held();
            }
            _ => return None,
        }
        Some(true)
    }

    /// An error is about to be forwarded: of what was held only the notices are still true.
    fn drop_held(&mut self) {
        self.held.description.clear();
        self.held.complete.clear();
        self.to_client.append(&mut self.held.notices);
    }

    pub(super) fn execution(&mut self) -> Option<&mut Execution> {
        match self.upstream.ledger.front().map(|front| &mut front.kind) {
            Some(Kind::Execution(execution)) => Some(execution),
            _ => None,
        }
    }

    fn release_description(&mut self) {
        self.to_client.append(&mut self.held.description);
    }

    /// The simple protocol sends notices before the RowDescription of a statement that returns what
    /// it writes, and before CommandComplete (H-26, H-27): so they overtake what is held.
    fn execution_notice(&mut self, frame: &[u8], lent: &mut Lent) {
        let early = self
            .execution()
            .is_some_and(|execution| execution.stage == Stage::Binding);
        let terms = self.terms_in_flight();
        let change = self.translation(&frame[HEADER..], (early, terms), lent);
        if !early {
            fields::put_changed(
                &mut self.to_client,
                backend::NOTICE,
                &frame[HEADER..],
                &change,
            );
            return;
        }
        fields::put_changed(
            &mut self.held.notices,
            backend::NOTICE,
            &frame[HEADER..],
            &change,
        );
        if self.held.notices.len() > MAX_NOTICES {
            self.to_client.append(&mut self.held.notices);
            if let Some(execution) = self.execution() {
                execution.recovery = Recovery::Translate;
            }
        }
    }

    fn execution_error(&mut self, frame: &[u8], lent: &mut Lent) {
        let body = &frame[HEADER..];
        let Some(execution) = self.execution() else {
            return;
        };
        let (stage, recovery, key) = (execution.stage, execution.recovery, execution.key);
        let early = stage == Stage::Binding;
        let parsing = execution.parsing;
        // What follows may drop the statement.
        let terms = self.terms_in_flight();
        if parsing {
            // Closed, and not parsed again.
            self.upstream.standing.mirror.revoke(key);
        } else if early {
            self.forget_if_stale(body, key);
        }
        let repair = early && recovery != Recovery::Translate && is_repairable(body);
        if let Some(execution) = self.execution() {
            execution.stage = if repair { Stage::Replay } else { Stage::Failed };
        }
        if repair {
            if !is_of_the_moment(body) {
                self.count_failure(key);
            }
            self.held.notices.clear();
            return;
        }
        self.drop_held();
        let change = self.translation(body, (early, terms), lent);
        fields::put_changed(&mut self.to_client, backend::ERROR, body, &change);
    }

    /// An execution of this statement had to be tried again: after too many it is given up.
    fn count_failure(&mut self, key: Key) {
        if let Some(entry) = self.upstream.standing.mirror.lookup(key)
            && entry.statement.count_failure()
        {
            let epoch = self.upstream.standing.database.epoch();
            let reason = Reason::Unstable;
            entry.statement.record(Verdict::Declined { reason, epoch });
        }
    }

    /// 26000: the statement is gone. 0A000 from the plan cache: its result type has changed. Both
    /// are told by SQLSTATE and routine, never by translated text.
    fn forget_if_stale(&mut self, body: &[u8], key: Key) {
        match fields::field(body, fields::SQLSTATE) {
            Some(b"26000") => self.upstream.standing.mirror.revoke(key),
            Some(b"0A000")
                if fields::field(body, fields::ROUTINE) == Some(b"RevalidateCachedQuery") =>
            {
                self.upstream.standing.mirror.remove(key);
            }
            // Anything the catalog answers differently now: parse anew before the next execution.
            Some(state) if state.starts_with(b"42") => {
                self.upstream.standing.mirror.remove(key);
            }
            _ => {}
        }
    }

    fn execution_ready(&mut self, frame: &[u8], lent: &Lent) {
        let Some(Kind::Execution(execution)) = self.upstream.ledger.settle() else {
            return;
        };
        if execution.stage == Stage::Replay {
            self.replay(&execution, lent);
            return;
        }
        self.release_description();
        self.to_client.append(&mut self.held.complete);
        self.to_client.extend_from_slice(frame);
        self.executed(Status::read(&frame[HEADER..]), execution.effect);
    }

    /// What was executed may have had this effect: few statements do.
    #[cold]
    #[inline(never)]
    fn executed_something(&mut self, effect: Effect) {
        self.upstream.standing.ran(effect);
    }

    /// The query that was in flight is answered.
    #[inline]
    fn executed(&mut self, status: Option<Status>, effect: Effect) {
        // These hold nothing to be dropped, which spares the hot path a look at those that do. It
        // is free already if the client has finished.
        if matches!(self.turn, Turn::Executing | Turn::Free) {
            std::mem::forget(std::mem::replace(&mut self.turn, Turn::Free));
        } else {
            self.end_turn();
        }
        self.upstream.standing.only_begun.clear();
        if effect != Effect::None {
            self.executed_something(effect);
        }
        if let Some(status) = status {
            self.upstream.ready(status);
        }
        self.query.clear();
    }

    #[cold]
    fn end_turn(&mut self) {
        self.turn = Turn::Free;
    }

    /// Nothing of the converted query has run: send the original, which gives the exact answer.
    fn replay(&mut self, execution: &Execution, lent: &Lent) {
        lent.counters().add(Counter::Replayed, 1);
        if execution.recovery == Recovery::Reopen && !self.upstream.standing.only_begun.is_empty() {
            self.reopen();
        } else {
            self.send_original();
        }
    }
}

/// The usual answer at the front of `bytes`, if all of it is there, and the status it ends with.
#[inline]
fn usual_answer(bytes: &[u8]) -> Option<(WholeReply, Status)> {
    let frame = |at: usize| frame::header(bytes.get(at..)?).ok()?;
    let mut at = frame(0)?.size;
    let mut swallowed = at;
    let description = frame(at).filter(|header| header.size <= INSPECT_LIMIT)?;
    at += description.size;
    match description.tag {
        backend::ROW_DESCRIPTION => {
            at += frame::run(bytes.get(at..)?, backend::DATA_ROW).ok()?.bytes;
        }
        backend::NO_DATA => swallowed = at,
        _ => return None,
    }
    let complete = frame(at).filter(|header| header.size <= INSPECT_LIMIT)?;
    if complete.tag != backend::COMMAND_COMPLETE {
        return None;
    }
    at += complete.size;
    let ready = frame(at).filter(|header| header.tag == backend::READY_FOR_QUERY)?;
    let size = at + ready.size;
    let status = Status::read(bytes.get(at + HEADER..size)?)?;
    Some((WholeReply { size, swallowed }, status))
}

/// Whether an error that came before BindComplete may be dropped for a second try. Cancellation,
/// shutdown and everything fatal is final: the client must hear it.
fn is_repairable(body: &[u8]) -> bool {
    let error = fields::field(body, fields::SEVERITY) == Some(b"ERROR");
    let state = fields::field(body, fields::SQLSTATE).unwrap_or_default();
    error && !state.starts_with(b"57")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_answer_is_whole_and_has_nothing_else_in_it() {
        let rows =
            b"2\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x06\0\0D\0\0\0\x06\0\0C\0\0\0\x05\0Z\0\0\0\x05T";
        let none = b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I";
        let known = |bytes: &[u8]| {
            let (answer, status) = usual_answer(bytes)?;
            Some((answer.swallowed, answer.size, status))
        };
        assert_eq!(known(rows), Some((5, rows.len(), Status::Transaction)));
        assert_eq!(known(none), Some((10, none.len(), Status::Idle)));
        assert_eq!(
            known(&[none, &b"N"[..]].concat()),
            Some((10, none.len(), Status::Idle))
        );
        for bytes in [&rows[..], none] {
            for end in 0..bytes.len() {
                assert_eq!(known(&bytes[..end]), None, "cut at {end}");
            }
        }
        for other in [
            // A notice, an error, rows without a description, no such status.
            &b"2\0\0\0\x04N\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05I"[..],
            b"2\0\0\0\x04n\0\0\0\x04E\0\0\0\x05\0Z\0\0\0\x05I",
            b"2\0\0\0\x04n\0\0\0\x04D\0\0\0\x06\0\0C\0\0\0\x05\0Z\0\0\0\x05I",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x05\0Z\0\0\0\x05x",
            b"2\0\0\0\x04n\0\0\0\x04C\0\0\0\x03\0Z\0\0\0\x05I",
        ] {
            assert_eq!(known(other), None);
        }
    }

    #[test]
    fn cancellation_is_final() {
        assert!(is_repairable(b"SERROR\0VERROR\0C22P02\0\0"));
        assert!(!is_repairable(b"SERROR\0VERROR\0C57014\0\0"));
        assert!(!is_repairable(b"SFATAL\0VFATAL\0C22P02\0\0"));
        assert!(!is_repairable(b""));
    }
}
