//! The writing half of a turn: output goes out once, and what that makes possible is seen to.

use super::Worker;
use super::end::End;
use super::ports::PortId;
use crate::error::ConnectionError;
use crate::hub::Waits;
use crate::ids::{ClientId, UpstreamId};
use std::task::Poll;

impl Worker {
    /// Writes a port once.
    pub(super) fn flush(&mut self, id: PortId) -> Result<(), ConnectionError> {
        match id {
            PortId::Client(id) => self.flush_client(id),
            PortId::Upstream(id) => self.flush_upstream(id),
        }
    }

    fn flush_upstream(&mut self, id: UpstreamId) -> Result<(), ConnectionError> {
        let Some(server) = self.upstreams.get_mut(id.0) else {
            return Ok(());
        };
        server.port.is_dirty = false;
        // Behind its end a server reads nothing; its client is being given what is left.
        if server.port.ended {
            return Ok(());
        }
        let Some(output) = self.hub.upstream_out(id) else {
            return Ok(());
        };
        match server.port.write(output) {
            Poll::Ready(Ok(_)) | Poll::Pending => {}
            // The server's last word may still be on its way: it is read, and the end is there.
            Poll::Ready(Err(_)) => {
                output.clear();
                server.port.written = 0;
                server.shut = true;
            }
        }
        let has_room = server.port.unsent(output) < self.config.buffer_bytes;
        let is_sent = server.port.unsent(output) == 0;
        self.spares.take_back(output, &mut server.port.written);
        self.spares.take_back(&mut server.port.pending, &mut 0);
        let rearmed = server.port.socket.rearm(self.poll.registry());
        rearmed.map_err(ConnectionError::System)?;
        let holder = server.holder;
        let Some(client) = self.clients.get_mut(holder.0) else {
            return Ok(());
        };
        // What the server has had no room for, a reset would have destroyed directly, too.
        if let Some(error) = client.lost.take() {
            return Err(ConnectionError::ClientIo(error));
        }
        if client.port.ended && !server.shut && is_sent {
            let known = self.hub.client(holder);
            // Before the login is over whole frames wait for its end, and while others visit, for
            // theirs. After that, what is left of the client's bytes is an incomplete frame that
            // nobody can use. Of one that leaves, the connection may still be kept.
            let is_taken = !self.hub.is_visited(id)
                && known.is_some_and(|known| {
                    let is_whole = known.is_logged_in() || client.port.pending.is_empty();
                    known.accepts() && is_whole && !known.leaves
                });
            if is_taken && client.port.pending.is_empty() && self.hub.client_has_ended(holder) {
                return Ok(());
            }
            if is_taken {
                server.shut = true;
                let outcome = server.port.shut_down();
                outcome.map_err(ConnectionError::UpstreamIo)?;
            }
        }
        if has_room {
            self.make_ready(PortId::Client(holder));
        }
        Ok(())
    }

    fn flush_client(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        client.port.is_dirty = false;
        let Some(output) = self.hub.client_out(id) else {
            return Ok(());
        };
        if let Poll::Ready(Err(error)) = client.port.write(output) {
            return Err(ConnectionError::ClientIo(error));
        }
        let unsent = client.port.unsent(output);
        self.spares.take_back(output, &mut client.port.written);
        self.spares.take_back(&mut client.port.pending, &mut 0);
        let rearmed = client.port.socket.rearm(self.poll.registry());
        rearmed.map_err(ConnectionError::System)?;
        let link = client.link;
        if client.finishes {
            if unsent == 0 {
                // A client that is gone already does not mind.
                let _ = client.port.shut_down();
                self.end(id, End::Done);
            }
            return Ok(());
        }
        self.hub.give_back(id);
        if unsent < self.config.buffer_bytes {
            self.make_ready(PortId::Upstream(link));
        }
        self.rest(id)
    }

    /// Sees whether a client whose output has gone out can go on, or is to end.
    fn rest(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        while let Some(known) = self.hub.client(id) {
            if !known.is_held() && !known.keeps_waiting() {
                break;
            }
            match self.hub.go_on(id) {
                Some(Waits::Sockets) => break,
                Some(Waits::Cancel) => {
                    if !self.held.contains(&id) {
                        self.held.push(id);
                    }
                    break;
                }
                None => {
                    self.offer_pending(id)?;
                    self.make_dirty(PortId::Client(id));
                    if let Some(client) = self.clients.get_mut(id.0) {
                        let link = client.link;
                        self.make_dirty(PortId::Upstream(link));
                    }
                }
            }
        }
        self.make_ready_if_accepted(id);
        if self.drained_by.is_some() {
            return self.leave_if_idle(id);
        }
        if self.has_stale && self.is_stale(id) {
            return self.leave_if_idle(id);
        }
        self.becomes_idle(id);
        Ok(())
    }

    /// A client may have been told to wait while it had more to be read.
    #[inline]
    fn make_ready_if_accepted(&mut self, id: ClientId) {
        if self.hub.accepts(id) {
            self.make_ready(PortId::Client(id));
        }
    }

    /// Whether a client keeps a server connection that is to be closed.
    #[cold]
    fn is_stale(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0).filter(|it| it.pool.is_none());
        let server = client.and_then(|client| self.upstreams.get(client.link.0));
        server.is_some_and(|server| server.is_stale)
    }

    /// Ends a client that has nothing in flight: it is told to come again. Who has not logged in
    /// has nothing to lose.
    #[cold]
    fn leave_if_idle(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        let is_idle = self.is_between_transactions(id);
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        let known = self.hub.client(id);
        let is_login = known.is_some_and(|known| !known.is_logged_in());
        let has_more = client.port.may_read() || !client.port.pending.is_empty();
        if is_login || is_idle && !has_more {
            return Err(ConnectionError::ShuttingDown);
        }
        Ok(())
    }
}
