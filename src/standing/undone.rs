//! What a client takes away again of what its session holds, which the server is asked about.
//!
//! A text that gives back a lock, closes a cursor or stops listening does not tell whether another
//! is left. So behind such a text the server is asked, with the settings of the session, if that is
//! all that keeps the session from being like others. What has left anything else the server cannot
//! tell: that session stays as it is to its end.

use super::{Patience, Standing};
use crate::sql::residue::Residue;

/// What the server can be asked for, in the order of its answers.
const TOLD: [Residue; 4] = [
    Residue::CHANNELS,
    Residue::LOCKS,
    Residue::CURSORS,
    Residue::STATEMENTS,
];

/// Whether the server is asked once more whether the session listens, because it was asked in a
/// transaction that may have begun to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Again {
    /// That was not needed yet.
    #[default]
    Free,
    /// When the transaction is over.
    Due,
    /// It was.
    Used,
    /// Nobody wants to know.
    Never,
}

/// Whether the client may have taken something away.
#[derive(Debug, Default)]
pub(super) struct Undone {
    may_be: bool,
    /// The question under way is for all that may be left, and not for the channels alone.
    is_asked: bool,
    /// Decides behind how many such texts it is asked again.
    patience: Patience,
    /// Whether it is asked again whether the session listens.
    pub(super) again: Again,
}

impl Undone {
    /// What a text leaves, of which it is noted whether it takes something away.
    #[inline]
    pub(super) fn without(&mut self, residue: Residue) -> Residue {
        if !residue.has(Residue::UNDOES) {
            return residue;
        }
        self.may_be |= !residue.is_anything();
        residue.but(Residue::UNDOES)
    }

    pub(super) const fn may_be(&self) -> bool {
        self.may_be
    }
}

impl Standing {
    /// Something may have made the session listen to a channel: from the end of the transaction on.
    pub(super) const fn may_begin_to_listen(&mut self) {
        self.may_listen = true;
        self.may_listen_soon = true;
    }

    /// The server has said that the session listens to nothing now.
    pub fn listens_to_nothing(&mut self) {
        self.may_listen = self.may_listen_soon;
        if self.may_listen && self.undone.again == Again::Free {
            self.undone.again = Again::Due;
        }
    }

    /// The transaction is over in which something may have made the session listen.
    #[cold]
    pub(super) fn may_listen_now(&mut self) {
        self.may_listen_soon = false;
        if self.undone.again == Again::Due {
            self.undone.again = Again::Used;
            self.loses_course();
        }
    }

    /// Whether the session may listen to a channel.
    #[must_use]
    pub const fn may_listen(&self) -> bool {
        self.may_listen
    }

    /// The session is idle, and its client may have taken away what is left in it: the server is to
    /// be asked, unless it was lately, and that was good for nothing.
    #[cold]
    pub(super) fn asks_what_is_left(&mut self) {
        if self.is_residue_late() {
            return;
        }
        self.undone.may_be = false;
        if !self.may_be_left() || self.settings.server.is_none() {
            return;
        }
        let lookups = self.mirror.lookups();
        self.undone.patience.lost(lookups);
        if self.undone.patience.may_ask() {
            self.loses_course();
        }
    }

    /// Whether what is left is such that the server can tell whether it is still there, and there
    /// is any.
    fn may_be_left(&self) -> bool {
        let told = TOLD.into_iter().fold(Residue::NOTHING, Residue::then);
        let seen = self.seen_residue();
        seen.without(told) == Residue::NOTHING && (seen != Residue::NOTHING || self.may_listen())
    }

    /// Whether the server is to be asked with the settings what is left: the session is idle then.
    #[must_use]
    pub fn asks_for_left(&mut self) -> bool {
        self.undone.is_asked = self.seen_residue() != Residue::NOTHING && self.may_be_left();
        self.undone.is_asked
    }

    /// The server has said how many there are of what it was asked for: of channels alone, or of
    /// all that [`asks_for_left`](Self::asks_for_left) has asked for. Nothing was in flight.
    pub fn is_told_of_left(&mut self, counts: &str) {
        let mut counts = counts.split(' ');
        if counts.next() == Some("0") {
            self.listens_to_nothing();
        }
        if !std::mem::take(&mut self.undone.is_asked) {
            return;
        }
        self.undone.patience.learned(self.mirror.lookups());
        let [channels, others @ ..] = TOLD;
        let mut gone = match self.may_listen() {
            true => Residue::NOTHING,
            false => channels,
        };
        for (residue, count) in others.into_iter().zip(counts) {
            if count == "0" && (residue != Residue::STATEMENTS || self.has_no_prepared()) {
                gone |= residue;
            }
        }
        self.residue = self.residue.but(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standing::{ServerSettings, sample};
    use crate::statement::names::Names;
    use crate::statement::shapes::Shapes;
    use crate::wire::backend::Status;

    fn standing() -> Standing {
        let shapes = Shapes::new(100, 100, 1);
        let mut standing = sample::session(&shapes);
        learns(&mut standing);
        standing.names = Names::of_rows(&[]).into();
        standing
    }

    fn learns(standing: &mut Standing) {
        let shapes = Shapes::new(100, 100, 1);
        let context = shapes.contexts().intern(&standing.origin, "settings");
        let settings = ServerSettings {
            server: Some(7),
            ..ServerSettings::default()
        };
        standing.learned(context.context(), settings, "", false);
    }

    /// Something is taken away; returns whether the server is asked.
    fn undoes(standing: &mut Standing) -> bool {
        standing.leaves(Residue::UNDOES);
        standing.ready(Status::Idle, true);
        standing.context.is_none()
    }

    #[test]
    fn a_session_is_like_others_again_when_the_server_says_that_nothing_is_left() {
        let told = [
            (Residue::CHANNELS, "1 0 0 0"),
            (Residue::LOCKS, "0 1 0 0"),
            (Residue::CURSORS, "0 0 1 0"),
            (Residue::STATEMENTS, "0 0 0 1"),
        ];
        for (left, still) in told {
            for (said, is_like) in [("0 0 0 0", true), (still, false), ("0", false), ("", false)] {
                let mut standing = standing();
                standing.leaves(left);
                standing.ready(Status::Idle, true);
                assert!(standing.likeness().is_none() && standing.context.is_some());
                assert!(undoes(&mut standing), "{left:?}");
                assert!(standing.asks_for_left());
                learns(&mut standing);
                standing.is_told_of_left(said);
                let is_like = is_like || said == "0" && left == Residue::CHANNELS;
                assert_eq!(standing.likeness().is_some(), is_like, "{left:?} {said}");
            }
        }
    }

    #[test]
    fn what_the_server_cannot_tell_is_not_asked_for() {
        let mut standing = standing();
        assert!(!undoes(&mut standing), "nothing is left");
        assert!(!standing.asks_for_left());
        standing.leaves(Residue::LOCKS);
        standing.leaves(Residue::ANYTHING);
        assert!(!undoes(&mut standing) && !standing.asks_for_left());
        standing.is_told_of_left("0 0 0 0");
        assert_eq!(standing.residue, Residue::ANYTHING);
    }

    #[test]
    fn whoever_keeps_taking_locks_is_asked_less_and_less() {
        let mut standing = standing();
        let mut asked = 0;
        for _ in 0..200 {
            standing.leaves(Residue::LOCKS);
            if undoes(&mut standing) {
                asked += 1;
                assert!(standing.asks_for_left());
                learns(&mut standing);
                standing.is_told_of_left("0 0 0 0");
            }
        }
        assert!((5..12).contains(&asked), "{asked} times");
    }
}
