//! The state *statistics*: the oracle is asked how the columns are estimated, which the theorem of
//! one plan needs.

use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::state::{About, Exposure, Step, Valued};
use super::topic::Topic;
use super::{Env, values};
use crate::reason::Reason;
use crate::sql::oid;
use crate::statement::common_values::Common;
use crate::statement::hindrance::Hindrance;

/// Bytes of common values kept for one statement: those of a column of integers with the most
/// values that a server counts, 10,000.
const MAX_COMMON_BYTES: usize = 256 * 1024;

/// Asks how the columns are estimated, unless the theorem of one plan is out of the question.
pub(super) fn ask(
    exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    if let Some((hindrance, arguments)) = exposure.visibility.hindrance() {
        let taught = candidate.specify((hindrance, &arguments), topic, env);
        return taught.map(Step::Teach);
    }
    env.ask_catalog(&exposure.visibility.statistics_question());
    Ok(Step::ask(candidate, About::Statistics(exposure)))
}

/// How the columns are estimated is known: the generic plan may stand for the plans of values that
/// are not common, and of those that get the same.
pub(super) fn answered(
    exposure: Exposure,
    mut candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let statistics = answers.first().filter(|answer| answer.is_good());
    // What follows from statistics is as old as these.
    if let Some(asked) = statistics.and_then(|answer| answer.recalled) {
        candidate.verified = candidate.verified.min(asked);
    }
    exposure
        .visibility
        .tells(statistics, &env.standing.database);
    let common = statistics.and_then(|answer| exposure.visibility.common(answer));
    let is_small =
        |common: &Vec<Common>| common.iter().map(Common::bytes).sum::<usize>() <= MAX_COMMON_BYTES;
    let kinds = candidate.terms.kinds();
    // A name is cut off to 63 bytes, and may be a common value only then.
    let is_cut = |common: &Common| kinds.get(common.argument) == Some(&oid::NAME);
    let common = common.filter(|all| is_small(all) && !all.iter().any(is_cut));
    let is_known = common.is_some();
    let apart = exposure.visibility.apart(&kinds);
    let inline = apart
        .as_ref()
        .and_then(|apart| exposure.visibility.inline_values(apart, &kinds));
    let (Some(mut common), Some(apart), Some(inline)) = (common, apart, inline) else {
        let why = match is_known {
            true => Hindrance::Equal,
            false => Hindrance::Unknown,
        };
        let arguments = exposure.visibility.compared();
        let taught = candidate.specify((why, &arguments), topic, env);
        return taught.map(Step::Teach);
    };
    // Nothing but its frequency may lead to another plan for a value.
    let to_ask = values::to_ask(&common, &candidate, env).filter(|_| apart.is_empty());
    common.extend(inline);
    common.sort_by_key(|common| common.argument);
    let proven = Proven {
        common,
        apart,
        ages: true,
        ..Proven::with(exposure.guards)
    };
    let Some((argument, asked)) = to_ask else {
        return values::conclude(proven, &candidate, topic, env);
    };
    let valued = Valued {
        generic: exposure.generic,
        proven,
        argument,
        asked,
    };
    values::ask(valued, candidate, topic, env)
}
