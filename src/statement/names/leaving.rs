//! The names whose use may leave something in the session.

use super::MAX_NAME;
use foldhash::fast::RandomState;
use std::collections::HashSet;

/// What may leave something. Nothing does by default.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// In lower case, as between quotes.
    pub(super) names: HashSet<Box<[u8]>, RandomState>,
    /// What a text can use without naming it does.
    pub(super) implicit: bool,
    /// So does something with a name that may be cut off, or is not known.
    pub(super) any: bool,
    /// So does something with a name beyond ASCII.
    pub(super) beyond: bool,
    /// An event trigger runs whenever somebody logs in.
    pub(super) logins: bool,
}

impl Leaving {
    /// Of a database of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self {
            names: HashSet::default(),
            implicit: true,
            any: true,
            beyond: true,
            logins: true,
        }
    }

    /// Whether using this name does, which is written as in a text, without quotes.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        if self.implicit || self.names.is_empty() {
            return self.implicit;
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
        self.names.contains(&*lower)
    }
}
