//! Pools whose numbers the configuration changes: for who is there, and who waits.

use super::numbers::Figures;
use super::{Pool, Pools};
use crate::net::news::Frees as _;
use crate::net::ways::Ways;
use std::sync::Arc;

impl Pools {
    /// Has all pools be as the configuration says by now, which leads these ways.
    pub(in crate::net) fn follow(&self, ways: &Ways) {
        for ((database, user), pool) in self.known.all() {
            let figures = match ways.find(&database) {
                Some(way) => {
                    pool.stock.follows(&way.destination);
                    self.figures(&way, &user)
                }
                // Who is there stays.
                None => pool.numbers.get().without_least(),
            };
            pool.changes(figures);
        }
    }
}

impl Pool {
    /// From now on it has these numbers.
    pub(super) fn changes(self: &Arc<Self>, figures: Figures) {
        let least = self.numbers.least();
        self.numbers.set(figures);
        if figures.least != least {
            self.stock.has_least(figures.least);
        }
        Arc::clone(self).serve();
    }
}
