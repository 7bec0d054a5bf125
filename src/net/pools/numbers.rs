//! The numbers of a pool, which may change while it has connections and clients that wait.
//!
//! Invariant: whoever has changed them has the queue served, so that nobody waits for what there is
//! room for by now.

use crate::config::{Bounds, Sizes};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Those whose server connections are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Group {
    /// All users of this database.
    Database(Box<[u8]>),
    /// This user, wherever it is.
    User(Box<[u8]>),
}

/// Which groups a connection is counted in, and the bound of each; zero means any.
pub(super) type Groups = [(Group, usize); 2];

/// Whom a server connection of this user to this database is counted together with.
pub(super) fn groups(database: &[u8], user: &[u8]) -> [Group; 2] {
    [Group::Database(database.into()), Group::User(user.into())]
}

/// How many server connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Figures {
    /// The most, unless somebody has waited for long.
    most: usize,
    /// How many more there may be then, and what is long.
    reserve: (usize, Duration),
    /// The most of all users of the database, and of the user in all databases; zero means any.
    bounds: [usize; 2],
    /// How many there are also when nobody needs them.
    pub(super) least: usize,
}

impl Figures {
    /// Those of a pool of this size, if `idle` may be idle in it at most.
    pub(super) fn of(sizes: Sizes, bounds: Bounds, idle: usize) -> Self {
        let Sizes {
            pool,
            gives_back,
            least,
            reserve,
            most,
            ..
        } = sizes;
        // What nobody uses is among the warm ones.
        let kept = if gives_back { pool } else { None }.unwrap_or(idle);
        Self {
            most: pool.unwrap_or(usize::MAX),
            reserve: (reserve, bounds.reserve_after),
            bounds: [most, bounds.of_user],
            least: least.min(kept).min(pool.unwrap_or(kept)),
        }
    }

    /// Those of a pool to which nothing leads any more.
    pub(super) const fn without_least(self) -> Self {
        Self { least: 0, ..self }
    }

    /// Whether there may be any number of connections, and there need not be any.
    pub(super) const fn are_any(&self) -> bool {
        self.most == usize::MAX && matches!(self.bounds, [0, 0]) && self.least == 0
    }
}

/// The figures in force.
#[derive(Debug)]
pub(super) struct Numbers {
    most: AtomicUsize,
    reserve: AtomicUsize,
    /// In milliseconds.
    reserve_after: AtomicU64,
    bounds: [AtomicUsize; 2],
    least: AtomicUsize,
    /// Whom a pool's connections are counted together with.
    groups: [Group; 2],
}

impl Numbers {
    /// Those of the pool of a database and a user.
    pub(super) fn new(figures: Figures, groups: [Group; 2]) -> Self {
        let numbers = Self {
            most: AtomicUsize::default(),
            reserve: AtomicUsize::default(),
            reserve_after: AtomicU64::default(),
            bounds: Default::default(),
            least: AtomicUsize::default(),
            groups,
        };
        numbers.set(figures);
        numbers
    }

    /// From now on these are in force.
    pub(super) fn set(&self, figures: Figures) {
        let order = Ordering::Relaxed;
        let (reserve, after) = figures.reserve;
        let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.most.store(figures.most, order);
        self.reserve.store(reserve, order);
        self.reserve_after.store(after, order);
        for (bound, most) in self.bounds.iter().zip(figures.bounds) {
            bound.store(most, order);
        }
        self.least.store(figures.least, order);
    }

    /// Those in force.
    pub(super) fn get(&self) -> Figures {
        let order = Ordering::Relaxed;
        let after = Duration::from_millis(self.reserve_after.load(order));
        Figures {
            most: self.most.load(order),
            reserve: (self.reserve.load(order), after),
            bounds: self.bounds.each_ref().map(|bound| bound.load(order)),
            least: self.least(),
        }
    }

    /// How many there are also when nobody needs them.
    pub(super) fn least(&self) -> usize {
        self.least.load(Ordering::Relaxed)
    }

    /// The most there may be for somebody who has waited for so long.
    pub(super) fn most(&self, waited: impl FnOnce() -> Duration) -> usize {
        let Figures { most, reserve, .. } = self.get();
        let (reserve, after) = reserve;
        match reserve > 0 && waited() >= after {
            true => most.saturating_add(reserve),
            false => most,
        }
    }

    /// Whether others' connections may be in the way.
    #[inline]
    pub(super) fn are_bounded(&self) -> bool {
        let is_bound = |bound: &AtomicUsize| bound.load(Ordering::Relaxed) > 0;
        self.bounds.iter().any(is_bound)
    }

    /// Whom its connections are counted together with, and how many there may be altogether.
    pub(super) fn groups(&self) -> Groups {
        let [database, user] = self.groups.each_ref().map(Group::clone);
        let [of_database, of_user] = self.get().bounds;
        [(database, of_database), (user, of_user)]
    }

    /// Whether its connections are counted with this group's.
    pub(super) fn are_in(&self, group: &Group) -> bool {
        self.groups.contains(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_is_no_more_than_may_be_idle_or_open() {
        let bounds = Bounds {
            of_user: 0,
            clients_of_user: 0,
            reserve_after: Duration::from_secs(5),
        };
        let least = |pool, gives_back, least| {
            let sizes = Sizes {
                pool,
                gives_back,
                least,
                reserve: 0,
                most: 0,
                clients: 0,
            };
            Figures::of(sizes, bounds, 8).least
        };
        assert_eq!(least(Some(20), true, 15), 15);
        assert_eq!(least(Some(10), true, 15), 10);
        assert_eq!(least(None, false, 15), 8);
        assert_eq!(least(Some(5), false, 15), 5);
    }

    #[test]
    fn what_is_set_is_in_force_and_a_reserve_only_for_who_has_waited() {
        let figures = |most, reserve| Figures {
            most,
            reserve: (reserve, Duration::from_secs(5)),
            bounds: [0, 7],
            least: 1,
        };
        let groups = groups(b"d", b"u");
        let numbers = Numbers::new(figures(2, 3), groups.clone());
        assert_eq!(numbers.get(), figures(2, 3));
        assert_eq!(numbers.most(|| Duration::from_secs(4)), 2);
        assert_eq!(numbers.most(|| Duration::from_secs(5)), 5);
        assert!(numbers.are_bounded() && !numbers.get().are_any());
        numbers.set(figures(4, 0));
        assert_eq!(numbers.most(|| Duration::from_secs(5)), 4);
        let [database, user] = groups;
        assert_eq!(numbers.groups(), [(database, 0), (user, 7)]);
        assert!(!numbers.are_in(&Group::User((*b"d").into())));
    }
}
