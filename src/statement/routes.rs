//! Whether a conversion pays: by which route the answers to a statement come sooner.
//!
//! Now and then a connection takes a *trial*: one execution by the usual route and one by the
//! other, both timed from the moment a query is taken to the end of its answer. The pairs of all
//! connections are kept with the statement. What the network and the proxy add is the same in
//! both; what a busy machine adds to one of them, a median of several pairs leaves out.
//!
//! A plan may grow bad between two trials: executions that take several times as long as is usual
//! bring the next one forward.
//!
//! Invariants:
//! - trials by the worse route take at most one part in `SHARE` of the time that the statement
//!   takes by the better one, but for the first few;
//! - the usual route changes only when pairs have spoken against it so much more often than for it
//!   that chance does not make that up, however long it tries and however busy the machine is
//!   (`Pairs::weigh`).

use super::{Micros, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// How a query reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// As Bind and Execute of a prepared statement.
    Prepared,
    /// As the client wrote it.
    Original,
}

/// Microseconds that an execution took by either route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pair {
    /// As a prepared statement.
    pub prepared: u32,
    /// As the client wrote it.
    pub original: u32,
}

/// Pairs of which the medians are told.
const ENOUGH: usize = 9;

/// What a pair adds to the doubt about the usual route if it speaks against it, what it takes away
/// if not, and the doubt at which the route changes.
///
/// Such a sum stays near nothing as long as less than `takes` of `adds + takes` pairs speak against
/// the route, whatever single pairs show: where every other pair does, because the routes are alike
/// and times scatter, it reaches `changes` by chance once in tens of thousands of pairs. Where all
/// do, sixteen pairs are enough, or twelve.
#[derive(Debug, Clone, Copy)]
struct Weights {
    adds: u32,
    takes: u32,
    changes: u32,
}

/// Of prepared executions, which are left if most take longer by more than noise makes up.
const LEAVE: Weights = Weights {
    adds: 2,
    takes: 3,
    changes: 32,
};

/// Of the original, to which every prepared execution is preferred that takes no longer.
const RETURN: Weights = Weights {
    adds: 2,
    takes: 3,
    changes: 24,
};

/// One part in this many of a statement's time may be lost by trials.
const SHARE: u64 = 100;

/// Executions of a connection between two trials while a change of the route is being considered,
/// and at the beginning. The server plans the first five for their values.
const SOON: u32 = 5;

/// The doubt from which on every execution but the one between belongs to a trial.
const DOUBTED: u32 = 8;

/// Executions between two trials when all is clear, at first, and how often that is doubled.
const CLEAR: u32 = 16;
const DOUBLINGS: u32 = 6;

/// The most executions between two trials.
const MOST: u32 = 100_000;

/// An execution is late if it takes this many times as long as is usual, and so many late ones
/// bring a trial forward. What takes less than so many microseconds is not late.
const LATE: u32 = 4;
const LATES: u8 = 3;
const PROMPT: u32 = 250;

/// Queries of several executions of a statement are alike if the one has no more than one part in
/// this many fewer than the other, and after so many that are not, those are compared.
const LIKE: u32 = 4;
const MOST_UNLIKE: u8 = 16;

/// What is known of the routes of one statement.
#[derive(Debug)]
pub struct Routes {
    pairs: Mutex<Pairs>,
    /// The usual route is the original.
    leaves: AtomicBool,
    /// Executions of one connection until its next trial.
    gap: AtomicU32,
    /// Microseconds from which on a prepared execution is late.
    limit: AtomicU32,
    /// Microseconds that a trial loses.
    lost: AtomicU32,
    /// By how many microseconds a prepared execution is quicker; zero while that is not known.
    gain: AtomicI32,
    /// There were enough pairs once, or the route has changed.
    is_told: AtomicBool,
    account: Mutex<Account>,
}

/// What executions have saved, as far as it is added up.
#[derive(Debug, Default)]
struct Account {
    /// The executions that are in it.
    executions: u32,
    /// Microseconds; negative if they were lost.
    saved: i64,
    /// Some were added up when it was known what each saves.
    is_measured: bool,
}

impl Account {
    /// What all executions have saved, if those that are not in it yet have saved so much each.
    fn with(&self, executions: u32, gain: i32) -> i64 {
        let more = executions.wrapping_sub(self.executions);
        self.saved
            .saturating_add(i64::from(gain).saturating_mul(more.into()))
    }
}

#[derive(Debug, Default)]
struct Pairs {
    /// The latest, in a ring.
    latest: [Pair; ENOUGH],
    /// How many there have been.
    count: usize,
    /// How many in a row have spoken for the usual route.
    streak: u32,
    /// How much speaks against it: see [`Weights`].
    doubt: u32,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            pairs: Mutex::default(),
            leaves: AtomicBool::new(false),
            gap: AtomicU32::new(SOON),
            limit: AtomicU32::new(u32::MAX),
            lost: AtomicU32::new(0),
            gain: AtomicI32::new(0),
            is_told: AtomicBool::new(false),
            account: Mutex::default(),
        }
    }
}

impl Routes {
    /// The route that has been found the better one.
    #[must_use]
    #[inline]
    pub fn usual(&self) -> Route {
        match self.leaves.load(Ordering::Relaxed) {
            true => Route::Original,
            false => Route::Prepared,
        }
    }

    /// Executions of one connection until its next trial.
    #[must_use]
    pub fn gap(&self) -> u32 {
        self.gap.load(Ordering::Relaxed)
    }

    /// The medians of the latest pairs, once there are enough.
    #[must_use]
    pub fn medians(&self) -> Option<Pair> {
        let pairs = lock(&self.pairs);
        (pairs.count >= ENOUGH).then(|| pairs.medians())
    }

    /// By how many microseconds a prepared execution is quicker than its text, by the medians of
    /// the latest pairs; negative if it is slower, and zero while there are not enough of them.
    #[must_use]
    #[inline]
    pub fn gain(&self) -> i32 {
        self.gain.load(Ordering::Relaxed)
    }

    /// Whether nothing more is to be found out for a statement that may run elsewhere: what it
    /// saves at home is known, or it has turned out not to pay there.
    #[must_use]
    #[inline]
    pub fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }

    /// Adds up what the executions so far have saved, of which there have been so many. It is to be
    /// called before a pair changes what each saves.
    pub fn account(&self, executions: u32) {
        let is_measured = self.medians().is_some();
        let mut account = lock(&self.account);
        account.saved = account.with(executions, self.gain());
        account.executions = executions;
        account.is_measured |= is_measured;
    }

    /// Microseconds that so many executions have saved against the text, each by the difference
    /// that was known when it ran; negative if they were lost. `None` if none was known yet.
    #[must_use]
    pub fn saved(&self, executions: u32) -> Option<i64> {
        let is_measured = self.medians().is_some();
        let account = lock(&self.account);
        (account.is_measured || is_measured).then(|| account.with(executions, self.gain()))
    }

    /// Adds a pair; returns the usual route if that has changed by it.
    pub fn add(&self, pair: Pair) -> Option<Route> {
        let mut pairs = lock(&self.pairs);
        let usual = self.usual();
        let place = pairs.count % ENOUGH;
        pairs.latest[place] = pair;
        pairs.count += 1;
        let changed = pairs.weigh(usual, pair);
        if let Some(route) = changed {
            self.leaves
                .store(route == Route::Original, Ordering::Relaxed);
            // What spoke against the one route is no measurement of the other.
            *pairs = Pairs::default();
        }
        let gap = match changed {
            Some(_) => CLEAR,
            None => pairs.gap(usual),
        };
        self.gap.store(gap, Ordering::Relaxed);
        let medians = pairs.medians();
        let limit = medians.prepared.max(PROMPT).saturating_mul(LATE);
        self.limit.store(limit, Ordering::Relaxed);
        let lost = medians.original.saturating_sub(medians.prepared);
        self.lost.store(lost, Ordering::Relaxed);
        let gain = match pairs.count {
            ENOUGH.. => i64::from(medians.original) - i64::from(medians.prepared),
            _ => 0,
        };
        let gain = i32::try_from(gain).unwrap_or_default();
        self.gain.store(gain, Ordering::Relaxed);
        if changed.is_some() || pairs.count >= ENOUGH {
            self.is_told.store(true, Ordering::Relaxed);
        }
        changed
    }
}

impl Pairs {
    /// Adds what a pair says of the usual route; returns the other one if it is the better one
    /// beyond doubt.
    fn weigh(&mut self, usual: Route, pair: Pair) -> Option<Route> {
        let (weights, other, speaks_against) = match usual {
            Route::Prepared => {
                let is_slower = is_slower(pair.prepared, pair.original);
                (LEAVE, Route::Original, is_slower)
            }
            Route::Original => {
                let is_faster = pair.prepared <= pair.original;
                (RETURN, Route::Prepared, is_faster)
            }
        };
        (self.streak, self.doubt) = match speaks_against {
            true => (0, self.doubt + weights.adds),
            false => (self.streak + 1, self.doubt.saturating_sub(weights.takes)),
        };
        (self.doubt >= weights.changes).then_some(other)
    }

    fn medians(&self) -> Pair {
        let median = |of: fn(&Pair) -> u32| {
            let mut all = self.latest.each_ref().map(of);
            let all = &mut all[..self.count.min(ENOUGH)];
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        Pair {
            prepared: median(|pair| pair.prepared),
            original: median(|pair| pair.original),
        }
    }

    /// Executions until the next trial: few while there is doubt, so many that what the other route
    /// costs more is a small share, and more the longer all is clear.
    fn gap(&self, usual: Route) -> u32 {
        let medians = self.medians();
        let (usual, other) = match usual {
            Route::Prepared => (medians.prepared, medians.original),
            Route::Original => (medians.original, medians.prepared),
        };
        let lost = u64::from(other.saturating_sub(usual)) * SHARE;
        let paid = lost / u64::from(usual.max(1));
        let paid = u32::try_from(paid).unwrap_or(MOST).min(MOST);
        match self.streak {
            0 if self.doubt >= DOUBTED => paid.max(1),
            0 => SOON.max(paid),
            // It is not known yet what is usual.
            _ if self.count < ENOUGH => SOON.max(paid / 2),
            streak => (CLEAR << streak.min(DOUBLINGS)).max(paid),
        }
    }
}

/// Whether the one is slower by more than is worth a change, both in microseconds.
const fn is_slower(one: u32, other: u32) -> bool {
    one as u64 * 10 > other as u64 * 11
}

/// Which executions of a statement one connection times.
#[derive(Debug)]
pub struct Trial {
    /// Executions until the next trial, or none while one is under way.
    left: u32,
    /// Microseconds by the usual route so far, and of how many executions.
    first: (u64, u32),
    /// Microseconds by the usual route; `None` while that is not measured.
    usual: Option<u32>,
    /// How many executions of the statement one is that the trial under way compares.
    together: u32,
    /// Others since then, which were of another number.
    unlike: u8,
    /// Executions since the last trial that were late.
    lates: u8,
    /// When that was.
    last: Micros,
}

impl Trial {
    /// A connection that has just prepared a statement with these routes.
    #[must_use]
    pub fn new(routes: &Routes) -> Self {
        // The first executions of a plan fill the server's caches.
        let left = match routes.usual() {
            Route::Prepared => routes.gap(),
            Route::Original => 0,
        };
        Self {
            left,
            first: (0, 0),
            usual: None,
            together: 1,
            unlike: 0,
            lates: 0,
            last: Micros(0),
        }
    }

    /// The route of the next execution if it is to be timed, or of the next so many together, in
    /// one query: what they share is only alike among about as many.
    #[inline]
    pub fn next(&mut self, routes: &Routes, together: u32) -> Option<Route> {
        if self.left > 0 {
            self.left -= 1;
            return None;
        }
        if self.together != together && !self.takes(together) {
            return None;
        }
        Some(match (self.usual.is_some(), routes.usual()) {
            (false, usual) => usual,
            (true, Route::Prepared) => Route::Original,
            (true, Route::Original) => Route::Prepared,
        })
    }

    /// Whether the next execution is to be timed.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.left == 0
    }

    /// The usual route is the original, and a query went by it of which it was not known whether
    /// its time could be taken.
    pub fn passes(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether so many together may be compared with those of the trial under way. Once others have
    /// come too often, that is given up for another.
    #[cold]
    fn takes(&mut self, together: u32) -> bool {
        let is_under_way = self.usual.is_some() || self.first.1 > 0;
        let (less, more) = (self.together.min(together), self.together.max(together));
        let is_like = less >= more - more / LIKE;
        if is_under_way && !is_like {
            self.unlike += 1;
            if self.unlike < MOST_UNLIKE {
                return false;
            }
            (self.first, self.usual) = ((0, 0), None);
        }
        self.unlike = 0;
        if !is_under_way || !is_like {
            self.together = together;
        }
        true
    }

    /// An execution by this route took so many microseconds, or each of some together. Of a
    /// statement that is planned for each `rounds` values and then parsed anew, so many are one
    /// measurement. Returns a pair when there is one.
    pub fn took(&mut self, route: Route, micros: u64, rounds: u32) -> Option<Pair> {
        let needed = if route == Route::Prepared { rounds } else { 1 };
        self.first.0 += micros;
        self.first.1 += 1;
        if self.first.1 < needed {
            return None;
        }
        let mean = std::mem::take(&mut self.first).0 / u64::from(needed);
        let mean = u32::try_from(mean).unwrap_or(u32::MAX);
        let Some(usual) = self.usual.take() else {
            self.usual = Some(mean);
            return None;
        };
        let pair = match route {
            Route::Original => Pair {
                prepared: usual,
                original: mean,
            },
            Route::Prepared => Pair {
                prepared: mean,
                original: usual,
            },
        };
        Some(pair)
    }

    /// The trial is over, or what was to be timed has failed: the next one is made another time.
    pub fn rest(&mut self, routes: &Routes, now: Micros) {
        *self = Self {
            left: routes.gap(),
            last: now,
            ..Self::new(routes)
        };
    }

    /// A prepared execution has taken longer than [`Self::limit`] says.
    pub fn late(&mut self, routes: &Routes, now: Micros) {
        self.lates = self.lates.saturating_add(1);
        let lost = u64::from(routes.lost.load(Ordering::Relaxed));
        if self.lates >= LATES && now.since(self.last) >= lost * SHARE {
            (self.left, self.lates) = (0, 0);
        }
    }

    /// Microseconds from which on an execution is late.
    #[must_use]
    #[inline]
    pub fn limit(routes: &Routes) -> u32 {
        routes.limit.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "routes_tests.rs"]
mod tests;
