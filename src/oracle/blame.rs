//! Blame: what an error says something about. Only what it says about the text may settle a
//! verdict, which is shared; everything else is this connection's business, or this moment's.

use super::Env;
use super::answer::Answer;
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

/// Whether the error with this body could have come of any text: of the connection, the state of
/// its transaction, other transactions, a lack of resources, an administrator, the system, a defect
/// of the server.
#[must_use]
pub fn is_of_the_moment(error: &[u8]) -> bool {
    let state = fields::field(error, fields::SQLSTATE).unwrap_or_default();
    match state {
        b"42P05" | b"26000" | b"55P03" | b"55006" => true,
        // The statement's result type has changed between two questions.
        b"0A000" => fields::field(error, fields::ROUTINE) == Some(b"RevalidateCachedQuery"),
        _ => matches!(
            state.get(..2),
            Some(b"08" | b"25" | b"40" | b"53" | b"57" | b"58" | b"72" | b"F0" | b"XX")
        ),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_any_text_might_get_say_nothing_about_this_one() {
        let is = |state: &str, routine: &str| {
            is_of_the_moment(format!("SERROR\0VERROR\0C{state}\0Mx\0R{routine}\0\0").as_bytes())
        };
        for state in [
            "42P05", "57014", "57P01", "53200", "40001", "40P01", "55P03", "25006", "08006",
            "58030", "XX000", "26000", "55006",
        ] {
            assert!(is(state, "x"), "{state}");
        }
        for state in [
            "42601", "42P01", "22P02", "0A000", "42P18", "54001", "P0001", "42501",
        ] {
            assert!(!is(state, "x"), "{state}");
        }
        assert!(is("0A000", "RevalidateCachedQuery"));
        assert!(!is_of_the_moment(b"") && !is_of_the_moment(b"C4\0\0"));
    }
}
