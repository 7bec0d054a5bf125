//! Blame: what an error says something about. Only what it says about the text may settle a
//! verdict, which is shared; everything else is this connection's business, or this moment's.

use super::Env;
use super::answer::Answer;
use crate::convert::is_of_the_moment;
use crate::reason::Reason;
use crate::wire::fields;

/// SQLSTATE of a cancelled query.
const CANCELLED: &[u8] = b"57014";

/// SQLSTATE of a Parse whose name is taken.
const NAME_TAKEN: &[u8] = b"42P05";

/// Whether the error with this body says that the query was cancelled.
pub(super) fn is_cancellation(error: &[u8]) -> bool {
    fields::field(error, fields::SQLSTATE) == Some(CANCELLED)
}

/// Looks at the answers to a step that is about no statement.
///
/// # Errors
/// [`Reason::OracleFailed`] if one of them is an error that says nothing about what was asked. The
/// lesson is over, and everybody else may still ask.
pub(super) fn check(answers: &[Answer], env: &mut Env<'_>) -> Result<(), Reason> {
    match find(answers) {
        Some(error) => {
            note(error, env);
            Err(failed(env))
        }
        None => Ok(()),
    }
}

/// The first error among the answers that says nothing about the text.
pub(super) fn find(answers: &[Answer]) -> Option<&[u8]> {
    let mut errors = answers.iter().filter_map(|answer| answer.error.as_deref());
    errors.find(|error| is_of_the_moment(error))
}

/// Notes on the connection that a question has run into this error, which says nothing about the
/// text. A client that cancels its own query has not run into anything: its lesson is over before.
pub(super) fn note(error: &[u8], env: &mut Env<'_>) {
    env.standing.setbacks.add(env.now);
    if fields::field(error, fields::SQLSTATE) == Some(NAME_TAKEN) {
        env.standing.mirror.avoid_names();
    }
}

/// Says in the log that a question has failed, and returns that as a reason.
pub(super) fn failed(env: &Env<'_>) -> Reason {
    tracing::debug!(client = env.client, "a question failed");
    Reason::OracleFailed
}
