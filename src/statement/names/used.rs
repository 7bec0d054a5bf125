//! What uses what, by name, and which names are those of another's partitions and children.

use super::{MAX_NAME, Map};
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// What uses what, by name: the users of a name take on the hazards that it may get later.
#[derive(Debug, Default)]
pub(super) struct Used {
    names: Vec<Box<[u8]>>,
    /// The numbers of the names that use a name, by the hash of the name. If two names have the
    /// same hash, a conversion is lost at worst.
    users: Map<u32, Vec<u32>>,
    /// The numbers of the names of partitions and children, by the hash of their parent's name.
    pub(super) children: Map<u32, Vec<u32>>,
    /// The hashes of the names of what reads relations: views, and tables with policies that do.
    pub(super) readers: HashSet<u32, FixedState>,
    /// Whether something uses a name that is cut off.
    pub(super) any: bool,
    /// Whether something uses a name with characters beyond ASCII.
    pub(super) beyond: bool,
}

/// The number of a user that has no name.
pub(super) const NAMELESS: u32 = u32::MAX;

impl Used {
    /// Gives a user its number.
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

    /// The names that use this one; `None` if others may use it, too.
    pub(super) fn of(&self, name: &[u8]) -> Option<impl Iterator<Item = &Box<[u8]>>> {
        self.names(&self.users, name).filter(|_| !self.any)
    }

    /// The names of the partitions and children of this name's tables; `None` if there may be more.
    pub(super) fn children(&self, name: &[u8]) -> Option<impl Iterator<Item = &Box<[u8]>>> {
        self.names(&self.children, name)
    }

    /// Whether what has this name may be a view of relations of users'.
    pub(super) fn reads(&self, name: &[u8]) -> bool {
        !is_plain(name) || self.readers.contains(&hash(name))
    }

    fn names<'a>(
        &'a self,
        of: &'a Map<u32, Vec<u32>>,
        name: &[u8],
    ) -> Option<impl Iterator<Item = &'a Box<[u8]>>> {
        let found = of.get(&hash(name)).map_or(&[][..], Vec::as_slice);
        (is_plain(name) && !found.contains(&NAMELESS)).then(|| {
            found
                .iter()
                .filter_map(|number| self.names.get(*number as usize))
        })
    }
}

/// Whether the name stands for itself: it is not cut off, and has but one spelling.
const fn is_plain(name: &[u8]) -> bool {
    name.len() <= MAX_NAME && name.is_ascii()
}

/// The hash by which names are told apart here.
pub(super) fn hash(name: &[u8]) -> u32 {
    FixedState::default().hash_one(name) as u32
}
