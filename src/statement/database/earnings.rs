//! What a database earns for questions out of turn: looks at its catalog because a connection is
//! new, may have changed it, or might be kept for another client, the question for its names, and
//! lessons about statements that may not come again.
//!
//! They take the server what hundreds or thousands of executions save. An application that
//! connects, defines and tests all the time, or does little, saves less than that. So beyond what
//! anybody is granted at first they are paid for: by what executions have saved, and by a share of
//! the time that the server has worked for what was passed through, which is what is to be gained.
//! All of what is saved, because a share of it does not pay for going on: with a quarter of it,
//! transactions that each make a temporary table were converted to 5 to 60 %, not to 80.
//!
//! Measured: 288 tests of Tryton's (8,319 queries on 47 connections in 10 s), twice, took 2.0 to
//! 2.2 s of questions while only the time that passes bounded them, and saved 0.04 to 0.06 s; paid
//! for, 0.8 to 0.9 s.

use super::Database;
use crate::statement::Micros;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Microseconds that are there from the beginning, for some lessons and what follows a change or
/// two. The first look and the first question for the names, without which nothing is ever saved,
/// take nothing of it.
const AT_FIRST: i64 = 150_000;

/// The most that is saved up.
const MOST: i64 = 1_000_000;

/// Of the time of what is passed through, one part in so many is spent.
const OF_PASSED: i64 = 50;

/// The most microseconds that a question of a lesson is taken to cost: two to three milliseconds
/// are the cost of a lesson of ten.
const QUESTION: u64 = 400;

/// Microseconds that a login is spared who is given a connection: it takes the server 3 to 7 ms.
const LOGIN: i64 = 3_000;

/// What is earned and spent.
#[derive(Debug)]
pub(super) struct Earnings {
    /// What is left, in microseconds. It is less than nothing after a question that took longer.
    left: AtomicI64,
    /// Until when the time of what is passed through was counted, in microseconds. What is answered
    /// in several sessions at once counts once: the longer each of them waits for a processor, the
    /// less the server can spare.
    served_until: AtomicU64,
    /// The names have been asked for.
    has_names: AtomicBool,
}

impl Default for Earnings {
    fn default() -> Self {
        Self {
            left: AtomicI64::new(AT_FIRST),
            served_until: AtomicU64::new(0),
            has_names: AtomicBool::new(false),
        }
    }
}

impl Earnings {
    fn add(&self, more: i64) {
        // Two at once may add a little more than that.
        if self.left.load(Ordering::Relaxed) < MOST {
            self.left.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// A login was spared.
    pub(super) fn spared(&self) {
        self.add(LOGIN);
    }
}

impl Database {
    /// Queries were passed through, and answered in so many microseconds, the last at this time.
    pub fn has_served(&self, micros: u64, at: Micros) {
        let until = self
            .earnings
            .served_until
            .fetch_max(at.0, Ordering::Relaxed);
        let micros = i64::try_from(micros.min(at.since(Micros(until)))).unwrap_or(MOST);
        self.earnings.add(micros / OF_PASSED);
    }

    /// Executions have saved so many microseconds.
    pub fn has_saved(&self, micros: u64) {
        self.earnings.add(i64::try_from(micros).unwrap_or(MOST));
    }

    /// Whether a question out of turn can be paid for.
    #[must_use]
    pub fn affords(&self) -> bool {
        self.earnings.left.load(Ordering::Relaxed) > 0
    }

    /// A look has taken so many milliseconds.
    pub fn pays_for_look(&self, took: u64) {
        if self.usage.least_look().is_some() {
            self.pays(self.usage.cost_of_look(took));
        }
    }

    /// The question for the names has taken so many milliseconds.
    pub fn pays_for_names(&self, took: u64) {
        if self.earnings.has_names.swap(true, Ordering::Relaxed) {
            self.pays(took);
        }
    }

    /// So many questions of a lesson have taken so many milliseconds.
    pub fn pays_for_lesson(&self, count: usize, took: u64) {
        let most = QUESTION.saturating_mul(count as u64);
        self.pays_micros(took.saturating_mul(1_000).min(most));
    }

    /// One has taken so many milliseconds.
    pub fn pays(&self, took: u64) {
        self.pays_micros(took.max(1).saturating_mul(1_000));
    }

    fn pays_micros(&self, micros: u64) {
        let micros = i64::try_from(micros).unwrap_or(MOST);
        self.earnings.left.fetch_sub(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_paid_for_by_what_is_saved_and_a_share_of_what_is_passed() {
        let database = Database::default();
        database.pays(149);
        assert!(database.affords());
        database.pays(20);
        assert!(!database.affords());
        // 19 ms are owed.
        (1..1_900).for_each(|k| database.has_served(500, Micros(k * 500)));
        assert!(!database.affords());
        (1_900..1_902).for_each(|k| database.has_served(500, Micros(k * 500)));
        assert!(database.affords());
        database.pays(1);
        database.has_saved(1_000);
        assert!(database.affords());
        database.pays(3);
        assert!(!database.affords());
        database.earnings.spared();
        assert!(database.affords());
    }

    #[test]
    fn a_lesson_costs_no_more_than_its_questions_do() {
        let database = Database::default();
        (0..29).for_each(|_| database.pays_for_lesson(10, 5));
        database.pays_for_lesson(10, 3_600_000);
        assert!(database.affords());
        database.pays_for_lesson(1, 1);
        (0..74).for_each(|_| database.pays_for_lesson(1, 1));
        assert!(!database.affords());
    }

    #[test]
    fn a_look_that_waits_is_paid_for_like_others() {
        let database = Database::default();
        database.pays(149);
        database.usage.looked(3);
        database.has_saved(7_000);
        database.pays_for_look(100);
        assert!(database.affords());
        database.pays_for_look(100);
        assert!(!database.affords());
    }

    #[test]
    fn the_first_look_and_the_first_names_are_granted() {
        let database = Database::default();
        database.pays_for_look(3_600_000);
        database.pays_for_names(3_600_000);
        assert!(database.affords());
        database.pays_for_names(151);
        assert!(!database.affords());
    }

    #[test]
    fn what_is_passed_in_several_sessions_at_once_counts_once() {
        let database = Database::default();
        database.pays(150);
        for k in 1..=8 {
            database.has_served(10_000, Micros(10_000 + k));
        }
        database.pays(1);
        assert!(!database.affords(), "0.2 ms of 1 ms");
        database.has_served(50_000, Micros(60_100));
        assert!(database.affords());
    }

    #[test]
    fn little_is_saved_up() {
        let database = Database::default();
        database.pays(151);
        (0..10_000).for_each(|k| database.has_served(10_000, Micros(k * 10_000)));
        database.pays(999);
        assert!(database.affords());
        database.pays(1);
        assert!(!database.affords());
    }
}
