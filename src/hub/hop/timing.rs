//! How long a query takes by its route, of the few whose time is taken.

use super::Hop;
use crate::convert::Timing;
use crate::metrics::{Counter, TimedRoute};
use crate::statement::Micros;
use crate::statement::routes::Route;
use std::sync::Arc;

impl Hop<'_> {
    /// The query in flight is answered.
    #[inline]
    pub(super) fn timed(&mut self) {
        if let Some(timing) = self.client.habits.timing.take() {
            self.took(timing);
        }
    }

    /// The query in flight was executed, and its answer may have been late.
    #[inline]
    pub(super) fn timed_execution(&mut self) {
        self.timed();
        if self.client.asked != Micros::default() {
            let asked = std::mem::take(&mut self.client.asked);
            self.pace.waited(self.clock.since(asked));
        }
        self.counts_time(TimedRoute::Prepared);
        let sent = &self.client.habits.sent;
        self.lent.counters().gained(sent.gain);
        if self.clock.since(sent.since) > u64::from(sent.limit) {
            self.late();
        }
    }

    /// Counts how long the query took that has just been answered, if that was to be timed.
    #[inline]
    pub(super) fn counts_time(&mut self, route: TimedRoute) {
        let sent_at = std::mem::take(&mut self.client.sent_at);
        if sent_at != Micros::default() {
            let micros = self.clock.since(sent_at);
            self.lent.counters().took(route, micros);
        }
    }

    #[cold]
    fn late(&mut self) {
        let key = self.client.habits.sent.key;
        if let Some(entry) = self.upstream.standing.mirror.held(key) {
            let statement = Arc::clone(&entry.statement);
            entry.trial.late(statement.routes(), self.clock);
        }
    }

    #[cold]
    fn took(&mut self, timing: Timing) {
        let micros = self.clock.since(timing.since);
        let Some(entry) = self.upstream.standing.mirror.held(timing.key) else {
            return;
        };
        let statement = Arc::clone(&entry.statement);
        let (routes, rounds) = (statement.routes(), statement.rounds());
        let Some(pair) = entry.trial.took(timing.route, micros, rounds) else {
            return;
        };
        routes.account(statement.executions());
        let changed = routes.add(pair);
        entry.trial.rest(routes, self.clock);
        self.lent.counters().add(Counter::Trials, 1);
        let Some(route) = changed else {
            return;
        };
        let counter = match route {
            Route::Original => Counter::RoutesLeft,
            Route::Prepared => Counter::RoutesTaken,
        };
        self.lent.counters().add(counter, 1);
        tracing::info!(
            route = ?route,
            prepared_us = pair.prepared,
            original_us = pair.original,
            shape = statement.recipe().shape().text_for_display(),
            "measured that another route is the shorter"
        );
    }

    /// The query in flight has failed, or waits for a lesson: its time says nothing.
    #[inline]
    pub(super) fn untimed(&mut self) {
        self.client.sent_at = Micros::default();
        if let Some(timing) = self.client.habits.timing.take() {
            self.spoiled(timing);
        }
    }

    #[cold]
    fn spoiled(&mut self, timing: Timing) {
        if let Some(entry) = self.upstream.standing.mirror.held(timing.key) {
            let statement = Arc::clone(&entry.statement);
            entry.trial.rest(statement.routes(), self.clock);
        }
    }
}
