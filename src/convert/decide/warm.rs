//! What is ready on the connection: it is executed, here or elsewhere, or asked about once more.

use super::super::bind::Call;
use super::super::choose::{leaves_or_chooses, stays};
use super::{Circumstances, Found, Subject};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::statement::mirror::Entry;
use crate::statement::{Context, Footprint, Key, Plans, Recipe, Terms};
use crate::wire::backend::Status;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Circumstances<'_> {
    /// The statement may be ready on this connection; if not, with which plans it is wanted. If it
    /// is not `ALONE`, it is one of several in a query: it stays at home, the original cannot be
    /// tried in its turn, by which route it goes is chosen for all of them, and it is
    /// [counted](Self::counted) later.
    #[inline]
    pub(super) fn warm<const ALONE: bool>(
        &mut self,
        (recipe, eligible, context): (&Recipe, &Eligible, Context),
        text: &[u8],
    ) -> Result<ControlFlow<Found, Plans>, Reason> {
        let scan = &self.lent.scan;
        let mut plans = Plans::Generic;
        if recipe.shape().has_rows() {
            self.standing.check_rows(scan)?;
        }
        let key = recipe.key(eligible, context, text, scan, self.lent.shapes.hasher());
        let epoch = self.standing.present_epoch();
        let max_age = self.lent.settings.statement_max_age;
        let added = self.standing.database.added();
        // Where the original cannot be tried in its turn.
        let is_inside = self.standing.status == Status::Transaction;
        let is_final = !ALONE || is_inside && self.standing.only_begun.is_empty();
        let in_doubt = |terms: &Terms| is_final && terms.leaves_doubt(eligible, text, scan);
        let is_usable = |entry: &Entry| {
            entry.epoch == epoch
                && entry
                    .terms
                    .is_fresh(self.now.since(entry.verified), max_age, added)
                && !entry.statement.is_withdrawn()
                && entry.statement.is_for(recipe, context, text, scan)
        };
        if let Some(entry) = self.standing.mirror.lookup(key)
            && is_usable(entry)
        {
            if in_doubt(&entry.terms) {
                return Err(Reason::Doubt);
            }
            // What another plan reads, a serializable transaction would lock.
            let terms = &entry.terms;
            let reads_others = terms.one_row || terms.is_chosen || terms.ages;
            let locks = reads_others && self.standing.is_serializable;
            if !locks && entry.terms.admit(eligible, text, scan) {
                let habits = &mut *self.habits;
                if !ALONE {
                    stays(entry, habits);
                    return Ok(ControlFlow::Break(Found::Execute(Call::of(entry))));
                }
                if entry.statement.may_travel() {
                    self.standing.database.has_hosts(self.now);
                }
                let travels = leaves_or_chooses(entry, self.lent, habits, (self.now, self.clock))?;
                let is_due = entry.statement.count_execution();
                // Of a plan that the server chooses nothing was proven that could be proven again.
                let asks = is_due && (self.lent.settings.audit | self.lent.settings.proves_reads);
                let audit = asks && self.lent.settings.audit && !entry.terms.is_chosen;
                let call = Call::of(entry).travelling(travels);
                if audit || asks && self.lent.settings.proves_reads {
                    let statement = Arc::clone(&entry.statement);
                    if self.may_ask() && statement.take_audit(self.lent.settings.proves_reads) {
                        let subject = match audit {
                            true => Subject::Audit(statement, call.name),
                            false => Subject::Travel(statement, call.name),
                        };
                        return Ok(ControlFlow::Break(Found::Ask(subject)));
                    }
                }
                return Ok(ControlFlow::Break(Found::Execute(call)));
            }
            if recipe.shape().has_rows() {
                return Err(Reason::Unfit);
            }
            plans = Plans::Custom;
        }
        let key = key.with(Plans::Custom);
        if let Some(entry) = self.standing.mirror.lookup(key)
            && is_usable(entry)
        {
            if in_doubt(&entry.terms) {
                return Err(Reason::Doubt);
            }
            return self.specific::<ALONE>(key).map(ControlFlow::Break);
        }
        Ok(ControlFlow::Continue(plans))
    }

    /// Counts an execution of the statement with this key, one of several in a query; returns what
    /// the server is to be asked about it first, if that is due.
    pub(super) fn counted(&mut self, key: Key) -> Option<Subject> {
        let entry = self.standing.mirror.lookup(key)?;
        let settings = &self.lent.settings;
        let is_due = entry.statement.count_execution();
        let is_proven = entry.statement.plans() == Plans::Generic && !entry.terms.is_chosen;
        if !is_due || !is_proven || !settings.audit {
            return None;
        }
        let (statement, name) = (Arc::clone(&entry.statement), entry.name);
        let asks = self.may_ask() && statement.take_audit(self.lent.settings.proves_reads);
        asks.then_some(Subject::Audit(statement, name))
    }

    /// The statement with this key, which is ready, is planned for its values each time: here, or
    /// where others read.
    fn specific<const ALONE: bool>(&mut self, key: Key) -> Result<Found, Reason> {
        let Some(entry) = self.standing.mirror.lookup(key) else {
            return Err(Reason::Unstable);
        };
        let (settings, habits) = (&self.lent.settings, &mut *self.habits);
        if !ALONE {
            stays(entry, habits);
            return Ok(Found::Execute(Call::of(entry)));
        }
        if entry.statement.may_travel() {
            self.standing.database.has_hosts(self.now);
        }
        let travels = leaves_or_chooses(entry, self.lent, habits, (self.now, self.clock));
        let call = Call::of(entry);
        // What is slower at home may be faster elsewhere: so that counts until it is known.
        let is_unasked = || {
            let footprint = entry.statement.footprint();
            settings.proves_reads && footprint == Some(Footprint::Unasked)
        };
        let counts = travels.is_ok() || is_unasked();
        if counts && entry.statement.count_execution() && settings.proves_reads {
            let statement = Arc::clone(&entry.statement);
            // Taken in any case: what is due is looked at with each execution.
            if self.may_ask()
                && statement.take_audit(true)
                && statement.footprint() == Some(Footprint::Unasked)
            {
                return Ok(Found::Ask(Subject::Travel(statement, call.name)));
            }
        }
        Ok(Found::Execute(call.travelling(travels?)))
    }
}
