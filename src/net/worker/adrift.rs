//! Clients of a pool: how they leave their homes, wait, and come home.
//!
//! A home is left only when somebody waits for one: then at once by whoever is or becomes idle, and
//! by who has been so for the longest time first. As long as there are enough server connections
//! every client keeps its own, and nothing here costs it more than a look whether somebody waits.

use super::Worker;
use super::end::End;
use super::ports::{Adrift, ClientPort, PortId, Seeks, UpstreamPort};
use crate::client::CancelKey;
use crate::error::ConnectionError;
use crate::hub::{self, Homecoming, Leaving};
use crate::ids::{ClientId, UpstreamId};
use crate::metrics::Counter;
use crate::net::news::{Place, Tells};
use crate::net::orders::{Opened, Reached};
use crate::net::reopen::{Wanted, reopen};
use crate::net::session::Session;
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

/// Bytes of a client that are read before it has a home.
const MOST: usize = super::READ;

impl Worker {
    /// By which others tell this worker something.
    pub(super) fn by(&self) -> Arc<dyn Tells> {
        Arc::clone(&self.by)
    }

    /// A client may have become idle: it leaves its home if somebody waits for one.
    #[inline]
    pub(super) fn becomes_idle(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(id.0) else {
            return;
        };
        if let Some(pool) = &client.pool
            && client.adrift.is_none()
            && self.drained_by.is_none()
            && self.hub.could_leave(id)
            && match self.halted.is_some() && self.is_paused(id) {
                // What it has sent is taken when it has a home again.
                true => is_there(client),
                false => is_silent(client) && pool.could_give(),
            }
        {
            self.leave_home(id);
        }
    }

    /// Somebody waits for a connection of this pool: those leave their homes that could.
    #[cold]
    pub(super) fn yield_homes(&mut self, number: u64) {
        let mut idle = Vec::new();
        let mut pool = None;
        for slot in self.upstreams.slots() {
            let Some(server) = self.upstreams.get(slot) else {
                continue;
            };
            let is_of_pool = server.place.as_ref().is_some_and(|it| it.pool() == number);
            let holder = server.holder;
            if let Some(client) = self.clients.get(holder.0).filter(|_| is_of_pool)
                && client.adrift.is_none()
                && is_silent(client)
                && self.hub.could_leave(holder)
            {
                pool.clone_from(&client.pool);
                idle.push((self.hub.last_at_home(holder), holder));
            }
        }
        let Some(pool) = pool.filter(|_| self.drained_by.is_none()) else {
            return;
        };
        idle.sort_unstable();
        for (_, id) in idle {
            if !pool.could_give() {
                return;
            }
            self.leave_home(id);
        }
    }

    /// A client leaves its home, if nothing is against that.
    fn leave_home(&mut self, id: ClientId) {
        let Some(link) = self.clients.get(id.0).map(|client| client.link) else {
            return;
        };
        match self.hub.prepares_to_leave(id) {
            Leaving::Stays => return,
            Leaving::Asks => return self.make_dirty(PortId::Upstream(link)),
            Leaving::Goes => {}
        }
        let (Some(client), Some(server)) =
            (self.clients.get_mut(id.0), self.upstreams.get_mut(link.0))
        else {
            return;
        };
        // The answer to somebody's request may be on its way; that of nobody's is not.
        if server.shut || server.port.ended || !server.port.pending.is_empty() {
            return;
        }
        // From here on no request reaches the connection that is not counted already.
        if let Some(registration) = &client.registration {
            registration.suspend();
        }
        let Some(is_fit) = self.hub.leave_home(id) else {
            return;
        };
        client.adrift = Some(Box::new(Adrift {
            endpoint: Arc::clone(&server.endpoint),
            seeks: Seeks::Nothing,
            cancels_seen: client.cancels.requested(),
        }));
        client.link = UpstreamId::NONE;
        server.holder = ClientId::NONE;
        let is_young = server.dies.is_none_or(|dies| Instant::now() < dies);
        self.parked.push(link);
        self.hub.lent.counters().add(Counter::HomesLeft, 1);
        match is_fit && is_young {
            true => self.offer(link),
            false => self.close_parked(link),
        }
    }

    /// Reads a client that is adrift.
    #[cold]
    pub(super) fn hear_adrift(&mut self, id: ClientId) -> Result<(), ConnectionError> {
        let Some(client) = self.clients.get_mut(id.0) else {
            return Ok(());
        };
        if client.port.ended || client.finishes || client.port.pending.len() >= MOST {
            return Ok(());
        }
        if let Some(adrift) = &mut client.adrift
            && client.port.pending.is_empty()
        {
            // What was to be cancelled before is over.
            adrift.cancels_seen = client.cancels.requested();
        }
        match client.port.read(&mut self.scratch) {
            Poll::Ready(count) => {
                let count = count.map_err(ConnectionError::ClientIo)?;
                client.received += count as u64;
                client.heard = self.hub.clock();
                let counters = self.hub.lent.counters();
                counters.add(Counter::BytesFromClients, count as u64);
                let (scratch, spares) = (&self.scratch, &mut self.spares);
                let nothing = |_: &[u8]| Ok::<_, ConnectionError>(0);
                client.port.take(scratch, count, spares, nothing)?;
            }
            Poll::Pending => {
                if client.port.has_unsent_answer() {
                    self.make_dirty(PortId::Client(id));
                }
                return Ok(());
            }
        }
        self.make_ready(PortId::Client(id));
        self.has_sent_adrift(id);
        Ok(())
    }

    /// Has a connection opened for a client.
    pub(super) fn reopen(&mut self, id: ClientId, ticket: u64, place: Place) {
        let (Some(client), Some(origin)) = (self.clients.get(id.0), self.hub.origin(id)) else {
            return;
        };
        let Some(adrift) = &client.adrift else {
            return;
        };
        let Seeks::Turn(_, since) = adrift.seeks else {
            return;
        };
        let wanted = Wanted {
            client: id,
            ticket,
            place,
            session: Session {
                startup: origin.packet().to_vec(),
                database: origin.database().to_vec(),
                credential: client.credential.clone(),
                way: Arc::clone(&client.way),
                endpoint: Arc::clone(&adrift.endpoint),
            },
            since,
        };
        let (environment, mailbox) = (Arc::clone(&self.environment), self.mailbox.clone());
        let opening = self.runtime.spawn(reopen(wanted, environment, mailbox));
        self.set_seeks(id, Seeks::Connection(ticket, opening.abort_handle(), since));
    }

    /// A connection was opened for a client, or could not be.
    pub(super) fn opened(&mut self, opened: Opened) {
        if opened.client == ClientId::NONE {
            return self.stock(opened);
        }
        let adrift = self
            .clients
            .get(opened.client.0)
            .and_then(|it| it.adrift.as_ref());
        let is_wanted = adrift.is_some_and(|adrift| {
            matches!(adrift.seeks, Seeks::Connection(ticket, ..) if ticket == opened.ticket)
        });
        if !is_wanted {
            return;
        }
        let id = opened.client;
        match opened.outcome {
            Ok(reached) => {
                let login = (opened.startup, opened.database, opened.logins);
                let known = self.hub.client(id);
                let guest = known.map(|known| (known.number, known.key.clone()));
                let link = guest.and_then(|it| self.take_in(it, reached, login, opened.place));
                let Some(link) = link else {
                    return self.end(id, End::Failed(ConnectionError::SessionChanged));
                };
                self.has_waited(id);
                self.come_home(id, link);
            }
            Err(error) => self.end(id, End::Failed(error)),
        }
    }

    /// A connection was opened for nobody yet.
    fn stock(&mut self, opened: Opened) {
        let key = CancelKey {
            secret: [0; 32],
            cancelled: Arc::default(),
        };
        let login = (opened.startup, opened.database, opened.logins);
        if let Ok(reached) = opened.outcome
            && let Some(link) = self.take_in((0, key), reached, login, opened.place)
        {
            // Nobody has come yet who would tell what clients call its database.
            if let Some(server) = self.upstreams.get_mut(link.0) {
                server.way = Some(opened.way);
            }
            self.offer(link);
        }
    }

    /// Takes in a connection on which the proxy has logged in for a client that has this number and
    /// this key, or for nobody. Returns its name if it can be used.
    fn take_in(
        &mut self,
        (number, key): (u64, CancelKey),
        reached: Reached,
        (startup, database, logins): (Vec<u8>, Vec<u8>, u64),
        place: Place,
    ) -> Option<UpstreamId> {
        let Reached {
            upstream,
            said,
            endpoint,
        } = reached;
        // Nobody is greeted: whoever logs in here is there for as long as that takes.
        let (guest, link) = self.hub.arrive(hub::Arrival {
            number,
            key,
            origin: Origin::formed(endpoint.number, &database, (&startup, &canonical(&startup))),
            relay_only: false,
            deadline: Millis(u64::MAX),
            is_second: true,
        });
        let used = self.hub.upstream_bytes(link, &said);
        let is_used = used.is_ok_and(|used| used == said.len());
        if !self.hub.vacate(guest, link) {
            return None;
        }
        let port = self.register(upstream, PortId::Upstream(link), Vec::new());
        let (Ok(port), true) = (port, is_used) else {
            self.hub.discard(link);
            return None;
        };
        // What new logins find may have changed since this one began: no other client gets it.
        let is_current = self.hub.lent.shapes.logins() == logins;
        let dies = self.dies_at(link, Instant::now());
        let server = UpstreamPort {
            dies: if is_current {
                dies
            } else {
                Some(Instant::now())
            },
            place: Some(place),
            parked: Some(Instant::now()),
            process: self.hub.server_key(link).map(|(pid, _)| pid),
            ..UpstreamPort::new(port, endpoint, ClientId::NONE)
        };
        self.upstreams.insert(link.0, server);
        self.parked.push(link);
        self.make_ready(PortId::Upstream(link));
        Some(link)
    }

    /// A client is given a connection that nobody has.
    pub(super) fn come_home(&mut self, id: ClientId, link: UpstreamId) {
        self.warm.redeems(self.number, link);
        let is_alive = self
            .upstreams
            .get_mut(link.0)
            .is_some_and(|server| server.parked.is_some() && !server.shut && !server.port.ended);
        let is_alive = is_alive && self.parked.contains(&link);
        let found = match is_alive {
            true => self.hub.come_home(id, link),
            false => Homecoming::Gone,
        };
        match found {
            Homecoming::Home | Homecoming::Asks => {
                self.parked.retain(|parked| *parked != link);
                if let Some(server) = self.upstreams.get_mut(link.0) {
                    server.parked = None;
                    server.holder = id;
                    server.way = self.clients.get(id.0).map(|client| Arc::clone(&client.way));
                }
                if let Some(client) = self.clients.get_mut(id.0) {
                    client.link = link;
                }
                self.make_dirty(PortId::Upstream(link));
                if found == Homecoming::Home {
                    self.at_home(id);
                }
            }
            Homecoming::Unlike => {
                self.offer(link);
                self.end(id, End::Failed(ConnectionError::SessionChanged));
            }
            Homecoming::Gone => {
                self.close_parked(link);
                self.seek_home(id);
            }
        }
    }

    /// The server has said how a session began.
    pub(super) fn settled(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get(id.0) {
            self.sets_precedent(client.link);
        }
        match self.hub.settled(id) {
            Some(Homecoming::Home) => self.at_home(id),
            Some(_) => self.end(id, End::Failed(ConnectionError::SessionChanged)),
            // It was about to leave, if it may do so still.
            None => {
                self.guarded(PortId::Client(id), |worker, _| worker.offer_pending(id));
                self.make_dirty(PortId::Client(id));
            }
        }
    }

    /// A client has a home again: what it has sent is taken, and its key means the new connection.
    fn at_home(&mut self, id: ClientId) {
        let by = self.by();
        let Some(client) = self.clients.get_mut(id.0) else {
            return;
        };
        let link = client.link;
        let seen = client.adrift.take().map(|adrift| adrift.cancels_seen);
        let key = self.hub.server_key(link);
        let endpoint = self
            .upstreams
            .get(link.0)
            .map(|server| Arc::clone(&server.endpoint));
        if let (Some((pid, secret)), Some(endpoint)) = (key, endpoint)
            && let Some(registration) = &client.registration
        {
            registration.resume(Some((pid, secret, endpoint)), by);
        }
        // What has come before can have reached no server.
        if seen.is_some_and(|seen| seen != client.cancels.requested()) {
            let used = self.hub.cancel_adrift(id, &client.port.pending);
            client.port.pending.drain(..used);
        }
        self.hub.lent.counters().add(Counter::HomesFound, 1);
        self.guarded(PortId::Client(id), |worker, _| worker.offer_pending(id));
        self.make_dirty(PortId::Client(id));
        self.make_dirty(PortId::Upstream(link));
        self.make_ready(PortId::Client(id));
    }

    /// A connection that was promised to somebody is there for others again.
    pub(super) fn returned_berth(&mut self, id: UpstreamId) {
        self.warm.redeems(self.number, id);
        let server = self.upstreams.get(id.0);
        if server.is_some_and(|server| server.parked.is_some()) && self.parked.contains(&id) {
            self.offer(id);
        }
    }
}

/// Whether nothing waits to be read of a client, and none that was read waits.
fn is_silent(client: &ClientPort) -> bool {
    client.port.pending.is_empty() && is_there(client) && !client.port.may_read()
}

/// Whether a client has not ended, as far as was seen.
const fn is_there(client: &ClientPort) -> bool {
    !client.port.ended && !client.finishes && client.lost.is_none()
}
