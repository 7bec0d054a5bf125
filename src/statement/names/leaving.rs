//! The names whose use may leave something in the session.

use super::MAX_NAME;
use crate::sql::residue::Leaves;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};

/// What may leave something. Nothing does by default.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// In lower case, as between quotes.
    pub(super) names: HashMap<Box<[u8]>, Leaves, RandomState>,
    /// The names of functions that leave nothing, as far as no others have them, spelled so.
    pub(super) functions: HashSet<Box<[u8]>, RandomState>,
    /// There are functions whose bodies are run.
    pub(super) bodies: bool,
    /// What a text can use without naming it does.
    pub(super) implicit: Leaves,
    /// So does something with a name that may be cut off, or is not known.
    pub(super) any: Leaves,
    /// So does something with a name beyond ASCII.
    pub(super) beyond: Leaves,
    /// An event trigger runs whenever somebody logs in.
    pub(super) logins: bool,
}

impl Leaving {
    /// Of a database of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self {
            names: HashMap::default(),
            functions: HashSet::default(),
            bodies: true,
            implicit: Leaves::Always,
            any: Leaves::Always,
            beyond: Leaves::Always,
            logins: true,
        }
    }

    /// Whether using this name does, which is written as in a text, without quotes.
    pub(super) fn has(&self, name: &[u8]) -> Leaves {
        self.implicit.max(self.named(name))
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

    fn named(&self, name: &[u8]) -> Leaves {
        if self.names.is_empty() {
            return Leaves::Nothing;
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
