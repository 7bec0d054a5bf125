//! Clients that are held back because their database is paused: at the boundary of a transaction
//! nothing more of theirs is read, until it is resumed.
//!
//! A client of a pool leaves its home then, and the connection is closed, so that it does not
//! notice when the server is restarted meanwhile. Any other keeps its session, and with it its
//! server connection.

use super::Worker;
use super::end::End;
use super::ports::{PortId, Seeks};
use crate::error::ConnectionError;
use crate::ids::{ClientId, UpstreamId};
use crate::net::halts::Held;
use crate::net::orders::Halting;
use crate::wire::frontend;

impl Worker {
    /// Whether nothing more of a client is to be taken now.
    #[cold]
    pub(super) fn holds(&self, id: ClientId) -> bool {
        self.is_paused(id) && self.is_between_transactions(id)
    }

    /// Whether the database of a client is paused.
    pub(super) fn is_paused(&self, id: ClientId) -> bool {
        let Some(halted) = &self.halted else {
            return false;
        };
        self.database_of(id).is_some_and(|it| halted.is_paused(it))
    }

    /// Whether connections of a server without a client are to be closed, because a database is
    /// paused that leads there.
    pub(super) fn is_unwanted(&self, id: UpstreamId) -> bool {
        let (Some(halted), Some(upstream)) = (&self.halted, self.hub.upstream(id)) else {
            return false;
        };
        let database = upstream.standing.origin.database();
        let mut paused = halted.paused();
        halted.is_all() || paused.any(|name| self.environment.ways.is_called(name, database))
    }

    /// What clients call the database of this one.
    pub(super) fn database_of(&self, id: ClientId) -> Option<&[u8]> {
        let named = self.clients.get(id.0)?.way.name.as_deref();
        named.or_else(|| self.hub.origin(id).map(|origin| origin.database()))
    }

    /// What the last client that had a server connection calls its database.
    pub(super) fn database_at(&self, id: UpstreamId) -> Option<&[u8]> {
        let way = self.upstreams.get(id.0)?.way.as_ref();
        let named = way.and_then(|way| way.name.as_deref());
        named.or_else(|| Some(self.hub.upstream(id)?.standing.origin.database()))
    }

    pub(super) fn is_between_transactions(&self, id: ClientId) -> bool {
        let link = self.clients.get(id.0).map(|client| client.link);
        let upstream = link.and_then(|link| self.hub.upstream(link));
        self.hub.is_idle(id) && upstream.is_none_or(|upstream| upstream.begin_due.is_none())
    }

    /// The halts may have changed: clients are held back, go on, or are ended.
    #[cold]
    pub(super) fn halt(&mut self, halting: Halting) {
        let halted = self.environment.halts.current();
        self.halted = (!halted.runs() && self.drained_by.is_none()).then_some(halted);
        let ids: Vec<_> = self.clients.slots().into_iter().map(ClientId).collect();
        let of = halting.database.as_deref().map(str::as_bytes);
        for &id in &ids {
            let is_meant = of.is_none() || self.database_of(id) == of;
            if halting.ends && is_meant {
                self.end_with_query(id, ConnectionError::Terminated);
            } else if self.is_paused(id) {
                self.stop_seeking(id);
                self.becomes_idle(id);
            } else {
                self.goes_on(id);
            }
        }
        for link in self.parked.clone() {
            if self.is_unwanted(link) {
                self.close_parked(link);
            }
        }
        let Some(answer) = halting.answer else { return };
        let mut held = Held {
            busy: self
                .parked
                .iter()
                .filter(|it| self.is_unwanted(**it))
                .count(),
            kept: 0,
        };
        for id in ids {
            let Some(client) = self.clients.get(id.0).filter(|_| self.is_paused(id)) else {
                continue;
            };
            match client.adrift.as_deref().map(|adrift| &adrift.seeks) {
                Some(Seeks::Nothing) => {}
                // What it was granted already is on its way.
                Some(_) => held.busy += 1,
                None if self.is_between_transactions(id) => held.kept += 1,
                None => held.busy += 1,
            }
        }
        // Who has asked may have gone.
        let _ = answer.send(held);
    }

    /// The proxy is ending: who is held back would wait in vain, and has nothing in flight.
    pub(super) fn end_held(&mut self) {
        if self.halted.is_none() {
            return;
        }
        for id in self.clients.slots().into_iter().map(ClientId) {
            if self.holds(id) {
                self.end(id, End::Failed(ConnectionError::ShuttingDown));
            }
        }
        self.halted = None;
    }

    /// A client that waits for a home does so no longer; what it has sent waits with it.
    fn stop_seeking(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id.0)
            && let Some(adrift) = &mut client.adrift
            && let Seeks::Turn(ticket, _) = adrift.seeks
            && client.pool.as_ref().is_some_and(|pool| pool.forget(ticket))
        {
            adrift.seeks = Seeks::Nothing;
        }
    }

    /// A client that may have been held back goes on.
    fn goes_on(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id.0) else {
            return;
        };
        let pending = &*client.port.pending;
        if client.adrift.is_some() && !frontend::TERMINATE_FRAME.starts_with(pending) {
            self.seek_home(id);
        }
        self.guarded(PortId::Client(id), |worker, _| worker.offer_pending(id));
        self.make_ready(PortId::Client(id));
        self.make_dirty(PortId::Client(id));
    }
}
