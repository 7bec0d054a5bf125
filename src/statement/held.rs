//! What sessions have locked that they may be about to change.
//!
//! A statement that was prepared before and waits for such a lock would go on with the types that
//! its parameters had: by then, what it names may be something else. A text is parsed when it has
//! the lock.

use crate::sql::touched::Touched;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What sessions of one database have locked.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How many there are.
    count: AtomicUsize,
    given: AtomicU64,
    all: Mutex<Vec<(u64, Touched)>>,
}

impl Held {
    /// A session locks this, or more than before. Returns its number, which is `own` if it has one.
    pub(super) fn hold(&self, own: Option<u64>, touched: &Touched) -> u64 {
        let mut all = self.all();
        let number = own.unwrap_or_else(|| self.given.fetch_add(1, Ordering::Relaxed));
        match all.iter_mut().find(|(known, _)| *known == number) {
            Some((_, before)) => *before = std::mem::take(before).and(touched.clone()),
            None => all.push((number, touched.clone())),
        }
        self.count.store(all.len(), Ordering::Release);
        number
    }

    /// The session of this number has nothing locked any more.
    pub(super) fn release(&self, number: u64) {
        let mut all = self.all();
        all.retain(|(known, _)| *known != number);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Whether a session has locked anything.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether a session other than that of the number `own` has locked what this text names.
    pub(super) fn concerns(&self, own: Option<u64>, text: &[u8]) -> bool {
        let all = self.all();
        let mut others = all.iter().filter(|(number, _)| Some(*number) != own);
        others.any(|(_, touched)| touched.concerns(text))
    }

    fn all(&self) -> MutexGuard<'_, Vec<(u64, Touched)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Touched {
        Touched::names(vec![name.as_bytes().into()])
    }

    #[test]
    fn others_are_concerned_until_it_is_released() {
        let held = Held::default();
        assert!(!held.is_any());
        let one = held.hold(None, &names("t"));
        let two = held.hold(None, &names("u"));
        assert_eq!(held.hold(Some(one), &names("v")), one);
        assert!(held.is_any() && one != two);
        for text in ["select t", "select v"] {
            assert!(held.concerns(Some(two), text.as_bytes()), "{text}");
            assert!(held.concerns(None, text.as_bytes()), "{text}");
            assert!(!held.concerns(Some(one), text.as_bytes()), "{text}");
        }
        assert!(!held.concerns(None, b"select w"));
        held.release(one);
        assert!(held.is_any() && !held.concerns(None, b"select t, v"));
        held.hold(Some(two), &Touched::Everything);
        assert!(held.concerns(None, b"select w"));
        held.release(two);
        assert!(!held.is_any());
    }
}
