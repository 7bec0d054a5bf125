//! What the oracle's answers lead to: trust, a narrower form, or the end.

use super::lesson::{Candidate, Lesson, Next, Step};
use super::lists;
use super::oracle;
use super::planned::Proven;
use super::{Session, catalog};
use crate::convert::Lent;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::{Dialect, Scan, oid, rewrite};
use crate::statement::validity;
use crate::statement::{Millis, Plans, Recipe, Terms, Verdict};
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

impl Session {
    /// Both texts were parsed and described: they must agree, and the inferred types must be
    /// allowed.
    pub(super) fn described(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let [original, rewritten] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if rewritten.error.is_some() {
            self.upstream
                .standing
                .mirror
                .revoke(candidate.statement.key());
        }
        if !original.is_good() {
            return Err(self.give_up(&candidate));
        }
        if !rewritten.is_good() {
            let state = rewritten.sqlstate();
            return match rewritten.parameter_named() {
                Some(argument) => self.demote(lesson, &candidate, &[argument], now, lent),
                None => {
                    let refused = (Reason::Refused, &*state);
                    self.refuse(lesson, &candidate, refused, now, lent)
                }
            };
        }
        lent.counters().add(Counter::StatementsPrepared, 1);
        if original.description != rewritten.description {
            let refused = (Reason::DifferentResult, "");
            return self.refuse(lesson, &candidate, refused, now, lent);
        }
        // Said once, when the statement is parsed, and not whenever it is executed (H-32).
        if rewritten.notices {
            return Err(self.decline(&candidate, Reason::Refused, "notice", lent));
        }
        let types = rewritten.types.clone().unwrap_or_default();
        if types.len() != candidate.statement.oids().len() {
            return Err(self.decline(&candidate, Reason::Refused, "", lent));
        }
        let recipe = Arc::clone(candidate.statement.recipe());
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        lent.scan_again(&lesson.text, self.upstream.standing.dialect, &recipe)?;
        let (text, scan) = (&lesson.text, &lent.scan);
        let forbidden = forbidden(&types, (scan, eligible), self.upstream.standing.dialect);
        if !forbidden.is_empty() {
            return self.demote(lesson, &candidate, &forbidden, now, lent);
        }
        let questions = self.ask_plans(&candidate, &types, text, scan);
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
        Ok(lesson.ask(Step::Explain, questions))
    }

    /// Asks for the plans of the candidate, whose arguments have these types, and for what only the
    /// catalog knows. Returns how many questions that takes.
    fn ask_plans(
        &mut self,
        candidate: &Candidate,
        types: &[u32],
        text: &[u8],
        scan: &Scan,
    ) -> usize {
        let recipe = candidate.statement.recipe();
        let Some(eligible) = recipe.eligible() else {
            return 0;
        };
        let name = candidate.name.as_bytes();
        let execute = oracle::explain_execute(name, text, scan, eligible, None);
        let catalog = catalog::of_statement(types, eligible);
        let rights = self.upstream.standing.settings.has_indirect_rights;
        let rights = rights.then(|| catalog::indirect_rights(text));
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
        let others = lists::types_question(types, (scan, recipe), eligible);
        for question in others.iter().chain(&rights).chain(&catalog) {
            self.careful_question(question);
        }
        let asked = [
            others.is_some(),
            rights.is_some(),
            catalog.is_some(),
            generic,
        ];
        let questions = 2 + asked.iter().filter(|asked| **asked).count();
        let lengths = usize::from(lengths) * lists::LENGTH_QUESTIONS;
        questions + lengths
    }

    pub(super) fn trust(&mut self, candidate: &Candidate, proven: Proven, lent: &Lent) -> Next {
        lent.counters().add(Counter::OracleAccepted, 1);
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
                    || validity::takes_all(*inferred)
                    || lists.contains(&index) && validity::elements_take_all(*inferred);
                // Two elements of one list may be in doubt.
                let times = if lists.contains(&index) { 2 } else { 1 };
                std::iter::repeat_n(index, if sure { 0 } else { times })
            });
        let terms = Arc::new(Terms {
            guards: proven.guards.into(),
            common: proven.common.into(),
            one_row: proven.one_row,
            fallible: fallible.collect(),
            ..Terms::clone(&candidate.terms)
        });
        candidate.statement.record(Verdict::Trusted {
            epoch: candidate.epoch,
            at: candidate.verified,
            terms: Arc::clone(&terms),
        });
        let key = candidate.statement.key();
        self.upstream
            .standing
            .mirror
            .confirm(key, candidate.verified, terms);
        Next::Learned
    }

    /// A generic plan may not stand for the plans of all values: tries with fewer arguments, or
    /// else with custom plans.
    pub(super) fn specify(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        if candidate.statement.recipe().shape().has_rows() {
            return self.unfold(lesson, candidate, now, lent);
        }
        let eligible = candidate.statement.recipe().eligible();
        let stored = eligible.map_or(0, |eligible| eligible.columns.iter().flatten().count());
        if stored >= MANY_STORED {
            return Err(self.decline(candidate, Reason::Bulk, "", lent));
        }
        if let Some(narrow) = candidate.statement.recipe().narrowed() {
            return self.narrow(lesson, candidate, narrow, now, lent);
        }
        self.upstream
            .standing
            .mirror
            .remove(candidate.statement.key());
        let epoch = candidate.epoch;
        candidate.statement.record(Verdict::Specific { epoch });
        self.teach(lesson, now, lent)
    }

    /// A trusted statement was parsed on this connection: it must infer the types it was trusted
    /// with.
    pub(super) fn parsed(&mut self, lesson: &Lesson, lent: &Lent) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let key = candidate.statement.key();
        let [answer, ..] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !answer.is_good() {
            self.upstream.standing.mirror.revoke(key);
            candidate.statement.record(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        lent.counters().add(Counter::StatementsPrepared, 1);
        if answer.types.as_deref() != Some(&candidate.terms.types) {
            // The catalog has changed unseen: everything about this statement is asked anew.
            self.upstream.standing.mirror.remove(key);
            candidate.statement.record(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        let Candidate {
            verified, terms, ..
        } = candidate;
        self.upstream.standing.mirror.confirm(key, verified, terms);
        Ok(Next::Learned)
    }

    /// Keeps the arguments at these indexes inline from now on, and tries again.
    pub(super) fn demote(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: &[usize],
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let recipe = candidate.statement.recipe();
        let Some(eligible) = recipe.eligible() else {
            return Err(Reason::Unstable);
        };
        let lists = recipe.list_arguments();
        if lists.iter().any(|list| arguments.contains(list)) {
            return self.refuse(lesson, candidate, (Reason::Refused, ""), now, lent);
        }
        let narrow = without(eligible, arguments);
        if narrow == eligible.arguments {
            return Err(self.decline(candidate, Reason::Refused, "", lent));
        }
        lent.counters().add(Counter::Demotions, 1);
        lent.shapes.demote(recipe, narrow);
        self.try_again(lesson, candidate, now, lent)
    }

    fn narrow(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: Vec<bool>,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let recipe: &Recipe = candidate.statement.recipe();
        lent.shapes.narrow(recipe, arguments);
        self.try_again(lesson, candidate, now, lent)
    }

    /// Another recipe has taken the place of the candidate's.
    pub(super) fn try_again(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        self.upstream
            .standing
            .mirror
            .remove(candidate.statement.key());
        candidate.statement.record(Verdict::Unasked);
        lesson.rounds += 1;
        if lesson.rounds > MAX_ROUNDS {
            return Err(self.decline(candidate, Reason::Refused, "", lent));
        }
        self.teach(lesson, now, lent)
    }

    pub(super) fn decline(
        &mut self,
        candidate: &Candidate,
        reason: Reason,
        detail: &str,
        lent: &Lent,
    ) -> Reason {
        let statement = &candidate.statement;
        self.upstream.standing.mirror.remove(statement.key());
        statement.record(Verdict::Declined {
            reason,
            epoch: candidate.epoch,
        });
        lent.counters().add(Counter::OracleDeclined, 1);
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
        self.upstream.standing.mirror.remove(statement.key());
        let reason = Reason::OracleFailed;
        statement.record(if statement.count_failure() {
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
pub(super) fn positions(types: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<usize> {
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
