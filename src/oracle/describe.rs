//! The state *describe*: the original and the rewritten text are parsed and described.

use super::answer::Answer;
use super::candidate::{Candidate, Charge, positions};
use super::state::{About, Step};
use super::topic::Topic;
use super::{Env, catalog, explain, lists};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::stays::Blame;
use crate::sql::{Dialect, Scan, oid};
use crate::statement::Terms;
use crate::wire::backend;
use std::sync::Arc;

/// Has the original parsed, and the candidate under a name on this connection. The scan is that of
/// the text.
///
/// # Errors
/// [`Reason::CacheFull`].
pub(super) fn ask(
    mut candidate: Candidate,
    text: &[u8],
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    candidate.enroll(env)?;
    let statement = &candidate.statement;
    let body = text.get(env.lent.scan.body()).unwrap_or_default();
    env.asks.parse(b"", body, &[]);
    let declared = statement.declared(&candidate.terms);
    let name = candidate.name.as_bytes();
    env.asks.parse(name, statement.text(), &declared);
    Ok(Step::ask(candidate, About::Describe))
}

/// The answer to the Parse of the candidate.
pub(super) fn parse(answers: &[Answer]) -> Option<&Answer> {
    answers.get(1)
}

/// Both texts were parsed and described: they must agree, and the inferred types must be allowed.
pub(super) fn answered(
    mut candidate: Candidate,
    answers: Vec<Answer>,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let Ok([original, rewritten]) = <[Answer; 2]>::try_from(answers) else {
        return Err(Reason::OracleFailed);
    };
    if rewritten.error.is_some() {
        env.standing.mirror.revoke(candidate.statement.key());
    }
    if !original.is_good() {
        return Err(candidate.give_up(env.standing));
    }
    if !rewritten.is_good() {
        let again = match rewritten.parameter_named() {
            Some(argument) => candidate.demote(&[argument], topic, env),
            None => {
                let pointed = rewritten.parameter_pointed_at(candidate.statement.text());
                let refused = candidate.because_of(Reason::Refused, pointed.as_slice());
                candidate.refuse(refused, &rewritten.sqlstate(), topic, env)
            }
        };
        return again.map(Step::Teach);
    }
    env.lent.counters().add(Counter::StatementsPrepared, 1);
    if original.description != rewritten.description {
        let different = Charge {
            reason: Reason::DifferentResult,
            blame: Blame {
                column: other_column(&original, &rewritten),
                ..Blame::default()
            },
        };
        let again = candidate.refuse(different, "", topic, env);
        return again.map(Step::Teach);
    }
    // Said once, when the statement is parsed, and not whenever it is executed (H-32).
    if rewritten.notices {
        return Err(candidate.decline(Reason::Refused, "notice", env));
    }
    let types = rewritten.types.unwrap_or_default();
    let Some(types) = candidate.statement.types_of(&types) else {
        return Err(candidate.decline(Reason::Refused, "", env));
    };
    let recipe = Arc::clone(candidate.statement.recipe());
    let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
    let (text, dialect) = (&topic.text, env.standing.dialect);
    env.lent.scan_again(text, dialect, &recipe)?;
    let forbidden = forbidden(types, &env.lent.scan, eligible, dialect);
    if !forbidden.is_empty() {
        return candidate.demote(&forbidden, topic, env).map(Step::Teach);
    }
    candidate.terms = Arc::new(Terms {
        types: types.into(),
        naming: positions(types, catalog::is_naming).into(),
        elements: candidate.terms.elements.clone(),
        effect: candidate.terms.effect,
        residue: candidate.terms.residue,
        ..Terms::default()
    });
    candidate.verified = env.now;
    Ok(explain::ask(candidate, eligible, text, env))
}

/// The number of the first column of the result that is not the same in both, from one on; zero if
/// one has none.
fn other_column(original: &Answer, rewritten: &Answer) -> u16 {
    let columns = |answer: &Answer| {
        let description = answer.description.as_deref().unwrap_or_default();
        backend::described(description)
            .map(<[u8]>::to_vec)
            .collect()
    };
    let (original, rewritten): (Vec<_>, Vec<_>) = (columns(original), columns(rewritten));
    let most = original.len().max(rewritten.len());
    let other = (0..most).find(|at| original.get(*at) != rewritten.get(*at));
    other.map_or(0, |at| u16::try_from(at + 1).unwrap_or(u16::MAX))
}

/// The arguments that must not be bound to parameters of the inferred types.
fn forbidden(types: &[u32], scan: &Scan, eligible: &Eligible, server: Dialect) -> Vec<usize> {
    let mut forbidden = intervals(types, eligible);
    forbidden.extend(lists::misfits(types, scan, eligible));
    // Of each that is empty there is a notice (H-32). 13 does not say of which, and those of
    // several come in the order of the parameters, which need not be that of the literals.
    let queries = positions(types, |oid| oid == oid::TSQUERY);
    if server.server_major < 14 || queries.len() > 1 {
        forbidden.extend(queries);
    }
    forbidden
}

/// Whether a string may not be bound to a parameter of this built-in type: `interval` and its array
/// ignore a column's fields (H-04), unless the literal is cast to plain `interval` on the spot.
const fn is_forbidden(oid: u32, plain_cast: bool) -> bool {
    oid == 1187 || oid == 1186 && !plain_cast
}

/// The arguments whose inferred types no string may be bound to (H-04, H-05).
fn intervals(types: &[u32], eligible: &Eligible) -> Vec<usize> {
    let lifted = eligible.arguments.iter().zip(&eligible.interval_casts);
    let casts = lifted.filter_map(|(argument, cast)| argument.then_some(*cast));
    let forbidden = types
        .iter()
        .zip(casts)
        .enumerate()
        .filter(|(_, (oid, cast))| is_forbidden(**oid, *cast));
    forbidden.map(|(index, _)| index).collect()
}
