//! Finds out what is known of a text's statement, and asks what is not.

use super::candidate::Candidate;
use super::state::Step;
use super::topic::Topic;
use super::{Env, columns, describe, prepare};
use crate::convert::judge;
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::{self, Eligible};
use crate::sql::hazard::Hazards;
use crate::sql::scan::Scan;
use crate::sql::stays::Blame;
use crate::sql::survey;
use crate::statement::mirror::Name;
use crate::statement::story::Episode;
use crate::statement::{Millis, Plans, Recipe, Statement, Terms, Verdict};
use std::sync::Arc;

/// Milliseconds after which a question somebody else put counts as forgotten.
const PATIENCE: u64 = 10_000;

/// Finds the text's statement, with these plans if they will do: has it prepared if it is trusted
/// already, or asks about it.
pub(super) fn teach(wanted: Plans, topic: &mut Topic, env: &mut Env<'_>) -> Result<Step, Reason> {
    // First: whoever moves it changes the names before.
    let epoch = env.standing.present_epoch();
    if env.standing.context_count != env.standing.database.contexts() || !env.standing.knows_names()
    {
        return Err(Reason::Unproven);
    }
    let text = &topic.text;
    let names = Arc::clone(env.standing.names());
    let survey = survey::survey(text, &*names);
    // Who executes it would be taken to leave anything as long as nothing else changes.
    let residue = env.standing.residue_of(text, &survey);
    let residue = residue.ok_or(Reason::Unproven)?;
    let mut recipe = env.lent.recipe_of(text, env.standing)?;
    if survey.reads_partitions() && recipe.shape().has_rows() {
        // Rows of arrays are always planned once.
        env.lent.shapes.unfold(&recipe);
        recipe = env.lent.recipe_of(text, env.standing)?;
    }
    let (scan, dialect) = (&env.lent.scan, env.standing.dialect);
    let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
    if let Some(index) = volatile_inline(text, scan, eligible) {
        return Err(leave_volatile(&recipe, index));
    }
    let plans = match wanted {
        // A generic plan locks all partitions, whatever the literals say.
        Plans::Generic if survey.reads_partitions() => Plans::Custom,
        wanted => wanted,
    };
    let statement = env.lent.statement(&recipe, plans, text, env.standing)?;
    if let Some(reason) = hazard_of(survey.hazards) {
        statement.record(declined(reason, epoch));
    }
    if let Some(reason) = statement.settled_against(epoch) {
        return Err(reason);
    }
    let max_age = env.lent.settings.statement_max_age;
    let added = env.standing.database.added();
    if let Some((at, terms)) = statement.trusted(epoch, (max_age, added), env.now) {
        let oldest = Millis(env.now.0.saturating_sub(terms.lifetime(max_age)));
        if env
            .standing
            .mirror
            .holds(&statement, epoch, (oldest, added))
        {
            // Only the context was not known.
            return Ok(Step::Learned);
        }
        let candidate = Candidate {
            verified: at,
            terms,
            statement,
            name: Name::default(),
            epoch,
            wanted,
        };
        return prepare::ask(candidate, &topic.text, env);
    }
    claim(&statement, topic, env)?;
    let terms = Terms {
        effect: survey.hazards.effect(),
        residue,
        ..Terms::default()
    };
    let candidate = Candidate {
        verified: env.now,
        terms: Arc::new(terms),
        statement,
        name: Name::default(),
        epoch,
        wanted,
    };
    if recipe.shape().has_rows() {
        return columns::ask(candidate, env);
    }
    describe::ask(candidate, &topic.text, env)
}

/// A verdict against the whole of a statement.
fn declined(reason: Reason, epoch: u64) -> Verdict {
    let blame = Blame::default();
    Verdict::Declined {
        reason,
        blame,
        epoch,
    }
}

/// Why a text whose objects have these hazards is passed through.
const fn hazard_of(hazards: Hazards) -> Option<Reason> {
    if hazards.has(Hazards::SEES) {
        Some(Reason::Introspection)
    } else if hazards.has(Hazards::FOREIGN) {
        Some(Reason::ForeignTable)
    } else if hazards.has(Hazards::SECURED) {
        Some(Reason::RoleRights)
    } else if hazards.has(Hazards::PLANS) {
        Some(Reason::PlannerRuns)
    } else if hazards.has(Hazards::FETCHES) {
        // What that does is not known before it has run.
        Some(Reason::SessionEffect)
    } else {
        None
    }
}

/// Claims the right to ask about this statement, and a question from the budget, unless the lesson
/// has taken one already.
fn claim(statement: &Statement, topic: &mut Topic, env: &Env<'_>) -> Result<(), Reason> {
    let (questions, is_eager) = (env.lent.shapes.questions(), env.lent.settings.is_eager());
    let executions = env.lent.shapes.executions(statement);
    if !topic.is_paid {
        if env.lent.rests(statement, env.standing, env.now) {
            return Err(Reason::Threshold);
        }
        topic.is_earned = statement.payback().has_earned(executions);
        if !is_eager && !topic.is_earned && !questions.are_left(env.now) {
            return Err(Reason::Budget);
        }
    }
    if !statement.claim(env.now, PATIENCE) {
        return Err(Reason::Threshold);
    }
    if !topic.is_paid {
        if !questions.take(env.now) {
            statement.record(Verdict::Unasked);
            return Err(Reason::Budget);
        }
        topic.is_paid = true;
        env.lent.counters().add(Counter::OracleQuestions, 1);
        if let Some(has_paid) = statement.payback().asked(executions) {
            env.standing.database.lesson_ended(has_paid);
            let unpaid = u64::from(!has_paid);
            env.lent.counters().add(Counter::LessonsUnpaid, unpaid);
        }
    }
    Ok(())
}

/// Notes that a text of the shape is left for the literal at this index, which says a moment.
fn leave_volatile(recipe: &Recipe, index: usize) -> Reason {
    let blame = Blame::on([index].into_iter().collect());
    let reason = Reason::VolatileLiteral;
    recipe.story().note(Episode::Left(reason, blame));
    reason
}

/// The first inline literal that holds a word which means another moment each time (H-07).
fn volatile_inline(text: &[u8], scan: &Scan, eligible: &Eligible) -> Option<usize> {
    let literals = scan.literals().iter().zip(&eligible.arguments);
    let mut inline = literals
        .enumerate()
        .filter(|(_, (_, argument))| !**argument);
    let found = inline.find(|(_, (literal, _))| {
        let mut values = scan.elements(literal).iter();
        values.any(|value| eligible::is_volatile(text, value))
    });
    found.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_words_that_mean_another_moment_are_found() {
        let dialect = crate::sql::Dialect { server_major: 17 };
        let scanned = |text: &str| {
            let mut scan = Scan::new(crate::sql::ScanLimits::default(), 1);
            scan.run(text.as_bytes(), dialect).expect("scans");
            scan
        };
        let plain = "select a from t where b = 5 and c = 6";
        let mut eligible = eligible::judge(plain, &scanned(plain), dialect).expect("eligible");
        eligible.arguments = vec![false, true];
        let found = |token: &str| {
            let text = format!("select {token}, a from t where b = 5");
            volatile_inline(text.as_bytes(), &scanned(&text), &eligible) == Some(0)
        };
        for token in [
            "'Now'",
            "'TOMORROW 10:00'",
            r"E'n\x6fw'",
            r"E'to\144ay'",
            "$$now$$",
        ] {
            assert!(found(token), "{token}");
        }
        for token in ["'2020-01-01'", "'knowledge'", "'snow'", "5"] {
            assert!(!found(token), "{token}");
        }
    }
}
