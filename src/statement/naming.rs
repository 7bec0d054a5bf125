//! Naming: which names of a database have hazards now. That is the answer to the last question, and
//! what was defined since the question was put.
//!
//! Invariants:
//! - the known names have the hazards of everything that was defined through the proxy, in that
//!   order. It does not matter whether a definition is in the catalog yet or was rolled back: a
//!   hazard too many only costs a conversion;
//! - an answer is dropped if something was defined since the question that cannot be added to it;
//! - a session that doubts whether everything was defined through the proxy relies only on names
//!   that were asked for after the doubt arose.

use super::Millis;
use super::names::{Defined, Names};
use crate::sql::define::Definition;
use crate::sql::hazard::Hazards;
use crate::sql::residue::Leaves;
use crate::sql::touched::Touched;
use std::sync::Arc;

/// The most definitions that are remembered. If there are more, anything counts as defined.
const MAX_SINCE: usize = 1024;
/// The most names that the remembered definitions mention. If there are more, anything counts as
/// defined.
const MAX_MENTIONED: usize = 64 * 1024;

/// One question to the server: which names have hazards?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// The question's number, counted from 1.
    number: u64,
    /// How many definitions there were when the question was put.
    defined: u64,
}

/// Which names have got hazards by a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Renamed {
    /// None.
    Nothing,
    /// Only those that were defined.
    Own,
    /// Others, too.
    More,
}

/// Milliseconds for which sessions without doubt go on relying on the names after the catalog has
/// changed: by what was defined through the proxy, and maybe by more.
const GRACE: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Naming {
    known: Option<Arc<Names>>,
    /// The number of the question that the known names answer.
    known_by: u64,
    /// How many questions have been put.
    questions: u64,
    /// The definitions since the question that the known names answer, or since the oldest question
    /// that is not answered yet.
    since: Vec<Arc<Definition>>,
    /// How many definitions there were before those in `since`.
    before: u64,
    /// An answer is stale if there were fewer definitions than this when its question was put.
    lost: u64,
    /// For each question that is not answered yet, how many definitions there were when it was put.
    asked: Vec<u64>,
    /// The doubt, if the catalog may have changed by more than is known: the first question that
    /// was put after the change, and when the change was noticed.
    doubt: Option<(u64, Millis)>,
    /// Whether something was defined through the proxy since the catalog was looked at.
    has_defined: bool,
    /// The number of names that the definitions mention, repetitions included.
    mentioned: usize,
    /// Something was defined since that may leave something in the sessions that use it, and what
    /// uses it is not known.
    is_unclear: bool,
}

impl Naming {
    /// Whether it is known which names leave something in the sessions that use them.
    pub(super) const fn is_clear(&self) -> bool {
        self.known.is_some() && !self.is_unclear
    }

    /// Whether what is defined may leave something.
    fn leaves(&self, definition: &Definition) -> bool {
        definition.leaves
            || definition.hazards.has(Hazards::LEAVES)
            || self.known.as_ref().is_some_and(|names| {
                let mut mentioned = definition.mentions.iter();
                mentioned.any(|name| names.leaves(name) != Leaves::Nothing)
            })
    }

    /// The known names, if they answer the question `since` or a later one.
    pub(super) fn known(&self, since: u64) -> Option<&Arc<Names>> {
        self.known.as_ref().filter(|_| self.known_by >= since)
    }

    /// The number of the next question.
    pub(super) const fn next_question(&self) -> u64 {
        self.questions + 1
    }

    /// Whether names are known, but should be asked for again.
    pub(super) fn is_doubtful(&self) -> bool {
        let since = self.doubt.map_or(0, |(question, _)| question);
        self.known.is_some() && self.known_by < since
    }

    /// Records that something was defined that the catalog will have.
    pub(super) const fn has_defined(&mut self) {
        self.has_defined = true;
    }

    /// Records a look at the catalog; `changed` says whether it has changed. Returns whether the
    /// names are no longer known.
    pub(super) fn looked(&mut self, changed: bool, now: Millis) -> bool {
        let is_ours = std::mem::take(&mut self.has_defined);
        if !changed {
            return false;
        }
        let is_overdue = match self.doubt {
            Some((_, since)) if self.is_doubtful() => now.since(since) > GRACE,
            _ => false,
        };
        if !is_ours || is_overdue {
            self.lose();
            return true;
        }
        let since = match self.doubt {
            Some((_, since)) if self.is_doubtful() => since,
            _ => now,
        };
        self.doubt = Some((self.next_question(), since));
        false
    }

    /// How many definitions there were.
    fn count(&self) -> u64 {
        self.before + self.since.len() as u64
    }

    /// Forgets the names, because anything may have been defined.
    pub(super) fn lose(&mut self) {
        self.known = None;
        self.forget();
        // A question that is being asked at this moment was put before.
        self.before += 1;
        self.lost = self.before;
    }

    fn forget(&mut self) {
        self.before = self.count();
        self.since.clear();
        self.mentioned = 0;
    }

    /// Adds a definition that is on its way to the server, or has been committed there. Returns
    /// what has changed.
    pub(super) fn define(&mut self, definition: &Arc<Definition>) -> Renamed {
        if self.known.is_none() && self.asked.is_empty() {
            return Renamed::Nothing;
        }
        let is_it = |known: &Arc<Definition>| Arc::ptr_eq(known, definition);
        let seen = self.since.iter().rposition(is_it);
        let of = |at: usize| self.before + at as u64;
        if seen.is_some_and(|at| self.asked.iter().all(|asked| of(at) >= *asked)) {
            return Renamed::Nothing;
        }
        self.is_unclear |= self.leaves(definition);
        let changed = match &self.known {
            Some(names) if seen.is_none() => names.define(definition, &self.since),
            _ => Defined::Same,
        };
        self.since.push(Arc::clone(definition));
        self.mentioned += definition.mentions.len();
        let fits = self.since.len() <= MAX_SINCE && self.mentioned <= MAX_MENTIONED;
        match changed {
            Defined::Same if fits => Renamed::Nothing,
            Defined::More { names, beyond } if fits => {
                self.known = Some(Arc::new(names));
                match beyond {
                    true => Renamed::More,
                    false => Renamed::Own,
                }
            }
            _ => {
                self.lose();
                Renamed::More
            }
        }
    }

    /// What is touched, with the names of all users if these are.
    pub(super) fn resolved(&self, touched: &Touched) -> Touched {
        let of = match touched {
            Touched::Users(of) => of,
            Touched::Names(_) | Touched::Refused => return touched.clone(),
            Touched::Unsaid | Touched::Everything => return Touched::Everything,
        };
        let known = self.known.as_ref();
        let users = known.and_then(|names| names.users(of, &self.since));
        users.map_or(Touched::Everything, Touched::names)
    }

    /// Counts a question for the names that is put now.
    pub(super) fn ask(&mut self) -> Question {
        self.questions += 1;
        let defined = self.count();
        self.asked.push(defined);
        Question {
            number: self.questions,
            defined,
        }
    }

    /// Forgets a question whose answer no session waits for any longer.
    pub(super) fn asked_no_more(&mut self, question: Question) {
        if let Some(at) = self
            .asked
            .iter()
            .position(|other| *other == question.defined)
        {
            self.asked.swap_remove(at);
        }
        if self.known.is_none() && self.asked.is_empty() {
            self.forget();
        }
    }

    /// Records the names that the server gave as the answer; returns whether they are used.
    pub(super) fn answer(&mut self, question: Question, names: Names) -> bool {
        let asked = question.defined;
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
            match names.define(definition, &since[..index]) {
                Defined::Same => {}
                Defined::More { names: more, .. } => names = more,
                Defined::Lost => return false,
            }
        }
        if self.known.is_some() && self.known_by > question.number {
            return false;
        }
        self.known = Some(Arc::new(names));
        self.known_by = question.number;
        let oldest = self.asked.iter().copied().min().unwrap_or(asked).min(asked);
        let settled = oldest.saturating_sub(self.before) as usize;
        self.since.drain(..settled.min(self.since.len()));
        self.before = self.before.max(oldest);
        self.is_unclear = self.since.iter().any(|definition| self.leaves(definition));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::define::Definitions;
    use crate::sql::survey::Known as _;
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
        naming.known(0).map(|names| names.of(name.as_bytes()))
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
    fn what_was_defined_before_takes_hazards_on() {
        let mut naming = known();
        define(&mut naming, "create view w as select * from v");
        define(&mut naming, "create view v as select f() from t");
        define(&mut naming, HARMFUL);
        for name in ["f", "v", "w"] {
            assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
        }
    }

    #[test]
    fn what_runs_without_being_named_is_asked_for() {
        let cast = "create cast (a as b) with function f(a)";
        for texts in [[HARMFUL, cast], [cast, HARMFUL]] {
            let mut naming = known();
            for text in texts {
                define(&mut naming, text);
            }
            assert_eq!(of(&naming, "v"), None);
        }
    }

    #[test]
    fn what_the_catalog_says_takes_hazards_on() {
        let uses = |object, name, on| Row::Depends {
            object,
            name,
            on,
            by_writing: false,
            inherits: false,
        };
        let named = |object, name| Row::Relation {
            object,
            name,
            kind: "u",
        };
        let body = Row::Function {
            oid: "4",
            name: "reads",
            language: "sql",
            volatile: true,
            source: "select * from v",
        };
        let rows = [
            uses("r1", "v", "r2"),
            named("r2", "t"),
            named("r3", "other"),
            uses("*", "", "r5"),
            named("r5", "implicit"),
            body,
        ];
        let mut naming = Naming::default();
        let asked = naming.ask();
        assert!(naming.answer(asked, Names::of_rows(&rows)));
        define(&mut naming, HARMFUL);
        let trigger =
            |table: &str| format!("create trigger g before insert on {table} execute function f()");
        define(&mut naming, &trigger("t"));
        for name in ["t", "v", "reads"] {
            assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
        }
        assert_eq!(of(&naming, "other"), Some(Hazards::NONE));
        define(&mut naming, &trigger("implicit"));
        assert_eq!(of(&naming, "other"), None, "anything may use that");
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
        // Another partition has the hazard before, and through it the parent.
        define(&mut naming, "create table p2 () inherits (p)");
        define(&mut naming, "alter table p rename to q");
        for table in ["p2", "q"] {
            let on = format!("create trigger g before insert on {table} execute function f()");
            define(&mut naming, &on);
        }
        for name in ["p1", "p2", "q"] {
            assert!(of(&naming, name).unwrap().has(Hazards::SETTINGS), "{name}");
        }
    }

    #[test]
    fn partitions_in_the_catalog_take_on_what_their_parent_gets() {
        let inherits = |object, name, on| Row::Depends {
            object,
            name,
            on,
            by_writing: false,
            inherits: true,
        };
        let relation = |object, name, kind| Row::Relation { object, name, kind };
        let mut rows = vec![
            inherits("r1", "p", "r2"),
            inherits("r2", "q", "r3"),
            relation("r1", "p", "p"),
            relation("r2", "q", "p"),
            relation("r3", "child", "u"),
            relation("r4", "other", "u"),
        ];
        let trigger = |rows: &[Row<'_>]| {
            let mut naming = Naming::default();
            let asked = naming.ask();
            assert!(naming.answer(asked, Names::of_rows(rows)));
            define(&mut naming, HARMFUL);
            define(
                &mut naming,
                "create trigger g before insert on p execute function f()",
            );
            naming
        };
        let mut naming = trigger(&rows);
        define(&mut naming, "create policy y on p to r using (true)");
        for (name, has) in [("p", true), ("child", false)] {
            let hazards = of(&naming, name).unwrap();
            assert_eq!(hazards.has(Hazards::SECURED), has, "{name}");
        }
        for (name, has) in [("p", true), ("q", true), ("child", true), ("other", false)] {
            let hazards = of(&naming, name).unwrap();
            assert_eq!(hazards.has(Hazards::SETTINGS), has, "{name}");
        }
        rows.retain(|row| !matches!(row, Row::Relation { name: "child", .. }));
        assert_eq!(of(&trigger(&rows), "p"), None, "its name is not known");
    }

    #[test]
    fn what_is_defined_while_an_answer_is_awaited_is_added_to_it() {
        let mut naming = Naming::default();
        let nobody_knows = naming.define(&Arc::default());
        assert_eq!(nobody_knows, Renamed::Nothing);
        let asked = naming.ask();
        let harmful = define(&mut naming, HARMFUL);
        assert!(naming.answer(asked, Names::default()));
        naming.asked_no_more(asked);
        assert!(of(&naming, "f").unwrap().has(Hazards::SETTINGS));
        // It is committed behind the next question, which may not see it.
        let asked = naming.ask();
        let has_them = naming.define(&harmful);
        assert_eq!(has_them, Renamed::Nothing);
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
        assert!(naming.known(0).is_none());
        assert!(naming.answer(again, Names::default()));
    }

    #[test]
    fn a_change_that_may_be_more_than_ours_is_asked_for_by_who_doubts() {
        let mut naming = known();
        assert!(!naming.looked(false, Millis(0)));
        define(&mut naming, "create table t (a int)");
        naming.has_defined();
        assert!(!naming.looked(true, Millis(10)));
        assert!(naming.is_doubtful() && naming.known(0).is_some());
        let certain = naming.next_question();
        assert!(naming.known(certain).is_none());
        let question = naming.ask();
        assert!(naming.answer(question, Names::default()));
        assert!(!naming.is_doubtful() && naming.known(certain).is_some());
        assert!(naming.looked(true, Millis(20)), "none of ours");
        assert!(naming.known(0).is_none());
    }

    #[test]
    fn what_is_in_doubt_is_relied_on_for_a_while_only() {
        let mut naming = known();
        for (at, lost) in [(10, false), (10 + GRACE, false), (11 + GRACE, true)] {
            naming.has_defined();
            assert_eq!(naming.looked(true, Millis(at)), lost);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut naming = known();
        for number in 0..=MAX_SINCE {
            assert!(naming.known(0).is_some());
            define(&mut naming, &format!("create table t{number} (a int)"));
        }
        assert!(naming.known(0).is_none() && naming.since.is_empty());
    }
}
