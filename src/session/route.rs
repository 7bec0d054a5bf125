//! The route of a query: executed as a prepared statement, passed through, or first learned about.

use super::execute::Call;
use super::{Session, Turn};
use crate::convert::{Lent, Mode, find, judge};
use crate::metrics::Counter;
use crate::oracle::{Lesson, Subject};
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::statement::mirror::Entry;
use crate::statement::{Context, Millis, Plans, Recipe, Terms};
use crate::wire::backend::Status;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What becomes of a query.
#[derive(Debug)]
enum Route {
    /// Bind and execute this statement of the connection's cache.
    Execute(Call, Arc<Recipe>),
    /// Ask first; the query waits.
    Learn(Box<Lesson>),
    /// Send it as it came.
    Pass(Reason),
}

/// What becomes of a query whose statement is ready on the connection.
#[derive(Debug)]
enum Warm {
    Execute(Call),
    /// Its plan is to be proven again first.
    Audit(Subject),
}

/// Lessons that may precede one query: context, statement, one narrower form, and what was wanted
/// before. More means that something does not settle.
const MAX_LESSONS: u8 = 6;

/// Shapes counted per connection before the count starts anew, for each statement that the server
/// connection may hold: a client with more of them has no room for them all, however it counts.
const SEEN_PER_STATEMENT: usize = 2;
const MIN_SEEN: usize = 64;

impl Session {
    /// A client's Query with this text.
    pub(super) fn client_query(&mut self, text: &[u8], now: Millis, lent: &mut Lent) {
        lent.counters().add(Counter::Queries, 1);
        self.lessons = 0;
        self.dispatch(text, now, lent);
    }

    /// The query on hold, after a lesson.
    pub(super) fn resume(&mut self, now: Millis, lent: &mut Lent) {
        let text = std::mem::take(&mut self.query);
        self.dispatch(&text, now, lent);
        if self.query.is_empty() {
            // Keeps its capacity: the next query of this connection is likely to be as long.
            self.query = text;
            self.query.clear();
        }
    }

    fn dispatch(&mut self, text: &[u8], now: Millis, lent: &mut Lent) {
        match self.route(text, now, lent) {
            Route::Execute(call, recipe) => {
                let temperature = if self.lessons == 0 {
                    Counter::Warm
                } else {
                    Counter::Cold
                };
                lent.counters().add(Counter::Converted, 1);
                lent.counters().add(temperature, 1);
                tracing::debug!(client = self.client.0, "converted");
                self.query.clear();
                self.query.extend_from_slice(text);
                self.execute(&call, &recipe, lent);
            }
            Route::Learn(lesson) => {
                self.lessons += 1;
                self.query.clear();
                self.query.extend_from_slice(text);
                self.turn = Turn::Learning(lesson);
                self.start_lesson(now, lent);
            }
            Route::Pass(reason) => {
                self.habits.missed |= reason == Reason::DirtyTransaction;
                self.turn = Turn::Free;
                self.relay_query(text, reason, lent);
            }
        }
    }

    fn route(&mut self, text: &[u8], now: Millis, lent: &mut Lent) -> Route {
        if lent.settings.mode == Mode::Off {
            return Route::Pass(Reason::Mode);
        }
        if self.parting {
            return Route::Pass(Reason::Pipelined);
        }
        if let Some(lesson) = self.watch_lesson(now, lent) {
            return Route::Learn(Box::new(lesson));
        }
        match self.try_route(text, now, lent) {
            Ok(route) => route,
            Err(reason) => Route::Pass(reason),
        }
    }

    /// The look at the catalog that is due in this database, before what is known is relied on.
    fn watch_lesson(&self, now: Millis, lent: &Lent) -> Option<Lesson> {
        let interval = lent.settings.catalog_watch;
        let relies = self.upstream.standing.context.is_some() && self.may_learn();
        (relies && self.upstream.standing.database.take_watch(now, interval))
            .then(|| Lesson::new(Subject::Watch, Vec::new()))
    }

    /// The lesson to take behind a reply, when no query waits for it: about a text that was met
    /// inside a transaction, or about what the transaction has left of the session.
    pub(super) fn idle_lesson(&mut self, now: Millis, lent: &Lent) -> Option<Lesson> {
        let may_learn = lent.settings.mode == Mode::Convert && self.may_learn();
        if !may_learn || self.upstream.standing.setbacks.rest(now) {
            return None;
        }
        self.lessons = 0;
        if let Some((text, plans)) = self.habits.take_wanted() {
            return Some(Lesson::behind(Subject::Statement(plans), text));
        }
        let missed = std::mem::take(&mut self.habits.missed);
        let is_of_use = missed && self.upstream.standing.context.is_none();
        let may_ask =
            is_of_use && self.upstream.standing.idle_patience.may_ask() && self.may_look(now);
        may_ask.then(|| Lesson::behind(Subject::Watch, Vec::new()))
    }

    /// Whether the session may be asked what it has become, which takes a look at the catalog if
    /// that may have been changed.
    fn may_look(&mut self, now: Millis) -> bool {
        // A new connection waits for nobody.
        !self.upstream.standing.is_unverified(now)
            || self.upstream.standing.is_new
            || self.upstream.standing.database.may_look(now)
    }

    fn may_learn(&self) -> bool {
        self.upstream.standing.status == Status::Idle
            && self.upstream.ledger.is_idle()
            && !self.relay_only
            && self.lessons < MAX_LESSONS
    }

    fn try_route(&mut self, text: &[u8], now: Millis, lent: &mut Lent) -> Result<Route, Reason> {
        let mut is_settled = self.upstream.standing.is_surveyed();
        if !is_settled
            && self.upstream.standing.unverified.is_none()
            && self.upstream.standing.knows_names()
        {
            self.upstream.standing.survey_late()?;
            is_settled = true;
        }
        self.check_state()?;
        let dialect = self.upstream.standing.dialect;
        let recipe = match lent.guess(text, dialect) {
            Some(recipe) => {
                self.upstream.standing.check_encoding(text)?;
                recipe?
            }
            None => {
                find::scan(text, &self.upstream.standing, lent)?;
                lent.admit(text, self.client.0, dialect)?
            }
        };
        let scan = &lent.scan;
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        let mut plans = Plans::Generic;
        if let Some(context) = self.upstream.standing.context
            && is_settled
        {
            let found = (&*recipe, eligible, context);
            match self.route_warm(found, text, now, lent)? {
                ControlFlow::Break(Warm::Execute(call)) => return Ok(Route::Execute(call, recipe)),
                ControlFlow::Break(Warm::Audit(subject)) => {
                    let lesson = Lesson::new(subject, text.to_vec());
                    return Ok(Route::Learn(Box::new(lesson)));
                }
                ControlFlow::Continue(wanted) => plans = wanted,
            }
        }
        self.route_cold(&recipe, plans, text, now, lent)
    }

    /// The statement may be ready on this connection; if not, with which plans it is wanted.
    #[inline]
    fn route_warm(
        &mut self,
        (recipe, eligible, context): (&Recipe, &Eligible, Context),
        text: &[u8],
        now: Millis,
        lent: &Lent,
    ) -> Result<ControlFlow<Warm, Plans>, Reason> {
        let scan = &lent.scan;
        let mut plans = Plans::Generic;
        if recipe.shape().has_rows() {
            self.upstream.standing.check_rows(scan)?;
        }
        let key = recipe.key(eligible, context, text, scan, lent.shapes.hasher());
        let epoch = self.upstream.standing.database.epoch();
        let max_age = lent.settings.statement_max_age;
        // Where the original cannot be tried in its turn.
        let is_final = self.upstream.standing.status == Status::Transaction
            && self.upstream.standing.only_begun.is_empty();
        let in_doubt = |terms: &Terms| is_final && terms.leaves_doubt(eligible, text, scan);
        let usable = |entry: &&Entry| {
            entry.epoch == epoch
                && now.since(entry.verified) <= max_age
                && !entry.statement.is_withdrawn()
                && entry.statement.is_for(recipe, context, text, scan)
        };
        if let Some(entry) = self.upstream.standing.mirror.lookup(key).filter(usable) {
            if in_doubt(&entry.terms) {
                return Err(Reason::Doubt);
            }
            // What another plan reads, a serializable transaction would lock.
            let locks = entry.terms.one_row && self.upstream.standing.is_serializable;
            if !locks && entry.terms.admit(eligible, text, scan) {
                let audit = entry.statement.count_execution() && lent.settings.audit;
                let call = Call::of(entry);
                let learns =
                    self.upstream.standing.status == Status::Idle && self.lessons < MAX_LESSONS;
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
        if let Some(entry) = self.upstream.standing.mirror.lookup(key).filter(usable) {
            if in_doubt(&entry.terms) {
                return Err(Reason::Doubt);
            }
            entry.statement.count_execution();
            let mut call = Call::of(entry);
            let statement = Arc::clone(&entry.statement);
            call.renewed = self
                .upstream
                .standing
                .mirror
                .spend(key)
                .then_some(statement);
            return Ok(ControlFlow::Break(Warm::Execute(call)));
        }
        Ok(ControlFlow::Continue(plans))
    }

    /// The statement is not ready on this connection: count, and learn when it is worth it.
    fn route_cold(
        &mut self,
        recipe: &Arc<Recipe>,
        plans: Plans,
        text: &[u8],
        now: Millis,
        lent: &Lent,
    ) -> Result<Route, Reason> {
        if self.lessons > 0 && self.habits.has_seen(recipe) {
            // Lessons were taken for this very query and ended without a usable statement.
            if self.lessons >= MAX_LESSONS {
                return Err(Reason::Unstable);
            }
        } else {
            let most = MIN_SEEN.max(SEEN_PER_STATEMENT * lent.settings.limits.max_statements);
            if recipe.sight(text, &lent.scan, lent.shapes.hasher()) == 1 {
                // The shape's first sighting has only left a mark in the sketch.
                self.habits.sight(recipe, most);
            }
            if self.habits.sight(recipe, most) < lent.settings.prepare_threshold {
                return Err(Reason::Threshold);
            }
        }
        if lent.settings.mode == Mode::Observe {
            return Err(Reason::Mode);
        }
        if self.upstream.standing.status != Status::Idle {
            self.habits.want(&lent.scan.with_few_rows(text), plans);
            return Err(Reason::InTransaction);
        }
        if let Some(reason) = self.settled_against(recipe, plans, text, lent) {
            return Err(reason);
        }
        if self.upstream.standing.setbacks.rest(now) {
            return Err(Reason::OracleFailed);
        }
        if !self.upstream.standing.mirror.has_room() {
            return Err(Reason::CacheFull);
        }
        if self.upstream.standing.context.is_none() && self.lessons == 0 {
            let may_ask = self.upstream.standing.patience.may_ask();
            if !(may_ask && self.may_look(now)) {
                return Err(Reason::Unproven);
            }
        }
        let lesson = Lesson::new(Subject::Statement(plans), text.to_vec());
        Ok(Route::Learn(Box::new(lesson)))
    }

    /// The reason why there is no use in asking, if the shared table knows one.
    fn settled_against(
        &self,
        recipe: &Arc<Recipe>,
        plans: Plans,
        text: &[u8],
        lent: &Lent,
    ) -> Option<Reason> {
        self.upstream.standing.context?;
        let epoch = self.upstream.standing.database.epoch();
        let statement = find::statement(recipe, plans, text, &self.upstream.standing, lent);
        statement.map_or_else(Some, |statement| statement.settled_against(epoch))
    }

    /// What the connection's state says before the text is looked at.
    fn check_state(&self) -> Result<(), Reason> {
        if self.relay_only {
            return Err(Reason::RelayOnly);
        }
        if self.upstream.standing.past.may_show_statements() {
            return Err(Reason::Introspection);
        }
        if !self.upstream.ledger.is_idle() {
            return Err(Reason::Pipelined);
        }
        self.upstream.standing.check()
    }

    /// Scans `text` and finds its recipe.
    pub(super) fn recipe(&self, text: &[u8], lent: &mut Lent) -> Result<Arc<Recipe>, Reason> {
        find::recipe(text, &self.upstream.standing, lent)
    }
}
