//! The state *explain*: the oracle is asked for the plans of the candidate, and for what only the
//! catalog knows.
//!
//! The custom plan must be the original's to the letter. Which theorem lets the statement be
//! planned once, or that there is none, is then a matter of the generic plan.

use super::answer::Answer;
use super::candidate::{Candidate, Charge, Proven, positions};
use super::lists;
use super::proof::{self, Hidden, Meaning, Plan};
use super::state::{About, Exposure, Questions, Step};
use super::topic::Topic;
use super::{Env, catalog, chosen, keys, question, travel};
use crate::convert::Strictness;
use crate::reason::Reason;
use crate::sql::eligible::{self, Eligible};
use crate::sql::stays::Blame;
use crate::sql::{Literal, value};
use crate::statement::hindrance::Hindrance;
use crate::statement::{Plans, Statement, Terms};
use std::sync::Arc;
use std::vec::IntoIter;

/// The answers, each of those that were asked for.
struct Answers {
    original: Answer,
    custom: Answer,
    generic: Option<Answer>,
    others: Option<Answer>,
    rights: Option<Answer>,
    catalog: Option<Answer>,
}

/// Asks for the plans of the candidate, and for what only the catalog knows. `text` is the one that
/// was scanned last.
///
/// EXPLAIN EXECUTE reads the values, for which a domain runs the checks that users have made. So
/// where the types may be domains, that is asked alone and first.
pub(super) fn ask(
    candidate: Candidate,
    eligible: &Eligible,
    text: &[u8],
    env: &mut Env<'_>,
) -> Step {
    let types = &candidate.terms.types;
    let question = catalog::of_statement(types, eligible);
    match question.filter(|_| catalog::may_be_domains(types)) {
        Some(question) => {
            env.ask_catalog(&question);
            let put = Questions {
                is_first: true,
                ..Questions::default()
            };
            Step::ask(candidate, About::Explain(put))
        }
        None => ask_plans(candidate, eligible, text, env),
    }
}

/// Asks for the plans, and for the rest.
///
/// The order of the questions is that in which [`read`] reads the answers.
fn ask_plans(candidate: Candidate, eligible: &Eligible, text: &[u8], env: &mut Env<'_>) -> Step {
    let (statement, types) = (&candidate.statement, &candidate.terms.types);
    let (scan, asks) = (&env.lent.scan, &mut *env.asks);
    let (recipe, name) = (statement.recipe(), candidate.name.as_bytes());
    let execute = question::explain_execute(name, text, scan, eligible, question::Instead::Nothing);
    let has_indirect_rights = env.standing.settings.has_indirect_rights;
    let others = lists::types_question(types, (scan, recipe), eligible);
    let rights = has_indirect_rights.then(|| catalog::indirect_rights(text));
    let catalog = catalog::of_statement(types, eligible);
    let put = Questions {
        is_first: false,
        generic: statement.plans() == Plans::Generic,
        others: others.is_some(),
        rights: rights.is_some(),
        catalog: catalog.is_some(),
    };
    asks.careful(&question::explain(text, scan));
    asks.careful(&execute);
    if put.generic {
        asks.careful(&question::explain_generic(&execute));
    }
    for question in others.iter().chain(&rights).chain(&catalog) {
        env.ask_catalog(question);
    }
    Step::ask(candidate, About::Explain(put))
}

/// Gives each answer its name. `None` if there are too few, which [`ask`] rules out.
fn read(put: Questions, answers: Vec<Answer>) -> Option<Answers> {
    let mut answers = answers.into_iter();
    Some(Answers {
        original: answers.next()?,
        custom: answers.next()?,
        generic: next_if(put.generic, &mut answers)?,
        others: next_if(put.others, &mut answers)?,
        rights: next_if(put.rights, &mut answers)?,
        catalog: next_if(put.catalog, &mut answers)?,
    })
}

/// It is known whether the types are domains.
fn first_answered(
    mut candidate: Candidate,
    answers: &[Answer],
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let answer = answers.first().ok_or(Reason::OracleFailed)?;
    let found = match catalog::read(answer) {
        Ok(found) => found,
        Err(reason) => return Err(refused(reason, answer, &candidate, env)),
    };
    if !found.domains.is_empty() {
        let demoted = positions(&candidate.terms.types, |o| found.domains.contains(&o));
        return candidate.demote(&demoted, topic, env).map(Step::Teach);
    }
    candidate.reads_each_time(&found.naming);
    let recipe = Arc::clone(candidate.statement.recipe());
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    let (text, dialect) = (&topic.text, env.standing.dialect);
    env.lent.scan_again(text, dialect, &recipe)?;
    Ok(ask_plans(candidate, eligible, text, env))
}

/// The plans are here: the custom plan must be the original's to the letter, the generic plan the
/// same but for its constants.
pub(super) fn answered(
    put: Questions,
    mut candidate: Candidate,
    answers: Vec<Answer>,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    if put.is_first {
        return first_answered(candidate, &answers, topic, env);
    }
    let answers = read(put, answers).ok_or(Reason::OracleFailed)?;
    let (original, custom) = (answers.original, answers.custom);
    if original.overflowed || custom.overflowed {
        return Err(candidate.decline(Reason::DifferentPlan, "", env));
    }
    if !original.is_good() {
        return Err(candidate.give_up(env.standing));
    }
    if !custom.is_good() {
        return unplanned(&candidate, &custom, topic, env);
    }
    let original = match Plan::read(&original) {
        Ok(original) => original,
        Err(reason) => return Err(candidate.decline(reason, "", env)),
    };
    if answers.others.as_ref().is_some_and(lists::may_be_others) {
        let again = candidate.refuse(Reason::Refused, "", topic, env);
        return again.map(Step::Teach);
    }
    if answers.rights.is_some_and(|rights| rights.values != ["0"]) {
        return Err(candidate.decline(Reason::RoleRights, "", env));
    }
    let mut immutable = true;
    if let Some(answer) = answers.catalog {
        let found = match catalog::read(&answer) {
            Ok(found) => found,
            Err(reason) => return Err(refused(reason, &answer, &candidate, env)),
        };
        immutable = found.immutable;
        if let Some(eligible) = candidate.statement.recipe().eligible() {
            candidate.terms = Arc::new(Terms {
                stored: found.stored(eligible),
                ..Terms::clone(&candidate.terms)
            });
        }
        if !found.domains.is_empty() {
            let demoted = positions(&candidate.terms.types, |o| found.domains.contains(&o));
            return candidate.demote(&demoted, topic, env).map(Step::Teach);
        }
        candidate.reads_each_time(&found.naming);
    }
    if read_as_values(&candidate, &custom).as_ref() != Some(&original) {
        let charge = charge((&original, &custom), &candidate, topic, env);
        let again = candidate.refuse(charge, "", topic, env);
        return again.map(Step::Teach);
    }
    candidate.terms = Arc::new(Terms {
        plan_bytes: plan_bytes(&custom, answers.generic.as_ref()),
        ..Terms::clone(&candidate.terms)
    });
    let Some(generic) = answers.generic else {
        return travel::trust(&candidate, Proven::default(), env);
    };
    match read_as_values(&candidate, &generic) {
        Some(generic) if immutable => {
            generic_explained(candidate, (&original, generic), topic, env)
        }
        read => {
            let why = match read {
                Some(_) => Hindrance::Calls,
                None => Hindrance::OtherPlan,
            };
            candidate.specify((why, &[]), topic, env).map(Step::Teach)
        }
    }
}

/// The next answer if the question was put; `None` if it is missing.
fn next_if(was_put: bool, answers: &mut IntoIter<Answer>) -> Option<Option<Answer>> {
    match was_put {
        true => answers.next().map(Some),
        false => Some(None),
    }
}

/// The original has a plan and the rewritten text has none: that may be the fault of a list, as of
/// one of boxes, whose arrays have semicolons. Otherwise nothing is known.
fn unplanned(
    candidate: &Candidate,
    custom: &Answer,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let lists = !candidate.statement.recipe().list_arguments().is_empty();
    let state = custom.sqlstate();
    if lists && state.starts_with("22") {
        let again = candidate.refuse(Reason::Refused, &state, topic, env);
        return again.map(Step::Teach);
    }
    Err(candidate.give_up(env.standing))
}

/// The custom plan is the original's: the generic plan must be the same but for its constants, or
/// at least mean the same if the server may choose.
fn generic_explained(
    candidate: Candidate,
    (original, generic): (&Plan, Plan),
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let recipe = candidate.statement.recipe();
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    let (types, bare) = (candidate.terms.kinds(), bare(&candidate.statement));
    let hidden = Hidden {
        bare: &bare,
        stored: &candidate.terms.stored,
    };
    let may_choose = env.lent.settings.strictness == Strictness::Server;
    let meaning = match may_choose && !recipe.shape().has_rows() {
        true => Meaning::of(original, &generic, &types, (&hidden, eligible)),
        false => None,
    };
    let lists = recipe.list_arguments();
    let mut meaning = meaning.filter(|meaning| meaning.searches_for(&lists));
    // What a transaction has defined, or sees of before, others do not.
    let shared = (!env.standing.sees_otherwise()).then(|| Arc::clone(&env.standing.database));
    if let Some(meaning) = &mut meaning {
        meaning.shares(shared.as_deref());
    }
    let meaning = meaning.map(Box::new);
    let exposed = match proof::exposed(original, &generic, &types, (&hidden, eligible)) {
        Ok(exposed) => Some(exposed),
        Err(apart) if apart.fixable.is_empty() => None,
        Err(apart) => return candidate.fix(&apart.fixable, topic, env).map(Step::Teach),
    };
    let dialect = env.standing.dialect;
    env.lent.scan_again(&topic.text, dialect, recipe)?;
    let why = match &exposed {
        Some(_) => Hindrance::TriedOut,
        None => Hindrance::OtherPlan,
    };
    let exposed = exposed.filter(|(visibility, _)| !visibility.is_open());
    let Some((mut visibility, guards)) = exposed else {
        return chosen::ask_without_theorem(meaning, why, candidate, topic, env);
    };
    visibility.knows_text(&topic.text, &env.lent.scan, eligible);
    visibility.shares(shared.as_deref());
    let lists = lists::of_plan(
        &visibility,
        &guards,
        (candidate.statement.recipe(), dialect.server_major),
    );
    let exposure = Exposure {
        generic,
        visibility: Box::new(visibility),
        guards,
        lists,
        meaning,
    };
    keys::begin(exposure, candidate, topic, env)
}

/// How long the plan is that says how much memory the statement takes: the generic one if that is
/// kept, or else what there is to be planned, without what planning makes of partitions.
fn plan_bytes(custom: &Answer, generic: Option<&Answer>) -> usize {
    let plan = |answer: &Answer| Plan::read(answer).ok();
    match generic.and_then(plan) {
        Some(generic) => generic.length(true),
        None => plan(custom).map_or(0, |custom| custom.length(false)),
    }
}

/// The catalog's answer forbids the statement, perhaps for the types of some arguments.
fn refused(reason: Reason, answer: &Answer, candidate: &Candidate, env: &mut Env<'_>) -> Reason {
    let unstable = catalog::unstable(answer);
    let arguments = positions(&candidate.terms.types, |oid| unstable.contains(&oid));
    candidate.decline(candidate.because_of(reason, &arguments), "", env)
}

/// Why the plan of the literals is another than that of the text, and because of which of them.
fn charge(
    (original, custom): (&Plan, &Answer),
    candidate: &Candidate,
    topic: &Topic,
    env: &mut Env<'_>,
) -> Charge {
    let (dialect, recipe) = (env.standing.dialect, candidate.statement.recipe());
    let scanned = env.lent.scan_again(&topic.text, dialect, recipe);
    let (text, scan) = (&topic.text[..], &env.lent.scan);
    let literals = match scanned {
        Ok(()) => scan.literals(),
        Err(_) => &[],
    };
    let is_moment = |literal: &&Literal| {
        let mut values = scan.elements(literal).iter();
        values.any(|value| eligible::is_volatile(text, value))
    };
    // Between the two questions such a word has come to mean another moment, so that the plans
    // cannot be the same: who wants the statement converted has to write something else.
    if let Some(index) = literals.iter().position(|literal| is_moment(&literal)) {
        return Charge {
            reason: Reason::VolatileLiteral,
            blame: Blame::on([index].into_iter().collect()),
        };
    }
    let values: Vec<Vec<u8>> = literals
        .iter()
        .map(|literal| value::of(text, literal))
        .collect();
    let apart = read_as_values(candidate, custom)
        .map(|custom| proof::values_apart(original, &custom, &values))
        .unwrap_or_default();
    Charge {
        reason: Reason::DifferentPlan,
        blame: Blame::on(apart.into_iter().collect()),
    }
}

/// The plan of the rewritten text; `None` if there is none.
fn read_as_values(candidate: &Candidate, answer: &Answer) -> Option<Plan> {
    let plan = Plan::read(answer).ok().filter(|_| answer.is_good())?;
    Some(proof::as_values(&candidate.statement, plan))
}

/// For each argument of the statement whether nothing is done with it where it stands.
pub(super) fn bare(statement: &Statement) -> Vec<bool> {
    let Some(eligible) = statement.recipe().eligible() else {
        return Vec::new();
    };
    let lifted = eligible.arguments.iter().zip(&eligible.bare);
    lifted
        .filter_map(|(argument, bare)| argument.then_some(*bare))
        .collect()
}
