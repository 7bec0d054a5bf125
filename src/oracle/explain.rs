//! What becomes of a candidate when its plans are known: which theorem lets it be planned once, or
//! that there is none.

use super::lesson::{Candidate, Lesson, Next, Step};
use super::lists::{self, Lengths};
use super::oracle::{self, Answer};
use super::proof::{self, Hidden, Plan};
use super::verdict::positions;
use super::{Session, rows};
use crate::convert::Lent;
use crate::reason::Reason;
use crate::statement::common_values::Common;
use crate::statement::guard::Guard;
use crate::statement::{Millis, Plans, Statement, Terms};
use std::sync::Arc;

/// Bytes of common values kept for one statement: those of a column of integers with the most
/// values that a server counts, 10,000.
const MAX_COMMON_BYTES: usize = 256 * 1024;

/// What was proven of a statement beside its types. Nothing is, of one that is planned for its
/// values.
#[derive(Debug, Default)]
pub(super) struct Proven {
    pub guards: Vec<Guard>,
    pub common: Vec<Common>,
    pub one_row: bool,
}

impl Proven {
    const fn with(guards: Vec<Guard>) -> Self {
        Self {
            guards,
            common: Vec::new(),
            one_row: false,
        }
    }
}

impl Session {
    /// The plans are here: the custom plan must be the original's to the letter, the generic plan
    /// the same but for its constants.
    pub(super) fn explained(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
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
            return Err(self.decline(&candidate, Reason::DifferentPlan, "", lent));
        }
        if !original.is_good() {
            return Err(self.give_up(&candidate));
        }
        if !custom.is_good() {
            return self.unplanned(lesson, &candidate, &custom, now, lent);
        }
        let original = match Plan::read(&original) {
            Ok(original) => original,
            Err(reason) => return Err(self.decline(&candidate, reason, "", lent)),
        };
        if candidate.statement.recipe().shape().has_lists() {
            let others = answers.next();
            if others.is_none_or(|answer| lists::may_be_others(&answer)) {
                return self.refuse(lesson, &candidate, (Reason::Refused, ""), now, lent);
            }
        }
        if self.upstream.standing.settings.has_indirect_rights
            && answers.next().is_none_or(|answer| answer.values != ["0"])
        {
            return Err(self.decline(&candidate, Reason::RoleRights, "", lent));
        }
        let mut immutable = true;
        if let Some(catalog) = answers.next() {
            let found = match oracle::read_catalog(&catalog) {
                Ok(found) => found,
                Err(reason) => return Err(self.decline(&candidate, reason, "", lent)),
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
                return self.demote(lesson, &candidate, &demoted, now, lent);
            }
        }
        if read_as_values(&candidate, &custom).as_ref() != Some(&original) {
            let refused = (Reason::DifferentPlan, "");
            return self.refuse(lesson, &candidate, refused, now, lent);
        }
        let Some(generic) = generic else {
            return Ok(self.trust(&candidate, Proven::default(), lent));
        };
        match read_as_values(&candidate, &generic) {
            Some(generic) if immutable => {
                self.generic_explained(lesson, (&original, &generic), lengths, now, lent)
            }
            _ => self.specify(lesson, &candidate, now, lent),
        }
    }

    /// The custom plan is the original's: the generic plan must be the same but for its constants.
    fn generic_explained(
        &mut self,
        lesson: &mut Lesson,
        (original, generic): (&Plan, &Plan),
        lengths: Option<Lengths>,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let recipe = candidate.statement.recipe();
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        let (types, bare) = (candidate.terms.kinds(), bare(&candidate.statement));
        let hidden = Hidden {
            bare: &bare,
            stored: &candidate.terms.stored,
        };
        let exposed = proof::exposed(original, generic, &types, (&hidden, eligible));
        let Some((exposure, guards)) = exposed else {
            return self.specify(lesson, &candidate, now, lent);
        };
        lent.scan_again(&lesson.text, self.upstream.standing.dialect, recipe)?;
        let (plan, scan) = ((&exposure, generic), &lent.scan);
        let guards = lists::guarded(guards, plan, &candidate, lengths.as_ref(), scan);
        let Some(guards) = guards.filter(|_| !exposure.is_open()) else {
            return self.specify(lesson, &candidate, now, lent);
        };
        if exposure.needs_no_facts() {
            return Ok(self.trust(&candidate, Proven::with(guards), lent));
        }
        let keys = exposure.keys_question();
        lesson.exposure = Some((exposure, guards));
        let Some(keys) = keys else {
            return self.ask_statistics(lesson, now, lent);
        };
        Ok(self.ask_catalog(lesson, Step::Keys, &keys))
    }

    /// What the theorems of one way and of one row need is known.
    pub(super) fn keys_known(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let keys = lesson.answers.first().filter(|answer| answer.is_good());
        let (exposure, guards) = lesson.exposure.as_mut().ok_or(Reason::OracleFailed)?;
        let one_way = keys.is_some_and(|keys| exposure.has_one_way(keys));
        let one_row = !one_way && keys.is_some_and(|keys| exposure.is_single(keys));
        if !one_way && !one_row {
            return self.ask_statistics(lesson, now, lent);
        }
        let proven = Proven {
            one_row,
            ..Proven::with(std::mem::take(guards))
        };
        Ok(self.trust(&candidate, proven, lent))
    }

    fn ask_statistics(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let (exposure, _) = lesson.exposure.as_ref().ok_or(Reason::OracleFailed)?;
        let Some(question) = exposure.statistics_question() else {
            let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
            return self.specify(lesson, &candidate, now, lent);
        };
        Ok(self.ask_catalog(lesson, Step::Statistics, &question))
    }

    /// How the columns are estimated is known: the generic plan may stand for the plans of values
    /// that are not common, if this query's are not, about which alone something was proven.
    pub(super) fn statistics_known(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let (exposure, guards) = lesson.exposure.take().ok_or(Reason::OracleFailed)?;
        let statistics = lesson.answer(0).ok();
        let common = statistics.and_then(|answer| exposure.common(answer));
        let is_small = |common: &Vec<Common>| {
            common.iter().map(Common::bytes).sum::<usize>() <= MAX_COMMON_BYTES
        };
        let Some(common) = common.filter(is_small) else {
            return self.specify(lesson, &candidate, now, lent);
        };
        let terms = Terms {
            common: common.clone().into(),
            ..Terms::default()
        };
        let recipe = candidate.statement.recipe();
        lent.scan_again(&lesson.text, self.upstream.standing.dialect, recipe)?;
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        if !terms.admit(eligible, &lesson.text, &lent.scan) {
            return self.specify(lesson, &candidate, now, lent);
        }
        let proven = Proven {
            common,
            ..Proven::with(guards)
        };
        Ok(self.trust(&candidate, proven, lent))
    }
}

/// The plan of the rewritten text; `None` if there is none.
fn read_as_values(candidate: &Candidate, answer: &Answer) -> Option<Plan> {
    let plan = Plan::read(answer).ok().filter(|_| answer.is_good())?;
    Some(rows::as_values(&candidate.statement, plan))
}

/// For each argument of the statement whether nothing is done with it where it stands.
pub(super) fn bare(statement: &Statement) -> Vec<bool> {
    let Some(eligible) = statement.recipe().eligible() else {
        return Vec::new();
    };
    let lifted = eligible.arguments.iter().zip(&eligible.bare);
    lifted
        .filter_map(|(argument, bare)| argument.then_some(*bare))
        .collect()
}
