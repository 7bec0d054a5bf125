//! What names meant while what users define was changing.
//!
//! A text may have run before or behind a change of what it names, and nobody knows which. If there
//! was one such change, it has done what the names before it say, or what those behind it do. Of
//! more than one, what was there between two of them nobody has seen.
//!
//! Invariants:
//! - each definition through the proxy that may leave something in the sessions that use it counts
//!   once, however often it is told of: when it is relayed, and when it has completed;
//! - what changes past the proxy between two looks at the catalog counts as one change. Who uses
//!   something that is defined and dropped again between two looks is not noticed by anybody.

use super::{Names, Since};
use crate::sql::define::{Definition, Name};
use std::collections::VecDeque;
use std::sync::Arc;

/// The most definitions that are remembered.
const MAX_REMEMBERED: usize = 256;

/// How much had changed at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::statement) struct Mark {
    /// Definitions that may leave something.
    defined: u64,
    /// Changes that looks have found.
    found: u64,
}

/// Names that the server has told, and how much had changed when it was asked for them.
#[derive(Debug, Clone)]
pub struct Basis {
    /// The names.
    pub names: Arc<Names>,
    at: Mark,
}

impl Basis {
    pub(in crate::statement) const fn new(names: Arc<Names>, at: Mark) -> Self {
        Self { names, at }
    }
}

/// The changes of what may leave something in the sessions that use it.
#[derive(Debug, Default)]
pub(in crate::statement) struct Transition {
    now: Mark,
    /// The latest definitions, the last of them last.
    latest: VecDeque<Arc<Definition>>,
}

impl Transition {
    pub(in crate::statement) const fn now(&self) -> Mark {
        self.now
    }

    /// Something is defined that may leave something.
    pub(in crate::statement) fn defines(&mut self, definition: &Arc<Definition>) {
        if self.latest.iter().any(|one| Arc::ptr_eq(one, definition)) {
            return;
        }
        self.now.defined += 1;
        self.latest.push_back(Arc::clone(definition));
        if self.latest.len() > MAX_REMEMBERED {
            self.latest.pop_front();
        }
    }

    /// Anything is defined.
    pub(in crate::statement) fn defines_anything(&mut self) {
        self.now.defined += 1;
        self.latest.clear();
    }

    /// A look has found that something was defined.
    pub(in crate::statement) const fn finds(&mut self) {
        self.now.found += 1;
    }

    /// What was defined between the questions for these names, one behind the other; `None` if it
    /// may be anything, or more has changed than that.
    pub(in crate::statement) fn between(
        &self,
        before: &Basis,
        behind: &Basis,
    ) -> Option<Vec<Arc<Definition>>> {
        let found = behind.at.found.checked_sub(before.at.found)?;
        let since = self.now.defined - before.at.defined;
        let until = self.now.defined - behind.at.defined;
        let from = (self.latest.len() as u64).checked_sub(since)?;
        let count = since.checked_sub(until)?;
        let all = self.latest.iter().skip(from as usize).take(count as usize);
        (found <= 1).then(|| all.cloned().collect())
    }
}

/// The names of all that may do what `definition` says, by the names before it or behind it; `None`
/// if it may be anything.
#[must_use]
pub fn concerned(definition: &Definition, both: [&Names; 2]) -> Option<Vec<Name>> {
    let of = definition.of.as_ref()?;
    let none = Since::default();
    let mut all = of.clone();
    for names in both {
        all.extend(names.users(of, none.all())?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(of: &[&str]) -> Arc<Definition> {
        let of = of.iter().map(|name| name.as_bytes().into()).collect();
        Arc::new(Definition {
            of: Some(of),
            leaves: true,
            ..Definition::default()
        })
    }

    fn basis(transition: &Transition) -> Basis {
        Basis::new(Arc::default(), transition.now())
    }

    #[test]
    fn what_was_defined_between_two_questions_is_told_once() {
        let mut all = Transition::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| definition(&[name]));
        all.defines(&a);
        let before = basis(&all);
        all.defines(&b);
        all.defines(&b);
        all.finds();
        let behind = basis(&all);
        all.defines(&c);
        all.defines(&b);
        let of = |before: &Basis, behind: &Basis| all.between(before, behind);
        assert_eq!(of(&before, &behind), Some(vec![Arc::clone(&b)]));
        assert_eq!(of(&behind, &behind), Some(vec![]));
        assert_eq!(of(&behind, &before), None, "they are the other way round");
        let now = basis(&all);
        assert_eq!(of(&before, &now), Some(vec![b, c]));
    }

    #[test]
    fn what_nobody_has_seen_may_be_anything() {
        let mut all = Transition::default();
        let before = basis(&all);
        all.finds();
        assert!(all.between(&before, &basis(&all)).is_some());
        all.finds();
        assert!(all.between(&before, &basis(&all)).is_none(), "it was two");
        let before = basis(&all);
        all.defines_anything();
        assert!(all.between(&before, &basis(&all)).is_none());
        let before = basis(&all);
        for _ in 0..MAX_REMEMBERED {
            all.defines(&definition(&["a"]));
        }
        let some = all.between(&before, &basis(&all));
        assert_eq!(some.map(|some| some.len()), Some(MAX_REMEMBERED));
        all.defines(&definition(&["a"]));
        assert!(all.between(&before, &basis(&all)).is_none(), "one is lost");
    }
}
