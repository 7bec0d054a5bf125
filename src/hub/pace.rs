//! How many reads a host is sent at a time: as many as is best for those who wait for them.
//!
//! Where client, proxy and server share few processors, many on one connection take the least time
//! for all; where the server has processors to spare, more connections do, and maybe every client's
//! own. Nothing but trying tells. So now and then another number is tried, in short windows by
//! turns with the one in use, and the mean time from a read to its answer decides, of those that
//! are away and those that are at home alike. Where both are as good, more reads on one connection
//! are better, because they take less of the server's time.
//!
//! Invariants:
//! - a trial takes at most [`PAIRS`] times two windows, and a small share of the time;
//! - a number is changed to a neighbour only, and only if most pairs of windows agree.

use crate::statement::{Micros, Millis};

/// The numbers that are tried. With none, everything is read at home.
const LEVELS: [usize; 6] = [0, 2, 4, 8, 16, 32];

/// Which of them is the first to be used.
const FIRST: usize = 4;

/// Microseconds of a window, and those after which one that has seen too little is given up.
const WINDOW: u64 = 20_000;
const LONGEST: u64 = 10 * WINDOW;

/// Answers without which a window says nothing.
const ENOUGH: u64 = 25;

/// Pairs of windows in a trial.
const PAIRS: usize = 5;

/// Milliseconds between two trials: at first, and when the last ones have changed nothing.
const PAUSE: u64 = 500;
const LONG_PAUSE: u64 = 16_000;

/// The mean time of the other number must be below so many percent of that in use to take its
/// place: with fewer reads on each connection, and with more.
const CLEARLY_LESS: u64 = 96;
const NO_MORE: u64 = 101;

/// Answers and how long they were waited for.
#[derive(Debug, Clone, Copy, Default)]
struct Waits {
    micros: u64,
    count: u64,
}

/// A trial under way.
#[derive(Debug)]
struct Trial {
    other: usize,
    /// The window is the other's.
    is_other: bool,
    since: Micros,
    /// Of the window of the number in use before this one.
    usual: Waits,
    /// For each pair, the other's mean time in percent of the usual one.
    ratios: Vec<u64>,
}

/// How many reads a host is sent at a time.
#[derive(Debug)]
pub(super) struct Pace {
    level: usize,
    trial: Option<Trial>,
    waits: Waits,
    next: Millis,
    pause: u64,
    /// More were tried last.
    was_more: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            level: FIRST,
            trial: None,
            waits: Waits::default(),
            next: Millis(0),
            pause: PAUSE,
            was_more: true,
        }
    }
}

impl Pace {
    /// The most reads on one connection now.
    #[inline]
    pub(super) fn most(&self) -> usize {
        let level = match &self.trial {
            Some(trial) if trial.is_other => trial.other,
            _ => self.level,
        };
        LEVELS[level]
    }

    /// A read that might have been sent to a host was answered after so long, wherever it was.
    #[inline]
    pub(super) const fn waited(&mut self, micros: u64) {
        self.waits.micros += micros;
        self.waits.count += 1;
    }

    /// Time has passed.
    #[inline]
    pub(super) fn tick(&mut self, clock: Micros) {
        if self.trial.is_some() || self.waits.count > 0 {
            self.step(clock);
        }
    }

    #[inline(never)]
    fn step(&mut self, clock: Micros) {
        let Some(trial) = &mut self.trial else {
            let now = clock.millis();
            if now >= self.next && self.waits.count >= ENOUGH {
                self.begin(clock);
            } else if now < self.next {
                self.waits = Waits::default();
            }
            return;
        };
        let lasted = clock.since(trial.since);
        if lasted < WINDOW || self.waits.count < ENOUGH {
            if lasted > LONGEST {
                self.ends(clock, false);
            }
            return;
        }
        let waits = std::mem::take(&mut self.waits);
        trial.since = clock;
        trial.is_other = !trial.is_other;
        if trial.is_other {
            trial.usual = waits;
            return;
        }
        let usual = trial.usual;
        let ratio = u128::from(waits.micros) * u128::from(usual.count) * 100
            / (u128::from(usual.micros.max(1)) * u128::from(waits.count));
        trial.ratios.push(u64::try_from(ratio).unwrap_or(u64::MAX));
        if trial.ratios.len() == PAIRS {
            self.decide(clock);
        }
    }

    /// Begins to try a neighbour, on the other side than the last time.
    fn begin(&mut self, clock: Micros) {
        let is_more = match self.level {
            0 => true,
            level if level + 1 == LEVELS.len() => false,
            _ => !self.was_more,
        };
        self.was_more = is_more;
        self.waits = Waits::default();
        self.trial = Some(Trial {
            other: if is_more {
                self.level + 1
            } else {
                self.level - 1
            },
            is_other: false,
            since: clock,
            usual: Waits::default(),
            ratios: Vec::with_capacity(PAIRS),
        });
    }

    fn decide(&mut self, clock: Micros) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        trial.ratios.sort_unstable();
        let median = trial.ratios.get(PAIRS / 2).copied().unwrap_or(u64::MAX);
        let most = match trial.other > self.level {
            true => NO_MORE,
            false => CLEARLY_LESS,
        };
        let is_better = median <= most;
        if is_better {
            self.level = trial.other;
            // The next step in the same direction may be as good.
            self.was_more = !self.was_more;
        }
        self.ends(clock, is_better);
    }

    fn ends(&mut self, clock: Micros, has_changed: bool) {
        self.trial = None;
        self.waits = Waits::default();
        self.pause = match has_changed {
            true => PAUSE,
            false => (self.pause * 2).min(LONG_PAUSE),
        };
        self.next = Millis(clock.millis().0.saturating_add(self.pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets so many milliseconds pass, in which a read with so many on each connection takes as
    /// long as `time` says, and returns the share of the time in which each number was used.
    fn live(pace: &mut Pace, millis: u64, time: impl Fn(usize) -> u64) -> Vec<(usize, u64)> {
        let mut used = LEVELS.map(|level| (level, 0)).to_vec();
        let begun = pace.next.0 * 1000;
        for turn in 0..millis * 2 {
            let most = pace.most();
            for place in &mut used {
                place.1 += u64::from(place.0 == most);
            }
            for _ in 0..4 {
                pace.waited(time(most));
            }
            pace.tick(Micros(begun + turn * 500));
        }
        used
    }

    fn usual(used: &[(usize, u64)]) -> (usize, u64) {
        let total: u64 = used.iter().map(|(_, turns)| turns).sum();
        let most = used.iter().max_by_key(|(_, turns)| *turns).unwrap();
        (most.0, most.1 * 100 / total)
    }

    #[test]
    fn the_number_that_is_best_is_found_and_kept_to() {
        for best in LEVELS {
            let time = |most: usize| 100 + 40 * most.abs_diff(best) as u64;
            let mut pace = Pace::default();
            live(&mut pace, 20_000, time);
            let (found, share) = usual(&live(&mut pace, 60_000, time));
            assert_eq!(found, best);
            assert!(share >= 97, "{best}: {share} %");
        }
    }

    #[test]
    fn where_all_are_as_good_many_share_a_connection() {
        let mut pace = Pace::default();
        live(&mut pace, 20_000, |_| 100);
        assert_eq!(usual(&live(&mut pace, 10_000, |_| 100)).0, 32);
    }

    #[test]
    fn what_was_best_may_change() {
        let mut pace = Pace::default();
        live(&mut pace, 60_000, |most| 100 + most as u64 * 30);
        assert_eq!(pace.most(), 0);
        live(&mut pace, 80_000, |most| 2000 - most as u64 * 30);
        assert_eq!(
            usual(&live(&mut pace, 10_000, |most| 2000 - most as u64 * 30)).0,
            32
        );
    }

    #[test]
    fn a_window_that_sees_little_decides_nothing() {
        let mut pace = Pace::default();
        for _ in 0..ENOUGH {
            pace.waited(100);
        }
        pace.tick(Micros(1_000_000));
        assert!(pace.trial.is_some());
        pace.waited(9);
        pace.tick(Micros(1_000_000 + LONGEST + 1));
        assert!(pace.trial.is_none() && pace.most() == LEVELS[FIRST]);
    }
}
