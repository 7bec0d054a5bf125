//! A query that goes into a trail: behind others of its client that are executed and not answered.
//!
//! Invariants, beside those of a series, most of which hold for the same reasons:
//! - none that are under way are repaired, since those behind them have been sent; so none is in
//!   doubt, and outside a transaction none answers with rows;
//! - none does anything to the session, so that what is decided holds whatever those in front do,
//!   but for an error that ends the transaction of them all;
//! - none is parsed anew: what an error has the server skip would be missed by the next.

use super::super::bind::{Call, returns_rows};
use super::super::choose::joins;
use super::{Circumstances, Found};
use crate::convert::{Policy, judge};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::statement::{Key, Plans, Recipe};
use crate::wire::backend::Status;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What becomes of a query that others have come behind.
#[derive(Debug)]
pub enum InTrail {
    /// It is executed, and so may be those behind it before it is answered.
    Execute(Call, Arc<Recipe>),
    /// It is passed through with those behind it, which would have to wait for its answer: it gains
    /// less by being executed than they would lose.
    Pass,
}

/// Microseconds that it may take until the server has answered and is told of the next query, which
/// it would have had already.
const WAIT: i32 = 100;

impl Circumstances<'_> {
    /// What becomes of a text that others have come behind, for which `is_idle` is to be true
    /// although the answers to others before it may be owed.
    ///
    /// # Errors
    /// What keeps it from a trail. It may be executed all the same when nothing is under way.
    #[inline(never)]
    pub fn decide_in_trail(&mut self, text: &[u8]) -> Result<InTrail, Reason> {
        let is_open = self.lent.settings.mode == Policy::Convert && !self.is_parting;
        if !is_open || self.watch_may_be_due() || !self.standing.is_surveyed() {
            return Err(Reason::Pipelined);
        }
        self.check()?;
        if self.standing.is_held_up(text) || self.standing.database.is_resting() {
            return Err(Reason::Held);
        }
        let contexts = self.lent.shapes.contexts();
        self.standing.takes_text(text, contexts);
        let recipe = self.recipe(text)?;
        let call = self.ready(&recipe, text)?;
        let is_plain = call.effect == Effect::None && !call.residue.is_anything();
        if !is_plain || call.is_specific {
            return Err(Reason::Pipelined);
        }
        if self.standing.status == Status::Idle && returns_rows(&recipe) {
            let is_small = self.habits.sent.gain < WAIT && !self.lent.settings.is_eager();
            return match is_small {
                true => Ok(InTrail::Pass),
                false => Err(Reason::Pipelined),
            };
        }
        self.joins_trail(call.key)?;
        Ok(InTrail::Execute(call, recipe))
    }

    /// The call of a text of this shape, if nothing has to be asked about it first.
    fn ready(&mut self, recipe: &Recipe, text: &[u8]) -> Result<Call, Reason> {
        let (scan, dialect) = (&self.lent.scan, self.standing.dialect);
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        if eligible.restricted {
            self.restriction(recipe, eligible)?;
        }
        let Some(context) = self.standing.text_context() else {
            return Err(Reason::Pipelined);
        };
        match self.warm::<false>((recipe, eligible, context), text)? {
            ControlFlow::Break(Found::Execute(call)) => Ok(call),
            ControlFlow::Break(Found::Ask(_)) | ControlFlow::Continue(_) => Err(Reason::Pipelined),
        }
    }

    /// Counts an execution of a statement in a trail.
    ///
    /// # Errors
    /// [`Reason::Slower`] if its original is to be sent, or [`Reason::Pipelined`] if the server is
    /// to be asked about it once more.
    fn joins_trail(&mut self, key: Key) -> Result<(), Reason> {
        let settings = &self.lent.settings;
        let (trials, audits) = (settings.trials, settings.audit);
        let Some(entry) = self.standing.mirror.held(key) else {
            return Err(Reason::Unstable);
        };
        if trials {
            joins(entry, false)?;
        }
        let is_due = entry.statement.count_execution();
        let is_proven = entry.statement.plans() == Plans::Generic && !entry.terms.is_chosen;
        match is_due && is_proven && audits && self.may_ask() {
            true => Err(Reason::Pipelined),
            false => Ok(()),
        }
    }
}
