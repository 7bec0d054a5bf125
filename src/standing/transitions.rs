//! Where the steps of a session have led it: the contexts it can come back to without being asked.

use super::place::{Known, Place};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// The most ways that are remembered of a connection, and their bytes together.
const MAX_WAYS: usize = 256;
const MAX_BYTES: usize = 64 * 1024;

/// As often as this has to be gone a way again that was learned, at a guess: the question, and
/// those about statements that follow it, take the server several times what conversions save it
/// once.
const PAYS: u16 = 8;

/// The most ways that may be learned before those that were learned are gone again: as many
/// tenants, each with a setting of its own, come in turn.
const AHEAD: u16 = 16;

/// The contexts that places turned out to be.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    known: HashMap<Box<[u8]>, Arc<Known>, RandomState>,
    bytes: usize,
    /// They hold as long as this is the count of contexts.
    count: u64,
    /// As often would those that were learned have to be gone again for them to have paid.
    unpaid: u16,
}

impl Transitions {
    /// What is known of this place, if the count of contexts is `count` by now.
    pub(super) fn find(&mut self, place: &Place, count: u64) -> Option<Arc<Known>> {
        if self.count != count {
            self.clear();
        }
        if self.known.is_empty() || place.from.count != count {
            return None;
        }
        let known = self.known.get(&*place.key()).map(Arc::clone)?;
        self.unpaid = self.unpaid.saturating_sub(1);
        Some(known)
    }

    /// Whether the session hardly ever goes the same way twice: a setting has another value each
    /// time.
    pub(super) const fn are_of_little_use(&self) -> bool {
        self.unpaid >= AHEAD * PAYS
    }

    /// The server has said what the context is at this place.
    pub(super) fn learn(&mut self, place: &Place, known: &Arc<Known>) {
        if self.count != known.count {
            self.clear();
            self.count = known.count;
        }
        if place.from.count != known.count {
            return;
        }
        self.unpaid = self.unpaid.saturating_add(PAYS);
        let key = place.key();
        let more = key.len() + known.reports.len();
        if self.known.len() >= MAX_WAYS || self.bytes + more > MAX_BYTES {
            self.clear();
        }
        if self.known.insert(key.into(), Arc::clone(known)).is_none() {
            self.bytes += more;
        }
    }

    /// Forgets all, but not whether it was of use.
    pub(super) fn clear(&mut self) {
        self.known = HashMap::default();
        self.bytes = 0;
    }
}
