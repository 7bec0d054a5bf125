//! How much the server is asked: new shapes a second, and a share of the time.

use super::Millis;
use super::allowance::Allowance;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Questions may take one part of the time in this many, which is 2 %. All databases share it,
/// because they share the server.
pub const SHARE: u64 = 50;

/// The most milliseconds of questions that are saved up, so that a proxy that has just been started
/// learns its first hundreds of shapes at once. A lesson takes the server one to three (`payback`),
/// and on a busy machine it takes ten times as long until all answers are here.
const SAVED: u64 = 5_000;

/// As long as no more of that is taken, statements are asked about as soon as they seem to pay;
/// then only those that have been met so often that it would have paid (`payback::PATIENCE`). A
/// thousand shapes of fifty tenants are fifty thousand statements, most of which never pay. Of six
/// hundred shapes with skewed frequencies the first 6,000 queries took the server 1.2 to 1.4 times
/// the CPU of relayed ones with twice of this, and as much as those with a little less.
const EASY: u64 = 500;

/// The microseconds that a question takes in any case. Clocks and networks say less of short ones.
const LEAST: u64 = 100;

/// Of a time that is longer than the least one, one part in so many is added to that: a server may
/// have become slower.
const SLOWLY: u64 = 64;

/// How much the server is asked.
#[derive(Debug)]
pub struct Questions {
    rate: Rate,
    share: Allowance,
    /// The least milliseconds that a step has taken: what the way to the server and back takes is
    /// not the server's time.
    way: AtomicU64,
    /// About the least milliseconds that the question about a session's settings has taken lately.
    settings: AtomicU64,
}

impl Questions {
    pub(super) const fn new(per_second: u32) -> Self {
        Self {
            rate: Rate::new(per_second),
            share: Allowance::new(SHARE, SAVED),
            way: AtomicU64::new(u64::MAX),
            settings: AtomicU64::new(u64::MAX),
        }
    }

    /// From now on there are as many new shapes in a second.
    pub fn limit(&self, per_second: u32) {
        self.rate.per_second.store(per_second, Ordering::Relaxed);
    }

    /// Takes one of the new shapes of this second; false if there have been as many.
    pub fn take(&self, now: Millis) -> bool {
        self.rate.take(now)
    }

    /// Whether the share of the time leaves room for more.
    #[must_use]
    pub fn are_left(&self, now: Millis) -> bool {
        self.share.is_left(now)
    }

    /// Whether so little was asked lately that a statement may be asked about that may never pay.
    #[must_use]
    pub fn are_ample(&self, now: Millis) -> bool {
        self.share.owed(now) <= EASY * SHARE
    }

    /// Records that the question about a session's settings was answered in `took` milliseconds.
    ///
    /// It takes the server as long for each session. What it takes longer when many have just
    /// logged in is what it waits for a processor, which is not the server's time.
    pub fn spend_on_settings(&self, count: usize, took: u64, now: Millis) {
        let lately = |least: u64| match took < least {
            true => Some(took),
            false => Some(least + (took - least) / SLOWLY),
        };
        let order = Ordering::Relaxed;
        let before = self.settings.fetch_update(order, order, lately);
        let least = before.unwrap_or(took).min(took);
        self.spend(count, took.min(least.saturating_mul(2) + 1), now);
    }

    /// Records that so many questions, put at once, were answered in `took` milliseconds.
    pub fn spend(&self, count: usize, took: u64, now: Millis) {
        let way = self.way.fetch_min(took, Ordering::Relaxed).min(took);
        let least = LEAST.saturating_mul(count as u64);
        let micros = (took - way).saturating_mul(1_000).max(least);
        self.share.spend_micros(micros, now);
    }
}

/// So many new shapes per second, counted without a lock: `state` holds the second in its upper
/// half and the count in its lower half.
#[derive(Debug)]
struct Rate {
    per_second: AtomicU32,
    state: AtomicU64,
}

impl Rate {
    const fn new(per_second: u32) -> Self {
        Self {
            per_second: AtomicU32::new(per_second),
            state: AtomicU64::new(0),
        }
    }

    fn take(&self, now: Millis) -> bool {
        let second = (now.0 / 1000) << 32;
        let most = u64::from(self.per_second.load(Ordering::Relaxed));
        let mut taken = false;
        let _ = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                let used = if state & !0xffff_ffff == second {
                    state & 0xffff_ffff
                } else {
                    0
                };
                taken = used < most;
                taken.then_some(second | (used + 1))
            });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_shapes_are_counted_anew_every_second() {
        let rate = Rate::new(2);
        let taken: Vec<bool> = [0, 10, 20, 999, 1000, 1001, 1002, 5000]
            .map(|ms| rate.take(Millis(ms)))
            .into();
        assert_eq!(taken, [true, true, false, false, true, true, false, true]);
    }

    /// The milliseconds spent until `until` by steps of `took` each, `way` of it on the way.
    fn spent(took: u64, way: u64, until: u64) -> u64 {
        let questions = Questions::new(1);
        questions.spend(1, way, Millis(0));
        let (mut now, mut spent) = (0, 0);
        while now < until {
            if questions.are_left(Millis(now)) {
                now += took;
                questions.spend(1, took, Millis(now));
                spent += took - way;
            } else {
                now += 1;
            }
        }
        spent
    }

    #[test]
    fn questions_take_their_share_of_the_time_and_what_was_saved_up() {
        let hour = 3_600_000;
        for (took, way) in [(5, 0), (30, 0), (35, 5)] {
            let spent = spent(took, way, hour);
            let most = hour / SHARE + SAVED + took;
            assert!((most * 9 / 10..=most).contains(&spent), "{spent} of {most}");
        }
    }

    #[test]
    fn the_way_to_the_server_is_not_the_server_s_time() {
        let questions = Questions::new(1);
        for now in 0..10_000 {
            questions.spend(1, 20, Millis(now));
        }
        assert!(questions.are_left(Millis(10_000)));
    }

    #[test]
    fn what_many_logins_wait_for_each_other_is_not_the_server_s_time() {
        let questions = Questions::new(1);
        questions.spend_on_settings(1, 1, Millis(0));
        for _ in 0..1_000 {
            questions.spend_on_settings(1, 40, Millis(0));
        }
        assert!(questions.are_left(Millis(0)));
        // A server that has become slow is found out in the end.
        for _ in 0..1_000 {
            questions.spend_on_settings(1, 400, Millis(0));
        }
        assert!(!questions.are_left(Millis(0)));
    }

    #[test]
    fn short_questions_count_too() {
        let questions = Questions::new(1);
        let count = (0..1_000_000).take_while(|_| {
            questions.spend(3, 0, Millis(0));
            questions.are_left(Millis(0))
        });
        assert_eq!(count.count() as u64, SAVED * 1_000 / (3 * LEAST));
    }
}
