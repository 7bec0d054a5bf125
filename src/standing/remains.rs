//! What the texts of a session have left in it, and how that is taken away.

use super::late::{self, Before, Late};
use super::undone::Again;
use super::{Encoding, Standing};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::residue::{self, Residue};
use crate::sql::survey::Survey;
use crate::sql::touched::Touched;
use crate::statement::Recipe;
use crate::wire::backend::Status;
use std::sync::Arc;

/// A statement that takes away what is left in a session, and the tag it completes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Its text.
    pub text: &'static [u8],
    /// Its command tag.
    pub tag: &'static [u8],
    /// It answers with a row.
    pub has_row: bool,
    pub(super) takes: Residue,
}

/// All of them, RESET ALL first, in the order in which they are to be sent: a time limit that the
/// client has set is to be gone first.
pub(super) const RESETS: [Reset; 6] = [
    Reset {
        text: b"RESET ALL",
        tag: b"RESET",
        has_row: false,
        takes: Residue::SETTINGS,
    },
    Reset {
        text: b"SELECT pg_catalog.pg_advisory_unlock_all()",
        tag: b"SELECT 1",
        has_row: true,
        takes: Residue::LOCKS,
    },
    Reset {
        text: b"DISCARD SEQUENCES",
        tag: b"DISCARD SEQUENCES",
        has_row: false,
        takes: Residue::SEQUENCES,
    },
    Reset {
        text: b"CLOSE ALL",
        tag: b"CLOSE CURSOR ALL",
        has_row: false,
        takes: Residue::CURSORS,
    },
    Reset {
        text: b"UNLISTEN *",
        tag: b"UNLISTEN",
        has_row: false,
        takes: Residue::CHANNELS,
    },
    // Not DEALLOCATE ALL, which would drop ours: each is closed by its name.
    Reset {
        text: b"",
        tag: b"",
        has_row: false,
        takes: Residue::STATEMENTS,
    },
];

impl Reset {
    /// Takes nothing away but the time for which the session has been idle, and finds out whether
    /// that matters: it completes so where the server does not end what is idle. Before 14 it has
    /// no such setting.
    pub const IDLE: Self = Self {
        text: b"SELECT WHERE pg_catalog.current_setting('idle_session_timeout', true) \
            OPERATOR(pg_catalog.<>) '0'",
        tag: b"SELECT 0",
        has_row: true,
        takes: Residue::NOTHING,
    };

    /// Throws away the plans that functions keep, and has those of what is prepared made anew.
    pub(super) const PLANS: Self = Self {
        text: b"DISCARD PLANS",
        tag: b"DISCARD PLANS",
        has_row: false,
        takes: Residue::NOTHING,
    };

    /// Whether the server may have notifications to tell of before this has completed.
    #[must_use]
    pub fn stops_listening(&self) -> bool {
        self.takes == Residue::CHANNELS
    }

    /// Whether it has no text: the client's statements are closed by
    /// [`drop_prepared`](Standing::drop_prepared).
    #[must_use]
    pub fn closes_statements(&self) -> bool {
        self.takes == Residue::STATEMENTS
    }
}

/// Whether a startup packet may have the session look for names in its temporary schema. Whoever
/// asks for the path then makes one, if that stands first, and it stays (`fetch_search_path` in
/// `namespace.c`).
pub(super) fn may_make_schema(packet: &[u8]) -> bool {
    const SCHEMA: &[u8] = b"pg_temp";
    // In the options a backslash takes the next byte as it is.
    let plain: Vec<u8> = packet
        .iter()
        .copied()
        .filter(|byte| *byte != b'\\')
        .collect();
    plain
        .windows(SCHEMA.len())
        .any(|part| part.eq_ignore_ascii_case(SCHEMA))
}

impl Standing {
    /// The session is given to another client. What the last one has seen of it is not this one's.
    pub fn is_given(&mut self) {
        self.residue = self.residue.without(Residue::SEEN);
        self.database.gives();
        self.mirror.uses.go_on();
    }

    /// Something has run that leaves this.
    #[inline]
    pub fn leaves(&mut self, residue: Residue) {
        self.is_intact_no_more();
        let residue = self.undone.without(residue);
        self.sets_soon |= residue.has(Residue::SETTINGS);
        if residue.is_anything() {
            self.late = None;
            self.may_have_temporary = true;
            self.may_begin_to_listen();
        } else {
            if residue.has(Residue::CHANNELS) {
                self.may_begin_to_listen();
            }
            if let Some(late) = &mut self.late {
                late.residue = late.residue.then(residue);
            }
        }
        if residue.has(Residue::KEPT) && !self.residue.has(Residue::KEPT) {
            self.kept_since = self.database.epoch();
        }
        let drawn = self.drawn(residue);
        self.residue = self.residue.then(drawn);
        self.discard.leaves(drawn, self.dialect.server_major);
    }

    /// What was written is there. If the catalog has changed meanwhile, it may have been written to
    /// what draws from sequences now.
    pub(super) fn has_written(&mut self) {
        let alterations = self.database.alterations();
        if self.wrote_at.take().is_some_and(|at| at != alterations) {
            self.residue |= Residue::SEQUENCES;
            self.discard
                .leaves(Residue::SEQUENCES, self.dialect.server_major);
        }
    }

    /// What is left by what leaves this, if it is known what draws from sequences when it is
    /// written; if not, whatever has written may have.
    fn drawn(&mut self, residue: Residue) -> Residue {
        if !residue.has(Residue::WROTE) || residue.is_anything() {
            return residue;
        }
        let alterations = self.database.alterations();
        self.wrote_at.get_or_insert(alterations);
        let residue = residue.without(Residue::WROTE);
        match self.database.knows_draws() {
            true => residue,
            false => residue | Residue::SEQUENCES,
        }
    }

    /// Nobody will ask what is left.
    pub fn is_left_alone(&mut self) {
        self.leaves(Residue::ANYTHING);
        self.undone.again = Again::Never;
        self.is_taint_told = true;
    }

    /// Nobody will give the connection to others: this may leave anything, and that taints nothing.
    pub fn is_not_kept(&mut self) {
        self.leaves(Residue::ANYTHING);
        self.is_taint_told = true;
    }

    /// Whether it may hold what nothing takes away, and that was not told yet. It is told once.
    #[inline]
    pub fn is_newly_tainted(&mut self) -> bool {
        let is = self.residue.stays() && self.late.is_none() && !self.is_taint_told;
        self.is_taint_told |= is;
        is
    }

    /// Whether it is yet to be found out what texts have left.
    #[must_use]
    pub const fn is_residue_late(&self) -> bool {
        self.late.is_some()
    }

    /// Whether nobody can tell what the server keeps of functions that have run: the catalog is as
    /// it was before the first of them, as far as is known.
    #[must_use]
    pub fn keeps_the_present(&self) -> bool {
        let concerns = |touched: &Touched| !touched.is_nothing();
        !self.residue.has(Residue::KEPT) || self.database.holds(self.kept_since, concerns).is_ok()
    }

    /// Whether nothing is left but what the server keeps of functions, as far as texts can tell and
    /// in what they cannot.
    #[must_use]
    pub fn is_as_new(&self) -> bool {
        let left = self.residue.without(Residue::OF_FUNCTIONS);
        left == Residue::NOTHING && !self.is_unwatched && !self.may_listen
    }

    /// What a text leaves, of which this is the survey, with what is known of the names in it;
    /// `None` as long as that is not enough.
    #[must_use]
    pub fn residue_of(&mut self, text: &[u8], survey: &Survey) -> Option<Residue> {
        if !self.reads_texts() {
            return Some(Residue::ANYTHING);
        }
        let is_known = !survey.names
            || self.knows_names() && (self.database.is_clear() || self.database.is_clear_of(text));
        is_known.then(|| residue::residue(text, survey, &**self.names()))
    }

    /// The same if it is known what the names leave; `met` is the text's recipe if that was found.
    pub(super) fn residue_known(
        &self,
        text: &[u8],
        survey: &Survey,
        met: Option<&Recipe>,
    ) -> Residue {
        let names = &self.names;
        let read = || residue::residue(text, survey, &**names);
        match met {
            Some(recipe) => recipe.residue(names, survey, read),
            None => read(),
        }
    }

    /// A text is relayed of which this is the survey. `met` is its recipe if that was found, and
    /// `is_idle` says that nothing is in flight before it.
    pub(super) fn relays_residue(
        &mut self,
        text: &[u8],
        survey: &Survey,
        (met, is_idle): (Option<&Recipe>, bool),
    ) {
        self.is_intact_no_more();
        if survey.effect == Effect::Session {
            self.own.notes(text, is_idle && self.status == Status::Idle);
        }
        self.sets_soon &= !is_idle;
        let left = self.late.as_ref().map_or(self.residue, |late| late.residue);
        let is_told = self.undone.again == Again::Never || self.may_listen_soon;
        if left.is_anything() && self.discard.is_anything() && is_told {
            self.may_have_temporary = true;
            return;
        }
        // How it is read depends on what a text before it sets.
        let is_read = is_idle || !left.has(Residue::SETTINGS);
        let residue = match is_read && self.reads_texts() {
            false => Residue::ANYTHING,
            true if self.knows_remains() => match self.residue_of_deed(text, survey, is_idle) {
                Some(residue) => residue,
                None => self.residue_known(text, survey, met),
            },
            true => match (survey.names, left.is_anything()) {
                (false, _) => late::of_nameless(text, survey),
                (true, false) => self.residue_late(text, survey),
                (true, true) => Residue::ANYTHING,
            },
        };
        self.may_limit(text, residue);
        match is_idle && residue.is_anything() && !left.is_anything() {
            true => self.leaves_unless_refused(text, residue),
            false => self.leaves(residue),
        }
    }

    /// Whether the words of texts are read as the server reads them.
    pub(super) fn reads_texts(&self) -> bool {
        self.standard_strings && self.encoding != Encoding::Unsafe
    }

    /// Whether it is known what using a name leaves.
    pub(super) fn knows_remains(&mut self) -> bool {
        self.knows_names() && self.database.is_clear()
    }

    /// What a text shows by itself that it leaves. The rest is found out when it is known what the
    /// names in it leave: until then, the session may have anything.
    pub(super) fn residue_late(&mut self, text: &[u8], survey: &Survey) -> Residue {
        let mut late = match self.late.take() {
            Some(late) => late,
            None => Box::new(Late::new(self.residue, self.before())),
        };
        let residue = late.read(text, survey);
        self.residue = Residue::ANYTHING;
        self.discard.is_unknown();
        self.may_have_temporary = true;
        self.may_begin_to_listen();
        self.late = Some(late);
        residue
    }

    /// How it is now.
    fn before(&self) -> Before {
        Before {
            alterations: self.database.alterations(),
            told: self.database.told(),
            is_watched: self.database.is_watched(),
            may_listen: self.may_listen,
            kept_since: match self.residue.has(Residue::KEPT) {
                true => self.kept_since,
                false => self.database.epoch(),
            },
        }
    }

    /// Finds out what the texts have left that were relayed while that was not known, if it is
    /// known now.
    ///
    /// Nobody can tell what something did that was changed or dropped before the catalog was
    /// looked at for the first time. So where that may have been, the server has to say whether
    /// the session listens to anything, and the connection serves no other client.
    pub fn settle_residue(&mut self) {
        if self.late.is_none() || self.unverified.is_some() || !self.knows_remains() {
            return;
        }
        let Some(late) = self.late.take() else { return };
        let residue = self.settled(&late);
        let residue = self.undone.without(residue);
        if residue.is_anything() {
            return;
        }
        self.residue = self.drawn(residue);
        self.kept_since = late.before.kept_since;
        self.discard.has_left(self.residue);
        match late.before.is_watched {
            true => self.may_listen = late.before.may_listen || residue.has(Residue::CHANNELS),
            false => self.is_unwatched = true,
        }
    }

    /// Whether the session, which is like no other, would be if it were known which names leave
    /// something. If that is known by now, it is made use of.
    #[cold]
    pub fn is_unlike_for_names(&mut self) -> bool {
        if self.late.is_none() && self.seen_residue() != Residue::NOTHING {
            return false;
        }
        let is_known = self.unverified.is_none() && self.knows_remains();
        if is_known {
            self.settle_residue();
        }
        !is_known && (self.late.is_some() || self.names.greets())
    }

    /// What was left by texts that were read late: anything, if it may have changed more than once
    /// what one of them uses.
    fn settled(&mut self, late: &Late) -> Residue {
        let names = Arc::clone(self.names());
        let residue = late.settle(&*names);
        if self.database.alterations() == late.before.alterations {
            return residue;
        }
        let told = late.before.told.as_ref().filter(|_| late.before.is_watched);
        let defined = told.and_then(|told| Some((told, self.database.defined_since(told)?)));
        let Some((told, defined)) = defined else {
            return Residue::ANYTHING;
        };
        let both = [&*told.names, &*names];
        let mut concerning = defined.iter().filter(|one| late.is_concerned(one, both));
        match concerning.nth(1) {
            Some(_) => Residue::ANYTHING,
            None => residue | late.settle(&*told.names),
        }
    }

    /// What takes away what is left; `None` if nothing may be known to do that.
    #[must_use]
    pub fn resets(&self) -> Option<Vec<Reset>> {
        let left = self.residue;
        let needed = RESETS.iter().filter(|reset| left.has(reset.takes));
        let is_known = !left.stays() && !self.is_unwatched;
        is_known.then(|| needed.copied().collect())
    }

    /// A reset is about to be sent, behind which nothing else is in flight but others.
    pub fn sends_reset(&mut self, reset: Reset, is_first: bool) {
        if reset.takes == Residue::SETTINGS {
            self.relays_query(reset.text, None, (Reason::SessionEffect, is_first));
        }
    }

    /// RESET ALL is about to be sent, or the server gets to it only now: nothing else is in flight.
    pub fn sends_reset_all(&mut self) {
        let [all, ..] = RESETS;
        self.sends_reset(all, true);
    }

    /// A reset has completed.
    pub fn completes_reset(&mut self, reset: Reset) {
        if reset == Reset::IDLE {
            self.knows_may_idle();
        }
        if reset.takes == Residue::SETTINGS {
            self.has_reset();
        }
        if reset.closes_statements() {
            self.has_dropped_prepared();
        }
        if reset.stops_listening() {
            (self.may_listen, self.may_listen_soon) = (false, false);
        }
    }

    /// RESET ALL has completed.
    pub fn has_reset(&mut self) {
        self.completed(b"RESET", Some(Effect::Session));
    }

    /// All that was left was taken away, but for what nothing takes away.
    pub const fn is_clean_again(&mut self) {
        let is_kept = self.residue.has(Residue::KEPT);
        self.residue = if is_kept {
            Residue::KEPT
        } else {
            Residue::NOTHING
        };
        self.discard.begins_with(self.residue);
    }
}

#[cfg(test)]
#[path = "remains_tests.rs"]
mod tests;
