//! The state *context*: the oracle is asked for the settings of the session, and who it is.

use super::Env;
use super::answer::Answer;
use super::settings::{DDL_CHANNEL, Hears, Indirect, Rights, context_query, digest};
use super::state::{State, Step};
use crate::reason::Reason;
use crate::sql::residue::Residue;
use crate::standing::ServerSettings;
use crate::wire::backend::Status;
use crate::wire::frontend;

/// Asks for the context. What makes the question careful is part of it, in a place where it does
/// not show. What the catalog alone knows of it is left out if it is known of a role already, most
/// likely of this session's. A transaction may see other rights than anybody else.
pub(super) fn ask(env: &mut Env<'_>) -> Step {
    let standing = &env.standing;
    let may_be_known = !env.asks.is_inside && !standing.is_otherwise;
    match may_be_known && standing.database.knows_rights() {
        true => ask_with(Rights::Known, env),
        false => ask_with(Rights::Asked, env),
    }
}

fn ask_with(rights: Rights, env: &mut Env<'_>) -> Step {
    // What is listened to inside a transaction that is undone is not.
    let listens = env.lent.settings.ddl_notices && !env.asks.is_inside;
    env.standing.is_told |= listens;
    let settings = &env.lent.settings;
    let hears =
        (settings.shares || settings.deferred_begin).then_some(match env.standing.is_told {
            true => DDL_CHANNEL,
            false => "",
        });
    // In a transaction there may be more than it leaves.
    let asks_for_left = hears.is_some() && !env.asks.is_inside && env.standing.asks_for_left();
    let may_lock = env.standing.residue.has(Residue::LOCKS);
    let hears = hears.map(|but| Hears {
        but,
        asks_for_left,
        may_lock,
    });
    let query = context_query(listens, settings.shares, hears, rights);
    env.asks
        .question(|out| frontend::query(out, query.as_bytes()));
    Step::Ask(State::Context(rights))
}

/// The context is known, or has to be asked for with everything after all.
pub(super) fn answered(
    asked: Rights,
    answers: &[Answer],
    env: &mut Env<'_>,
) -> Result<Option<Step>, Reason> {
    let answer = answers.first().filter(|answer| answer.is_good());
    let values = digest(&answer.ok_or(Reason::OracleFailed)?.values)?;
    match (read(&values, env)?, asked) {
        (true, _) => {}
        (false, Rights::Known) => return Ok(Some(ask_with(Rights::Asked, env))),
        (false, Rights::Asked) => return Err(Reason::OracleFailed),
    }
    let standing = &mut *env.standing;
    let lookups = standing.mirror.lookups();
    standing.patience.learned(lookups);
    standing.idle_patience.learned(lookups);
    Ok(None)
}

/// In how many schemas the role has rights only because of what it is or a member of: as the server
/// has just said, or as it has said of this role before; `None` if nobody knows.
fn indirect_schemas(said: &str, env: &mut Env<'_>) -> Option<bool> {
    let Indirect { count, role } = Indirect::read(said);
    let (standing, is_inside) = (&mut *env.standing, env.asks.is_inside);
    let as_of = standing.context_count;
    let has_any = match count {
        Some(count) => Some(count != "0"),
        None => standing.database.rights_of(role, as_of),
    };
    standing.is_otherwise |= role.is_empty();
    if let Some(has_any) = has_any.filter(|_| count.is_some() && !is_inside) {
        standing.database.notes_rights(role, as_of, has_any);
    }
    has_any
}

/// Takes over the values that [`digest`] has made. Returns whether they are all that is needed.
fn read(values: &[String], env: &mut Env<'_>) -> Result<bool, Reason> {
    let [
        chooses,
        quiet,
        nulls,
        memory,
        indirect,
        process,
        settings,
        serializable,
        extensions,
        server,
        left,
        usual,
        unhurried,
        idle,
    ] = values
    else {
        return Err(Reason::OracleFailed);
    };
    if !env.standing.is_answered_by(process.parse().ok(), env.now) {
        return Err(Reason::RelayOnly);
    }
    let Some(has_indirect_rights) = indirect_schemas(indirect, env) else {
        return Ok(false);
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
        has_indirect_rights,
        server: started(server),
        reads_committed: usual == "t",
        is_unhurried: unhurried == "t",
        may_idle: idle == "t",
    };
    let listens = standing.is_told;
    standing.learned(context, settings, extensions, listens);
    standing.is_told_of_left(left);
    Ok(true)
}

/// When a server started, in microseconds, from the seconds that it says; `None` if it was not
/// asked.
fn started(seconds: &str) -> Option<u64> {
    let micros = seconds.parse::<f64>().ok()? * 1e6;
    (micros > 0.0).then_some(micros.round() as u64)
}
