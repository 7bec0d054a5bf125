//! Clients that do what they do for longer than they may.

use super::Worker;
use super::end::End;
use super::ports::Seeks;
use crate::error::{ConnectionError, TimeLimit};
use crate::hub::Activity;
use crate::ids::ClientId;
use crate::net::hasten::hasten;
use crate::net::spell::Spell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks at what clients do: limits are whole seconds, and to look at ten
/// thousand clients takes a millisecond.
const LOOK: Duration = Duration::from_millis(250);

impl Worker {
    /// Looks at what all clients do, and ends those that have done it for too long.
    #[cold]
    pub(super) fn look_at_times(&mut self) {
        let now = Instant::now();
        self.looks_at = Some(now + LOOK);
        for slot in self.clients.slots() {
            let id = ClientId(slot);
            if let Some(limit) = self.sees_spell(id, now) {
                self.time_out(id, limit);
            }
        }
    }

    /// Which limit is over for a client now. To wait for a server connection, or until a database
    /// is resumed, is none of its doing.
    fn sees_spell(&mut self, id: ClientId, now: Instant) -> Option<TimeLimit> {
        let is_held = self.halted.is_some() && self.is_paused(id);
        let moment = self.hub.moment(id).filter(|_| !is_held);
        let client = self.clients.get_mut(id.0)?;
        let waits = client.adrift.as_deref();
        let waits = waits.is_some_and(|adrift| !matches!(adrift.seeks, Seeks::Nothing));
        let Some(mut moment) = moment.filter(|_| !waits && !client.finishes) else {
            client.spell = None;
            return None;
        };
        let output = self.hub.client_out(id)?;
        if client.port.unsent(output) > 0 {
            moment.activity = Activity::Query;
        }
        let spell = client
            .spell
            .get_or_insert_with(|| Box::new(Spell::new(now)));
        spell.sees(moment, client.received, &self.config.time_limits, now)
    }

    /// Ends a client that has taken too long.
    fn time_out(&mut self, id: ClientId, limit: TimeLimit) {
        let error = ConnectionError::TimedOut(limit);
        match limit {
            TimeLimit::Query | TimeLimit::Transaction => self.end_with_query(id, error),
            _ => self.end(id, End::Failed(error)),
        }
    }

    /// Ends a client, and has the server cancel what it does for it, which would not notice before
    /// it has something to say. Nobody else can be hit: the server connection is closed at once,
    /// and a client that has none has nothing to be cancelled.
    pub(super) fn end_with_query(&mut self, id: ClientId, error: ConnectionError) {
        // Of who is only relayed it is not known what they do.
        let is_at_work = self.hub.moment(id);
        let is_at_work = is_at_work.is_none_or(|it| it.activity != Activity::Idle);
        let registration = self
            .clients
            .get(id.0)
            .and_then(|it| it.registration.as_ref());
        let key = registration.and_then(|known| known.server_key());
        if let Some((pid, secret, endpoint)) = key.filter(|_| is_at_work) {
            let environment = Arc::clone(&self.environment);
            self.runtime.spawn(async move {
                hasten(pid, &secret, &endpoint, &environment).await;
            });
        }
        self.end(id, End::Failed(error));
    }
}
