//! The state *audit*: the plan proof is repeated, with the literals of the moment.

use super::answer::Answer;
use super::proof::{Hidden, Plan};
use super::question::Instead;
use super::state::{State, Step};
use super::{Env, explain, lists, proof, question};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::stays::Blame;
use crate::statement::hindrance::Hindrance;
use crate::statement::mirror::Name;
use crate::statement::story::Episode;
use crate::statement::{Statement, Verdict};
use std::sync::Arc;

/// Asks for the plan of the text, and for the generic plan of the statement that this connection
/// holds under this name.
pub(super) fn ask(
    statement: &Arc<Statement>,
    name: Name,
    text: &[u8],
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let recipe = statement.recipe();
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    env.lent.scan_again(text, env.standing.dialect, recipe)?;
    let scan = &env.lent.scan;
    let execute =
        question::explain_execute(name.as_bytes(), text, scan, eligible, Instead::Nothing);
    env.asks.careful(&question::explain(text, scan));
    env.asks.careful(&question::explain_generic(&execute));
    Ok(Step::Ask(State::Audit(Arc::clone(statement))))
}

/// Both plans are here: a generic plan that is no longer the literals' is given up.
pub(super) fn answered(
    statement: &Statement,
    answers: &[Answer],
    env: &mut Env<'_>,
) -> Result<(), Reason> {
    let [original, generic] = answers else {
        return Err(Reason::OracleFailed);
    };
    if !original.is_good() || !generic.is_good() {
        return Err(Reason::OracleFailed);
    }
    let mirror = &mut env.standing.mirror;
    let entry = mirror.lookup(statement.key());
    let terms = entry.map(|entry| Arc::clone(&entry.terms));
    let terms = terms.ok_or(Reason::Unstable)?;
    let bare = explain::bare(statement);
    let hidden = Hidden {
        bare: &bare,
        stored: &terms.stored,
    };
    let plans = Plan::read(original).ok().zip(Plan::read(generic).ok());
    let plans = plans.map(|(original, generic)| (original, proof::as_values(statement, generic)));
    let guards = plans.as_ref().and_then(|(original, generic)| {
        proof::same_plan(original, generic, &terms.kinds(), &hidden)
    });
    // By whatever plan, the one row is the same.
    let is_as_good =
        |(original, generic): &(Plan, Plan)| proof::is_as_good(generic, original, &terms.kinds());
    let may_differ = guards.is_none() && terms.one_row && plans.as_ref().is_some_and(is_as_good);
    let passed = may_differ || guards == Some(lists::without_lengths(&terms.guards));
    let counter = match passed {
        true => Counter::AuditsPassed,
        false => Counter::AuditsFailed,
    };
    env.lent.counters().add(counter, 1);
    if passed {
        return Ok(());
    }
    mirror.remove(statement.key());
    let apart = plans.map(|(original, generic)| proof::arguments_apart(&original, &generic));
    let apart = statement.recipe().literals_of(&apart.unwrap_or_default());
    let story = statement.recipe().story();
    story.note(Episode::AuditFailed(apart));
    tracing::info!(
        shape = statement.recipe().shape().text_for_display(),
        "an audit has failed: the plan of the statement is not that of its values any more"
    );
    match statement.recipe().narrowed(&terms.naming) {
        // A table has grown, say: the server would make another plan for all values now, too, but
        // keeps the one that it has (`choose_custom_plan` in `plancache.c`).
        _ if !statement.recipe().shape().has_rows()
            && env.lent.shapes.renew(statement.recipe()) => {}
        _ if statement.recipe().shape().has_rows() => {
            env.lent.shapes.unfold(statement.recipe());
        }
        Some(narrow) => {
            env.lent.shapes.narrow(statement.recipe(), narrow);
        }
        None => {
            let epoch = env.standing.database.epoch();
            statement.record(Verdict::Specific {
                hindrance: Hindrance::OtherPlan,
                blame: Blame::on(apart),
                epoch,
            });
        }
    }
    Ok(())
}
