//! The state *values*: the oracle is asked which common values get the plan that all others get.
//!
//! Each common value has a frequency of its own, so it may have a plan of its own: all are left
//! out of the theorem of one plan. But a column of a few kinds has nothing but common values, and
//! most of them get the same plan as the others. Where they are the values of one argument, and
//! few, the server says of which of them that holds, and whether it holds of those that are not
//! common: the text at hand may have a common one. With these the theorem holds, for the statistics
//! of now and the present size of the tables. Which plan a value gets does not depend on the other
//! arguments, which have no common values and need not differ from it.

use super::Env;
use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::proof;
use super::question::{self, Instead};
use super::state::{About, Step, Valued};
use super::topic::Topic;
use super::travel;
use crate::reason::Reason;
use crate::statement::Terms;
use crate::statement::common_values::Common;
use crate::statement::hindrance::Hindrance;

/// The most values that are asked about: a column may have a hundred, and each costs about what is
/// saved by one execution.
const MOST: usize = 24;

/// The same where the server was asked little of late, for as many tenants or categories as many
/// tables have: together they take about as long as the lesson without them.
const MOST_OF_PLENTY: usize = 64;

/// The argument whose common values are worth asking about, and these behind one that is not
/// common: they are all there are, few, beside no list, and can be written without escapes.
pub(super) fn to_ask(
    common: &[Common],
    candidate: &Candidate,
    env: &Env<'_>,
) -> Option<(usize, Vec<Box<[u8]>>)> {
    let [only] = common else { return None };
    let is_plenty =
        env.lent.shapes.questions().are_ample(env.now) && env.standing.database.affords();
    let most = if is_plenty { MOST_OF_PLENTY } else { MOST };
    // Of a list the length matters, too, and each with each value would have to be asked about.
    let has_lists = !candidate.statement.recipe().list_arguments().is_empty();
    let is_asked = (1..=most).contains(&only.count()) && !has_lists;
    let values = only.written();
    let is_plain = !values.iter().any(|value| value.contains(&b'\\'));
    // What is asked about first is a value that is not common.
    let asked = [vec![only.other()], values].concat();
    (is_asked && is_plain).then_some((only.argument, asked))
}

/// Asks for the plan of each of them.
pub(super) fn ask(
    valued: Valued,
    candidate: Candidate,
    topic: &Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let recipe = candidate.statement.recipe();
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    env.lent
        .scan_again(&topic.text, env.standing.dialect, recipe)?;
    let (scan, name) = (&env.lent.scan, candidate.name.as_bytes());
    for value in &valued.asked {
        let instead = Instead::Value(valued.argument, value);
        let question = question::explain_execute(name, &topic.text, scan, eligible, instead);
        env.asks.careful(&question::explain_custom(&question));
    }
    Ok(Step::ask(candidate, About::Values(Box::new(valued))))
}

/// The plans are here: values that have the generic one are as good as those that are not common,
/// or it is for them alone.
pub(super) fn answered(
    valued: Valued,
    candidate: &Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let Valued {
        generic,
        mut proven,
        argument,
        asked,
    } = valued;
    let types = &candidate.terms.types;
    let is_alike = |answer: &Answer| proof::is_alike(answer, &generic, types);
    let mut found = asked.iter().zip(answers.iter().map(is_alike));
    let is_usual = found.next().is_some_and(|(_, is_alike)| is_alike);
    let alike = found.filter(|(_, is_alike)| *is_alike);
    let alike = alike.map(|(value, _)| &**value);
    let mut common = proven.common.iter_mut();
    match common.find(|common| common.argument == argument) {
        Some(common) if is_usual => common.remove(alike),
        Some(common) => common.permit(alike),
        None => {}
    }
    proven.common.retain(|common| !common.is_void());
    conclude(proven, candidate, topic, env)
}

/// The generic plan is trusted for other values than were left out, if this query has none of
/// those, about which alone something was proven.
pub(super) fn conclude(
    proven: Proven,
    candidate: &Candidate,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let terms = Terms {
        common: proven.common.clone().into(),
        apart: proven.apart.clone().into(),
        ..Terms::clone(&candidate.terms)
    };
    let recipe = candidate.statement.recipe();
    let dialect = env.standing.dialect;
    env.lent.scan_again(&topic.text, dialect, recipe)?;
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    if !terms.admit(eligible, &topic.text, &env.lent.scan) {
        let common = terms.common.iter().map(|common| common.argument);
        let arguments: Vec<_> = common.chain(terms.apart.iter().copied()).collect();
        return candidate
            .specify((Hindrance::Common, &arguments), topic, env)
            .map(Step::Teach);
    }
    travel::trust(candidate, proven, env)
}
