//! The state *context*: the oracle is asked for the settings of the session, and who it is.

use super::Env;
use super::answer::Answer;
use super::settings::{DDL_CHANNEL, context_query, digest};
use super::state::{State, Step};
use crate::reason::Reason;
use crate::standing::ServerSettings;
use crate::wire::backend::Status;
use crate::wire::frontend;

/// Asks for the context. What makes the question careful is part of it, in a place where it does
/// not show.
pub(super) fn ask(env: &mut Env<'_>) -> Step {
    // What is listened to inside a transaction that is undone is not.
    let listens = env.lent.settings.ddl_notices && !env.asks.is_inside;
    env.standing.is_told |= listens;
    let settings = &env.lent.settings;
    let hears =
        (settings.shares || settings.deferred_begin).then_some(match env.standing.is_told {
            true => DDL_CHANNEL,
            false => "",
        });
    let query = context_query(listens, settings.shares, hears);
    env.asks
        .question(|out| frontend::query(out, query.as_bytes()));
    Step::Ask(State::Context)
}

/// The context is known.
pub(super) fn answered(answers: &[Answer], env: &mut Env<'_>) -> Result<(), Reason> {
    let answer = answers.first().filter(|answer| answer.is_good());
    let values = digest(&answer.ok_or(Reason::OracleFailed)?.values)?;
    read(&values, env)?;
    let standing = &mut *env.standing;
    let lookups = standing.mirror.lookups();
    standing.patience.learned(lookups);
    standing.idle_patience.learned(lookups);
    Ok(())
}

/// Takes over the values that [`digest`] has made.
fn read(values: &[String], env: &mut Env<'_>) -> Result<(), Reason> {
    let [
        chooses,
        quiet,
        nulls,
        memory,
        indirect,
        settings,
        serializable,
        extensions,
        server,
        silent,
        usual,
        unhurried,
        idle,
    ] = values
    else {
        return Err(Reason::OracleFailed);
    };
    let contexts = env.lent.shapes.contexts();
    let interned = contexts.intern(&env.standing.origin, settings);
    let context = interned.context();
    let standing = &mut *env.standing;
    standing.interned = Some(interned);
    // What the default is, belongs to the context.
    standing.is_serializable |= standing.status != Status::Idle && serializable == "t";
    let settings = ServerSettings {
        chooses_plans: chooses == "t",
        is_quiet: quiet == "t",
        has_array_nulls: nulls == "t",
        work_memory: memory.parse().unwrap_or_default(),
        has_indirect_rights: indirect != "0",
        server: started(server),
        reads_committed: usual == "t",
        is_unhurried: unhurried == "t",
        may_idle: idle == "t",
    };
    let listens = standing.is_told;
    standing.learned(context, settings, extensions, listens);
    if silent == "t" {
        standing.listens_to_nothing();
    }
    Ok(())
}

/// When a server started, in microseconds, from the seconds that it says; `None` if it was not
/// asked.
fn started(seconds: &str) -> Option<u64> {
    let micros = seconds.parse::<f64>().ok()? * 1e6;
    (micros > 0.0).then_some(micros.round() as u64)
}
