//! Numbered places that are used again: how a worker finds a connection by its events, and which of
//! them wait for another turn.

/// Values with numbers. A number means the same value until that is removed.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Option<Box<T>>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// The number that the next value will have.
    pub(super) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    /// Puts a value into the next slot. It is boxed, because most slots are empty after a rush.
    pub(super) fn insert(&mut self, value: T) {
        let value = Some(Box::new(value));
        match self.free.pop().and_then(|slot| self.slots.get_mut(slot)) {
            Some(slot) => *slot = value,
            None => self.slots.push(value),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(*value)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The numbers of all values.
    pub(super) fn occupied(&self) -> Vec<usize> {
        let slots = self.slots.iter().enumerate();
        let occupied = slots.filter_map(|(slot, value)| value.as_ref().map(|_| slot));
        occupied.collect()
    }
}

/// Numbers of those that are to have another turn: each once, however often it is added. Otherwise
/// one that is always busy would be there once more for each of its events.
#[derive(Debug, Default)]
pub(super) struct Queue(Vec<usize>);

impl Queue {
    pub(super) fn add(&mut self, slot: usize) {
        if !self.contains(slot) {
            self.0.push(slot);
        }
    }

    #[inline]
    pub(super) fn contains(&self, slot: usize) -> bool {
        self.0.contains(&slot)
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the order they came; none wait any more.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_twice_has_one_turn() {
        let mut queue = Queue::default();
        for slot in [3, 1, 3, 3, 1] {
            queue.add(slot);
        }
        assert!(queue.contains(1) && !queue.contains(2));
        assert_eq!(queue.take(), [3, 1]);
        assert!(queue.is_empty());
        queue.add(3);
        assert_eq!(queue.take(), [3]);
    }

    #[test]
    fn a_free_slot_is_used_before_a_new_one() {
        let mut slots = Slots::default();
        for value in ["a", "b", "c"] {
            slots.insert(value);
        }
        assert_eq!(slots.remove(1), Some("b"));
        assert_eq!(slots.remove(1), None);
        assert_eq!((slots.occupied(), slots.next()), (vec![0, 2], 1));
        slots.insert("d");
        assert_eq!(slots.get_mut(1), Some(&mut "d"));
        assert_eq!(slots.get_mut(3), None);
        assert_eq!(slots.next(), 3);
    }

    #[test]
    fn it_is_empty_when_all_have_gone() {
        let mut slots = Slots::default();
        assert!(slots.is_empty());
        slots.insert(());
        assert!(!slots.is_empty());
        slots.remove(0);
        assert!(slots.is_empty());
        assert_eq!(slots.next(), 0);
    }
}
