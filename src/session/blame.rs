//! Blame: what an error says something about. Only what it says about the text may settle a
//! verdict, which is shared; everything else is this connection's business, or this moment's.

use super::Session;
use super::lesson::{Lesson, Step};
use super::oracle::Answer;
use crate::convert::is_of_the_moment;
use crate::reason::Reason;
use crate::statement::Millis;
use crate::wire::fields;

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
