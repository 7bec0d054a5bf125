//! The shapes that are passed through most: a bounded sketch per worker, by sampling.
//!
//! To read a text so that it can be shown costs more than to pass it through. So only the first of
//! a phase are all read, and then one of more and more, up to [`SPARSEST`] on average, each of
//! which counts for those since the last. How many lie between is random, or else it might always
//! be the BEGIN of the same transaction.
//!
//! The sketch is Space-Saving (Metwally, Agrawal and El Abbadi, 2005): a shape without a slot takes
//! that of the shape met least, and its count, which is then known to be too much by so much.

use crate::reason::Reason;
use crate::sql::outline::outline;

/// Shapes that a worker counts apart. What is met more often than one time in so many is among
/// them.
const SLOTS: usize = 64;

/// Queries that are read before twice as many lie between two of them.
const DOUBLES_AFTER: u32 = 16;

/// The most queries, on average, from one that is read to the next.
const SPARSEST: u32 = 64;

/// The longest text of which a sample is kept, in bytes.
const MAX_SAMPLE: usize = 16 * 1024;

/// One text of a shape as a client sent it, with its values, and the database that it was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The database's name.
    pub database: Box<[u8]>,
    /// The text.
    pub text: Box<[u8]>,
}

/// A shape, with the reason that it is passed through for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// The reason.
    pub reason: Reason,
    /// The text without its values.
    pub shape: String,
    /// How often, at least, as far as can be told from those that were read.
    pub count: u64,
}

#[derive(Debug)]
struct Slot {
    passed: Passed,
    /// By how much the count may be too high.
    error: u64,
    sample: Option<Sample>,
}

/// What one worker has passed through most.
#[derive(Debug)]
pub(super) struct Most {
    slots: Vec<Slot>,
    /// How many were read.
    read: u32,
    /// How many queries the next one that is read stands for.
    gap: u32,
    random: u64,
    /// Memory for the next shape, so that one that has a slot allocates nothing.
    spare: String,
    /// A text of each shape is kept, too.
    keeps_samples: bool,
}

impl Default for Most {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            read: 0,
            gap: 1,
            random: 0x9e37_79b9_7f4a_7c15,
            spare: String::new(),
            keeps_samples: false,
        }
    }
}

impl Most {
    /// Notes a query that is to be read; returns the number of the next one, counted from it.
    pub(super) fn note(&mut self, reason: Reason, text: &[u8], database: &[u8]) -> u32 {
        let shape = outline(text, std::mem::take(&mut self.spare));
        let is_kept = self.keeps_samples && text.len() <= MAX_SAMPLE;
        let sample = is_kept.then_some((text, database));
        self.spare = self.add((reason, shape), self.gap.into(), sample);
        self.read = self.read.saturating_add(1);
        let doublings = self.read / DOUBLES_AFTER;
        let mean = 1_u32.checked_shl(doublings).unwrap_or(SPARSEST);
        let spread = 2 * mean.clamp(1, SPARSEST) - 1;
        self.gap = 1 + (self.draw() % u64::from(spread)) as u32;
        self.gap
    }

    /// Has a text of each shape kept that is noted from now on.
    pub(super) const fn keep_samples(&mut self) {
        self.keeps_samples = true;
    }

    /// Takes what was noted, and begins anew.
    pub(super) fn take(&mut self) -> Self {
        let next = Self {
            keeps_samples: self.keeps_samples,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }

    /// Marsaglia's xorshift.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Returns memory that is not used any more.
    fn add(
        &mut self,
        (reason, shape): (Reason, String),
        count: u64,
        sample: Option<(&[u8], &[u8])>,
    ) -> String {
        let is_same = |slot: &&mut Slot| slot.passed.reason == reason && slot.passed.shape == shape;
        if let Some(slot) = self.slots.iter_mut().find(is_same) {
            slot.passed.count = slot.passed.count.saturating_add(count);
            return shape;
        }
        let least = || {
            self.slots
                .iter()
                .enumerate()
                .min_by_key(|(_, slot)| slot.passed.count)
        };
        let (at, error) = match self.slots.len() < SLOTS {
            true => (None, 0),
            false => least().map_or((None, 0), |(at, slot)| (Some(at), slot.passed.count)),
        };
        let count = error.saturating_add(count);
        let slot = Slot {
            passed: Passed {
                reason,
                shape,
                count,
            },
            error,
            sample: sample.map(|(text, database)| Sample {
                database: database.into(),
                text: text.into(),
            }),
        };
        match at.and_then(|at| self.slots.get_mut(at)) {
            Some(place) => std::mem::replace(place, slot).passed.shape,
            None => {
                self.slots.push(slot);
                String::new()
            }
        }
    }

    /// A copy of what is counted, so that whoever wants to see it need not take it.
    pub(super) fn copy(&self) -> Self {
        let slots = self.slots.iter();
        let slots = slots.map(|slot| Slot {
            passed: slot.passed.clone(),
            error: slot.error,
            sample: slot.sample.clone(),
        });
        Self {
            slots: slots.collect(),
            ..Self::default()
        }
    }

    /// What is surely counted of each shape, and the text that was kept of it.
    fn counted(self) -> impl Iterator<Item = (Passed, Option<Sample>)> {
        self.slots.into_iter().map(|slot| {
            let passed = Passed {
                count: slot.passed.count - slot.error,
                ..slot.passed
            };
            (passed, slot.sample)
        })
    }
}

/// The `number` shapes that these workers have passed through most, the most frequent first.
pub(super) fn merged(workers: impl Iterator<Item = Most>, number: usize) -> Vec<Passed> {
    let all = sampled(workers, number).into_iter();
    all.map(|(passed, _)| passed).collect()
}

/// The same, each with the text that was kept of it, if one was.
pub(super) fn sampled(
    workers: impl Iterator<Item = Most>,
    number: usize,
) -> Vec<(Passed, Option<Sample>)> {
    let mut all: Vec<_> = workers.flat_map(Most::counted).collect();
    all.sort_by_cached_key(|(passed, _)| (passed.reason as u8, passed.shape.clone()));
    all.dedup_by(|(next, sample), (kept, kept_sample)| {
        let is_same = next.reason == kept.reason && next.shape == kept.shape;
        if is_same {
            kept.count = kept.count.saturating_add(next.count);
            if kept_sample.is_none() {
                *kept_sample = sample.take();
            }
        }
        is_same
    });
    // Stable: equal counts stand in the order of their reasons.
    all.sort_by_key(|(passed, _)| std::cmp::Reverse(passed.count));
    all.truncate(number);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes `shapes` through one behind the other.
    fn pass(most: &mut Most, shapes: impl Iterator<Item = usize>) {
        let mut next = 1;
        for shape in shapes {
            next -= 1;
            if next == 0 {
                next = most.note(
                    Reason::Threshold,
                    format!("SELECT s{shape}").as_bytes(),
                    b"d",
                );
            }
        }
    }

    #[test]
    fn few_are_counted_exactly() {
        let mut most = Most::default();
        pass(&mut most, (0..15).map(|at| at % 3));
        let all = merged(std::iter::once(most), 10);
        let all: Vec<_> = all.iter().map(|it| (&*it.shape, it.count)).collect();
        assert_eq!(all, [("SELECT s0", 5), ("SELECT s1", 5), ("SELECT s2", 5)]);
    }

    #[test]
    fn many_are_counted_about_right_and_one_that_comes_at_each_fourth_place_too() {
        let mut most = Most::default();
        pass(
            &mut most,
            (0..400_000).map(|at| if at % 4 == 1 { 1 } else { 0 }),
        );
        let all = merged(std::iter::once(most), 10);
        let sum: u64 = all.iter().map(|it| it.count).sum();
        assert!((399_000..=400_000).contains(&sum), "{all:?}");
        assert!((95_000..=105_000).contains(&all[1].count), "{all:?}");
    }

    #[test]
    fn what_is_frequent_is_found_among_any_number_of_others() {
        let mut most = Most::default();
        // One in ten is the same.
        pass(
            &mut most,
            (0..200_000).map(|at| if at % 10 == 3 { 0 } else { at }),
        );
        assert_eq!(most.slots.len(), SLOTS);
        let all = merged(std::iter::once(most), 3);
        assert_eq!((all[0].shape.as_str(), all.len()), ("SELECT s0", 3));
        assert!((15_000..=23_000).contains(&all[0].count), "{all:?}");
        assert!(all[1].count < 2_000, "{all:?}");
    }

    #[test]
    fn shapes_of_several_workers_are_one_and_reasons_keep_them_apart() {
        let mut workers = [Most::default(), Most::default()];
        for most in &mut workers {
            most.note(Reason::Trivial, b"a", b"d");
            most.note(Reason::Threshold, b"a", b"d");
            most.note(Reason::Trivial, b"a", b"d");
        }
        let all = merged(workers.into_iter(), 10);
        let all: Vec<_> = all.iter().map(|it| (it.reason, it.count)).collect();
        assert_eq!(all, [(Reason::Trivial, 4), (Reason::Threshold, 2)]);
    }

    #[test]
    fn a_text_of_each_shape_is_kept_only_where_that_is_wanted_and_the_first_that_is_not_too_long() {
        let long = format!("SELECT a FROM t WHERE b = '{}'", "x".repeat(MAX_SAMPLE));
        for wanted in [false, true] {
            let mut most = Most::default();
            if wanted {
                most.keep_samples();
            }
            most.note(Reason::Mode, b"SELECT 1", b"one");
            most.note(Reason::Mode, b"SELECT 2", b"two");
            most.note(Reason::Mode, long.as_bytes(), b"one");
            let all = sampled(std::iter::once(most.take()), 10);
            let samples: Vec<_> = all.into_iter().map(|(_, sample)| sample).collect();
            let kept = Sample {
                database: (*b"one").into(),
                text: (*b"SELECT 1").into(),
            };
            assert_eq!(samples, [wanted.then_some(kept), None]);
            assert_eq!(most.keeps_samples, wanted, "also of what comes next");
        }
    }
}
