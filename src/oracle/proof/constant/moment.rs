//! Moments: functions of time that have a result for every value they are admitted for.
//!
//! `to_timestamp(double precision)` and `timezone(text, timestamptz)`, which is what `AT TIME ZONE`
//! stands for, are immutable (`pg_proc`, 13 to 18). So of literals the planner makes a literal,
//! and what is wrong with them it says before anything runs, while a generic plan calls them for
//! each execution. They fail at the ends of the calendar, of NaN, and of a zone that there is not.

use super::{Constant, Types};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};

/// The functions, which must be the server's own.
pub(in crate::oracle::proof) const CLOCKS: [&str; 2] = ["to_timestamp", "timezone"];

/// Digits of a number of seconds. So many reach from the year -1199 to 5138, which no zone, no
/// rounding and no other type of moments moves beyond the ends of the calendar: they lie 2.1·10^11
/// seconds before 1970 and further behind it (`MIN_TIMESTAMP` in `datatype/timestamp.h`).
const SECONDS: usize = 11;

/// What a call returns.
#[derive(Debug)]
pub(super) struct Moment {
    kind: u32,
    zones: Vec<usize>,
}

/// The moment that `function` returns of these, if it does of all values that pass the guards that
/// are then laid upon them.
pub(super) fn returned(function: &str, parts: &mut [Constant], types: Types<'_>) -> Option<Moment> {
    match (function, parts) {
        ("to_timestamp", [seconds]) => seconds.bound(types).then(|| Moment {
            kind: oid::TIMESTAMPTZ,
            zones: Vec::new(),
        }),
        ("timezone", [zone, moment]) => {
            let is_known = zone.plain && zone.parameters.is_empty();
            let kind = match moment.kind {
                Some(oid::TIMESTAMPTZ) => oid::TIMESTAMP,
                _ => oid::TIMESTAMPTZ,
            };
            (moment.near && (is_known || zone.is_bare())).then(|| Moment {
                kind,
                zones: zone.parameters.clone(),
            })
        }
        _ => None,
    }
}

impl Constant {
    /// It is such a moment.
    pub(super) fn become_moment(&mut self, moment: Moment) {
        self.kind = Some(moment.kind);
        self.zones.extend(moment.zones);
        (self.near, self.clock) = (true, true);
    }

    /// The moment that `to_timestamp` makes of it.
    pub(in crate::oracle::proof) fn moment_of(mut self, types: Types<'_>) -> Self {
        self.cast("double precision", types);
        Self::call("to_timestamp", vec![self], types)
    }

    /// A number made of arguments is to have few digits; false if it might be large all the same.
    fn bound(&mut self, types: Types<'_>) -> bool {
        const NUMBERS: [u32; 6] = [
            oid::INT2,
            oid::INT4,
            oid::INT8,
            oid::NUMERIC,
            oid::FLOAT4,
            oid::FLOAT8,
        ];
        let is_number = |kind: Option<u32>| kind.is_some_and(|kind| NUMBERS.contains(&kind));
        let given = |argument: &usize| types.get(*argument).copied();
        let mut all = self.parameters.iter();
        // What is shifted has more digits than what it is made of.
        let is_sure =
            !self.may_fail && !self.was_wide && all.all(|argument| is_number(given(argument)));
        if !is_sure || self.parameters.is_empty() || !is_number(self.kind(types)) {
            return false;
        }
        let long = self.parameters.iter();
        let long = long.filter(|argument| !matches!(given(argument), Some(oid::INT2 | oid::INT4)));
        let check = Check::Digits(SECONDS);
        let guards = long.map(|&argument| Guard { argument, check });
        self.guards.extend(guards);
        true
    }

    /// Casts a moment to another type of moments; false if that is no such type.
    pub(in crate::oracle::proof) fn stays_moment(&mut self, name: &str) -> bool {
        let precision = name.split_once('(').and_then(|(base, rest)| {
            let (_, rest) = rest.split_once(')')?;
            Some(format!("{base}{rest}"))
        });
        let kind = match precision.as_deref().unwrap_or(name) {
            "timestamp without time zone" => oid::TIMESTAMP,
            "timestamp with time zone" => oid::TIMESTAMPTZ,
            _ => return false,
        };
        (self.kind, self.made_of) = (Some(kind), true);
        name.clone_into(&mut self.shown);
        true
    }
}
