//! What is known of each database, and shared between the connections to it.
//!
//! Invariants:
//! - a database is remembered from the login that its server has accepted;
//! - an epoch is a number among those of all databases and given once, so what was settled at one
//!   never looks current again, not even after its database was forgotten and came back.

use super::{Instant, lock};
use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Epochs given so far, to whatever database.
#[derive(Debug, Clone, Default)]
struct Epochs(Arc<AtomicU64>);

impl Epochs {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What is shared between the connections to one database.
#[derive(Debug)]
pub struct Database {
    epoch: AtomicU64,
    epochs: Epochs,
    /// When the catalog is to be looked at next, in milliseconds.
    watch_due: AtomicU64,
    /// What it looked like last.
    sign: Mutex<Option<String>>,
}

impl Default for Database {
    /// One that is shared with nobody.
    fn default() -> Self {
        Self::new(&Epochs::default())
    }
}

impl Database {
    fn new(epochs: &Epochs) -> Self {
        Self {
            epoch: AtomicU64::new(epochs.next()),
            epochs: epochs.clone(),
            watch_due: AtomicU64::new(0),
            sign: Mutex::default(),
        }
    }
}

/// A look at the catalog may take this share of the time, one in so many.
const WATCH_SHARE: u64 = 50;

impl Database {
    /// The catalog epoch: it moves whenever a session of the proxy is seen to change the catalog.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Takes the look at the catalog that is due; false if none is, or another session took it.
    pub fn take_watch(&self, now: Instant, interval: u64) -> bool {
        let due = self.watch_due.load(Ordering::Relaxed);
        let next = now.0.saturating_add(interval);
        interval > 0
            && due <= now.0
            && self
                .watch_due
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The catalog looks like `sign`, it took from `asked` to `now` to find out. Moves the epoch
    /// if it looked otherwise before, and looks less often if that takes long.
    pub fn observed(&self, sign: &str, asked: Instant, now: Instant) -> bool {
        let pause = now.since(asked).saturating_mul(WATCH_SHARE);
        self.watch_due
            .fetch_max(now.0.saturating_add(pause), Ordering::Relaxed);
        let mut last = lock(&self.sign);
        let moved = last.as_deref().is_some_and(|last| last != sign);
        if last.as_deref() != Some(sign) {
            *last = Some(sign.to_owned());
        }
        if moved {
            self.advance();
        }
        moved
    }

    /// Moves the epoch: every statement and verdict from before it is stale.
    pub fn advance(&self) {
        // Whichever of two that advance at once is last, its number is new.
        self.epoch.store(self.epochs.next(), Ordering::Release);
    }
}

/// Bytes of a database's name that tell it from others: the server looks at no more.
const NAME: usize = 63;

/// Databases remembered, beyond those that somebody is connected to.
const MAX_IDLE: usize = 256;

/// The databases that sessions have logged in to.
#[derive(Debug)]
pub(super) struct Databases {
    known: Mutex<HashMap<Box<[u8]>, Arc<Database>, FixedState>>,
    epochs: Epochs,
}

impl Databases {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            known: Mutex::new(HashMap::with_hasher(FixedState::with_seed(seed))),
            epochs: Epochs::default(),
        }
    }

    /// What is shared about the database of this name. Once there are too many that nobody is
    /// connected to, those are forgotten.
    pub(super) fn get(&self, name: &[u8]) -> Arc<Database> {
        let name = name.get(..NAME).unwrap_or(name);
        let mut known = lock(&self.known);
        if let Some(found) = known.get(name) {
            return Arc::clone(found);
        }
        if known.len() >= MAX_IDLE {
            let is_idle = |database: &Arc<Database>| Arc::strong_count(database) == 1;
            if known.values().filter(|database| is_idle(database)).count() >= MAX_IDLE {
                known.retain(|_, database| !is_idle(database));
            }
        }
        let made = || Arc::new(Database::new(&self.epochs));
        Arc::clone(known.entry(name.into()).or_insert_with(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_that_looks_otherwise_moves_the_epoch() {
        let database = Database::default();
        let before = database.epoch();
        assert!(!database.take_watch(Instant(0), 0), "switched off");
        assert!(database.take_watch(Instant(0), 1000));
        assert!(!database.take_watch(Instant(999), 1000));
        assert!(!database.observed("a", Instant(0), Instant(1)), "the first");
        assert!(database.take_watch(Instant(1000), 1000));
        assert!(!database.observed("a", Instant(1000), Instant(1000)));
        assert_eq!(database.epoch(), before);
        assert!(database.observed("b", Instant(1000), Instant(1050)));
        assert!(database.epoch() > before);
        assert!(!database.take_watch(Instant(3549), 1000), "it took long");
        assert!(database.take_watch(Instant(3550), 1000));
    }

    #[test]
    fn the_epoch_moves_for_one_database_only_and_is_nobody_else_s() {
        let databases = Databases::new(1);
        let (a, b) = (databases.get(b"a"), databases.get(b"b"));
        let before = (a.epoch(), b.epoch());
        assert_ne!(before.0, before.1);
        a.advance();
        assert!(databases.get(b"a").epoch() > before.1);
        assert_eq!(b.epoch(), before.1);
    }

    #[test]
    fn a_database_that_was_forgotten_comes_back_at_another_epoch() {
        let databases = Databases::new(1);
        let held = databases.get(b"held");
        let before = databases.get(b"left").epoch();
        for number in 0..10 * MAX_IDLE {
            let name = format!("{number}{}", "x".repeat(10_000));
            assert_ne!(databases.get(name.as_bytes()).epoch(), before);
        }
        let known = lock(&databases.known);
        assert!(known.len() <= MAX_IDLE + 1);
        assert!(known.keys().all(|name| name.len() <= NAME));
        drop(known);
        assert!(Arc::ptr_eq(&held, &databases.get(b"held")));
        assert_ne!(databases.get(b"left").epoch(), before);
    }

    #[test]
    fn the_server_cuts_long_names_and_so_do_we() {
        let databases = Databases::new(1);
        let of = |length| databases.get("x".repeat(length).as_bytes());
        assert!(Arc::ptr_eq(&of(63), &of(100)));
        assert!(!Arc::ptr_eq(&of(62), &of(63)));
    }
}
