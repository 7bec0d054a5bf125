//! The names whose use may leave something in the session.

use super::MAX_NAME;
use crate::sql::hazard::Hazards;
use crate::sql::residue::{Compiles, Leaves};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// What using a name may leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// When it may leave anything.
    pub(super) leaves: Leaves,
    /// When it may run a function in PL/pgSQL.
    pub(super) compiles: Compiles,
}

/// What may leave something. Nothing does by default.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// In lower case, as between quotes.
    pub(super) names: HashMap<Box<[u8]>, Left, RandomState>,
    /// The names of functions that leave nothing, as far as no others have them, spelled so.
    pub(super) functions: HashSet<Box<[u8]>, RandomState>,
    /// Which names draw numbers when they are written.
    pub(super) drawing: Drawing,
    /// There are functions whose bodies are run.
    pub(super) bodies: bool,
    /// What a text can use without naming it does.
    pub(super) implicit: Left,
    /// So does something with a name that may be cut off, or is not known.
    pub(super) any: Left,
    /// So does something with a name beyond ASCII.
    pub(super) beyond: Left,
    /// An event trigger runs whenever somebody logs in.
    pub(super) logins: bool,
    /// Event triggers run something that leaves something whenever something is defined.
    pub(super) fires: bool,
}

/// What may draw numbers from sequences when it is written. Nothing does by default.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    /// In lower case, as between quotes.
    pub(super) names: HashSet<Box<[u8]>, RandomState>,
    /// Anything may: a type that any column can have does.
    pub(super) implicit: bool,
    /// So may something with a name that may be cut off, or is not known.
    pub(super) any: bool,
    /// So may something with a name beyond ASCII.
    pub(super) beyond: bool,
}

impl Left {
    const ALL: Self = Self {
        leaves: Leaves::Always,
        compiles: Compiles::Always,
    };

    /// What using something with these hazards may leave.
    pub(super) const fn of(hazards: Hazards) -> Self {
        let leaves = if hazards.has(Hazards::LEAVES) {
            Leaves::Always
        } else if hazards.has(Hazards::WRITTEN_LEAVES) {
            Leaves::WhenWritten
        } else if hazards.has(Hazards::FOLDED) {
            Leaves::InBodies
        } else {
            Leaves::Nothing
        };
        let compiles = if hazards.has(Hazards::COMPILED) {
            Compiles::Always
        } else if hazards.has(Hazards::WRITTEN_COMPILES) {
            Compiles::WhenWritten
        } else {
            Compiles::Nothing
        };
        Self { leaves, compiles }
    }
}

impl Leaving {
    /// Of a database of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self {
            names: HashMap::default(),
            functions: HashSet::default(),
            drawing: Drawing {
                implicit: true,
                ..Drawing::default()
            },
            bodies: true,
            implicit: Left::ALL,
            any: Left::ALL,
            beyond: Left::ALL,
            logins: true,
            fires: true,
        }
    }

    /// Whether using this name does, which is written as in a text, without quotes.
    pub(super) fn has(&self, name: &[u8]) -> Leaves {
        self.implicit.leaves.max(self.named(name).leaves)
    }

    /// When using this name may run a function in PL/pgSQL.
    pub(super) fn compiles(&self, name: &[u8]) -> Compiles {
        self.implicit.compiles.max(self.named(name).compiles)
    }

    /// Whether writing this name does that, which is written as in a text, without quotes.
    pub(super) fn draws(&self, name: &[u8]) -> bool {
        let drawing = &self.drawing;
        if drawing.implicit {
            return true;
        }
        let mut lower = [0; MAX_NAME];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return drawing.any;
        };
        if !name.is_ascii() {
            return drawing.beyond;
        }
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        drawing.names.contains(&*lower)
    }

    /// Whether a call by this name runs functions of users that leave nothing, and no others.
    pub(super) fn is_harmless(&self, name: &[u8]) -> bool {
        let mut lower = [0; MAX_NAME];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return false;
        };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.functions.contains(&*lower)
    }

    fn named(&self, name: &[u8]) -> Left {
        if self.names.is_empty() {
            return Left::default();
        }
        let mut lower = [0; MAX_NAME];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return self.any;
        };
        if !name.is_ascii() {
            return self.beyond;
        }
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.names.get(&*lower).copied().unwrap_or_default()
    }
}
