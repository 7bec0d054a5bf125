//! How long statements took, by the route they went: a histogram with fixed bounds.
//!
//! A time is that from the moment a statement was sent to the server to the end of its answer, as
//! the worker saw both. What is answered with an error, what waits for the client's data (COPY),
//! and what was sent before the answer to something else had come is not timed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A route that a statement can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TimedRoute {
    /// As a prepared statement, on the server connection of its own client.
    Prepared,
    /// The same on the server connection of another.
    Shared,
    /// As the client wrote it.
    Passed,
}

impl TimedRoute {
    /// Every route, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Prepared, Self::Shared, Self::Passed];

    /// The route's name in counters.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Shared => "shared",
            Self::Passed => "passed",
        }
    }
}

/// The least bound is this power of two: fewer than 32 microseconds are not told apart, because a
/// turn of a worker's loop takes as long.
const LEAST: u32 = 5;

/// How many bounds there are, up to 16.8 seconds: a number of buckets that a scrape can carry.
const COUNT: usize = 20;

/// The bounds in microseconds, each twice the one before: to find the bucket of a time takes no
/// more than a count of its leading zeros.
pub const BOUNDS: [u64; COUNT] = {
    let mut bounds = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        bounds[at] = 1 << (LEAST as usize + at);
        at += 1;
    }
    bounds
};

/// The bucket of a time: the first whose bound it does not exceed, or the one behind the last.
const fn bucket(micros: u64) -> usize {
    let bits = u64::BITS - micros.saturating_sub(1).leading_zeros();
    let at = bits.saturating_sub(LEAST) as usize;
    if at < COUNT { at } else { COUNT }
}

/// The times of one worker.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; COUNT + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Only the thread that the counters belong to may call this.
    #[inline]
    pub(super) fn add(&self, micros: u64) {
        super::bump(&self.buckets[bucket(micros)], 1);
        super::bump(&self.micros, micros);
    }
}

/// How long the statements of one route took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    buckets: [u64; COUNT + 1],
    micros: u64,
}

impl Times {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (sum, count) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += count.load(Relaxed);
        }
        self.micros += histogram.micros.load(Relaxed);
    }

    /// How many statements took no longer than each of the [`BOUNDS`] and longer than the one
    /// before it; behind these, how many took longer than all.
    #[must_use]
    pub const fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// How many statements were timed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of their times, in microseconds.
    #[must_use]
    pub const fn micros(&self) -> u64 {
        self.micros
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (after, before) in difference.buckets.iter_mut().zip(earlier.buckets) {
            *after = after.saturating_sub(before);
        }
        difference.micros = self.micros.saturating_sub(earlier.micros);
        difference
    }

    /// Microseconds that so many percent of the statements did not exceed, as far as the bounds
    /// tell; between two of them, times are taken to lie evenly. `None` if none was timed.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let count = self.count();
        let wanted = (count * percent).div_ceil(100).max(1);
        let mut below = 0;
        for (at, in_bucket) in self.buckets.iter().enumerate() {
            if below + in_bucket >= wanted {
                let from = at.checked_sub(1).map_or(0, |at| BOUNDS[at]);
                let to = BOUNDS.get(at).copied().unwrap_or(from);
                return Some(from + (to - from) * (wanted - below) / in_bucket);
            }
            below += in_bucket;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_below_the_first_bound_that_it_does_not_exceed() {
        assert_eq!((BOUNDS[0], BOUNDS[COUNT - 1]), (32, 16_777_216));
        for (at, bound) in BOUNDS.into_iter().enumerate() {
            assert_eq!((bucket(bound), bucket(bound + 1)), (at, at + 1), "{bound}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, COUNT));
    }

    fn times(all: impl IntoIterator<Item = u64>) -> Times {
        let histogram = Histogram::default();
        all.into_iter().for_each(|micros| histogram.add(micros));
        let mut times = Times::default();
        times.add(&histogram);
        times
    }

    #[test]
    fn percentiles_lie_between_the_bounds_around_them() {
        assert_eq!(times([]).percentile(50), None);
        let times = times((0..98).map(|_| 100).chain([5_000, u64::MAX >> 1]));
        assert_eq!(times.count(), 100);
        let median = times.percentile(50).unwrap();
        assert!((64..=128).contains(&median), "{median}");
        let most = times.percentile(99).unwrap();
        assert!((4096..=8192).contains(&most), "{most}");
        assert_eq!(times.percentile(100), Some(BOUNDS[COUNT - 1]));
    }

    #[test]
    fn a_difference_is_of_what_came_after() {
        let (before, after) = (times([10, 10]), times([10, 10, 700, 300]));
        let since = after.since(&before);
        assert_eq!((since.count(), since.micros()), (2, 1000));
        assert_eq!(since.percentile(1), Some(512));
    }
}
