//! By which route a statement that is ready is executed.

use super::Settings;
use super::habits::{Habits, Sent, Timing};
use crate::reason::Reason;
use crate::statement::mirror::Entry;
use crate::statement::routes::{Route, Trial};
use crate::statement::{Micros, Millis};

/// Whether the statement of this entry may run elsewhere now; or else by which route it is to be
/// executed. What it takes alone at home says nothing of what it takes among others, but for what
/// it saves: its text would be parsed and planned at home. So that is found out there, and then it
/// is not timed any more. Where whole transactions travel nothing is: to send the text, one would
/// have to be opened at home.
///
/// # Errors
/// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
#[inline]
pub(super) fn leaves_or_chooses(
    entry: &mut Entry,
    settings: &Settings,
    habits: &mut Habits,
    (now, clock): (Millis, Micros),
) -> Result<bool, Reason> {
    if settings.shares && entry.statement.may_travel() {
        if settings.trials && !settings.looses && !entry.statement.routes().is_told() {
            choose(entry, habits, clock)?;
            if habits.timing.is_some() {
                return Ok(false);
            }
        }
        habits.sent = Sent {
            gain: entry.statement.routes().gain(),
            ..Sent::default()
        };
        return Ok(entry.statement.travels(now));
    }
    if settings.trials {
        choose(entry, habits, clock)?;
    }
    Ok(false)
}

/// The same of a statement that is one of several in a query: it does not leave, and goes by the
/// route that others of it have found to be the shorter.
///
/// # Errors
/// [`Reason::Slower`] if that is the original.
pub(super) fn stays_as_usual(
    entry: &Entry,
    settings: &Settings,
    habits: &mut Habits,
) -> Result<(), Reason> {
    let routes = entry.statement.routes();
    if settings.trials && routes.usual() == Route::Original {
        return Err(Reason::Slower);
    }
    habits.sent = Sent {
        gain: routes.gain(),
        ..Sent::default()
    };
    Ok(())
}

/// By which route the statement of this entry is to be executed now, and whether its time is taken.
///
/// # Errors
/// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
#[inline]
pub(super) fn choose(entry: &mut Entry, habits: &mut Habits, clock: Micros) -> Result<(), Reason> {
    let routes = entry.statement.routes();
    let (timed, usual) = (entry.trial.next(routes), routes.usual());
    habits.sent = Sent {
        key: entry.statement.key(),
        limit: Trial::limit(routes),
        gain: routes.gain(),
        since: clock,
    };
    match timed {
        None if usual == Route::Prepared => Ok(()),
        None => Err(Reason::Slower),
        Some(route) => {
            habits.timing = Some(Timing {
                key: entry.statement.key(),
                route,
                since: clock,
            });
            match route {
                Route::Prepared => Ok(()),
                Route::Original if usual == Route::Original => Err(Reason::Slower),
                Route::Original => Err(Reason::Trial),
            }
        }
    }
}
