//! Whether a conversion pays: by which route the answers to a statement come sooner.
//!
//! Now and then a connection takes a [trial](super::trial): one execution by the usual route and
//! one by the other, both timed from the moment a query is taken to the end of its answer. The
//! pairs of all connections are kept with the statement. What the network and the proxy add is the
//! same in both; what a busy machine adds to one of them, a median of several pairs leaves out.
//!
//! Invariants:
//! - trials by the worse route take at most one part in `SHARE` of the time that the statement
//!   takes by the better one, but for the first few;
//! - the usual route changes only when pairs have spoken against it so much more often than for it
//!   that chance does not make that up, however long it tries and however busy the machine is
//!   (`Pairs::weigh`).

use super::{Micros, lock};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

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

/// Pairs of which the medians are told, and how many of them have to say that the same route is the
/// shorter before anything is counted as saved or lost. Of two routes that take equally long so
/// many agree by chance once in six times, and then the one as often as the other.
pub(super) const ENOUGH: usize = 9;
const AGREE: usize = 7;

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
pub(super) const SHARE: u64 = 100;

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

/// An execution is late if it takes this many times as long as is usual. What takes less than so
/// many microseconds is not late.
const LATE: u32 = 4;
const PROMPT: u32 = 250;

/// Microseconds between two trials of a statement that runs elsewhere, once it is known what it
/// saves at home.
pub(super) const RARELY: u64 = 1_000_000;

/// The same while it does not seem to pay: so many are enough to leave it within a few seconds.
pub(super) const PRESSING: u64 = 100_000;

/// What runs elsewhere saves more than is seen at home. It is left only if it takes so many times
/// as long as its text there.
const FAR: u32 = 2;

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
    /// The original is the usual route, and by far the shorter.
    is_far: AtomicBool,
    /// The prepared route does not seem to pay.
    is_pressing: AtomicBool,
    /// When the last of the rare trials began.
    tried: AtomicU64,
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
            is_far: AtomicBool::new(false),
            is_pressing: AtomicBool::new(false),
            tried: AtomicU64::new(0),
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

    /// Whether the original is by so much the shorter route that nothing makes up for it which a
    /// read may gain where it runs.
    #[must_use]
    #[inline]
    pub fn are_left_by_far(&self) -> bool {
        self.is_far.load(Ordering::Relaxed)
    }

    /// Whether the prepared route is usual and does not seem to pay, so that more has to be known.
    #[must_use]
    #[inline]
    pub fn are_pressing(&self) -> bool {
        self.is_pressing.load(Ordering::Relaxed)
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

    /// By how many microseconds a prepared execution is quicker than its text, by the median of the
    /// latest pairs; negative if it is slower, and zero while there are not enough of them that
    /// agree.
    #[must_use]
    #[inline]
    pub fn gain(&self) -> i32 {
        self.gain.load(Ordering::Relaxed)
    }

    /// Whether it is known of a statement that may run elsewhere what it saves at home, or that it
    /// does not pay there: it is timed rarely from then on.
    #[must_use]
    #[inline]
    pub fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }

    /// Microseconds from which on a prepared execution is late: it takes several times as long as
    /// is usual.
    #[must_use]
    #[inline]
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Microseconds that a trial loses.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether a rare trial may begin now, on whatever connection: while one is under way nobody
    /// else reads there, which costs more than the trial. It is counted as begun.
    pub fn may_try(&self, clock: Micros) -> bool {
        let order = Ordering::Relaxed;
        let last = self.tried.load(order);
        let interval = match self.are_pressing() {
            true => PRESSING,
            false => RARELY,
        };
        let is_due = clock.0.saturating_sub(last) >= interval;
        is_due
            && self
                .tried
                .compare_exchange(last, clock.0, order, order)
                .is_ok()
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
            let is_far = route == Route::Original && pairs.are_far();
            self.is_far.store(is_far, Ordering::Relaxed);
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
        self.gain.store(pairs.gain(), Ordering::Relaxed);
        let is_prepared = self.usual() == Route::Prepared;
        if !is_prepared && pairs.count >= ENOUGH {
            self.is_far.store(pairs.are_far(), Ordering::Relaxed);
        }
        let is_pressing = is_prepared && (pairs.doubt >= DOUBTED || pairs.gain() < 0);
        self.is_pressing.store(is_pressing, Ordering::Relaxed);
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

    /// Whether the original is the shorter by far.
    fn are_far(&self) -> bool {
        let Pair { prepared, original } = self.medians();
        prepared >= original.saturating_mul(FAR)
    }

    /// By how many microseconds a prepared execution is quicker, if most pairs agree: what a busy
    /// machine adds here and there would else be told as a gain or a loss.
    fn gain(&self) -> i32 {
        if self.count < ENOUGH {
            return 0;
        }
        let gain = |pair: &Pair| i64::from(pair.original) - i64::from(pair.prepared);
        let mut gains = self.latest.each_ref().map(gain);
        gains.sort_unstable();
        let gained = gains.iter().filter(|gain| **gain > 0).count();
        let lost = gains.iter().filter(|gain| **gain < 0).count();
        match gained.max(lost) >= AGREE {
            true => i32::try_from(gains[ENOUGH / 2]).unwrap_or_default(),
            false => 0,
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
