//! Names that outlive what they name: slots with a generation, and the arenas they lead into.
//!
//! Invariants:
//! - a slot is used again under another generation, so a name never leads to another value than the
//!   one it was given to, four billion uses of one slot aside;
//! - values do not move while they are in an arena.

/// A place in an arena, and which of its successive values is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    index: u32,
    generation: u32,
}

impl Slot {
    /// A slot that no arena gives out.
    pub const NONE: Self = Self {
        index: u32::MAX,
        generation: u32::MAX,
    };

    /// Its place among those of its arena; others have had it before, and will.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// Names a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub Slot);

/// Names a server connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(pub Slot);

impl ClientId {
    /// The name of nobody.
    pub const NONE: Self = Self(Slot::NONE);
}

impl UpstreamId {
    /// The name of no connection.
    pub const NONE: Self = Self(Slot::NONE);
}

/// Values with names.
#[derive(Debug)]
pub struct Arena<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

/// The values are boxed, because most places are empty after a rush.
#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<Box<T>>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Arena<T> {
    /// Keeps the value that is made for the slot it will have.
    pub fn insert_with(&mut self, make: impl FnOnce(Slot) -> T) -> Slot {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                generation: 0,
                value: None,
            });
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.entries[index as usize];
        let slot = Slot {
            index,
            generation: entry.generation,
        };
        entry.value = Some(Box::new(make(slot)));
        slot
    }

    /// The value with this name, if it is still there.
    #[must_use]
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&T> {
        let entry = self.entries.get(slot.index())?;
        match entry.generation == slot.generation {
            true => entry.value.as_deref(),
            false => None,
        }
    }

    /// The value with this name, if it is still there.
    #[must_use]
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let entry = self.entries.get_mut(slot.index())?;
        match entry.generation == slot.generation {
            true => entry.value.as_deref_mut(),
            false => None,
        }
    }

    /// All values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries
            .iter()
            .filter_map(|entry| entry.value.as_deref())
    }

    /// Takes the value with this name out. From then on the name leads nowhere.
    pub fn remove(&mut self, slot: Slot) -> Option<T> {
        let entry = self.entries.get_mut(slot.index())?;
        if entry.generation != slot.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot.index);
        Some(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_to_another_value() {
        let mut arena = Arena::default();
        let names: Vec<Slot> = ["a", "b", "c"]
            .into_iter()
            .map(|value| arena.insert_with(|_| value))
            .collect();
        assert_eq!(arena.remove(names[1]), Some("b"));
        assert_eq!(arena.remove(names[1]), None);
        let again = arena.insert_with(|slot| if slot.index() == 1 { "d" } else { "?" });
        assert_eq!(again.index(), names[1].index());
        assert_eq!((arena.get(names[1]), arena.get(again)), (None, Some(&"d")));
        assert_eq!(arena.get_mut(names[1]), None);
        assert_eq!(arena.get(Slot::NONE), None);
    }
}
