//! Reads whose statement is not prepared at home, and need not be: another connection has it.
//!
//! A connection of a few dozen queries uses most of its statements too seldom for a Parse to pay
//! there, and each connection of hundreds would keep a copy of each statement. A read that travels
//! needs none at home, because at home there is its original. So it departs, and where no host has
//! its statement it is passed through for the reason for which it would have been.

use super::Circumstances;
use crate::convert::Policy;
use crate::convert::habits::Sent;
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::residue::Residue;
use crate::statement::{Key, Plans, Recipe, Statement, Terms};
use crate::wire::backend::Status;
use std::sync::Arc;

/// A read that another session's connection may run, if it has the statement.
#[derive(Debug)]
pub struct Elsewhere {
    /// The key of the statement in a connection's mirror.
    pub key: Key,
    /// The statement.
    pub statement: Arc<Statement>,
    /// What it is trusted with.
    pub terms: Arc<Terms>,
    /// What the text is an instance of.
    pub recipe: Arc<Recipe>,
    /// Why the original goes through at home.
    pub reason: Reason,
}

impl Circumstances<'_> {
    /// Where else a text may run, just scanned and of this shape, that is passed through at home
    /// for this reason.
    #[cold]
    pub(super) fn elsewhere(
        &mut self,
        recipe: &Arc<Recipe>,
        text: &[u8],
        reason: Reason,
    ) -> Option<Elsewhere> {
        let is_only_not_ready = matches!(
            reason,
            Reason::Threshold | Reason::Budget | Reason::CacheFull
        );
        let standing = &mut self.standing;
        let may_leave = is_only_not_ready
            && self.lent.settings.shares
            && self.lent.settings.mode == Policy::Convert
            && standing.status == Status::Idle
            && standing.unverified.is_none()
            && standing.is_surveyed()
            && !standing.is_serializable
            && !recipe.shape().has_rows();
        if !may_leave {
            return None;
        }
        let (statement, terms) = self.ready_somewhere(recipe, text)?;
        let is_plain = terms.effect == Effect::None
            && terms.residue.without(Residue::OF_FUNCTIONS) == Residue::NOTHING;
        if !(is_plain && statement.travels(self.now)) {
            return None;
        }
        self.habits.sent = Sent {
            gain: statement.routes().gain(),
            ..Sent::default()
        };
        Some(Elsewhere {
            key: statement.key(),
            statement,
            terms,
            recipe: Arc::clone(recipe),
            reason,
        })
    }

    /// The statement that is trusted to do what the text does, and what it is trusted with: what
    /// [`warm`](Self::warm) would find in the mirror of a connection that has it.
    fn ready_somewhere(
        &mut self,
        recipe: &Arc<Recipe>,
        text: &[u8],
    ) -> Option<(Arc<Statement>, Arc<Terms>)> {
        let (eligible, context) = (recipe.eligible()?, self.standing.text_context()?);
        let epoch = self.standing.present_epoch();
        let (added, scan) = (self.standing.database.added(), &self.lent.scan);
        let max_age = self.lent.settings.statement_max_age;
        let trusted = |plans| {
            let shapes = &self.lent.shapes;
            let statement = shapes.known_statement(recipe, (context, plans), text, scan)?;
            let (_, terms) = statement.trusted(epoch, (max_age, added), self.now)?;
            (!statement.is_withdrawn()).then_some((statement, terms))
        };
        match trusted(Plans::Generic) {
            Some((statement, terms)) if terms.admit(eligible, text, scan) => {
                Some((statement, terms))
            }
            _ => trusted(Plans::Custom),
        }
    }
}
