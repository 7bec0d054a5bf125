//! What is relayed untouched, and what it does to the state the proxy mirrors.

use super::{Session, Turn, Worker};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::effect::{Effect, effect};
use crate::upstream::ledger::Kind;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};

impl Session {
    /// Relays a Query with this text, and notes what it may do.
    pub(super) fn relay_query(&mut self, text: &[u8], reason: Reason, worker: &Worker) {
        self.count_passed(reason, worker);
        if worker.settings.mode == super::Mode::Convert && !self.relay_only {
            self.before_relay(text, reason, worker);
        }
        self.upstream.ledger.relay(self.client, frontend::QUERY);
        frontend::query(&mut self.to_upstream, text);
    }

    fn count_passed(&self, reason: Reason, worker: &Worker) {
        worker.counters().passed(reason);
        let (client, reason) = (self.client.0, reason.label());
        tracing::debug!(client, reason, "passed through");
    }

    fn before_relay(&mut self, text: &[u8], reason: Reason, worker: &Worker) {
        let effect = effect(text);
        self.upstream.affected(effect);
        self.memory.relayed(effect);
        let begins = matches!(effect, Effect::Transaction | Effect::Isolation)
            && self.upstream.status == Status::Idle;
        self.upstream.only_begun.clear();
        if begins && self.upstream.ledger.is_idle() && text.len() <= MAX_BEGIN && is_begin(text) {
            self.upstream.only_begun.extend_from_slice(text);
        }
        if reason == Reason::Introspection || mentions_statements(text) {
            self.hide_statements(worker);
        }
    }

    /// Drops our statements: the session's own are all that it may see.
    fn hide_statements(&mut self, worker: &Worker) {
        if self.upstream.cache.is_on_server() && self.upstream.ledger.is_idle() {
            self.upstream.cache.flush();
            self.close_owed(worker);
        }
    }

    /// Notes a client frame that is relayed without being looked at, because it is too large or
    /// malformed: if it is a statement, it may do anything.
    pub(super) fn relay_unseen(&mut self, tag: u8, reason: Reason, worker: &Worker) {
        if tag == frontend::QUERY {
            self.count_passed(reason, worker);
            self.memory.relayed(Effect::Unknown);
        }
        if tag == frontend::PARSE {
            self.memory.client_parsed(Effect::Unknown);
        }
        if matches!(tag, frontend::QUERY | frontend::PARSE) {
            self.upstream.affected(Effect::Unknown);
        }
        self.relay_other(tag, &[], worker);
    }

    /// Notes any other client frame that is about to be relayed.
    pub(super) fn relay_other(&mut self, tag: u8, body: &[u8], worker: &Worker) {
        if tag == frontend::PARSE
            && let Some((_, rest)) = frame::cstr(body)
            && let Some((text, _)) = frame::cstr(rest)
        {
            let effect = effect(text);
            self.memory.client_parsed(effect);
            self.upstream.affected(effect);
            if mentions_statements(text) {
                self.hide_statements(worker);
            }
        }
        // The tags that follow are no longer those of the Query relayed last.
        self.memory.relayed(Effect::None);
        if tag != frontend::TERMINATE {
            self.upstream.only_begun.clear();
        }
        // COPY's own messages belong to either protocol.
        if !matches!(
            tag,
            frontend::TERMINATE | frontend::COPY_DATA | frontend::COPY_DONE | frontend::COPY_FAIL
        ) {
            self.memory.extended();
        }
        self.upstream.ledger.relay(self.client, tag);
    }

    /// Sends a Close for every statement owed one, ahead of what follows.
    pub(super) fn close_owed(&mut self, worker: &Worker) {
        if !self.upstream.cache.owes() {
            return;
        }
        let owed = self.upstream.cache.take_owed();
        for name in &owed {
            frontend::close_statement(&mut self.to_upstream, name.as_bytes());
        }
        self.upstream
            .ledger
            .expect(self.client, Kind::Closes(owed.len()));
        let count = owed.len() as u64;
        worker.counters().add(Counter::StatementsClosed, count);
    }

    pub(super) fn close_reply(&mut self, tag: u8, frame: &[u8]) -> Result<(), Error> {
        match tag {
            backend::CLOSE_COMPLETE => {
                self.upstream.ledger.closed();
            }
            // These may come at any time; an error here ends the connection on the server's side.
            backend::NOTICE
            | backend::NOTIFICATION
            | backend::PARAMETER_STATUS
            | backend::ERROR => self.to_client.extend_from_slice(frame),
            _ => {
                return Err(Error::Unexpected {
                    tag: char::from(tag),
                });
            }
        }
        Ok(())
    }

    /// Notes what a reply that goes to the client as it is does to the state the proxy mirrors.
    pub(super) fn relay_reply(&mut self, tag: u8, frame: &[u8]) {
        let body = &frame[HEADER..];
        match tag {
            backend::READY_FOR_QUERY => self.relay_ready(body),
            backend::COPY_IN | backend::COPY_BOTH => self.upstream.ledger.copy_in(),
            backend::COMMAND_COMPLETE => self.completed(body),
            _ => {}
        }
    }

    fn relay_ready(&mut self, body: &[u8]) {
        let settled = self.upstream.ledger.settle().map(|settled| settled.kind);
        if matches!(settled, Some(Kind::Sync)) {
            let effect = self.memory.client_batch_ended();
            self.upstream.affected(effect);
        }
        if let Some(status) = Status::read(body) {
            if status != Status::Transaction {
                self.upstream.only_begun.clear();
            }
            self.upstream.ready(status);
        } else {
            self.relay_only = true;
        }
        debug_assert!(matches!(self.turn, Turn::Free));
    }

    /// The command tag says what really ran, whoever prepared it.
    fn completed(&mut self, body: &[u8]) {
        let Some(tag) = backend::command_tag(body) else {
            return;
        };
        match tag {
            b"DISCARD ALL" | b"DEALLOCATE ALL" => {
                self.upstream.cache.forget_all();
                self.upstream.affected(Effect::Session);
            }
            // The tag does not say that what was created is temporary; the text did.
            _ if self.memory.only_local() => {}
            _ => self.upstream.affected(tag_effect(tag)),
        }
    }
}

/// Whether the text may show the statements of the session, whatever else kept it from being
/// converted.
fn mentions_statements(text: &[u8]) -> bool {
    const NAME: &[u8] = b"pg_prepared_statement";
    let mut starts = memchr::memchr2_iter(b'p', b'P', text);
    starts.any(|at| {
        let word = text.get(at..at + NAME.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(NAME))
    })
}

/// The longest text kept to begin a transaction again.
const MAX_BEGIN: usize = 256;

/// Whether the text begins a transaction and does nothing else.
fn is_begin(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let word = |word: &[u8]| {
        let (head, tail) = text.split_at_checked(word.len()).unwrap_or((b"", b""));
        head.eq_ignore_ascii_case(word) && tail.first().is_none_or(u8::is_ascii_whitespace)
    };
    (word(b"begin") || word(b"start")) && !text.contains(&b';')
}

/// The effect of a statement by the command tag of `cmdtaglist.h` it completed with. Tags of
/// statements that leave settings and catalogs alone are listed; everything else counts.
fn tag_effect(tag: &[u8]) -> Effect {
    const HARMLESS: [&[u8]; 30] = [
        b"SELECT",
        b"INSERT",
        b"UPDATE",
        b"DELETE",
        b"MERGE",
        b"FETCH",
        b"MOVE",
        b"COPY",
        b"BEGIN",
        b"COMMIT",
        b"ROLLBACK",
        b"START",
        b"SAVEPOINT",
        b"RELEASE",
        b"PREPARE",
        b"LISTEN",
        b"UNLISTEN",
        b"NOTIFY",
        b"SHOW",
        b"EXPLAIN",
        b"DECLARE",
        b"CLOSE",
        b"LOCK",
        b"VACUUM",
        b"ANALYZE",
        b"CHECKPOINT",
        b"SET",
        b"RESET",
        b"DEALLOCATE",
        b"DISCARD",
    ];
    const OPAQUE: [&[u8]; 2] = [b"DO", b"CALL"];
    let end = tag.iter().position(|byte| *byte == b' ');
    let word = tag.get(..end.unwrap_or(tag.len())).unwrap_or_default();
    if HARMLESS.contains(&word) {
        Effect::None
    } else if OPAQUE.contains(&word) {
        Effect::Unknown
    } else {
        Effect::Catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_alone_begins() {
        for yes in [
            "begin",
            "BEGIN;",
            " start transaction read only ;",
            "Begin work",
        ] {
            assert!(is_begin(yes.as_bytes()), "{yes}");
        }
        for no in ["begin; select 1", "beginning", "commit", "savepoint a", ""] {
            assert!(!is_begin(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn the_view_of_statements_is_found() {
        assert!(mentions_statements(b"table PG_Prepared_Statements"));
        assert!(!mentions_statements(b"select pg_prepared_xact()"));
        assert!(!mentions_statements(b"pg_prepared"));
    }

    #[test]
    fn tags_tell_effects() {
        assert_eq!(tag_effect(b"INSERT 0 1"), Effect::None);
        assert_eq!(tag_effect(b"CREATE TABLE"), Effect::Catalog);
        assert_eq!(tag_effect(b"DROP FUNCTION"), Effect::Catalog);
        assert_eq!(tag_effect(b"DO"), Effect::Unknown);
    }
}
