//! Which sessions are alike, so that a read gives the same answer on the connection of each.
//!
//! A server process computes a read that its own proof lets travel from the database, from what a
//! parallel worker is given of its session, and from nothing else (`InitializeParallelDSM` in
//! `parallel.c`). So two sessions are alike if all that is the same: the server, the database and
//! the user, the startup packet, every setting the server shows, and that neither has temporary
//! objects. The server is asked for all of it (`oracle::settings`), and a session that has run
//! anything since then of which it is not known what it leaves is like no other.

use super::Standing;
use super::limits::is_mild;
use crate::sql::residue::Residue;
use crate::statement::Context;
use crate::wire::backend::Status;

/// What sessions that are alike have in common. Equal ones mean sessions that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Likeness {
    context: Context,
    /// When their server started, which tells it from another behind the same address.
    server: u64,
    /// Which settings they have set: the others follow the server's configuration.
    own: u64,
}

/// What is known of the time limits of a session, which are no part of its context. A short one
/// would show where a read has waited on another's connection.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// It may have been given one since it was last asked.
    may_be_new: bool,
    /// It had none when it logged in, so RESET brings none back.
    has_none: bool,
    /// A transaction may be open as long as it likes, as far as is known.
    is_unhurried: bool,
    /// That was so when it logged in.
    was_unhurried: bool,
    /// As it was when it logged in, nothing ends it for being idle.
    could_idle: bool,
}

/// What a session may have left and still be like others: settings and who it is, for which it is
/// asked, and what no read of another shows.
///
/// Settings that somebody has made up the server tells nobody about (`GUC_NO_SHOW_ALL` in `guc.c`).
/// Its own functions find them by the name that they are given, and those that do so never travel
/// (`SETTINGS` in `sql/travel/known.rs`); those of an extension whose library is loaded are asked
/// for with the others.
const UNSEEN: [Residue; 7] = [
    Residue::OF_FUNCTIONS,
    Residue::SETTINGS,
    Residue::NAMES,
    Residue::SEQUENCES,
    Residue::SEEN,
    Residue::ROLE,
    Residue::MADE_UP,
];

impl Standing {
    /// What the session has in common with those that are like it; `None` if it is like no other,
    /// or nobody knows.
    #[must_use]
    pub fn likeness(&self) -> Option<Likeness> {
        let likeness = self.likeness_but_for(Residue::NOTHING);
        likeness.filter(|_| self.altered.is_none())
    }

    /// The same of one whose read at hand is to run elsewhere. What its client has prepared is
    /// nothing that it could depend on, and is at home, where nobody visits it; nor does it depend
    /// on what was made or dropped in the session for all, if it names nothing of that.
    #[must_use]
    pub fn likeness_of_guest(&self) -> Option<Likeness> {
        let is_of_others = self.altered.is_none() || self.names_nothing_of_what_stays();
        let likeness = self.likeness_but_for(Residue::STATEMENTS);
        likeness.filter(|_| is_of_others)
    }

    /// The same if it may have left this, too.
    fn likeness_but_for(&self, residue: Residue) -> Option<Likeness> {
        let is_known = self.seen_residue().but(residue) == Residue::NOTHING
            && !self.may_listen()
            && self.status == Status::Idle
            && !self.limits.may_be_new
            && !self.names.greets();
        let context = self.context.filter(|_| is_known)?;
        let server = self.settings.server?;
        let own = self.own.digest()?;
        Some(Likeness {
            context,
            server,
            own,
        })
    }

    /// What is left but for what may be left in sessions that are alike.
    pub(super) fn seen_residue(&self) -> Residue {
        let unseen = UNSEEN.iter();
        unseen.fold(self.residue, |left, unseen| left.without(*unseen))
    }

    /// A text that leaves this is relayed.
    pub(super) fn may_limit(&mut self, text: &[u8], residue: Residue) {
        if !residue.has(Residue::SETTINGS) {
            return;
        }
        let limits = &mut self.limits;
        limits.may_be_new |= match has_word(text, b"all") {
            true => !limits.has_none,
            false => false,
        };
        limits.is_unhurried &= limits.was_unhurried || !has_word(text, b"all");
        // A name may be spelt with escapes.
        let is_plain = memchr::memchr2(b'\\', b'&', text).is_none();
        let may_set = !is_plain || has_word(text, b"timeout");
        let is_mild = is_plain && is_mild(text, limits.has_none);
        limits.may_be_new |= may_set && !is_mild;
        limits.is_unhurried &= !may_set;
    }

    /// The session was asked for its settings.
    pub(super) fn knows_limits(&mut self) {
        self.limits.may_be_new = false;
        self.limits.is_unhurried = self.settings.is_unhurried;
        if !self.residue.has(Residue::SETTINGS) {
            self.limits.has_none = self.settings.server.is_some();
            self.limits.was_unhurried = self.settings.is_unhurried;
            self.limits.could_idle = self.settings.may_idle;
        }
    }

    /// The session, in which nothing is set, was asked for that alone: it may be idle as long as it
    /// likes.
    pub(super) const fn knows_may_idle(&mut self) {
        self.limits.could_idle = true;
    }

    /// Whether the server may end the session for being idle, as it was when it logged in or has
    /// become so again.
    #[must_use]
    pub const fn may_end_idle(&self) -> bool {
        !self.limits.could_idle
    }

    /// Whether nobody else could tell a transaction that has only read what others may read for it
    /// from no transaction, but by the locks that it would hold: it sees with each read what is
    /// committed by then, and nothing ends it while it is idle.
    #[must_use]
    pub fn may_be_loose(&self) -> bool {
        self.limits.is_unhurried && self.settings.reads_committed && self.likeness().is_some()
    }
}

/// Whether these letters are somewhere in the text.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standing::ServerSettings;
    use crate::standing::sample;
    use crate::statement::names::Names;
    use crate::statement::shapes::Shapes;

    fn standing() -> Standing {
        let shapes = Shapes::new(100, 100, 1);
        let mut standing = sample::session(&shapes);
        let context = shapes.contexts().intern(&standing.origin, "settings");
        let settings = ServerSettings {
            server: Some(7),
            ..ServerSettings::default()
        };
        standing.learned(context.context(), settings, "", false);
        standing.names = Names::of_rows(&[]).into();
        standing
    }

    #[test]
    fn a_session_is_like_no_other_before_it_is_known_what_logins_run() {
        let mut standing = standing();
        standing.names = Names::unknown().into();
        assert_eq!(standing.likeness(), None);
    }

    #[test]
    fn a_session_is_like_others_until_something_is_left_that_nobody_knows() {
        let mut standing = standing();
        assert!(standing.likeness().is_some());
        for unseen in UNSEEN {
            standing.leaves(unseen);
            assert!(standing.likeness().is_some());
        }
        standing.leaves(Residue::STATEMENTS);
        assert!(standing.likeness().is_none() && standing.likeness_of_guest().is_some());
        standing.leaves(Residue::LOCKS);
        assert!(standing.likeness().is_none() && standing.likeness_of_guest().is_none());
        standing.leaves(Residue::ANYTHING);
        assert!(standing.likeness_of_guest().is_none());
    }

    #[test]
    fn a_session_that_is_busy_or_has_lost_its_context_is_like_no_other() {
        let mut standing = standing();
        standing.status = Status::Transaction;
        assert_eq!(standing.likeness(), None);
        standing.status = Status::Idle;
        assert!(standing.likeness().is_some());
        standing.context = None;
        assert_eq!(standing.likeness(), None);
    }

    #[test]
    fn a_session_of_another_server_is_not_like_this_one() {
        let [one, mut other] = [standing(), standing()];
        other.context = one.context;
        assert_eq!(one.likeness(), other.likeness());
        other.settings.server = Some(8);
        assert_ne!(one.likeness(), other.likeness());
        other.settings.server = None;
        assert_eq!(other.likeness(), None);
    }

    #[test]
    fn a_session_that_has_set_what_another_has_from_the_configuration_is_not_like_it() {
        let [one, mut other] = [standing(), standing()];
        other.context = one.context;
        other.own.notes(b"SET search_path = a", true);
        assert_ne!(one.likeness(), other.likeness());
        other.own.notes(b"RESET ALL", true);
        assert_eq!(one.likeness(), other.likeness());
    }

    #[test]
    fn a_time_limit_that_may_be_new_is_asked_for_first() {
        for (text, stays) in [
            (&b"SET TimeZone = 'UTC'"[..], true),
            (b"RESET ALL", true),
            (b"SET Statement_Timeout = 5", false),
            (b"SET Statement_Timeout = '5s'", true),
            (b"RESET Statement_Timeout", true),
            (b"SELECT set_config('lock_timeout', '5', false)", false),
            (b"SET U&\"lock\\005ftimeout\" = 5", false),
            (b"SELECT set_config(E'lock\\137timeout', '5', false)", false),
            (
                b"SELECT set_config(E'lock_timeout', '5\\060', false)",
                false,
            ),
        ] {
            let mut standing = standing();
            standing.may_limit(text, Residue::SETTINGS);
            assert_eq!(standing.likeness().is_some(), stays);
            standing.knows_limits();
            assert!(standing.likeness().is_some());
        }
        let mut limited = standing();
        limited.limits.has_none = false;
        for text in [&b"RESET ALL"[..], b"RESET lock_timeout"] {
            limited.may_limit(text, Residue::SETTINGS);
            assert_eq!(limited.likeness(), None);
            limited.knows_limits();
            limited.limits.has_none = false;
        }
    }
}
