//! The state *chosen*: the oracle is asked whether the statement means the same by whatever plan
//! the server chooses. It is asked only if that is enough ([`Strictness::Server`]), and only where
//! the theorems of one way and of one row do not hold, which prove more.
//!
//! [`Strictness::Server`]: crate::convert::Strictness::Server

use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::proof::Meaning;
use super::state::{About, Exposure, Step};
use super::topic::Topic;
use super::{Env, statistics, travel};
use crate::reason::Reason;
use crate::statement::hindrance::Hindrance;

/// Asks what other plans would mean, if that may lead to anything; else for the statistics.
pub(super) fn ask(
    mut exposure: Exposure,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    match exposure.meaning.take() {
        Some(meaning) => Ok(put(meaning, Ok(exposure), candidate, env)),
        None => statistics::ask(exposure, candidate, topic, env),
    }
}

/// The same for plans of which nothing can be proven, for this.
pub(super) fn ask_without_theorem(
    meaning: Option<Box<Meaning>>,
    hindrance: Hindrance,
    candidate: Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    match meaning {
        Some(meaning) => Ok(put(meaning, Err(hindrance), candidate, env)),
        None => {
            let taught = candidate.specify((hindrance, &[]), topic, env);
            taught.map(Step::Teach)
        }
    }
}

fn put(
    meaning: Box<Meaning>,
    exposure: Result<Exposure, Hindrance>,
    candidate: Candidate,
    env: &mut Env<'_>,
) -> Step {
    env.ask_catalog(&meaning.question());
    Step::ask(candidate, About::Chosen(meaning, exposure))
}

/// It is known what the columns are: the server may choose, or what was proven has to do.
pub(super) fn answered(
    (meaning, exposure): (Box<Meaning>, Result<Exposure, Hindrance>),
    candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let facts = answers.first().filter(|answer| answer.is_good());
    meaning.tells(facts, &env.standing.database);
    let kinds = candidate.terms.kinds();
    if facts.is_some_and(|facts| meaning.holds(facts, &kinds)) {
        let proven = Proven {
            is_chosen: true,
            ..Proven::with(meaning.into_guards())
        };
        return travel::trust(&candidate, proven, env);
    }
    match exposure {
        Ok(mut exposure) => {
            if let Some(facts) = facts {
                exposure.note(facts);
            }
            statistics::ask(exposure, candidate, topic, env)
        }
        Err(hindrance) => {
            let taught = candidate.specify((hindrance, &[]), topic, env);
            taught.map(Step::Teach)
        }
    }
}
