//! Terms: the conditions on which a statement may stand for its original.

use super::apart::{self, Typed};
use super::common_values::Common;
use super::guard::Guard;
use super::validity;
use crate::sql::effect::Effect;
use crate::sql::eligible::Eligible;
use crate::sql::residue::Residue;
use crate::sql::scan::{Literal, Scan};

/// The column that an argument is stored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredIn {
    /// Its type, as `format_type` writes it.
    pub type_name: String,
    /// What is stored is the moment that `to_timestamp` makes of the argument.
    pub is_moment: bool,
}

/// What a trusted statement was trusted with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The types that the server inferred, one per argument.
    pub types: Box<[u32]>,
    /// For each argument that is a column of rows, the type of its array's elements; for each other
    /// argument 0. Empty if there are no rows.
    pub elements: Box<[u32]>,
    /// The arguments, by index, whose literals name what the catalog holds: they stay arguments,
    /// and are read at each execution (H-07).
    pub naming: Box<[usize]>,
    /// The columns that hidden arguments are stored in.
    pub stored: Box<[Option<StoredIn>]>,
    /// The conditions on the values, sorted by argument.
    pub guards: Box<[Guard]>,
    /// The values that get plans of their own, sorted by argument.
    pub common: Box<[Common]>,
    /// The arguments of which no two may be equal.
    pub apart: Box<[usize]>,
    /// The arguments whose strings may be invalid for their types. An argument that is a list
    /// stands here twice.
    pub fallible: Box<[usize]>,
    /// Whether the statement is planned once because it finds at most one row. Another plan may
    /// read other rows on the way, and where transactions are serializable it locks what it reads.
    pub one_row: bool,
    /// Whether the server chooses the plan, which need not be the one that the literals would get.
    pub is_chosen: bool,
    /// Whether what was proven follows from statistics, which change without notice.
    pub ages: bool,
    /// How many rows had been added in the database by then, as far as the proxy has seen.
    pub added: u64,
    /// What running the statement may do to the session.
    pub effect: Effect,
    /// What it leaves in the session.
    pub residue: Residue,
    /// How much there is to its plan, in bytes as the server writes it; zero if it was not seen.
    pub plan_bytes: usize,
}

/// How many times longer something holds that does not follow from statistics: there is nothing
/// but the catalog that it depends on, which is watched.
const LASTING: u64 = 10;

/// Rows that may be added before what follows from statistics is looked at again, beside as many as
/// had been added by then: the planner sees at once that a small table has become a large one
/// (`estimate_rel_size` in `plancat.c`).
const GROWN: u64 = 100;

impl Terms {
    /// Whether the statement is still trusted at this age, when so many rows have been `added`, if
    /// those that follow from statistics are up to `max_age`.
    #[must_use]
    #[inline]
    pub const fn is_fresh(&self, age: u64, max_age: u64, added: u64) -> bool {
        let has_grown = added > self.added.saturating_mul(2).saturating_add(GROWN);
        !(self.ages && has_grown) && (age <= max_age || age <= self.lifetime(max_age))
    }

    /// For how long that is.
    #[must_use]
    pub const fn lifetime(&self, max_age: u64) -> u64 {
        match self.ages {
            true => max_age,
            false => max_age.saturating_mul(LASTING),
        }
    }

    /// The bytes that the terms take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stored = self.stored.iter();
        let name = |stored: &StoredIn| stored.type_name.len();
        let stored = stored.map(|stored| size_of_val(stored) + stored.as_ref().map_or(0, name));
        let fixed = size_of_val(&*self.types) + size_of_val(&*self.elements);
        let guards = size_of_val(&*self.guards) + size_of_val(&*self.fallible);
        let fixed = fixed + size_of_val(&*self.naming) + size_of_val(&*self.apart);
        let common = self.common.iter().map(Common::bytes);
        size_of::<Self>() + fixed + guards + stored.sum::<usize>() + common.sum::<usize>()
    }

    /// Whether the values of `text` pass every guard, none of them is a common value, and those
    /// differ that have to.
    #[must_use]
    #[inline]
    pub fn admit(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        (self.guards.is_empty() || self.guards_admit(eligible, text, scan))
            && (self.common.is_empty() || self.is_uncommon(eligible, text, scan))
            && (self.apart.is_empty() || self.are_apart(eligible, text, scan))
    }

    /// Whether it is not known which string of `text` the server would complain about first: more
    /// than one might be invalid for its type. Among rows not even one may be in doubt.
    #[must_use]
    pub fn leaves_doubt(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        let enough = match self.elements[..] {
            [] => 1,
            _ => 0,
        };
        self.fallible.len() > enough && self.doubtful(eligible, text, scan).nth(enough).is_some()
    }

    /// The type of each argument, or of its elements if it is a column of rows.
    #[must_use]
    pub fn kinds(&self) -> Vec<u32> {
        let indexes = 0..self.types.len();
        indexes.filter_map(|index| self.kind(index)).collect()
    }

    fn kind(&self, argument: usize) -> Option<u32> {
        let element = self.elements.get(argument).filter(|element| **element != 0);
        element.or_else(|| self.types.get(argument)).copied()
    }

    /// The strings of `text` that might be invalid for their types, elements of arrays included.
    /// Each comes with the index of its argument.
    pub fn doubtful<'a>(
        &'a self,
        eligible: &'a Eligible,
        text: &'a [u8],
        scan: &'a Scan,
    ) -> impl Iterator<Item = (usize, &'a Literal)> {
        let lifted = scan.literals().iter().zip(&eligible.arguments);
        let lifted = lifted.filter(|(_, argument)| **argument).enumerate();
        let fallible = lifted.filter(|(index, _)| self.fallible.contains(index));
        fallible.flat_map(move |(index, (literal, _))| {
            let type_oid = self.kind(index).unwrap_or_default();
            let strings = validity::doubtful(type_oid, text, (scan, literal));
            strings.map(move |string| (index, string))
        })
    }

    /// Whether no two of the literals of `text` are equal that have to differ.
    fn are_apart(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        let argument = |index: &usize| -> Option<Typed<'_>> {
            let literals = scan.literals().iter().zip(&eligible.arguments);
            let mut lifted = literals.filter(|(_, lifted)| **lifted);
            Some((lifted.nth(*index)?.0, self.kind(*index)?))
        };
        self.apart.iter().enumerate().all(|(at, index)| {
            let Some(one) = argument(index) else {
                return false;
            };
            let mut others = self.apart.iter().skip(at + 1).filter_map(argument);
            !others.any(|other| apart::may_be_equal(text, one, other))
        })
    }

    /// Whether no literal of `text` is a common value.
    fn is_uncommon(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        let mut lifted = scan.literals().iter().zip(&eligible.arguments);
        let mut lifted = lifted
            .by_ref()
            .filter(|(_, argument)| **argument)
            .enumerate();
        // Sorted by argument, so one pass finds the literals.
        let mut at = None;
        self.common.iter().all(|common| {
            while at.is_none_or(|(index, _)| index < common.argument) {
                at = lifted.next().map(|(index, (literal, _))| (index, literal));
                if at.is_none() {
                    return false;
                }
            }
            at.is_some_and(|(index, literal)| {
                let elements = scan.elements(literal);
                index == common.argument && !elements.iter().any(|e| common.holds(text, e))
            })
        })
    }

    fn guards_admit(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        let mut guards = self.guards.iter().peekable();
        let lifted = scan.literals().iter().zip(&eligible.arguments);
        for (index, (literal, _)) in lifted.filter(|(_, argument)| **argument).enumerate() {
            while let Some(guard) = guards.next_if(|guard| guard.argument == index) {
                if !guard.admits(text, scan.elements(literal)) {
                    return false;
                }
            }
        }
        // Guards are sorted by argument; one that was not reached belongs to another shape.
        guards.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_follow_from_statistics_is_trusted_for_longer() {
        let lasting = Terms::default();
        let aging = Terms {
            ages: true,
            ..Terms::default()
        };
        for (age, fresh) in [(0, [true; 2]), (60, [true; 2]), (61, [false, true])] {
            let found = [&aging, &lasting].map(|terms| terms.is_fresh(age, 60, 0));
            assert_eq!(found, fresh, "{age}");
        }
        assert!(lasting.is_fresh(lasting.lifetime(60), 60, 0));
        assert!(!lasting.is_fresh(lasting.lifetime(61), 60, 0));
        assert_eq!(aging.lifetime(60), 60);
    }

    #[test]
    fn what_follows_from_statistics_is_not_trusted_when_as_many_rows_have_come() {
        let terms = |ages| Terms {
            ages,
            added: 1_000,
            ..Terms::default()
        };
        let (aging, lasting) = (terms(true), terms(false));
        for (added, fresh) in [(1_000, true), (2_100, true), (2_101, false)] {
            assert_eq!(aging.is_fresh(0, 60, added), fresh, "{added}");
            assert!(lasting.is_fresh(0, 60, added));
        }
    }
}
