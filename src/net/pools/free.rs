//! What a pool has that nobody waits for.

use super::Pool;
use crate::net::news::{Grant, Place};
use std::sync::Arc;
use std::time::Instant;

impl Pool {
    /// What a login of this identity is given without waiting: an idle connection, or a place;
    /// `None` if there is nothing, or others wait for it.
    pub(in crate::net) fn at_once(self: &Arc<Self>, identity: Option<&[u8]>) -> Option<Grant> {
        self.stock.is_used(self.numbers.least());
        let inner = self.lock();
        if !inner.queue.is_empty() {
            return None;
        }
        let berth = identity.and_then(|identity| self.warm.take(identity, self.number));
        if let Some(berth) = berth {
            return Some(Grant::Warm(berth));
        }
        let is_free = self.takes_place(Instant::now());
        drop(inner);
        is_free.then(|| {
            let pool: Arc<Self> = Arc::clone(self);
            Grant::Open(Place::new(pool))
        })
    }
}
