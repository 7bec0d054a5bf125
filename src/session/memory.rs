//! What one connection remembers of its client's habits.

use super::blame::Setbacks;
use super::patience::Patience;
use super::route::mark;
use super::unsurveyed::Unsurveyed;
use crate::sql::define::Definitions;
use crate::sql::effect::Effect;
use crate::sql::hazard::Hazards;
use crate::sql::survey::Survey;
use crate::statement::context::{Interned, Origin};
use crate::statement::{Plans, Recipe};
use std::collections::HashMap;

/// Texts remembered to be learned when the connection is idle, and their bytes together.
const MAX_WANTED: usize = 8;
const MAX_WANTED_BYTES: usize = 8 * 1024;

/// What one connection remembers of its client's habits.
#[derive(Debug)]
pub(super) struct Memory {
    /// How it logged in.
    pub origin: Origin,
    /// The context it is in, as long as it is.
    pub context: Option<Interned>,
    pub seen: HashMap<u32, u32, foldhash::fast::FixedState>,
    pub wanted: Vec<(Vec<u8>, Plans)>,
    batch_effect: Effect,
    named_effect: Effect,
    /// The strongest effect of a query that a cursor may still run.
    opened_effect: Effect,
    /// The strongest effect of what the client has prepared in either protocol.
    prepared_effect: Effect,
    speaks_extended: bool,
    /// What the texts define that the client has had parsed.
    pub parsed: Definitions,
    /// Texts relayed while it was not known which names have hazards.
    pub unsurveyed: Unsurveyed,
    /// When the context may be asked for again in front of a query, if something that no text
    /// showed has changed it.
    pub patience: Patience,
    /// The same behind a transaction, whatever has changed it.
    pub idle_patience: Patience,
    /// A query was passed through because its transaction had lost the context.
    pub missed: bool,
    /// Questions of this connection that have failed lately.
    pub setbacks: Setbacks,
    shows_statements: bool,
}

impl Memory {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            context: None,
            seen: HashMap::default(),
            wanted: Vec::new(),
            batch_effect: Effect::None,
            named_effect: Effect::None,
            opened_effect: Effect::None,
            prepared_effect: Effect::None,
            parsed: Definitions::default(),
            unsurveyed: Unsurveyed::default(),
            patience: Patience::default(),
            idle_patience: Patience::default(),
            missed: false,
            speaks_extended: false,
            setbacks: Setbacks::default(),
            shows_statements: false,
        }
    }

    /// Counts a sighting of the shape on this connection.
    pub(super) fn sight(&mut self, recipe: &Recipe, most: usize) -> u32 {
        if self.seen.len() >= most {
            self.seen.clear();
        }
        let count = self.seen.entry(mark(recipe)).or_default();
        *count = count.saturating_add(1);
        *count
    }

    pub(super) fn want(&mut self, text: &[u8], plans: Plans) {
        let held: usize = self.wanted.iter().map(|(text, _)| text.len()).sum();
        if self.wanted.len() < MAX_WANTED
            && held + text.len() <= MAX_WANTED_BYTES
            && !self.wanted.iter().any(|(wanted, _)| wanted == text)
        {
            self.wanted.push((text.to_vec(), plans));
        }
    }

    /// The client has sent a message of the extended protocol.
    pub(super) const fn extended(&mut self) {
        self.speaks_extended = true;
    }

    /// Whether it ever did.
    pub(super) const fn speaks_extended(&self) -> bool {
        self.speaks_extended
    }

    /// The client has a statement, or may have one, that shows ours whenever it is executed.
    pub(super) const fn shows_statements(&mut self) {
        self.shows_statements = true;
    }

    /// Whether it has, so that there must be none of ours.
    pub(super) const fn may_show_statements(&self) -> bool {
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
    pub(super) fn client_batch_ended(&mut self) -> Effect {
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
    /// what a cursor's query calls is called by FETCH.
    pub(super) fn opened(&mut self, survey: &Survey) -> Effect {
        if survey.fetches {
            return survey.effect.max(self.opened_effect);
        }
        self.opened_late(survey.hazards);
        survey.effect
    }

    /// A text that may have opened something turns out to have these hazards.
    pub(super) fn opened_late(&mut self, hazards: Hazards) {
        self.opened_effect = self.opened_effect.max(hazards.effect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_once_created_by_a_client_does_not_change_the_catalog_at_every_sync() {
        let mut memory = Memory::new(Origin::new(b"", b""));
        memory.client_parsed(Effect::Catalog, true);
        assert_eq!(memory.client_batch_ended(), Effect::Catalog);
        assert_eq!(memory.client_batch_ended(), Effect::Session);
    }
}
