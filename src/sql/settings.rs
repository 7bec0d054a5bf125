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

/// The names in [`HARMLESS`].
pub fn harmless() -> impl Iterator<Item = &'static str> {
    let groups = HARMLESS.iter().flat_map(|group| group.names);
    groups.map(|(name, _)| *name)
}

/// Whether this is the name of one of them, in letters of either case as the server has it.
#[must_use]
pub fn is_harmless(name: &[u8]) -> bool {
    harmless().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
