//! What is remembered takes bytes for as long as it is alive, whoever holds it, and grows old while
//! nobody asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// What everything that was made with these scales weighs together.
#[derive(Debug, Default, Clone)]
pub struct Scales(Arc<AtomicUsize>);

impl Scales {
    /// Bytes of all that is alive.
    #[must_use]
    pub(super) fn total(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Weighs something new.
    pub(super) fn weigh(&self, bytes: usize) -> Weight {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Weight {
            own: AtomicUsize::new(bytes),
            scales: self.clone(),
        }
    }
}

/// The weight of one thing, which is taken off the scales when it is dropped.
#[derive(Debug)]
pub struct Weight {
    own: AtomicUsize,
    scales: Scales,
}

impl Weight {
    /// Its bytes.
    pub(super) fn bytes(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    /// It has become heavier.
    pub(super) fn grow(&self, bytes: usize) {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.scales.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Something in it has been let go of.
    pub(super) fn shrink(&self, bytes: usize) {
        self.own.fetch_sub(bytes, Ordering::Relaxed);
        self.scales.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.scales.0.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

/// How often something was looked at in vain for a reason to keep it, since it was last asked for.
#[derive(Debug, Default)]
pub struct Age(AtomicU8);

impl Age {
    /// It was asked for.
    pub(super) fn touch(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Nobody has asked for it since the last time.
    pub(super) fn advance(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |age| {
                age.checked_add(1)
            });
    }

    /// Its age.
    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a table keeps: it has a weight and an age.
pub(super) trait Kept {
    fn weight(&self) -> &Weight;
    fn age(&self) -> &Age;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_weighs_nothing() {
        let scales = Scales::default();
        let (one, two) = (scales.weigh(5), scales.weigh(7));
        one.grow(10);
        two.shrink(3);
        assert_eq!((scales.total(), one.bytes(), two.bytes()), (19, 15, 4));
        drop(one);
        assert_eq!(scales.total(), 4);
    }
}
