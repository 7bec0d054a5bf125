//! Casts of a constant, and for which arguments they cannot fail.

use super::kinds::{
    element as element_of, is_called, is_made, number, type_name, whole_digits, widens,
};
use super::work::Work;
use super::{Constant, Types};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};

/// What a constant has of the one argument it is made of: what may be said of its value by looking
/// at the argument as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It is what is written, but for blanks and zeros that do not count.
    Same,
    /// Each of its letters may be another, or several.
    Cased,
    /// Its magnitude is, but for rounding.
    Magnitude,
    /// Nothing may be said.
    Other,
}

impl Constant {
    /// A cast of it to the type of this name, as EXPLAIN writes types.
    pub(in crate::oracle::proof) fn cast(&mut self, name: &str, types: Types<'_>) {
        let (was_fallible, before) = (self.is_fallible(), self.clone());
        self.instant = None;
        self.convert(name, types);
        let is_left = match self.parameters[..] {
            [] => !self.plain,
            _ => !was_fallible && self.is_fallible(),
        };
        let work = self.work.take();
        let work = work.or_else(|| is_left.then(|| Work::with(before)));
        self.work = work.map(|work| work.within("", &format!("::{name}")));
    }

    fn convert(&mut self, name: &str, types: Types<'_>) {
        if self.near && self.stays_moment(name) || self.becomes_unless_empty(name) {
            return;
        }
        self.near = false;
        let (base, modifier) = match name.split_once('(') {
            Some((base, modifier)) => (base, Some(modifier)),
            None => (name, None),
        };
        let target = match base {
            "text" => oid::TEXT,
            "character varying" | "character" => oid::VARCHAR,
            base => number(base),
        };
        let from = self.kind(types);
        let exact = match target {
            oid::INT2 | oid::INT4 | oid::INT8 => widens(from, target),
            oid::TEXT | oid::VARCHAR => matches!(from, Some(oid::TEXT | oid::VARCHAR)),
            _ => false,
        };
        self.made_of |= !exact || modifier.is_some();
        // The type of a literal stands right behind it.
        if self.wrapped && self.parameters.is_empty() {
            (self.plain, self.parts_plain) = (false, false);
        }
        self.kind = Some(target);
        name.clone_into(&mut self.shown);
        let is_free = modifier.is_none() && widens(from, target);
        // What is made of a number may be larger than the number.
        let is_larger = self.wide || self.terms > 1;
        self.wide &= target == oid::INT8;
        let argument = match self.parameters[..] {
            [argument] if !is_larger => argument,
            ref parameters => {
                self.may_fail |= !parameters.is_empty() && !is_free;
                return;
            }
        };
        let is_float = |kind: u32| matches!(kind, oid::FLOAT4 | oid::FLOAT8);
        self.is_rounded |= is_float(target) || from.is_some_and(is_float);
        if !is_free {
            match self.check(from, (target, modifier)) {
                Some(check) => self.guards.push(Guard { argument, check }),
                None => self.may_fail = true,
            }
        }
        if matches!(target, oid::TEXT | oid::VARCHAR) && !self.is_spelled(from) {
            self.written = Written::Other;
        }
    }

    /// Under which condition on the argument, as it is written, a cast from one type to another
    /// cannot fail; `None` if there is none.
    ///
    /// Of a text a whole number is made only if it is one, of other numbers by rounding. What went
    /// through a floating-point number is there to its digits only, of which one may be carried:
    /// `real` has six, and `99999999::real` is 100000000.
    fn check(&self, from: Option<u32>, (target, modifier): (u32, Option<&str>)) -> Option<Check> {
        let is_text = matches!(from, Some(oid::TEXT | oid::VARCHAR | oid::BPCHAR));
        let is_number = matches!(
            from?,
            oid::INT2 | oid::INT4 | oid::INT8 | oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8
        );
        if self.written == Written::Other || !(is_text || is_number) {
            return None;
        }
        let whole = |limit: u64| match (is_text, self.is_rounded) {
            (true, _) => Check::Whole(limit),
            (false, false) => Check::Magnitude(limit),
            (false, true) => Check::Magnitude(limit / 2),
        };
        match (target, modifier) {
            (oid::VARCHAR, Some(modifier)) => {
                let most = modifier.trim_end_matches(')').parse().ok()?;
                match self.written {
                    Written::Same if self.is_spelled(from) => Some(Check::Length(most)),
                    // Of two bytes no more than three letters are made.
                    Written::Cased => Some(Check::Length(most / 2)),
                    _ => None,
                }
            }
            (oid::NUMERIC, Some(modifier)) => {
                let digits = whole_digits(modifier)?;
                let digits = digits.checked_sub(usize::from(self.is_rounded))?;
                Some(Check::Digits(digits))
            }
            (oid::INT2, None) => Some(whole(i16::MAX.unsigned_abs().into())),
            (oid::INT4, None) => Some(whole(i32::MAX.unsigned_abs().into())),
            (oid::INT8, None) => Some(whole(i64::MAX.unsigned_abs())),
            (oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC, None) => Some(Check::Digits(30)),
            _ => None,
        }
    }

    /// Whether as a text it is what was written: a whole number is, others come in a form of their
    /// own, as 1e3 becomes 1000.
    fn is_spelled(&self, from: Option<u32>) -> bool {
        let is_kept = matches!(
            from,
            Some(oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::INT2 | oid::INT4 | oid::INT8)
        );
        is_kept && !self.is_rounded && self.written != Written::Magnitude
    }

    /// What is left of what is written when this function of one text was called.
    pub(super) fn written_by(&self, function: &str) -> Written {
        match (function, self.written) {
            ("btrim" | "ltrim" | "rtrim", written @ (Written::Same | Written::Cased)) => written,
            ("lower" | "upper", Written::Same) => Written::Cased,
            _ => Written::Other,
        }
    }

    /// EXPLAIN does not show implicit casts: those are known only by the type that the literal has
    /// in `custom`, where they are folded into it.
    pub(in crate::oracle::proof) fn convert_like(&mut self, custom: &Self, types: Types<'_>) {
        let shown = &*custom.shown;
        if self.parameters.is_empty() || shown.is_empty() || self.shown == shown {
            return;
        }
        if let Some(element) = shown.strip_suffix("[]") {
            let target = match element {
                "text" => oid::TEXT,
                "character varying" => oid::VARCHAR,
                element => number(element),
            };
            let kinds = self.parameters.iter().map(|index| types.get(*index));
            let fits = |kind: Option<&u32>| {
                kind.is_some_and(|kind| {
                    let kind = element_of(*kind);
                    is_called(kind, element) || widens(Some(kind), target)
                })
            };
            self.may_fail |= element.contains('(') || !kinds.into_iter().all(fits);
        } else if self.is_already(shown, types) {
            shown.clone_into(&mut self.shown);
        } else {
            self.cast(shown, types);
        }
    }

    /// Whether it is no array, if it is not of a type of a user's.
    pub(super) fn is_single(&self, types: Types<'_>) -> bool {
        match self.kind(types) {
            _ if !self.shown.is_empty() => !self.shown.ends_with("[]"),
            Some(kind) => is_made(kind) || element_of(kind) == kind && type_name(kind).is_some(),
            None => false,
        }
    }

    /// Whether a value of its type needs no cast that might fail to become one of the type called
    /// `shown`. The types of users have no lengths to be checked, and are not cast without being
    /// told to (fact `m` of the [proof](super)).
    fn is_already(&self, shown: &str, types: Types<'_>) -> bool {
        let Some(kind) = self.kind(types) else {
            return false;
        };
        match (type_name(kind), shown.split_once('(')) {
            (_, None) => is_called(kind, shown),
            // A time is rounded to its precision, which any can be.
            (Some(name), Some((base, precision))) => {
                let rest = precision.split_once(')').map_or("", |(_, rest)| rest);
                base.starts_with("time") && name == format!("{base}{rest}")
            }
            (None, Some(_)) => false,
        }
    }
}
