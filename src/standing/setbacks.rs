//! How long a connection whose questions fail asks nothing.

use crate::statement::Millis;

/// Pauses between questions after one has failed so, in milliseconds: at first, and how often the
/// pause is doubled.
const PAUSE: u64 = 100;
const DOUBLINGS: u32 = 6;

/// A connection whose questions fail asks less often.
#[derive(Debug, Default)]
pub struct Setbacks {
    count: u32,
    until: Millis,
}

impl Setbacks {
    /// Whether nothing is to be asked now.
    #[must_use]
    pub const fn rest(&self, now: Millis) -> bool {
        self.count > 0 && now.0 < self.until.0
    }

    /// A question has failed.
    pub fn add(&mut self, now: Millis) {
        let pause = PAUSE << self.count.min(DOUBLINGS);
        self.count = self.count.saturating_add(1);
        self.until = Millis(now.0.saturating_add(pause));
    }

    /// A question was answered.
    pub const fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_few_seconds_and_end_with_success() {
        let mut setbacks = Setbacks::default();
        assert!(!setbacks.rest(Millis(0)));
        setbacks.add(Millis(1000));
        assert!(setbacks.rest(Millis(1099)) && !setbacks.rest(Millis(1100)));
        (0..100).for_each(|_| setbacks.add(Millis(2000)));
        assert!(setbacks.rest(Millis(8399)) && !setbacks.rest(Millis(8400)));
        setbacks.clear();
        assert!(!setbacks.rest(Millis(2000)));
    }
}
