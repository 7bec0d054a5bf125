//! The state *names*: the oracle is asked which names have hazards.

use super::answer::Answer;
use super::state::{State, Step};
use super::{Env, naming};
use crate::statement::Millis;
use crate::statement::database::NamesClaim;
use crate::statement::names::{Names, Row};
use naming::Kinds;

/// Asks which names have hazards, by this right: first which kinds of objects there are.
///
/// That is asked behind the claim, too. So what there was when it was taken is found, and what is
/// made from then on is no part of the answer anyhow: the next look at the catalog finds it.
pub(super) fn ask(claim: NamesClaim, env: &mut Env<'_>) -> Step {
    env.asks.careful(naming::kinds().as_bytes());
    Step::Ask(State::Kinds(claim))
}

/// It is known which kinds there are, or that is asked about all.
pub(super) fn follow(claim: NamesClaim, answers: &[Answer], env: &mut Env<'_>) -> Step {
    let major = env.standing.dialect.server_major;
    let names = naming::names(major, Kinds::read(answers));
    env.asks.careful(names.as_bytes());
    Step::Ask(State::Names(claim))
}

/// The names whose use has hazards are here. An answer that cannot be read to its end makes all of
/// them hazardous; one that failed says nothing, and the claim is dropped.
pub(super) fn answered(claim: NamesClaim, answers: &[Answer], now: Millis) {
    let Some(answer) = answers.first() else {
        return;
    };
    if answer.error.is_some() && !answer.overflowed {
        return;
    }
    let names = read(answer).unwrap_or_else(Names::unknown);
    tracing::debug!(count = names.len(), "asked for names with hazards");
    claim.answer(names, now);
}

fn read(answer: &Answer) -> Option<Names> {
    let (rows, []) = answer.values.as_chunks() else {
        return None;
    };
    let rows: Option<Vec<Row<'_>>> = rows.iter().map(Row::read).collect();
    rows.filter(|_| !answer.overflowed)
        .map(|rows| Names::of_rows(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::hazard::Hazards;
    use crate::sql::survey::Known as _;
    use crate::statement::database::Database;
    use std::sync::Arc;

    #[test]
    fn an_answer_that_is_not_read_to_its_end_makes_all_names_hazardous() {
        let of = |cells: &[&str], overflowed| {
            let answer = Answer {
                values: cells.iter().map(ToString::to_string).collect(),
                overflowed,
                ..Answer::default()
            };
            let database = Arc::new(Database::default());
            let claim = database.claim_names(Millis(0), false).unwrap();
            answered(claim, &[answer], Millis(0));
            database.names(0).1.unwrap().of(b"t")
        };
        let row = ["r", "r1", "other", "f", ""];
        assert!(of(&row, false).is_none());
        assert_eq!(of(&row, true), Hazards::ALL);
        assert_eq!(of(&row[..4], false), Hazards::ALL, "half a row");
        let unknown = ["x", "r1", "other", "f", ""];
        assert_eq!(of(&[row, unknown].concat(), false), Hazards::ALL);
    }
}
