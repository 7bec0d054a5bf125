//! How a client goes to the worker that has its next home.

use super::Worker;
use super::ports::{Adrift, ClientPort, PortId, Seeks};
use crate::ids::{ClientId, UpstreamId};
use crate::net::news::Berth;
use crate::net::orders::{Moving, Order};
use crate::net::port::Port;
use crate::net::socket::Socket;

impl Worker {
    /// Sends a client to the worker that has its next home.
    pub(super) fn move_out(&mut self, id: ClientId, berth: Berth) {
        let Some(mailbox) = self.environment.mailbox(berth.worker) else {
            return;
        };
        // What was written of its output stays written.
        let written = self
            .clients
            .get(id.0)
            .map_or(0, |client| client.port.written);
        if let Some(output) = self.hub.client_out(id) {
            output.drain(..written.min(output.len()));
        }
        let Some(mover) = self.hub.move_out(id) else {
            return;
        };
        let Some(client) = self.clients.remove(id.0) else {
            return;
        };
        let ClientPort {
            port,
            number,
            cancels,
            registration,
            began,
            credential,
            way,
            open,
            received,
            sent,
            adrift: Some(adrift),
            pool: Some(pool),
            ..
        } = client
        else {
            return;
        };
        let (pending, ended) = (port.pending.clone(), port.ended);
        let Ok(client) = port.release(self.poll.registry()) else {
            return;
        };
        mailbox.put(Order::Move(Box::new(Moving {
            mover,
            berth,
            client,
            pending,
            ended,
            cancels_seen: adrift.cancels_seen,
            endpoint: adrift.endpoint,
            number,
            cancels,
            registration,
            began,
            credential,
            way,
            pool,
            open,
            counted: (received, sent),
        })));
    }

    /// Takes in a client that comes from another worker, to this connection.
    pub(super) fn move_in(&mut self, moving: Moving) {
        let id = self.hub.move_in(moving.mover);
        let handover = moving.client;
        let token = PortId::Client(id).token();
        let socket = Socket::register(handover.socket, self.poll.registry(), token);
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(%error, "a client could not come to another worker");
                return self.hub.remove(id);
            }
        };
        let mut port = Port::new(socket, handover.tls, moving.pending);
        port.ended = moving.ended;
        if let Some(registration) = &moving.registration {
            registration.resume(None, self.by());
        }
        let client = ClientPort {
            port,
            link: UpstreamId::NONE,
            number: moving.number,
            lost: None,
            finishes: false,
            adrift: Some(Box::new(Adrift {
                endpoint: moving.endpoint,
                seeks: Seeks::Nothing,
                cancels_seen: moving.cancels_seen,
            })),
            pool: Some(moving.pool),
            cancels: moving.cancels,
            registration: moving.registration,
            began: moving.began,
            credential: moving.credential,
            way: moving.way,
            open: moving.open,
            admission: None,
            received: moving.counted.0,
            // It comes because it has sent something.
            heard: self.hub.clock(),
            sent: moving.counted.1,
            spell: None,
        };
        self.clients.insert(id.0, client);
        self.make_ready(PortId::Client(id));
        self.make_dirty(PortId::Client(id));
        self.come_home(id, moving.berth.take());
    }
}
