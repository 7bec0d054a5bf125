//! The mirror of one server process: which statements it holds, under which names. Each takes the
//! server's memory (the fidelity rules, H-51), so their number is bounded, and what they are
//! estimated to take together.
//!
//! Invariants:
//! - there are no more entries than `capacity` allows, and their estimates add up to no more;
//! - a name is not used twice on a connection, four billion of them aside;
//! - every statement the server may hold is here or in the list of names owed a Close;
//! - an entry is usable only after [`Mirror::confirm`], which the caller calls at ParseComplete.

pub use super::name::{NAME_PREFIX, Name, Tag};
use super::tally::{Place, Uses};
use super::trial::Trial;
use super::{Key, Millis, Statement, Terms};
use std::collections::HashMap;
use std::sync::Arc;

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
    /// How often it was looked up.
    uses: u32,
    /// The server's memory that it is estimated to take.
    bytes: usize,
    /// How often it was looked up since it was ready, as far as that is not counted in
    /// [`Mirror::uses`].
    lookups: u32,
    ready: bool,
    /// How many executions the server has planned for their values since it last parsed the
    /// statement.
    custom_plans: u8,
    /// Which of its executions are timed.
    pub trial: Trial,
}

/// The server plans this many executions of a statement for their values. After them it may choose
/// a generic plan (`choose_custom_plan` in `plancache.c`, the same since 9.2).
pub(super) const CUSTOM_PLANS: u8 = 5;

/// How many names are left out when one turns out to be taken: whatever took it counts up, and has
/// probably taken the next ones, too.
const LEFT_OUT: u32 = 1 << 16;

/// The statements of one server connection.
#[derive(Debug)]
pub struct Mirror {
    entries: HashMap<Key, Entry, foldhash::fast::FixedState>,
    owed: Vec<Name>,
    capacity: Capacity,
    /// What the entries are estimated to take.
    bytes: usize,
    tally: MemoryChange,
    tag: Tag,
    next_name: u32,
    /// The number of lookups so far, which serves as the time.
    clock: u64,
    /// No entry is idle before this many lookups.
    full_until: u64,
    /// How often this connection has sent what, its entries' lookups aside.
    pub uses: Uses,
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // What they were used for is to be counted before `uses` tells.
        self.forget_all();
    }
}

/// How much the server may hold for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most statements.
    pub statements: usize,
    /// The most bytes of the server's memory, as they are estimated.
    pub bytes: usize,
}

/// Bytes that were taken and given back since that was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryChange {
    /// Bytes that statements have been estimated to take.
    pub taken: u64,
    /// Bytes of statements that are no longer there.
    pub freed: u64,
    /// How many statements take those that are taken.
    pub prepared: u64,
}

/// An entry makes way for another after this many lookups without a use, as a multiple of the
/// entries there are. If they are few, of as many as this: two large statements would else take
/// turns.
const IDLE_ROUNDS: u64 = 4;
const FEW: usize = 16;

impl Mirror {
    /// An empty mirror of this capacity (at least one statement), whose names have this tag.
    #[must_use]
    pub fn new(mut capacity: Capacity, tag: Tag) -> Self {
        capacity.statements = capacity.statements.max(1);
        Self {
            entries: HashMap::default(),
            owed: Vec::new(),
            capacity,
            bytes: 0,
            tally: MemoryChange::default(),
            tag,
            next_name: 1,
            clock: 0,
            full_until: 0,
            uses: Uses::default(),
        }
    }

    /// Counts what an entry was used for that is gone.
    fn gone(uses: &mut Uses, entry: &Entry) {
        let place = Self::place(uses, entry);
        uses.add(place, entry.lookups);
    }

    /// Where the uses of the entry are counted.
    fn place(uses: &mut Uses, entry: &Entry) -> Place {
        let statement = &entry.statement;
        uses.place(statement.recipe().family(), Some(statement.context))
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

    /// The server's memory that the entries are estimated to take.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What has changed about that since the last call.
    #[must_use = "it is not told again"]
    pub fn take_tally(&mut self) -> MemoryChange {
        std::mem::take(&mut self.tally)
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
    pub fn lookup(&mut self, key: Key) -> Option<&mut Entry> {
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.clock;
        entry.uses = entry.uses.saturating_add(1);
        entry.lookups = entry.lookups.wrapping_add(entry.ready.into());
        entry.ready.then_some(entry)
    }

    /// The entry at `key` if it is there and ready, which is no use of it.
    pub fn held(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&key).filter(|entry| entry.ready)
    }

    /// Whether the server holds this statement, as parsed at this epoch and found out about no
    /// earlier than `oldest`, and not when many rows fewer had been added.
    #[must_use]
    pub fn holds(
        &self,
        statement: &Arc<Statement>,
        epoch: u64,
        (oldest, added): (Millis, u64),
    ) -> bool {
        self.entries.get(&statement.key()).is_some_and(|entry| {
            let is_young = entry.verified >= oldest && entry.terms.is_fresh(0, 0, added);
            let is_current = entry.epoch == epoch && is_young;
            entry.ready
                && is_current
                && Arc::ptr_eq(&entry.statement, statement)
                && !statement.is_withdrawn()
        })
    }

    /// Takes the epoch of each entry for the one that `follow` gives for its statement and its
    /// epoch; if there is none, the entry is removed and the server is owed a Close for it.
    pub fn follow(&mut self, follow: impl Fn(&Statement, u64) -> Option<u64>) {
        let mut outdated = Vec::new();
        for (key, entry) in &mut self.entries {
            match follow(&entry.statement, entry.epoch) {
                Some(epoch) => entry.epoch = epoch,
                None => outdated.push(*key),
            }
        }
        for key in outdated {
            self.remove(key);
        }
    }

    /// Whether there is room for one more that takes these bytes, or entries have been idle for so
    /// long that they may go for it.
    ///
    /// Entries in use do not go: a client with more statements than fit would have each of them
    /// parsed every time, which costs more than it saves.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        if self.fits(bytes) {
            return true;
        }
        if bytes > self.capacity.bytes || self.clock < self.full_until {
            return false;
        }
        let patience = self.patience();
        let (mut idle, mut idle_bytes, mut next) = (0, 0, u64::MAX);
        for entry in self.entries.values() {
            if entry.used + patience <= self.clock {
                (idle, idle_bytes) = (idle + 1, idle_bytes + entry.bytes);
            } else {
                next = next.min(entry.used + patience);
            }
        }
        if idle == 0 {
            self.full_until = next;
        }
        let left = self.bytes - idle_bytes;
        self.entries.len() - idle < self.capacity.statements
            && left.saturating_add(bytes) <= self.capacity.bytes
    }

    /// Whether one more that takes these bytes fits without another going.
    fn fits(&self, bytes: usize) -> bool {
        self.entries.len() < self.capacity.statements
            && self.bytes.saturating_add(bytes) <= self.capacity.bytes
    }

    /// The lookups after whose last use an entry is idle.
    fn patience(&self) -> u64 {
        let few = FEW.min(self.capacity.statements);
        IDLE_ROUNDS * self.entries.len().max(few) as u64
    }

    /// The idle entry that was of the least use for its bytes.
    fn least_useful(&self) -> Option<Key> {
        let patience = self.patience();
        let is_idle = |entry: &Entry| entry.used + patience <= self.clock;
        let idle = self.entries.iter().filter(|(_, entry)| is_idle(entry));
        // Uses for each byte and each lookup since the last of them.
        let use_of = |entry: &Entry| {
            let cost = (self.clock - entry.used) as f64 * entry.bytes as f64;
            f64::from(entry.uses) / cost.max(1.0)
        };
        let least = idle.min_by(|(_, one), (_, other)| use_of(one).total_cmp(&use_of(other)));
        least.map(|(key, _)| *key)
    }

    /// Makes room for `statement` and names it. The entry is not ready until [`Mirror::confirm`].
    ///
    /// An older entry at the same key is removed, and idle ones as far as there is no room. The
    /// server is owed a Close for each: send those of [`Mirror::take_owed`] before or with the
    /// Parse. Also returns how many entries were evicted; `None` if there is no room.
    pub fn begin(
        &mut self,
        statement: Arc<Statement>,
        terms: &Terms,
        epoch: u64,
    ) -> Option<(Name, u64)> {
        self.remove(statement.key());
        let bytes = statement.memory(terms);
        if !self.has_room(bytes) {
            return None;
        }
        let evicted = self.evict(bytes);
        let name = Name::new(self.tag, self.next_name);
        self.next_name = self.next_name.wrapping_add(1);
        self.clock += 1;
        let entry = Entry {
            name,
            verified: Millis::default(),
            terms: Arc::default(),
            epoch,
            used: self.clock,
            uses: 1,
            bytes,
            lookups: 0,
            ready: false,
            // The oracle's EXPLAIN EXECUTE counts as one.
            custom_plans: 1,
            trial: Trial::new(statement.routes()),
            statement,
        };
        self.take(bytes);
        self.entries.insert(entry.statement.key(), entry);
        Some((name, evicted))
    }

    /// Evicts idle entries until one more of so many bytes fits; returns how many.
    fn evict(&mut self, bytes: usize) -> u64 {
        let mut evicted = 0;
        while !self.fits(bytes)
            && let Some(key) = self.least_useful()
        {
            let place = self.entries.get(&key);
            let place = place.map(|entry| Self::place(&mut self.uses, entry));
            evicted += u64::from(self.remove(key));
            if let Some(place) = place {
                self.uses.evicted(place);
            }
        }
        evicted
    }

    const fn take(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.tally.taken += bytes as u64;
        self.tally.prepared += 1;
    }

    const fn free(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.tally.freed += bytes as u64;
        self.full_until = 0;
    }

    /// Leaves out the next names, because the last one turned out to be in use.
    pub const fn avoid_names(&mut self) {
        self.next_name = self.next_name.wrapping_add(LEFT_OUT);
    }

    /// Makes the entry at `key` usable: the server holds it. It was trusted with `terms` at the
    /// time `verified`.
    ///
    /// What it takes is known better now. If that is too much, idle entries go for it, or it goes
    /// itself; the server is then owed a Close. Returns how many were evicted.
    pub fn confirm(&mut self, key: Key, verified: Millis, terms: Arc<Terms>) -> u64 {
        let Some(mut entry) = self.entries.remove(&key) else {
            return 0;
        };
        self.free(entry.bytes);
        entry.bytes = entry.statement.memory(&terms);
        if !self.has_room(entry.bytes) {
            self.owed.push(entry.name);
            return 1;
        }
        let evicted = self.evict(entry.bytes);
        entry.ready = true;
        entry.verified = verified;
        entry.terms = terms;
        self.take(entry.bytes);
        self.entries.insert(key, entry);
        evicted
    }

    /// Counts an execution of the entry at `key` that is to be planned for its values. The
    /// statement if the server might use a generic plan for it: then the caller must close it and
    /// parse it anew, under the same name, before this execution.
    #[inline]
    pub fn spend(&mut self, key: Key) -> Option<Arc<Statement>> {
        let entry = self.entries.get_mut(&key)?;
        let is_spent = entry.custom_plans >= CUSTOM_PLANS;
        entry.custom_plans = if is_spent { 1 } else { entry.custom_plans + 1 };
        is_spent.then(|| Arc::clone(&entry.statement))
    }

    /// The server has skipped the Parse before an execution of the entry at `key`, and so holds it
    /// as it was: the next execution is to have it parsed.
    pub fn skipped(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.custom_plans = CUSTOM_PLANS;
        }
    }

    /// Removes the entry at `key`, whose Parse has failed. The server holds nothing, so it is owed
    /// nothing.
    pub fn revoke(&mut self, key: Key) {
        if let Some(entry) = self.entries.remove(&key) {
            self.free(entry.bytes);
            Self::gone(&mut self.uses, &entry);
        }
    }

    /// Removes the entry at `key`; the server is owed a Close for it. Returns whether there was
    /// one.
    pub fn remove(&mut self, key: Key) -> bool {
        let removed = self.entries.remove(&key);
        if let Some(entry) = &removed {
            self.owed.push(entry.name);
            self.free(entry.bytes);
            Self::gone(&mut self.uses, entry);
        }
        removed.is_some()
    }

    /// Removes every entry; the server is owed a Close for each.
    pub fn flush(&mut self) {
        // Not drained: the room goes with the entries, and is worth having again only if they come.
        for entry in std::mem::take(&mut self.entries).into_values() {
            Self::gone(&mut self.uses, &entry);
            self.owed.push(entry.name);
        }
        self.free(self.bytes);
    }

    /// Removes every entry after the server has dropped all its statements (DISCARD ALL, DEALLOCATE
    /// ALL). The server is owed nothing. Whether it pays to prepare them again is decided as on a
    /// new connection.
    pub fn forget_all(&mut self) {
        self.flush();
        self.uses.start_anew();
        self.owed = Vec::new();
        self.free(self.bytes);
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
#[path = "mirror_tests.rs"]
mod tests;
