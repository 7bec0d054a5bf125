//! An allowance bounds how much of a server's time the proxy's own questions may take.

use super::Millis;
use std::sync::atomic::{AtomicU64, Ordering};

/// A share of the time. What is not spent is saved up to a bound. So a few questions in a row wait
/// for nothing, and many questions wait for each other.
#[derive(Debug)]
pub(super) struct Allowance {
    /// The share as a fraction: of this many milliseconds, one may be spent.
    share: u64,
    /// The most milliseconds that are saved up.
    most: u64,
    /// When everything spent will have been made up for, in milliseconds.
    paid: AtomicU64,
}

impl Allowance {
    pub(super) const fn new(share: u64, most: u64) -> Self {
        Self {
            share,
            most,
            paid: AtomicU64::new(0),
        }
    }

    /// Whether a question may be put now.
    pub(super) fn is_left(&self, now: Millis) -> bool {
        self.owed(now) <= self.most.saturating_mul(self.share)
    }

    /// The milliseconds until everything spent will have been made up for.
    pub(super) fn owed(&self, now: Millis) -> u64 {
        self.paid.load(Ordering::Relaxed).saturating_sub(now.0)
    }

    /// Records that a question took `took` milliseconds.
    pub(super) fn spend(&self, took: u64, now: Millis) {
        self.spend_micros(took.saturating_mul(1_000), now);
    }

    /// Records that a question took `took` microseconds.
    pub(super) fn spend_micros(&self, took: u64, now: Millis) {
        let more = took.saturating_mul(self.share) / 1_000;
        let order = Ordering::Relaxed;
        let add = |paid: u64| Some(paid.max(now.0).saturating_add(more));
        // It is always taken.
        let _ = self.paid.fetch_update(order, order, add);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_up_is_spent_at_once_and_then_only_the_share() {
        let allowance = Allowance::new(10, 100);
        let mut spent = 0;
        for now in 1_000..2_000 {
            while allowance.is_left(Millis(now)) {
                allowance.spend(25, Millis(now));
                spent += 25;
            }
            // The question that takes the last of it may take longer than what is left.
            let most = 100 + (now - 1_000) / 10 + 25;
            assert!((most - 26..=most).contains(&spent), "{spent} at {now}");
        }
    }

    #[test]
    fn no_more_is_saved_up_than_that() {
        let allowance = Allowance::new(10, 100);
        let later = Millis(1_000_000);
        let count = (0..1_000).take_while(|_| {
            let is_left = allowance.is_left(later);
            allowance.spend(10, later);
            is_left
        });
        assert_eq!(count.count(), 11);
    }
}
