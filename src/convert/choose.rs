//! By which route a statement that is ready is executed.

use super::Lent;
use super::habits::{Habits, Sent, Timing};
use crate::reason::{Homing, Reason};
use crate::statement::mirror::Entry;
use crate::statement::routes::Route;
use crate::statement::trial::AtHome;
use crate::statement::{Micros, Millis};

/// Whether the statement of this entry may run elsewhere now; or else by which route it is to be
/// executed. What it takes alone at home says nothing of what it takes among others, but for what
/// it saves: its text would be parsed and planned at home. So that is found out there, and then
/// seldom anew, unless it takes longer than it did: what its text takes by far less for is sent as
/// it comes. Where whole transactions travel nothing is: to send the text, one would
/// have to be opened at home.
///
/// # Errors
/// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
#[inline]
pub(super) fn leaves_or_chooses(
    entry: &mut Entry,
    lent: &Lent,
    habits: &mut Habits,
    (now, clock): (Millis, Micros),
) -> Result<bool, Reason> {
    let settings = &lent.settings;
    let routes = entry.statement.routes();
    if settings.shares && entry.statement.may_travel() && !routes.are_left_by_far() {
        if settings.trials
            && !settings.looses
            && let Some(how) = entry.trial.next_at_home(routes, clock)
        {
            lent.counters().homes(Homing::Timed);
            return stays_at_home(entry, habits, how, clock).map(|()| false);
        }
        habits.sent = Sent {
            key: entry.statement.key(),
            limit: routes.limit(),
            gain: routes.gain(),
            since: clock,
        };
        let travels = entry.statement.travels(now);
        if !travels {
            lent.counters().homes(Homing::Rests);
        }
        return Ok(travels);
    }
    if settings.trials {
        choose(entry, habits, (clock, 1))?;
    }
    Ok(false)
}

/// How the statement of this entry is executed at home, which may run elsewhere.
///
/// # Errors
/// [`Reason::Trial`] if the original is to be sent.
#[cold]
fn stays_at_home(
    entry: &Entry,
    habits: &mut Habits,
    how: AtHome,
    clock: Micros,
) -> Result<(), Reason> {
    habits.sent = Sent {
        gain: entry.statement.routes().gain(),
        ..Sent::default()
    };
    let AtHome::Timed(route) = how else {
        return Ok(());
    };
    habits.timing = Some(Timing {
        key: entry.statement.key(),
        route,
        since: clock,
        together: 1,
    });
    match route {
        Route::Prepared => Ok(()),
        Route::Original => Err(Reason::Trial),
    }
}

/// By how much the statement of this entry gains, which is one of several in a query: it does not
/// leave, and by which route it goes is chosen for all of them.
#[inline]
pub(super) fn stays(entry: &Entry, habits: &mut Habits) {
    habits.sent = Sent {
        gain: entry.statement.routes().gain(),
        ..Sent::default()
    };
}

/// Whether the statement of this entry may begin a query of several, or go with others in it. It
/// goes by the route that has been found the shorter, and by the other to compare them once more
/// only where all are executions of it, as the first of a query may become.
///
/// # Errors
/// [`Reason::Slower`] if the original is to be sent.
pub(super) fn joins(entry: &mut Entry, is_first: bool) -> Result<(), Reason> {
    match entry.statement.routes().usual() {
        Route::Prepared => Ok(()),
        Route::Original if is_first && entry.trial.is_due() => Ok(()),
        Route::Original => {
            entry.trial.passes();
            Err(Reason::Slower)
        }
    }
}

/// By which route the statement of this entry is to be executed now, and whether its time is taken;
/// or that of so many executions of it together.
///
/// # Errors
/// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
#[inline]
pub(super) fn choose(
    entry: &mut Entry,
    habits: &mut Habits,
    (clock, together): (Micros, u32),
) -> Result<(), Reason> {
    let routes = entry.statement.routes();
    let (timed, usual) = (entry.trial.next(routes, together), routes.usual());
    habits.sent = Sent {
        key: entry.statement.key(),
        limit: routes.limit().saturating_mul(together),
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
                together,
            });
            match route {
                Route::Prepared => Ok(()),
                Route::Original if usual == Route::Original => Err(Reason::Slower),
                Route::Original => Err(Reason::Trial),
            }
        }
    }
}
