//! Whether it pays to look at the catalog in front of a transaction's first definition.
//!
//! Behind a definition a transaction sees the tables of the catalog as nobody else does, so a
//! connection that had not looked before it cannot any more, and converts nothing until the
//! transaction ends. Most transactions that define something are short, but those that load what
//! they have made are not.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many such transactions may have a look: as many as went on for long, and one that nothing is
/// known of.
#[derive(Debug)]
pub struct Loads(AtomicU32);

/// Texts behind a definition in one transaction, from which on a look would have paid, or has. The
/// look and what is asked after it cost what one or two thousand small INSERTs gain.
const PAYS: u32 = 5_000;

/// The most looks that are saved up.
const MOST: u32 = 64;

impl Default for Loads {
    fn default() -> Self {
        Self(AtomicU32::new(1))
    }
}

impl Loads {
    /// Takes a look; false if none is left.
    #[must_use]
    pub fn take(&self) -> bool {
        let order = Ordering::Relaxed;
        let less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(order, order, less).is_ok()
    }

    /// This many texts were met behind a transaction's first definition.
    pub fn met(&self, texts: u32) {
        if texts == PAYS {
            let order = Ordering::Relaxed;
            let more = |left: u32| Some((left + 1).min(MOST));
            // It is always counted.
            let _ = self.0.fetch_update(order, order, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_earned_by_a_long_transaction_and_one_is_given() {
        let loads = Loads::default();
        assert!(loads.take() && !loads.take());
        for texts in 1..PAYS {
            loads.met(texts);
        }
        assert!(!loads.take());
        // Once in each transaction, however long it is.
        for texts in PAYS..2 * PAYS {
            loads.met(texts);
        }
        assert!(loads.take() && !loads.take());
        for _ in 0..2 * MOST {
            loads.met(PAYS);
        }
        let taken = (0..2 * MOST).filter(|_| loads.take());
        assert_eq!(taken.count() as u32, MOST);
    }
}
