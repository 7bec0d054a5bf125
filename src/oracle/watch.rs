//! The state *watch*: the oracle is asked what the catalog looks like; before that, in the state
//! *glance*, whether anything is otherwise than it was.

use super::answer::Answer;
use super::state::{State, Step};
use super::{Env, sign};
use crate::reason::Reason;
use crate::statement::Millis;
use crate::statement::database::{Glance, Glimpse, Horizon, Made, Reading, Sight};

/// Asks what the catalog looks like, or whether it may look otherwise, unless that was asked
/// before. Inside a transaction only the former: it sees what it has changed itself.
pub(super) fn ask(is_inside: bool, behind: Option<Glance>, env: &mut Env<'_>) -> Step {
    let glance = match is_inside {
        true => None,
        false => env.standing.database.glance(behind),
    };
    let Some(glance) = glance else {
        return look(env);
    };
    env.asks.careful(sign::glance(glance).as_bytes());
    Step::Ask(State::Glance(env.now, glance))
}

/// Asks what the catalog looks like.
fn look(env: &mut Env<'_>) -> Step {
    let made = env.standing.database.made();
    env.asks.careful(sign::sign(made.names()).as_bytes());
    Step::Ask(State::Watch(env.now, made))
}

/// The answer to a glance is here. Returns whether it was as good as a look.
///
/// # Errors
/// [`Reason::RelayOnly`]: it came from a process of a pooler's.
pub(super) fn glanced(
    (asked, glance): (Millis, Glance),
    answers: &[Answer],
    env: &mut Env<'_>,
) -> Result<bool, Reason> {
    let seen = match answers {
        [answer] if answer.is_good() => answer.values.first(),
        _ => None,
    };
    let mut parts = seen.map_or("", |seen| seen).split(' ');
    tells_process(&mut parts, env)?;
    let (reading, horizon) = (reading(&mut parts), horizon(&mut parts));
    let newer = parts.next().and_then(|newer| newer.parse().ok());
    let glimpse = reading.zip(horizon).map(|(reading, horizon)| Glimpse {
        glance,
        horizon,
        newer,
        reading,
    });
    let standing = &mut *env.standing;
    let database = &standing.database;
    let is_same = glimpse.is_some_and(|glimpse| database.glanced(glimpse, (asked, env.now)));
    if is_same {
        standing.is_new = false;
        if standing.unverified.is_some() {
            standing.verified();
        }
    }
    Ok(is_same)
}

/// The catalog was looked at. An answer that failed says nothing; the age of statements bounds what
/// that can cost.
///
/// # Errors
/// [`Reason::RelayOnly`]: it came from a process of a pooler's.
pub(super) fn answered(
    (asked, is_inside): (Millis, bool),
    made: Made,
    answers: &[Answer],
    env: &mut Env<'_>,
) -> Result<(), Reason> {
    let Some(answer) = answers.first().filter(|answer| answer.is_good()) else {
        return Ok(());
    };
    let [naming, rest, rights, last, without @ ..] = &answer.values[..] else {
        return Ok(());
    };
    let mut parts = last.split(' ');
    let last = parts.next().and_then(|last| last.parse().ok());
    tells_process(&mut parts, env)?;
    let sight = Sight {
        sign: [naming.clone(), rest.clone()],
        rights: rights.clone(),
        last: last.unwrap_or(u32::MAX),
        reading: reading(&mut parts),
        // What the transaction itself has changed nobody else sees.
        horizon: horizon(&mut parts).filter(|_| !is_inside),
        without: <&[String; 2]>::try_from(without).ok().cloned(),
        made,
    };
    let standing = &mut *env.standing;
    let suspect = standing.unverified.is_some();
    standing.is_new = false;
    if standing.database.observed(sight, asked, env.now, suspect) {
        tracing::debug!(client = env.client, "the catalog has changed");
    }
    if suspect {
        standing.verified();
    }
    Ok(())
}

/// Reads which process has answered.
fn tells_process<'a>(
    parts: &mut impl Iterator<Item = &'a str>,
    env: &mut Env<'_>,
) -> Result<(), Reason> {
    let process = parts.next().and_then(|process| process.parse().ok());
    match process.is_none() || env.standing.is_answered_by(process, env.now) {
        true => Ok(()),
        false => Err(Reason::RelayOnly),
    }
}

/// Reads the answer's times.
fn reading<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<Reading> {
    let mut number = || parts.next()?.parse().ok();
    let (at, now) = (number(), number());
    at.zip(now).map(|(at, now)| Reading { at, now })
}

/// Reads the answer's horizon.
fn horizon<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<Horizon> {
    let (since, snapshot) = (parts.next()?, parts.next()?);
    let mut ends = snapshot.split(':').map(str::parse);
    let mut end = || ends.next()?.ok();
    Some(Horizon {
        since: since.to_owned(),
        first: end()?,
        next: end()?,
        rows: parts
            .next()
            .zip(parts.next())
            .map(|(roles, rows)| [roles, rows].join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizons_are_read() {
        let read = |text: &str| horizon(&mut text.split(' '));
        let known = |first, next, rows: Option<&str>| {
            Some(Horizon {
                since: "1700".to_owned(),
                first,
                next,
                rows: rows.map(str::to_owned),
            })
        };
        assert_eq!(read("1700 90:90:"), known(90, 90, None));
        assert_eq!(
            read("1700 90:92:90,91 -5 700"),
            known(90, 92, Some("-5 700"))
        );
        for text in ["", "1700", "1700 ", "1700 90", "1700 90:", "1700 a:b:"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
