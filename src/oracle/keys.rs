//! The state *keys*: the oracle is asked what the theorems of one way and of one row need.

use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::lists::Lists;
use super::state::{About, Exposure, Step};
use super::topic::Topic;
use super::{Env, chosen, lengths, travel};
use crate::reason::Reason;
use crate::statement::hindrance::Hindrance;

/// Goes on to what the theorems need, if there is anything to ask about.
pub(super) fn begin(
    exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    match exposure.visibility.needs_no_facts() && exposure.lists == Lists::Nothing {
        true => travel::trust(&candidate, Proven::with(exposure.guards), env),
        false => ask(exposure, candidate, topic, env),
    }
}

/// Asks for the keys of the tables, if that may lead to anything; else goes on without.
fn ask(
    exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let Some(question) = exposure.visibility.keys_question() else {
        return go_on(exposure, candidate, topic, env);
    };
    env.ask_catalog(&question);
    Ok(Step::ask(candidate, About::Keys(exposure)))
}

/// Neither theorem holds: goes on to the lengths of a list, or to what other plans mean.
fn go_on(
    exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    match exposure.lists {
        Lists::Nothing => chosen::ask(exposure, candidate, topic, env),
        Lists::One(argument) => lengths::ask(argument, exposure, candidate, topic, env),
        Lists::Weighed => {
            let meaning = exposure.meaning;
            chosen::ask_without_theorem(meaning, Hindrance::List, candidate, topic, env)
        }
    }
}

/// What the theorems of one way and of one row need is known.
pub(super) fn answered(
    mut exposure: Exposure,
    candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let keys = answers.first().filter(|answer| answer.is_good());
    let visibility = &exposure.visibility;
    visibility.tells(keys, &env.standing.database);
    let has_no_lists = exposure.lists == Lists::Nothing;
    let one_way = has_no_lists && keys.is_some_and(|keys| visibility.has_one_way(keys));
    let kinds = candidate.terms.kinds();
    let is_single = |keys: &Answer| {
        visibility.is_single(keys)
            && !visibility.searches_for_moments(keys, &kinds)
            && !visibility.may_mix_needs(keys, &kinds)
    };
    let one_row = !one_way && keys.is_some_and(is_single);
    if !one_way && !one_row {
        if let Some(keys) = keys {
            exposure.note(keys);
        }
        return go_on(exposure, candidate, topic, env);
    }
    let proven = Proven {
        one_row,
        ..Proven::with(exposure.guards)
    };
    travel::trust(&candidate, proven, env)
}
