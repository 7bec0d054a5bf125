//! What the catalog has said lately, so that lessons about other statements need not ask it again.
//!
//! Invariants:
//! - an answer is told only to a session in the context of the one that has asked, and only as long
//!   as nothing is known to have changed since before it was asked for;
//! - so whoever is told it may rely on it as much as on an answer of the server's, but for what the
//!   server finds out by itself (ANALYZE): hence it is told for a while only, and with its time.

use super::Database;
use crate::statement::context::Context;
use crate::statement::{Millis, lock};
use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// An answer is told for one part in so many of the time for which it may be relied on.
const LATELY: u64 = 12;

/// How many answers are remembered, and of how many bytes at most with their question: the common
/// values of a few columns. So it is two megabytes for a database.
const MOST: usize = 128;
const LARGEST: usize = 16 * 1024;

/// As of when a session knows what: the numbers of its context, of the catalog epoch, and of the
/// changes of contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    context: Context,
    epoch: u64,
    contexts: u64,
}

/// One answer.
#[derive(Debug, Clone)]
struct Fact {
    as_of: AsOf,
    asked: Millis,
    values: Arc<[String]>,
}

/// The answers of the catalog of one database, by their questions.
#[derive(Debug, Default)]
pub(super) struct Facts(Mutex<HashMap<Box<[u8]>, Fact, FixedState>>);

impl Database {
    /// As of when a session in this context asks now.
    #[must_use]
    pub fn as_of(&self, context: Context) -> AsOf {
        AsOf {
            context,
            epoch: self.epoch(),
            contexts: self.contexts(),
        }
    }

    /// What the catalog has answered to this question, if that is still so, and when it was asked.
    /// Statistics may be relied on for `max_age` milliseconds.
    #[must_use]
    pub fn recall(
        &self,
        question: &[u8],
        as_of: AsOf,
        (now, max_age): (Millis, u64),
    ) -> Option<(Arc<[String]>, Millis)> {
        let facts = lock(&self.facts.0);
        let fact = facts.get(question)?;
        let is_told = fact.as_of == as_of && now.since(fact.asked) <= max_age / LATELY;
        is_told.then(|| (Arc::clone(&fact.values), fact.asked))
    }

    /// Remembers what the catalog has answered to a question that was asked then, and as of then.
    pub fn remember(&self, question: Box<[u8]>, (as_of, asked): (AsOf, Millis), values: &[String]) {
        let held = values.iter().map(|value| size_of::<String>() + value.len());
        let size = question.len() + held.sum::<usize>();
        if size > LARGEST || as_of != self.as_of(as_of.context) {
            return;
        }
        let mut facts = lock(&self.facts.0);
        if facts.len() >= MOST && !facts.contains_key(&question) {
            facts.clear();
        }
        let values = values.into();
        let fact = Fact {
            as_of,
            asked,
            values,
        };
        facts.insert(question, fact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(database: &Database, question: &str, as_of: AsOf, now: u64) -> Option<usize> {
        let told = database.recall(question.as_bytes(), as_of, (Millis(now), 12_000));
        told.map(|(values, _)| values.len())
    }

    fn remember(database: &Database, question: &str, as_of: AsOf, now: u64) {
        let values = ["a".to_owned(), "b".to_owned()];
        database.remember(question.as_bytes().into(), (as_of, Millis(now)), &values);
    }

    #[test]
    fn an_answer_is_told_to_the_same_context_until_anything_changes_or_a_while_has_passed() {
        let database = Database::default();
        let [here, there] = [1, 2].map(|number| database.as_of(Context(number)));
        remember(&database, "q", here, 10);
        assert_eq!(told(&database, "q", here, 10), Some(2));
        assert_eq!(told(&database, "q", here, 1_010), Some(2));
        assert_eq!(told(&database, "q", here, 1_011), None);
        assert_eq!(told(&database, "q", there, 10), None);
        assert_eq!(told(&database, "other", here, 10), None);
        database.advance();
        let now = database.as_of(Context(1));
        assert_eq!(told(&database, "q", now, 10), None);
        // What was asked before a change is not what is so behind it.
        remember(&database, "q", here, 20);
        assert_eq!(told(&database, "q", now, 20), None);
        remember(&database, "q", now, 20);
        assert_eq!(told(&database, "q", now, 20), Some(2));
    }

    #[test]
    fn a_bounded_number_of_small_answers_is_remembered() {
        let database = Database::default();
        let here = database.as_of(Context(1));
        let large = "q".repeat(LARGEST);
        remember(&database, &large, here, 0);
        assert_eq!(told(&database, &large, here, 0), None);
        let many = vec![String::new(); LARGEST / size_of::<String>() + 1];
        database.remember((*b"q").into(), (here, Millis(0)), &many);
        assert_eq!(told(&database, "q", here, 0), None);
        for number in 0..10 * MOST {
            remember(&database, &number.to_string(), here, number as u64);
            assert!(lock(&database.facts.0).len() <= MOST);
        }
        let last = (10 * MOST - 1).to_string();
        assert_eq!(told(&database, &last, here, 10 * MOST as u64), Some(2));
    }
}
