//! A converted query in flight: what goes up, and what becomes of each reply.

use super::{INSPECT_LIMIT, Session, Turn, Worker};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::{Eligible, Scan, rewrite};
use crate::statement::cache::{Entry, Name};
use crate::statement::doubt;
use crate::statement::{Key, Recipe, Statement, Terms, Verdict};
use crate::upstream::Encoding;
use crate::upstream::ledger::{Execution, Kind, Recovery, Stage};
use crate::wire::backend::{self, Status};
use crate::wire::fields::{self, Change};
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
    /// The statement, if it must be parsed anew first.
    pub renewed: Option<Arc<Statement>>,
}

/// A whole answer to a converted query, of which the client gets all but the first bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
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
            renewed: None,
        }
    }
}

impl Session {
    /// Sends Bind, Describe, Execute and Sync for the query in `self.query`, which the worker's
    /// scanner has just scanned.
    pub(super) fn execute(&mut self, call: &Call, recipe: &Recipe, worker: &Worker) {
        let name = &call.name;
        let extended = self.memory.speaks_extended();
        if extended {
            // As a Query does: a client that uses both protocols might miss it.
            self.to_upstream
                .extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
        }
        if let Some(statement) = &call.renewed {
            let out = &mut self.to_upstream;
            frontend::close_statement(out, name.as_bytes());
            frontend::parse(out, name.as_bytes(), statement.text(), statement.oids());
            worker.counters().add(Counter::StatementsRenewed, 1);
        }
        let text = &self.query;
        let literals = worker.scan.literals();
        let arguments = recipe.eligible().map_or(&[][..], |e| &e.arguments);
        let mut lifted = literals
            .iter()
            .zip(arguments)
            .filter_map(|(literal, argument)| argument.then_some(literal));
        let count = arguments.iter().filter(|argument| **argument).count();
        frontend::bind(&mut self.to_upstream, name.as_bytes(), count, |_, out| {
            if let Some(literal) = lifted.next() {
                rewrite::argument(text, &worker.scan, literal, out);
            }
        });
        self.to_upstream
            .extend_from_slice(frontend::DESCRIBE_EXECUTE);
        if extended {
            self.to_upstream
                .extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
        }
        self.to_upstream.extend_from_slice(frontend::SYNC_FRAME);
        let recovery = match (self.upstream.status, &*self.upstream.only_begun) {
            (Status::Idle, _) => Recovery::Replay,
            (_, []) => Recovery::Translate,
            _ => Recovery::Reopen,
        };
        let execution = Execution {
            key: call.key,
            stage: Stage::Binding,
            recovery,
            hold_description: call.hold_description,
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
    pub(super) fn usual_answer(&mut self, bytes: &[u8]) -> Option<Answer> {
        let execution = self.execution()?;
        if execution.stage != Stage::Binding || execution.parsing || !self.held.is_empty() {
            return None;
        }
        let (answer, status) = usual_answer(bytes)?;
        self.upstream.ledger.settle();
        self.executed(Some(status));
        Some(answer)
    }

    pub(super) fn execution_reply(
        &mut self,
        tag: u8,
        frame: &[u8],
        worker: &mut Worker,
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
            backend::NOTICE => self.execution_notice(frame, worker),
            backend::NOTIFICATION | backend::PARAMETER_STATUS => {
                self.to_client.append(&mut self.held.complete);
                self.to_client.extend_from_slice(frame);
            }
            backend::ERROR => self.execution_error(frame, worker),
            backend::READY_FOR_QUERY => self.execution_ready(frame, worker),
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

    fn execution(&mut self) -> Option<&mut Execution> {
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
    fn execution_notice(&mut self, frame: &[u8], worker: &mut Worker) {
        let early = self
            .execution()
            .is_some_and(|execution| execution.stage == Stage::Binding);
        let terms = self.terms_in_flight();
        let change = self.translation(&frame[HEADER..], (early, terms), worker);
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

    fn execution_error(&mut self, frame: &[u8], worker: &mut Worker) {
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
            self.upstream.cache.revoke(key);
        } else if early {
            self.forget_if_stale(body, key);
        }
        let repair = early && recovery != Recovery::Translate && is_repairable(body);
        if let Some(execution) = self.execution() {
            execution.stage = if repair { Stage::Replay } else { Stage::Failed };
        }
        if repair {
            self.held.notices.clear();
            return;
        }
        self.drop_held();
        let change = self.translation(body, (early, terms), worker);
        fields::put_changed(&mut self.to_client, backend::ERROR, body, &change);
    }

    /// 26000: the statement is gone. 0A000 from the plan cache: its result type has changed. Both
    /// are told by SQLSTATE and routine, never by translated text.
    fn forget_if_stale(&mut self, body: &[u8], key: Key) {
        match fields::field(body, fields::SQLSTATE) {
            Some(b"26000") => self.upstream.cache.revoke(key),
            Some(b"0A000")
                if fields::field(body, fields::ROUTINE) == Some(b"RevalidateCachedQuery") =>
            {
                self.upstream.cache.remove(key);
            }
            // Anything the catalog answers differently now: parse anew before the next execution.
            Some(state) if state.starts_with(b"42") => {
                self.upstream.cache.remove(key);
            }
            _ => {}
        }
    }

    fn execution_ready(&mut self, frame: &[u8], worker: &Worker) {
        let settled = self.upstream.ledger.settle().map(|settled| settled.kind);
        let Some(Kind::Execution(execution)) = settled else {
            return;
        };
        if execution.stage == Stage::Replay {
            self.turn = Turn::Free;
            self.replay(&execution, worker);
            return;
        }
        self.release_description();
        self.to_client.append(&mut self.held.complete);
        self.to_client.extend_from_slice(frame);
        self.executed(Status::read(&frame[HEADER..]));
    }

    /// The query that was in flight is answered.
    #[inline]
    fn executed(&mut self, status: Option<Status>) {
        self.turn = Turn::Free;
        self.upstream.only_begun.clear();
        if let Some(status) = status {
            self.upstream.ready(status);
        }
        self.query.clear();
    }

    /// Nothing of the converted query has run: send the original, which gives the exact answer.
    fn replay(&mut self, execution: &Execution, worker: &Worker) {
        worker.counters().add(Counter::Replayed, 1);
        if let Some(entry) = self.upstream.cache.lookup(execution.key)
            && entry.statement.count_failure()
        {
            let epoch = self.upstream.database.epoch();
            let reason = Reason::Unstable;
            entry.statement.settle(Verdict::Declined { reason, epoch });
        }
        let begin = &self.upstream.only_begun;
        if execution.recovery == Recovery::Reopen && !begin.is_empty() {
            frontend::query(&mut self.to_upstream, b"ROLLBACK");
            frontend::query(&mut self.to_upstream, begin);
            self.upstream.only_begun.clear();
            self.upstream.ledger.expect(self.client, Kind::Question);
            self.upstream.ledger.expect(self.client, Kind::Question);
        }
        self.upstream.ledger.relay(self.client, frontend::QUERY);
        frontend::query(&mut self.to_upstream, &self.query);
        self.query.clear();
    }

    /// What must change in an error or notice about the rewritten text so that it is about the
    /// original. It is early if it came before BindComplete; the terms are the statement's.
    fn translation(
        &self,
        body: &[u8],
        (early, terms): (bool, Option<Arc<Terms>>),
        worker: &mut Worker,
    ) -> Change {
        let mut change = Change::default();
        let Ok(recipe) = self.recipe(&self.query, worker) else {
            return change;
        };
        let Some(eligible) = recipe.eligible() else {
            return change;
        };
        let (text, scan, arguments) = (&self.query, &worker.scan, &eligible.arguments);
        if let Some(position) = fields::field(body, fields::POSITION) {
            let position = std::str::from_utf8(position)
                .ok()
                .and_then(|p| p.parse().ok());
            change.position =
                position.and_then(|p| rewrite::original_position(text, scan, arguments, p));
            return change;
        }
        if !early {
            return change;
        }
        let context = fields::field(body, fields::CONTEXT).unwrap_or_default();
        let message = fields::field(body, fields::MESSAGE).unwrap_or_default();
        if let Some((argument, rest)) = parameter_line(context) {
            change.context = Some(rest.to_vec());
            change.position = rewrite::literal_position(text, scan, argument, arguments, message);
        } else if self.upstream.dialect.server_major < 14 {
            // 13 does not say which parameter (H-30).
            change.position = terms
                .and_then(|terms| blamed_argument(body, &terms, eligible, (text, scan)))
                .and_then(|k| rewrite::literal_position(text, scan, k, arguments, message));
        }
        debug_assert!(self.upstream.encoding != Encoding::Unsafe);
        change
    }

    fn terms_in_flight(&mut self) -> Option<Arc<Terms>> {
        let key = self.execution()?.key;
        let entry = self.upstream.cache.lookup(key)?;
        Some(Arc::clone(&entry.terms))
    }
}

/// The argument of `text` that a message of server 13 is about, which came before BindComplete: the
/// only one that might not be a value of its type, if such a value is what it complains about.
fn blamed_argument(
    body: &[u8],
    terms: &Terms,
    eligible: &Eligible,
    (text, scan): (&[u8], &Scan),
) -> Option<usize> {
    let mut doubtful = terms.doubtful(eligible, text, scan);
    let argument = doubtful.next().filter(|_| doubtful.next().is_none())?;
    let lifted = scan.literals().iter().zip(&eligible.arguments);
    let mut lifted = lifted.filter(|(_, argument)| **argument);
    let (literal, _) = lifted.nth(argument)?;
    let state = fields::field(body, fields::SQLSTATE)?;
    let message = fields::field(body, fields::MESSAGE)?;
    let mut elements = scan.elements(literal).iter();
    let is_whole = elements.any(|element| rewrite::is_quoted(text, element, message));
    let string = (rewrite::token(text, literal), is_whole);
    let type_oid = *terms.types.get(argument)?;
    doubt::is_said_of(type_oid, string, state, message).then_some(argument)
}

/// The usual answer at the front of `bytes`, if all of it is there, and the status it ends with.
#[inline]
fn usual_answer(bytes: &[u8]) -> Option<(Answer, Status)> {
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
    Some((Answer { size, swallowed }, status))
}

/// Whether an error that came before BindComplete may be dropped for a second try. Cancellation,
/// shutdown and everything fatal is final: the client must hear it.
fn is_repairable(body: &[u8]) -> bool {
    let error = fields::field(body, fields::SEVERITY) == Some(b"ERROR");
    let state = fields::field(body, fields::SQLSTATE).unwrap_or_default();
    error && !state.starts_with(b"57")
}

/// Finds the context line about a parameter of the unnamed portal (`bind_param_error_callback` in
/// `postgres.c`), which is the outermost and so the last. Returns the argument's index and the
/// context without the line. The words are translated; `$n` is not.
fn parameter_line(context: &[u8]) -> Option<(usize, &[u8])> {
    // The value shown may itself hold line breaks, so the line is looked for from the front.
    let mut start = 0;
    loop {
        let line = context.get(start..)?;
        let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
        if let Some(argument) = parameter_of(&line[..end]) {
            let rest = context.get(..start.saturating_sub(1))?;
            return Some((argument, rest));
        }
        if end == line.len() {
            return None;
        }
        start += end + 1;
    }
}

/// The parameter a line is about: `… $n` or `… $n = '…'`, with nothing quoted before it.
fn parameter_of(line: &[u8]) -> Option<usize> {
    let dollar = memchr::memchr(b'$', line)?;
    let head = &line[..dollar];
    if head.contains(&b'"') || head.contains(&b'\'') || head.contains(&b'(') {
        return None;
    }
    let digits = line[dollar + 1..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (number, tail) = line[dollar + 1..].split_at(digits);
    let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
    (tail.is_empty() || tail.starts_with(b" = ")).then(|| number.checked_sub(1))?
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
    fn the_parameter_line_is_cut_off() {
        assert_eq!(
            parameter_line(b"unnamed portal parameter $2 = 'abc'"),
            Some((1, &b""[..]))
        );
        assert_eq!(
            parameter_line(b"JSON data, line 1: x\nunnamed portal parameter $1"),
            Some((0, &b"JSON data, line 1: x"[..]))
        );
        assert_eq!(
            parameter_line(b"Parameter $3 = 'a\nb'"),
            Some((2, &b""[..]))
        );
        assert_eq!(parameter_line(b"PL/pgSQL function f(integer) line 3"), None);
        assert_eq!(parameter_line(b"SQL statement \"SELECT $1\""), None);
        assert_eq!(parameter_line(b""), None);
    }

    #[test]
    fn cancellation_is_final() {
        assert!(is_repairable(b"SERROR\0VERROR\0C22P02\0\0"));
        assert!(!is_repairable(b"SERROR\0VERROR\0C57014\0\0"));
        assert!(!is_repairable(b"SFATAL\0VFATAL\0C22P02\0\0"));
        assert!(!is_repairable(b""));
    }
}
