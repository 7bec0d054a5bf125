//! What DISCARD ALL would find in a session: what was left since the last one.
//!
//! DISCARD ALL throws away every cached plan (`ResetPlanCache` in `plancache.c`), those in
//! functions included, which may have been made for other settings or other sizes of tables. So
//! where a function may have run since the last one that keeps plans for the session, plans are
//! thrown away in any case: what is prepared for us stays, and is analysed and planned anew when it
//! is executed next. Functions in PL/pgSQL keep them, and from version 18 on those in SQL, too.

use super::Standing;
use super::remains::{RESETS, Reset};
use crate::sql::moves::{self, Move};
use crate::sql::residue::Residue;

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
    /// A function that keeps plans may have run since.
    has_plans: bool,
}

/// The first version of the server in which functions in SQL keep plans, too.
const ALL_KEEP: u16 = 18;

impl Discard {
    /// Of a session in which this was left.
    pub(super) const fn new(left: Residue) -> Self {
        Self {
            is_sent: false,
            is_done: false,
            has_been: false,
            left,
            has_plans: left.has(Residue::KEPT),
        }
    }

    /// Something has run on a server of this version that leaves this.
    #[inline]
    pub(super) const fn leaves(&mut self, residue: Residue, major: u16) {
        let kept = if major < ALL_KEEP {
            Residue::COMPILED
        } else {
            Residue::OF_FUNCTIONS
        };
        self.has_plans |= residue.has(kept);
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

    /// This is what was left in the session since it began.
    pub(super) const fn has_left(&mut self, residue: Residue) {
        if !self.has_been {
            self.begins_with(residue);
        }
    }

    /// From now on it is as if nothing but this had been left since the last one.
    pub(super) const fn begins_with(&mut self, residue: Residue) {
        (self.left, self.has_plans) = (residue, residue.has(Residue::KEPT));
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
        if left.stays() || !is_watched {
            return None;
        }
        let always = |reset: &&Reset| reset.takes == Residue::SETTINGS || left.has(reset.takes);
        let mut needed: Vec<Reset> = RESETS.iter().filter(always).copied().collect();
        if self.discard.has_plans {
            needed.push(Reset::PLANS);
        }
        needed.rotate_left(1);
        Some(needed)
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
        // What functions keep besides, DISCARD ALL keeps as well.
        self.discard.has_plans = false;
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
                self.discard.begins_with(Residue::NOTHING);
            }
        }
    }
}
