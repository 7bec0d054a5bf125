//! Where the steps of a session have led it: the contexts it can come back to without being asked.

use super::place::{Known, Place};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// The most ways that are remembered of a connection, and their bytes together.
const MAX_WAYS: usize = 256;
const MAX_BYTES: usize = 64 * 1024;

/// The contexts that places turned out to be.
#[derive(Debug, Default)]
pub(super) struct Transitions {
    known: HashMap<Box<[u8]>, Arc<Known>, RandomState>,
    bytes: usize,
    /// They hold as long as this is the count of contexts.
    count: u64,
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
        self.known.get(&*place.key()).map(Arc::clone)
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
        let key = place.key();
        let more = key.len() + known.reports.len();
        if self.known.len() >= MAX_WAYS || self.bytes + more > MAX_BYTES {
            self.clear();
        }
        if self.known.insert(key.into(), Arc::clone(known)).is_none() {
            self.bytes += more;
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.known = HashMap::default();
        self.bytes = 0;
    }
}
