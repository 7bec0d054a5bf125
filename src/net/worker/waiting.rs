//! Clients that wait for a home: how they begin to, and what ends that.

use super::Worker;
use super::end::End;
use super::ports::{PortId, Seeks};
use crate::error::ConnectionError;
use crate::ids::ClientId;
use crate::metrics::Counter;
use crate::net::news::Grant;
use crate::net::pools::To;
use std::time::Instant;

impl Worker {
    /// A client needs a home, and waits for one if it does not yet.
    pub(super) fn seek_home(&mut self, id: ClientId) {
        if self.halted.is_some() && self.is_paused(id) {
            return;
        }
        let by = self.by();
        let (Some(client), Some(origin)) = (self.clients.get_mut(id.0), self.hub.origin(id)) else {
            return;
        };
        let (Some(pool), Some(adrift)) = (&client.pool, &mut client.adrift) else {
            return;
        };
        if !matches!(adrift.seeks, Seeks::Nothing) {
            return;
        }
        let now = Instant::now();
        let identity = Some(origin.identity().to_vec());
        let ticket = pool.wait(identity, To::Client(by, id));
        adrift.seeks = Seeks::Turn(ticket, now);
        self.waits.push_back((now, id, ticket));
    }

    /// Ends the clients that have waited for too long, by what the configuration says by now.
    #[cold]
    pub(super) fn end_waits(&mut self) {
        let now = Instant::now();
        while let Some((_, id, ticket)) = self.waits.front().copied() {
            let waits = self.seeks_with(id, ticket);
            if waits && self.next_wait().is_none_or(|until| until > now) {
                return;
            }
            self.waits.pop_front();
            if waits {
                let client = self.clients.get(id.0);
                let pool = client.and_then(|client| client.pool.clone());
                // Who has been given something in this moment has it.
                if pool.is_some_and(|pool| pool.forget(ticket)) {
                    self.hub.lent.counters().add(Counter::WaitTimeouts, 1);
                    self.end(id, End::Failed(ConnectionError::WaitTimeout));
                }
            }
        }
    }

    /// When the first of them will have.
    pub(super) fn next_wait(&self) -> Option<Instant> {
        let limit = self.config.query_wait_timeout;
        let first = self.waits.front().filter(|_| !limit.is_zero());
        first.map(|(since, ..)| *since + limit)
    }

    /// Whether a client waits with this ticket for its turn.
    fn seeks_with(&self, id: ClientId, ticket: u64) -> bool {
        let adrift = self.clients.get(id.0).and_then(|it| it.adrift.as_ref());
        adrift.is_some_and(|it| matches!(it.seeks, Seeks::Turn(known, _) if known == ticket))
    }

    /// A client's turn has come.
    pub(super) fn granted(&mut self, id: ClientId, ticket: u64, grant: Grant) {
        if !self.seeks_with(id, ticket) {
            // It has gone, and gives back what it was given.
            return;
        }
        match grant {
            Grant::Warm(berth) if berth.worker == self.number => {
                self.has_waited(id);
                self.come_home(id, berth.take());
            }
            Grant::Warm(berth) => {
                self.has_waited(id);
                self.move_out(id, berth);
            }
            Grant::Open(place) => self.reopen(id, ticket, place),
        }
    }

    /// A client has a home again, or is about to: how long it has waited is counted.
    pub(super) fn has_waited(&mut self, id: ClientId) {
        let adrift = self.clients.get_mut(id.0).and_then(|it| it.adrift.as_mut());
        let seeks = adrift.map(|it| std::mem::replace(&mut it.seeks, Seeks::Nothing));
        if let Some(Seeks::Turn(_, since) | Seeks::Connection(.., since)) = seeks {
            self.hub.has_waited(id, since.elapsed());
        }
    }

    pub(super) fn set_seeks(&mut self, id: ClientId, seeks: Seeks) {
        if let Some(client) = self.clients.get_mut(id.0)
            && let Some(adrift) = &mut client.adrift
        {
            adrift.seeks = seeks;
        }
    }

    /// Cancel requests have come: they may mean queries that wait for a home.
    pub(super) fn cancel_waits(&mut self) {
        for slot in self.clients.slots() {
            let id = ClientId(slot);
            let Some(client) = self.clients.get_mut(slot) else {
                continue;
            };
            let Some(adrift) = &mut client.adrift else {
                continue;
            };
            let requested = client.cancels.requested();
            if adrift.cancels_seen == requested {
                continue;
            }
            if matches!(adrift.seeks, Seeks::Nothing) {
                // It is about to come home, and is seen to there.
                continue;
            }
            adrift.cancels_seen = requested;
            let used = self.hub.cancel_adrift(id, &client.port.pending);
            client.port.pending.drain(..used);
            let is_done = used > 0 && client.port.pending.is_empty() && !client.port.ended;
            if let Seeks::Turn(ticket, _) = adrift.seeks
                && is_done
                && client.pool.as_ref().is_some_and(|pool| pool.forget(ticket))
            {
                adrift.seeks = Seeks::Nothing;
            }
            self.make_dirty(PortId::Client(id));
        }
    }
}
