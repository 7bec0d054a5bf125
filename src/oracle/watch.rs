//! The state *watch*: the oracle is asked what the catalog looks like.

use super::answer::Answer;
use super::state::{State, Step};
use super::{Env, sign};
use crate::statement::Millis;
use crate::statement::database::{Made, Reading, Sight};

/// Asks what the catalog looks like.
pub(super) fn ask(env: &mut Env<'_>) -> Step {
    let made = env.standing.database.made();
    env.asks.careful(sign::sign(made.names()).as_bytes());
    Step::Ask(State::Watch(env.now, made))
}

/// The catalog was looked at. An answer that failed says nothing; the age of statements bounds what
/// that can cost.
pub(super) fn answered(asked: Millis, made: Made, answers: &[Answer], env: &mut Env<'_>) {
    let Some(answer) = answers.first().filter(|answer| answer.is_good()) else {
        return;
    };
    let [naming, rest, rights, last, without @ ..] = &answer.values[..] else {
        return;
    };
    let mut numbers = last.split(' ').map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    let last = number().and_then(|last| u32::try_from(last).ok());
    let sight = Sight {
        sign: [naming.clone(), rest.clone()],
        rights: rights.clone(),
        last: last.unwrap_or(u32::MAX),
        reading: number().zip(number()).map(|(at, now)| Reading { at, now }),
        without: <&[String; 2]>::try_from(without).ok().cloned(),
        made,
    };
    let standing = &mut *env.standing;
    let suspect = standing.unverified.is_some();
    standing.is_new = false;
    if standing.database.observed(sight, asked, env.now, suspect) {
        tracing::debug!(client = env.client, "the catalog has changed");
    }
    if suspect {
        standing.verified();
    }
}
