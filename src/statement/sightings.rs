//! A small memory of shapes that were met once.
//!
//! An application may write a new text each time, so that most shapes come once. Remembering such a
//! shape in full costs more than passing its query through. So the first sighting only leaves a
//! mark: four bytes in a table of fixed size. Another mark may take its place; then the shape needs
//! one more sighting. So it does if two workers write in one place at the same time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many marks there are: a power of two, 64 KiB in all.
const MARKS: usize = 1 << 14;

/// The marks of all workers.
#[derive(Debug)]
pub struct Sketch {
    marks: Box<[AtomicU32]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self {
            marks: (0..MARKS).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Sketch {
    /// Leaves a mark for this hash; returns whether there was one already.
    #[inline]
    pub fn meet(&self, hash: u64) -> bool {
        // No hash leaves the mark of an empty place.
        let mark = (hash >> 32) as u32 | 1;
        let place = hash as usize & (MARKS - 2);
        let Some([newer, older]) = self.marks.get(place..place + 2) else {
            return false;
        };
        let newest = newer.load(Relaxed);
        if newest == mark || older.load(Relaxed) == mark {
            return true;
        }
        older.store(newest, Relaxed);
        newer.store(mark, Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_is_known_until_two_others_take_its_place() {
        let sketch = Sketch::default();
        let hash = |upper: u64| upper << 33 | 6;
        assert!(!sketch.meet(hash(1)) && sketch.meet(hash(1)));
        assert!(!sketch.meet(hash(2)) && sketch.meet(hash(1)) && sketch.meet(hash(2)));
        assert!(!sketch.meet(hash(3)));
        assert!(!sketch.meet(hash(1)), "the oldest has made way");
    }

    #[test]
    fn every_hash_has_a_place() {
        let sketch = Sketch::default();
        for hash in [0, 2, u64::MAX, 1 << 33, 1 << 34] {
            assert!(!sketch.meet(hash), "{hash}");
            assert!(sketch.meet(hash), "{hash}");
        }
    }
}
