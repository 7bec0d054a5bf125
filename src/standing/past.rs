//! What the texts of one session have opened or prepared, which may still run.

use super::unsurveyed::Unsurveyed;
use crate::sql::define::Definitions;
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey::Survey;

/// What the texts of one session may have done, and may do yet.
#[derive(Debug)]
pub struct Past {
    /// The strongest effect of what was parsed in the client's current batch.
    batch_effect: Effect,
    /// The strongest effect of what was parsed at any time.
    named_effect: Effect,
    /// The strongest effect of a query that a cursor may still run.
    opened_effect: Effect,
    /// The strongest effect of what the client has prepared in either protocol.
    prepared_effect: Effect,
    /// What the texts define that the client has had parsed.
    pub parsed: Definitions,
    /// Texts relayed while it was not known which names have hazards.
    pub(super) unsurveyed: Unsurveyed,
    shows_statements: bool,
    /// What the client has prepared or opened may change who may log in.
    pub(super) changes_logins: bool,
    /// What the client has had parsed may lock something that it is about to change: under a name,
    /// and under none, where the next takes its place.
    locks: [bool; 2],
}

impl Default for Past {
    fn default() -> Self {
        Self {
            batch_effect: Effect::None,
            named_effect: Effect::None,
            opened_effect: Effect::None,
            prepared_effect: Effect::None,
            parsed: Definitions::default(),
            unsurveyed: Unsurveyed::default(),
            shows_statements: false,
            changes_logins: false,
            locks: [false; 2],
        }
    }
}

impl Past {
    /// The client has a text parsed under this name, which may lock so.
    pub(super) const fn parses_lock(&mut self, name: &[u8], locks: bool) {
        let [named, nameless] = &mut self.locks;
        match name.is_empty() {
            true => *nameless = locks,
            false => *named |= locks,
        }
    }

    /// Whether something that the client has had parsed may lock so.
    pub(super) const fn may_lock(&self) -> bool {
        let [named, nameless] = self.locks;
        named || nameless
    }

    /// The client has a statement, or may have one, that shows ours whenever it is executed.
    pub(super) const fn shows_statements(&mut self) {
        self.shows_statements = true;
    }

    /// Whether a statement of the client may show ours, so that there must be none.
    #[must_use]
    pub const fn may_show_statements(&self) -> bool {
        self.shows_statements
    }

    /// The client's own Parse may run at any later Execute if it is named; we do not track which.
    /// What its command tag will say when it runs need not be expected all the time.
    pub(super) fn client_parsed(&mut self, effect: Effect, is_tagged: bool) {
        let most = match is_tagged {
            true => Effect::Session,
            false => Effect::Unknown,
        };
        self.batch_effect = self.batch_effect.max(effect);
        self.named_effect = self.named_effect.max(effect.min(most));
        self.prepares(effect);
    }

    /// A batch of the client's own ended: the strongest effect it can have had.
    pub fn client_batch_ended(&mut self) -> Effect {
        std::mem::replace(&mut self.batch_effect, Effect::None).max(self.named_effect)
    }

    /// Something with this effect may have been prepared that EXECUTE will run.
    pub(super) fn prepares(&mut self, effect: Effect) {
        self.prepared_effect = self.prepared_effect.max(effect);
    }

    /// Something with this effect has run: if it may have done anything, it may have prepared
    /// anything.
    pub(super) fn ran(&mut self, effect: Effect) {
        if effect == Effect::Unknown {
            self.prepares(effect);
        }
    }

    /// The strongest effect of what EXECUTE may run.
    pub(super) const fn prepared(&self) -> Effect {
        self.prepared_effect
    }

    /// The effect of a text with this survey, which may go on with what an earlier one has opened:
    /// what a cursor's query calls is called by FETCH. `only_sets` says that the text opens none.
    pub(super) fn opened(&mut self, survey: &Survey, only_sets: bool) -> Effect {
        if !only_sets {
            self.opens(survey.hazards.effect());
        }
        match survey.fetches {
            true => survey.effect.max(self.opened_effect),
            false => survey.effect,
        }
    }

    /// What texts with these hazards may have done, which were relayed when that was not known.
    pub(super) fn did(&mut self, hazards: Hazards) -> Effect {
        self.opens(hazards.effect());
        match hazards.has(Hazards::FETCHES) {
            true => hazards.effect().max(self.opened_effect),
            false => hazards.effect(),
        }
    }

    /// Something that has this effect may have been opened.
    pub(super) fn opens(&mut self, effect: Effect) {
        self.opened_effect = self.opened_effect.max(effect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_once_created_by_a_client_does_not_change_the_catalog_at_every_sync() {
        let mut past = Past::default();
        past.client_parsed(Effect::Catalog, true);
        assert_eq!(past.client_batch_ended(), Effect::Catalog);
        assert_eq!(past.client_batch_ended(), Effect::Session);
    }
}
