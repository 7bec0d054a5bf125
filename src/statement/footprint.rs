//! What a statement needs of the session that runs it.

use super::{Millis, Statement, Verdict, lock};
use crate::reason::Stay;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Whether a statement may be run on the server connection of another session that is like its
/// own. It is part of a verdict and goes with it: with the catalog's epoch, and with its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Footprint {
    /// Nobody has asked.
    #[default]
    Unasked,
    /// It may: its answer depends on the database and on what both sessions have in common.
    Travels,
    /// It may not.
    Stays(Stay),
}

/// Whether a read that travels looks at the time at which its transaction began. It is known as
/// long as it is known that the read travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Clock {
    /// It does, or nobody knows.
    #[default]
    Seen,
    /// It does if a value says so: `'now'` where a time is expected.
    ByValue,
    /// It does not.
    Unseen,
}

/// Executions of a statement before it is asked about. The questions take 1 ms of the server's
/// processor time if it reads tables, and up to 6 ms if it reads views or partitions (15). A quick
/// read that shares a connection would save some 25 µs.
const PAYS: u32 = 160;

/// Milliseconds for which a statement stays at home that has kept a connection waiting; twice as
/// long each time it does so again, up to [`DOUBLINGS`] times.
const REST: u64 = 250;
const DOUBLINGS: u32 = 12;

/// Executions between two that keep others waiting from which on neither counts: on a busy machine
/// a server process may have to wait for a processor.
const SELDOM: u32 = 1000;

/// Executions between two that have taken long elsewhere, up to which that is the rule; and how
/// many such there are before it stays at home. On a busy machine any of them may take long.
const NEAR: u32 = 4;
const LONGS: u32 = 8;

/// Milliseconds behind such a time without another case, after which the count begins anew.
const FORGIVEN: u64 = 2000;

/// Whether a statement travels now, for those who ask with each execution: they take no lock.
#[derive(Debug, Default)]
pub(super) struct Travels {
    /// The footprint of the verdict says so.
    may: AtomicBool,
    /// What it sees of the time, as [`Clock`] numbers it.
    clock: AtomicU8,
    /// It stays at home until then.
    rests_until: AtomicU64,
    /// How often it was found to keep others waiting, lately, and how many executions there had
    /// been the last time.
    strikes: AtomicU32,
    struck: AtomicU32,
    /// The number of executions when one elsewhere has last taken long, and how many such there
    /// have been in a row.
    long: AtomicU32,
    longs: AtomicU32,
}

impl Travels {
    /// Notes whether it may, as the verdict says.
    pub(super) fn set(&self, may: bool) {
        self.sees(Clock::Seen);
        self.may.store(may, Ordering::Relaxed);
    }

    fn sees(&self, clock: Clock) {
        self.clock.store(clock as u8, Ordering::Relaxed);
    }
}

impl Statement {
    /// Whether it may run on another session's server connection, and has kept none of them waiting
    /// lately.
    #[must_use]
    #[inline]
    pub fn travels(&self, now: Millis) -> bool {
        self.travels.may.load(Ordering::Relaxed)
            && now.0 >= self.travels.rests_until.load(Ordering::Relaxed)
    }

    /// Whether it may run on another session's server connection, now or later.
    #[must_use]
    #[inline]
    pub fn may_travel(&self) -> bool {
        self.travels.may.load(Ordering::Relaxed)
    }

    /// It has kept others waiting, or its answer was too large to be held: unless that is seldom,
    /// it stays at home for a time.
    pub fn rests_at_home(&self, now: Millis) {
        let Travels {
            rests_until,
            strikes,
            struck,
            ..
        } = &self.travels;
        let before = rests_until.load(Ordering::Relaxed);
        if now.0 < before {
            // It was sent before it was known, as others were.
            return;
        }
        let executions = self.executions();
        let since = executions.wrapping_sub(struck.swap(executions, Ordering::Relaxed));
        if since > SELDOM {
            strikes.store(0, Ordering::Relaxed);
            return;
        }
        if now.0 > before.saturating_add(FORGIVEN) {
            strikes.store(0, Ordering::Relaxed);
        }
        let count = strikes.fetch_add(1, Ordering::Relaxed).min(DOUBLINGS);
        rests_until.store(now.0.saturating_add(REST << count), Ordering::Relaxed);
    }

    /// An execution elsewhere has taken so long that others would have noticed to wait for it. If
    /// that is the rule, it stays at home for a time.
    #[cold]
    pub fn took_long(&self, now: Millis) {
        let order = Ordering::Relaxed;
        let executions = self.executions.load(order);
        let before = self.travels.long.swap(executions, order);
        if executions.wrapping_sub(before) > NEAR {
            self.travels.longs.store(0, order);
        } else if self.travels.longs.fetch_add(1, order) + 1 >= LONGS {
            self.travels.longs.store(0, order);
            self.rests_at_home(now);
        }
    }

    /// Whether it was executed so often that asking what it needs may pay.
    #[must_use]
    pub fn earns_footprint(&self) -> bool {
        self.executions() >= PAYS
    }

    /// What running it elsewhere would need, if it is trusted.
    #[must_use]
    pub fn footprint(&self) -> Option<Footprint> {
        match *lock(&self.verdict) {
            Verdict::Trusted { footprint, .. } => Some(footprint),
            _ => None,
        }
    }

    /// After how many times as many executions it is audited again. An audit costs what some ten
    /// executions save; but it also asks whether the statement travels, where that is wanted, and
    /// it may have been impossible to ask that the last time.
    pub(super) fn intervals(&self, proves_reads: bool) -> u32 {
        match self.footprint() {
            Some(Footprint::Unasked) if proves_reads => 2,
            _ => 4,
        }
    }

    /// Whether it looks at the time at which its transaction began, if it travels.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let clock = self.travels.clock.load(Ordering::Relaxed);
        let known = [Clock::ByValue, Clock::Unseen];
        let found = known.into_iter().find(|known| *known as u8 == clock);
        found.unwrap_or_default()
    }

    /// Notes what it needs of the session that runs it, and what it sees of the time, if it is
    /// trusted as of this catalog epoch. Nothing that a mirror holds depends on that.
    pub fn note_footprint(&self, at: u64, (found, clock): (Footprint, Clock)) {
        if let Verdict::Trusted {
            epoch, footprint, ..
        } = &mut *lock(&self.verdict)
            && *epoch == at
        {
            *footprint = found;
            self.travels.set(found == Footprint::Travels);
            self.travels.sees(clock);
        }
    }
}
