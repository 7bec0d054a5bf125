//! Whether the sessions of a database reach it by a pooler that hands each transaction to another
//! server process.
//!
//! What the proxy does for a session it does in the process that the session logged in to: it has
//! statements prepared there, relies on its settings, and has it take back what a client has left.
//! Behind such a pooler (`pool_mode = transaction` of PgBouncer) the next batch finds another
//! process. The cancel key given at the login shows it: a server gives the number of the process
//! (`BackendKeyData` in the chapter on the protocol), a pooler one of its own.

use super::Database;
use crate::statement::Millis;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Milliseconds for which new sessions are taken for a pooler's without being asked.
const REMEMBERED: u64 = 60_000;

/// What sessions have shown.
#[derive(Debug, Default)]
pub(super) struct Pooled {
    /// When a session was found last that another process answers; one millisecond late, so that
    /// zero means never.
    found: AtomicU64,
    /// A session was found that is answered by its own, and none that is not since.
    is_direct: AtomicBool,
}

impl Database {
    /// A session was answered by the process that its login has named.
    pub fn finds_direct(&self) {
        self.pooled.is_direct.store(true, Ordering::Relaxed);
    }

    /// A session was answered by another. Returns whether that is news.
    pub fn finds_pooled(&self, now: Millis) -> bool {
        let was_known = self.is_pooled(now);
        self.pooled.is_direct.store(false, Ordering::Relaxed);
        let found = now.0.saturating_add(1);
        self.pooled.found.fetch_max(found, Ordering::Relaxed);
        !was_known
    }

    /// Whether that was found of a session lately.
    #[must_use]
    pub fn is_pooled(&self, now: Millis) -> bool {
        let found = self.pooled.found.load(Ordering::Relaxed);
        found > 0 && now.0 < found.saturating_add(REMEMBERED)
    }

    /// Whether sessions are known to be answered by the processes that their logins have named.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.pooled.is_direct.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_there_is_a_pooler_is_remembered_for_a_minute_and_told_once() {
        let database = Database::default();
        assert!(!database.is_pooled(Millis(0)) && !database.is_direct());
        database.finds_direct();
        assert!(database.is_direct());
        assert!(database.finds_pooled(Millis(0)));
        assert!(!database.is_direct());
        assert!(database.is_pooled(Millis(REMEMBERED)));
        assert!(!database.finds_pooled(Millis(REMEMBERED)));
        assert!(database.is_pooled(Millis(2 * REMEMBERED)));
        assert!(!database.is_pooled(Millis(2 * REMEMBERED + 1)));
        assert!(database.finds_pooled(Millis(2 * REMEMBERED + 1)));
    }
}
