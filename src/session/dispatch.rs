//! What is done about a query once it is decided: executed, passed through, or asked about first.

use super::{Session, Turn};
use crate::convert::{self, Call, Circumstances, Decision, Lent, Subject};
use crate::metrics::Counter;
use crate::oracle::Lesson;
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::statement::{Millis, Recipe};
use crate::upstream::execution::{Execution, Recovery, Stage};
use crate::upstream::ledger::{Kind, Recipient};
use crate::wire::backend::Status;

impl Session {
    /// A client's Query with this text.
    pub(super) fn client_query(&mut self, text: &[u8], now: Millis, lent: &mut Lent) {
        lent.counters().add(Counter::Queries, 1);
        self.lessons = 0;
        self.dispatch(text, now, lent);
    }

    /// The query on hold, after a lesson.
    pub(super) fn resume(&mut self, now: Millis, lent: &mut Lent) {
        let text = std::mem::take(&mut self.query);
        self.dispatch(&text, now, lent);
    }

    fn dispatch(&mut self, text: &[u8], now: Millis, lent: &mut Lent) {
        match self.circumstances(now, lent).decide(text) {
            Decision::Execute(call, recipe) => {
                let temperature = if self.lessons == 0 {
                    Counter::Warm
                } else {
                    Counter::Cold
                };
                lent.counters().add(Counter::Converted, 1);
                lent.counters().add(temperature, 1);
                tracing::debug!(client = self.client.0, "converted");
                self.execute(&call, &recipe, text, lent);
            }
            Decision::Ask(subject) => {
                self.lessons += 1;
                self.query.clear();
                self.query.extend_from_slice(text);
                let about = match subject {
                    Subject::Watch => Vec::new(),
                    Subject::Statement(_) | Subject::Audit(..) => text.to_vec(),
                };
                self.turn = Turn::Learning(Box::new(Lesson::new(subject, about)));
                self.start_lesson(now, lent);
            }
            Decision::Pass(reason) => {
                self.habits.missed |= reason == Reason::DirtyTransaction;
                self.turn = Turn::Free;
                self.relay_query(text, reason, lent);
            }
        }
    }

    /// Begins a lesson that no query waits for, if there is something to ask.
    pub(super) fn learn_behind(&mut self, now: Millis, lent: &mut Lent) {
        if let Some((subject, text)) = self.circumstances(now, lent).idle_subject() {
            self.turn = Turn::Learning(Box::new(Lesson::behind(subject, text)));
            self.start_lesson(now, lent);
        }
    }

    fn circumstances<'a>(&'a mut self, now: Millis, lent: &'a mut Lent) -> Circumstances<'a> {
        Circumstances {
            is_idle: self.upstream.ledger.is_idle(),
            standing: &mut self.upstream.standing,
            habits: &mut self.habits,
            lent,
            now,
            salt: self.client.0,
            lessons: self.lessons,
            relay_only: self.relay_only,
            is_parting: self.parting,
        }
    }

    /// Sends Bind, Describe, Execute and Sync for `text`, which the worker's scanner has just
    /// scanned.
    fn execute(&mut self, call: &Call, recipe: &Recipe, text: &[u8], lent: &mut Lent) {
        let extended = self.habits.speaks_extended();
        convert::bind(call, recipe, text, extended, lent, &mut self.upstream.out);
        let standing = &self.upstream.standing;
        let recovery = match (standing.status, &*standing.only_begun) {
            (Status::Idle, _) => Recovery::Replay,
            (_, []) => Recovery::Translate,
            _ => Recovery::Reopen,
        };
        let mut kept = lent.texts.take();
        kept.extend_from_slice(text);
        let execution = Execution {
            text: kept,
            key: call.key,
            stage: Stage::Binding,
            recovery,
            hold_description: call.hold_description,
            effect: call.effect,
            parsing: call.renewed.is_some(),
            held: None,
        };
        let to = Recipient::Client(self.client);
        self.upstream.ledger.expect(to, Kind::Execution(execution));
        self.turn = Turn::Executing;
    }

    /// A converted query is answered.
    #[inline]
    pub(super) fn executed(
        &mut self,
        execution: Execution,
        status: Option<Status>,
        lent: &mut Lent,
    ) {
        // These hold nothing to be dropped, which spares the hot path a look at those that do. It
        // is free already if the client has finished.
        if matches!(self.turn, Turn::Executing | Turn::Free) {
            std::mem::forget(std::mem::replace(&mut self.turn, Turn::Free));
        } else {
            self.end_turn();
        }
        self.upstream.standing.only_begun.clear();
        if execution.effect != Effect::None {
            self.executed_something(execution.effect);
        }
        if let Some(status) = status {
            self.upstream.ready(status);
        }
        lent.texts.give_back(execution.text);
    }

    /// What was executed may have had this effect: few statements do.
    #[cold]
    #[inline(never)]
    fn executed_something(&mut self, effect: Effect) {
        self.upstream.standing.ran(effect);
    }

    #[cold]
    fn end_turn(&mut self) {
        self.turn = Turn::Free;
    }

    /// Nothing of the converted query has run: send the original, which gives the exact answer.
    pub(super) fn replay(&mut self, execution: Execution, lent: &Lent) {
        lent.counters().add(Counter::Replayed, 1);
        self.query = execution.text;
        let has_begun = !self.upstream.standing.only_begun.is_empty();
        if execution.recovery == Recovery::Reopen && has_begun {
            self.reopen();
        } else {
            self.send_original();
        }
    }
}
