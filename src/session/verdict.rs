//! What the oracle's answers lead to: trust, a narrower form, or the end.

use super::audit::same_plan;
use super::learn::{Candidate, Lesson, Next, Step};
use super::lists::{self, Lengths};
use super::oracle;
use super::proof::Exposure;
use super::{Session, Worker, proof, rows};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::{Dialect, Scan, oid, rewrite};
use crate::statement::common::Common;
use crate::statement::doubt;
use crate::statement::guard::Guard;
use crate::statement::{Instant, Plans, Recipe, Terms, Verdict};
use crate::wire::frontend;
use std::sync::Arc;

/// Demotions tried for one shape before it is given up: one round trip each.
const MAX_ROUNDS: u8 = 16;

/// Values stored by a statement that is not worth converting if each execution is planned for
/// them.
///
/// Such rows are no arrays, so there may be a statement for each number of them. Measured, server
/// CPU of such an INSERT with four values a row as a multiple of the simple protocol's: 0.99 for
/// one row, 0.92 for 4 to 32, 0.94 for 60, which is less than the conversion costs.
const MANY_STORED: usize = 12;

/// Bytes of common values kept for one statement: those of a column of integers with the most
/// values that a server counts, 10,000.
const MAX_COMMON_BYTES: usize = 256 * 1024;

impl Session {
    /// Both texts were parsed and described: they must agree, and the inferred types must be
    /// allowed.
    pub(super) fn described(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let [original, rewritten] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if rewritten.error.is_some() {
            self.upstream.cache.revoke(candidate.statement.key());
        }
        if !original.is_good() {
            return Err(self.give_up(&candidate));
        }
        if !rewritten.is_good() {
            let state = rewritten.sqlstate();
            return match rewritten.parameter_named() {
                Some(argument) => self.demote(lesson, &candidate, &[argument], now, worker),
                None => {
                    let refused = (Reason::Refused, &*state);
                    self.refuse(lesson, &candidate, refused, now, worker)
                }
            };
        }
        worker.counters().add(Counter::StatementsPrepared, 1);
        if original.description != rewritten.description {
            let refused = (Reason::DifferentResult, "");
            return self.refuse(lesson, &candidate, refused, now, worker);
        }
        let types = rewritten.types.clone().unwrap_or_default();
        if types.len() != candidate.statement.oids().len() {
            return Err(self.decline(&candidate, Reason::Refused, "", worker));
        }
        let recipe = Arc::clone(candidate.statement.recipe());
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        worker.scan_again(&lesson.text, self.upstream.dialect, &recipe)?;
        let (text, scan) = (&lesson.text, &worker.scan);
        let forbidden = forbidden(&types, (scan, eligible), self.upstream.dialect);
        if !forbidden.is_empty() {
            return self.demote(lesson, &candidate, &forbidden, now, worker);
        }
        let name = candidate.name.as_bytes();
        let execute = oracle::explain_execute(name, text, scan, eligible, None);
        let catalog = oracle::catalog_query(&types, eligible);
        self.careful_question(&oracle::explain(text, scan));
        self.careful_question(&execute);
        let generic = candidate.statement.plans() == Plans::Generic;
        if generic {
            self.careful_question(&oracle::explain_generic(&execute));
        }
        let lengths = lists::asks_for_lengths(&candidate.statement);
        if lengths {
            for question in lists::length_questions(name, text, scan, eligible) {
                self.careful_question(&question);
            }
        }
        let others = lists::types_question(&types, (scan, &recipe), eligible);
        for question in others.iter().chain(&catalog) {
            self.question(|out| frontend::query(out, question));
        }
        let terms = Terms {
            types: types.into(),
            elements: candidate.terms.elements.clone(),
            effect: candidate.terms.effect,
            ..Terms::default()
        };
        lesson.candidate = Some(Candidate {
            terms: Arc::new(terms),
            verified: now,
            ..candidate
        });
        let asked = [generic, others.is_some(), catalog.is_some()];
        let questions = 2 + asked.iter().filter(|asked| **asked).count();
        let lengths = usize::from(lengths) * lists::LENGTH_QUESTIONS;
        Ok(lesson.ask(Step::Explain, questions + lengths))
    }

    /// The plans are here: the custom plan must be the original's to the letter, the generic plan
    /// the same but for its constants.
    pub(super) fn explained(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let mut candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let by_values = candidate.statement.plans() == Plans::Custom;
        let mut answers = std::mem::take(&mut lesson.answers).into_iter();
        let (Some(original), Some(custom)) = (answers.next(), answers.next()) else {
            return Err(Reason::OracleFailed);
        };
        let generic = if by_values { None } else { answers.next() };
        let lengths = match lists::asks_for_lengths(&candidate.statement) {
            true => Lengths::read(&mut answers),
            false => None,
        };
        if original.overflowed || custom.overflowed {
            return Err(self.decline(&candidate, Reason::DifferentPlan, "", worker));
        }
        if !original.is_good() {
            return Err(self.give_up(&candidate));
        }
        if !custom.is_good() {
            return self.unplanned(lesson, &candidate, &custom, now, worker);
        }
        let original = original.plan();
        if !proof::is_one_tree(&original) {
            return Err(self.decline(&candidate, Reason::RewriteRules, "", worker));
        }
        if candidate.statement.recipe().shape().has_lists() {
            let others = answers.next();
            if others.is_none_or(|answer| lists::may_be_others(&answer)) {
                return self.refuse(lesson, &candidate, (Reason::Refused, ""), now, worker);
            }
        }
        let mut immutable = true;
        if let Some(catalog) = answers.next() {
            let found = match oracle::read_catalog(&catalog) {
                Ok(found) => found,
                Err(reason) => return Err(self.decline(&candidate, reason, "", worker)),
            };
            immutable = found.immutable;
            if let Some(eligible) = candidate.statement.recipe().eligible() {
                candidate.terms = Arc::new(Terms {
                    stored: found.stored(eligible),
                    ..Terms::clone(&candidate.terms)
                });
                lesson.candidate = Some(candidate.clone());
            }
            if !found.domains.is_empty() {
                let demoted = positions(&candidate.terms.types, |o| found.domains.contains(&o));
                return self.demote(lesson, &candidate, &demoted, now, worker);
            }
        }
        if original != rows::as_values(&candidate.statement, custom.plan()) {
            let refused = (Reason::DifferentPlan, "");
            return self.refuse(lesson, &candidate, refused, now, worker);
        }
        match generic {
            None => Ok(self.trust(&candidate, Vec::new(), Vec::new(), worker)),
            Some(generic) if immutable && generic.is_good() => {
                let generic = rows::as_values(&candidate.statement, generic.plan());
                self.generic_explained(lesson, (&original, &generic), lengths, now, worker)
            }
            Some(_) => self.specify(lesson, &candidate, now, worker),
        }
    }

    /// The custom plan is the original's: the generic plan must be the same but for its constants.
    fn generic_explained(
        &mut self,
        lesson: &mut Lesson,
        (original, generic): (&[String], &[String]),
        lengths: Option<Lengths>,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let types = &candidate.terms.kinds();
        let guards = same_plan(&candidate.statement, &candidate.terms, original, generic);
        let Some(guards) = guards else {
            return self.specify(lesson, &candidate, now, worker);
        };
        let exposure = Exposure::of(generic, types);
        let recipe = candidate.statement.recipe();
        worker.scan_again(&lesson.text, self.upstream.dialect, recipe)?;
        let (plan, scan) = ((&exposure, generic), &worker.scan);
        let Some(guards) = lists::guarded(guards, plan, &candidate, lengths.as_ref(), scan) else {
            return self.specify(lesson, &candidate, now, worker);
        };
        if exposure.is_none() {
            return Ok(self.trust(&candidate, guards, Vec::new(), worker));
        }
        let keys = exposure.keys_question();
        lesson.exposure = Some((exposure, guards));
        let Some(keys) = keys else {
            return self.ask_statistics(lesson, now, worker);
        };
        self.question(|out| frontend::query(out, &keys));
        Ok(lesson.ask(Step::Keys, 1))
    }

    /// The unique keys of the generic plan's tables are known: if it finds one row at most, it may
    /// stand for the plans of other values.
    pub(super) fn keys_known(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let (exposure, guards) = lesson.exposure.as_mut().ok_or(Reason::OracleFailed)?;
        let keys = lesson.answers.first().filter(|answer| answer.is_good());
        if !keys.is_some_and(|keys| exposure.is_single(keys)) {
            return self.ask_statistics(lesson, now, worker);
        }
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let guards = std::mem::take(guards);
        Ok(self.trust(&candidate, guards, Vec::new(), worker))
    }

    fn ask_statistics(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let (exposure, _) = lesson.exposure.as_ref().ok_or(Reason::OracleFailed)?;
        let Some(question) = exposure.statistics_question() else {
            let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
            return self.specify(lesson, &candidate, now, worker);
        };
        self.question(|out| frontend::query(out, &question));
        Ok(lesson.ask(Step::Statistics, 1))
    }

    /// How the columns are estimated is known: the generic plan may stand for the plans of values
    /// that are not common, if this query's are not, about which alone something was proven.
    pub(super) fn statistics_known(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let (exposure, guards) = lesson.exposure.take().ok_or(Reason::OracleFailed)?;
        let statistics = lesson.answer(0).ok();
        let common = statistics.and_then(|answer| exposure.common(answer));
        let is_small = |common: &Vec<Common>| {
            common.iter().map(Common::bytes).sum::<usize>() <= MAX_COMMON_BYTES
        };
        let Some(common) = common.filter(is_small) else {
            return self.specify(lesson, &candidate, now, worker);
        };
        let terms = Terms {
            common: common.clone().into(),
            ..Terms::default()
        };
        let recipe = candidate.statement.recipe();
        worker.scan_again(&lesson.text, self.upstream.dialect, recipe)?;
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        if !terms.admit(eligible, &lesson.text, &worker.scan) {
            return self.specify(lesson, &candidate, now, worker);
        }
        Ok(self.trust(&candidate, guards, common, worker))
    }

    fn trust(
        &mut self,
        candidate: &Candidate,
        guards: Vec<Guard>,
        common: Vec<Common>,
        worker: &Worker,
    ) -> Next {
        worker.counters().add(Counter::OracleAccepted, 1);
        tracing::debug!(
            plans = ?candidate.statement.plans(),
            shape = candidate.statement.recipe().shape().text_for_display(),
            "trusted"
        );
        let kinds = candidate.terms.kinds();
        let lists = candidate.statement.recipe().list_arguments();
        let inferred = candidate.statement.oids().iter().zip(&kinds);
        let fallible = inferred
            .enumerate()
            .flat_map(|(index, (declared, inferred))| {
                let sure = rewrite::is_declared_sure(*declared)
                    || doubt::takes_all(*inferred)
                    || lists.contains(&index) && doubt::elements_take_all(*inferred);
                // Two elements of one list may be in doubt.
                let times = if lists.contains(&index) { 2 } else { 1 };
                std::iter::repeat_n(index, if sure { 0 } else { times })
            });
        let terms = Arc::new(Terms {
            guards: guards.into(),
            common: common.into(),
            fallible: fallible.collect(),
            ..Terms::clone(&candidate.terms)
        });
        candidate.statement.settle(Verdict::Trusted {
            epoch: candidate.epoch,
            at: candidate.verified,
            terms: Arc::clone(&terms),
        });
        let key = candidate.statement.key();
        self.upstream.cache.settle(key, candidate.verified, terms);
        Next::Learned
    }

    /// A generic plan may not stand for the plans of all values: tries with fewer arguments, or
    /// else with custom plans.
    fn specify(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        if candidate.statement.recipe().shape().has_rows() {
            return self.take_apart(lesson, candidate, now, worker);
        }
        let eligible = candidate.statement.recipe().eligible();
        let stored = eligible.map_or(0, |eligible| eligible.columns.iter().flatten().count());
        if stored >= MANY_STORED {
            return Err(self.decline(candidate, Reason::Bulk, "", worker));
        }
        if let Some(narrow) = candidate.statement.recipe().narrowed() {
            return self.narrow(lesson, candidate, narrow, now, worker);
        }
        self.upstream.cache.remove(candidate.statement.key());
        let epoch = candidate.epoch;
        candidate.statement.settle(Verdict::Specific { epoch });
        self.teach(lesson, now, worker)
    }

    /// A trusted statement was parsed on this connection: it must infer the types it was trusted
    /// with.
    pub(super) fn parsed(&mut self, lesson: &Lesson, worker: &Worker) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let key = candidate.statement.key();
        let [answer, ..] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !answer.is_good() {
            self.upstream.cache.revoke(key);
            candidate.statement.settle(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        worker.counters().add(Counter::StatementsPrepared, 1);
        if answer.types.as_deref() != Some(&candidate.terms.types) {
            // The catalog has changed unseen: everything about this statement is asked anew.
            self.upstream.cache.remove(key);
            candidate.statement.settle(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        let Candidate {
            verified, terms, ..
        } = candidate;
        self.upstream.cache.settle(key, verified, terms);
        Ok(Next::Learned)
    }

    /// Keeps the arguments at these indexes inline from now on, and tries again.
    fn demote(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: &[usize],
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let recipe = candidate.statement.recipe();
        let Some(eligible) = recipe.eligible() else {
            return Err(Reason::Unstable);
        };
        let lists = recipe.list_arguments();
        if lists.iter().any(|list| arguments.contains(list)) {
            return self.refuse(lesson, candidate, (Reason::Refused, ""), now, worker);
        }
        let narrow = without(eligible, arguments);
        if narrow == eligible.arguments {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        worker.counters().add(Counter::Demotions, 1);
        worker.table.demote(recipe, narrow);
        self.try_again(lesson, candidate, now, worker)
    }

    fn narrow(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: Vec<bool>,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let recipe: &Recipe = candidate.statement.recipe();
        worker.table.narrow(recipe, arguments);
        self.try_again(lesson, candidate, now, worker)
    }

    /// Another recipe has taken the place of the candidate's.
    pub(super) fn try_again(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        self.upstream.cache.remove(candidate.statement.key());
        candidate.statement.settle(Verdict::Unasked);
        lesson.rounds += 1;
        if lesson.rounds > MAX_ROUNDS {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        self.teach(lesson, now, worker)
    }

    pub(super) fn decline(
        &mut self,
        candidate: &Candidate,
        reason: Reason,
        detail: &str,
        worker: &Worker,
    ) -> Reason {
        let statement = &candidate.statement;
        self.upstream.cache.remove(statement.key());
        statement.settle(Verdict::Declined {
            reason,
            epoch: candidate.epoch,
        });
        worker.counters().add(Counter::OracleDeclined, 1);
        tracing::debug!(
            reason = reason.label(),
            sqlstate = detail,
            shape = statement.recipe().shape().text_for_display(),
            "declined"
        );
        reason
    }

    /// The questions themselves failed: nothing is known. After a few times that counts as an
    /// answer.
    pub(super) fn give_up(&mut self, candidate: &Candidate) -> Reason {
        let statement = &candidate.statement;
        self.upstream.cache.remove(statement.key());
        let reason = Reason::OracleFailed;
        statement.settle(if statement.count_failure() {
            Verdict::Declined {
                reason,
                epoch: candidate.epoch,
            }
        } else {
            Verdict::Unasked
        });
        reason
    }
}

/// The arguments that must not be bound to parameters of the inferred types.
fn forbidden(types: &[u32], (scan, eligible): (&Scan, &Eligible), server: Dialect) -> Vec<usize> {
    let mut forbidden = oracle::forbidden(types, eligible);
    forbidden.extend(lists::misfits(types, scan, eligible));
    if server.server_major < 14 {
        // Of each that is empty there is a notice, and 13 does not say of which (H-32).
        forbidden.extend(positions(types, |oid| oid == oid::TSQUERY));
    }
    forbidden
}

/// The indexes at which `wanted` holds.
fn positions(types: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<usize> {
    let matching = types.iter().enumerate().filter(|(_, oid)| wanted(**oid));
    matching.map(|(index, _)| index).collect()
}

/// The arguments of `eligible` without those at the given indexes among them.
fn without(eligible: &Eligible, indexes: &[usize]) -> Vec<bool> {
    let mut argument = 0;
    let keep = eligible.arguments.iter().map(|lifted| {
        let keep = *lifted && !indexes.contains(&argument);
        argument += usize::from(*lifted);
        keep
    });
    keep.collect()
}
