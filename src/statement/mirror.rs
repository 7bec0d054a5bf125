//! The mirror of one server process: which statements it holds, under which names. Each takes the
//! server's memory (the fidelity rules, H-51), so their number is bounded.
//!
//! Invariants:
//! - `len <= capacity`;
//! - a name is not used twice on a connection, four billion of them aside;
//! - every statement the server may hold is here or in the list of names owed a Close;
//! - an entry is usable only after [`Mirror::confirm`], which the caller calls at ParseComplete.

use super::{Key, Millis, Statement, Terms};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// How the names of the proxy's statements begin, before the [`Tag`]. Names of clients do not begin
/// so.
pub const NAME_PREFIX: &str = "_pgautoprep_";

/// The part of the names that is different in each process. So two proxies in a chain, or a client
/// that has seen such names, do not use the same ones by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag([u8; 4]);

impl Tag {
    /// Chooses a tag. It is no secret.
    #[must_use]
    pub(super) fn random() -> Self {
        let random = foldhash::quality::RandomState::default().hash_one(());
        let mut rest = random;
        Self(std::array::from_fn(|_| digit(&mut rest)))
    }
}

/// Takes the last digit off `rest`, written in base 36.
fn digit(rest: &mut u64) -> u8 {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let last = (*rest % 36) as usize;
    *rest /= 36;
    DIGITS[last]
}

/// A server-side statement name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Name {
    bytes: [u8; 24],
    length: u8,
}

impl Name {
    /// Prefix, tag, and a number of at most seven digits behind a line: 24 bytes.
    fn new(tag: Tag, number: u32) -> Self {
        let mut name = Self::default();
        NAME_PREFIX.bytes().for_each(|byte| name.push(byte));
        tag.0.into_iter().for_each(|byte| name.push(byte));
        name.push(b'_');
        let mut rest = u64::from(number);
        name.push(digit(&mut rest));
        while rest > 0 {
            name.push(digit(&mut rest));
        }
        name
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.length)) {
            *place = byte;
            self.length += 1;
        }
    }

    /// The name without a terminator.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }
}

/// One statement that the server process holds, or is being told to hold.
#[derive(Debug)]
pub struct Entry {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The statement's name on this server connection.
    pub name: Name,
    /// When the statement was found to mean the same as its originals.
    pub verified: Millis,
    /// What the statement was trusted with.
    pub terms: Arc<Terms>,
    /// The database's catalog epoch when the statement was parsed.
    pub epoch: u64,
    used: u64,
    ready: bool,
    /// How many executions the server has planned for their values since it last parsed the
    /// statement.
    custom_plans: u8,
}

/// The server plans this many executions of a statement for their values. After them it may choose
/// a generic plan (`choose_custom_plan` in `plancache.c`, the same since 9.2).
const CUSTOM_PLANS: u8 = 5;

/// How many names are left out when one turns out to be taken: whatever took it counts up, and has
/// probably taken the next ones, too.
const LEFT_OUT: u32 = 1 << 16;

/// The statements of one server connection.
#[derive(Debug)]
pub struct Mirror {
    entries: HashMap<Key, Entry, foldhash::fast::FixedState>,
    owed: Vec<Name>,
    capacity: usize,
    tag: Tag,
    next_name: u32,
    /// The number of lookups so far, which serves as the time.
    clock: u64,
    /// No entry may be evicted before this many lookups: `full_until <= oldest use + idle rounds`.
    full_until: u64,
}

/// An entry makes way for another after this many lookups without a use, as a multiple of the
/// capacity.
const IDLE_ROUNDS: u64 = 4;

impl Mirror {
    /// An empty mirror for at most `capacity` statements (at least one), whose names have this tag.
    #[must_use]
    pub fn new(capacity: usize, tag: Tag) -> Self {
        Self {
            entries: HashMap::default(),
            owed: Vec::new(),
            capacity: capacity.max(1),
            tag,
            next_name: 1,
            clock: 0,
            full_until: 0,
        }
    }

    /// How many lookups there have been.
    #[must_use]
    pub const fn lookups(&self) -> u64 {
        self.clock
    }

    /// How many statements the server holds or is being told to hold.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the mirror has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the server may hold a statement of the proxy's, one that is owed a Close included.
    #[must_use]
    pub fn is_on_server(&self) -> bool {
        !self.entries.is_empty() || self.owes()
    }

    /// The entry at `key` if it is ready. The lookup counts as a use.
    #[inline]
    pub fn lookup(&mut self, key: Key) -> Option<&Entry> {
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.clock;
        entry.ready.then_some(&*entry)
    }

    /// Whether the server holds this statement, as parsed at this epoch and found out about no
    /// earlier than `oldest`.
    #[must_use]
    pub fn holds(&self, statement: &Arc<Statement>, epoch: u64, oldest: Millis) -> bool {
        self.entries.get(&statement.key()).is_some_and(|entry| {
            let is_current = entry.epoch == epoch && entry.verified >= oldest;
            entry.ready
                && is_current
                && Arc::ptr_eq(&entry.statement, statement)
                && !statement.is_withdrawn()
        })
    }

    /// Takes the epoch of each entry for the one that `follow` gives for its statement and its
    /// epoch; if there is none, the entry is removed and the server is owed a Close for it.
    pub fn follow(&mut self, follow: impl Fn(&Statement, u64) -> Option<u64>) {
        let Self { entries, owed, .. } = self;
        entries.retain(|_, entry| {
            let epoch = follow(&entry.statement, entry.epoch);
            match epoch {
                Some(epoch) => entry.epoch = epoch,
                None => owed.push(entry.name),
            }
            epoch.is_some()
        });
    }

    /// Whether there is room for one more, or an entry has been idle for so long that it may go.
    ///
    /// Entries in use do not go: a client with more statements than fit would have each of them
    /// parsed every time, which costs more than it saves.
    pub fn has_room(&mut self) -> bool {
        if self.entries.len() < self.capacity {
            return true;
        }
        if self.clock < self.full_until {
            return false;
        }
        let oldest = self.entries.values().map(|entry| entry.used).min();
        self.full_until = oldest.unwrap_or(0) + IDLE_ROUNDS * self.capacity as u64;
        self.clock >= self.full_until
    }

    /// Makes room for `statement` and names it. The entry is not ready until [`Mirror::confirm`].
    ///
    /// An older entry at the same key is removed, and so is the least recently used one if the
    /// mirror is full. The server is owed a Close for each: send those of [`Mirror::take_owed`]
    /// before or with the Parse. Also returns whether an entry was evicted.
    pub fn begin(&mut self, statement: Arc<Statement>, epoch: u64) -> (Name, bool) {
        self.remove(statement.key());
        let mut evicted = false;
        if self.entries.len() >= self.capacity {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                evicted = self.remove(key);
            }
        }
        let name = Name::new(self.tag, self.next_name);
        self.next_name = self.next_name.wrapping_add(1);
        self.clock += 1;
        let entry = Entry {
            name,
            verified: Millis::default(),
            terms: Arc::default(),
            epoch,
            used: self.clock,
            ready: false,
            // The oracle's EXPLAIN EXECUTE counts as one.
            custom_plans: 1,
            statement,
        };
        self.entries.insert(entry.statement.key(), entry);
        (name, evicted)
    }

    /// Leaves out the next names, because the last one turned out to be in use.
    pub const fn avoid_names(&mut self) {
        self.next_name = self.next_name.wrapping_add(LEFT_OUT);
    }

    /// Makes the entry at `key` usable: the server holds it. It was trusted with `terms` at the
    /// time `verified`.
    pub fn confirm(&mut self, key: Key, verified: Millis, terms: Arc<Terms>) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.ready = true;
            entry.verified = verified;
            entry.terms = terms;
        }
    }

    /// Counts an execution of the entry at `key` that is to be planned for its values. True if the
    /// server might use a generic plan for it: then the caller must close the statement and parse
    /// it anew, under the same name, before this execution.
    #[inline]
    pub fn spend(&mut self, key: Key) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        let spent = entry.custom_plans >= CUSTOM_PLANS;
        entry.custom_plans = if spent { 1 } else { entry.custom_plans + 1 };
        spent
    }

    /// Removes the entry at `key`, whose Parse has failed. The server holds nothing, so it is owed
    /// nothing.
    pub fn revoke(&mut self, key: Key) {
        self.entries.remove(&key);
    }

    /// Removes the entry at `key`; the server is owed a Close for it. Returns whether there was
    /// one.
    pub fn remove(&mut self, key: Key) -> bool {
        let removed = self.entries.remove(&key);
        if let Some(entry) = &removed {
            self.owed.push(entry.name);
        }
        removed.is_some()
    }

    /// Removes every entry; the server is owed a Close for each.
    pub fn flush(&mut self) {
        // Not drained: the room goes with the entries, and is worth having again only if they come.
        let entries = std::mem::take(&mut self.entries);
        self.owed
            .extend(entries.into_values().map(|entry| entry.name));
    }

    /// Removes every entry after the server has dropped all its statements (DISCARD ALL, DEALLOCATE
    /// ALL). The server is owed nothing.
    pub fn forget_all(&mut self) {
        self.entries = HashMap::default();
        self.owed = Vec::new();
    }

    /// Takes the names for which the server is owed a Close. The caller must send one for each.
    #[must_use = "the server still holds these statements; send a Close for each"]
    pub fn take_owed(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.owed)
    }

    /// Whether any Close is owed.
    #[must_use]
    pub const fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The names of all entries.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        self.entries.values().map(|entry| entry.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_and_is_another_one() {
        let tag = Tag::random();
        let mut names = std::collections::HashSet::new();
        for number in [
            0,
            1,
            35,
            36,
            37,
            1295,
            1296,
            1 << 16,
            u32::MAX - 1,
            u32::MAX,
        ] {
            let name = Name::new(tag, number);
            assert!(
                name.as_bytes().len() <= 24 && name.as_bytes().starts_with(NAME_PREFIX.as_bytes())
            );
            assert!(names.insert(name.as_bytes().to_vec()), "{number}");
        }
        assert_eq!(Name::new(tag, u32::MAX).as_bytes().len(), 24);
    }
}
