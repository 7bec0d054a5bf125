//! Sums and shifts of whole numbers that cannot overflow for the values they are admitted for.
//!
//! `int4pl`, `int8pl` and their like fail if the sum does not fit, `int8shl` never does (`int.c`,
//! `int8.c`). That the operators are these is fact `b` of the [proof](super::super).

use super::{Constant, Types, Written};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};

/// Operands a sum may have, and the magnitude each may have, so that no 32-bit sum overflows, and
/// no 64-bit sum with something that was shifted.
const MAX_TERMS: usize = 7;
const TERM_LIMIT: u64 = 1 << 28;
const WIDE_LIMIT: u64 = 1 << 59;

/// The magnitude of what is shifted, so that it stays within [`WIDE_LIMIT`] if it is shifted by
/// [`Check::Shift`].
const SHIFTED_LIMIT: u64 = 1 << 27;

/// What adding, subtracting or shifting makes of constants.
pub(super) struct Sum {
    guards: Vec<Guard>,
    kind: u32,
    terms: usize,
    wide: bool,
}

/// What `operators` make of `parts`, if it has a value under the guards that are then laid upon the
/// arguments; `None` if it may have none.
pub(super) fn sum(parts: &[Constant], operators: &[&str], types: Types<'_>) -> Option<Sum> {
    if let ([number, by], ["<<"]) = (parts, operators) {
        return shift(number, by, types);
    }
    if let ([from, less], ["-"]) = (parts, operators)
        && let Some(difference) = difference(from, less, types)
    {
        return Some(difference);
    }
    let sums = |operator: &&str| matches!(*operator, "+" | "-");
    let terms = parts.iter().map(|part| part.terms).sum();
    let wide = parts.iter().any(|part| part.wide);
    let is_small = |part: &Constant| part.is_addend(wide, types);
    if !operators.iter().all(sums) || terms > MAX_TERMS || !parts.iter().all(is_small) {
        return None;
    }
    let limit = if wide { WIDE_LIMIT } else { TERM_LIMIT };
    let check = Check::Magnitude(limit);
    // What casts have asked for still holds, unless more is asked now.
    let is_less = |own: &Guard| matches!(own.check, Check::Magnitude(most) if most >= limit);
    let guards = parts.iter().flat_map(|part| {
        let lay = |&argument: &usize| Guard { argument, check };
        let own = part.guards.iter().copied();
        let laid = part.parameters.iter().map(lay);
        own.filter(move |own| part.wide || !is_less(own))
            .chain(laid.filter(move |_| !part.wide))
    });
    // One operand that is a bigint makes the sum one.
    let mut kinds = parts.iter().map(|part| part.kind(types));
    let is_long = wide || kinds.any(|kind| kind == Some(oid::INT8));
    Some(Sum {
        guards: guards.collect(),
        kind: if is_long { oid::INT8 } else { oid::INT4 },
        terms,
        wide,
    })
}

/// An `integer` less another, neither of which has a sign: no such difference is too large
/// (`1700000900 - 5`, seconds since 1970).
fn difference(from: &Constant, less: &Constant, types: Types<'_>) -> Option<Sum> {
    const MOST: u64 = i32::MAX as u64;
    let natural = |part: &Constant| match part.parameters[..] {
        [] => part.number.filter(|number| *number <= MOST).map(|_| None),
        [argument] if part.is_bare() && part.kind(types) == Some(oid::INT4) => {
            let check = Check::Natural(MOST);
            Some(Some(Guard { argument, check }))
        }
        _ => None,
    };
    let guards = [natural(from)?, natural(less)?];
    Some(Sum {
        guards: guards.into_iter().flatten().collect(),
        kind: oid::INT4,
        terms: 2,
        wide: false,
    })
}

/// A `bigint` that is shifted by some bits.
fn shift(number: &Constant, by: &Constant, types: Types<'_>) -> Option<Sum> {
    let of_type = |constant: &Constant, kind: u32| match constant.parameters[..] {
        [argument] if constant.is_bare() && constant.kind(types) == Some(kind) => Some(argument),
        _ => None,
    };
    let argument = of_type(number, oid::INT8)?;
    let check = Check::Magnitude(SHIFTED_LIMIT);
    let mut guards = vec![Guard { argument, check }];
    match of_type(by, oid::INT4) {
        Some(argument) => guards.push(Guard {
            argument,
            check: Check::Shift,
        }),
        None => by
            .number
            .filter(|bits| *bits <= Check::MAX_SHIFT)
            .map(drop)?,
    }
    Some(Sum {
        guards,
        kind: oid::INT8,
        terms: 1,
        wide: true,
    })
}

impl Constant {
    /// It is such a sum.
    pub(super) fn become_sum(&mut self, sum: Sum) {
        self.guards = sum.guards;
        (self.terms, self.wide) = (sum.terms, sum.wide);
        self.was_wide |= sum.wide;
        self.kind = Some(sum.kind);
    }

    /// Whether it is a whole number that is, or will be guarded to be, far from overflow. In a wide
    /// sum, one that is not itself wide must be the argument as it was given: its magnitude is all
    /// there is.
    fn is_addend(&self, wide: bool, types: Types<'_>) -> bool {
        match self.parameters[..] {
            [] => self.number.is_some_and(|number| number <= TERM_LIMIT),
            [_] if wide => self.wide || self.is_bare() && self.is_whole(types),
            _ if wide => self.wide,
            // The argument says what it is, or what was added up to it.
            _ => {
                let is_told = self.terms > 1 || self.written != Written::Other;
                is_told && self.is_whole(types) && !self.may_fail
            }
        }
    }

    fn is_whole(&self, types: Types<'_>) -> bool {
        matches!(self.kind(types), Some(oid::INT4 | oid::INT8))
    }
}
