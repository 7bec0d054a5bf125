//! The end of a client: everything of it is dropped, and it is told why if it can hear it.

use super::Worker;
use super::ports::{ClientPort, PortId, Seeks};
use crate::client::Client;
use crate::error::ConnectionError;
use crate::ids::ClientId;
use crate::net::farewell::{CONNECTIONS, count_end, dismiss};
use crate::net::survey::shown;
use crate::wire::startup::{Packet, packet};
use std::time::Instant;

/// How a client ended.
#[derive(Debug)]
pub(super) enum End {
    Done,
    Failed(ConnectionError),
    /// A defect of ours, which nobody else is to suffer from.
    Panicked,
}

impl Worker {
    /// Idle clients go, and the others have until then.
    pub(super) fn drain(&mut self, until: Instant) {
        self.drained_by = Some(self.drained_by.map_or(until, |by| by.min(until)));
        self.end_held();
        self.close_all_parked();
        let slots = self.clients.slots().into_iter();
        slots.for_each(|slot| self.make_dirty(PortId::Client(ClientId(slot))));
    }

    /// Ends what is left.
    pub(super) fn cut_off(&mut self) {
        let left = self.clients.slots();
        if !left.is_empty() {
            tracing::warn!(connections = left.len(), "busy connections are cut off");
        }
        for slot in left {
            self.end(ClientId(slot), End::Failed(ConnectionError::ShuttingDown));
        }
    }

    /// Says in the log why a client ends, if that is wanted.
    pub(super) fn log_end(
        &self,
        id: ClientId,
        client: &ClientPort,
        outcome: &Result<(), ConnectionError>,
    ) {
        if !self.environment.logs.disconnections() {
            return;
        }
        let origin = self.hub.origin(id);
        let startup = origin.and_then(|origin| match packet(origin.packet()) {
            Ok(Some((Packet::Startup(startup), _))) => Some(startup),
            _ => None,
        });
        let user = startup.and_then(|startup| startup.parameter(b"user"));
        let named = client.way.name.as_deref();
        let database = named.or_else(|| origin.map(|origin| origin.database()));
        let [address, _] = client.port.socket.addresses();
        let reason = match outcome {
            Ok(()) => self.parting(id, client).to_owned(),
            Err(error) => error.to_string(),
        };
        let fault = outcome.as_ref().err().map(ConnectionError::fault);
        let known = self.hub.client(id);
        tracing::info!(
            target: CONNECTIONS,
            client = client.number,
            user = user.map(shown),
            database = database.map(shown),
            address = address.map_or_else(|| "local".to_owned(), |it| it.to_string()),
            seconds = client.began.elapsed().as_secs_f64(),
            queries = known.map(|known| known.counts.queries),
            reason,
            fault = fault.map(tracing::field::debug),
            "disconnected"
        );
    }

    /// Who has ended a session in which nothing went wrong.
    fn parting(&self, id: ClientId, client: &ClientPort) -> &'static str {
        let known = self.hub.client(id);
        let has_left = |known: &Client| known.is_parting || known.leaves || known.skip > 0;
        let upstream = self.hub.upstream(client.link);
        if upstream.is_some_and(|upstream| upstream.told_fatal) {
            "the server has ended the session"
        } else if !client.finishes || client.port.ended || known.is_some_and(has_left) {
            "the client has left"
        } else {
            "the server has closed the connection"
        }
    }

    /// Ends a client, and the server connection that is held for it.
    #[cold]
    pub(super) fn end(&mut self, id: ClientId, end: End) {
        let Some(client) = self.clients.remove(id.0) else {
            return;
        };
        self.settle(id, &client);
        if let Some(adrift) = &client.adrift {
            match &adrift.seeks {
                Seeks::Nothing => {}
                Seeks::Turn(ticket, _) => {
                    if let Some(pool) = &client.pool {
                        pool.forget(*ticket);
                    }
                }
                Seeks::Connection(_, opening, _) => opening.abort(),
            }
        }
        let upstream = self.upstreams.remove(client.link.0);
        let number = client.number;
        let outcome = match end {
            End::Done => Ok(()),
            End::Failed(error) => Err(error),
            End::Panicked => {
                tracing::error!(client = number, "a connection panicked");
                Ok(())
            }
        };
        let is_between = self.hub.is_between_messages(id);
        let mut unsent = match self.hub.client_out(id) {
            Some(output) => std::mem::take(output),
            None => Vec::new(),
        };
        unsent.drain(..client.port.written.min(unsent.len()));
        self.log_end(id, &client, &outcome);
        self.hub.remove(id);
        count_end(number, self.hub.lent.counters(), &outcome);
        drop(upstream);
        let Err(error) = outcome else { return };
        if !is_between {
            // A last word in the middle of a message would be read as part of it.
            return;
        }
        match client.port.release(self.poll.registry()) {
            Ok(socket) => {
                let (open, parting) = (client.open, self.parting.clone());
                self.runtime.spawn(async move {
                    dismiss(socket, unsent, error).await;
                    drop((open, parting));
                });
            }
            Err(error) => tracing::debug!(client = number, %error, "a last word could not be said"),
        }
    }
}
