//! How long a query takes by its route, of the few whose time is taken.

use super::Hop;
use crate::client::Unconverted;
use crate::convert::Timing;
use crate::metrics::{Counter, TimedRoute};
use crate::reason::Reason;
use crate::sql::outline::outline_within;
use crate::statement::Micros;
use crate::statement::routes::Route;
use crate::wire::backend::Status;
use std::sync::Arc;

/// The longest text that is kept while its query is answered, in bytes.
const MAX_KEPT: usize = 16 * 1024;

/// The bytes of a shape that the log shows.
const MAX_SHOWN: usize = 1024;

/// A query that is told of in the log, because it has taken long.
#[derive(Debug)]
pub(in crate::hub) struct Slow<'s> {
    client: u64,
    database: &'s [u8],
    route: TimedRoute,
    reason: Option<Reason>,
    micros: u64,
    text: &'s [u8],
}

impl<'s> Slow<'s> {
    /// A read of this client of this database, which has run on the connection of another.
    pub(in crate::hub) const fn shared(
        (client, database): (u64, &'s [u8]),
        micros: u64,
        text: &'s [u8],
    ) -> Self {
        Self {
            client,
            database,
            route: TimedRoute::Shared,
            reason: None,
            micros,
            text,
        }
    }

    /// Says so, without its values.
    #[cold]
    #[inline(never)]
    pub(in crate::hub) fn tell(&self) {
        tracing::info!(
            client = self.client,
            database = &*String::from_utf8_lossy(self.database),
            ms = self.micros as f64 / 1000.0,
            route = self.route.label(),
            reason = self.reason.map(Reason::label),
            shape = outline_within(self.text, String::new(), MAX_SHOWN),
            "slow statement"
        );
    }
}

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
    pub(super) fn timed_execution(&mut self, text: &[u8]) {
        self.timed();
        if self.client.asked != Micros::default() {
            let asked = std::mem::take(&mut self.client.asked);
            self.pace.waited(self.clock.since(asked));
        }
        if let Some(micros) = self.counts_time(TimedRoute::Prepared) {
            self.was_slow(TimedRoute::Prepared, micros, (text, None));
        }
        let sent = &self.client.habits.sent;
        self.lent.counters().gained(sent.gain);
        if self.clock.since(sent.since) > u64::from(sent.limit) {
            self.late();
        }
    }

    /// The client is told that its server connection is ready.
    #[inline]
    pub(super) fn ready(&mut self, status: Status) {
        if (status == Status::Idle) == self.client.block.is_some() {
            self.moves_block(status);
        }
        self.upstream.ready(status);
    }

    /// A transaction block has begun, or is over.
    #[cold]
    fn moves_block(&mut self, status: Status) {
        match status {
            Status::Idle => {
                self.client.leaves_block(self.clock);
                self.commits_logins();
            }
            Status::Transaction | Status::Failed => self.client.is_in_block(self.clock),
        }
    }

    /// Counts how long the query took that has just been answered, if that was to be timed; returns
    /// the time if it is to be told of.
    #[inline]
    fn counts_time(&mut self, route: TimedRoute) -> Option<u64> {
        let sent_at = std::mem::take(&mut self.client.sent_at);
        if sent_at == Micros::default() {
            return None;
        }
        let micros = self.clock.since(sent_at);
        self.client.counts.micros += micros;
        self.lent.counters().took(route, micros);
        if matches!(route, TimedRoute::Passed) {
            self.upstream.standing.has_served(micros, self.clock);
        }
        self.lent.is_slow(micros).then_some(micros)
    }

    #[cold]
    fn was_slow(&self, route: TimedRoute, micros: u64, (text, reason): (&[u8], Option<Reason>)) {
        let slow = Slow {
            client: self.client.number,
            database: self.upstream.standing.origin.database(),
            route,
            reason,
            micros,
            text,
        };
        slow.tell();
    }

    /// A query is relayed, and its answer is timed if nothing else is owed.
    #[inline]
    pub(super) fn times_relayed(&mut self, text: &[u8], reason: Reason) {
        if !self.upstream.ledger.is_idle() {
            // Of several in flight the answers come one behind the other.
            self.client.sent_at = Micros::default();
            return;
        }
        self.client.sent_at = self.clock;
        if self.lent.tells_of_slow() {
            self.keeps_relayed(text, reason);
        }
    }

    #[cold]
    fn keeps_relayed(&mut self, text: &[u8], reason: Reason) {
        let text = if text.len() <= MAX_KEPT { text } else { b"" };
        let kept = self.client.relayed.get_or_insert_with(|| {
            let text = Vec::new();
            Box::new(Unconverted { text, reason })
        });
        kept.reason = reason;
        kept.text.clear();
        kept.text.extend_from_slice(text);
    }

    /// The query is answered that was relayed.
    #[inline]
    pub(super) fn timed_relayed(&mut self) {
        if let Some(micros) = self.counts_time(TimedRoute::Passed)
            && let Some(kept) = self.client.relayed.take()
        {
            let about = (&*kept.text, Some(kept.reason));
            self.was_slow(TimedRoute::Passed, micros, about);
        }
    }

    /// An Execute of the client's own is relayed. Its batch is timed from the first on, unless
    /// another is under way.
    pub(super) fn counts_execute(&mut self) {
        self.lent.counters().add(Counter::Executes, 1);
        let counts = &mut self.client.counts;
        counts.executes += 1;
        if self.client.batch_since == Micros::default() {
            self.client.batch_since = self.clock;
            counts.transactions += u64::from(self.upstream.standing.status == Status::Idle);
        }
    }

    /// What was under way is answered: a batch of the client's own, or a query behind one that it
    /// has not ended.
    #[inline]
    pub(super) fn timed_batch(&mut self) {
        let since = std::mem::take(&mut self.client.batch_since);
        if since != Micros::default() {
            self.client.counts.micros += self.clock.since(since);
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
        let micros = self.clock.since(timing.since) / u64::from(timing.together.max(1));
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
