//! Clients that are welcomed without a server connection.

use super::Worker;
use super::end::End;
use super::ports::{Adrift, Seeks, UpstreamPort};
use crate::error::ConnectionError;
use crate::hub::Newcomer;
use crate::ids::{ClientId, UpstreamId};
use crate::metrics::Counter;
use crate::net::orders::{Arrival, Via};
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use crate::wire::frontend;
use std::io;
use std::sync::Arc;

impl Worker {
    /// Takes in a client that has no server connection yet.
    #[cold]
    pub(super) fn adopt_adrift(&mut self, arrival: Arrival) -> io::Result<()> {
        let Arrival {
            mut joined,
            number,
            open,
        } = arrival;
        let Via::Adrift(welcomed) = std::mem::replace(&mut joined.via, Via::Dial) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let (packet, database) = (&joined.login.packet, &joined.login.database);
        let form = canonical(packet);
        let newcomer = Newcomer {
            number,
            key: joined.key.clone(),
            origin: Origin::formed(welcomed.endpoint.number, database, (packet, &form)),
            precedent: welcomed.precedent,
            welcome: welcomed.welcome,
        };
        let Some((id, given)) = self.hub.welcome(newcomer) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        // It is let in.
        joined.admission = None;
        let prelude = std::mem::take(&mut joined.prelude);
        if let Some(output) = self.hub.client_out(id) {
            output.splice(..0, prelude);
        }
        let (cancels, registry) = (
            Arc::clone(&joined.key.cancelled),
            &self.environment.registry,
        );
        let registration = registry.register(given, None, cancels, self.by());
        if let Err(error) = self.seat(joined, (id, UpstreamId::NONE), number, open) {
            self.hub.remove(id);
            return Err(error);
        }
        self.hub.lent.counters().add(Counter::Homeless, 1);
        let is_registered = registration.is_some();
        if let Some(client) = self.clients.get_mut(id.0) {
            client.registration = registration;
            client.adrift = Some(Box::new(Adrift {
                endpoint: welcomed.endpoint,
                seeks: Seeks::Nothing,
                cancels_seen: client.cancels.requested(),
            }));
        }
        if !is_registered {
            // A request with this key would mean another client.
            let taken = io::ErrorKind::AlreadyExists.into();
            self.end(id, End::Failed(ConnectionError::System(taken)));
        }
        self.has_sent_adrift(id);
        Ok(())
    }

    /// How the session of this connection of a pool began is how others of its identity would.
    pub(super) fn sets_precedent(&self, id: UpstreamId) {
        if let Some(identity) = self.hub.identity(id)
            && self
                .upstreams
                .get(id.0)
                .is_some_and(UpstreamPort::is_of_pool)
            && let Some(precedent) = self.hub.precedent(id)
        {
            self.warm.follows(identity, precedent);
        }
    }

    /// A connection has ended that was not told to: what the server would tell a login now has to
    /// be found out anew.
    #[cold]
    pub(super) fn is_lost(&self, id: UpstreamId) {
        let server = self.upstreams.get(id.0);
        let holder = server.and_then(|server| self.clients.get(server.holder.0));
        let has_left = holder.is_some_and(|client| client.port.ended);
        if let Some(identity) = self.hub.identity(id)
            && server.is_some_and(UpstreamPort::is_of_pool)
            && !has_left
        {
            self.warm.doubts(identity);
        }
    }

    /// A client without a home may have sent something: it needs one, unless it leaves.
    pub(super) fn has_sent_adrift(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id.0) else {
            return;
        };
        let pending = &*client.port.pending;
        let leaves = pending.starts_with(frontend::TERMINATE_FRAME);
        let may_leave = frontend::TERMINATE_FRAME.starts_with(pending);
        if leaves || may_leave && client.port.ended {
            self.end(id, End::Done);
        } else if !may_leave {
            self.seek_home(id);
        }
    }
}
