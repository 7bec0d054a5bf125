//! The decision about one text: executed as a prepared statement, passed through, or first asked
//! about.
//!
//! It reads what is known of the server session and of the client's habits, and sends nothing. The
//! order matters: what the state of the connection forbids comes first, then what the text says by
//! itself, then what is ready on the connection, and last whether it is worth asking.

use super::bind::Call;
use super::habits::Habits;
use super::{Lent, Policy, judge};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::standing::Standing;
use crate::statement::mirror::{Entry, Name};
use crate::statement::{Context, Millis, Plans, Recipe, Statement, Terms};
use crate::wire::backend::Status;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What becomes of a query that is not sent as it came.
#[derive(Debug)]
pub enum Decision {
    /// Bind and execute this statement of the connection's mirror, with the literals that the
    /// worker's scanner has just found.
    Execute(Call, Arc<Recipe>),
    /// Ask the server first; the query waits.
    Ask(Subject),
}

/// What the server is to be asked about.
#[derive(Debug)]
pub enum Subject {
    /// The text's statement: it is to become usable on this connection, with these plans.
    Statement(Plans),
    /// Only look whether the catalog has changed.
    Watch,
    /// Repeat the plan proof of a statement this connection holds under this name.
    Audit(Arc<Statement>, Name),
}

/// What is ready on the connection.
#[derive(Debug)]
enum Warm {
    Execute(Call),
    /// Its plan is to be proven again first.
    Audit(Subject),
}

/// What a decision depends on beside the text.
#[derive(Debug)]
pub struct Circumstances<'a> {
    /// What is known of the server session.
    pub standing: &'a mut Standing,
    /// What is known of the client.
    pub habits: &'a mut Habits,
    /// What the worker lends.
    pub lent: &'a mut Lent,
    /// The time.
    pub now: Millis,
    /// Tells this client's first sightings from those of others.
    pub salt: u64,
    /// Lessons taken for this query already.
    pub lessons: u8,
    /// Nothing is owed on the connection.
    pub is_idle: bool,
    /// The connection is only relayed.
    pub relay_only: bool,
    /// The client sends nothing more than it has sent already.
    pub is_parting: bool,
}

/// Lessons that may precede one query: context, statement, one narrower form, and what was wanted
/// before. More means that something does not settle.
const MAX_LESSONS: u8 = 6;

/// Shapes counted per connection before the count starts anew, for each statement that the server
/// connection may hold: a client with more of them has no room for them all, however it counts.
const SEEN_PER_STATEMENT: usize = 2;
const MIN_SEEN: usize = 64;

impl Circumstances<'_> {
    /// What becomes of a query with this text.
    ///
    /// # Errors
    /// Why it is sent as it came.
    pub fn decide(&mut self, text: &[u8]) -> Result<Decision, Reason> {
        if self.lent.settings.mode == Policy::Off {
            return Err(Reason::Mode);
        }
        if self.is_parting {
            return Err(Reason::Pipelined);
        }
        if self.watch_is_due() {
            return Ok(Decision::Ask(Subject::Watch));
        }
        self.read(text)
    }

    /// Whether a look at the catalog is due in this database, before what is known is relied on.
    fn watch_is_due(&self) -> bool {
        let interval = self.lent.settings.catalog_watch;
        let relies = self.standing.context.is_some() && self.may_learn();
        relies && self.standing.database.take_watch(self.now, interval)
    }

    /// What to ask behind a reply, when no query waits for it, and about which text: one that was
    /// met inside a transaction, or what the transaction has left of the session.
    pub fn idle_subject(&mut self) -> Option<(Subject, Vec<u8>)> {
        let may_learn = self.lent.settings.mode == Policy::Convert && self.may_learn();
        if !may_learn || self.standing.setbacks.rest(self.now) {
            return None;
        }
        if let Some((text, plans)) = self.habits.take_wanted() {
            return Some((Subject::Statement(plans), text));
        }
        let missed = std::mem::take(&mut self.habits.missed);
        let is_of_use = missed && self.standing.context.is_none();
        let may_ask = is_of_use && self.standing.idle_patience.may_ask() && self.may_look();
        may_ask.then(|| (Subject::Watch, Vec::new()))
    }

    /// Whether the session may be asked what it has become, which takes a look at the catalog if
    /// that may have been changed.
    fn may_look(&mut self) -> bool {
        // A new connection waits for nobody.
        !self.standing.is_unverified(self.now)
            || self.standing.is_new
            || self.standing.database.may_look(self.now)
    }

    fn may_learn(&self) -> bool {
        self.standing.status == Status::Idle
            && self.is_idle
            && !self.relay_only
            && self.lessons < MAX_LESSONS
    }

    /// What the state of the connection says before the text is looked at.
    fn check(&self) -> Result<(), Reason> {
        if self.relay_only {
            return Err(Reason::RelayOnly);
        }
        if self.standing.past.may_show_statements() {
            return Err(Reason::Introspection);
        }
        if !self.is_idle {
            return Err(Reason::Pipelined);
        }
        self.standing.check()
    }

    /// What the text says, and what is known of it.
    fn read(&mut self, text: &[u8]) -> Result<Decision, Reason> {
        let mut is_settled = self.standing.is_surveyed();
        if !is_settled && self.standing.unverified.is_none() && self.standing.knows_names() {
            self.standing.survey_late()?;
            is_settled = true;
        }
        self.check()?;
        let dialect = self.standing.dialect;
        let recipe = match self.lent.guess(text, dialect) {
            Some(recipe) => {
                self.standing.check_encoding(text)?;
                recipe?
            }
            None => {
                self.lent.scan_for(text, self.standing)?;
                self.lent.admit(text, self.salt, dialect)?
            }
        };
        let scan = &self.lent.scan;
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        let mut plans = Plans::Generic;
        if let Some(context) = self.standing.context
            && is_settled
        {
            let found = (&*recipe, eligible, context);
            match self.warm(found, text)? {
                ControlFlow::Break(Warm::Execute(call)) => {
                    return Ok(Decision::Execute(call, recipe));
                }
                ControlFlow::Break(Warm::Audit(subject)) => {
                    return Ok(Decision::Ask(subject));
                }
                ControlFlow::Continue(wanted) => plans = wanted,
            }
        }
        self.cold(&recipe, plans, text)
    }

    /// The statement may be ready on this connection; if not, with which plans it is wanted.
    #[inline]
    fn warm(
        &mut self,
        (recipe, eligible, context): (&Recipe, &Eligible, Context),
        text: &[u8],
    ) -> Result<ControlFlow<Warm, Plans>, Reason> {
        let scan = &self.lent.scan;
        let mut plans = Plans::Generic;
        if recipe.shape().has_rows() {
            self.standing.check_rows(scan)?;
        }
        let key = recipe.key(eligible, context, text, scan, self.lent.shapes.hasher());
        let epoch = self.standing.follow();
        let max_age = self.lent.settings.statement_max_age;
        // Where the original cannot be tried in its turn.
        let is_final =
            self.standing.status == Status::Transaction && self.standing.only_begun.is_empty();
        let in_doubt = |terms: &Terms| is_final && terms.leaves_doubt(eligible, text, scan);
        let is_usable = |entry: &Entry| {
            entry.epoch == epoch
                && self.now.since(entry.verified) <= max_age
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
            let locks = entry.terms.one_row && self.standing.is_serializable;
            if !locks && entry.terms.admit(eligible, text, scan) {
                let audit = entry.statement.count_execution() && self.lent.settings.audit;
                let call = Call::of(entry);
                let learns = self.standing.status == Status::Idle && self.lessons < MAX_LESSONS;
                if audit && learns && entry.statement.take_audit() {
                    let subject = Subject::Audit(Arc::clone(&entry.statement), call.name);
                    return Ok(ControlFlow::Break(Warm::Audit(subject)));
                }
                return Ok(ControlFlow::Break(Warm::Execute(call)));
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
            entry.statement.count_execution();
            let mut call = Call::of(entry);
            let statement = Arc::clone(&entry.statement);
            call.renewed = self.standing.mirror.spend(key).then_some(statement);
            return Ok(ControlFlow::Break(Warm::Execute(call)));
        }
        Ok(ControlFlow::Continue(plans))
    }

    /// The statement is not ready on this connection: count, and learn when it is worth it.
    fn cold(
        &mut self,
        recipe: &Arc<Recipe>,
        plans: Plans,
        text: &[u8],
    ) -> Result<Decision, Reason> {
        if self.lessons > 0 && self.habits.has_seen(recipe) {
            // Lessons were taken for this very query and ended without a usable statement.
            if self.lessons >= MAX_LESSONS {
                return Err(Reason::Unstable);
            }
        } else {
            let most = MIN_SEEN.max(SEEN_PER_STATEMENT * self.lent.settings.limits.max_statements);
            if recipe.sight(text, &self.lent.scan, self.lent.shapes.hasher()) == 1 {
                // The shape's first sighting has only left a mark in the sketch.
                self.habits.sight(recipe, most);
            }
            if self.habits.sight(recipe, most) < self.lent.settings.prepare_threshold {
                return Err(Reason::Threshold);
            }
        }
        if self.lent.settings.mode == Policy::Observe {
            return Err(Reason::Mode);
        }
        if self.standing.status != Status::Idle {
            self.habits.want(&self.lent.scan.with_few_rows(text), plans);
            return Err(Reason::InTransaction);
        }
        if let Some(reason) = self.settled_against(recipe, plans, text) {
            return Err(reason);
        }
        if self.standing.setbacks.rest(self.now) {
            return Err(Reason::OracleFailed);
        }
        if !self.standing.mirror.has_room() {
            return Err(Reason::CacheFull);
        }
        if self.standing.context.is_none() && self.lessons == 0 {
            let may_ask = self.standing.patience.may_ask();
            if !(may_ask && self.may_look()) {
                return Err(Reason::Unproven);
            }
        }
        Ok(Decision::Ask(Subject::Statement(plans)))
    }

    /// The reason why there is no use in asking, if the shared table knows one.
    fn settled_against(&self, recipe: &Arc<Recipe>, plans: Plans, text: &[u8]) -> Option<Reason> {
        self.standing.context?;
        let epoch = self.standing.database.epoch();
        let statement = self.lent.statement(recipe, plans, text, self.standing);
        statement.map_or_else(Some, |statement| statement.settled_against(epoch))
    }
}
