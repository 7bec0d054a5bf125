//! The names of one database whose use has hazards.
//!
//! They follow from the catalog: from the functions of users with their bodies, and from what
//! depends on what. A hazard spreads from a function to the table whose trigger calls it, to the
//! views over that table, to the functions that mention one of these views. The catalog records
//! dependencies by OID, a body by name; a name counts for all objects that have it.
//!
//! Invariant: no hazard is left out, because that would be a wrong answer. A hazard too many only
//! costs a conversion, so what cannot be read makes everything hazardous.

mod defined;
mod graph;
mod leaving;
mod since;
pub mod transition;
mod used;

use crate::sql::hazard::Hazards;
use crate::sql::residue::{Compiles, Leaves, Remains};
use crate::sql::survey::Known;
pub use defined::Defined;
use foldhash::fast::RandomState;
use graph::Graph;
use leaving::Leaving;
pub use since::{Others, Since};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use used::Used;

type Map<K, V> = HashMap<K, V, RandomState>;

/// The names of a database that have hazards, and which they have.
#[derive(Debug, Default, Clone)]
pub struct Names {
    hazards: Map<Box<[u8]>, Hazards>,
    /// The hazards of objects that a text can use without naming them: operators, casts, types.
    implicit: Hazards,
    /// All hazards of the database together.
    any: Hazards,
    /// The hazards of the names with characters beyond ASCII together. Each client's encoding
    /// spells such names in its own way.
    beyond: Hazards,
    /// The hazards of the functions that event triggers run.
    events: Hazards,
    used: Arc<Used>,
    /// The names whose use may leave something in the session.
    leaving: Arc<Leaving>,
    /// The names of the functions of `pg_catalog` whose run shows.
    volatile: Arc<HashSet<Box<[u8]>, RandomState>>,
}

/// The longest name that is looked up, in bytes. The server cuts longer ones off.
const MAX_NAME: usize = 63;

impl Known for Names {
    #[inline]
    fn of(&self, name: &[u8]) -> Hazards {
        if self.hazards.is_empty() {
            return self.implicit;
        }
        let mut lower = [0; MAX_NAME];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return self.any;
        };
        if !name.is_ascii() {
            return self.implicit | self.beyond;
        }
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let found = self.hazards.get(&*lower);
        self.implicit | found.copied().unwrap_or_default()
    }
}

impl Remains for Names {
    #[inline]
    fn leaves(&self, name: &[u8]) -> Leaves {
        self.leaving.has(name)
    }

    fn draws(&self, name: &[u8]) -> bool {
        self.leaving.draws(name)
    }

    fn is_harmless(&self, name: &[u8]) -> bool {
        self.leaving.is_harmless(name)
    }

    fn has_bodies(&self) -> bool {
        self.leaving.bodies
    }

    fn compiles(&self, name: &[u8]) -> Compiles {
        self.leaving.compiles(name)
    }

    fn fires(&self) -> bool {
        self.leaving.fires
    }
}

impl Names {
    /// The names of a database of which nothing is known: any name may do anything.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            hazards: Map::default(),
            implicit: Hazards::ALL,
            any: Hazards::ALL,
            beyond: Hazards::ALL,
            events: Hazards::ALL,
            used: Arc::default(),
            leaving: Arc::new(Leaving::unknown()),
            volatile: Arc::default(),
        }
    }

    /// Whether an event trigger runs whenever somebody logs in.
    #[must_use]
    pub fn greets(&self) -> bool {
        self.leaving.logins
    }

    /// The hazards of the functions that event triggers run when something is defined.
    #[must_use]
    pub const fn events(&self) -> Hazards {
        self.events
    }

    /// The hazards of all names together.
    #[must_use]
    pub const fn any(&self) -> Hazards {
        self.any
    }

    /// Whether a name has hazards of functions, which spread to what uses the name.
    #[must_use]
    pub const fn spread(&self) -> bool {
        self.any.has(Hazards::OF_FUNCTIONS)
    }

    /// How many names have hazards.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hazards.len()
    }

    /// Whether no name has hazards.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hazards.is_empty()
    }
}

/// One row of the catalog's answer to the question which names have hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    /// The names of the functions of `pg_catalog` whose run shows, separated by spaces.
    Volatile(&'a str),
    /// There is an event trigger that runs whenever somebody logs in, or a login may begin with a
    /// search path that has the session make a temporary schema.
    Greets,
    /// A function of a user's in a language that is read, or a type, has the name of another
    /// function or type that is not.
    Taken {
        /// The name.
        name: &'a str,
        /// It is a type.
        is_type: bool,
    },
    /// A function of a user's.
    Function {
        /// The function's OID.
        oid: &'a str,
        /// The function's name.
        name: &'a str,
        /// The function's language.
        language: &'a str,
        /// Whether the function is declared volatile, so that the planner does not run it.
        volatile: bool,
        /// Whether the planner may run it, and keep its value (`i`); whether something else than
        /// the source says what it leaves (`!`).
        marks: &'a str,
        /// The function's source text; empty if it was parsed when the function was made.
        source: &'a str,
    },
    /// A relation, or a function that was parsed when it was made, uses this function or view of
    /// `pg_catalog`.
    Uses {
        /// The class and OID of the relation or function.
        object: &'a str,
        /// The name of the relation or function.
        name: &'a str,
        /// The name of what it uses.
        builtin: &'a str,
    },
    /// An object depends on another one: using it may do what the other one does.
    Depends {
        /// The class and OID of the object.
        object: &'a str,
        /// The name of the object.
        name: &'a str,
        /// The class and OID of the other one.
        on: &'a str,
        /// Whether only writing the object does what the other one does.
        by_writing: bool,
        /// Whether the other one is a partition or a child of the object.
        inherits: bool,
    },
    /// A relation or function of a special kind.
    Relation {
        /// The class and OID of the relation or function.
        object: &'a str,
        /// The name of the relation or function.
        name: &'a str,
        /// The kind of a relation: `f` is foreign, `p` is partitioned or a parent, `s` is secured
        /// for single roles, `u` is named only because something may use it, `b` has to do with
        /// types built over a domain with checks or shown by who knows what, `c` may write out what
        /// settings decide how to, `q` may draw from a sequence when it is written. A function that
        /// was parsed when it was made has the kind `n` if it calls a volatile one of
        /// `pg_catalog`.
        kind: &'a str,
    },
}

impl<'a> Row<'a> {
    /// Reads the five columns of a row.
    #[must_use]
    pub fn read(row: &'a [String; 5]) -> Option<Self> {
        let [kind, a, b, c, d] = row.each_ref().map(String::as_str);
        Some(match kind {
            "v" => Self::Volatile(a),
            "l" => Self::Greets,
            "o" => Self::Taken {
                name: a,
                is_type: b == "t",
            },
            "f" => {
                let (marks, language) = c.split_once(' ')?;
                Self::Function {
                    oid: a,
                    name: b,
                    language,
                    volatile: marks.starts_with('v'),
                    marks,
                    source: d,
                }
            }
            "u" => Self::Uses {
                object: a,
                name: b,
                builtin: c,
            },
            "d" => Self::Depends {
                object: a,
                name: b,
                on: c,
                by_writing: d == "w",
                inherits: d == "i",
            },
            "r" => Self::Relation {
                object: a,
                name: b,
                kind: c,
            },
            _ => return None,
        })
    }
}

impl Names {
    /// The names that follow from these rows, which must be all rows of the answer.
    #[must_use]
    pub fn of_rows(rows: &[Row<'_>]) -> Self {
        let volatile = rows.iter().filter_map(|row| match row {
            Row::Volatile(names) => Some(names.split(' ').map(str::as_bytes)),
            _ => None,
        });
        let volatile: HashSet<Box<[u8]>, _> = volatile.flatten().map(Box::from).collect();
        let mut graph = Graph::new();
        for row in rows {
            graph.add(row, |word| volatile.contains(word));
        }
        Self {
            volatile: Arc::new(volatile),
            ..graph.names()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function<'a>(oid: &'a str, name: &'a str, source: &'a str) -> Row<'a> {
        Row::Function {
            oid,
            name,
            language: "plpgsql",
            volatile: true,
            marks: "v",
            source,
        }
    }

    fn depends<'a>(object: &'a str, name: &'a str, on: &'a str) -> Row<'a> {
        Row::Depends {
            object,
            name,
            on,
            by_writing: false,
            inherits: false,
        }
    }

    #[test]
    fn a_hazard_spreads_to_all_that_depends_on_it() {
        let names = Names::of_rows(&[
            depends("r1", "T\"x", "f7"),
            depends("r2", "view", "r1"),
            function("7", "fire", "begin set search_path = a; end"),
            function("8", "calls", "begin perform 1 from view; end"),
            function("9", "innocent", "begin perform 1 from other; end"),
            depends("r3", "other", "f9"),
        ]);
        for name in ["t\"\"x", "VIEW", "Fire", "calls"] {
            assert_eq!(names.of(name.as_bytes()), Hazards::SETTINGS, "{name}");
        }
        for name in ["innocent", "other", "nothing"] {
            assert_eq!(names.of(name.as_bytes()), Hazards::NONE, "{name}");
        }
        assert_eq!(names.of(&[b'x'; MAX_NAME + 1]), Hazards::SETTINGS);
    }

    #[test]
    fn a_name_may_be_spelled_or_cut_off_in_other_ways() {
        let long = "a".repeat(63);
        let names = Names::of_rows(&[
            function("1", "tenant\u{e9}", "begin set search_path = a; end"),
            function("2", &long, "begin set search_path = a; end"),
        ]);
        assert_eq!(names.of(b"tenant\xe9"), Hazards::SETTINGS);
        assert_eq!(names.of(format!("{long}b").as_bytes()), Hazards::SETTINGS);
        assert_eq!(names.of(long.as_bytes()), Hazards::SETTINGS);
        assert_eq!(names.of(b"tenant"), Hazards::NONE);
    }

    #[test]
    fn circles_end() {
        let names = Names::of_rows(&[
            depends("r1", "a", "r2"),
            depends("r2", "b", "r1"),
            function("1", "f", "begin perform g(); end"),
            function("2", "g", "begin perform f() from b; end"),
            Row::Relation {
                object: "r2",
                name: "b",
                kind: "f",
            },
        ]);
        for name in [&b"a"[..], b"b", b"f", b"g"] {
            assert_eq!(names.of(name), Hazards::FOREIGN);
        }
    }

    #[test]
    fn what_no_text_names_counts_everywhere() {
        let names = Names::of_rows(&[
            depends("*", "", "f7"),
            function("7", "plus", "begin reset all; end"),
        ]);
        assert!(names.of(b"anything").has(Hazards::ANYTHING));
        assert!(Names::unknown().of(b"t").has(Hazards::FOREIGN));
        assert_eq!(Names::default().of(b"t"), Hazards::NONE);
    }

    #[test]
    fn only_what_is_not_volatile_is_run_by_the_planner() {
        let stable = |source| Row::Function {
            oid: "1",
            name: "f",
            language: "sql",
            volatile: false,
            marks: "s",
            source,
        };
        let of = |rows: &[Row<'_>]| Names::of_rows(rows).of(b"f");
        let volatile = Row::Volatile("nextval");
        assert!(of(&[volatile, stable("select nextval('s')")]).has(Hazards::PLANS));
        assert!(!of(&[volatile, function("1", "f", "nextval")]).has(Hazards::PLANS));
        let draws = function("2", "draw", "begin return nextval('s'); end");
        assert!(of(&[volatile, draws, stable("select draw()")]).has(Hazards::PLANS));
        let parsed = Row::Relation {
            object: "f1",
            name: "f",
            kind: "n",
        };
        assert!(of(&[stable(""), parsed]).has(Hazards::PLANS));
        assert!(!of(&[function("1", "f", ""), parsed]).has(Hazards::PLANS));
        let reads = stable("select 1 from t");
        let fires = |by_writing| Row::Depends {
            object: "r3",
            name: "t",
            on: "f2",
            by_writing,
            inherits: false,
        };
        let only_rereads = Hazards::REREADS;
        assert_eq!(of(&[volatile, draws, fires(true), reads]), only_rereads);
        assert!(of(&[volatile, draws, fires(false), reads]).has(Hazards::PLANS));
        assert_eq!(of(&[stable("select 1")]), only_rereads);
        assert!(of(&[stable("select set_config('a', 'b', true)")]).has(Hazards::PLANS));
    }

    #[test]
    fn a_function_that_is_one_of_the_servers_own_has_the_hazards_of_that() {
        let internal = |source| {
            let row = Row::Function {
                oid: "1",
                name: "f",
                language: "internal",
                volatile: false,
                marks: "i",
                source,
            };
            Names::of_rows(&[row, depends("*", "", "f1")]).of(b"x")
        };
        assert!(internal("int4multirange nummultirange").is_none());
        assert!(internal("set_config").has(Hazards::SETTINGS));
        assert!(internal("").has(Hazards::ANYTHING), "none of them");
    }

    #[test]
    fn rows_are_read() {
        let row = |cells: [&str; 5]| cells.map(str::to_owned);
        assert_eq!(
            Row::read(&row(["f", "7", "x", "s sql", "select 1"])),
            Some(Row::Function {
                oid: "7",
                name: "x",
                language: "sql",
                volatile: false,
                marks: "s",
                source: "select 1"
            })
        );
        assert_eq!(
            Row::read(&row(["d", "r1", "t", "f7", ""])),
            Some(depends("r1", "t", "f7"))
        );
        assert_eq!(Row::read(&row(["x", "", "", "", ""])), None);
    }
}
