//! How long the server has worked for what was passed through in a session, and what executions
//! have saved it: by both its database earns what it is asked.

use super::Standing;
use crate::statement::Micros;

/// The most microseconds of a query that count: one that waits has the server do nothing.
const LONGEST: u64 = 10_000;

/// Microseconds that are told of at once, so that most queries only add to a number.
const TOLD: u64 = 1_000;

impl Standing {
    /// A query was passed through, and answered after so many microseconds, at this time.
    #[inline]
    pub fn has_served(&mut self, micros: u64, at: Micros) {
        self.served += micros.min(LONGEST);
        self.served_at = at;
        if self.served >= TOLD {
            self.tells_served();
        }
    }

    /// A statement is executed that relies on what is known of the catalog, and saves so many
    /// microseconds if that was measured.
    #[inline]
    pub fn relies(&mut self, gain: i32) {
        self.saved += u64::from(self.database.relies(gain));
        if self.saved >= TOLD {
            self.tells_served();
        }
    }

    #[cold]
    #[inline(never)]
    fn tells_served(&mut self) {
        let [served, saved] = [&mut self.served, &mut self.saved].map(std::mem::take);
        self.database.has_served(served, self.served_at);
        self.database.has_saved(saved);
    }
}

#[cfg(test)]
mod tests {
    use crate::standing::sample;
    use crate::statement::Micros;
    use crate::statement::shapes::Shapes;

    #[test]
    fn a_query_that_waits_counts_no_longer_than_others_may() {
        let shapes = Shapes::new(100, 100, 1);
        let mut standing = sample::session(&shapes);
        standing.database.pays(150);
        (1..10).for_each(|k| standing.has_served(100, Micros(k * 100)));
        assert!(!standing.database.affords());
        standing.has_served(100, Micros(1_000));
        assert!(standing.database.affords());
        standing.database.pays(1);
        standing.has_served(3_600_000_000, Micros(3_600_001_000));
        assert!(!standing.database.affords(), "0.2 ms of 1 ms");
    }
}
