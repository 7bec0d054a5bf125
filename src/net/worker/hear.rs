//! The reading half of a turn: what has come is handed to the hub.

use super::end::End;
use super::ports::PortId;
use super::{READ, Worker};
use crate::error::ConnectionError;
use crate::ids::{ClientId, UpstreamId};
use crate::metrics::Counter;
use crate::net::port::Port;
use std::task::Poll;

/// A read of at least this many bytes, all to be forwarded as they are, is written from where it
/// was read. Fewer are copied faster than they are looked at twice.
const BULK: usize = 4 * 1024;

impl Worker {
    /// Reads a port once, unless what it leads to has no room.
    pub(super) fn hear(&mut self, id: PortId) -> Result<(), ConnectionError> {
        match id {
            PortId::Client(id) => self.hear_client(id),
            PortId::Upstream(id) => self.hear_upstream(id),
        }
    }

    fn hear_upstream(&mut self, id: UpstreamId) -> Result<(), ConnectionError> {
        let Some(server) = self.upstreams.get_mut(id.0) else {
            return Ok(());
        };
        server.port.is_ready = false;
        let holder = server.holder;
        let Some(client) = self.clients.get_mut(holder.0) else {
            self.hear_parked(id);
            return Ok(());
        };
        let is_visited = self.hub.is_visited(id);
        let Some(output) = self.hub.client_out(holder) else {
            return Ok(());
        };
        let is_full = client.port.unsent(output) >= self.config.buffer_bytes;
        if server.port.ended || is_full && !is_visited {
            return Ok(());
        }
        let count = match server.port.read(&mut self.scratch) {
            Poll::Ready(Ok(count)) => count,
            // A reset after the last word is an end like any other.
            Poll::Ready(Err(_)) => {
                server.port.ended = true;
                0
            }
            Poll::Pending => {
                self.hear_again(PortId::Upstream(id));
                return Ok(());
            }
        };
        self.spares.lend(output);
        client.sent += count as u64;
        let (hub, spares) = (&mut self.hub, &mut self.spares);
        hub.lent
            .counters()
            .add(Counter::BytesFromUpstream, count as u64);
        let mut written = Ok(());
        server
            .port
            .take(&self.scratch, count, spares, |bytes| {
                let mut used = 0;
                if bytes.len() >= BULK {
                    used = hub.forward_upstream(id, bytes)?;
                    if let Some(output) = hub.client_out(holder)
                        && let Some(outcome) = client.port.pass_on(bytes, used, output)
                    {
                        written = outcome;
                        return Ok(used);
                    }
                }
                let rest = bytes.get(used..).unwrap_or_default();
                Ok(used + hub.upstream_bytes(id, rest)?)
            })
            .map_err(ConnectionError::UpstreamProtocol)?;
        written.map_err(ConnectionError::ClientIo)?;
        let has_ended = server.port.ended;
        client.finishes |= has_ended;
        self.offer_pending(holder)?;
        if has_ended {
            self.is_lost(id);
            self.hub.upstream_gone(id);
        }
        self.make_dirty(PortId::Client(holder));
        self.make_dirty(PortId::Upstream(id));
        self.make_ready(PortId::Upstream(id));
        Ok(())
    }

    /// Sees to a port that was read for nothing: what has come may be part of a record, or need an
    /// answer of its own.
    #[cold]
    fn hear_again(&mut self, id: PortId) {
        let has_answer = |port: &mut Port| port.has_unsent_answer();
        if self.port(id).is_some_and(has_answer) {
            self.make_dirty(id);
        }
        self.make_ready(id);
    }

    /// Offers the hub what a client has sent while nothing was taken of it.
    pub(super) fn offer_pending(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        let is_held = self.halted.is_some() && self.holds(id);
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        // What has come before it is at home is taken there, unless it was cancelled.
        if client.port.pending.is_empty() || client.adrift.is_some() {
            return Ok(());
        }
        if !self.hub.accepts(id) || is_held {
            return Ok(());
        }
        let used = self
            .hub
            .client_bytes(id, &client.port.pending)
            .map_err(ConnectionError::ClientProtocol)?;
        client.port.pending.drain(..used);
        let link = client.link;
        self.make_dirty(PortId::Upstream(link));
        Ok(())
    }

    fn hear_client(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        let is_held = self.halted.is_some() && self.holds(id);
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        client.port.is_ready = false;
        let link = client.link;
        if link == UpstreamId::NONE {
            return self.hear_adrift(id);
        }
        if is_held {
            if client.port.is_left() {
                self.end(id, End::Done);
            }
            return Ok(());
        }
        if client.adrift.is_some() {
            return Ok(());
        }
        let (Some(server), Some(known)) = (self.upstreams.get_mut(link.0), self.hub.client(id))
        else {
            return Ok(());
        };
        // What waits for a visit to be over is no more than what waits to be whole.
        let most = match known.is_logged_in() {
            true => self.hub.most_awaited() + READ,
            false => READ,
        };
        let is_small = client.port.pending.len() < most;
        if !known.accepts() || client.port.ended || client.finishes || !is_small {
            // If it has finished, there is something to be seen to nevertheless.
            if known.keeps_waiting() {
                self.make_dirty(PortId::Client(id));
            }
            return Ok(());
        }
        let Some(output) = self.hub.upstream_out(link) else {
            return Ok(());
        };
        if server.port.unsent(output) >= self.config.buffer_bytes {
            return Ok(());
        }
        match client.port.read(&mut self.scratch) {
            Poll::Ready(Ok(count)) => {
                self.spares.lend(output);
                if client.port.is_ending_inside() {
                    self.hub.client_finishes(id);
                }
                self.take_from_client(id, count)?;
            }
            // What it has sent before is still to be written in this turn.
            Poll::Ready(Err(error)) => {
                client.port.ended = true;
                client.lost = Some(error);
            }
            Poll::Pending => {
                self.hear_again(PortId::Client(id));
                return Ok(());
            }
        }
        self.make_dirty(PortId::Upstream(link));
        self.make_dirty(PortId::Client(id));
        self.make_ready(PortId::Client(id));
        Ok(())
    }

    /// Hands the hub what a client's port has just read.
    fn take_from_client(&mut self, id: ClientId, count: usize) -> Result<(), ConnectionError> {
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        let link = client.link;
        let Some(server) = self.upstreams.get_mut(link.0) else {
            return Ok(());
        };
        let (hub, spares) = (&mut self.hub, &mut self.spares);
        client.received += count as u64;
        client.heard = hub.clock();
        let counters = hub.lent.counters();
        counters.add(Counter::BytesFromClients, count as u64);
        let mut written = Ok(());
        let taken = client.port.take(&self.scratch, count, spares, |bytes| {
            let mut used = 0;
            if bytes.len() >= BULK {
                used = hub.forward_client(id, bytes)?;
                if let Some(output) = hub.upstream_out(link)
                    && let Some(outcome) = server.port.pass_on(bytes, used, output)
                {
                    written = outcome;
                    return Ok(used);
                }
            }
            let rest = bytes.get(used..).unwrap_or_default();
            Ok(used + hub.client_bytes(id, rest)?)
        });
        // The server's last word may still be on its way.
        server.shut |= written.is_err();
        taken.map_err(ConnectionError::ClientProtocol)
    }
}
