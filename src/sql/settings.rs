//! The settings of a server that no statement depends on.
//!
//! Whatever is not named here may change what a text means, what it is planned like, in which order
//! its rows come, which errors it raises or what a client is told. So the list is not of what
//! matters, which grows with each version of the server, but of what does not.

/// Settings that do not matter, for one reason.
#[derive(Debug, Clone, Copy)]
pub struct Harmless {
    /// Why they do not.
    pub because: &'static str,
    /// Their names, and the first major version of the server that has each.
    pub names: &'static [(&'static str, u16)],
}

/// All settings that do not matter. They can be set a thousand times without anything being asked.
pub const HARMLESS: [Harmless; 4] = [
    Harmless {
        because: "The server looks at the time it allows when a statement begins to run or to \
            wait, and no plan is made with it.",
        names: &[
            ("client_connection_check_interval", 14),
            ("deadlock_timeout", 13),
            ("idle_in_transaction_session_timeout", 13),
            ("idle_session_timeout", 14),
            ("lock_timeout", 13),
            ("statement_timeout", 13),
            ("transaction_timeout", 17),
        ],
    },
    Harmless {
        because: "They are the connection's, which may be another than the client's own, and say \
            what its socket says.",
        names: &[
            ("tcp_keepalives_count", 13),
            ("tcp_keepalives_idle", 13),
            ("tcp_keepalives_interval", 13),
            ("tcp_user_timeout", 13),
        ],
    },
    Harmless {
        because: "They say when the server waits for its disk at the end of a transaction, after \
            the last statement.",
        names: &[("synchronous_commit", 13)],
    },
    Harmless {
        because: "They are for the server's log: a session whose client is sent what the log is \
            sent is not converted.",
        names: &[
            ("application_name", 13),
            ("log_duration", 13),
            ("log_min_duration_statement", 13),
            ("log_statement", 13),
        ],
    },
];

/// Those of them that limit how long a statement may run or wait.
pub const LIMITS: [&str; 3] = ["lock_timeout", "statement_timeout", "transaction_timeout"];

/// That of them that ends a session from which nothing comes.
pub const IDLE: &str = "idle_session_timeout";

/// The names in [`HARMLESS`].
pub fn harmless() -> impl Iterator<Item = &'static str> {
    let groups = HARMLESS.iter().flat_map(|group| group.names);
    groups.map(|(name, _)| *name)
}

/// Those of them that limit how long a transaction may be open, or wait for a lock.
pub const OPEN_LIMITS: [&str; 3] = [
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "transaction_timeout",
];

/// Whether this is the name of one of them, in letters of either case as the server has it.
#[must_use]
pub fn is_harmless(name: &[u8]) -> bool {
    harmless().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether the setting is the current transaction's: it ends with it, and begins as its `default_…`
/// says, so it is no part of a session's context.
#[must_use]
pub fn is_of_transaction(name: &[u8]) -> bool {
    const NAMES: [&str; 3] = [
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
    ];
    NAMES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// What the settings of extensions and languages begin with whose library a server may load when
/// something of theirs is first used. Until then a session can set them like any it makes up.
const LOADED_LATER: [&str; 34] = [
    "age",
    "anon",
    "auth_delay",
    "auto_explain",
    "babelfishpg_tsql",
    "citus",
    "columnar",
    "cron",
    "dblink",
    "diskann",
    "duckdb",
    "firebird_fdw",
    "hnsw",
    "hypopg",
    "ivfflat",
    "lantern",
    "mysql_fdw",
    "oracle_fdw",
    "orafce",
    "paradedb",
    "pg_hint_plan",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_trgm",
    "pgaudit",
    "pgcrypto",
    "pglogical",
    "pgroonga",
    "pgtle",
    "postgis",
    "postgres_fdw",
    "rum",
    "timescaledb",
    "vchordrq",
];

/// Whether a setting is one that somebody has made up (`app.tenant`): the server reads it for
/// nobody but those who call `current_setting`, which is never taken for a constant. `loaded` says
/// whether the server shows settings that begin with the same word.
#[must_use]
pub fn is_made_up(name: &[u8], loaded: impl Fn(&[u8]) -> bool) -> bool {
    let Some(dot) = name.iter().position(|byte| *byte == b'.') else {
        return false;
    };
    let first = name.get(..dot).unwrap_or_default();
    let is_first = |known: &&str| first.eq_ignore_ascii_case(known.as_bytes());
    // There are `plperlu`, `plpython3u` and more of their kind.
    let is_language = first.to_ascii_lowercase().starts_with(b"pl");
    !is_language && !LOADED_LATER.iter().any(is_first) && !loaded(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_extensions_are_not_made_up() {
        assert!(is_made_up(b"app.tenant", |_| false));
        assert!(!is_made_up(b"app.tenant", |first| first == b"app"));
        for name in ["work_mem", "PG_hint_plan.x", "plpython3.y", "postgis.z"] {
            assert!(!is_made_up(name.as_bytes(), |_| false), "{name}");
        }
        assert!(is_of_transaction(b"Transaction_isolation"));
    }

    #[test]
    fn each_has_a_reason_and_stands_once() {
        let mut names: Vec<&str> = harmless().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(HARMLESS.iter().all(|group| group.because.ends_with('.')));
        assert!(is_harmless(b"Statement_Timeout") && !is_harmless(b"statement_timeou"));
    }

    #[test]
    fn names_can_stand_in_an_array_without_quotes() {
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(harmless().all(plain));
    }
}
