//! The decision about one text: executed as a prepared statement, passed through, or first asked
//! about.
//!
//! It reads what is known of the server session and of the client's habits, and sends nothing. The
//! order matters: what the state of the connection forbids comes first, then what the text says by
//! itself, then what is ready on the connection, and last whether it is worth asking.
//!
//! The reason that is counted is the one that would be there the next time, too: what is known
//! against the text itself is looked for before the moment is blamed.

mod asking;
mod elsewhere;
mod rest;
mod series;
mod trail;
mod warm;

use super::bind::Call;
use super::habits::Habits;
use super::{Lent, Policy, judge};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::split;
use crate::standing::Standing;
use crate::statement::mirror::Name;
use crate::statement::tally::{PREPARE_PAYS, Place};
use crate::statement::{Micros, Millis, Plans, Recipe, Statement};
use crate::wire::backend::Status;
pub use elsewhere::Elsewhere;
pub use series::Series;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
pub use trail::InTrail;

/// What becomes of a query that is not sent as it came.
#[derive(Debug)]
pub enum Decision {
    /// Bind and execute this statement of the connection's mirror, with the literals that the
    /// worker's scanner has just found.
    Execute(Call, Arc<Recipe>),
    /// The same for each statement of a text that is several.
    Series(Box<Series>),
    /// Have it run where the statement is ready, or pass it through.
    Visit(Box<Elsewhere>),
    /// Ask the server first, about this part of the text, which is empty for a look at the catalog;
    /// the query waits.
    Ask(Subject, Range<usize>),
}

impl Decision {
    /// Whether something is to be executed that is ready now, and need not be later.
    #[must_use]
    pub const fn executes(&self) -> bool {
        matches!(self, Self::Execute(..) | Self::Series(_) | Self::Visit(_))
    }
}

/// What the server is to be asked about.
#[derive(Debug)]
pub enum Subject {
    /// The text's statement: it is to become usable on this connection, with these plans.
    Statement(Plans),
    /// Only look whether the catalog has changed.
    Watch,
    /// The same, and which names have hazards if that is not known.
    Names,
    /// All there is to know of the session: that, if it is not known, and its context.
    Session,
    /// Repeat the plan proof of a statement this connection holds under this name.
    Audit(Arc<Statement>, Name),
    /// Whether a statement this connection holds under this name may run elsewhere.
    Travel(Arc<Statement>, Name),
}

/// What is to be done about a text whose recipe is known.
#[derive(Debug)]
enum Found {
    Execute(Call),
    Ask(Subject),
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
    /// The same time, more precisely.
    pub clock: Micros,
    /// Lessons taken for this query already.
    pub lessons: u8,
    /// Nothing is owed on the connection.
    pub is_idle: bool,
    /// The connection is only relayed.
    pub relay_only: bool,
    /// The client sends nothing more than it has sent already.
    pub is_parting: bool,
}

/// Queries that were passed through for what their transaction had made, before the session is
/// asked what is needed to tell.
const MANY_MISSES: u32 = 8;

/// Lessons that may precede one query: context, statement, one narrower form, and what was wanted
/// before. More means that something does not settle.
const MAX_LESSONS: u8 = 6;

/// Shapes counted per connection before the count starts anew, for each statement that the server
/// connection may hold: a client with more of them has no room for them all, however it counts.
const SEEN_PER_STATEMENT: usize = 2;
const MIN_SEEN: usize = 64;

/// Bytes of a text that is looked at only to count it under the right reason.
const MAX_LOOK: usize = 4096;

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
            return Ok(Decision::Ask(Subject::Watch, 0..0));
        }
        if self.habits.misses_names && self.may_ask_names() {
            return Ok(Decision::Ask(Subject::Names, 0..0));
        }
        match self.read(text) {
            Err(Reason::NotPreparable) if self.looks_ahead(text) => {
                Ok(Decision::Ask(Subject::Names, 0..0))
            }
            read => read,
        }
    }

    /// What to ask behind a reply, when no query waits for it, and about which text: one that was
    /// met inside a transaction, or what the transaction has left of the session.
    pub fn idle_subject(&mut self) -> Option<(Subject, Vec<u8>)> {
        let may_learn = self.lent.settings.mode == Policy::Convert && self.may_learn();
        if !may_learn || self.standing.setbacks.rest(self.now) {
            return None;
        }
        if self.standing.database.is_resting() && !self.lent.settings.is_eager() {
            return None;
        }
        // Many a connection is for one transaction. On a new one the first question is for the
        // whole catalog and costs as much as hundreds of small statements, so it shows first that
        // it goes on.
        let may_leave = self.standing.is_new && !self.lent.settings.is_eager();
        if may_leave && self.standing.is_unverified(self.now) && self.habits.puts_off() {
            return None;
        }
        if !self.has_turn() {
            return None;
        }
        // What the text at hand does not name, another may.
        let wanted = match self.standing.stays() {
            true => None,
            false => self.habits.take_wanted(),
        };
        if let Some((text, plans)) = wanted {
            return Some((Subject::Statement(plans), text));
        }
        if self.may_ask_to_travel() {
            return Some((Subject::Watch, Vec::new()));
        }
        let missed = std::mem::take(&mut self.habits.missed);
        let is_urgent = self.standing.misses_context();
        let missed = missed || is_urgent;
        let is_of_use = missed && self.standing.context.is_none() && self.may_ask_context();
        let is_time = is_of_use && (is_urgent || self.standing.idle_patience.may_ask());
        let may_ask = is_time && self.may_look();
        may_ask.then(|| (Subject::Watch, Vec::new()))
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
        if self.standing.database.is_looked_into(self.now) {
            return Err(Reason::Unproven);
        }
        self.standing.check()
    }

    /// The reason to pass through a text that the state of the connection forbids to convert: what
    /// is known against the text itself, if the state is one that passes.
    #[cold]
    fn lasting(&mut self, text: &[u8], reason: Reason) -> Reason {
        let passes = matches!(
            reason,
            Reason::FailedTransaction | Reason::DirtyTransaction | Reason::Pipelined
        );
        if !passes || text.len() > MAX_LOOK {
            return reason;
        }
        self.known_against(text).err().unwrap_or(reason)
    }

    /// What is known against a text, without noting that it was met.
    fn known_against(&mut self, text: &[u8]) -> Result<(), Reason> {
        let dialect = self.standing.dialect;
        let guessed = self.lent.guess(text, dialect);
        let recipe = match guessed {
            Some(recipe) => recipe?,
            None => {
                self.lent.scan_for(text, self.standing)?;
                let Some(recipe) = self.lent.known(text) else {
                    return Ok(());
                };
                recipe?
            }
        };
        if let Some(Err(reason)) = recipe.known_judgement() {
            return Err(reason);
        }
        self.known_settled(&recipe, Plans::Generic, text)
    }

    /// What the text says, and what is known of it.
    fn read(&mut self, text: &[u8]) -> Result<Decision, Reason> {
        self.standing.settle_rest();
        let mut is_settled = self.standing.is_surveyed();
        if !is_settled && self.standing.unverified.is_none() && self.standing.knows_names() {
            self.standing.survey_late()?;
            is_settled = true;
        }
        if let Err(reason) = self.check() {
            return Err(self.lasting(text, reason));
        }
        if self.standing.is_held_up(text) {
            return Err(Reason::Held);
        }
        let contexts = self.lent.shapes.contexts();
        self.standing.takes_text(text, contexts);
        let recipe = match self.recipe(text) {
            Err(Reason::MultipleStatements) => return self.series(text, is_settled),
            Err(Reason::NotPreparable) if split::begins_with_mark(text) => {
                return self.series(text, is_settled);
            }
            recipe => recipe?,
        };
        let found = self.read_met::<true>(&recipe, is_settled, text);
        match found {
            Ok(Found::Execute(call)) => Ok(Decision::Execute(call, recipe)),
            Ok(Found::Ask(subject)) => Ok(Decision::Ask(subject, 0..text.len())),
            Err(reason) => {
                if let Some(elsewhere) = self.elsewhere(&recipe, text, reason) {
                    return Ok(Decision::Visit(Box::new(elsewhere)));
                }
                self.lent.met = Some(recipe);
                Err(reason)
            }
        }
    }

    /// Scans a text and finds its recipe.
    #[inline(always)]
    fn recipe(&mut self, text: &[u8]) -> Result<Arc<Recipe>, Reason> {
        let dialect = self.standing.dialect;
        match self.lent.guess(text, dialect) {
            Some(recipe) => {
                self.standing.check_encoding(text, Some(&self.lent.scan))?;
                recipe
            }
            None => {
                self.lent.scan_for(text, self.standing)?;
                self.lent.admit(text, dialect)
            }
        }
    }

    /// What is known of a text of this shape, just scanned. `is_settled` says that what the session
    /// has run was surveyed, and `ALONE` that the text is the whole query.
    #[inline(always)]
    fn read_met<const ALONE: bool>(
        &mut self,
        recipe: &Arc<Recipe>,
        is_settled: bool,
        text: &[u8],
    ) -> Result<Found, Reason> {
        let (scan, dialect) = (&self.lent.scan, self.standing.dialect);
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        if eligible.restricted {
            self.restriction(recipe, eligible)?;
        }
        if self.standing.database.is_resting() {
            return self.rest((recipe, eligible), text);
        }
        let mut plans = Plans::Generic;
        if let Some(context) = self.standing.text_context()
            && is_settled
        {
            let found = (&**recipe, eligible, context);
            match self.warm::<ALONE>(found, text)? {
                ControlFlow::Break(found) => {
                    self.standing.relies(self.habits.sent.gain);
                    return Ok(found);
                }
                ControlFlow::Continue(wanted) => plans = wanted,
            }
        }
        self.cold(recipe, plans, text).map(Found::Ask)
    }

    /// Why a text of a restricted shape is not converted here, if it is not.
    #[cold]
    fn restriction(&self, recipe: &Recipe, eligible: &Eligible) -> Result<(), Reason> {
        if recipe.off().is_in(self.standing.origin.database()) {
            return Err(Reason::SwitchedOff);
        }
        match eligible.trivial && !self.lent.settings.is_eager() {
            true => Err(Reason::Trivial),
            false => Ok(()),
        }
    }

    /// The statement is not ready on this connection: count, and learn when it is worth it.
    fn cold(&mut self, recipe: &Arc<Recipe>, plans: Plans, text: &[u8]) -> Result<Subject, Reason> {
        self.known_settled(recipe, plans, text)?;
        let context = self.standing.text_context();
        let uses = &mut self.standing.mirror.uses;
        let place = uses.place(recipe.family(), context);
        if self.lessons > 0 && uses.has_seen(place) {
            // Lessons were taken for this very query and ended without a usable statement.
            if self.lessons >= MAX_LESSONS {
                return Err(Reason::Unstable);
            }
        } else if !self.sight(recipe, place, text) {
            return Err(Reason::Threshold);
        }
        if recipe.is_of_many_texts() {
            self.lent.shapes.widen(recipe);
            return Err(Reason::NoArguments);
        }
        if !self.lent.settings.is_eager() && !self.standing.lasts_for(recipe.family()) {
            return Err(Reason::Threshold);
        }
        if self.lent.settings.mode == Policy::Observe {
            self.lent.observe(text);
            return Err(Reason::Mode);
        }
        if self.standing.status != Status::Idle && !self.may_ask_inside() {
            // Behind the transaction the context will be another.
            if self.standing.has_moved() {
                return Err(Reason::Unproven);
            }
            self.habits.want(&self.lent.scan.with_few_rows(text), plans);
            return Err(Reason::InTransaction);
        }
        let memory = self.memory_for(recipe, plans, text)?;
        if self.standing.setbacks.rest(self.now) {
            return Err(Reason::OracleFailed);
        }
        if !self.standing.mirror.has_room(memory) {
            return Err(Reason::CacheFull);
        }
        let is_unknown = self.standing.context.is_none() || self.standing.names_what_stays();
        if is_unknown && self.lessons == 0 {
            let is_eager = self.lent.settings.is_eager();
            // What is asked inside a transaction is good until its end.
            let may_ask = match self.standing.status {
                Status::Idle => self.standing.patience.may_ask(),
                _ => self.standing.idle_patience.may_ask(),
            };
            if !(may_ask || is_eager) {
                return Err(Reason::Unproven);
            }
            let are_left = is_eager || self.lent.shapes.questions().are_left(self.now);
            if !(are_left && self.has_turn()) {
                return Err(Reason::Budget);
            }
            if !self.may_look() {
                return Err(Reason::Unproven);
            }
        }
        Ok(Subject::Statement(plans))
    }

    /// Counts a sighting of the shape; returns whether it is worth asking about, or preparing here.
    ///
    /// With the statement not ready on this connection, it costs a Parse at least, and if this is
    /// the first on the connection, the question for its context. So it depends on how often this
    /// connection is going to use it, about which others that have ended tell. Where they do not,
    /// or are wrong, it shows after a few times. A lesson is for all connections, but is of use
    /// only to such as gain from the Parse.
    fn sight(&mut self, recipe: &Recipe, place: Place, text: &[u8]) -> bool {
        let knows_context = self.standing.interned.is_some();
        // Who asks about everything looks for itself.
        let is_eager = self.lent.settings.is_eager();
        if !knows_context && self.standing.is_unverified(self.now) && !is_eager {
            self.standing.database.awaits_look();
        }
        let price = self.context_price();
        let settings = &self.lent.settings;
        let most = MIN_SEEN.max(SEEN_PER_STATEMENT * settings.limits.statements.statements);
        let database = &self.standing.database;
        let tally = recipe.tally(database);
        let uses = &mut self.standing.mirror.uses;
        if recipe.sight(text, &self.lent.scan, self.lent.shapes.hasher()) == 1 {
            // The shape's first sighting has only left a mark in the sketch.
            tally.sight();
            uses.sight(place, &tally, most);
        }
        let (by_all, here) = (tally.sight(), uses.sight(place, &tally, most));
        uses.begin(|| database.visits(&self.standing.origin));
        if is_eager {
            return true;
        }
        let threshold = database.threshold(settings.prepare_threshold);
        let pays = match tally.promises(here.saturating_sub(1), PREPARE_PAYS) {
            Some(promised) => promised || here >= threshold.max(PREPARE_PAYS),
            None => here >= threshold,
        };
        self.habits.could_travel |= !knows_context && tally.travels();
        by_all >= threshold && pays && (knows_context || uses.pay_for_context(price))
    }

    /// Whether the shared table knows, without being asked to learn anything, why the text's
    /// statement is not to be: with the plans that are wanted, or the only ones that will do.
    fn known_settled(&self, recipe: &Arc<Recipe>, plans: Plans, text: &[u8]) -> Result<(), Reason> {
        let Some(context) = self.standing.text_context() else {
            return Ok(());
        };
        let epoch = self.standing.database.epoch();
        let (shapes, scan) = (&self.lent.shapes, &self.lent.scan);
        let known = |plans| shapes.known_statement(recipe, (context, plans), text, scan);
        let mut statement = known(plans);
        if statement.is_none() && plans == Plans::Generic && recipe.has_all_variants() {
            return Err(Reason::Variants);
        }
        if statement
            .as_ref()
            .is_some_and(|found| found.is_specific(epoch))
        {
            statement = known(Plans::Custom).or(statement);
        }
        let against = statement.and_then(|statement| statement.settled_against(epoch));
        against.map_or(Ok(()), Err)
    }

    /// The server's memory that the text's statement will take; nothing, as long as it cannot be
    /// told.
    ///
    /// # Errors
    /// The reason why there is no use in asking, if the shared table knows one.
    fn memory_for(&self, recipe: &Arc<Recipe>, plans: Plans, text: &[u8]) -> Result<usize, Reason> {
        if self.standing.text_context().is_none() {
            return Ok(0);
        }
        let epoch = self.standing.database.epoch();
        let statement = self.lent.statement(recipe, plans, text, self.standing)?;
        if let Some(reason) = statement.settled_against(epoch) {
            return Err(reason);
        }
        let max_age = self.lent.settings.statement_max_age;
        let added = self.standing.database.added();
        let is_trusted = statement.trusted(epoch, (max_age, added), self.now);
        let is_trusted = is_trusted.is_some();
        if !is_trusted && self.lent.rests(&statement, self.standing, self.now) {
            return Err(Reason::Threshold);
        }
        let travels = self.lent.settings.shares && statement.may_travel();
        if self.lent.settings.trials && !travels && statement.is_left(self.now) {
            return Err(Reason::Slower);
        }
        Ok(statement.known_memory())
    }
}
