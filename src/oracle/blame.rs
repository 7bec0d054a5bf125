//! Blame: what an error says something about. Only what it says about the text may settle a
//! verdict, which is shared; everything else is this connection's business, or this moment's.

use super::Session;
use super::lesson::{Lesson, Step};
use super::oracle::Answer;
use crate::reason::Reason;
use crate::statement::Millis;
use crate::wire::fields;

/// Whether the error with this body could have come of any text: of the connection, the state of
/// its transaction, other transactions, a lack of resources, an administrator, the system, a defect
/// of the server.
pub(super) fn is_of_the_moment(error: &[u8]) -> bool {
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

impl Session {
    /// Looks at the answers to a step: if one of them is an error that says nothing about the text,
    /// the lesson is over, and everybody else may still ask.
    pub(super) fn check_blame(&mut self, lesson: &Lesson, now: Millis) -> Result<(), Reason> {
        let decisive = match lesson.step() {
            Step::Watch(_) => return Ok(()),
            // What follows only warms the statement.
            Step::Prepare => lesson.answers.get(..1),
            _ => Some(&lesson.answers[..]),
        };
        let mut errors = decisive.unwrap_or_default().iter().filter_map(error_of);
        let Some(error) = errors.find(|error| is_of_the_moment(error)) else {
            return Ok(());
        };
        // A client that cancels its own query has not run into anything.
        if lesson.cancelled.is_none() {
            self.upstream.standing.setbacks.add(now);
        }
        if fields::field(error, fields::SQLSTATE) == Some(b"42P05") {
            self.upstream.standing.mirror.avoid_names();
        }
        if let Some(candidate) = &lesson.candidate {
            let key = candidate.statement.key();
            let parse = match lesson.step() {
                Step::Describe => lesson.answers.get(1),
                Step::Prepare => lesson.answers.first(),
                _ => None,
            };
            if parse.and_then(error_of).is_some() {
                // Nothing to close: a statement of that name may be the client's.
                self.upstream.standing.mirror.revoke(key);
            } else {
                self.upstream.standing.mirror.remove(key);
            }
            candidate.statement.give_back_claim();
        }
        tracing::debug!(client = self.client.0, "a question failed");
        Err(Reason::OracleFailed)
    }
}

fn error_of(answer: &Answer) -> Option<&[u8]> {
    answer.error.as_deref()
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
