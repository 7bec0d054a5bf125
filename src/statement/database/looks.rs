//! Looks at the catalog: when they are due, and what becomes of what they have seen.
//!
//! Most looks find nothing new. That everything is as the last one has seen it is often found out
//! by a *glance*: nothing was written in the whole cluster, or nothing that looks see.

use super::Database;
use crate::sql::tag::Command;
use crate::sql::touched::Touched;
use crate::statement::allowance::Allowance;
use crate::statement::sight::{Difference, Glance, Glimpse, Made, Sight};
use crate::statement::{Millis, lock};
use std::sync::atomic::Ordering;

/// Regular looks at the catalog may take one part of the time in this many.
const WATCH_SHARE: u64 = 50;

/// Looks out of turn may take one part of the time in this many: the session that waits for such a
/// look converts nothing meanwhile, so they may take more than regular ones.
const LOOK_SHARE: u64 = 10;

/// The most milliseconds of looks out of turn that are saved up.
const LOOKS_SAVED: u64 = 5_000;

/// The allowance for looks that come out of turn.
pub(super) const fn out_of_turn() -> Allowance {
    Allowance::new(LOOK_SHARE, LOOKS_SAVED)
}

/// The allowance for looks because of what has run in other sessions.
pub(super) const fn because_of_others() -> Allowance {
    Allowance::new(WATCH_SHARE, LOOKS_SAVED)
}

impl Database {
    /// Whether a regular look at the catalog is due.
    #[must_use]
    pub fn is_watch_due(&self, now: Millis, interval: u64) -> bool {
        let due = self.watch_due.load(Ordering::Relaxed);
        let is_suspect = self.suspicion.is_raised();
        interval > 0 && (due <= now.0 || is_suspect && self.suspicions.is_left(now))
    }

    /// Takes on the regular look at the catalog; false if none is due or another session took it.
    pub fn take_watch(&self, now: Millis, interval: u64) -> bool {
        let due = self.watch_due.load(Ordering::Relaxed);
        let next = now.0.saturating_add(interval);
        self.is_watch_due(now, interval)
            && self
                .watch_due
                .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            && {
                self.suspicion.look(now);
                true
            }
    }

    /// Whether somebody looks at the catalog because what has run in a session may have changed it:
    /// until that is answered, nothing that is known is to be relied on.
    #[must_use]
    #[inline]
    pub fn is_looked_into(&self, now: Millis) -> bool {
        self.suspicion.is_looked_into(now)
    }

    /// Whether the catalog was looked at after the time `since`.
    #[must_use]
    pub fn was_looked_at(&self, since: Millis) -> bool {
        // A look in the same millisecond may have come before.
        self.looked.load(Ordering::Acquire) > since.0.saturating_add(1)
    }

    /// Whether the allowance permits a look out of turn, and it can be paid for.
    #[must_use]
    pub fn may_look(&self, now: Millis) -> bool {
        self.looks.is_left(now) && self.affords()
    }

    /// What was made through the proxy since the last look at the catalog.
    #[must_use]
    pub fn made(&self) -> Made {
        lock(&self.seen).made()
    }

    /// Records a look at the catalog, which took from `asked` to `now`; returns whether it tells
    /// that the catalog has changed. A change moves the epoch. After a long look the next one comes
    /// later. `suspect` says whether a first look counts as a change, and that a session waits for
    /// what it says.
    pub fn observed(&self, sight: Sight, asked: Millis, now: Millis, suspect: bool) -> bool {
        let took = now.since(asked);
        self.spends(took, now);
        self.usage.looked(took);
        let mut seen = lock(&self.seen);
        // It is as if nobody had looked: whoever relies on looks waits for the next one.
        if !suspect && seen.is_early(&sight) {
            self.watch_due.store(now.0, Ordering::Relaxed);
            return false;
        }
        let difference = self.look(&mut seen, sight, suspect);
        let mut names = lock(&self.names);
        let has_names = difference.as_ref().is_some_and(|it| {
            // What gives no name hazards of its own, a new index or column, may use a function that
            // has them, and take them on.
            let spreads = || names.known(0).is_some_and(|names| names.spread());
            it.names || it.touched != Touched::Refused && spreads()
        });
        if names.looked(has_names, now) {
            self.naming.fetch_add(1, Ordering::AcqRel);
        }
        if difference.is_some() {
            names.may_draw_otherwise();
            self.notes_draws(&names);
        }
        if let Some(Difference { touched, .. }) = &difference {
            let touched = names.resolved(touched);
            if !touched.is_bounded() {
                self.contexts.fetch_add(1, Ordering::AcqRel);
            }
            self.advance_epoch((&touched, &touched), Command::UNSEEN);
        }
        self.has_looked(asked, now);
        difference.is_some()
    }

    /// A look or a glance has taken so many milliseconds: the next is not due for as many times as
    /// that. What it has waited on a busy machine keeps nobody waiting for the next.
    fn spends(&self, took: u64, now: Millis) {
        let took = self.usage.cost_of_look(took);
        let due = now.0.saturating_add(took.saturating_mul(WATCH_SHARE));
        self.watch_due.fetch_max(due, Ordering::Relaxed);
        self.has_looked_first(took, now);
        self.looks.spend(took, now);
        self.suspicions.spend(took, now);
    }

    /// What is to be asked before a look, because that may do in its place: nothing, if something
    /// was made through the proxy since the last look, or if such questions are in vain. `behind`
    /// is what was asked before.
    pub fn glance(&self, behind: Option<Glance>) -> Option<Glance> {
        let [transactions, rows] = lock(&self.seen).glances();
        let transactions = transactions.filter(|_| behind.is_none());
        let rows = rows.filter(|_| !matches!(behind, Some(Glance::Rows(_))));
        let transactions = transactions.filter(|glance| self.usage.glance_pays(*glance));
        transactions.or_else(|| rows.filter(|glance| self.usage.glance_pays(*glance)))
    }

    /// Records the answer to a glance, which took from `asked` to `now`. Returns whether it is as
    /// good as a look, because everything is as the last look has seen it.
    pub fn glanced(&self, glimpse: Glimpse, (asked, now): (Millis, Millis)) -> bool {
        let glance = glimpse.glance;
        let is_same = lock(&self.seen).is_same(glimpse);
        if is_same {
            // The clock says less of what is shorter than a millisecond.
            self.spends(now.since(asked).max(1), now);
            self.usage.glanced(glance);
            self.has_looked(asked, now);
        }
        is_same
    }

    /// What the catalog was at the time `asked` is known. This comes after the epoch, so that a
    /// reader who sees it also sees the new epoch.
    fn has_looked(&self, asked: Millis, now: Millis) {
        self.wakes(now);
        self.looked
            .fetch_max(asked.0.saturating_add(1), Ordering::AcqRel);
        self.suspicion.looked(asked);
    }
}
