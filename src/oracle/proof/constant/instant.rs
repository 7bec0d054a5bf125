//! Instants: the time at which a transaction or statement began, or a time not far from that.
//!
//! These functions are STABLE, so the planner tries them out where it estimates, and which plan it
//! makes depends on the moment. They always have a result, and say nothing.

use super::{Constant, Types};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};

/// The functions that return it, which must be the server's own.
pub(in crate::oracle::proof) const INSTANTS: [&str; 3] =
    ["now", "statement_timestamp", "transaction_timestamp"];

/// What kind of time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::oracle::proof) enum Instant {
    /// A `timestamp with time zone`.
    Moment,
    /// A `timestamp`.
    Local,
    /// A `date`.
    Day,
}

impl Instant {
    /// Its type.
    pub(in crate::oracle::proof) const fn oid(self) -> u32 {
        match self {
            Self::Moment => oid::TIMESTAMPTZ,
            Self::Local => oid::TIMESTAMP,
            Self::Day => oid::DATE,
        }
    }
}

impl Constant {
    /// What depends on the moment and has a word of its own, like `CURRENT_DATE`.
    pub(in crate::oracle::proof) fn moment(word: &str) -> Self {
        Self {
            plain: false,
            instant: match word {
                "CURRENT_DATE" => Some(Instant::Day),
                "CURRENT_TIMESTAMP" => Some(Instant::Moment),
                "LOCALTIMESTAMP" => Some(Instant::Local),
                _ => None,
            },
            ..Self::literal()
        }
    }

    /// The time that it is.
    pub(in crate::oracle::proof) const fn instant(&self) -> Option<Instant> {
        self.instant
    }

    /// The time that a function returns that is called with nothing.
    pub(super) fn instant_of(function: &str) -> Option<Instant> {
        INSTANTS.contains(&function).then_some(Instant::Moment)
    }
}

/// What adding an interval to an instant, or taking it away, makes, and the guards under
/// which that is not far away; `None` if it may be.
pub(super) fn shifted(
    parts: &[Constant],
    operators: &[&str],
    types: Types<'_>,
) -> Option<(Instant, Vec<Guard>)> {
    let ([from, by], ["+" | "-"]) = (parts, operators) else {
        return None;
    };
    // Several intervals may lead as far as the end of the calendar.
    let kind = match from.instant.filter(|_| !from.moved)? {
        Instant::Moment => Instant::Moment,
        Instant::Local | Instant::Day => Instant::Local,
    };
    if let Some(shifted) = by_days(from, by, types) {
        return Some(shifted);
    }
    match by.parameters[..] {
        [argument] if by.is_bare() && types.get(argument) == Some(&oid::INTERVAL) => {
            let check = Check::Interval;
            Some((kind, vec![Guard { argument, check }]))
        }
        [] if by.plain && by.shown == "interval" => {
            let written = by.written_so.as_deref()?;
            let inner = written.strip_prefix('\'')?.strip_suffix('\'')?;
            Check::is_short(inner.as_bytes()).then(|| (kind, Vec::new()))
        }
        _ => None,
    }
}

/// The most days that a day is shifted by: some 2,700 years, which leads to where every type of
/// times has a moment (`date_pli` and `date_mii` in `date.c`, which take an `integer`).
const DAYS: u64 = 1_000_000;

/// What so many days before the present one or behind it are.
fn by_days(from: &Constant, by: &Constant, types: Types<'_>) -> Option<(Instant, Vec<Guard>)> {
    if from.instant != Some(Instant::Day) {
        return None;
    }
    let guards = match by.parameters[..] {
        [] => by.number.filter(|days| *days <= DAYS).map(|_| Vec::new())?,
        [argument] if by.is_bare() && types.get(argument) == Some(&oid::INT4) => {
            let check = Check::Natural(DAYS);
            vec![Guard { argument, check }]
        }
        _ => return None,
    };
    Some((Instant::Day, guards))
}
