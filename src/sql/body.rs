//! The bodies of functions: what running one may do, and which names it mentions.
//!
//! Only SQL and PL/pgSQL are read. A body is proven harmless by the words that it does not hold:
//! nothing in either language changes a setting, a catalog or a temporary object without one of the
//! verbs below, unless it calls a function that does; and the functions are among the names.

use super::hazard::{self, Hazards};
use super::words::{Item, Words};
use std::collections::HashSet;

/// What a block of PL/pgSQL does that stands between these quotes; `None` if it is not certain how
/// they are read.
pub(super) fn block(literal: &[u8]) -> Option<Body> {
    // If strings do not follow the standard, that is an escape.
    let is_certain = literal.starts_with(b"$") || !literal.contains(&b'\\');
    let source = string(literal).filter(|_| is_certain)?;
    Some(Body::read(&source, false, |_| false))
}

/// The value of a plain or a dollar-quoted string.
pub(super) fn string(literal: &[u8]) -> Option<Vec<u8>> {
    if literal.starts_with(b"$") {
        let tag = memchr::memchr(b'$', literal.get(1..)?)? + 2;
        let end = literal.len().checked_sub(tag)?;
        return literal.get(tag..end).map(<[u8]>::to_vec);
    }
    let inner = literal.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut value = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        // What is no pair goes on behind white space.
        if *byte == b'\'' && bytes.next() != Some(&b'\'') {
            return None;
        }
        value.push(*byte);
    }
    Some(value)
}

/// What is known of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// The hazards of its own words.
    pub hazards: Hazards,
    /// The names it may mention, in lower case.
    pub names: HashSet<Box<[u8]>, foldhash::fast::RandomState>,
}

/// Words that a body which changes neither catalogs nor temporary objects, and locks nothing that
/// may be about to change, has no need of. Some have a second, harmless meaning, as names of
/// columns; such a body counts as one that does.
const VERBS: [&str; 30] = [
    "alter",
    "analyse",
    "analyze",
    "call",
    "cluster",
    "comment",
    "commit",
    "create",
    "deallocate",
    "discard",
    "drop",
    "execute",
    "explain",
    "grant",
    "import",
    "listen",
    "load",
    "lock",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "reset",
    "revoke",
    "rollback",
    "security",
    "show",
    "truncate",
    "unlisten",
    "vacuum",
];

/// Words of a function whose run shows though its result is not used: it writes, draws a number,
/// says something, opens a cursor, as a loop over a query does, whose portal is numbered.
const NOTICED: [&str; 13] = [
    "assert",
    "copy",
    "cursor",
    "delete",
    "for",
    "insert",
    "merge",
    "open",
    "query",
    "raise",
    "refcursor",
    "share",
    "update",
];

impl Body {
    /// Of a function in a language that is not read.
    #[must_use]
    pub fn opaque() -> Self {
        Self {
            hazards: Hazards::OF_RUNS | Hazards::SEES | Hazards::LOGINS | Hazards::LOCKS,
            ..Self::default()
        }
    }

    /// Of a function with this source text, in SQL itself if `is_sql`. `is_noticed` tells which
    /// functions of `pg_catalog` are volatile, so that running them shows.
    #[must_use]
    pub fn read(source: &[u8], is_sql: bool, is_noticed: impl Fn(&[u8]) -> bool) -> Self {
        let mut body = Self::default();
        let mut words = Words::new(source);
        let mut set = Set::default();
        let mut inserts = false;
        loop {
            match words.next() {
                Item::Word(word) => {
                    // `SELECT INTO` sets a variable in PL/pgSQL, and creates a table in SQL.
                    if is_sql && !inserts && word.eq_ignore_ascii_case(b"into") {
                        body.hazards |= Hazards::ANYTHING;
                    }
                    inserts = ["insert", "merge"]
                        .iter()
                        .any(|verb| word.eq_ignore_ascii_case(verb.as_bytes()));
                    body.word(word, &mut set, &is_noticed);
                }
                Item::Other(byte) => set.other(byte),
                Item::End => break,
                Item::Escaped | Item::Broken => return Self::opaque(),
            }
        }
        // It may say so in a string that it runs.
        if body.hazards.has(Hazards::ANYTHING) {
            if hazard::spells_logins(source) {
                body.hazards |= Hazards::LOGINS;
            }
            if hazard::spells_locks(source) {
                body.hazards |= Hazards::LOCKS;
            }
        }
        body
    }

    fn word(&mut self, word: &[u8], set: &mut Set, is_noticed: &impl Fn(&[u8]) -> bool) {
        let word: Box<[u8]> = word.to_ascii_lowercase().into();
        let is = |known: &&str| known.as_bytes() == &*word;
        if VERBS.iter().any(&is) {
            self.hazards |= Hazards::ANYTHING;
        }
        if &*word == b"execute" {
            // What it runs is made of strings.
            self.hazards |= Hazards::SEES;
        }
        if matches!(&*word, b"fetch" | b"move") {
            self.hazards |= Hazards::FETCHES;
        }
        if NOTICED.iter().any(&is) || is_noticed(&word) {
            self.hazards |= Hazards::NOISY;
        }
        if !set.word(&word) {
            self.hazards |= match &*word {
                b"set" => Hazards::SETTINGS,
                _ => Hazards::ANYTHING,
            };
        }
        self.hazards |= hazard::builtin(&word);
        self.names.insert(word);
    }
}

/// Tells `UPDATE … SET` from SET, and `ON CONFLICT … DO` from DO.
///
/// A statement begins behind a semicolon, a label or one of a few words. `SET` that is the
/// statement's verb has no UPDATE before it in its statement.
#[derive(Default)]
struct Set {
    updates: bool,
    conflicts: bool,
    last: u8,
}

impl Set {
    /// Takes note of a word; false if it is the verb of a statement that sets something.
    fn word(&mut self, word: &[u8]) -> bool {
        self.last = b'x';
        match word {
            b"begin" | b"then" | b"else" | b"loop" | b"atomic" | b"declare" => {
                (self.updates, self.conflicts) = (false, false);
            }
            b"update" => self.updates = true,
            b"conflict" => self.conflicts = true,
            b"set" => return self.updates,
            b"do" => return self.conflicts,
            _ => {}
        }
        true
    }

    fn other(&mut self, byte: u8) {
        if byte == b';' || byte == b'>' && self.last == b'>' {
            (self.updates, self.conflicts) = (false, false);
        }
        self.last = byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hazards(source: &str) -> Hazards {
        Body::read(source.as_bytes(), false, |word| word == b"nextval").hazards
    }

    #[test]
    fn a_body_that_only_reads_and_computes_is_harmless() {
        for source in [
            "select a + 1 from t where b = 'set x = 1'",
            "begin new.changed := now(); return new; end",
            "begin /* set x */ if new.a > 5 then return null; end if; -- reset\n return new; end",
            "declare r record; begin select * into r from t; perform f(r.a); end",
        ] {
            assert_eq!(hazards(source), Hazards::NONE, "{source}");
        }
    }

    #[test]
    fn writing_shows_but_leaves_the_session_as_it_is() {
        for source in [
            "begin insert into audit values (old.*) on conflict (id) do update set n = 1; \
             return new; end",
            "begin update t as x set a = 1 where b = 2; return new; end",
            "with x as (update t set a = 1 returning *) \
             insert into u select * from x on conflict do nothing",
            "begin if a then update t set b = case when c then d else e end; end if; end",
            "begin raise notice 'x'; end",
            "declare r record; begin for r in select * from t loop perform f(r.a); end loop; end",
            "select nextval('s')",
        ] {
            let hazards = hazards(source);
            assert_eq!(hazards, Hazards::NOISY, "{source}");
        }
    }

    #[test]
    fn settings_are_found_wherever_a_statement_may_begin() {
        for source in [
            "set search_path = a",
            "begin set local search_path to a; end",
            "begin update t set a = 1; set search_path = a; end",
            "begin if x then set search_path = a; end if; end",
            "begin loop SET x = 1; end loop; end",
            "begin <<l>> set x = 1; end",
            "begin select set_config('a', 'b', true); end",
            "begin/**/\"set\" = 1; end",
            "begin perform pg_catalog.\"set_config\"('a', 'b', true); end",
        ] {
            assert!(hazards(source).has(Hazards::SETTINGS), "{source}");
        }
    }

    #[test]
    fn everything_else_may_do_anything() {
        for source in [
            "begin execute 'x'; end",
            "begin create temp table t (a int); end",
            "begin reset all; end",
            "begin perform query_to_xml('x', true, true, ''); end",
            "begin call p(); end",
            "begin do 'begin end'; end",
            "select U&\"s\\0065t_config\"('a', 'b', true)",
            "select 'a",
        ] {
            assert!(hazards(source).has(Hazards::ANYTHING), "{source}");
        }
    }

    #[test]
    fn a_table_is_created_by_what_sets_a_variable_elsewhere() {
        let hazards =
            |source: &str, is_sql| Body::read(source.as_bytes(), is_sql, |_| false).hazards;
        let source = "with x as (insert into u values (1)) select a \"INTO\" t from u";
        assert!(hazards("select 1 as a into temp t", true).has(Hazards::ANYTHING));
        assert!(hazards(source, true).has(Hazards::ANYTHING));
        assert!(!hazards("begin select 1 into t; end", false).has(Hazards::ANYTHING));
        assert!(!hazards("insert into t values (1)", true).has(Hazards::ANYTHING));
    }

    #[test]
    fn names_are_kept_in_lower_case() {
        let body = Body::read(b"select F(\"T\".a) from s.\"T\"", true, |_| false);
        for name in ["f", "t", "s", "a"] {
            assert!(body.names.contains(name.as_bytes()), "{name}");
        }
    }
}
