//! Whether what was asked about a statement has paid.

use super::questions::SHARE;

/// Executions of a statement that pay for a lesson about it.
///
/// Measured on server 15: a lesson takes 2 to 3 ms of the server's CPU, most of which is planning
/// the question about the catalog, and an execution saves 5 to 75 µs (`statement::tally`).
const LESSON_PAYS: u32 = 100;

/// Sightings of a statement after which it is asked about, whether or not others have paid: about
/// half as many as pay. What was met so often is likely to be met as often again.
const PATIENCE: u32 = LESSON_PAYS / 2;

/// The most doublings of the sightings that are waited for.
const MOST_DOUBLINGS: u32 = 10;

/// What the lessons about one statement have been good for.
#[derive(Debug, Default)]
pub struct Payback {
    is_asked: bool,
    /// Executions when the last lesson began.
    executions: u32,
    /// Sightings since then that found no verdict.
    sightings: u32,
    /// How often a lesson has followed one that had not paid.
    doublings: u32,
}

impl Payback {
    /// The statement was met and has no verdict: whether it must be met more often before the next
    /// lesson, which the first needed `threshold` sightings for. It has been executed so often.
    /// `is_ample` says that the first lesson need not be sure to pay.
    pub fn rests(&mut self, executions: u32, threshold: u32, is_ample: bool) -> bool {
        if self.is_asked && self.has_paid(executions) {
            return false;
        }
        self.sightings = self.sightings.saturating_add(1);
        if !self.is_asked {
            return !is_ample && self.sightings < PATIENCE;
        }
        let doublings = (self.doublings + 1).min(MOST_DOUBLINGS);
        self.sightings < threshold.saturating_mul(1 << doublings)
    }

    /// A lesson begins. Returns whether the last one, if there was one, has paid.
    pub fn asked(&mut self, executions: u32) -> Option<bool> {
        let had_paid = self.is_asked.then(|| self.has_paid(executions));
        self.doublings = match had_paid {
            Some(false) => (self.doublings + 1).min(MOST_DOUBLINGS),
            Some(true) => self.doublings / 2,
            None => 0,
        };
        (self.is_asked, self.executions, self.sightings) = (true, executions, 0);
        had_paid
    }

    /// Whether the next lesson takes no more than its share of the time that the server has spent
    /// on the statement since the last one, whatever else is asked meanwhile.
    #[must_use]
    pub const fn has_earned(&self, executions: u32) -> bool {
        let since = executions.wrapping_sub(self.executions);
        self.is_asked && since >= LESSON_PAYS.saturating_mul(SHARE as u32)
    }

    const fn has_paid(&self, executions: u32) -> bool {
        executions.wrapping_sub(self.executions) >= LESSON_PAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lesson_is_earned_by_what_it_takes_its_share_of() {
        let mut payback = Payback::default();
        assert!(!payback.has_earned(1_000_000), "the first is not");
        payback.asked(1_000_000);
        let needed = LESSON_PAYS * SHARE as u32;
        assert!(!payback.has_earned(1_000_000 + needed - 1));
        assert!(payback.has_earned(1_000_000 + needed));
    }

    #[test]
    fn the_first_lesson_waits_until_it_is_likely_to_pay_unless_there_is_plenty() {
        let mut payback = Payback::default();
        assert!(!payback.rests(0, 3, true));
        let waits = (2..).find(|_| !payback.rests(0, 3, false));
        assert_eq!(waits, Some(PATIENCE));
    }

    #[test]
    fn what_does_not_pay_is_asked_about_less_and_less_until_it_pays() {
        let mut payback = Payback::default();
        let mut executions = 0;
        let mut waits = |payback: &mut Payback, more| {
            executions += more;
            let count = (1..).find(|_| !payback.rests(executions, 3, true));
            let paid = payback.asked(executions);
            (count.unwrap(), paid)
        };
        assert_eq!(waits(&mut payback, 0), (1, None));
        assert_eq!(waits(&mut payback, 2), (6, Some(false)));
        assert_eq!(waits(&mut payback, 2), (12, Some(false)));
        assert_eq!(waits(&mut payback, 0), (24, Some(false)));
        assert_eq!(waits(&mut payback, LESSON_PAYS), (1, Some(true)));
        assert_eq!(waits(&mut payback, 0), (12, Some(false)));
        for _ in 0..20 {
            waits(&mut payback, 0);
        }
        assert_eq!(waits(&mut payback, 0).0, 3 << MOST_DOUBLINGS);
    }
}
