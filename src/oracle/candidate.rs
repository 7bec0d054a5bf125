//! The statement in question, and what becomes of it: trust, a narrower form, or the end.
//!
//! Where another form is to be tried, the plans are returned with which the text's statement is to
//! be found anew.

use super::answer::Answer;
use super::topic::Topic;
use super::{Env, blame, catalog};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::rewrite;
use crate::sql::stays::Blame;
use crate::standing::Standing;
use crate::statement::common_values::Common;
use crate::statement::guard::{Check, Guard};
use crate::statement::hindrance::Hindrance;
use crate::statement::mirror::Name;
use crate::statement::{Footprint, Millis, Plans, Statement, Terms, Verdict, validity};
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

/// The statement in question.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) statement: Arc<Statement>,
    /// The name it is being prepared under; empty until it has one on this connection.
    pub(super) name: Name,
    /// The catalog epoch when it was looked up. What is recorded about it is recorded as of then.
    pub(super) epoch: u64,
    /// What it is trusted with, or is about to be.
    pub(super) terms: Arc<Terms>,
    /// When it was found to mean the same as the original; for a statement that is not trusted yet,
    /// when it was described.
    pub(super) verified: Millis,
    /// The plans that the lesson is about, which are not the statement's if only custom plans will
    /// do.
    pub(super) wanted: Plans,
}

/// A reason against a statement, with what of it is to blame, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    pub(super) reason: Reason,
    pub(super) blame: Blame,
}

/// Against the whole of it.
impl From<Reason> for Charge {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            blame: Blame::default(),
        }
    }
}

/// What was proven of a statement beside its types. Nothing is, of one that is planned for its
/// values.
#[derive(Debug, Default)]
pub(super) struct Proven {
    pub(super) guards: Vec<Guard>,
    pub(super) common: Vec<Common>,
    /// The arguments that have to differ.
    pub(super) apart: Vec<usize>,
    pub(super) one_row: bool,
    pub(super) is_chosen: bool,
    /// It follows from statistics.
    pub(super) ages: bool,
}

impl Proven {
    /// What holds of every value under these guards.
    pub(super) const fn with(guards: Vec<Guard>) -> Self {
        Self {
            guards,
            common: Vec::new(),
            apart: Vec::new(),
            one_row: false,
            is_chosen: false,
            ages: false,
        }
    }
}

impl Candidate {
    /// Gives the statement a name on this connection, and closes what has to go for it.
    ///
    /// # Errors
    /// [`Reason::CacheFull`] if everything that would have to go is in use.
    pub(super) fn enroll(&mut self, env: &mut Env<'_>) -> Result<(), Reason> {
        let mirror = &mut env.standing.mirror;
        let begun = mirror.begin(Arc::clone(&self.statement), &self.terms, self.epoch);
        let Some((name, evicted)) = begun else {
            self.statement.give_back_claim();
            return Err(Reason::CacheFull);
        };
        self.name = name;
        let counters = env.lent.counters();
        counters.add(Counter::StatementsEvicted, evicted);
        if !mirror.owes() {
            return Ok(());
        }
        let owed = mirror.take_owed();
        for name in &owed {
            env.asks.close(name.as_bytes());
        }
        counters.add(Counter::StatementsClosed, owed.len() as u64);
        Ok(())
    }

    /// The server holds the statement, which may be used from now on.
    pub(super) fn confirm(&self, terms: Arc<Terms>, env: &mut Env<'_>) {
        let mirror = &mut env.standing.mirror;
        let evicted = mirror.confirm(self.statement.key(), self.verified, terms);
        env.lent.counters().add(Counter::StatementsEvicted, evicted);
    }

    /// The lesson has become pointless: what was being asked is left for the next who wants to
    /// know.
    pub(super) fn leave(&self, standing: &mut Standing) -> Reason {
        standing.mirror.remove(self.statement.key());
        // No verdict is withdrawn: what other sessions have ready stays as good as it was.
        self.statement.give_back_claim();
        Reason::Pipelined
    }

    /// Looks at the answers to questions about the candidate: those that matter, and that to its
    /// Parse, if it was among the questions.
    ///
    /// # Errors
    /// [`Reason::OracleFailed`] if one of those that matter is an error that says nothing about the
    /// text. The lesson is over, and everybody else may still ask.
    pub(super) fn check_blame(
        &self,
        decisive: &[Answer],
        parse: Option<&Answer>,
        env: &mut Env<'_>,
    ) -> Result<(), Reason> {
        let Some(error) = blame::find(decisive) else {
            return Ok(());
        };
        blame::note(error, env);
        let (mirror, key) = (&mut env.standing.mirror, self.statement.key());
        if parse.is_some_and(|it| it.error.is_some()) {
            // Nothing to close: a statement of that name may be the client's.
            mirror.revoke(key);
        } else {
            mirror.remove(key);
        }
        self.statement.give_back_claim();
        Err(blame::failed(env))
    }

    /// Literals of these types, too, are read at each execution.
    pub(super) fn reads_each_time(&mut self, types: &[u32]) {
        if !types.is_empty() {
            let mut terms = Terms::clone(&self.terms);
            let is_naming = |oid| catalog::is_naming(oid) || types.contains(&oid);
            terms.naming = positions(&terms.types, is_naming).into();
            self.terms = Arc::new(terms);
        }
    }

    /// The statement may stand for its original from now on, under these conditions.
    pub(super) fn trust(&self, proven: Proven, env: &mut Env<'_>) {
        let statement = &self.statement;
        env.lent.counters().add(Counter::OracleAccepted, 1);
        tracing::debug!(
            plans = ?statement.plans(),
            shape = statement.recipe().shape().text_for_display(),
            "trusted"
        );
        let kinds = self.terms.kinds();
        let lists = statement.recipe().list_arguments();
        let inferred = statement.oids().iter().zip(&kinds);
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
        // Which lengths of a list have one plan follows from them, too.
        let is_of_length = |guard: &Guard| matches!(guard.check, Check::Elements(_));
        let ages = proven.ages || proven.guards.iter().any(is_of_length);
        let terms = Arc::new(Terms {
            ages,
            added: env.standing.database.added(),
            guards: proven.guards.into(),
            common: proven.common.into(),
            apart: proven.apart.into(),
            one_row: proven.one_row,
            is_chosen: proven.is_chosen,
            fallible: fallible.collect(),
            ..Terms::clone(&self.terms)
        });
        statement.record(Verdict::Trusted {
            epoch: self.epoch,
            at: self.verified,
            terms: Arc::clone(&terms),
            footprint: Footprint::Unasked,
        });
        self.confirm(terms, env);
    }

    /// A generic plan may not stand for the plans of all values: tries with fewer arguments, or
    /// else with custom plans.
    pub(super) fn specify(
        &self,
        (hindrance, arguments): (Hindrance, &[usize]),
        topic: &mut Topic,
        env: &mut Env<'_>,
    ) -> Result<Plans, Reason> {
        let recipe = self.statement.recipe();
        if recipe.shape().has_rows() {
            return self.unfold(topic, env);
        }
        let eligible = recipe.eligible();
        let stored = eligible.map_or(0, |eligible| eligible.columns.iter().flatten().count());
        if stored >= MANY_STORED {
            return Err(self.decline(Reason::Bulk, "", env));
        }
        if let Some(narrow) = recipe.narrowed(&self.terms.naming) {
            env.lent.shapes.narrow(recipe, narrow);
            return self.try_again(topic, env);
        }
        env.standing.mirror.remove(self.statement.key());
        let epoch = self.epoch;
        self.statement.record(Verdict::Specific {
            hindrance,
            blame: Blame::on(recipe.literals_of(arguments)),
            epoch,
        });
        Ok(self.wanted)
    }

    /// A generic plan might stand for the plans of all values if these arguments were inline: tries
    /// that if they have not varied so far.
    pub(super) fn fix(
        &self,
        arguments: &[usize],
        topic: &mut Topic,
        env: &mut Env<'_>,
    ) -> Result<Plans, Reason> {
        let recipe = self.statement.recipe();
        let names = |argument| self.terms.naming.contains(argument);
        let narrow = recipe.fixed(arguments);
        let Some(narrow) = narrow.filter(|_| !arguments.iter().any(names)) else {
            return self.specify((Hindrance::MayFail, arguments), topic, env);
        };
        env.lent.shapes.narrow(recipe, narrow);
        self.try_again(topic, env)
    }

    /// Keeps the arguments at these indexes inline from now on, and tries again.
    pub(super) fn demote(
        &self,
        arguments: &[usize],
        topic: &mut Topic,
        env: &mut Env<'_>,
    ) -> Result<Plans, Reason> {
        let recipe = self.statement.recipe();
        let Some(eligible) = recipe.eligible() else {
            return Err(Reason::Unstable);
        };
        let lists = recipe.list_arguments();
        let refused = self.because_of(Reason::Refused, arguments);
        if lists.iter().any(|list| arguments.contains(list)) {
            return self.refuse(refused, "", topic, env);
        }
        let narrow = without(eligible, arguments);
        if narrow == eligible.arguments {
            return Err(self.decline(refused, "", env));
        }
        env.lent.counters().add(Counter::Demotions, 1);
        env.lent.shapes.demote(recipe, narrow);
        self.try_again(topic, env)
    }

    /// The reason, for the arguments at these indexes.
    pub(super) fn because_of(&self, reason: Reason, arguments: &[usize]) -> Charge {
        Charge {
            reason,
            blame: Blame::on(self.statement.recipe().literals_of(arguments)),
        }
    }

    /// The rewritten text is not what the original is: tries again with its lists or rows taken
    /// apart, if it has any, or declines it.
    pub(super) fn refuse(
        &self,
        charge: impl Into<Charge>,
        detail: &str,
        topic: &mut Topic,
        env: &mut Env<'_>,
    ) -> Result<Plans, Reason> {
        if self.statement.recipe().list_arguments().is_empty() {
            return Err(self.decline(charge, detail, env));
        }
        self.unfold(topic, env)
    }

    /// Lists or rows are not to be arrays: tries again without.
    pub(super) fn unfold(&self, topic: &mut Topic, env: &mut Env<'_>) -> Result<Plans, Reason> {
        env.lent.counters().add(Counter::Demotions, 1);
        env.lent.shapes.unfold(self.statement.recipe());
        self.try_again(topic, env)
    }

    /// Another recipe has taken the place of the candidate's.
    fn try_again(&self, topic: &mut Topic, env: &mut Env<'_>) -> Result<Plans, Reason> {
        env.standing.mirror.remove(self.statement.key());
        self.statement.record(Verdict::Unasked);
        topic.rounds += 1;
        if topic.rounds > MAX_ROUNDS {
            return Err(self.decline(Reason::Refused, "", env));
        }
        Ok(self.wanted)
    }

    /// The statement may not stand for its original.
    pub(super) fn decline(
        &self,
        charge: impl Into<Charge>,
        detail: &str,
        env: &mut Env<'_>,
    ) -> Reason {
        let Charge { reason, blame } = charge.into();
        let statement = &self.statement;
        env.standing.mirror.remove(statement.key());
        statement.record(Verdict::Declined {
            reason,
            blame,
            epoch: self.epoch,
        });
        env.lent.counters().add(Counter::OracleDeclined, 1);
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
    pub(super) fn give_up(&self, standing: &mut Standing) -> Reason {
        let statement = &self.statement;
        standing.mirror.remove(statement.key());
        let reason = Reason::OracleFailed;
        statement.record(if statement.count_failure() {
            Verdict::Declined {
                reason,
                blame: Blame::default(),
                epoch: self.epoch,
            }
        } else {
            Verdict::Unasked
        });
        reason
    }
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
