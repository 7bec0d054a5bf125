//! What the right of a statement to stand for its original depends on.

use super::common_values::Common;
use super::guard::Guard;
use super::validity;
use crate::sql::effect::Effect;
use crate::sql::eligible::Eligible;
use crate::sql::scan::{Literal, Scan};

/// What a trusted statement was trusted with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The types the server inferred, one per argument.
    pub types: Box<[u32]>,
    /// Of the arguments that are columns of rows, the types of their arrays' elements; 0 of others,
    /// and empty if there are no rows.
    pub elements: Box<[u32]>,
    /// The types of the columns that hidden arguments are stored in, as `format_type` writes them.
    pub stored: Box<[Option<String>]>,
    /// What the values must be like.
    pub guards: Box<[Guard]>,
    /// Values that get plans of their own.
    pub common: Box<[Common]>,
    /// The arguments that are strings of types of which not every string is a value; those that are
    /// lists twice.
    pub fallible: Box<[usize]>,
    /// It is planned once because it finds one row at most: another plan may read other rows, and
    /// lock what it has read where transactions are serializable.
    pub one_row: bool,
    /// What running it may do to the session.
    pub effect: Effect,
}

impl Terms {
    /// The memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let stored = self.stored.iter();
        let stored = stored.map(|name| size_of_val(name) + name.as_ref().map_or(0, String::len));
        let fixed = size_of_val(&*self.types) + size_of_val(&*self.elements);
        let guards = size_of_val(&*self.guards) + size_of_val(&*self.fallible);
        let common = self.common.iter().map(Common::bytes);
        size_of::<Self>() + fixed + guards + stored.sum::<usize>() + common.sum::<usize>()
    }

    /// Whether every guarded literal of `text` is admitted.
    #[must_use]
    #[inline]
    pub fn admit(&self, eligible: &Eligible, text: &[u8], scan: &Scan) -> bool {
        (self.guards.is_empty() || self.guards_admit(eligible, text, scan))
            && (self.common.is_empty() || self.is_uncommon(eligible, text, scan))
    }

    /// Whether more than one string of `text` might not be a value of its type: which of them the
    /// server would complain about first is not known. Of rows not even one may be in doubt.
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

    /// The strings of `text` that might not be values of their types, elements of arrays included:
    /// each with the index of the argument that it is or is part of.
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

    /// Whether no literal of `text` is a value that gets a plan of its own.
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
