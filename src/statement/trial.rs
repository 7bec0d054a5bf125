//! When the executions of a statement on one connection are timed, by which route, and what makes a
//! pair of times.
//!
//! A plan may grow bad between two trials: executions that take several times as long as is usual
//! bring the next one forward.

use super::Micros;
use super::routes::{Pair, Route, Routes, SHARE};

/// So many late executions bring a trial forward.
const LATES: u8 = 3;

/// Executions at home that fill the server's caches, which plans the first five for their values,
/// before those are timed of a statement that runs elsewhere otherwise.
const COLD: u8 = 6;

/// Executions of one connection that run elsewhere before it is seen whether a trial is due, once
/// it is known what the statement saves at home.
const ELSEWHERE: u32 = 1_024;

/// Queries of several executions of a statement are alike if the one has no more than one part in
/// this many fewer than the other, and after so many that are not, those are compared.
const LIKE: u32 = 4;
const MOST_UNLIKE: u8 = 16;

/// How a statement is executed at home that may run elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtHome {
    /// Prepared, because what is timed is not to be the first.
    Untimed,
    /// By this route, to be timed.
    Timed(Route),
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
    /// Executions at home that are not timed yet, of a statement that runs elsewhere otherwise.
    cold: u8,
    /// Executions elsewhere since it was last seen whether a trial is due.
    away: u32,
    /// Late executions want the next of those trials that are rare.
    is_hurried: bool,
    /// The trial that is due or under way is one of those that are rare.
    is_rare: bool,
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
            cold: COLD,
            away: 0,
            is_hurried: false,
            is_rare: false,
            lates: 0,
            last: Micros(0),
        }
    }

    /// Whether the next execution of a statement that may run elsewhere is to run at home, and how:
    /// because it is timed, or so that the next ones can be.
    #[inline]
    pub fn next_at_home(&mut self, routes: &Routes, clock: Micros) -> Option<AtHome> {
        if routes.is_told() && !self.is_rare {
            self.away += 1;
            if self.away < ELSEWHERE && !self.is_hurried && !routes.are_pressing() {
                return None;
            }
            self.away = 0;
            if !routes.may_try(clock) {
                return None;
            }
            (self.is_rare, self.is_hurried, self.left) = (true, false, 0);
        }
        let route = self.next(routes, 1)?;
        if route == Route::Prepared && self.cold > 0 {
            self.cold -= 1;
            return Some(AtHome::Untimed);
        }
        Some(AtHome::Timed(route))
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
            cold: self.cold,
            last: now,
            ..Self::new(routes)
        };
    }

    /// A prepared execution has taken longer than [`Routes::limit`] says.
    pub fn late(&mut self, routes: &Routes, now: Micros) {
        self.lates = self.lates.saturating_add(1);
        let lost = u64::from(routes.lost());
        if self.lates >= LATES && now.since(self.last) >= lost * SHARE {
            (self.left, self.lates, self.is_hurried) = (0, 0, true);
        }
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
