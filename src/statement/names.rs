//! The names of one database whose use has hazards, as of one catalog epoch.
//!
//! They follow from the catalog: the functions of users with their bodies, and what depends on
//! what. A hazard spreads from a function to the table whose trigger calls it, to the views over
//! that table, to the functions that mention one of these views. The catalog says what depends on
//! what by OID, a body by name; a name counts for all objects that have it.
//!
//! Invariant: leaving something out would be a wrong answer, too much in here costs a conversion.
//! So what cannot be read makes everything hazardous.

mod defined;
mod graph;
mod used;

use crate::sql::hazard::Hazards;
use crate::sql::survey::Known;
pub use defined::Defined;
use foldhash::fast::RandomState;
use graph::Graph;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use used::Used;

type Map<K, V> = HashMap<K, V, RandomState>;

/// Names and their hazards.
#[derive(Debug, Default, Clone)]
pub struct Names {
    hazards: Map<Box<[u8]>, Hazards>,
    /// Those of objects that no text need name: operators, casts, types.
    implicit: Hazards,
    /// Those of everything together.
    any: Hazards,
    /// Those of the names with characters beyond ASCII, which each client's encoding spells in its
    /// own way.
    beyond: Hazards,
    used: Arc<Used>,
    /// The names of the functions of `pg_catalog` whose run shows.
    volatile: Arc<HashSet<Box<[u8]>, RandomState>>,
}

/// The longest name that is looked up: of longer identifiers the server cuts off the rest.
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

impl Names {
    /// Of a database of which nothing is known: any name may do anything.
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            hazards: Map::default(),
            implicit: Hazards::ALL,
            any: Hazards::ALL,
            beyond: Hazards::ALL,
            used: Arc::default(),
            volatile: Arc::default(),
        }
    }

    /// Whether some have hazards that spread to what uses them: those of functions.
    #[must_use]
    pub const fn spread(&self) -> bool {
        self.any.has(Hazards::OF_FUNCTIONS)
    }

    /// Names that have hazards.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hazards.len()
    }

    /// Whether no name has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hazards.is_empty()
    }
}

/// One row of what the catalog says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    /// The names of the functions of `pg_catalog` whose run shows, separated by spaces.
    Volatile(&'a str),
    /// A function of users.
    Function {
        /// Its OID.
        oid: &'a str,
        /// Its name.
        name: &'a str,
        /// Its language.
        language: &'a str,
        /// Whether it is declared volatile, so that no planner runs it.
        volatile: bool,
        /// Its source text; empty if it was parsed when it was made.
        source: &'a str,
    },
    /// A relation, or a function that was parsed when it was made, uses this function or view of
    /// `pg_catalog`.
    Uses {
        /// Its class and OID.
        object: &'a str,
        /// Its name.
        name: &'a str,
        /// What it uses.
        builtin: &'a str,
    },
    /// An object depends on another one: what the latter does, using the former may do.
    Depends {
        /// Its class and OID.
        object: &'a str,
        /// Its name.
        name: &'a str,
        /// The class and OID of the other one.
        on: &'a str,
        /// Only what writes the former does what the latter does.
        by_writing: bool,
        /// The latter is a partition or a child of the former.
        inherits: bool,
    },
    /// A relation is of this kind.
    Relation {
        /// Its class and OID.
        object: &'a str,
        /// Its name.
        name: &'a str,
        /// `f`: foreign; `p`: partitioned, or a parent; `s`: secured for single roles; `u`: nothing
        /// but its name is told, because something may use it. Or a function that was parsed when
        /// it was made: `n`: it calls a volatile one of `pg_catalog`.
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
            "f" => {
                let (volatility, language) = c.split_once(' ')?;
                Self::Function {
                    oid: a,
                    name: b,
                    language,
                    volatile: volatility == "v",
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
    /// What these rows, which must be all there are, lead to.
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
        assert_eq!(of(&[volatile, draws, fires(true), reads]), Hazards::NONE);
        assert!(of(&[volatile, draws, fires(false), reads]).has(Hazards::PLANS));
        assert_eq!(of(&[stable("select 1")]), Hazards::NONE);
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
