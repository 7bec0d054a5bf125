//! The state *prepare*: a statement that is trusted already is parsed on this connection.

use super::answer::Answer;
use super::candidate::Candidate;
use super::state::{About, Step};
use super::{Env, lists};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::statement::Verdict;
use std::sync::Arc;

/// Has the candidate parsed under a name on this connection, and warmed if it has a list. The scan
/// is that of the text.
///
/// # Errors
/// [`Reason::CacheFull`].
pub(super) fn ask(
    mut candidate: Candidate,
    text: &[u8],
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    candidate.enroll(env)?;
    let (statement, terms) = (&candidate.statement, &candidate.terms);
    let name = candidate.name.as_bytes();
    let declared = statement.declared(terms);
    env.asks.parse(name, statement.text(), &declared);
    let scan = &env.lent.scan;
    for question in lists::warming_questions((statement, terms), name, text, scan) {
        env.asks.careful(&question);
    }
    Ok(Step::ask(candidate, About::Prepare))
}

/// The answer to the Parse of the candidate.
pub(super) fn parse(answers: &[Answer]) -> Option<&Answer> {
    answers.first()
}

/// The answers that matter: what follows the Parse only warms the statement.
pub(super) fn decisive(answers: &[Answer]) -> &[Answer] {
    answers.get(..1).unwrap_or_default()
}

/// A trusted statement was parsed on this connection: it must infer the types it was trusted with.
pub(super) fn answered(
    candidate: Candidate,
    answers: &[Answer],
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let answer = parse(answers).ok_or(Reason::OracleFailed)?;
    let (statement, mirror) = (&candidate.statement, &mut env.standing.mirror);
    if !answer.is_good() {
        mirror.revoke(statement.key());
        statement.record(Verdict::Unasked);
        return Err(Reason::Refused);
    }
    env.lent.counters().add(Counter::StatementsPrepared, 1);
    let types = answer
        .types
        .as_deref()
        .and_then(|types| statement.types_of(types));
    if types != Some(&candidate.terms.types) {
        // The catalog has changed unseen: everything about this statement is asked anew.
        mirror.remove(statement.key());
        statement.record(Verdict::Unasked);
        return Err(Reason::Refused);
    }
    candidate.confirm(Arc::clone(&candidate.terms), env);
    Ok(Step::Learned)
}
