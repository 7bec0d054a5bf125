//! Definitions that came one behind the other, and which of them mention a name.

use crate::sql::define::{Definition, Name};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// Definitions in their order.
///
/// Invariant: `mentioning` has for each name the places in `list` of those that mention it, in
/// order, and no others.
#[derive(Debug, Default)]
pub struct Since {
    list: Vec<Arc<Definition>>,
    mentioning: HashMap<Name, Vec<usize>, RandomState>,
}

/// The first of some definitions.
#[derive(Debug, Clone, Copy)]
pub struct Others<'s> {
    since: &'s Since,
    count: usize,
}

impl Since {
    /// Adds a definition.
    pub fn push(&mut self, definition: Arc<Definition>) {
        for name in &definition.mentions {
            let places = self.mentioning.entry(name.clone()).or_default();
            places.push(self.list.len());
        }
        self.list.push(definition);
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[Arc<Definition>] {
        &self.list
    }

    /// Forgets the first so many.
    pub fn forget(&mut self, count: usize) {
        let rest = self.list.split_off(count.min(self.list.len()));
        *self = Self::default();
        rest.into_iter().for_each(|one| self.push(one));
    }

    /// The first so many.
    #[must_use]
    pub const fn first(&self, count: usize) -> Others<'_> {
        Others { since: self, count }
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> Others<'_> {
        self.first(self.list.len())
    }
}

impl<'s> Others<'s> {
    /// Whether what has this name is defined by one of them and may use something.
    pub(super) fn make(self, name: &[u8]) -> bool {
        let first = self.since.list.iter().take(self.count);
        let is_own = |of: &Vec<Name>| of.iter().any(|own| **own == *name);
        let makes = |one: &Arc<Definition>| one.of.as_ref().is_none_or(is_own);
        first
            .filter(|one| makes(one))
            .any(|one| !one.mentions.is_empty())
    }

    /// Those that mention this name.
    pub(super) fn mentioning(self, name: &[u8]) -> impl Iterator<Item = &'s Definition> {
        let places = self
            .since
            .mentioning
            .get(name)
            .map_or(&[][..], Vec::as_slice);
        let places = places.iter().take_while(move |place| **place < self.count);
        places.filter_map(move |place| self.since.list.get(*place).map(|one| &**one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentioning(names: &[&str]) -> Arc<Definition> {
        let mentions = names.iter().map(|name| Name::from(name.as_bytes()));
        Arc::new(Definition {
            mentions: mentions.collect(),
            ..Definition::default()
        })
    }

    #[test]
    fn the_first_definitions_are_found_by_what_they_mention() {
        let mut since = Since::default();
        let all = [&["a", "b"][..], &["b"], &[], &["a", "c"]].map(mentioning);
        all.iter().for_each(|one| since.push(Arc::clone(one)));
        let found = |others: Others<'_>, name: &str| others.mentioning(name.as_bytes()).count();
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| found(since.all(), name)),
            [2, 2, 1, 0]
        );
        assert_eq!(
            ["a", "b", "c"].map(|name| found(since.first(2), name)),
            [1, 2, 0]
        );
        since.forget(1);
        assert_eq!(
            ["a", "b", "c"].map(|name| found(since.all(), name)),
            [1, 1, 1]
        );
        assert_eq!(since.list().len(), 3);
        since.forget(9);
        assert!(since.list().is_empty() && found(since.all(), "b") == 0);
    }
}
