//! Server connections of this worker that have no client: how they get there, and how they go.

use super::Worker;
use super::end::End;
use super::ports::{PortId, UpstreamPort};
use crate::client::Login;
use crate::error::ConnectionError;
use crate::hub::{LoginOutcome, Parking};
use crate::ids::{ClientId, UpstreamId};
use crate::metrics::Counter;
use crate::net::farewell::{count_end, hear_out};
use crate::net::news::Place;
use crate::net::orders::{Arrival, Joined, Via};
use crate::net::session::Session;
use crate::net::visitor::redial;
use crate::net::warm::Offer;
use crate::wire::Error;
use crate::wire::frontend;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A tenth of the lifetime of a server connection, by which one dies earlier than another: those
/// that were opened together are not all replaced at once.
const JITTER: u32 = 10;

/// When a server connection is closed that was opened then, whoever would want it. The number is
/// its own.
fn dies_at(lifetime: Duration, opened: Instant, number: u64) -> Option<Instant> {
    // Any spread will do; such numbers have none.
    let hash = u32::try_from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).unwrap_or(u32::MAX);
    let most = lifetime / JITTER;
    let earlier = most.mul_f64(f64::from(hash) / f64::from(u32::MAX));
    (!lifetime.is_zero())
        .then(|| opened.checked_add(lifetime - earlier))
        .flatten()
}

impl Worker {
    /// When this server connection is closed that was opened then, whoever would want it.
    pub(super) fn dies_at(&self, id: UpstreamId, opened: Instant) -> Option<Instant> {
        let since = opened.saturating_duration_since(self.started).as_micros();
        let number = u64::try_from(since).unwrap_or_default() ^ (id.0.index() as u64) << 32;
        dies_at(self.config.server_lifetime, opened, number)
    }

    /// Server connections become as old as the configuration says by now, but for those that are to
    /// be closed already.
    pub(super) fn ages_otherwise(&mut self) {
        let now = Instant::now();
        for slot in self.upstreams.slots() {
            let Some(server) = self.upstreams.get(slot) else {
                continue;
            };
            let dies = match server.dies {
                Some(dies) if dies <= now => continue,
                _ => self.dies_at(UpstreamId(slot), server.opened),
            };
            if let Some(server) = self.upstreams.get_mut(slot) {
                server.dies = dies;
            }
        }
    }

    /// The server has decided about a login.
    pub(super) fn login_decided(&mut self, id: ClientId, outcome: LoginOutcome) {
        let Some(client) = self.clients.get_mut(id.0) else {
            return;
        };
        client.admission = None;
        // From here on nothing is shown to the server for it, unless it may have to log in again.
        let credential = match client.pool {
            Some(_) => client.credential.clone(),
            None => client.credential.take(),
        };
        let Some(packet) = self.hub.identity(client.link).filter(|_| self.warm.is_on()) else {
            return;
        };
        let number = credential.as_ref().map_or(0, |it| it.number());
        match outcome {
            LoginOutcome::Open => {
                self.login_took = client.began.elapsed();
                self.warm.accepted((packet, number), client.began);
            }
            LoginOutcome::Guarded | LoginOutcome::Refused => self.warm.refused(packet),
        }
        if outcome == LoginOutcome::Open
            && let Some(server) = self.upstreams.get_mut(client.link.0)
            && let Some(place) = &server.place
            && let Some(origin) = self.hub.origin(id)
        {
            place.keeper().is_entered(&|| Session {
                startup: origin.packet().to_vec(),
                database: origin.database().to_vec(),
                credential: credential.clone(),
                way: Arc::clone(&client.way),
                endpoint: Arc::clone(&server.endpoint),
            });
        }
        if outcome == LoginOutcome::Guarded
            && let Some(hint) = self.config.warmth_hint()
            && self.warm.is_to_tell()
        {
            tracing::info!("{hint}");
        }
    }

    /// A client has left whose server connection may serve another.
    #[cold]
    pub(super) fn park(&mut self, id: ClientId) {
        let Some(mut client) = self.clients.remove(id.0) else {
            return;
        };
        self.settle(id, &client);
        // From here on its key cancels nothing, so what was not cancelled will not be.
        client.registration = None;
        client.port.say_farewell();
        let link = client.link;
        self.log_end(id, &client, &Ok(()));
        count_end(client.number, self.hub.lent.counters(), &Ok(()));
        let is_alive = self.upstreams.get_mut(link.0).is_some_and(|server| {
            let is_young = server.dies.is_none_or(|dies| Instant::now() < dies);
            is_young && !server.shut && !server.port.ended && server.port.pending.is_empty()
        });
        if !is_alive || self.drained_by.is_some() {
            self.upstreams.remove(link.0);
            self.hub.remove(id);
            return;
        }
        match self.hub.park(id) {
            Some(Parking::Parked) => self.offer(link),
            Some(Parking::Resets | Parking::Learns) => {
                self.parked.push(link);
                self.make_dirty(PortId::Upstream(link));
                let now = Instant::now();
                if let Some(server) = self.upstreams.get_mut(link.0) {
                    server.asked = Some(now);
                }
                self.sweeps_after(self.config.server_idle_timeout);
            }
            None => drop(self.upstreams.remove(link.0)),
        }
    }

    /// A connection without a client is fit for another.
    pub(super) fn offer(&mut self, id: UpstreamId) {
        let (Some(server), Some(packet)) = (self.upstreams.get_mut(id.0), self.hub.identity(id))
        else {
            return;
        };
        if !self.parked.contains(&id) {
            self.parked.push(id);
        }
        let now = Instant::now();
        server.parked = Some(now);
        server.asked = None;
        let is_spare = std::mem::take(&mut server.is_spare);
        let known = self.hub.upstream(id);
        let holds = known.is_some_and(|known| !known.standing.mirror.is_empty());
        let pool = server.place.as_ref().map(Place::pool);
        let keeper = server.place.as_ref().map(Place::keeper);
        let offer = Offer {
            is_spare,
            holds,
            pool: pool.unwrap_or_default(),
        };
        let is_wanted = self.halted.is_none() || !self.is_unwanted(id);
        let is_listed = is_wanted && self.warm.offer(packet, (self.number, id), offer);
        self.sweeps_after(self.config.server_idle_timeout);
        if is_listed {
            self.hub.lent.counters().add(Counter::Parked, 1);
            self.sets_precedent(id);
        } else {
            self.close_parked(id);
        }
        if let Some(pool) = keeper {
            pool.serve();
        }
    }

    /// Something has begun to wait, which must not do so for ever.
    pub(super) fn sweeps_after(&mut self, time: Duration) {
        let due = Instant::now().checked_add(time);
        self.swept_at = [self.swept_at, due].into_iter().flatten().min();
    }

    /// Closes a connection that has no client.
    #[cold]
    pub(super) fn close_parked(&mut self, id: UpstreamId) {
        let Some(at) = self.parked.iter().position(|parked| *parked == id) else {
            return;
        };
        self.parked.swap_remove(at);
        if let Some(packet) = self.hub.identity(id) {
            self.warm.withdraw(packet, self.number, id);
        }
        let unsent = self.hub.upstream_out(id).map(std::mem::take);
        let server = self.upstreams.remove(id.0);
        self.hub.discard(id);
        let place = server.and_then(|server| self.hang_up(server, unsent.unwrap_or_default()));
        self.is_unfit(id, place);
    }

    /// What a server may still have to say on a connection without a client is not waited for.
    fn expects_nothing(&mut self, id: UpstreamId) {
        if let Some(server) = self.upstreams.get_mut(id.0) {
            server.asked = None;
        }
    }

    /// Says to a server, behind what is `unsent`, that the connection ends. Returns the place that
    /// it had.
    fn hang_up(&self, mut server: UpstreamPort, mut unsent: Vec<u8>) -> Option<Place> {
        let written = std::mem::take(&mut server.port.written);
        unsent.drain(..written.min(unsent.len()));
        unsent.extend_from_slice(frontend::TERMINATE_FRAME);
        if server.asked.is_none() {
            // What it does not hear, it sees.
            let _ = server.port.write(&mut unsent);
        } else if !server.port.ended
            && let Ok(socket) = server.port.release(self.poll.registry())
        {
            self.runtime.spawn(hear_out(socket, unsent));
        }
        server.place
    }

    /// Reads what a server says to nobody.
    #[cold]
    pub(super) fn hear_parked(&mut self, id: UpstreamId) {
        if self.read_parked(id).is_err() {
            self.is_lost(id);
            self.expects_nothing(id);
            self.close_parked(id);
        }
    }

    fn read_parked(&mut self, id: UpstreamId) -> Result<(), ConnectionError> {
        let Some(server) = self.upstreams.get_mut(id.0) else {
            return Ok(());
        };
        let count = match server.port.read(&mut self.scratch) {
            Poll::Pending => return Ok(()),
            Poll::Ready(count) => count.map_err(ConnectionError::UpstreamIo)?,
        };
        if server.port.ended {
            return Err(ConnectionError::UpstreamProtocol(Error::StartupLayout));
        }
        let (hub, spares) = (&mut self.hub, &mut self.spares);
        let mut parking = None;
        let taken = server.port.take(&self.scratch, count, spares, |bytes| {
            let (used, decided) = hub.parked_bytes(id, bytes)?;
            parking = decided;
            Ok(used)
        });
        taken.map_err(ConnectionError::UpstreamProtocol)?;
        if parking == Some(Parking::Parked) {
            self.is_fit(id);
        }
        self.make_dirty(PortId::Upstream(id));
        self.make_ready(PortId::Upstream(id));
        Ok(())
    }

    /// Closes what is no longer listed, or has waited for too long, unless it was promised to
    /// somebody who has not come yet.
    pub(super) fn sweep(&mut self) {
        let now = Instant::now();
        let mut promised = Vec::new();
        for id in self.parked.clone() {
            let (Some(server), Some(packet)) =
                (self.upstreams.get_mut(id.0), self.hub.identity(id))
            else {
                continue;
            };
            // One that is being reset is not listed yet.
            let is_listed = match server.parked {
                Some(_) => self.warm.has(packet, self.number, id),
                None => true,
            };
            let is_old = server.dies.is_some_and(|dies| dies <= now);
            let is_over = self.rests_until(id, now).is_some_and(|until| until <= now);
            let goes = !is_listed || is_over || is_old;
            // Asked about last: it may be promised until it is taken off the list.
            if goes && !self.lets_go(id) {
                promised.push(id);
                continue;
            }
            if is_over {
                self.expects_nothing(id);
            }
            if goes {
                self.close_parked(id);
            }
        }
        // What was promised is offered again, or taken.
        let rest = self.parked.iter().filter(|id| !promised.contains(id));
        let next = rest.filter_map(|id| {
            let dies = self.upstreams.get(id.0)?.dies;
            let rests = self.rests_until(*id, now);
            [rests, dies].into_iter().flatten().min()
        });
        self.swept_at = next.min();
    }

    fn lets_go(&self, id: UpstreamId) -> bool {
        let identity = self.hub.identity(id);
        identity.is_none_or(|identity| self.warm.lets_go(identity, self.number, id))
    }

    /// Until when a connection without a client may stay so; of one that its pool keeps, when it is
    /// looked at again whether it still does.
    fn rests_until(&self, id: UpstreamId, now: Instant) -> Option<Instant> {
        let server = self.upstreams.get(id.0)?;
        let Some(since) = server.parked else {
            return self.answers_by(id, server.asked?);
        };
        let is_kept = || server.place.as_ref().is_some_and(Place::is_kept);
        let until = since.checked_add(self.config.server_idle_timeout)?;
        match until <= now && is_kept() {
            true => now.checked_add(self.config.server_idle_timeout),
            false => Some(until),
        }
    }

    /// Closes all connections without a client.
    pub(super) fn close_all_parked(&mut self) {
        for id in self.parked.clone() {
            self.close_parked(id);
        }
    }

    /// Closes all connections without a client, which are no longer what a login would lead to,
    /// but for those on which something is asked for others: where it is not known what texts do,
    /// any of them may change who may log in, and it would never be known if nobody heard the
    /// answer. Whether such a connection is still fit is looked at when it has answered.
    pub(super) fn close_unfit(&mut self) {
        for id in self.parked.clone() {
            if !self.hub.is_learning(id) {
                self.close_parked(id);
            }
        }
    }

    /// Gives a client a warm connection, or has it connected otherwise if that is no longer fit.
    pub(super) fn adopt_warm(&mut self, arrival: Arrival, id: UpstreamId, may_ask: bool) {
        let Arrival {
            mut joined,
            number,
            open,
        } = arrival;
        if let Some(berth) = joined.berth.take() {
            self.warm.redeems(self.number, berth.take());
        }
        let key = joined.key.clone();
        let woken = match self.is_parked(id) {
            true => self.hub.wake(id, !may_ask, (number, key)),
            false => None,
        };
        let Some(client) = woken else {
            let arrival = Arrival {
                joined,
                number,
                open,
            };
            return self.ask_first(arrival, id, may_ask);
        };
        // It is let in.
        joined.admission = None;
        // It comes before what the server would say.
        let prelude = std::mem::take(&mut joined.prelude);
        if let Some(output) = self.hub.client_out(client) {
            output.splice(..0, prelude);
        }
        self.parked.retain(|parked| *parked != id);
        if let Some(server) = self.upstreams.get_mut(id.0) {
            server.parked = None;
            server.holder = client;
            server.way = Some(Arc::clone(&joined.way));
        }
        if joined.gives_back {
            self.hub.pool(client);
            self.make_dirty(PortId::Upstream(id));
        }
        self.hub.lent.counters().add(Counter::Woken, 1);
        if let Err(error) = self.seat(joined, (client, id), number, open) {
            self.upstreams.remove(id.0);
            self.hub.remove(client);
            let outcome = Err(ConnectionError::System(error));
            count_end(number, self.hub.lent.counters(), &outcome);
        }
    }

    /// The server has no room for a client: it gets that of connections without one, if there are
    /// any.
    #[cold]
    pub(super) fn make_room_for(&mut self, id: ClientId) {
        let had_any = self.warm.drop_all();
        self.close_all_parked();
        let again = had_any.then(|| self.log_in_again(id)).flatten();
        match again {
            Some(again) => self.redial(again),
            None => {
                self.hub.tell_crowded(id);
                self.make_dirty(PortId::Client(id));
            }
        }
    }

    /// Takes a client that is not logged in off its server connection.
    fn log_in_again(&mut self, id: ClientId) -> Option<Arrival> {
        let known = self.hub.client(id)?;
        let origin = &self.hub.upstream(known.link)?.standing.origin;
        let login = Login {
            packet: origin.packet().to_vec(),
            database: origin.database().to_vec(),
            user: Vec::new(),
            replication: false,
        };
        let key = known.key.clone();
        let database = self.database_of(id)?.to_vec();
        let mut client = self.clients.remove(id.0)?;
        let place = self.upstreams.remove(client.link.0);
        let place = place.and_then(|mut server| server.place.take());
        self.hub.remove(id);
        let now = Instant::now();
        let joined = Joined {
            credential: client.credential.take(),
            prelude: Vec::new(),
            pending: std::mem::take(&mut client.port.pending),
            client: client.port.release(self.poll.registry()).ok()?,
            via: Via::Dial,
            login,
            way: client.way,
            key,
            deadline: now + self.config.login_timeout,
            began: now,
            is_spare: false,
            is_second: true,
            gives_back: client.pool.is_some(),
            pool: client.pool.take(),
            place,
            berth: None,
            pass: self.environment.halts.again(&database),
            // It goes with what counts it as open.
            attendee: None,
            admission: client.admission.take(),
        };
        Some(Arrival {
            joined,
            number: client.number,
            open: client.open,
        })
    }

    /// Has a client connected that was to have a connection of this worker.
    pub(super) fn redial(&self, mut arrival: Arrival) {
        let (environment, mailbox) = (Arc::clone(&self.environment), self.mailbox.clone());
        arrival.joined.via = Via::Dial;
        self.runtime.spawn(redial(arrival, environment, mailbox));
    }

    /// Ends what a port belongs to after it has failed.
    pub(super) fn failed(&mut self, id: PortId, end: End) {
        let client = match id {
            PortId::Client(id) => Some(id),
            PortId::Upstream(id) => self.upstreams.get_mut(id.0).map(|server| server.holder),
        };
        if let PortId::Upstream(id) = id {
            self.close_parked(id);
        }
        if let Some(client) = client {
            self.end(client, end);
        }
    }
}
