//! Which names of a database have hazards as of now: the answer to the last question, and what was
//! defined since it was put.
//!
//! Invariants:
//! - the names known have the hazards of everything that was defined through the proxy, in that
//!   order, whether it is in the catalog yet or was rolled back: too many cost a conversion;
//! - an answer is of no use if anything was defined since the question that cannot be added to it.

use super::names::{Defined, Names};
use crate::sql::define::Definition;
use std::sync::Arc;

/// Definitions that are remembered, and names mentioned in them. More are as if anything was
/// defined.
const MAX_SINCE: usize = 1024;
const MAX_MENTIONED: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Naming {
    known: Option<Arc<Names>>,
    /// What was defined since the names known, or the oldest that somebody asks for, were asked
    /// for.
    since: Vec<Arc<Definition>>,
    /// How many definitions there were before these.
    before: u64,
    /// Answers to questions from before this many definitions are stale.
    lost: u64,
    /// How many definitions there were when each question was put that is not answered yet.
    asked: Vec<u64>,
    /// The names that the definitions mention, at most.
    mentioned: usize,
}

impl Naming {
    pub(super) const fn known(&self) -> Option<&Arc<Names>> {
        self.known.as_ref()
    }

    /// How many definitions there were.
    fn count(&self) -> u64 {
        self.before + self.since.len() as u64
    }

    /// Anything may have been defined.
    pub(super) fn lose(&mut self) {
        self.known = None;
        self.forget();
        // What was asked for at this moment was asked for before.
        self.before += 1;
        self.lost = self.before;
    }

    fn forget(&mut self) {
        self.before = self.count();
        self.since.clear();
        self.mentioned = 0;
    }

    /// The definition is on its way to the server, or is there for all; returns whether the names
    /// have changed.
    pub(super) fn define(&mut self, definition: &Arc<Definition>) -> bool {
        if self.known.is_none() && self.asked.is_empty() {
            return false;
        }
        let is_it = |known: &Arc<Definition>| Arc::ptr_eq(known, definition);
        let seen = self.since.iter().rposition(is_it);
        let of = |at: usize| self.before + at as u64;
        if seen.is_some_and(|at| self.asked.iter().all(|asked| of(at) >= *asked)) {
            return false;
        }
        let changed = match &self.known {
            Some(names) if seen.is_none() => names.define(definition, uses(&self.since)),
            _ => Defined::Same,
        };
        self.since.push(Arc::clone(definition));
        self.mentioned += definition.mentions.len();
        let fits = self.since.len() <= MAX_SINCE && self.mentioned <= MAX_MENTIONED;
        match changed {
            Defined::Same if fits => false,
            Defined::More(names) if fits => {
                self.known = Some(Arc::new(names));
                true
            }
            _ => {
                self.lose();
                true
            }
        }
    }

    /// Somebody asks for the names; returns what to answer with.
    pub(super) fn ask(&mut self) -> u64 {
        let count = self.count();
        self.asked.push(count);
        count
    }

    /// Nobody waits for the answer to that question any longer.
    pub(super) fn asked_no_more(&mut self, asked: u64) {
        if let Some(at) = self.asked.iter().position(|other| *other == asked) {
            self.asked.swap_remove(at);
        }
        if self.known.is_none() && self.asked.is_empty() {
            self.forget();
        }
    }

    /// These were the names when that question was answered; returns whether they are of use.
    pub(super) fn answer(&mut self, asked: u64, names: Names) -> bool {
        let at = asked
            .checked_sub(self.before)
            .filter(|_| asked >= self.lost);
        let Some(since) = at.and_then(|at| self.since.get(at as usize..)) else {
            return false;
        };
        let mut names = names;
        for (index, definition) in since.iter().enumerate() {
            if since[..index]
                .iter()
                .any(|known| Arc::ptr_eq(known, definition))
            {
                continue;
            }
            match names.define(definition, uses(&since[..index])) {
                Defined::Same => {}
                Defined::More(more) => names = more,
                Defined::Lost => return false,
            }
        }
        self.known = Some(Arc::new(names));
        let oldest = self.asked.iter().copied().min().unwrap_or(asked).min(asked);
        let settled = oldest.saturating_sub(self.before) as usize;
        self.since.drain(..settled.min(self.since.len()));
        self.before = self.before.max(oldest);
        true
    }
}

/// Whether one of these definitions uses a name.
fn uses(definitions: &[Arc<Definition>]) -> impl Fn(&[u8]) -> bool {
    move |name: &[u8]| definitions.iter().any(|known| known.uses(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::define::Definitions;
    use crate::sql::effect::Known as _;
    use crate::sql::hazard::Hazards;
    use crate::statement::names::Row;

    const HARMFUL: &str = "create function f() returns int language sql as \
        'select set_config(''a'', ''b'', true)'";

    fn define(naming: &mut Naming, text: &str) -> Arc<Definition> {
        let definitions = Definitions::read(text.as_bytes());
        let definition = Arc::clone(&definitions.list[0]);
        naming.define(&definition);
        definition
    }

    fn known() -> Naming {
        let mut naming = Naming::default();
        let asked = naming.ask();
        assert!(naming.answer(asked, Names::default()));
        naming.asked_no_more(asked);
        naming
    }

    fn of(naming: &Naming, name: &str) -> Option<Hazards> {
        naming.known().map(|names| names.of(name.as_bytes()))
    }

    #[test]
    fn what_is_defined_has_the_hazards_of_what_it_mentions() {
        let mut naming = known();
        define(&mut naming, "create table t (a int)");
        define(&mut naming, HARMFUL);
        define(&mut naming, "create view v as select f() from t");
        define(&mut naming, "create view w as select * from v");
        for name in ["f", "v", "w"] {
            assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
        }
        assert_eq!(of(&naming, "t"), Some(Hazards::NONE));
    }

    #[test]
    fn hazards_of_what_something_uses_are_asked_for() {
        let mut naming = known();
        define(&mut naming, "create view v as select f() from t");
        define(&mut naming, HARMFUL);
        assert_eq!(of(&naming, "v"), None);
        // One that runs without being named.
        let mut naming = known();
        define(&mut naming, HARMFUL);
        define(&mut naming, "create cast (a as b) with function f(a)");
        assert_eq!(of(&naming, "v"), None);
    }

    #[test]
    fn what_the_catalog_says_is_used_is_asked_for() {
        let rows = [
            Row::Depends {
                object: "r1",
                name: "v",
                on: "r2",
                by_writing: false,
            },
            Row::Relation {
                object: "r2",
                name: "t",
                kind: "u",
            },
        ];
        let mut naming = Naming::default();
        let asked = naming.ask();
        assert!(naming.answer(asked, Names::of_rows(&rows)));
        define(&mut naming, HARMFUL);
        assert!(of(&naming, "f").is_some());
        define(
            &mut naming,
            "create trigger g before insert on v execute function f()",
        );
        assert!(of(&naming, "v").is_some(), "nothing uses the view");
        define(
            &mut naming,
            "create trigger g before insert on t execute function f()",
        );
        assert_eq!(of(&naming, "v"), None);
    }

    #[test]
    fn partitions_may_take_on_what_their_parent_has() {
        let mut naming = known();
        define(&mut naming, HARMFUL);
        define(&mut naming, "create table p (a int) partition by list (a)");
        define(
            &mut naming,
            "create table p1 partition of p for values in (1)",
        );
        assert_eq!(of(&naming, "p"), Some(Hazards::PARTITIONED));
        define(
            &mut naming,
            "create trigger g before insert on p execute function f()",
        );
        assert_eq!(of(&naming, "p"), None);
    }

    #[test]
    fn what_is_defined_while_an_answer_is_awaited_is_added_to_it() {
        let mut naming = Naming::default();
        assert!(!naming.define(&Arc::default()), "nobody knows anything");
        let asked = naming.ask();
        let harmful = define(&mut naming, HARMFUL);
        assert!(naming.answer(asked, Names::default()));
        naming.asked_no_more(asked);
        assert!(of(&naming, "f").unwrap().has(Hazards::SETTINGS));
        // It is committed behind the next question, which may not see it.
        let asked = naming.ask();
        assert!(
            !naming.define(&harmful),
            "they are known to have its hazards"
        );
        assert!(naming.answer(asked, Names::default()));
        assert!(of(&naming, "f").unwrap().has(Hazards::SETTINGS));
    }

    #[test]
    fn an_answer_from_before_anything_was_defined_is_stale() {
        let mut naming = Naming::default();
        let asked = naming.ask();
        naming.lose();
        let again = naming.ask();
        assert!(!naming.answer(asked, Names::default()));
        assert!(naming.known().is_none());
        assert!(naming.answer(again, Names::default()));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut naming = known();
        for number in 0..=MAX_SINCE {
            assert!(naming.known().is_some());
            define(&mut naming, &format!("create table t{number} (a int)"));
        }
        assert!(naming.known().is_none() && naming.since.is_empty());
    }
}
