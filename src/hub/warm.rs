//! Server connections that wait for another client of the same identity: *warm* ones.
//!
//! Invariants:
//! - a connection is parked only if nothing is owed or in flight on it, and nothing that its client
//!   did has left anything that a fresh login would not find, after what takes that away;
//! - whoever may have learned the key of the predecessor cannot cancel the successor: the key is
//!   another, and a connection for which a request has come is not parked;
//! - what a login would have found since, it finds: the connection is woken only if who may log in,
//!   with which settings, is as it was before its own login began, as far as the proxy has seen and
//!   as a look at the catalog shows that is no older than [`MAX_LOOK`].

use super::{Hub, LoginOutcome, Server, ServerKey, Task};
use crate::client::{CancelKey, Client, Turn};
use crate::convert::{Lent, Policy};
use crate::ids::{ClientId, UpstreamId};
use crate::oracle::is_announcement;
use crate::sql::residue::Residue;
use crate::standing::{Reset, Standing};
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::statement::shapes::Shapes;
use crate::upstream::{Beginning, Partial, Upstream, Welcome};
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};

/// How many times the interval between two looks at the catalog the last one may be ago.
pub const MAX_LOOK: u32 = 2;

/// What was known when a login began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Began {
    /// The number of the database and the count of its contexts, if it was known then.
    database: Option<(u64, u64)>,
    /// The count of what may have changed logins.
    logins: u64,
}

impl Began {
    /// What is known now.
    pub(super) fn now(shapes: &Shapes, origin: &Origin) -> Self {
        let known = shapes.known_database(origin.server(), origin.database());
        Self {
            database: known.map(|database| (database.number(), database.contexts())),
            logins: shapes.logins(),
        }
    }
}

/// What becomes of a server connection whose client has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// It waits for the next client.
    Parked,
    /// First the server is asked what the catalog looks like, as long as the client would be
    /// remembered for that: see [`Hub::parked_bytes`].
    Learns,
    /// First the server is asked to take away what is left: see [`Hub::parked_bytes`].
    Resets,
}

/// Whether a connection without this client may be of use to another, or to the proxy to ask by it
/// what is needed to tell. Where every text leaves anything, nobody is there to look whether that
/// has changed but who leaves.
pub(super) fn is_of_use(
    client: &Client,
    upstream: &mut Upstream,
    lent: &Lent,
    now: Millis,
) -> bool {
    let standing = &mut upstream.standing;
    let is_of_use = !standing.residue.stays()
        || misses_names(standing)
        || standing
            .database
            .is_watch_due(now, lent.settings.catalog_watch);
    is_of_use && is_quiet(client, upstream, lent)
}

/// Whether it is not known which names leave something in the sessions that use them.
fn misses_names(standing: &mut Standing) -> bool {
    !standing.knows_names() || !standing.database.is_clear()
}

/// Whether nothing of this client is in flight or owed on a connection that anybody would be given
/// who claims its identity.
fn is_quiet(client: &Client, upstream: &Upstream, lent: &Lent) -> bool {
    let is_possible = lent.settings.warm && lent.settings.mode == Policy::Convert;
    is_possible
        && upstream.standing.status == Status::Idle
        && !client.relay_only
        && matches!(client.turn, Turn::Free)
        && client.query.is_empty()
        && client.out.is_empty()
        && client.key.cancelled.requested() == 0
        && upstream.welcome.as_deref().is_some_and(Welcome::is_whole)
        && upstream.ledger.is_idle()
        && upstream.out.is_empty()
        && upstream.partial == Partial::default()
        && !upstream.told_fatal
}

impl Hub {
    /// A client that is logged in has closed its socket without a Terminate, and all it has sent is
    /// taken: to the server that is the same. Returns whether its connection may be of use to
    /// another, which a task is to find out.
    pub fn client_has_ended(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get_mut(id.0) else {
            return false;
        };
        let Some(server) = self.servers.get_mut(client.link.0) else {
            return false;
        };
        let is_free = client.is_logged_in()
            && !client.is_loose
            && server.lesson.is_none()
            && server.upstream.begin_due.is_none();
        if !is_free || !is_of_use(client, &mut server.upstream, &self.lent, self.now) {
            return false;
        }
        client.leaves();
        self.outbox.tasks.push_back(Task::Park(id));
        true
    }

    /// A client has left, whose cancel key is not valid any more. Returns what becomes of its
    /// server connection, which is dropped with it if that is nothing.
    pub fn park(&mut self, id: ClientId) -> Option<Parking> {
        if self.learns(id) {
            self.hop_of_client(id)?.learn_names();
            let link = self.clients.get(id.0)?.link;
            if !self.servers.get(link.0).is_none_or(is_without_lesson) {
                return Some(Parking::Learns);
            }
        }
        match self.resets(id) {
            Some(resets) => {
                let parking = match resets.is_empty() {
                    true => Parking::Parked,
                    false => Parking::Resets,
                };
                let link = self.clients.remove(id.0)?.link;
                let server = self.servers.get_mut(link.0)?;
                server.upstream.standing.only_begun.clear();
                self.outbox.timers.clear(id);
                send_resets(server, resets);
                Some(parking)
            }
            None => {
                self.remove(id);
                None
            }
        }
    }

    /// Whether the catalog is to be looked at first: nobody has lately, and the connection could be
    /// of use, or nothing is known that would tell.
    fn learns(&mut self, id: ClientId) -> bool {
        let Some(client) = self.clients.get(id.0) else {
            return false;
        };
        let Some(server) = self.servers.get_mut(client.link.0) else {
            return false;
        };
        let interval = self.lent.settings.catalog_watch;
        server.lesson.is_none()
            && is_of_use(client, &mut server.upstream, &self.lent, self.now)
            && {
                let database = &server.upstream.standing.database;
                let pays = || database.affords() && database.parking_pays();
                let pays = || self.lent.settings.is_eager() || pays();
                let is_due = database.is_watch_due(self.now, interval);
                is_due && pays() && database.take_watch(self.now, interval)
            }
    }

    /// What takes away what the client has left in its session; `None` if its server connection
    /// cannot be kept.
    fn resets(&mut self, id: ClientId) -> Option<Vec<Reset>> {
        let client = self.clients.get(id.0)?;
        let server = self.servers.get_mut(client.link.0)?;
        let is_possible = server.lesson.is_none()
            && server.lease == id
            && is_quiet(client, &server.upstream, &self.lent)
            && is_current(server, &self.lent);
        let is_possible = is_possible && server.upstream.standing.keeps_the_present();
        let resets = server.upstream.standing.resets().filter(|_| is_possible)?;
        // Behind a pooler they would reach any session.
        if !resets.is_empty() && !server.upstream.standing.database.is_direct() {
            return None;
        }
        // What the proxy itself listens to would be forgotten, too.
        if server.upstream.standing.is_told && resets.iter().any(Reset::stops_listening) {
            return None;
        }
        let is_true = server
            .upstream
            .welcome
            .as_deref()
            .is_some_and(Welcome::is_true);
        // What a reset is to take back is not yet what it was.
        let is_set = server.upstream.standing.residue.has(Residue::SETTINGS);
        (is_true || is_set).then_some(resets)
    }

    /// Takes what it can of `bytes` from a server whose client has left, of which nothing is
    /// expected but the answers to what [`Hub::park`] has asked. Returns how many were used, and
    /// what becomes of the connection if that is decided.
    ///
    /// # Errors
    /// Anything else: the connection is to be closed.
    pub fn parked_bytes(
        &mut self,
        id: UpstreamId,
        bytes: &[u8],
    ) -> Result<(usize, Option<Parking>), Error> {
        let lease = self.holder(id).ok_or(Error::Unexpected { tag: '?' })?;
        if self.clients.get(lease.0).is_none() {
            return self.reset_bytes(id, bytes);
        }
        let used = self.upstream_bytes(id, bytes)?;
        let is_over =
            |server: &Server| is_without_lesson(server) && server.upstream.ledger.is_idle();
        let is_over = self.servers.get(id.0).is_none_or(is_over);
        if !is_over {
            return Ok((used, None));
        }
        let parking = self.park(lease).filter(|_| used == bytes.len());
        let parking = parking.ok_or(Error::Unexpected { tag: '?' })?;
        Ok((used, Some(parking)))
    }

    fn reset_bytes(
        &mut self,
        id: UpstreamId,
        bytes: &[u8],
    ) -> Result<(usize, Option<Parking>), Error> {
        let unexpected = |tag: u8| Error::Unexpected {
            tag: char::from(tag),
        };
        let mut at = 0;
        let server = self.servers.get_mut(id.0);
        let Some(server) = server.filter(|server| self.clients.get(server.lease.0).is_none())
        else {
            return Err(unexpected(0));
        };
        while let Some(header) = frame::header(&bytes[at..])? {
            let Some(frame) = bytes.get(at..at + header.size) else {
                match header.size > frame::INSPECT_LIMIT {
                    true => return Err(unexpected(header.tag)),
                    false => break,
                }
            };
            at += header.size;
            if header.tag == backend::NOTIFICATION && is_announcement(frame) {
                // Nobody else may have been told that.
                server.upstream.standing.database.advance();
            }
            if !take_reset(server, header.tag, frame) {
                return Err(unexpected(header.tag));
            }
            let is_over = server.resets.is_empty();
            if is_over && at == bytes.len() {
                return Ok((at, Some(Parking::Parked)));
            }
        }
        match server.resets.is_empty() {
            true => Err(unexpected(0)),
            false => Ok((at, None)),
        }
    }

    /// Gives a parked connection to a client of the same identity, which is welcomed at once.
    /// `None` if the connection is no longer what a login would lead to, or no longer there, or if
    /// it may have been idle for a while and the server ends what is idle, unless it has just
    /// answered on it (`is_stirred`).
    pub fn wake(
        &mut self,
        id: UpstreamId,
        is_stirred: bool,
        (number, key): (u64, CancelKey),
    ) -> Option<ClientId> {
        let server = self.servers.get_mut(id.0)?;
        if !is_stirred && may_end_idle(server) {
            return None;
        }
        let is_parked = self.clients.get(server.lease.0).is_none() && server.resets.is_empty();
        let is_known = was_looked_at(server, &self.lent, self.now);
        let standing = &mut server.upstream.standing;
        if !is_parked || !is_known || !standing.knows_names() || standing.names().greets() {
            return None;
        }
        if !is_current(server, &self.lent) || !server.upstream.standing.keeps_the_present() {
            return None;
        }
        let welcome = server.upstream.welcome.as_deref();
        let welcome = welcome.filter(|welcome| welcome.is_true())?;
        let mut out = Vec::new();
        let (pid, secret, ours) = welcome.say(&key.secret, &mut out)?;
        let server_key = ServerKey {
            pid,
            secret: secret.to_vec(),
            ours: ours.to_vec(),
        };
        let client = self.clients.insert_with(|slot| {
            let mut client = Client::new(ClientId(slot), id, number, key, false);
            client.turn = Turn::Free;
            client.out = out;
            client
        });
        let client = ClientId(client);
        server.lease = client;
        server.upstream.standing.is_given();
        let task = Task::Remember(client, server_key);
        self.outbox.tasks.push_back(task);
        Some(client)
    }

    /// Has the catalog looked at on a parked connection, for somebody who is to be given it and
    /// for whom the last look is too long ago; if it is not, the server only has to say whether it
    /// lets the session be idle, which begins anew how long it has been. Returns what becomes of
    /// the connection, as [`Self::park`] does; `None` if a look would not help, or the last one
    /// took longer than `most` milliseconds, and nothing has changed then unless the connection is
    /// gone.
    pub fn look(&mut self, id: UpstreamId, key: CancelKey, most: u64) -> Option<Parking> {
        let server = self.servers.get_mut(id.0)?;
        let is_parked = self.clients.get(server.lease.0).is_none() && server.resets.is_empty();
        let has_asked = self.lent.settings.catalog_watch > 0;
        if !is_parked || !has_asked || !is_current(server, &self.lent) {
            return None;
        }
        let may_stir = may_end_idle(server) && server.upstream.standing.knows_names();
        if may_stir && was_looked_at(server, &self.lent, self.now) {
            stir(server);
            return Some(Parking::Resets);
        }
        if server.upstream.standing.database.look_took() > most {
            return None;
        }
        // Nobody reads what is said to it, and nobody knows its key: it is there to leave.
        let guest = self.clients.insert_with(|slot| {
            let mut guest = Client::new(ClientId(slot), id, 0, key, false);
            guest.turn = Turn::Free;
            guest
        });
        let guest = ClientId(guest);
        server.lease = guest;
        // It takes the place of a login, so it pays whether a look is due or not.
        let database = &server.upstream.standing.database;
        database.take_watch(self.now, self.lent.settings.catalog_watch);
        self.hop_of_client(guest)?.learn_names();
        match self.servers.get(id.0).is_none_or(is_without_lesson) {
            true => self.park(guest),
            false => Some(Parking::Learns),
        }
    }

    /// Tells a client that the server has no room for it.
    pub fn tell_crowded(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id.0) {
            client.out.append(&mut client.query);
            let task = Task::Login(id, LoginOutcome::Refused);
            self.outbox.tasks.push_back(task);
        }
    }

    /// Drops a server connection without a client, or with one that has left.
    pub fn discard(&mut self, id: UpstreamId) {
        let lease = self.holder(id);
        let has_left = |lease: &ClientId| self.client(*lease).is_some_and(|client| client.leaves);
        if let Some(lease) = lease.filter(has_left) {
            return self.remove(lease);
        }
        let is_parked = |server: &Server| self.clients.get(server.lease.0).is_none();
        if self.servers.get(id.0).is_some_and(is_parked)
            && let Some(mut server) = self.servers.remove(id.0)
        {
            let mirror = &mut server.upstream.standing.mirror;
            mirror.forget_all();
            self.lent.count_memory(mirror.take_tally());
        }
    }

    /// Whether something is asked on a connection for others whose client has left.
    #[must_use]
    pub fn is_learning(&self, id: UpstreamId) -> bool {
        let server = self.servers.get(id.0);
        server.is_some_and(|server| !is_without_lesson(server))
    }

    /// With which startup packet a server connection was logged in, and to which server.
    #[must_use]
    pub fn identity(&self, id: UpstreamId) -> Option<&[u8]> {
        let standing = &self.upstream(id)?.standing;
        Some(standing.origin.identity())
    }
}

fn is_without_lesson(server: &Server) -> bool {
    server.lesson.is_none()
}

/// Whether the catalog was looked at so short a time ago that a login would find what was seen.
fn was_looked_at(server: &Server, lent: &Lent, now: Millis) -> bool {
    let interval = lent.settings.catalog_watch;
    let longest = interval.saturating_mul(MAX_LOOK.into());
    let oldest = Millis(now.0.saturating_sub(longest));
    interval > 0 && server.upstream.standing.database.was_looked_at(oldest)
}

/// Whether the server may end a session that has begun like this one for being idle.
fn may_end_idle(server: &Server) -> bool {
    match &server.upstream.manner {
        Beginning::Manner(manner) => !manner.may_idle,
        Beginning::Unasked | Beginning::Never => server.upstream.standing.may_end_idle(),
    }
}

/// Has the server answer on a connection without a client, whether it may end it for being idle.
fn stir(server: &mut Server) {
    send_resets(server, vec![Reset::IDLE]);
}

/// Has the server take away what is left.
fn send_resets(server: &mut Server, resets: Vec<Reset>) {
    let standing = &mut server.upstream.standing;
    for (index, reset) in resets.iter().enumerate() {
        if reset.closes_statements() {
            server.closes = standing.drop_prepared(&mut server.upstream.out);
            continue;
        }
        standing.sends_reset(*reset, index == 0);
        frontend::query(&mut server.upstream.out, reset.text);
    }
    server.resets = resets.into();
}

/// Takes a reply to a reset. Returns false if it is none that is expected.
fn take_reset(server: &mut Server, tag: u8, frame: &[u8]) -> bool {
    let body = &frame[HEADER..];
    if tag == backend::NOTIFICATION {
        // Of what the client has listened to, and is being forgotten.
        return server.resets.iter().any(Reset::stops_listening);
    }
    let Some(reset) = server.resets.front().copied() else {
        return false;
    };
    match tag {
        backend::PARAMETER_STATUS => server.upstream.seen(tag, frame),
        backend::ROW_DESCRIPTION | backend::DATA_ROW if reset.has_row && !server.is_reset => {}
        backend::CLOSE_COMPLETE if reset.closes_statements() && server.closes > 0 => {
            server.closes -= 1;
            if server.closes == 0 {
                server.is_reset = true;
                server.upstream.standing.completes_reset(reset);
            }
        }
        backend::COMMAND_COMPLETE if !server.is_reset && !reset.closes_statements() => {
            let is_done = backend::command_tag(body) == Some(reset.tag);
            if !is_done && reset != Reset::IDLE {
                return false;
            }
            server.is_reset = true;
            if is_done {
                server.upstream.standing.completes_reset(reset);
            }
        }
        backend::READY_FOR_QUERY if server.is_reset && body == b"I" => {
            server.is_reset = false;
            server.resets.pop_front();
            let is_over = server.resets.is_empty();
            server.upstream.standing.ready(Status::Idle, is_over);
            if is_over {
                server.upstream.standing.is_clean_again();
                let welcome = server.upstream.welcome.as_deref();
                return welcome.is_some_and(Welcome::is_true);
            }
        }
        _ => return false,
    }
    true
}

/// Whether nothing that changes how logins begin has been seen since the connection's own.
pub(super) fn is_begun_alike(server: &Server, lent: &Lent) -> bool {
    server.began.logins == lent.shapes.logins()
}

/// Whether nothing has been seen since the connection's login began that another login might find.
pub(super) fn is_current(server: &Server, lent: &Lent) -> bool {
    let database = &server.upstream.standing.database;
    let now = Began {
        database: Some((database.number(), database.contexts())),
        logins: lent.shapes.logins(),
    };
    server.began == now
}
