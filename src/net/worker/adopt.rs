//! How clients and server connections come to a worker.

use super::Worker;
use super::end::End;
use super::ports::{ClientPort, PortId, UpstreamPort};
use crate::error::ConnectionError;
use crate::hub;
use crate::ids::{ClientId, UpstreamId};
use crate::net::farewell::count_end;
use crate::net::news::{News, Tells};
use crate::net::orders::{Arrival, Joined, OpenClient, Reached, Via};
use crate::net::port::Port;
use crate::net::socket::Socket;
use crate::net::stream::Handover;
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// Wakes a worker when somebody needs the place of a client.
#[derive(Debug)]
struct Need {
    by: Arc<dyn Tells>,
    client: ClientId,
}

impl Wake for Need {
    fn wake(self: Arc<Self>) {
        self.by.tell(News::Needed(self.client));
    }
}

impl Worker {
    /// Takes in a client that arrives.
    pub(super) fn adopt(&mut self, arrival: Arrival) {
        let number = arrival.number;
        let outcome = match arrival.joined.via {
            Via::Warm(id) => return self.adopt_warm(arrival, id, true),
            Via::Adrift(_) => self.adopt_adrift(arrival),
            Via::Connection(_) | Via::Dial => self.try_adopt(arrival),
        };
        if let Err(error) = outcome {
            let outcome = Err(ConnectionError::System(error));
            count_end(number, self.hub.lent.counters(), &outcome);
        }
    }

    /// Takes a client and its server connection into the hub.
    fn try_adopt(&mut self, arrival: Arrival) -> io::Result<()> {
        let Arrival {
            mut joined,
            number,
            open,
        } = arrival;
        let Via::Connection(reached) = std::mem::replace(&mut joined.via, Via::Dial) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let Reached {
            upstream,
            said,
            endpoint,
        } = reached;
        let (id, link) = self.hub.arrive(hub::Arrival {
            number,
            key: joined.key.clone(),
            origin: Origin::formed(
                endpoint.number,
                &joined.login.database,
                (&joined.login.packet, &canonical(&joined.login.packet)),
            ),
            relay_only: joined.login.replication,
            deadline: self.millis(joined.deadline),
            is_second: joined.is_second,
        });
        if joined.client.tls.is_none() && upstream.tls.is_some() {
            self.hub.hide_binding(id);
        }
        let server = self.register(upstream, PortId::Upstream(link), Vec::new());
        if joined.gives_back && !joined.login.replication {
            self.hub.pool(id);
        }
        let server = server.map(|port| UpstreamPort {
            dies: match self.renewed {
                Some(renewed) if joined.began <= renewed => Some(renewed),
                _ => self.dies_at(link, Instant::now()),
            },
            is_stale: self.config.server_fast_close
                && self.renewed.is_some_and(|at| joined.began <= at),
            is_spare: joined.is_spare,
            place: joined.place.take(),
            way: Some(Arc::clone(&joined.way)),
            ..UpstreamPort::new(port, endpoint, id)
        });
        let seated = server.and_then(|server| {
            self.upstreams.insert(link.0, server);
            self.seat(joined, (id, link), number, open)
        });
        if seated.is_err() {
            self.upstreams.remove(link.0);
            self.hub.remove(id);
        }
        // What has been read has no event of its own.
        if seated.is_ok() && !said.is_empty() {
            self.guarded(PortId::Upstream(link), |worker, _| {
                worker.hear_said(link, said)
            });
        }
        // Nor has what is decrypted already.
        self.make_ready(PortId::Upstream(link));
        seated
    }

    /// Hands the hub what a server has said before it came here.
    fn hear_said(&mut self, id: UpstreamId, said: Vec<u8>) -> Result<(), ConnectionError> {
        let used = self.hub.upstream_bytes(id, &said);
        let used = used.map_err(ConnectionError::UpstreamProtocol)?;
        let Some(server) = self.upstreams.get_mut(id.0) else {
            return Ok(());
        };
        server.port.pending = said.get(used..).unwrap_or_default().to_vec();
        let holder = server.holder;
        self.offer_pending(holder)?;
        self.make_dirty(PortId::Client(holder));
        self.make_dirty(PortId::Upstream(id));
        Ok(())
    }

    pub(super) fn register(
        &self,
        handover: Handover,
        id: PortId,
        pending: Vec<u8>,
    ) -> io::Result<Port> {
        let socket = Socket::register(handover.socket, self.poll.registry(), id.token())?;
        Ok(Port::new(socket, handover.tls, pending))
    }

    /// Gives a client that the hub knows its port.
    pub(super) fn seat(
        &mut self,
        joined: Joined,
        (id, link): (ClientId, UpstreamId),
        number: u64,
        open: OpenClient,
    ) -> io::Result<()> {
        let gives_back = joined.gives_back;
        let port = self.register(joined.client, PortId::Client(id), joined.pending)?;
        self.clients.insert(
            id.0,
            ClientPort {
                port,
                link,
                pool: joined.pool.filter(|_| gives_back),
                adrift: None,
                number,
                lost: None,
                finishes: false,
                cancels: joined.key.cancelled,
                registration: None,
                began: joined.began,
                credential: joined.credential,
                way: joined.way,
                open,
                admission: joined.admission,
                received: 0,
                heard: self.hub.clock(),
                sent: 0,
                spell: None,
            },
        );
        // From here on it is found here.
        drop(joined.pass);
        self.makes_way(id);
        // What the client has sent behind its startup packet has no event of its own.
        self.guarded(PortId::Client(id), |worker, _| worker.offer_pending(id));
        self.make_dirty(PortId::Client(id));
        // Nor has what is decrypted already.
        self.make_ready(PortId::Client(id));
        Ok(())
    }

    /// A client whose login is relayed leaves if somebody needs its place, until the server has let
    /// it in.
    pub(super) fn makes_way(&mut self, id: ClientId) {
        let by = self.by();
        let Some(client) = self.clients.get_mut(id.0) else {
            return;
        };
        let Some(admission) = &mut client.admission else {
            return;
        };
        let waker = Waker::from(Arc::new(Need { by, client: id }));
        match admission.poll_is_over(&mut Context::from_waker(&waker)) {
            Poll::Pending => {}
            Poll::Ready(None) => client.admission = None,
            Poll::Ready(Some(error)) => self.end(id, End::Failed(error)),
        }
    }
}
