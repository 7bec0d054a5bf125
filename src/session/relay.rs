//! What is relayed untouched, and what it does to the state the proxy mirrors.

use super::{Lent, Session, Turn};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::define::{Definition, Definitions};
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey::{self, Survey, Tagged};
use crate::sql::tag;
use crate::statement::Millis;
use crate::upstream::ledger::Kind;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};
use std::sync::Arc;

impl Session {
    /// Relays a Query with this text, and notes what it may do.
    pub(super) fn relay_query(&mut self, text: &[u8], reason: Reason, lent: &Lent) {
        self.count_passed(reason, lent);
        let effect = match lent.settings.mode == super::Mode::Convert && !self.relay_only {
            true => self.before_relay(text, reason, lent),
            false => Effect::Unknown,
        };
        self.upstream.ledger.relay_query(self.client, effect);
        frontend::query(&mut self.to_upstream, text);
    }

    fn count_passed(&self, reason: Reason, lent: &Lent) {
        lent.counters().passed(reason);
        let (client, reason) = (self.client.0, reason.label());
        tracing::debug!(client, reason, "passed through");
    }

    /// Notes what the text may do, and returns that.
    fn before_relay(&mut self, text: &[u8], reason: Reason, lent: &Lent) -> Effect {
        let survey = self.survey(text, false);
        let effect = survey.effect;
        self.defines(text, &survey);
        self.affected(effect, survey.hazards.effect());
        let begins = matches!(effect, Effect::Transaction | Effect::Isolation)
            && self.upstream.status == Status::Idle;
        self.upstream.only_begun.clear();
        if begins && self.upstream.ledger.is_idle() && text.len() <= MAX_BEGIN && is_begin(text) {
            self.upstream.only_begun.extend_from_slice(text);
        }
        // A name outside of strings is among the words; strings are run by what may do anything.
        let runs = effect >= Effect::Unknown;
        let sees = survey.hazards.has(Hazards::SEES) || runs && mentions_statements(text);
        if sees || reason == Reason::Introspection {
            self.hide_statements(lent);
            // PREPARE keeps the text for an EXECUTE that does not mention them.
            let is_certain = self.upstream.knows_names() || mentions_statements(text);
            if is_certain && prepares(text) {
                self.memory.shows_statements();
            }
        } else if self.memory.may_show_statements() {
            self.hide_statements(lent);
        }
        effect
    }

    /// Notes what the text defines, if it does.
    fn defines(&mut self, text: &[u8], survey: &Survey) {
        let is_first = !self.upstream.is_dirty() && self.upstream.ledger.is_idle();
        if is_first && !self.upstream.definitions.is_empty() {
            self.upstream.definitions = Definitions::default();
        }
        if survey.effect >= Effect::LocalCatalog {
            let defined = self.definitions(text, survey);
            self.upstream.definitions.extend(defined);
        }
    }

    /// What the text defines.
    fn definitions(&mut self, text: &[u8], survey: &Survey) -> Definitions {
        // Else the body of a function has its backslashes otherwise.
        if !self.upstream.standard_strings {
            return Definitions::opaque();
        }
        let defined = Definitions::read(text);
        if !defined.runs {
            return defined;
        }
        // It may run what it has just defined.
        let is_known = self.upstream.knows_names();
        let names = self.upstream.names();
        let of = |one: &Arc<Definition>| match is_known {
            true => names.hazards_of(one),
            // What it mentions is found out with the names.
            false => one.hazards,
        };
        let does_anything = |one| of(one).has(Hazards::ANYTHING);
        let is_opaque = defined.list.iter().any(does_anything);
        if is_opaque || !is_known && !defined.list.is_empty() {
            self.memory.ran(Effect::Unknown);
        }
        if is_opaque {
            return Definitions::opaque();
        }
        match survey.hazards.has(Hazards::ANYTHING) {
            true => Definitions::opaque(),
            false => defined,
        }
    }

    /// What the text may do, with what is known of the names in it. `parsed` says that the client
    /// has it parsed, so that it may run again.
    fn survey(&mut self, text: &[u8], parsed: bool) -> Survey {
        let is_settled = self
            .memory
            .unsurveyed
            .is_settled(self.upstream.database.naming());
        let is_known = self.upstream.knows_names();
        let mut survey = match is_known {
            true => survey::survey(text, &**self.upstream.names()),
            // What it may do is found out when the names are known.
            false => self.memory.unsurveyed.survey(text),
        };
        survey.effect = self.memory.opened(&survey);
        self.prepares(&survey);
        if survey.executes {
            // What the client has parsed may be executed when more is prepared.
            let effect = match is_settled && !parsed {
                true => self.memory.prepared(),
                false => Effect::Unknown,
            };
            if effect >= Effect::Unknown {
                survey.hazards |= Hazards::ANYTHING;
            }
            survey.effect = survey.effect.max(effect);
        }
        if survey.names && (parsed || survey.again) {
            // These may be the names of a catalog that is no longer there.
            let is_known = is_known && self.upstream.unverified.is_none();
            self.memory.unsurveyed.keep(text, is_known);
        }
        if survey.names && !is_known {
            survey.hazards |= Hazards::SEES;
        }
        survey
    }

    /// Notes what EXECUTE may run because of a text with this survey.
    fn prepares(&mut self, survey: &Survey) {
        let does = match survey.effect {
            Effect::Unknown => Effect::Unknown,
            _ => survey.hazards.effect(),
        };
        match survey.again {
            true => self.memory.prepares(does),
            false => self.memory.ran(does),
        }
    }

    /// Finds out what the texts relayed while no names were known may have done, and what those may
    /// do that may run again, before anything is relied on.
    ///
    /// # Errors
    /// The names are still not known.
    pub(super) fn survey_late(&mut self) -> Result<(), Reason> {
        let number = self.upstream.database.naming();
        if self.memory.unsurveyed.is_settled(number) {
            return Ok(());
        }
        if !self.upstream.knows_names() {
            return Err(Reason::Unproven);
        }
        let names = Arc::clone(self.upstream.names());
        // What they showed by themselves was honoured at once.
        let [all, kept] = self.memory.unsurveyed.settle(number, &*names);
        self.memory.opened_late(all);
        self.memory.client_parsed(kept.effect(), false);
        self.memory.ran(all.effect());
        self.affected(all.effect(), all.effect());
        if kept.has(Hazards::SEES) {
            self.memory.shows_statements();
        }
        Ok(())
    }

    /// Notes what a statement may do, and how much of that its text did not show.
    pub(super) fn affected(&mut self, effect: Effect, unseen: Effect) {
        let lookups = self.upstream.mirror.lookups();
        if unseen > Effect::Transaction {
            self.memory.patience.lost(lookups);
        }
        if effect > Effect::Transaction {
            self.memory.idle_patience.lost(lookups);
        }
        self.upstream.affected(effect);
    }

    /// Drops our statements: the session's own are all that it may see.
    fn hide_statements(&mut self, lent: &Lent) {
        if self.upstream.mirror.is_on_server() && self.upstream.ledger.takes_closes() {
            self.upstream.mirror.flush();
            self.close_owed(lent);
        }
    }

    /// Drops our statements if the client's `bytes`, which begin with a message of a batch, may
    /// show them further on, where it is too late.
    pub(super) fn before_batch(&mut self, bytes: &[u8], lent: &Lent) {
        let looks = self.upstream.ledger.is_idle() && self.upstream.mirror.is_on_server();
        if looks && mentions_statements(bytes) {
            self.hide_statements(lent);
        }
    }

    /// A Query would have dropped the unnamed portal that a converted one has left. This is the
    /// client's first message of the protocol that could see it.
    fn drop_portal(&mut self) {
        if self.upstream.mirror.is_on_server() && self.upstream.ledger.takes_closes() {
            self.to_upstream
                .extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
            self.upstream.ledger.expect(self.client, Kind::Closes(1));
        }
    }

    /// Notes a client frame that is relayed without being looked at, because it is too large or
    /// malformed: if it is a statement, it may do anything.
    pub(super) fn relay_unseen(&mut self, tag: u8, reason: Reason, lent: &Lent) {
        if tag == frontend::QUERY {
            self.count_passed(reason, lent);
        }
        if tag == frontend::PARSE {
            self.memory.client_parsed(Effect::Unknown, false);
        }
        self.upstream.definitions = Definitions::opaque();
        self.memory.ran(Effect::Unknown);
        if tag == frontend::PARSE {
            self.memory.parsed = Definitions::opaque();
        }
        if matches!(tag, frontend::QUERY | frontend::PARSE) {
            self.upstream.affected(Effect::Unknown);
            self.memory.shows_statements();
            self.hide_statements(lent);
        }
        // Of these there is more than there should be.
        if matches!(tag, frontend::SYNC | frontend::FLUSH) {
            self.upstream.ledger.lose();
        }
        self.relay_other(tag, &[], lent);
    }

    /// Notes any other client frame that is about to be relayed.
    pub(super) fn relay_other(&mut self, tag: u8, body: &[u8], lent: &Lent) {
        if tag == frontend::PARSE
            && let Some((_, rest)) = frame::cstr(body)
            && let Some((text, _)) = frame::cstr(rest)
        {
            let survey = self.survey(text, true);
            let unseen = survey.hazards.effect();
            let is_tagged = match survey::tagged(text) {
                Some(Tagged::Code) => true,
                Some(Tagged::Catalog) => unseen < Effect::Unknown,
                None => false,
            };
            self.memory.client_parsed(survey.effect, is_tagged);
            if matches!(survey.effect, Effect::LocalCatalog | Effect::Catalog) {
                let defined = self.definitions(text, &survey);
                self.memory.parsed.extend(defined);
            }
            self.upstream.definitions.extend(self.memory.parsed.clone());
            self.upstream.affected(survey.effect);
            let sees = survey.hazards.has(Hazards::SEES);
            if mentions_statements(text) || sees && self.upstream.knows_names() {
                self.memory.shows_statements();
            } else if sees {
                self.hide_statements(lent);
            }
        }
        if self.memory.may_show_statements() {
            self.hide_statements(lent);
        }
        match tag {
            // It calls any function, as DO and CALL may.
            frontend::FUNCTION_CALL => {
                self.memory.ran(Effect::Unknown);
                self.upstream.affected(Effect::Unknown);
            }
            // What it runs was parsed before, nobody knows when.
            frontend::EXECUTE => self.upstream.definitions.extend(self.memory.parsed.clone()),
            // The server refuses it where it has to be answered, and takes it where it has not.
            frontend::SYNC | frontend::FLUSH if !body.is_empty() => self.upstream.ledger.lose(),
            // The server reads nothing behind it.
            frontend::TERMINATE => self.client_skip = usize::MAX,
            _ => {}
        }
        if tag != frontend::TERMINATE {
            self.upstream.only_begun.clear();
        }
        // COPY's own messages belong to either protocol.
        if !matches!(
            tag,
            frontend::TERMINATE | frontend::COPY_DATA | frontend::COPY_DONE | frontend::COPY_FAIL
        ) {
            if !self.memory.speaks_extended() {
                self.drop_portal();
            }
            self.memory.extended();
        }
        self.upstream.ledger.relay(self.client, tag);
    }

    /// Sends a Close for every statement owed one, ahead of what follows.
    pub(super) fn close_owed(&mut self, lent: &Lent) {
        if !self.upstream.mirror.owes() {
            return;
        }
        let owed = self.upstream.mirror.take_owed();
        for name in &owed {
            frontend::close_statement(&mut self.to_upstream, name.as_bytes());
        }
        self.upstream
            .ledger
            .expect(self.client, Kind::Closes(owed.len()));
        let count = owed.len() as u64;
        lent.counters().add(Counter::StatementsClosed, count);
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
    pub(super) fn relay_reply(&mut self, tag: u8, frame: &[u8], now: Millis, lent: &mut Lent) {
        let body = &frame[HEADER..];
        match tag {
            backend::READY_FOR_QUERY => {
                // Behind a Query: it has dropped the unnamed statement, which a lesson drops, too.
                let follows = self.relay_ready(body);
                if let Some(lesson) = follows.then(|| self.idle_lesson(now, lent)).flatten() {
                    self.turn = Turn::Learning(Box::new(lesson));
                    self.start_lesson(now, lent);
                }
            }
            backend::COPY_IN | backend::COPY_BOTH | backend::ERROR => {
                self.upstream.ledger.relayed(tag);
            }
            backend::COMMAND_COMPLETE => {
                self.upstream.ledger.relayed(tag);
                self.completed(body);
            }
            _ => {}
        }
    }

    /// Returns whether a Query has been answered.
    fn relay_ready(&mut self, body: &[u8]) -> bool {
        let settled = self.upstream.ledger.settle();
        if !matches!(settled, Some(Kind::Query(_))) {
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
        matches!(settled, Some(Kind::Query(_)))
    }

    /// The command tag says what really ran, whoever prepared it.
    fn completed(&mut self, body: &[u8]) {
        let Some(tag) = backend::command_tag(body) else {
            return;
        };
        match tag {
            b"DISCARD ALL" | b"DEALLOCATE ALL" => {
                self.upstream.mirror.forget_all();
                self.upstream.affected(Effect::Session);
            }
            // AND CHAIN: another transaction is open, and the connection is not idle.
            b"COMMIT" => {
                let effect = self.upstream.ledger.relayed_effect();
                let is_alone = effect.is_none_or(|effect| effect <= Effect::Transaction);
                self.upstream.committed(is_alone);
            }
            _ => match tag::effect(tag) {
                Effect::None => {}
                effect => self.tagged(tag, effect),
            },
        }
    }

    /// A statement with this command tag has completed, which tells of this effect.
    #[cold]
    fn tagged(&mut self, tag: &[u8], effect: Effect) {
        match (tag, self.upstream.ledger.relayed_effect()) {
            // The tag does not say that what was created is temporary; the text did.
            (_, Some(Effect::LocalCatalog)) => return,
            // What these do was found out from the text, unless that was parsed some time ago.
            (b"DO" | b"CALL", Some(_)) => return,
            _ => {}
        }
        if effect == Effect::Catalog {
            self.upstream.changes_roles |= tag::is_about_roles(tag);
            // What another session has prepared, nobody knows what.
            if tag == b"COMMIT PREPARED" {
                self.upstream.definitions = Definitions::opaque();
            }
        }
        self.memory.ran(effect);
        self.upstream.affected(effect);
    }
}

/// Whether the text may show the statements of the session, whatever else kept it from being
/// converted.
fn mentions_statements(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 2] = [b"pg_prepared_statement", b"pg_cursor"];
    let is = |at: usize, word: &[u8]| {
        let found = text.get(at..at + word.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    // `U&"…"` may spell any name.
    let mut starts = memchr::memchr2_iter(b'p', b'P', text);
    starts.any(|at| NAMES.iter().any(|name| is(at, name)))
        || memchr::memmem::find_iter(text, b"&\"").any(|at| at > 0 && is(at - 1, b"u"))
}

/// Whether the text may prepare a statement.
fn prepares(text: &[u8]) -> bool {
    const WORD: &[u8] = b"prepare ";
    let mut starts = memchr::memchr2_iter(b'p', b'P', text);
    starts.any(|at| {
        let found = text.get(at..at + WORD.len());
        let blank = |last: &u8| last.is_ascii_whitespace() || *last == b'/' || *last == b'-';
        found.is_some_and(|found| {
            found[..WORD.len() - 1].eq_ignore_ascii_case(&WORD[..WORD.len() - 1])
                && found.last().is_some_and(blank)
        })
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
        assert!(mentions_statements(b"select * from pg_cursors"));
        assert!(mentions_statements(
            br#"select * from u&"p\0067_prepared_statements""#
        ));
        assert!(mentions_statements(br#"TABLE U&"x""#));
        assert!(!mentions_statements(br#"select a&"x""#));
        assert!(!mentions_statements(b"select pg_prepared_xact()"));
        assert!(prepares(b"PREPARE\tp AS") && prepares(b"begin; prepare p as"));
        assert!(!prepares(b"table pg_prepared_statements"));
        assert!(!mentions_statements(b"pg_prepared"));
    }
}
