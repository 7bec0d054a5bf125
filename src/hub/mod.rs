//! The hub of one worker: its clients and its server connections, which meet by name.
//!
//! Sans-IO: it reads no clock and no socket. Its owner calls, in this order,
//!
//! 1. [`Hub::tick`] with the time, before anything else in a turn;
//! 2. [`Hub::client_bytes`] and [`Hub::upstream_bytes`] with what was read, both of which return
//!    how many bytes they used; the rest is offered again with what comes next. After the latter
//!    the client's unused bytes are offered again: [`Hub::accepts`] tells whether they are taken;
//! 3. [`Hub::poll`] until there is no task left;
//! 4. and sends what lies in [`Hub::client_out`] and [`Hub::upstream_out`].
//!
//! Bytes that nobody has to look at may first go by [`Hub::forward_client`] and
//! [`Hub::forward_upstream`]. A client begins with [`Hub::arrive`] and ends with [`Hub::remove`].
//! [`Hub::client_finishes`] and [`Hub::upstream_gone`] tell that a socket has ended. When the
//! output of a client has gone out, [`Hub::go_on`] and [`Hub::give_back`] follow.
//!
//! Invariants:
//! - a name never means another client, or another connection, than the one it was given to;
//! - a server connection is held for one client from its login to its end, each naming the other,
//!   and then for nobody (`warm`), or for another, or it ends. Every reply that its ledger owes
//!   goes to that client, and the names there agree with that, which builds with assertions check;
//!   the answers to visits (`guests`) are owed beside the ledger, while that is idle;
//! - a client to which a dying connection owes something gets one answer that says so, unless the
//!   client has finished, or is in the middle of a reply, or the server has said why;
//! - everything of a client is dropped with it.

mod adrift;
mod fitness;
mod guests;
mod hop;
mod hosts;
mod insist;
mod loose;
mod moment;
mod newcomer;
mod outcome;
mod pace;
mod task;
mod timers;
mod warm;

use crate::client::Client;
use crate::convert::{Lent, Settings};
use crate::ids::{Arena, ClientId, UpstreamId};
use crate::oracle::Lesson;
use crate::reason::Homing;
use crate::standing::{Reset, Standing};
use crate::statement::{Micros, Millis, Plans, Statement, Verdict};
pub use crate::upstream::Welcome;
use crate::upstream::visit::Visits;
use crate::upstream::{Manners, Upstream};
use crate::wire::Error;
use adrift::Adrift;
pub use adrift::{Homecoming, Leaving, Mover};
use fitness::{Departure, Read};
use guests::Sharing;
use hop::Hop;
pub use insist::Unheard;
pub use moment::{Activity, Moment};
pub use newcomer::{Newcomer, Precedent};
pub use outcome::{LoginOutcome, is_welcomed, welcome_in};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use task::Outbox;
pub use task::{Arrival, Decided, ServerKey, Task, Waits};
use timers::Timer;
use warm::Began;
pub use warm::{MAX_LOOK, Parking};

/// Milliseconds between two looks for what nobody uses any more.
pub const REST: u64 = 60_000;

/// Milliseconds after which the journal of changes is told the time, which people read there.
const SECOND: u64 = 1000;

/// Milliseconds a converted query is kept ready to be sent again after its client has finished.
///
/// Only after that is the server told of the end, because nothing can be sent behind it. An error
/// that can be repaired comes as soon as the server has read the query, unless the query waits for
/// a lock. The delay does not show: a server looks whether its client is there every few seconds,
/// if at all (`client_connection_check_interval`).
pub const GRACE: u64 = 100;

/// A server connection in the hub.
#[derive(Debug)]
struct Server {
    upstream: Upstream,
    /// The client it is held for.
    lease: ClientId,
    /// The reads on it that are not in its ledger: of other clients, and of its own.
    visits: Visits,
    /// The lesson that is under way on it, if one is.
    lesson: Option<Box<Lesson>>,
    /// What was known when its login began.
    began: Began,
    /// It has no client, and the server is asked to take away what the last one has left.
    resets: VecDeque<Reset>,
    /// How many statements of a client that has left are being closed.
    closes: usize,
    /// The first of these has completed.
    is_reset: bool,
}

/// The clients and server connections of one worker.
#[derive(Debug)]
pub struct Hub {
    clients: Arena<Client>,
    servers: Arena<Server>,
    adrift: HashMap<ClientId, Adrift, foldhash::fast::FixedState>,
    manners: Manners,
    /// What all of them are lent.
    pub lent: Lent,
    outbox: Outbox,
    sharing: Sharing,
    now: Millis,
    clock: Micros,
    rested: Millis,
    told: Millis,
}

impl Hub {
    /// A hub without clients.
    #[must_use]
    pub fn new(lent: Lent) -> Self {
        Self {
            clients: Arena::default(),
            servers: Arena::default(),
            adrift: HashMap::default(),
            manners: Manners::default(),
            lent,
            outbox: Outbox::default(),
            sharing: Sharing::default(),
            now: Millis(0),
            clock: Micros(0),
            rested: Millis(0),
            told: Millis(0),
        }
    }

    /// Has queries treated otherwise from now on. What connections are made of stays: the bounds of
    /// what each may hold, and whether it is kept for others.
    pub fn configure(&mut self, settings: &Settings) {
        self.lent.configure(settings);
    }

    /// From now on each query leads to a [`Task::Decided`].
    pub const fn tell_decisions(&mut self) {
        self.outbox.tells_decisions = true;
    }

    /// Notes the time, for everything that is done until it is noted again.
    pub fn tick(&mut self, now: impl Into<Micros>) {
        self.clock = now.into();
        let now = self.clock.millis();
        self.now = now;
        if now.since(self.told) >= SECOND {
            self.told = now;
            self.lent.shapes.journal().tick(now);
            self.sharing.rest(now);
        }
        self.sharing.is_due = true;
        self.sharing.pace.tick(self.clock);
        if now.since(self.rested) >= REST {
            self.rested = now;
            self.lent.rest(now);
        }
        while let Some((id, timer)) = self.outbox.timers.due(now) {
            self.outbox.tasks.push_back(match timer {
                Timer::Loose => {
                    self.opens_late(id);
                    continue;
                }
                Timer::Login => Task::EndLogin(id),
                Timer::Grace => {
                    if let Some(client) = self.clients.get_mut(id.0) {
                        client.is_late = true;
                    }
                    Task::See(id)
                }
            });
        }
    }

    /// When something is to be done even if nothing comes.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Millis> {
        let timers = self.outbox.timers.next();
        let begins = self.outbox.begins.front().map(|(at, _)| *at);
        let others = begins.into_iter().chain(self.next_stall());
        timers.into_iter().chain(others).min()
    }

    /// The next task, if there is one.
    #[inline]
    pub fn poll(&mut self) -> Option<Task> {
        if let Some(task) = self.outbox.tasks.pop_front() {
            return Some(task);
        }
        if !self.outbox.begins.is_empty()
            && let Some(task) = self.poll_begins()
        {
            return Some(task);
        }
        match self.sharing.has_visits() {
            true => self.poll_hosts(),
            false => None,
        }
    }

    /// Tells a server of a transaction that it should have heard of by now. What has come
    /// meanwhile, and might have carried the BEGIN, has been seen to.
    fn poll_begins(&mut self) -> Option<Task> {
        while let Some((due, id)) = self.outbox.begins.front().copied() {
            let server = self.servers.get(id.0);
            let waits = server.is_some_and(|server| server.upstream.begin_due == Some(due));
            if waits && due > self.now {
                return None;
            }
            self.outbox.begins.pop_front();
            if waits
                && let Some(mut hop) = self.hop_of_server(id)
                && hop.begin_by(due)
            {
                return Some(Task::Send(id));
            }
        }
        None
    }

    /// Whether a task waits.
    #[must_use]
    #[inline]
    pub fn has_tasks(&self) -> bool {
        !self.outbox.tasks.is_empty()
    }

    /// Takes in a client and its server connection. Until the server has accepted the login,
    /// nothing of it is known to anybody else.
    pub fn arrive(&mut self, arrival: Arrival) -> (ClientId, UpstreamId) {
        let Arrival {
            number,
            key,
            origin,
            relay_only,
            deadline,
            is_second,
        } = arrival;
        let most = self.lent.settings.limits.statements;
        let began = Began::now(&self.lent.shapes, &origin);
        let is_kept = self.lent.settings.warm && !relay_only;
        let mut standing = Standing::new(origin, most, self.lent.shapes.tag());
        let (clients, servers) = (&mut self.clients, &mut self.servers);
        let settings = &self.lent.settings;
        if !is_kept && (relay_only || !settings.shares && !settings.deferred_begin) {
            standing.is_left_alone();
        }
        let mut upstream = Upstream::new(standing);
        upstream.welcome = is_kept.then(Box::default);
        let mut link = None;
        let client = clients.insert_with(|slot| {
            let lease = ClientId(slot);
            let name = UpstreamId(servers.insert_with(|_| Server {
                upstream,
                lease,
                visits: Visits::default(),
                lesson: None,
                began,
                resets: VecDeque::new(),
                closes: 0,
                is_reset: false,
            }));
            link = Some(name);
            let mut client = Client::new(lease, name, number, key, relay_only);
            client.is_second = is_second;
            client
        });
        let client = ClientId(client);
        self.outbox.timers.set(client, Timer::Login, deadline);
        (client, link.unwrap_or(UpstreamId(client.0)))
    }

    /// A client is not encrypted, and its server connection is: it is not offered to bind its login
    /// to the server's certificate, which it cannot have seen.
    pub fn hide_binding(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id.0) {
            client.hides_binding = true;
        }
    }

    /// Drops a client and the server connection that is held for it.
    pub fn remove(&mut self, id: ClientId) {
        if let Some(client) = self.clients.remove(id.0)
            && let Some(mut server) = self.servers.remove(client.link.0)
        {
            let mirror = &mut server.upstream.standing.mirror;
            mirror.forget_all();
            self.lent.count_memory(mirror.take_tally());
            self.turn_out(&mut server.visits);
        }
        if !self.adrift.is_empty() {
            self.adrift.remove(&id);
        }
        self.outbox.timers.clear(id);
    }

    /// The client with this name, and the connection that is held for it.
    #[inline]
    fn hop_of_client(&mut self, id: ClientId) -> Option<Hop<'_>> {
        let client = self.clients.get_mut(id.0)?;
        let server = self.servers.get_mut(client.link.0)?;
        Some(Hop {
            client,
            upstream: &mut server.upstream,
            visits: &mut server.visits,
            pace: &mut self.sharing.pace,
            lesson: &mut server.lesson,
            lent: &mut self.lent,
            outbox: &mut self.outbox,
            now: self.now,
            clock: self.clock,
        })
    }

    /// The connection with this name, and the client it is held for.
    #[inline]
    fn hop_of_server(&mut self, id: UpstreamId) -> Option<Hop<'_>> {
        let server = self.servers.get_mut(id.0)?;
        let client = self.clients.get_mut(server.lease.0)?;
        Some(Hop {
            client,
            visits: &mut server.visits,
            pace: &mut self.sharing.pace,
            upstream: &mut server.upstream,
            lesson: &mut server.lesson,
            lent: &mut self.lent,
            outbox: &mut self.outbox,
            now: self.now,
            clock: self.clock,
        })
    }

    /// Takes what it can of `bytes` from a client; returns how many were used.
    ///
    /// # Errors
    /// A length field no frame can have.
    #[inline]
    pub fn client_bytes(&mut self, id: ClientId, bytes: &[u8]) -> Result<usize, Error> {
        let used = match self.hop_of_client(id) {
            Some(mut hop) => hop.client_bytes(bytes),
            None => Ok(self.used_without_home(id, bytes.len())),
        };
        if let Some(departure) = self.outbox.departure.take() {
            self.depart(id, *departure);
        }
        used
    }

    /// How many of a client's bytes go to its server as they are, without being copied: what is
    /// left of a large frame, and copy data. They count as taken: they go out behind what is in
    /// [`Self::upstream_out`], and the rest is for [`Self::client_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub fn forward_client(&mut self, id: ClientId, bytes: &[u8]) -> Result<usize, Error> {
        self.hop_of_client(id)
            .map_or(Ok(0), |mut hop| hop.forward_client(bytes))
    }

    /// Takes what it can of `bytes` from a server; returns how many were used.
    ///
    /// # Errors
    /// A length field no frame can have, or a reply that cannot follow what was sent.
    #[inline]
    pub fn upstream_bytes(&mut self, id: UpstreamId, bytes: &[u8]) -> Result<usize, Error> {
        if self.sharing.has_visits() && self.is_visited(id) {
            return self.visited_bytes(id, bytes);
        }
        match self.hop_of_server(id) {
            Some(mut hop) => hop.upstream_bytes(bytes),
            None => Ok(bytes.len()),
        }
    }

    /// How many of a server's bytes go to its client as they are, before any that must be looked
    /// at, without being copied. They count as taken: they go out behind what is in
    /// [`Self::client_out`], and the rest is for [`Self::upstream_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub fn forward_upstream(&mut self, id: UpstreamId, bytes: &[u8]) -> Result<usize, Error> {
        if self.sharing.has_visits() && self.is_visited(id) {
            return Ok(0);
        }
        self.hop_of_server(id)
            .map_or(Ok(0), |mut hop| hop.forward_upstream(bytes))
    }

    /// A client has finished: what it has sent last may still have to be read. From now on nothing
    /// of it is converted or learned, so nothing has to be repaired behind which the server could
    /// not be told of the end.
    pub fn client_finishes(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id.0) {
            client.is_parting = true;
        }
    }

    /// A server is gone. If it owes something and has not said why, the client is told; whatever
    /// was held is let go of.
    pub fn upstream_gone(&mut self, id: UpstreamId) {
        self.turn_out_of(id, Homing::Disturbed);
        if let Some(mut hop) = self.hop_of_server(id) {
            hop.upstream_gone();
        }
    }

    /// Has a client go on whose sockets have nothing more to say: one whose cancelled query is
    /// answered, or that has finished. Returns what it waits for, or `None` if it has gone on.
    pub fn go_on(&mut self, id: ClientId) -> Option<Waits> {
        let now = self.now;
        let Some(mut hop) = self.hop_of_client(id) else {
            return Some(Waits::Sockets);
        };
        if !hop.client.is_held() && !hop.client.keeps_waiting() {
            return Some(Waits::Sockets);
        }
        if hop.release() || hop.let_go() {
            return None;
        }
        if hop.client.is_held() {
            return Some(Waits::Cancel);
        }
        if !hop.client.is_late {
            let until = Millis(now.0.saturating_add(GRACE));
            self.outbox.timers.set(id, Timer::Grace, until);
        }
        Some(Waits::Sockets)
    }

    /// Gives back the room that a long query or a long pipeline has left behind, once it is empty.
    #[inline]
    pub fn give_back(&mut self, id: ClientId) {
        if let Some(mut hop) = self.hop_of_client(id) {
            hop.give_back();
        }
    }

    /// A client, as long as it is there.
    #[must_use]
    #[inline]
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id.0)
    }

    /// A server connection, as long as it is there.
    #[must_use]
    #[inline]
    pub fn upstream(&self, id: UpstreamId) -> Option<&Upstream> {
        self.servers.get(id.0).map(|server| &server.upstream)
    }

    /// The client that a server connection is held for.
    #[must_use]
    #[inline]
    pub fn holder(&self, id: UpstreamId) -> Option<ClientId> {
        self.servers.get(id.0).map(|server| server.lease)
    }

    /// Whether the next frame of a client would be taken now.
    #[must_use]
    #[inline]
    pub fn accepts(&self, id: ClientId) -> bool {
        self.clients.get(id.0).is_some_and(Client::accepts)
    }

    /// What is known of `text` on a server connection, if it has been asked about there. Texts on
    /// partitions are asked about with custom plans only.
    pub fn statement(&mut self, id: UpstreamId, text: &[u8]) -> Option<Arc<Statement>> {
        let standing = &self.servers.get(id.0)?.upstream.standing;
        standing.context?;
        let recipe = self.lent.recipe_of(text, standing).ok()?;
        let statement = |plans| self.lent.statement(&recipe, plans, text, standing).ok();
        let is_trusted = |it: &Arc<Statement>| matches!(it.verdict(), Verdict::Trusted { .. });
        let usual = statement(Plans::Generic)?;
        let other = (!is_trusted(&usual)).then(|| statement(Plans::Custom));
        Some(other.flatten().filter(is_trusted).unwrap_or(usual))
    }

    /// Bytes for a client. Their owner takes from the front what was sent.
    #[inline]
    pub fn client_out(&mut self, id: ClientId) -> Option<&mut Vec<u8>> {
        self.clients.get_mut(id.0).map(|client| &mut client.out)
    }

    /// Bytes for a server. Their owner takes from the front what was sent.
    #[inline]
    pub fn upstream_out(&mut self, id: UpstreamId) -> Option<&mut Vec<u8>> {
        let server = self.servers.get_mut(id.0)?;
        Some(&mut server.upstream.out)
    }
}
