//! Bounds that hold for several pools together: all users of a database, and all databases of a
//! user. A pool that is bounded knows the others by [`Known`].
//!
//! Invariants:
//! - of a group there are no more places taken than its bound;
//! - a place that becomes free is offered first to who has waited longest among all that could have
//!   it;
//! - no two pools' locks are held at once: what one is to do for another stands in its `debt`;
//! - no pool's lock is taken while the list of pools is locked: who holds one looks into the list.

use super::numbers::{Group, Groups, Numbers};
use super::{Pool, Pools, To};
use crate::admin::console::WaitingLogins;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The database as clients call it, and the user as the server knows it.
pub(super) type Name = (Box<[u8]>, Box<[u8]>);

/// Pools that are remembered although they have nothing.
const MAX_KNOWN: usize = 1024;

/// All pools, and what is taken of their bounds.
#[derive(Debug, Default)]
pub(super) struct Known {
    pools: Mutex<HashMap<Name, Arc<Pool>>>,
    taken: Mutex<HashMap<Group, usize>>,
}

impl Known {
    /// The pool of this name, made by `make` if there is none yet.
    pub(super) fn find(&self, name: Name, make: impl FnOnce() -> Pool) -> Arc<Pool> {
        let mut pools = self.pools();
        if let Some(pool) = pools.get(&name) {
            return Arc::clone(pool);
        }
        if pools.len() >= MAX_KNOWN {
            // Names are anybody's to choose.
            pools.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        let made = Arc::new(make());
        pools.insert(name, Arc::clone(&made));
        made
    }

    /// All pools.
    pub(super) fn all(&self) -> Vec<(Name, Arc<Pool>)> {
        let pools = self.pools();
        let all = pools.iter();
        all.map(|(name, pool)| (name.clone(), Arc::clone(pool)))
            .collect()
    }

    /// Remembers no pool any longer.
    pub(super) fn forget_all(&self) {
        self.pools().clear();
    }

    /// Takes a place of all these groups, if there is one in each.
    pub(super) fn take(&self, groups: &Groups) -> bool {
        let mut taken = self.taken();
        if groups.iter().any(|group| is_full(&taken, group)) {
            return false;
        }
        for (group, _) in groups {
            *taken.entry(group.clone()).or_default() += 1;
        }
        true
    }

    /// Gives back a place of all these groups.
    pub(super) fn give(&self, groups: &Groups) {
        let mut taken = self.taken();
        for (group, _) in groups {
            match taken.get_mut(group) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(taken.remove(group)),
            }
        }
    }

    /// The pools that have a place of a group that is full, and in which this one is, too.
    pub(super) fn in_the_way(&self, of: &Pool) -> Vec<Arc<Pool>> {
        let full: Vec<Group> = {
            let taken = self.taken();
            let groups = of.numbers.groups();
            let full = groups.into_iter().filter(|group| is_full(&taken, group));
            full.map(|(group, _)| group).collect()
        };
        let is_in_one = |pool: &Pool| full.iter().any(|group| pool.numbers.are_in(group));
        let pools = self.pools();
        let others = pools
            .values()
            .filter(|pool| pool.number != of.number && pool.has_taken() && is_in_one(pool));
        others.cloned().collect()
    }

    /// The pools that are counted together with that of these numbers, and are to close a
    /// connection for somebody.
    pub(super) fn in_debt(&self, numbers: &Numbers) -> Vec<Arc<Pool>> {
        self.among(numbers, |pool| pool.has_debt.load(Ordering::SeqCst))
    }

    /// The pools that somebody waits in and that could use a place of that of these numbers.
    pub(super) fn waiting(&self, numbers: &Numbers) -> Vec<Arc<Pool>> {
        self.among(numbers, Pool::has_queue)
    }

    /// The pools in which somebody waits who may have a place of these groups.
    pub(super) fn counted_with(&self, groups: &Groups) -> Vec<Arc<Pool>> {
        let is_in = |pool: &Pool| groups.iter().any(|(group, _)| pool.numbers.are_in(group));
        let pools = self.pools();
        let waiting = pools.values().filter(|pool| pool.has_queue());
        waiting.filter(|pool| is_in(pool)).cloned().collect()
    }

    /// The pools that are counted together with that of these numbers, and are like this.
    fn among(&self, numbers: &Numbers, is_it: impl Fn(&Pool) -> bool) -> Vec<Arc<Pool>> {
        let groups = numbers.groups();
        let bounded = || groups.iter().filter(|(_, most)| *most > 0);
        let is_own = |pool: &Pool| bounded().any(|(group, _)| pool.numbers.are_in(group));
        let pools = self.pools();
        let among = pools.values();
        let among = among.filter(|pool| is_it(pool) && is_own(pool));
        among.cloned().collect()
    }

    fn pools(&self) -> MutexGuard<'_, HashMap<Name, Arc<Pool>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Group, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_full(taken: &HashMap<Group, usize>, (group, most): &(Group, usize)) -> bool {
    *most > 0 && taken.get(group).is_some_and(|count| count >= most)
}

impl Pools {
    /// How many clients wait, in all of them.
    pub(in crate::net) fn queued(&self) -> usize {
        let pools = self.known.pools();
        let queued = pools
            .values()
            .map(|pool| pool.waiting.load(Ordering::SeqCst));
        queued.sum()
    }

    /// The logins among them, which no worker knows yet, by pool.
    pub(in crate::net) fn waiting_logins(&self) -> Vec<WaitingLogins> {
        let pools: Vec<_> = {
            let known = self.known.pools();
            let waiting = known.iter().filter(|(_, pool)| pool.has_queue());
            let named = waiting.map(|(name, pool)| (name.clone(), Arc::clone(pool)));
            named.collect()
        };
        let waiting = |((database, user), pool): (Name, Arc<Pool>)| {
            let inner = pool.lock();
            let logins = inner.queue.iter();
            let mut logins = logins.filter(|waiter| matches!(waiter.to, To::Login(_)));
            // Who came first has waited longest.
            let first = logins.next()?;
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            Some(WaitingLogins {
                database: text(&database),
                user: text(&user),
                count: 1 + logins.count(),
                longest: first.since.elapsed(),
            })
        };
        pools.into_iter().filter_map(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_of_all_groups_or_of_none() {
        let group = |name: &[u8]| Group::Database(name.into());
        let user = || Group::User((*b"u").into());
        let (one, other): (Groups, Groups) = (
            [(group(b"a"), 2), (user(), 3)],
            [(group(b"b"), 2), (user(), 3)],
        );
        let known = Known::default();
        assert!(known.take(&one) && known.take(&one));
        assert!(!known.take(&one), "the database is full");
        assert!(known.take(&other));
        assert!(!known.take(&other), "the user is");
        known.give(&one);
        assert!(known.take(&other), "nothing was taken in vain");
        assert!(!known.take(&one));
        for groups in [&one, &other, &other] {
            known.give(groups);
        }
        assert!(known.taken().is_empty());
    }
}
