//! What uses what, by name, and which names are of partitions and children of another.

use super::{MAX_NAME, Map};
use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// What uses what, by name: who takes on the hazards that a name may get later.
#[derive(Debug, Default)]
pub(super) struct Used {
    names: Vec<Box<[u8]>>,
    /// The numbers of the names that use a name, by its hash: two names that are taken for one cost
    /// a conversion at worst.
    users: Map<u32, Vec<u32>>,
    /// The numbers of the names of partitions and children, by the hash of their parent's.
    pub(super) children: Map<u32, Vec<u32>>,
    /// Something uses a name that is cut off, or one with characters beyond ASCII.
    pub(super) any: bool,
    pub(super) beyond: bool,
}

/// Stands among the users of a name for what has none.
pub(super) const NAMELESS: u32 = u32::MAX;

impl Used {
    /// A user, to be told from others by number.
    pub(super) fn user(&mut self, name: Option<&[u8]>) -> u32 {
        let Some(name) = name else { return NAMELESS };
        self.names.push(name.into());
        (self.names.len() - 1) as u32
    }

    pub(super) fn insert(&mut self, name: &[u8], user: u32) {
        self.any |= name.len() > MAX_NAME;
        self.beyond |= !name.is_ascii();
        self.users.entry(hash(name)).or_default().push(user);
    }

    /// The names that use this one; `None` if more may.
    pub(super) fn of(&self, name: &[u8]) -> Option<impl Iterator<Item = &Box<[u8]>>> {
        self.names(&self.users, name).filter(|_| !self.any)
    }

    /// The names of the partitions and children of what has this name; `None` if there may be more.
    pub(super) fn children(&self, name: &[u8]) -> Option<impl Iterator<Item = &Box<[u8]>>> {
        self.names(&self.children, name)
    }

    fn names<'a>(
        &'a self,
        of: &'a Map<u32, Vec<u32>>,
        name: &[u8],
    ) -> Option<impl Iterator<Item = &'a Box<[u8]>>> {
        let is_plain = name.len() <= MAX_NAME && name.is_ascii();
        let found = of.get(&hash(name)).map_or(&[][..], Vec::as_slice);
        (is_plain && !found.contains(&NAMELESS)).then(|| {
            found
                .iter()
                .filter_map(|number| self.names.get(*number as usize))
        })
    }
}

/// Names are told apart by this alone.
pub(super) fn hash(name: &[u8]) -> u32 {
    FixedState::default().hash_one(name) as u32
}
