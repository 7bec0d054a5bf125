//! `SET SESSION CHARACTERISTICS AS TRANSACTION …`, by which drivers choose how the session's next
//! transactions begin: JDBC's `setReadOnly` and `setTransactionIsolation` are this.

use super::{ASSIGNED, Assignment, Move, Reader, change, is};

/// The most modes of one text that are read: more say some of them twice.
const MAX_MODES: usize = 8;

impl Reader<'_> {
    /// Behind `SET SESSION CHARACTERISTICS`: each mode changes a setting, as a SET would
    /// (`ExecSetVariableStmt` in `guc_funcs.c`).
    pub(super) fn characteristics(&mut self) -> Option<Move> {
        self.expect("as")?;
        self.expect("transaction")?;
        let mut changes = Vec::new();
        loop {
            changes.push(self.mode()?);
            if changes.len() > MAX_MODES {
                return None;
            }
            if self.is_at_statements_end()? {
                return Some(Move::Settings(changes));
            }
            self.skips_comma();
        }
    }

    /// What one mode changes, as it would be written in a SET.
    fn mode(&mut self) -> Option<Assignment> {
        let word = self.keyword()?;
        let (name, to): (&[u8], &[u8]) = if is(word, "isolation") {
            self.expect("level")?;
            (b"default_transaction_isolation", self.level()?)
        } else if is(word, "read") {
            let word = self.keyword()?;
            let only = is(word, "only");
            if !only && !is(word, "write") {
                return None;
            }
            (b"default_transaction_read_only", flag(only))
        } else if is(word, "deferrable") {
            (b"default_transaction_deferrable", flag(true))
        } else if is(word, "not") {
            self.expect("deferrable")?;
            (b"default_transaction_deferrable", flag(false))
        } else {
            return None;
        };
        Some(change(name.into(), ASSIGNED, to, false))
    }

    fn level(&mut self) -> Option<&'static [u8]> {
        let word = self.keyword()?;
        if is(word, "serializable") {
            return Some(b"'serializable'");
        }
        if is(word, "repeatable") {
            self.expect("read")?;
            return Some(b"'repeatable read'");
        }
        if !is(word, "read") {
            return None;
        }
        let word = self.keyword()?;
        if is(word, "committed") {
            return Some(b"'read committed'");
        }
        is(word, "uncommitted").then_some(b"'read uncommitted'")
    }
}

const fn flag(is_on: bool) -> &'static [u8] {
    if is_on { b"1" } else { b"0" }
}
