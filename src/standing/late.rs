//! What those texts leave that were relayed while it was not known what the names in them leave.
//!
//! All clients that connect right after a start have such texts. What a text shows by itself is
//! read at once, and the names in it are kept, each with how it was used. When the names are known,
//! they say the rest, as they would have said it at once. If the catalog has changed since the
//! first of the texts, the names of before have their say, too, and if what a text uses may have
//! changed more than once, nobody can tell what it did
//! ([`transition`]).

use super::unsurveyed::{MAX_BYTES, MAX_NAMES};
use crate::sql::define::{Definition, Name};
use crate::sql::residue::{self, Compiles, Leaves, Remains, Residue};
use crate::sql::survey::{Known, Survey};
use crate::statement::names::Names;
use crate::statement::names::transition::{self, Basis};
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;

/// Names of which it is still to be found out what using them has left.
#[derive(Debug)]
pub(super) struct Late {
    /// How it was when the first of the texts was relayed.
    pub(super) before: Before,
    /// What was left before, and by what the texts show by themselves.
    pub(super) residue: Residue,
    uses: HashMap<Box<[u8]>, Use, RandomState>,
    bytes: usize,
    /// Counts the texts.
    texts: u32,
    /// There was no room for a name.
    overflows: bool,
    /// What functions of users leave in them, if there are any that have bodies.
    of_bodies: Residue,
    /// There was a definition or the like, which leaves nothing if no event trigger runs.
    defines: bool,
}

/// How it was before the first of such texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// The count of [`alterations`](crate::statement::database::Database::alterations).
    pub(super) alterations: u64,
    /// The names that were told last.
    pub(super) told: Option<Basis>,
    /// The catalog had been looked at: whatever has changed past the proxy since is found by the
    /// looks that follow.
    pub(super) is_watched: bool,
    /// The session may have listened to something.
    pub(super) may_listen: bool,
    /// The catalog epoch when the first function may have run in the session.
    pub(super) kept_since: u64,
}

/// How a name was used.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    /// In a text that writes.
    writes: bool,
    /// Something was called by it.
    is_called: bool,
    /// The last text that it was in.
    text: u32,
}

/// The function by which a text may set something and do nothing else, if no other has its name.
const SETS: &[u8] = b"set_config";

impl Late {
    /// Of a session in which this was left before.
    pub(super) fn new(residue: Residue, before: Before) -> Self {
        Self {
            before,
            residue,
            uses: HashMap::default(),
            bytes: 0,
            texts: 0,
            overflows: false,
            of_bodies: Residue::KEPT,
            defines: false,
        }
    }

    /// What the text leaves, of which this is the survey, if the names in it leave nothing. They
    /// are kept; it is anything if there is no room for them.
    pub(super) fn read(&mut self, text: &[u8], survey: &Survey) -> Residue {
        self.texts = self.texts.wrapping_add(1);
        self.of_bodies |= residue::of_bodies(survey);
        let residue = residue::residue(text, survey, &Collector(RefCell::new(self)));
        if residue.has(Residue::WROTE) {
            let of_text = |used: &&mut Use| used.text == self.texts;
            let used = self.uses.values_mut().filter(of_text);
            used.for_each(|used| used.writes = true);
        }
        match self.overflows {
            true => Residue::ANYTHING,
            false => residue,
        }
    }

    fn note(&mut self, name: &[u8], is_called: bool) {
        if let Some(used) = self.uses.get_mut(name) {
            used.is_called |= is_called;
            used.text = self.texts;
            return;
        }
        self.bytes += name.len();
        self.overflows |= self.uses.len() >= MAX_NAMES || self.bytes > MAX_BYTES;
        if !self.overflows {
            let used = Use {
                is_called,
                text: self.texts,
                ..Use::default()
            };
            self.uses.insert(name.into(), used);
        }
    }

    /// Whether one of the texts may do what was defined, by the names before it or behind it.
    pub(super) fn is_concerned(&self, definition: &Definition, both: [&Names; 2]) -> bool {
        let is_used = |name: &Name| self.uses.keys().any(|used| used.eq_ignore_ascii_case(name));
        transition::concerned(definition, both).is_none_or(|all| all.iter().any(is_used))
    }

    /// What all of the texts have left, by what is known now.
    pub(super) fn settle(&self, known: &(impl Known + Remains)) -> Residue {
        // Of operators, which have no name that is kept.
        let mut hazards = known.of(b"");
        let mut residue = self.residue;
        if self.defines && known.fires() {
            return Residue::ANYTHING;
        }
        if known.has_bodies() {
            residue |= self.of_bodies;
        }
        for (name, used) in &self.uses {
            hazards |= known.of(name);
            if known.compiles(name).by(used.writes) {
                // Who looks after objects may run it as nobody else does.
                if self.defines {
                    return Residue::ANYTHING;
                }
                residue |= Residue::COMPILED;
            }
            let may_leave = match known.leaves(name) {
                Leaves::Always => true,
                Leaves::WhenWritten => used.writes || name.eq_ignore_ascii_case(SETS),
                Leaves::InBodies => name.eq_ignore_ascii_case(SETS),
                Leaves::Nothing => false,
            };
            if used.writes && known.draws(name) {
                residue |= Residue::SEQUENCES;
            }
            if may_leave || used.is_called && !known.is_harmless(name) {
                return Residue::ANYTHING;
            }
        }
        Residue::NOTHING.then(residue | residue::of_hazards(hazards))
    }
}

/// What a text leaves that names nothing.
pub(super) fn of_nameless(text: &[u8], survey: &Survey) -> Residue {
    residue::residue(text, survey, &Innocent)
}

/// Knows that nothing leaves anything.
struct Innocent;

impl Remains for Innocent {
    fn leaves(&self, _: &[u8]) -> Leaves {
        Leaves::Nothing
    }

    /// What a text without names writes is nothing.
    fn draws(&self, _: &[u8]) -> bool {
        false
    }

    fn is_harmless(&self, _: &[u8]) -> bool {
        true
    }

    fn has_bodies(&self) -> bool {
        false
    }

    fn compiles(&self, _: &[u8]) -> Compiles {
        Compiles::Nothing
    }

    fn fires(&self) -> bool {
        false
    }
}

/// Knows that nothing leaves anything, and keeps what it is asked for.
struct Collector<'a>(RefCell<&'a mut Late>);

impl Remains for Collector<'_> {
    fn leaves(&self, name: &[u8]) -> Leaves {
        self.0.borrow_mut().note(name, false);
        Leaves::Nothing
    }

    fn draws(&self, _: &[u8]) -> bool {
        false
    }

    fn is_harmless(&self, name: &[u8]) -> bool {
        self.0.borrow_mut().note(name, true);
        true
    }

    fn has_bodies(&self) -> bool {
        false
    }

    fn compiles(&self, _: &[u8]) -> Compiles {
        Compiles::Nothing
    }

    fn fires(&self) -> bool {
        self.0.borrow_mut().defines = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::hazard::Hazards;
    use crate::sql::survey;

    /// Knows what some names leave: `trig` when it is written, `view` always, a function `fine`
    /// nothing, and that `sets` sets something.
    struct Sees;

    impl Known for Sees {
        fn of(&self, name: &[u8]) -> Hazards {
            match name {
                b"sets" => Hazards::SETTINGS,
                b"draws" => Hazards::NOISY,
                _ => Hazards::NONE,
            }
        }
    }

    impl Remains for Sees {
        fn leaves(&self, name: &[u8]) -> Leaves {
            match name {
                b"trig" => Leaves::WhenWritten,
                b"view" => Leaves::Always,
                b"body" => Leaves::InBodies,
                _ => Leaves::Nothing,
            }
        }

        fn draws(&self, name: &[u8]) -> bool {
            name == b"drawn"
        }

        fn is_harmless(&self, name: &[u8]) -> bool {
            name == b"fine"
        }

        fn compiles(&self, _: &[u8]) -> Compiles {
            Compiles::Nothing
        }

        fn has_bodies(&self) -> bool {
            false
        }

        fn fires(&self) -> bool {
            true
        }
    }

    struct Blank;

    impl Known for Blank {
        fn of(&self, _: &[u8]) -> Hazards {
            Hazards::NONE
        }
    }

    /// What the texts leave, read late, and read when all is known.
    fn both(texts: &[&str]) -> (Residue, Residue) {
        let mut late = Late::new(Residue::NOTHING, Before::default());
        let mut at_once = Residue::NOTHING;
        for text in texts {
            let text = text.as_bytes();
            let residue = late.read(text, &survey::survey(text, &Blank));
            late.residue |= residue;
            at_once |= residue::residue(text, &survey::survey(text, &Sees), &Sees);
        }
        (late.settle(&Sees), at_once)
    }

    #[test]
    fn what_is_read_late_is_what_would_have_been_read_at_once() {
        let drawn = Residue::WROTE | Residue::SEQUENCES;
        for (texts, expected) in [
            (&["select 1", "select * from t"][..], Residue::NOTHING),
            (&["commit", "begin; select 1"], Residue::NOTHING),
            (&["insert into t values (1)"], Residue::WROTE),
            (&["insert into drawn values (1)"], drawn),
            (
                &["insert into t values (1)", "select a from drawn"],
                Residue::WROTE,
            ),
            (
                &["select * from trig", "select * from body"],
                Residue::NOTHING,
            ),
            (&["insert into trig values (1)"], Residue::ANYTHING),
            (
                &["with a as (select * from trig) delete from t"],
                Residue::ANYTHING,
            ),
            (&["select * from view"], Residue::ANYTHING),
            (&["select fine(1)", "select fine (2)"], Residue::NOTHING),
            (
                &["select fine from t", "select other(1)"],
                Residue::ANYTHING,
            ),
            (&["select other from t"], Residue::NOTHING),
            (&["select sets from t"], Residue::ANYTHING),
            (&["select draws from t"], Residue::SEQUENCES),
            (&["set timezone = 'utc'"], Residue::SETTINGS),
            (&["select pg_advisory_lock(1)"], Residue::LOCKS),
            (&["listen a"], Residue::CHANNELS),
            (&["create temp table a (a int)"], Residue::ANYTHING),
            (&["do $$ begin perform 1; end $$"], Residue::ANYTHING),
            (&["prepare p as select 1"], Residue::ANYTHING),
        ] {
            let (late, at_once) = both(texts);
            assert_eq!(late, expected, "{texts:?}");
            assert_eq!(at_once, expected, "{texts:?}");
        }
        // A write of one table and a read of another, in one session.
        let texts = ["insert into t values (1)", "select * from trig"];
        assert_eq!(both(&texts), (Residue::WROTE, Residue::WROTE));
    }

    #[test]
    fn a_function_of_users_with_the_name_of_the_servers_may_leave_anything() {
        struct Taken(Leaves);
        impl Known for Taken {
            fn of(&self, _: &[u8]) -> Hazards {
                Hazards::NONE
            }
        }
        impl Remains for Taken {
            fn leaves(&self, name: &[u8]) -> Leaves {
                match name.eq_ignore_ascii_case(SETS) {
                    true => self.0,
                    false => Leaves::Nothing,
                }
            }
            fn draws(&self, _: &[u8]) -> bool {
                false
            }
            fn is_harmless(&self, _: &[u8]) -> bool {
                false
            }
            fn compiles(&self, _: &[u8]) -> Compiles {
                Compiles::Nothing
            }

            fn has_bodies(&self) -> bool {
                true
            }

            fn fires(&self) -> bool {
                false
            }
        }
        let text = b"SELECT set_config('timezone', 'utc', false)";
        let mut late = Late::new(Residue::NOTHING, Before::default());
        let residue = late.read(text, &survey::survey(text, &Blank));
        late.residue |= residue;
        let of = |leaves| late.settle(&Taken(leaves));
        assert_eq!(of(Leaves::Nothing), Residue::SETTINGS | Residue::KEPT);
        assert_eq!(of(Leaves::InBodies), Residue::ANYTHING);
        assert_eq!(of(Leaves::WhenWritten), Residue::ANYTHING);
    }

    #[test]
    fn of_a_definition_it_is_found_out_late_whether_it_fires() {
        for (text, left) in [
            ("alter sequence s restart", Residue::ANYTHING),
            ("select 1", Residue::NOTHING),
        ] {
            let mut late = Late::new(Residue::NOTHING, Before::default());
            let residue = late.read(text.as_bytes(), &survey::survey(text.as_bytes(), &Blank));
            assert!(!residue.is_anything(), "{text}");
            late.residue |= residue;
            assert_eq!(late.settle(&Sees), left, "{text}");
        }
    }

    /// An ORM that names each column anew uses hundreds of names in the first statements of a
    /// session.
    #[test]
    fn a_session_may_use_a_thousand_names_before_it_is_known_what_they_leave() {
        let mut late = Late::new(Residue::NOTHING, Before::default());
        for table in 0..3 {
            let column = |number| format!("t{table}.column_{number} AS t{table}_column_{number}");
            let columns = (0..96).map(column).collect::<Vec<_>>().join(", ");
            let text = format!("SELECT {columns} FROM t{table}");
            assert_eq!(
                late.read(text.as_bytes(), &survey::survey(b"", &Blank)),
                Residue::NOTHING
            );
        }
        assert!(late.uses.len() > 256);
    }

    #[test]
    fn names_are_kept_once_and_within_bounds() {
        let mut late = Late::new(Residue::NOTHING, Before::default());
        let mut read = |text: &str| late.read(text.as_bytes(), &survey::survey(b"", &Blank));
        for number in 0..10 * MAX_NAMES {
            let text = format!("select a{} from t", number % (MAX_NAMES - 10));
            assert_eq!(read(&text), Residue::NOTHING);
        }
        let long = "x".repeat(MAX_BYTES);
        assert_eq!(read(&format!("select {long}")), Residue::ANYTHING);
        assert_eq!(read("select 1"), Residue::ANYTHING, "one is missing");
        assert!(late.uses.len() < MAX_NAMES);
        let mut late = Late::new(Residue::NOTHING, Before::default());
        let most = (0..=MAX_NAMES).map(|number| format!("a{number}"));
        let text = format!("select {}", most.collect::<Vec<_>>().join(", "));
        let residue = late.read(text.as_bytes(), &survey::survey(b"", &Blank));
        assert_eq!(residue, Residue::ANYTHING);
    }
}
