//! What DISCARD ALL would find in a session: what was left since the last one.
//!
//! DISCARD ALL throws away every cached plan (`ResetPlanCache` in `plancache.c`), those in
//! functions included. So what matters of the functions that have run is what has run since the
//! last one, and whether the catalog has changed since: a plan that was made before a change may go
//! on as it was, and DISCARD ALL would have it made anew.

use super::Standing;
use super::remains::{RESETS, Reset};
use crate::sql::moves::{self, Move};
use crate::sql::residue::Residue;
use crate::sql::touched::Touched;

/// The client's DISCARD ALL, and what was left since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discard {
    /// One is relayed, with nothing in flight beside it.
    is_sent: bool,
    /// The server has done it.
    is_done: bool,
    /// It has done one at some time.
    pub(super) has_been: bool,
    /// What was left since: less than in the session, which may have more that nothing takes away.
    left: Residue,
    /// The catalog epoch when the first function may have run since.
    kept_since: u64,
}

impl Discard {
    /// Of a session in which this was left.
    pub(super) const fn new(left: Residue) -> Self {
        Self {
            is_sent: false,
            is_done: false,
            has_been: false,
            left,
            kept_since: 0,
        }
    }

    /// Something has run that leaves this; the catalog epoch is that now.
    #[inline]
    pub(super) fn leaves(&mut self, residue: Residue, epoch: u64) {
        if residue.has(Residue::KEPT) && !self.left.has(Residue::KEPT) {
            self.kept_since = epoch;
        }
        self.left = self.left.then(residue);
    }

    /// Whether anything may have been left since.
    pub(super) const fn is_anything(&self) -> bool {
        self.left.is_anything()
    }

    /// It is not known what was left.
    pub(super) const fn is_unknown(&mut self) {
        self.left = Residue::ANYTHING;
    }

    /// This is what was left in the session since it began, and when functions began to run in it.
    pub(super) const fn has_left(&mut self, residue: Residue, kept_since: u64) {
        if !self.has_been {
            self.begins_with(residue, kept_since);
        }
    }

    /// From now on it is as if nothing but this had been left since the last one.
    pub(super) const fn begins_with(&mut self, residue: Residue, kept_since: u64) {
        (self.left, self.kept_since) = (residue, kept_since);
    }
}

impl Standing {
    /// What does in this session all that DISCARD ALL would do, in the order in which that is to be
    /// sent: RESET ALL is the last. `None` if nothing may be known to.
    #[must_use]
    pub fn discards(&mut self) -> Option<Vec<Reset>> {
        self.settle_residue();
        let left = self.discard.left;
        if left.has(Residue::CHANNELS | Residue::CURSORS | Residue::STATEMENTS) {
            // Their client would be told of what comes meanwhile, or might see ours.
            return None;
        }
        let is_watched = self.discard.has_been || !self.is_unwatched;
        if left.is_anything() || !is_watched || !self.has_kept_since(left, self.discard.kept_since)
        {
            return None;
        }
        let always = |reset: &&Reset| reset.takes == Residue::SETTINGS || left.has(reset.takes);
        let mut needed: Vec<Reset> = RESETS.iter().filter(always).copied().collect();
        needed.rotate_left(1);
        Some(needed)
    }

    /// Whether what the server keeps of functions, if that is among what was left, is what it would
    /// keep of the catalog as it is now.
    pub(super) fn has_kept_since(&self, left: Residue, epoch: u64) -> bool {
        let concerns = |touched: &Touched| !touched.is_nothing();
        !left.has(Residue::KEPT) || self.database.holds(epoch, concerns).is_ok()
    }

    /// All of that has completed.
    pub fn has_discarded(&mut self) {
        for residue in [&mut self.residue, &mut self.discard.left] {
            if !residue.is_anything() {
                *residue = RESETS
                    .iter()
                    .fold(*residue, |left, reset| left.without(reset.takes))
                    .without(Residue::NAMES);
            }
        }
    }

    /// A text is relayed, with nothing in flight before it if `is_idle`: it may be DISCARD ALL.
    pub(super) fn begins_discard(&mut self, text: &[u8], is_idle: bool) {
        let may_be = matches!(text.trim_ascii_start(), [b'd' | b'D', ..]);
        let is = may_be && is_idle && moves::read(text) == Some(Move::DiscardAll);
        self.discard.is_sent = is;
        self.discard.is_done = false;
    }

    /// The text has completed with this tag.
    pub(super) fn completes_discard(&mut self, tag: &[u8]) {
        self.discard.is_done = self.discard.is_sent && tag == b"DISCARD ALL";
    }

    /// ReadyForQuery has come, and nothing was sent meanwhile if `is_idle`.
    #[inline]
    pub(super) fn ends_discard(&mut self, is_idle: bool) {
        if self.discard.is_done {
            self.discard.is_done = false;
            if is_idle {
                self.discard.has_been = true;
                self.discard.left = Residue::NOTHING;
            }
        }
    }
}
