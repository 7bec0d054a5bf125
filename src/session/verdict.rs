//! What the oracle's answers lead to: trust, a narrower form, or the end.

use super::learn::{Candidate, Lesson, Next, Step, Subject};
use super::oracle::{self, Answer};
use super::{Session, Worker, proof};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::statement::cache::Name;
use crate::statement::{Instant, Recipe, Terms, Verdict};
use crate::wire::frontend;
use std::sync::Arc;

/// Demotions tried for one shape before it is given up: one round trip each.
const MAX_ROUNDS: u8 = 16;

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
                None => Err(self.decline(&candidate, Reason::Refused, &state, worker)),
            };
        }
        worker.counters().add(Counter::StatementsPrepared, 1);
        if original.description != rewritten.description {
            return Err(self.decline(&candidate, Reason::DifferentResult, "", worker));
        }
        let types = rewritten.types.clone().unwrap_or_default();
        if types.len() != candidate.statement.oids().len() {
            return Err(self.decline(&candidate, Reason::Refused, "", worker));
        }
        let recipe = Arc::clone(candidate.statement.recipe());
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        let forbidden = forbidden(&types, eligible);
        if !forbidden.is_empty() {
            return self.demote(lesson, &candidate, &forbidden, now, worker);
        }
        worker.scan.run(&lesson.text, self.upstream.dialect)?;
        let (text, scan) = (&lesson.text, &worker.scan);
        let execute = oracle::explain_execute(candidate.name.as_bytes(), text, scan, eligible);
        let catalog = oracle::catalog_query(&types, eligible);
        self.question(|out| frontend::query(out, &oracle::explain(text, scan)));
        self.question(|out| frontend::query(out, &execute));
        self.question(|out| frontend::query(out, &oracle::explain_generic(&execute)));
        if let Some(catalog) = &catalog {
            self.question(|out| frontend::query(out, catalog));
        }
        let terms = Terms {
            types: types.into(),
            guards: Box::default(),
        };
        lesson.candidate = Some(Candidate {
            terms: Arc::new(terms),
            verified: now,
            ..candidate
        });
        Ok(lesson.ask(Step::Explain, 3 + usize::from(catalog.is_some())))
    }

    /// The plans are here: the custom plan must be the original's to the letter, the generic plan
    /// the same but for its constants.
    pub(super) fn explained(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        if lesson.answers.iter().any(|answer| answer.overflowed) {
            return Err(self.decline(&candidate, Reason::DifferentPlan, "", worker));
        }
        if lesson.answers.iter().any(|answer| !answer.is_good()) {
            return Err(self.give_up(&candidate));
        }
        let [original, custom, generic] = [0, 1, 2].map(|k| {
            let answer = lesson.answers.get(k);
            answer.map(Answer::plan).unwrap_or_default()
        });
        if !proof::is_one_tree(&original) {
            return Err(self.decline(&candidate, Reason::RewriteRules, "", worker));
        }
        if let Some(catalog) = lesson.answers.get(3) {
            let domains = match oracle::read_catalog(catalog) {
                Ok(domains) => domains,
                Err(reason) => return Err(self.decline(&candidate, reason, "", worker)),
            };
            if !domains.is_empty() {
                let demoted = positions(&candidate.terms.types, |oid| domains.contains(&oid));
                return self.demote(lesson, &candidate, &demoted, now, worker);
            }
        }
        if original != custom {
            return Err(self.decline(&candidate, Reason::DifferentPlan, "", worker));
        }
        let types = &candidate.terms.types;
        let recipe = candidate.statement.recipe();
        let bare = recipe.eligible().map(bare).unwrap_or_default();
        let Some(guards) = proof::same_plan(&original, &generic, types, &bare) else {
            if let Some(narrow) = candidate.statement.recipe().narrowed() {
                return self.narrow(lesson, &candidate, narrow, now, worker);
            }
            return Err(self.decline(&candidate, Reason::GenericPlan, "", worker));
        };
        worker.counters().add(Counter::OracleAccepted, 1);
        tracing::debug!(
            shape = candidate.statement.recipe().shape().text_for_display(),
            "trusted"
        );
        let terms = Arc::new(Terms {
            types: types.clone(),
            guards: guards.into(),
        });
        candidate.statement.settle(Verdict::Trusted {
            epoch: candidate.epoch,
            at: candidate.verified,
            terms: Arc::clone(&terms),
        });
        let key = candidate.statement.key();
        self.upstream.cache.settle(key, candidate.verified, terms);
        Ok(Next::Learned)
    }

    /// A trusted statement was parsed on this connection: it must infer the types it was trusted
    /// with.
    pub(super) fn parsed(&mut self, lesson: &Lesson, worker: &Worker) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let key = candidate.statement.key();
        let [answer] = &lesson.answers[..] else {
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

    pub(super) fn audited(&mut self, lesson: &Lesson, worker: &Worker) -> Result<Next, Reason> {
        let Subject::Audit(statement, _) = &lesson.subject else {
            return Err(Reason::OracleFailed);
        };
        let [original, generic] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !original.is_good() || !generic.is_good() {
            return Err(Reason::OracleFailed);
        }
        let key = statement.key();
        let terms = self
            .upstream
            .cache
            .lookup(key)
            .map(|entry| Arc::clone(&entry.terms));
        let terms = terms.ok_or(Reason::Unstable)?;
        let bare = statement.recipe().eligible().map(bare).unwrap_or_default();
        let (original, generic) = (original.plan(), generic.plan());
        let guards = proof::same_plan(&original, &generic, &terms.types, &bare);
        let passed = guards.as_deref() == Some(&terms.guards);
        worker.counters().add(
            if passed {
                Counter::AuditsPassed
            } else {
                Counter::AuditsFailed
            },
            1,
        );
        if passed {
            return Ok(Next::Learned);
        }
        self.upstream.cache.remove(statement.key());
        if let Some(narrow) = statement.recipe().narrowed() {
            worker.table.narrow(statement.recipe(), narrow);
            return Ok(Next::Learned);
        }
        let candidate = Candidate {
            statement: Arc::clone(statement),
            name: Name::default(),
            epoch: self.upstream.database.epoch(),
            terms,
            verified: Instant::default(),
        };
        Err(self.decline(&candidate, Reason::GenericPlan, "", worker))
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
        let narrow = without(eligible, arguments);
        if narrow == eligible.arguments {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        worker.counters().add(Counter::Demotions, 1);
        self.narrow(lesson, candidate, narrow, now, worker)
    }

    fn narrow(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: Vec<bool>,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        self.upstream.cache.remove(candidate.statement.key());
        candidate.statement.settle(Verdict::Unasked);
        lesson.rounds += 1;
        if lesson.rounds > MAX_ROUNDS {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        let recipe: &Recipe = candidate.statement.recipe();
        worker.table.narrow(recipe, arguments);
        self.teach(lesson, now, worker)
    }

    fn decline(
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
    fn give_up(&mut self, candidate: &Candidate) -> Reason {
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

/// The indexes at which `wanted` holds.
fn positions(types: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<usize> {
    let matching = types.iter().enumerate().filter(|(_, oid)| wanted(**oid));
    matching.map(|(index, _)| index).collect()
}

/// The arguments whose inferred types no string may be bound to (rules 4 and 5 of the fidelity
/// rules).
fn forbidden(types: &[u32], eligible: &Eligible) -> Vec<usize> {
    let lifted = eligible.arguments.iter().zip(&eligible.interval_casts);
    let casts = lifted.filter_map(|(argument, cast)| argument.then_some(*cast));
    let forbidden = types
        .iter()
        .zip(casts)
        .enumerate()
        .filter(|(_, (oid, cast))| oracle::is_forbidden(**oid, *cast));
    forbidden.map(|(index, _)| index).collect()
}

/// For each argument whether nothing is done with it where it stands.
fn bare(eligible: &Eligible) -> Vec<bool> {
    let lifted = eligible.arguments.iter().zip(&eligible.bare);
    lifted
        .filter_map(|(argument, bare)| argument.then_some(*bare))
        .collect()
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
