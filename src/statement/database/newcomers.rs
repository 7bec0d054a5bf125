//! What connections are asked that have just logged in: little, and not all at once.
//!
//! A new server process has empty caches, so what it is asked first takes it milliseconds, and
//! nothing that was known before its login may be relied on there before the catalog was looked at.
//! Where hundreds come at once, each would look for itself, all at the same time, and the clients
//! would wait as long as all of that takes: 256 of them sent 500 queries in their first second and
//! 15,000 in each later one. But one look is as good for all who are there by then. So one looks
//! at a time, a few are asked for their contexts at a time, and the others' queries go through.
//! Better still if one looks that has been there for long: its caches are full.

use super::Database;
use crate::statement::Millis;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many are asked at a time: enough to keep a few processors busy.
const AT_ONCE: u32 = 4;

/// Looks of those that have just come may take one part of the time in this many. Each of them pays
/// for its look, so this only keeps those that come one after the other from looking for nobody
/// else.
const SHARE: u64 = 2;

/// Looks of others for them may take one part of the time in this many.
const SHARE_OF_OTHERS: u64 = 10;

/// Milliseconds behind a read that may run elsewhere for which others are taken to find a host.
const LATELY: u64 = 1_000;

/// Milliseconds after which another looks, although one is looking: its connection may have ended.
const PATIENCE: u64 = 1_000;

/// What is being asked of connections that have just logged in.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// How many are asked now.
    asked: AtomicU32,
    /// The time, in milliseconds, from which one may look at the catalog.
    look_due: AtomicU64,
    /// The time from which another may look for them.
    others_due: AtomicU64,
    /// Until when some connection is taken to have reads prepared that others may send.
    hosts: AtomicU64,
}

/// The turn of a connection that is asked for the first time. Whoever drops it leaves it to others.
#[derive(Debug)]
pub struct FirstTurn(Arc<Database>);

impl Drop for FirstTurn {
    fn drop(&mut self) {
        self.0.newcomers.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Database {
    /// Whether there is a turn for one that was never asked.
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.newcomers.asked.load(Ordering::Relaxed) < AT_ONCE
    }

    /// Takes a turn, in any case.
    #[must_use]
    pub fn takes_turn(self: &Arc<Self>) -> FirstTurn {
        self.newcomers.asked.fetch_add(1, Ordering::Relaxed);
        FirstTurn(Arc::clone(self))
    }

    /// Takes on the look at the catalog that new connections wait for; false if another looks, or
    /// has looked just now, or if it cannot be paid for.
    #[must_use]
    pub fn looks_first(&self, now: Millis) -> bool {
        let look_due = &self.newcomers.look_due;
        let due = look_due.load(Ordering::Relaxed);
        let next = now.0.saturating_add(PATIENCE);
        let order = Ordering::Relaxed;
        let is_due = due <= now.0 && self.affords();
        is_due && look_due.compare_exchange(due, next, order, order).is_ok()
    }

    /// A look, or what was as good as one, has taken so many milliseconds.
    pub(super) fn has_looked_first(&self, took: u64, now: Millis) {
        let due = |share: u64| now.0.saturating_add(took.saturating_mul(share - 1));
        let Newcomers {
            look_due,
            others_due,
            ..
        } = &self.newcomers;
        look_due.store(due(SHARE), Ordering::Relaxed);
        others_due.store(due(SHARE_OF_OTHERS), Ordering::Relaxed);
    }

    /// A look has taken so many milliseconds, from `asked` on, and is of no use: whoever is new may
    /// take on the next one.
    pub fn looked_in_vain(&self, asked: Millis, now: Millis) {
        self.has_looked_first(now.since(asked).max(1), now);
    }

    /// A new connection waits for somebody else's look: the next regular one comes earlier, if it
    /// can be paid for.
    pub fn awaits_look(&self) {
        if !self.affords() {
            return;
        }
        let due = self.newcomers.others_due.load(Ordering::Relaxed);
        self.watch_due.fetch_min(due, Ordering::Relaxed);
    }

    /// A client has sent a read that may run elsewhere, and that is prepared on its connection.
    #[inline]
    pub fn has_hosts(&self, now: Millis) {
        let hosts = &self.newcomers.hosts;
        // Most find it noted.
        if hosts.load(Ordering::Relaxed) <= now.0 {
            let until = now.0.saturating_add(LATELY);
            hosts.store(until, Ordering::Relaxed);
        }
    }

    /// Whether one has lately: so others' reads may find a connection where they are prepared.
    #[must_use]
    pub fn may_have_hosts(&self, now: Millis) -> bool {
        now.0 < self.newcomers.hosts.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_asked_at_a_time() {
        let database = Arc::<Database>::default();
        let mut turns: Vec<FirstTurn> = (0..AT_ONCE)
            .map(|_| {
                assert!(database.has_turn());
                database.takes_turn()
            })
            .collect();
        assert!(!database.has_turn());
        turns.pop();
        assert!(database.has_turn());
    }

    #[test]
    fn there_are_hosts_for_a_while_behind_a_read() {
        let database = Database::default();
        assert!(!database.may_have_hosts(Millis(0)));
        database.has_hosts(Millis(0));
        assert!(database.may_have_hosts(Millis(LATELY - 1)));
        assert!(!database.may_have_hosts(Millis(LATELY)));
    }

    #[test]
    fn one_looks_for_all_that_have_just_come() {
        let database = Database::default();
        assert!(database.looks_first(Millis(10)));
        assert!(!database.looks_first(Millis(11)));
        database.has_looked_first(18, Millis(12));
        assert!(!database.looks_first(Millis(29)));
        assert!(database.looks_first(Millis(30)));
        // Others look earlier than they would, but no sooner than the share of the time allows.
        database.has_looked_first(2, Millis(30));
        assert!(database.take_watch(Millis(30), 1_000));
        database.awaits_look();
        assert!(!database.is_watch_due(Millis(47), 1_000));
        assert!(database.is_watch_due(Millis(48), 1_000));
        database.has_looked_first(0, Millis(29));
        assert!(database.looks_first(Millis(30)));
        // It is never heard of again.
        assert!(!database.looks_first(Millis(1_029)));
        assert!(database.looks_first(Millis(1_030)));
    }

    #[test]
    fn a_look_in_vain_leaves_the_next_to_whoever_is_new() {
        let database = Database::default();
        assert!(database.looks_first(Millis(10)));
        database.looked_in_vain(Millis(10), Millis(14));
        assert!(!database.looks_first(Millis(17)));
        assert!(database.looks_first(Millis(18)));
    }

    /// A connection that is there for one transaction, as its predecessors were, has no use of it.
    #[test]
    fn nobody_looks_earlier_for_connections_that_earn_nothing() {
        let database = Database::default();
        database.has_looked_first(2, Millis(30));
        assert!(database.take_watch(Millis(30), 1_000));
        while database.affords() {
            database.pays(100);
        }
        database.awaits_look();
        assert!(!database.is_watch_due(Millis(1_029), 1_000));
        assert!(database.is_watch_due(Millis(1_030), 1_000));
    }
}
