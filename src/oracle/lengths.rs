//! The state *lengths*: the oracle is asked for which lengths of a list it makes the plan that is
//! kept for all values ([`lists`] has why).
//!
//! Nor would the server use a generic plan for lists shorter than ten: it compares its cost with
//! what the first five executions have cost on average (`choose_custom_plan` in `plancache.c`). So
//! some of the questions, which are executions for it, are about long lists. For none of them may
//! it choose the generic plan already, which would be like itself.

use super::answer::Answer;
use super::candidate::Candidate;
use super::proof;
use super::question::Instead;
use super::state::{About, Exposure, Listed, Step};
use super::topic::Topic;
use super::{Env, chosen, lists, question};
use crate::reason::Reason;
use crate::statement::guard::{Check, Guard};
use crate::statement::hindrance::Hindrance;
use std::ops::RangeInclusive;

/// The shortest list.
const FEWEST: usize = 2;

/// The most elements that are asked about, if the list at hand has no more; or as many as this one
/// has, up to a bound. Longer lists are planned for their values, which takes less than to search
/// for them.
const FEW: usize = 16;
const MANY: usize = 32;

/// Lengths that are asked about for what they cost alone.
const LONG: [usize; 3] = [64, 256, 1024];

/// The lengths that are asked about where a list has `seen` elements.
fn lengths(seen: usize) -> RangeInclusive<usize> {
    FEWEST..=seen.max(FEW)
}

/// Asks for the plans of lists of all lengths up to a bound, unless the list at hand is longer.
pub(super) fn ask(
    argument: usize,
    exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let recipe = candidate.statement.recipe();
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    let (scan, name) = (&env.lent.scan, candidate.name.as_bytes());
    let seen = lists::longest(scan);
    if seen > MANY {
        return chosen::ask_without_theorem(
            exposure.meaning,
            Hindrance::List,
            candidate,
            topic,
            env,
        );
    }
    for length in lengths(seen).chain(LONG) {
        let question =
            question::explain_execute(name, &topic.text, scan, eligible, Instead::Length(length));
        env.asks.careful(&question::explain_custom(&question));
    }
    let listed = Listed {
        argument,
        seen,
        exposure,
    };
    Ok(Step::ask(candidate, About::Lengths(Box::new(listed))))
}

/// The plans are here. The generic one is trusted for lists up to the first length that has
/// another, if the list at hand is one of them.
pub(super) fn answered(
    listed: Listed,
    candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let Listed {
        argument,
        seen,
        mut exposure,
    } = listed;
    let types = &candidate.terms.types;
    let is_alike = |answer: &Answer| proof::is_alike(answer, &exposure.generic, types);
    let asked = lengths(seen).zip(answers);
    let admitted = asked.take_while(|(_, answer)| is_alike(answer)).last();
    match admitted {
        Some((most, _)) if most >= seen => {
            let check = Check::Elements(most);
            exposure.guards.push(Guard { argument, check });
            exposure.guards.sort_by_key(|guard| guard.argument);
            chosen::ask(exposure, candidate, topic, env)
        }
        _ => chosen::ask_without_theorem(exposure.meaning, Hindrance::List, candidate, topic, env),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_up_to_the_bound_is_asked_about() {
        assert_eq!(lengths(1), 2..=16);
        assert_eq!(lengths(16), 2..=16);
        assert_eq!(lengths(17), 2..=17);
    }
}
