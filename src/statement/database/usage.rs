//! How much relies on the regular looks at the catalog, and whether that pays for them.
//!
//! A look costs the server as much as many executions save. Where little is converted it is left
//! out, and the database *rests*: nothing is converted in it before the catalog was looked at, and
//! what was known of its names is not relied on either.

use super::Database;
use crate::statement::Millis;
use crate::statement::sight::Glance;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Milliseconds that a look takes where there are few tables, and the most that are taken for what
/// it costs. Executions have to save as much between two looks, so that a look is worth it.
///
/// Measured on server 15: an empty database takes 2.4 ms, one of 170 tables with three indexes each
/// 5.4; in that of Django's own tests, while these ran, looks took 13 to 70. On a machine that is
/// busy it takes longer, but so does what is saved.
const LEAST: u64 = 2;
const DEAREST: u64 = 30;

/// The same as long as there were few looks: the first in a session takes longer than
/// others.
const DEAREST_AT_FIRST: u64 = 6;
const FIRST: u32 = 4;

/// Where a look takes longer than the least of those before, one part in so many is added to that:
/// there may be more tables now.
const SLOWLY: u64 = 8;

/// What a look and the glances cost, in thousandths of a look.
const LOOK: u32 = 1_000;
const TRANSACTIONS: u32 = 40;
const ROWS: u32 = 400;

/// Of the latest look or glance, one part in so many counts for what the next will cost.
const LATEST: u32 = 2;

/// A database that rests is looked at again after executions would have saved so many times what a
/// look costs in the time between two; half of it, if that was so in the time before, too.
const WAKES: u32 = 2;

/// Microseconds that more than enough pay for: what is saved beyond is not counted.
const ENOUGH: u32 = 2 * WAKES * DEAREST as u32 * 1_000;

/// Microseconds that an execution is taken to save as long as nobody has measured it: a select by
/// key saves 5 to 20, a join 75 (`statement::tally`).
const USUAL: u32 = 30;

/// The most that an execution counts for.
const MOST: u32 = LEAST as u32 * 1_000;

/// Connections in a row that were looked at to be kept and given to nobody, after which others are
/// not; and of how many then one is. The same of glances in a row that were in vain.
const IN_VAIN: u32 = 4;
const TRIES: u32 = 16;

/// At first it is one of as many as there were before: [`IN_VAIN`], these, and [`TRIES`].
const AT_FIRST: u32 = 8;

/// What executions have saved lately that rely on the looks at the catalog, or would have saved,
/// and what the looks cost.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Since when that is counted, in milliseconds.
    since: AtomicU64,
    /// Microseconds since then.
    saved: AtomicU32,
    /// In as long a time before that as is between two looks; and before that.
    before: AtomicU32,
    earlier: AtomicU32,
    is_resting: AtomicBool,
    /// Connections that were looked at to be kept since one was given to somebody.
    parked: AtomicU32,
    /// How long the last look took, in milliseconds.
    took: AtomicU64,
    /// Glances at transactions, and at rows, since one took the place of a look.
    glances: [AtomicU32; 2],
    /// The least milliseconds that looks have taken lately, in eighths.
    least: AtomicU64,
    /// How many there were, up to [`FIRST`].
    looks: AtomicU32,
    /// How many thousandths of a look less the next is expected to cost, because it may be a
    /// glance.
    discount: AtomicU32,
}

impl Usage {
    /// A look has taken so many milliseconds.
    pub(super) fn looked(&self, took: u64) {
        let order = Ordering::Relaxed;
        let eighths = took.saturating_mul(SLOWLY);
        let lately = |least: u64| match least {
            0 => Some(eighths),
            least if eighths <= least => Some(eighths),
            least => Some(least + (eighths - least) / SLOWLY),
        };
        let _ = self.least.fetch_update(order, order, lately);
        self.took.store(took, order);
        if self.looks.load(order) < FIRST {
            self.looks.fetch_add(1, order);
        }
        self.costs(LOOK);
    }

    /// About the least milliseconds that looks have taken lately, if there was one.
    pub(super) fn least_look(&self) -> Option<u64> {
        let eighths = self.least.load(Ordering::Relaxed);
        (eighths > 0).then_some(eighths / SLOWLY)
    }

    /// What a look is taken to cost that has taken so many milliseconds: by what it takes longer
    /// than those before, it has waited for a processor, which is not the server's work.
    pub(super) fn cost_of_look(&self, took: u64) -> u64 {
        let usual = self.least_look();
        usual.map_or(took, |usual| took.min(2 * usual + 1))
    }

    /// A glance has taken the place of a look.
    pub(super) fn glanced(&self, glance: Glance) {
        self.glances(glance).store(0, Ordering::Relaxed);
        self.costs(match glance {
            Glance::Transactions => TRANSACTIONS,
            Glance::Rows(_) => ROWS,
        });
    }

    /// Whether it pays to try such a glance before a look: those before were not in vain.
    pub(super) fn glance_pays(&self, glance: Glance) -> bool {
        pays_to_try(self.glances(glance))
    }

    const fn glances(&self, glance: Glance) -> &AtomicU32 {
        let [transactions, rows] = &self.glances;
        match glance {
            Glance::Transactions => transactions,
            Glance::Rows(_) => rows,
        }
    }

    fn costs(&self, thousandths: u32) {
        let order = Ordering::Relaxed;
        let average = |discount: u32| {
            let latest = (LOOK - thousandths) / LATEST;
            Some(discount - discount / LATEST + latest)
        };
        // It is always stored.
        let _ = self.discount.fetch_update(order, order, average);
    }

    /// The microseconds that the next look is expected to cost, glances taken into account.
    fn price(&self) -> u32 {
        let least = self.least.load(Ordering::Relaxed) / SLOWLY;
        let dearest = match self.looks.load(Ordering::Relaxed) < FIRST {
            true => DEAREST_AT_FIRST,
            false => DEAREST,
        };
        let look = u32::try_from(least.clamp(LEAST, dearest)).unwrap_or(u32::MAX);
        look * LOOK.saturating_sub(self.discount.load(Ordering::Relaxed))
    }

    /// Begins to count anew if the time between two looks is over.
    fn turn(&self, now: Millis, interval: u64) {
        let order = Ordering::Relaxed;
        let since = self.since.load(order);
        let age = now.0.saturating_sub(since);
        if age < interval
            || self
                .since
                .compare_exchange(since, now.0, order, order)
                .is_err()
        {
            return;
        }
        let saved = self.saved.swap(0, order);
        let saved = match saved >= ENOUGH {
            // Nobody has counted how much more it was.
            true => u64::from(saved),
            false => u64::from(saved).saturating_mul(interval) / age.max(1),
        };
        let before = match age < 2 * interval {
            true => self.before.load(order),
            false => 0,
        };
        self.earlier.store(before, order);
        self.before
            .store(u32::try_from(saved).unwrap_or(u32::MAX), order);
    }
}

impl Database {
    /// A statement is executed that relies on the last look, or would be if somebody looked, and
    /// saves so many microseconds if that was measured. Returns how many it is taken to save.
    #[inline]
    pub fn relies(&self, gain: i32) -> u32 {
        let gain = match gain {
            0 => USUAL,
            _ => u32::try_from(gain).map_or(0, |gain| gain.min(MOST)),
        };
        let saved = &self.usage.saved;
        if saved.load(Ordering::Relaxed) < ENOUGH {
            saved.fetch_add(gain, Ordering::Relaxed);
        }
        gain
    }

    /// Whether nothing is converted, because too little would be.
    #[must_use]
    #[inline]
    pub fn is_resting(&self) -> bool {
        self.usage.is_resting.load(Ordering::Relaxed)
    }

    /// Whether a look pays, which is due; if not, the database rests from now on.
    pub fn look_pays(&self, now: Millis, interval: u64) -> bool {
        let (usage, order) = (&self.usage, Ordering::Relaxed);
        if self.looked.load(order) == 0 {
            return true;
        }
        usage.turn(now, interval);
        let (before, saved) = (usage.before.load(order), usage.saved.load(order));
        let (most, price) = (before.max(saved), usage.price());
        let pays = match usage.is_resting.load(order) {
            true => most >= WAKES * price || before >= price && usage.earlier.load(order) >= price,
            false => most >= price,
        };
        if !pays {
            usage.is_resting.store(true, order);
        }
        pays
    }

    /// The catalog was looked at. What is saved until the next look is still to show.
    pub(super) fn wakes(&self, now: Millis) {
        let (usage, order) = (&self.usage, Ordering::Relaxed);
        let has_rested = usage.is_resting.swap(false, order);
        if has_rested || self.looked.load(order) == 0 {
            usage.since.store(now.0, order);
            usage.saved.store(0, order);
            usage.before.store(usage.price(), order);
        }
    }

    /// How long the last look took, in milliseconds.
    #[must_use]
    pub fn look_took(&self) -> u64 {
        self.usage.took.load(Ordering::Relaxed)
    }

    /// Whether it pays to look at the catalog so that a connection whose client has left may be
    /// given to somebody else: those before were.
    pub fn parking_pays(&self) -> bool {
        pays_to_try(&self.usage.parked)
    }

    /// A connection was given to somebody.
    pub fn gives(&self) {
        self.usage.parked.store(0, Ordering::Relaxed);
        self.earnings.spared();
    }
}

/// Counts a try; whether it is worth it: few before were in vain, or it is one of many.
fn pays_to_try(tried: &AtomicU32) -> bool {
    let tried = tried.fetch_add(1, Ordering::Relaxed);
    tried <= IN_VAIN || tried == AT_FIRST || tried.is_multiple_of(TRIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000;

    /// What a look costs that takes the least, in microseconds.
    const CHEAP: u32 = LEAST as u32 * 1_000;

    fn watched() -> Database {
        let database = Database::default();
        database.wakes(Millis(10_000));
        database.looked.store(10_001, Ordering::Relaxed);
        database
    }

    fn pays(database: &Database, now: u64) -> bool {
        database.look_pays(Millis(now), SECOND)
    }

    #[test]
    fn a_first_look_is_not_for_this_to_refuse() {
        let database = Database::default();
        assert!(pays(&database, 10_000) && !database.is_resting());
    }

    #[test]
    fn looks_pay_only_where_executions_rely_on_them() {
        let uses = |database: &Database, count: u32| {
            (0..count).for_each(|_| {
                database.relies(0);
            });
        };
        let database = watched();
        assert!(pays(&database, 10_900), "at first");
        uses(&database, CHEAP / USUAL + 1);
        assert!(pays(&database, 11_000));
        assert!(pays(&database, 11_500), "lately");
        assert!(!pays(&database, 12_000) && database.is_resting());
        // As much as would have kept it awake does not wake it, but twice in a row.
        uses(&database, CHEAP / USUAL + 1);
        assert!(!pays(&database, 12_500));
        assert!(!pays(&database, 13_000));
        uses(&database, CHEAP / USUAL + 1);
        assert!(pays(&database, 14_000) && database.is_resting());
        database.wakes(Millis(14_001));
        assert!(!database.is_resting());
        // Nor does it if that takes long.
        let database = watched();
        assert!(!pays(&database, 12_000));
        uses(&database, WAKES * CHEAP / USUAL + 1);
        assert!(pays(&database, 12_500));
        assert!(!pays(&database, 22_000), "in 10 s");
    }

    #[test]
    fn what_is_measured_counts_for_what_it_saves() {
        let database = watched();
        database.relies(-50);
        (0..1_000).for_each(|_| {
            database.relies(1);
        });
        assert!(!pays(&database, 11_000));
        let database = watched();
        database.relies(1_000_000);
        assert!(pays(&database, 11_000));
    }

    #[test]
    fn where_glances_do_little_has_to_be_saved() {
        let database = watched();
        let uses = |count: u32| {
            (0..count).for_each(|_| {
                database.relies(0);
            });
        };
        (0..40).for_each(|_| database.usage.glanced(Glance::Transactions));
        let least = CHEAP * TRANSACTIONS / LOOK;
        assert!((least..least + 10).contains(&database.usage.price()));
        uses(5);
        assert!(pays(&database, 11_000));
        assert!(!pays(&database, 13_000));
        // Nor does it take much to be looked at again.
        uses(10);
        assert!(pays(&database, 14_000));
        // What is written now and then takes looks now and then.
        for _ in 0..40 {
            database.usage.looked(1);
            database.usage.glanced(Glance::Transactions);
        }
        assert!((CHEAP / 4..CHEAP * 3 / 4).contains(&database.usage.price()));
        (0..40).for_each(|_| database.usage.looked(1));
        assert!((CHEAP - 10..=CHEAP).contains(&database.usage.price()));
    }

    #[test]
    fn looks_cost_what_the_fastest_of_them_take() {
        let database = watched();
        let price = |took: u64| {
            database.usage.looked(took);
            database.usage.price()
        };
        assert_eq!(price(100), 6_000, "it is the first of its session");
        assert_eq!(price(5), 5_000);
        let more = (0..9).fold(0, |_, _| price(100));
        assert_eq!(more, DEAREST as u32 * 1_000, "there are more tables now");
        assert_eq!(price(3), 3_000);
        assert!(price(6) < 4_000, "it may have waited for somebody");
        assert_eq!((0..40).fold(0, |_, _| price(5)), 4_000);
        assert_eq!(price(0), CHEAP);
    }

    #[test]
    fn slow_looks_pay_where_much_is_saved() {
        let database = watched();
        database.usage.looked(100);
        (0..1_000).for_each(|_| {
            database.relies(0);
        });
        assert!(pays(&database, 15_000));
    }

    #[test]
    fn connections_are_looked_at_to_be_kept_as_long_as_they_are_given() {
        let database = Database::default();
        let mut tried = (0..100).filter(|_| database.parking_pays());
        assert_eq!(tried.by_ref().take(4).last(), Some(3));
        assert_eq!(tried.collect::<Vec<_>>(), [4, 8, 16, 32, 48, 64, 80, 96]);
        database.gives();
        assert!(database.parking_pays());
    }
}
