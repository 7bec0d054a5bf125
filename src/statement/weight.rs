//! Weight and age of what the shared table remembers. An entry takes bytes for as long as any
//! thread holds it, and grows old while no session asks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The bytes of everything that was weighed on these scales and is alive.
#[derive(Debug, Default, Clone)]
pub struct Scales(Arc<AtomicUsize>);

impl Scales {
    /// The bytes on the scales.
    #[must_use]
    pub(super) fn total(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Puts something new of this many bytes on the scales.
    pub(super) fn weigh(&self, bytes: usize) -> Weight {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Weight {
            own: AtomicUsize::new(bytes),
            scales: self.clone(),
        }
    }
}

/// The weight of one entry. Dropping it takes the bytes off the scales.
#[derive(Debug)]
pub struct Weight {
    own: AtomicUsize,
    scales: Scales,
}

impl Weight {
    /// The bytes of the entry.
    pub(super) fn bytes(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    /// Adds bytes, because the entry has become heavier.
    pub(super) fn grow(&self, bytes: usize) {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.scales.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes bytes off, because the entry has become lighter.
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

/// The age of an entry: in how many rounds it was not asked for.
#[derive(Debug, Default)]
pub struct Age(AtomicU8);

impl Age {
    /// Makes the entry young, because it was asked for.
    pub(super) fn touch(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Makes the entry a round older.
    pub(super) fn advance(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |age| {
                age.checked_add(1)
            });
    }

    /// The age in rounds, at most 255.
    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An entry of the shared table: it has a weight and an age.
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
