//! How many sessions were tainted, and whether each is told of.

use super::{Counters, Metrics, Summary, bump};
use crate::reason::Taint;
use std::sync::atomic::Ordering::Relaxed;

impl Counters {
    /// Counts a tainted session. Only the worker that these counters belong to may call this.
    pub fn tainted(&self, taint: Taint) {
        bump(&self.taints[taint as usize], 1);
    }

    /// Whether that is told of in the log, too.
    #[must_use]
    pub fn tells_of_taints(&self) -> bool {
        self.tells_of_taints.load(Relaxed)
    }
}

impl Metrics {
    /// Has sessions told of in the log that are tainted, or not.
    pub fn tell_of_taints(&self, wanted: bool) {
        let all = self.workers.iter().map(|worker| &worker.tells_of_taints);
        all.for_each(|tells| tells.store(wanted, Relaxed));
    }
}

impl Summary {
    /// Sessions that were tainted by this.
    #[must_use]
    pub fn taints(&self, taint: Taint) -> u64 {
        self.taints[taint as usize]
    }
}
