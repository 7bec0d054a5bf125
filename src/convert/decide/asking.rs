//! Whether the server may be asked now, and in which place.

use super::{Circumstances, MANY_MISSES, MAX_LESSONS};
use crate::sql::effect::Effect;
use crate::sql::survey;
use crate::statement::tally::{CONTEXT_PAYS, CONTEXT_PAYS_TO_TRAVEL, SHORT_CONTEXT_PAYS};
use crate::wire::backend::Status;

impl Circumstances<'_> {
    /// Whether to ask for the context behind a reply: it was of use before, or what transactions
    /// make cannot be told apart without, and the share of the time leaves room for more.
    pub(super) fn may_ask_context(&self) -> bool {
        let price = self.context_price();
        let pays = self.standing.mirror.uses.pay_for_context(price);
        let misses = self.habits.misses;
        let is_missed = misses >= MANY_MISSES && pays || misses >= CONTEXT_PAYS;
        let has_asked = self.standing.interned.is_some() || is_missed;
        let is_left = self.lent.shapes.questions().are_left(self.now);
        self.lent.settings.is_eager() || has_asked && is_left
    }

    /// Whether the session may be asked what it has become, which takes a look at the catalog if
    /// that may have been changed.
    pub(super) fn may_look(&mut self) -> bool {
        if !self.standing.is_unverified(self.now) || self.lent.settings.is_eager() {
            return true;
        }
        let database = &self.standing.database;
        match self.standing.is_new {
            true => database.looks_first(self.now),
            false => database.may_look(self.now),
        }
    }

    /// Whether it is the turn of this connection to be asked, if it never was.
    pub(super) fn has_turn(&self) -> bool {
        self.standing.interned.is_some()
            || self.lent.settings.is_eager()
            || self.standing.database.has_turn()
    }

    /// Whether to ask a new connection for its context, because reads that it sends could run where
    /// others do.
    pub(super) fn may_ask_to_travel(&mut self) -> bool {
        let is_wanted = std::mem::take(&mut self.habits.could_travel)
            && self.standing.interned.is_none()
            && self.lent.settings.shares
            && self.standing.database.may_have_hosts(self.now);
        is_wanted && {
            let price = self.context_price();
            self.standing.mirror.uses.pay_for_context(price)
                && self.lent.shapes.questions().are_left(self.now)
                && self.may_look()
        }
    }

    /// Whether to ask in front of a query which names have hazards: reads stay at home as long as
    /// nobody knows, and nothing else would ask where all is converted.
    #[cold]
    pub(super) fn may_ask_names(&mut self) -> bool {
        self.habits.misses_names = false;
        self.may_learn()
            && !self.standing.setbacks.rest(self.now)
            && !self.standing.database.is_resting()
            && self.standing.database.may_ask_names(self.now, true)
            && self.lent.shapes.questions().are_left(self.now)
            && self.may_look()
    }

    /// How often a new connection has to use what pays there until it is asked for its context.
    pub(super) fn context_price(&self) -> u32 {
        let database = &self.standing.database;
        let is_short = database.knows_rights() && self.standing.unverified.is_none();
        let travels = self.lent.settings.shares && database.may_have_hosts(self.now);
        match (is_short, travels) {
            (true, true) => CONTEXT_PAYS_TO_TRAVEL,
            (true, false) => SHORT_CONTEXT_PAYS,
            (false, _) => CONTEXT_PAYS,
        }
    }

    /// Whether to look at the catalog in front of this text, because the text defines something in
    /// a transaction, behind which it could not be looked at any more.
    pub(super) fn looks_ahead(&mut self, text: &[u8]) -> bool {
        let may_ask = self.lessons == 0 && self.may_ask_inside() && self.has_turn();
        may_ask
            && !self.standing.database.is_resting()
            && !self.standing.has_altered()
            && (self.standing.is_unverified(self.now) || !self.standing.knows_names())
            && survey::effect(text) == Effect::Catalog
            && (self.lent.settings.is_eager() || self.standing.database.loads.take())
            && self.may_look()
    }

    /// Whether the server may be asked in front of a query.
    pub(super) fn may_ask(&self) -> bool {
        self.may_learn() || self.may_ask_inside()
    }

    /// Whether the server may be asked inside the client's transaction. What is asked there is
    /// undone, a LISTEN included.
    pub(super) fn may_ask_inside(&self) -> bool {
        let standing = &self.standing;
        let listens = !self.lent.settings.ddl_notices || standing.context.is_some();
        standing.status == Status::Transaction
            && self.is_idle
            && !self.relay_only
            && self.lessons < MAX_LESSONS
            && !standing.is_serializable
            && !standing.database.has_shown_commands()
            && (!standing.has_old_snapshot || standing.sees_the_present())
            && (!standing.sees_otherwise() || standing.unverified.is_none())
            && (!standing.has_made_temporary() || standing.text_context().is_some())
            && !standing.names_what_stays()
            && listens
    }

    pub(super) fn may_learn(&self) -> bool {
        self.standing.status == Status::Idle
            && self.is_idle
            && !self.relay_only
            && self.lessons < MAX_LESSONS
    }
}
