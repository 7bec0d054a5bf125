//! What is done about a query once it is decided: executed, passed through, or asked about first.

use super::Hop;
use crate::client::{Decided, Turn};
use crate::convert::{self, Call, Circumstances, Decision, Elsewhere, Missed, Policy};
use crate::hub;
use crate::metrics::Counter;
use crate::oracle::Lesson;
use crate::reason::{Reason, Taint};
use crate::sql::effect::Effect;
use crate::statement::Recipe;
use crate::upstream::execution::{Execution, Recovery, Stage};
use crate::upstream::ledger::{Kind, Recipient};
use crate::wire::backend::Status;

impl Hop<'_> {
    /// A client's Query with this text.
    pub(super) fn client_query(&mut self, text: &[u8]) {
        self.meets_query();
        if self.client.is_pooled && self.learns_before(text) {
            return;
        }
        // What has begun so is ended so.
        if self.lent.settings.looses || self.client.is_loose {
            return self.query_loosely(text);
        }
        let decided = self.circumstances().decide(text);
        match &decided {
            Ok(Decision::Execute(call, _)) if call.travels && self.may_depart(call, text) => {
                return self.depart(decided, text);
            }
            Ok(Decision::Visit(_)) if self.may_leave(text) => return self.depart(decided, text),
            _ => {}
        }
        self.act(decided, text);
        // Whatever is relayed later is another text.
        self.lent.met = None;
    }

    /// The query on hold, after a lesson.
    pub(super) fn resume(&mut self) {
        let text = std::mem::take(&mut self.client.query);
        let decided = self.circumstances().decide(&text);
        self.at_home(decided, &text);
        self.lent.met = None;
    }

    /// Does what is decided about a query, on the client's own connection.
    pub(super) fn at_home(&mut self, decided: Decided, text: &[u8]) {
        self.act(decided, text);
    }

    /// The same, where it is worth not to move what is decided.
    #[inline(always)]
    fn act(&mut self, mut decided: Decided, text: &[u8]) {
        if self.visits.is_busy() {
            return self.bar(Some(decided), text);
        }
        self.client.at_home = self.now;
        if self.upstream.begin_due.is_some() {
            let Some(now) = self.at_beginning(decided, text) else {
                return;
            };
            decided = now;
        }
        match decided {
            Ok(Decision::Execute(call, recipe)) => {
                self.count_converted();
                self.execute(&call, &recipe, text);
            }
            Ok(Decision::Series(series)) => {
                self.count_converted();
                self.execute_series(*series, text);
            }
            Ok(Decision::Ask(subject, about)) => {
                self.client.lessons += 1;
                self.client.query.clear();
                self.client.query.extend_from_slice(text);
                self.learn(Lesson::new(subject, text[about].to_vec()));
            }
            Ok(Decision::Visit(elsewhere)) => self.passes_at_home(*elsewhere, text),
            Err(reason)
                if self.defers(text, reason)
                    || reason == Reason::NotPreparable && self.begins_with(text, reason)
                    || self.discards(text, reason) => {}
            Err(reason) => {
                let standing = &self.upstream.standing;
                let has_changed = standing.has_moved() || standing.has_altered();
                let is_lost = reason == Reason::Unproven && has_changed;
                self.client.habits.missed |= is_lost || reason == Reason::DirtyTransaction;
                let is_miss = reason == Reason::DirtyTransaction;
                let habits = &mut self.client.habits;
                habits.misses = habits.misses.saturating_add(is_miss.into());
                self.client.turn = Turn::Free;
                self.client.is_tried = reason == Reason::Trial;
                self.relay_query(text, reason);
            }
        }
    }

    /// A read that is not prepared at home has found no host: the original goes through.
    #[cold]
    #[inline(never)]
    fn passes_at_home(&mut self, elsewhere: Elsewhere, text: &[u8]) {
        self.lent.met = Some(elsewhere.recipe);
        self.at_home(Err(elsewhere.reason), text);
    }

    #[inline]
    pub(super) fn count_converted(&mut self) {
        let temperature = match self.client.lessons {
            0 => Counter::Warm,
            _ => Counter::Cold,
        };
        self.lent.counters().add(Counter::Converted, 1);
        self.client.counts.converted += 1;
        self.lent.counters().add(temperature, 1);
        tracing::debug!(client = self.client.number, "converted");
        self.outbox.decided(self.client.id, hub::Decided::Converted);
    }

    /// Begins a lesson that no query waits for, if there is something to ask. Not while the server
    /// has only a part of the client's last message, as of a COPY that has failed: what is asked
    /// would be read as the rest of it, and that as messages.
    pub(super) fn learn_behind(&mut self) {
        if self.client.skip > 0 {
            return;
        }
        if let Some((subject, text)) = self.circumstances().idle_subject() {
            self.client.lessons = 0;
            self.learn(Lesson::behind(subject, text));
        }
    }

    pub(super) fn circumstances(&mut self) -> Circumstances<'_> {
        // What is only observed is counted for what would be done.
        let relay_only = match self.lent.settings.mode == Policy::Observe {
            true => self.client.relay_only,
            false => self.is_only_relayed(),
        };
        Circumstances {
            is_idle: self.upstream.ledger.is_idle(),
            standing: &mut self.upstream.standing,
            habits: &mut self.client.habits,
            lent: self.lent,
            now: self.now,
            clock: self.clock,
            lessons: self.client.lessons,
            relay_only,
            is_parting: self.client.is_parting,
        }
    }

    /// Sends Bind, Describe, Execute and Sync for `text`, which the worker's scanner has just
    /// scanned.
    pub(super) fn execute(&mut self, call: &Call, recipe: &Recipe, text: &[u8]) {
        debug_assert!(!self.client.is_loose, "outside of its transaction");
        let stage = self.carry_begin();
        let missed = self.missed(stage);
        let upstream = &mut *self.upstream;
        let mirror = &mut upstream.standing.mirror;
        let parsing = convert::renew(call, mirror, self.lent, &mut upstream.out);
        self.client.counts.prepared += u64::from(parsing);
        convert::bind(call, recipe, text, missed, self.lent, &mut upstream.out);
        self.upstream.standing.leaves(call.residue);
        if call.effect >= Effect::Unknown {
            self.upstream.standing.runs_unseen(text);
        }
        if call.residue.is_anything() {
            self.looks_for_taint(Taint::Text, text);
        }
        let recovery = self.recovery();
        let mut kept = self.lent.texts.take();
        kept.extend_from_slice(text);
        let execution = Execution {
            text: kept,
            key: call.key,
            stage,
            recovery,
            hold_description: call.hold_description,
            effect: call.effect,
            parsing,
            chain: None,
            held: None,
        };
        self.executes(execution);
    }

    /// What would be missed behind what is to be executed, a BEGIN in front of which is at this
    /// stage.
    #[inline]
    pub(super) fn missed(&self, stage: Stage) -> Missed {
        Missed {
            extended: self.client.habits.speaks_extended(),
            in_block: stage == Stage::Beginning || self.upstream.standing.status != Status::Idle,
        }
    }

    /// What an error leads to that comes before anything of the query has run.
    #[inline]
    pub(super) fn recovery(&self) -> Recovery {
        let standing = &self.upstream.standing;
        match (standing.status, &*standing.only_begun) {
            (Status::Idle, _) => Recovery::Replay,
            (_, []) => Recovery::Translate,
            _ => Recovery::Reopen,
        }
    }

    /// What is executed is on its way.
    #[inline]
    pub(super) fn executes(&mut self, execution: Execution) {
        let to = Recipient::Client(self.client.id);
        self.upstream.ledger.expect(to, Kind::Execution(execution));
        self.client.turn = Turn::Executing;
        self.client.sent_at = self.clock;
    }

    /// A converted query is answered.
    #[inline]
    pub(super) fn executed(&mut self, text: Vec<u8>, effect: Effect, status: Option<Status>) {
        // These hold nothing to be dropped, which spares the hot path a look at those that do. It
        // is free already if the client has finished.
        if !self.ends_trail() {
            // Those behind it are under way.
        } else if matches!(self.client.turn, Turn::Executing | Turn::Free) {
            std::mem::forget(std::mem::replace(&mut self.client.turn, Turn::Free));
        } else {
            self.end_turn();
        }
        self.timed_execution(&text);
        self.upstream.standing.only_begun.clear();
        if effect != Effect::None {
            self.executed_something(effect);
        }
        if let Some(status) = status {
            self.ready(status);
        }
        self.lent.texts.give_back(text);
    }

    /// What was executed may have had this effect: few statements do.
    #[cold]
    #[inline(never)]
    fn executed_something(&mut self, effect: Effect) {
        if self.upstream.standing.ran_logins(effect) {
            self.changes_logins();
        }
        self.upstream.standing.ran(effect);
    }

    #[cold]
    fn end_turn(&mut self) {
        self.client.turn = Turn::Free;
    }

    /// Nothing of the converted query has run: send the original, which gives the exact answer.
    pub(super) fn replay(&mut self, execution: Execution) {
        self.lent.counters().add(Counter::Replayed, 1);
        if execution.recovery == Recovery::Again {
            return self.sends_again(&execution.text);
        }
        self.client.query = execution.text;
        let has_begun = !self.upstream.standing.only_begun.is_empty();
        match execution.recovery {
            Recovery::Reopen if has_begun => self.reopen(false),
            Recovery::ReopenCancelled => self.reopen(true),
            _ => self.send_original(),
        }
    }
}
