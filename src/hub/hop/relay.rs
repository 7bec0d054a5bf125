//! What is relayed untouched, and what that does to what is known of the server session.

use super::Hop;
use crate::client::Turn;
use crate::convert::Policy;
use crate::hub::{Decided, Task};
use crate::metrics::Counter;
use crate::reason::{Reason, Taint};
use crate::sql::effect::Effect;
use crate::sql::residue::{self, Residue};
use crate::standing::mentions_statements;
use crate::upstream::ledger::{Kind, Recipient};
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::frontend;
use crate::wire::requests;

impl Hop<'_> {
    /// Relays a Query with this text, and notes what it may do.
    pub(super) fn relay_query(&mut self, text: &[u8], reason: Reason) {
        self.counts_passed(text, reason);
        self.relay_counted(text, reason);
    }

    /// Relays a Query that is counted already.
    pub(super) fn relay_counted(&mut self, text: &[u8], reason: Reason) {
        debug_assert!(!self.client.is_loose, "outside of its transaction");
        let effect = self.notes_effect(text, reason);
        self.times_relayed(text, reason);
        self.upstream.ledger.relay_query(self.client.id, effect);
        frontend::query(&mut self.upstream.out, text);
    }

    /// Counts a Query that is not converted.
    #[inline]
    pub(super) fn counts_passed(&mut self, text: &[u8], reason: Reason) {
        self.count_passed(reason);
        if self.lent.settings.mode != Policy::Off {
            let database = self.upstream.standing.origin.database();
            self.lent.counters().passed_text(reason, text, database);
        }
    }

    /// Notes what a Query may do that is not converted; returns that.
    #[inline]
    pub(super) fn notes_effect(&mut self, text: &[u8], reason: Reason) -> Effect {
        match self.lent.settings.mode == Policy::Convert && !self.is_only_relayed() {
            true => self.before_relay(text, reason),
            false => self.relays_blindly(),
        }
    }

    /// What is relayed may change who may log in: at once, or when the transaction ends.
    #[cold]
    pub(super) fn changes_logins(&mut self) {
        self.client.changes_logins = true;
        self.lent.shapes.changes_logins();
        self.outbox.tasks.push_back(Task::DropParked);
    }

    /// What has changed who may log in is committed, if anything has.
    #[inline]
    pub(super) fn commits_logins(&mut self) {
        if self.client.changes_logins {
            self.changes_logins();
            self.client.changes_logins = false;
        }
    }

    /// Of a text that is not looked at. It may have been otherwise until now, and may be again for
    /// others: this session is not followed any more.
    fn relays_blindly(&mut self) -> Effect {
        if self.upstream.standing.mirror.is_on_server() && !self.client.relay_only {
            self.hide_statements();
        }
        let standing = &mut self.upstream.standing;
        standing.leaves(Residue::ANYTHING);
        standing.is_unfollowed = true;
        self.looks_for_taint(Taint::Unread, b"");
        Effect::Unknown
    }

    /// Whether nothing of this session may be converted, whatever is of others.
    #[inline]
    pub(super) const fn is_only_relayed(&self) -> bool {
        self.client.relay_only || self.upstream.standing.is_unfollowed
    }

    fn count_passed(&mut self, reason: Reason) {
        self.lent.counters().passed(reason);
        let id = self.client.id;
        self.outbox.decided(id, Decided::Passed(reason));
        let (client, reason) = (self.client.number, reason.label());
        tracing::debug!(client, reason, "passed through");
    }

    /// Notes what the text may do, and returns that.
    pub(super) fn before_relay(&mut self, text: &[u8], reason: Reason) -> Effect {
        let is_idle = self.upstream.ledger.is_idle();
        let met = self.lent.met.take();
        let about = (reason, is_idle);
        let was_late = self.upstream.standing.is_residue_late();
        let relayed = self
            .upstream
            .standing
            .relays_query(text, met.as_deref(), about);
        let taint = if was_late {
            Taint::Earlier
        } else {
            Taint::Text
        };
        self.looks_for_taint(taint, text);
        if relayed.shows {
            self.hide_statements();
        }
        let says = relayed.effect > Effect::Isolation;
        if relayed.logins || says && residue::is_about_logins(text, relayed.effect) {
            self.changes_logins();
        }
        relayed.effect
    }

    /// Drops our statements, so that the client can see none but its own.
    fn hide_statements(&mut self) {
        if self.upstream.standing.mirror.is_on_server() && self.upstream.ledger.takes_closes() {
            self.upstream.standing.mirror.flush();
            self.close_owed();
        }
    }

    /// Drops our statements if the client's `bytes`, which begin with a message of a batch, may
    /// show them further on, where it is too late.
    pub(super) fn before_batch(&mut self, bytes: &[u8]) {
        let looks = self.upstream.ledger.is_idle() && self.upstream.standing.mirror.is_on_server();
        if looks && mentions_statements(bytes) {
            self.hide_statements();
        }
    }

    /// A Query would have dropped what a converted one has left: the unnamed portal, and the
    /// unnamed statement of a BEGIN that it has carried, or the client's own if it ran elsewhere.
    /// This is the client's first message of the protocol that could see them. The portal of what
    /// has failed is there as that of a Query is. Behind a Query that has just been sent, there is
    /// nothing to drop, and a Close would stand in a copy that this may begin.
    fn drop_unnamed(&mut self) {
        let ledger = &self.upstream.ledger;
        let is_own = self.client.habits.speaks_extended();
        let may_be = is_own || self.upstream.standing.mirror.is_on_server();
        let is_there = may_be && !ledger.ends_with_query();
        if is_there && ledger.takes_closes() {
            let out = &mut self.upstream.out;
            out.extend_from_slice(frontend::CLOSE_UNNAMED_STATEMENT);
            let has_failed = self.upstream.standing.status == Status::Failed;
            if !has_failed {
                out.extend_from_slice(frontend::CLOSE_UNNAMED_PORTAL);
            }
            let closes = Kind::Closes(2 - usize::from(has_failed));
            self.upstream
                .ledger
                .expect(Recipient::Client(self.client.id), closes);
        }
    }

    /// Notes a client frame that is relayed without being looked at, because it is too large or
    /// malformed: if it is a statement, it may do anything.
    pub(super) fn relay_unseen(&mut self, tag: u8, reason: Reason) {
        if tag == frontend::QUERY {
            self.counts_query();
            self.count_passed(reason);
        }
        self.upstream.standing.relays_unread(tag);
        if matches!(tag, frontend::QUERY | frontend::PARSE) {
            self.hide_statements();
            self.changes_logins();
        }
        // Of these there is more than there should be.
        if matches!(tag, frontend::SYNC | frontend::FLUSH) {
            self.hide_statements();
            self.upstream.ledger.lose();
        }
        self.relay_other(tag, &[]);
    }

    /// Notes any other client frame that is about to be relayed.
    pub(super) fn relay_other(&mut self, tag: u8, body: &[u8]) {
        debug_assert!(!self.client.is_loose, "outside of its transaction");
        if tag == frontend::PASSWORD && !self.client.is_logged_in() {
            // It belongs to no protocol that a session speaks, and there is no session yet.
            return self.upstream.ledger.relay(self.client.id, tag);
        }
        let is_idle = self.upstream.ledger.is_idle();
        if tag == frontend::PARSE
            && let Some((name, rest)) = frame::cstr(body)
            && let Some((text, _)) = frame::cstr(rest)
        {
            let parse = requests::parse(body);
            let standing = &mut self.upstream.standing;
            let (shows, logins) = standing.relays_parse((name, text), parse.as_ref(), is_idle);
            if shows {
                self.hide_statements();
            }
            if logins {
                self.changes_logins();
            }
        } else if tag != frontend::TERMINATE {
            self.upstream.standing.relays_message(tag, body, is_idle);
        }
        if !is_taken_by_copy(tag) && self.upstream.standing.past.may_show_statements() {
            self.hide_statements();
        }
        if tag != frontend::TERMINATE {
            self.looks_for_taint(Taint::Protocol, b"");
        }
        match tag {
            frontend::PARSE => self.client.counts.parses += 1,
            frontend::BIND => self.client.counts.binds += 1,
            frontend::FUNCTION_CALL => {
                self.upstream.standing.relays_call();
                if !frontend::calls_large_object(body) {
                    self.changes_logins();
                }
            }
            frontend::EXECUTE => {
                self.counts_execute();
                self.upstream.standing.relays_execute();
                if self.upstream.standing.executes_logins() {
                    self.changes_logins();
                }
            }
            // The server refuses it where it has to be answered, and takes it where it has not.
            frontend::SYNC | frontend::FLUSH if !body.is_empty() => {
                self.hide_statements();
                self.upstream.ledger.lose();
            }
            // The server reads nothing behind it.
            frontend::TERMINATE => self.client.skip = usize::MAX,
            _ => {}
        }
        if tag != frontend::TERMINATE {
            self.upstream.standing.only_begun.clear();
        }
        // COPY's data say nothing else.
        if !frontend::is_of_copy(tag) {
            self.upstream.standing.follows_no_more();
        }
        // COPY's own messages belong to either protocol.
        if tag != frontend::TERMINATE && !frontend::is_of_copy(tag) {
            if !is_taken_by_copy(tag) && self.client.habits.sees_unnamed_first() {
                self.drop_unnamed();
            }
            self.client.habits.extended();
        }
        self.upstream.ledger.relay(self.client.id, tag);
    }

    /// Sends a Close for every statement owed one, ahead of what follows.
    pub(super) fn close_owed(&mut self) {
        if !self.upstream.standing.mirror.owes() {
            return;
        }
        let owed = self.upstream.standing.mirror.take_owed();
        for name in &owed {
            frontend::close_statement(&mut self.upstream.out, name.as_bytes());
        }
        self.upstream
            .ledger
            .expect(Recipient::Client(self.client.id), Kind::Closes(owed.len()));
        let count = owed.len() as u64;
        self.lent.counters().add(Counter::StatementsClosed, count);
        self.count_memory();
    }

    /// Notes what a reply that goes to the client as it is tells of the server session.
    pub(super) fn relay_reply(&mut self, tag: u8, frame: &[u8]) {
        let body = &frame[HEADER..];
        match tag {
            backend::READY_FOR_QUERY => {
                // Behind a Query that has run: it has dropped the unnamed statement, which a lesson
                // drops, too. One that was skipped leaves its Sync owed, so that nothing is asked.
                let follows = self.relay_ready(body);
                if follows {
                    self.learn_behind();
                }
            }
            backend::COPY_IN | backend::COPY_BOTH | backend::ERROR => {
                self.untimed();
                if tag == backend::ERROR && self.upstream.ledger.is_one_query() {
                    self.upstream.standing.failed(body);
                }
                self.upstream.ledger.relayed(tag);
            }
            backend::COMMAND_COMPLETE => {
                let rows = backend::rows_added(frame);
                self.upstream.standing.database.add_rows(rows);
                self.upstream.ledger.relayed(tag);
                self.completed(body);
            }
            _ => {}
        }
    }

    /// Returns whether a Query has been answered.
    fn relay_ready(&mut self, body: &[u8]) -> bool {
        let settled = self.upstream.ledger.settle();
        (self.client.waits_behind, self.client.is_tried) = (false, false);
        self.timed();
        self.timed_batch();
        if matches!(settled, Some(Kind::Query(_))) {
            self.timed_relayed();
        } else {
            let effect = self.upstream.standing.past.client_batch_ended();
            self.upstream.standing.affected(effect);
        }
        if let Some(status) = Status::read(body) {
            if status == Status::Idle {
                self.commits_logins();
            }
            if status != Status::Transaction {
                self.upstream.standing.only_begun.clear();
            }
            self.ready(status);
        } else {
            self.client.relay_only = true;
            self.is_lost();
        }
        debug_assert!(matches!(self.client.turn, Turn::Free));
        matches!(settled, Some(Kind::Query(_)))
    }

    /// Nothing of this session is converted any more.
    #[cold]
    fn is_lost(&self) {
        let client = self.client.number;
        tracing::info!(
            client,
            "its messages cannot be followed: it is only relayed from now on"
        );
    }

    /// Notes what the command tag says.
    fn completed(&mut self, body: &[u8]) {
        if let Some(tag) = backend::command_tag(body) {
            let relayed = self.upstream.ledger.relayed_effect();
            self.upstream.standing.completed(tag, relayed);
        }
    }
}

/// Whether the server takes a message of this type while it copies, and shows nothing by it
/// otherwise. A Close before one might stand in a copy, which it would end, and the connection: a
/// Query may copy several times, which is not known before the server has begun to.
const fn is_taken_by_copy(tag: u8) -> bool {
    matches!(
        tag,
        frontend::COPY_DATA
            | frontend::COPY_DONE
            | frontend::COPY_FAIL
            | frontend::SYNC
            | frontend::FLUSH
    )
}
