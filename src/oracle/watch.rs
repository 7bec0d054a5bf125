//! The state *watch*: the oracle is asked what the catalog looks like.

use super::answer::Answer;
use super::state::{State, Step};
use super::{Env, catalog};
use crate::statement::Millis;

/// Asks what the catalog looks like.
pub(super) fn ask(env: &mut Env<'_>) -> Step {
    env.asks.careful(catalog::sign().as_bytes());
    Step::Ask(State::Watch(env.now))
}

/// The catalog was looked at. An answer that failed says nothing; the age of statements bounds what
/// that can cost.
pub(super) fn answered(asked: Millis, answers: &[Answer], env: &mut Env<'_>) {
    let Some(answer) = answers.first().filter(|answer| answer.is_good()) else {
        return;
    };
    let Ok(sign) = <&[String; 2]>::try_from(&answer.values[..]) else {
        return;
    };
    let standing = &mut *env.standing;
    let suspect = standing.unverified.is_some();
    standing.is_new = false;
    if standing.database.observed(sign, asked, env.now, suspect) {
        tracing::debug!(client = env.client, "the catalog has changed");
    }
    if suspect {
        standing.verified();
    }
}
