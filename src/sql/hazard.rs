//! Hazards: what using an object may do that the text naming it does not show.
//!
//! A text says `SELECT tenant('b')`; that the function sets `search_path` stands in its body. So
//! hazards are kept by name: those of the functions and views of `pg_catalog` stand here, those of
//! users' objects follow from the catalog of their database (`statement::names`). A name may belong
//! to several objects, which all count: nothing is resolved here.

use super::effect::Effect;
use std::ops::{BitOr, BitOrAssign};

/// A set of hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hazards(u32);

impl Hazards {
    /// Nothing is known to happen.
    pub const NONE: Self = Self(0);
    /// It may change settings of the session.
    pub const SETTINGS: Self = Self(1);
    /// It may do anything: change catalogs, temporary objects and settings.
    pub const ANYTHING: Self = Self(1 << 1);
    /// It may show the text, the statements or the portals of the session, or behaves otherwise in
    /// the extended protocol.
    pub const SEES: Self = Self(1 << 2);
    /// The planner may run a function whose run shows.
    pub const PLANS: Self = Self(1 << 3);
    /// It may contact a foreign server.
    pub const FOREIGN: Self = Self(1 << 4);
    /// It has partitions or children, which a generic plan locks though the original would not.
    pub const PARTITIONED: Self = Self(1 << 5);
    /// What it shows depends on the membership of roles, which no plan is invalidated by.
    pub const SECURED: Self = Self(1 << 6);
    /// Running it shows, though its result is not used.
    pub const NOISY: Self = Self(1 << 7);
    /// It may run a function in SQL whose body is read anew with each plan, so that words stand for
    /// something in it that no text shows.
    pub const REREADS: Self = Self(1 << 8);
    /// It may leave something in the session that a fresh login would not find there.
    pub const LEAVES: Self = Self(1 << 9);
    /// Writing it may do that.
    pub const WRITTEN_LEAVES: Self = Self(1 << 10);
    /// It may run a function that is declared immutable, whose value the server may keep with the
    /// plan of what uses it.
    pub const FOLDED: Self = Self(1 << 11);
    /// It may run a function of a user's in PL/pgSQL, which the server keeps under the name that it
    /// had when it was first run in the session.
    pub const COMPILED: Self = Self(1 << 12);
    /// Writing it may draw a number from a sequence, which the session remembers.
    pub const DRAWS: Self = Self(1 << 13);
    /// It may change who may log in, or with which settings.
    pub const LOGINS: Self = Self(1 << 14);
    /// Writing it may run a function of a user's in PL/pgSQL.
    pub const WRITTEN_COMPILES: Self = Self(1 << 15);
    /// It may go on with a query that a cursor has opened elsewhere, whose name it was given.
    pub const FETCHES: Self = Self(1 << 16);
    /// It may change relations, or lock them as who is about to change them does. Whatever may, may
    /// do [anything](Self::ANYTHING).
    pub const LOCKS: Self = Self(1 << 17);
    /// All there are.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether one of `other` is among these.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// These without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// These and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What running it may do to the session.
    #[must_use]
    pub const fn effect(self) -> Effect {
        if self.has(Self::ANYTHING) {
            Effect::Unknown
        } else if self.has(Self::SETTINGS) {
            Effect::Session
        } else {
            Effect::None
        }
    }
}

impl Hazards {
    /// Those of functions, which all that uses them has.
    pub const OF_FUNCTIONS: Self = Self(0b11_0000_0001_0000_1111);
    /// Those that a table has but its partitions and children have not: what is read through the
    /// parent is secured by the parent's policies only.
    pub const OF_PARENTS: Self = Self(0b0110_0000);
    /// Those that concern a function whose body uses or writes what has them.
    pub const TO_BODIES: Self = Self(0b1100_0000_0000);
    /// Those that concern only who has the session next.
    pub const TO_SESSIONS: Self = Self(0b1011_1110_0000_0000);
    /// Those of functions that a planner had better not run.
    pub const OF_RUNS: Self = Self(0b1000_0011);
}

impl BitOr for Hazards {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Hazards {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Functions that run texts given as values, which may be put together to name anything.
const RUNS: [&str; 16] = [
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
];

/// Functions that change catalogs.
const CHANGES: [&str; 6] = [
    "lo_import",
    "pg_clear_attribute_stats",
    "pg_clear_relation_stats",
    "pg_import_system_collations",
    "pg_restore_attribute_stats",
    "pg_restore_relation_stats",
];

/// Functions that change settings.
const SETS: [&str; 2] = ["pg_reload_conf", "set_config"];

/// Functions that leave what neither a transaction's end nor a reset of settings takes away: locks
/// of the session, the seed of random numbers, a backup, what a session replicates for.
const LEAVES: [&str; 12] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_backup_start",
    "pg_copy_logical_replication_slot",
    "pg_copy_physical_replication_slot",
    "pg_create_logical_replication_slot",
    "pg_create_physical_replication_slot",
    "pg_replication_origin_session_setup",
    "pg_start_backup",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "setseed",
];

/// Functions that draw numbers from sequences, which the session remembers.
const DRAWS: [&str; 2] = ["nextval", "setval"];

/// The view whose rules set what is written into it, and answer with rows.
const WRITTEN: &str = "pg_settings";

/// Functions and views that show the session's text, statements, portals or memory, and functions
/// whose result tells the protocols apart.
pub const SHOWS: [&str; 13] = [
    "current_query",
    "pg_backend_memory_contexts",
    "pg_column_size",
    "pg_cursor",
    "pg_cursors",
    "pg_get_backend_memory_contexts",
    "pg_log_backend_memory_contexts",
    "pg_prepared_statement",
    "pg_prepared_statements",
    "pg_stat_activity",
    "pg_stat_get_activity",
    "pg_stat_get_backend_activity",
    "statement_timestamp",
];

/// The names of `pg_catalog` that have hazards.
pub fn builtins() -> impl Iterator<Item = &'static str> {
    let calls = RUNS.into_iter().chain(CHANGES).chain(SETS).chain(SHOWS);
    calls.chain(LEAVES).chain([WRITTEN])
}

/// The functions of `pg_catalog` that draw numbers from sequences.
pub fn draws() -> impl Iterator<Item = &'static str> {
    DRAWS.into_iter()
}

/// Whether the function of `pg_catalog` with this name does.
#[must_use]
pub fn is_draw(name: &[u8]) -> bool {
    DRAWS
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The lengths of [`builtins`], a bit for each.
const LENGTHS: u64 = lengths(&RUNS)
    | lengths(&CHANGES)
    | lengths(&SETS)
    | lengths(&SHOWS)
    | lengths(&LEAVES)
    | lengths(&[WRITTEN]);

const fn lengths(names: &[&str]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < names.len() {
        bits |= 1 << names[at].len();
        at += 1;
    }
    bits
}

/// The hazards of the function or view of `pg_catalog` that has this name, in any case.
#[must_use]
#[inline]
pub fn builtin(word: &[u8]) -> Hazards {
    // All but one have an underscore, which few words of these lengths have.
    if word.len() > 35 || LENGTHS >> word.len() & 1 == 0 {
        return Hazards::NONE;
    }
    if !word.contains(&b'_') && word.len() != "setseed".len() {
        return Hazards::NONE;
    }
    let is = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
    if SETS.iter().any(&is) {
        Hazards::SETTINGS
    } else if RUNS.iter().any(&is) {
        Hazards::ANYTHING.with(Hazards::SEES)
    } else if CHANGES.iter().any(&is) {
        Hazards::ANYTHING
    } else if SHOWS.iter().any(&is) {
        Hazards::SEES
    } else if LEAVES.iter().any(&is) {
        Hazards::LEAVES
    } else if is(&WRITTEN) {
        Hazards(Hazards::SETTINGS.0 | Hazards::PLANS.0)
    } else {
        Hazards::NONE
    }
}

/// Whether what runs strings, a text or the body of a function, may change by one of them who may
/// log in, or with which settings: all words in it count.
#[must_use]
pub fn spells_logins(text: &[u8]) -> bool {
    const ALONE: [&str; 4] = ["grant", "pg_reload_conf", "reassign", "revoke"];
    const VERBS: [&str; 3] = ["alter", "create", "drop"];
    const KINDS: [&str; 7] = [
        "database", "event", "group", "owned", "role", "system", "user",
    ];
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let words = || text.split(|byte| !is_part(*byte));
    let has = |wanted: &[&str]| {
        let is = |word: &[u8]| {
            let mut all = wanted.iter();
            all.any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
        };
        words().any(is)
    };
    has(&ALONE) || has(&VERBS) && has(&KINDS)
}

/// Whether the body of a function, or a string that it runs, may change relations or lock them: all
/// words in it count. A string that it runs may have come from anywhere, unless it begins right
/// behind EXECUTE, or as what is formatted there, as a statement that reads or writes rows.
#[must_use]
pub fn spells_locks(body: &[u8]) -> bool {
    const VERBS: [&[u8]; 8] = [
        b"alter",
        b"cluster",
        b"create",
        b"drop",
        b"lock",
        b"refresh",
        b"reindex",
        b"truncate",
    ];
    const ROWS: [&[u8]; 7] = [
        b"delete", b"insert", b"merge", b"select", b"update", b"values", b"with",
    ];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let is_any = |word: &[u8], all: &[&[u8]]| all.iter().any(|one| word.eq_ignore_ascii_case(one));
    let words = body.chunk_by(|one, other| is_part(one) == is_part(other));
    let mut rest = words.filter(|word| !word.trim_ascii().is_empty());
    // Nothing but a parenthesis stands before the quotes, so no comment does.
    let opens = |between: &[u8]| {
        let is_known = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b'\'');
        between.contains(&b'\'') && between.iter().all(is_known)
    };
    while let Some(word) = rest.next() {
        if is_any(word, &VERBS) {
            return true;
        }
        if word.eq_ignore_ascii_case(b"execute") {
            let mut behind = rest.clone();
            let between = match behind.next() {
                Some(call) if call.eq_ignore_ascii_case(b"format") => behind.next(),
                between => between,
            };
            let is_plain = between.is_some_and(opens);
            if !is_plain || !behind.next().is_some_and(|first| is_any(first, &ROWS)) {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_strings_may_lock_unless_they_read_or_write_rows() {
        for body in [
            "BEGIN LOCK TABLE t; END",
            "BEGIN EXECUTE 'alter table t add x int'; END",
            "begin execute text; end",
            "begin EXECUTE format('%s', text); end",
            "select 'x'; drop(table)",
            "begin EXECUTE /* insert */ text; end",
            "begin EXECUTE -- select\n text; end",
            "begin EXECUTE select_text; end",
            "begin execute ",
            "begin execute",
        ] {
            assert!(spells_locks(body.as_bytes()), "{body}");
        }
        for body in [
            "",
            "BEGIN INSERT INTO t VALUES (1); RETURN NEW; END",
            "begin EXECUTE format('INSERT INTO %I SELECT ($1).*', name) USING new; end",
            "begin execute  ' update t set a = $1' using 1; end",
            "select locked, created from altered",
        ] {
            assert!(!spells_locks(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn builtins_are_known_in_any_case() {
        assert_eq!(builtin(b"Set_Config"), Hazards::SETTINGS);
        assert!(builtin(b"query_to_xml").has(Hazards::SEES));
        assert_eq!(builtin(b"lo_import"), Hazards::ANYTHING);
        assert_eq!(builtin(b"pg_cursors"), Hazards::SEES);
        assert!(builtin(b"PG_settings").has(Hazards::SETTINGS));
        assert_eq!(builtin(b"now"), Hazards::NONE);
        assert_eq!(builtin(&[b'_'; 100]), Hazards::NONE);
        for name in builtins() {
            assert!(!builtin(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn effects_follow_from_the_strongest_hazard() {
        assert_eq!(Hazards::NONE.effect(), Effect::None);
        assert_eq!(
            (Hazards::SEES | Hazards::PARTITIONED).effect(),
            Effect::None
        );
        assert_eq!(Hazards::SETTINGS.effect(), Effect::Session);
        assert_eq!(Hazards::ALL.effect(), Effect::Unknown);
        assert!(!Hazards::ALL.without(Hazards::SEES).has(Hazards::SEES));
    }

    #[test]
    fn what_strings_spell_counts_for_logins() {
        for text in [
            "do $$begin execute 'ALTER ROLE w SET search_path = b'; end$$",
            "execute format('drop %s %I', 'user', u)",
            "execute 'create '||'database d'",
            "grant a to b",
            "perform pg_reload_conf()",
        ] {
            assert!(spells_logins(text.as_bytes()), "{text}");
        }
        for text in [
            "alter table t add c int",
            "select count(*) from t group by user_id",
            "drop table users; select current_user",
            "",
        ] {
            assert!(!spells_logins(text.as_bytes()), "{text}");
        }
    }
}
