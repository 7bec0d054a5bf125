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

use super::{Hub, Server, ServerKey, Task};
use crate::client::{CancelKey, Client, Turn};
use crate::convert::{Lent, Policy};
use crate::ids::{ClientId, UpstreamId};
use crate::sql::residue::Residue;
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::statement::shapes::Shapes;
use crate::upstream::Upstream;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};

/// How many times the interval between two looks at the catalog the last one may be ago.
const MAX_LOOK: u64 = 2;

/// What takes away the values drawn from sequences, and the tag it completes with.
const DISCARD: &[u8] = b"DISCARD SEQUENCES";

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
        let known = shapes.known_database(origin.database());
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
    /// First the server is asked to take away what is left: see [`Hub::parked_bytes`].
    Resets,
}

/// Whether a connection with this client may be left to another when nothing of it is in flight.
pub(super) fn may_park(client: &Client, upstream: &Upstream, lent: &Lent) -> bool {
    let standing = &upstream.standing;
    let is_possible = lent.settings.warm && lent.settings.mode == Policy::Convert;
    let is_whole = |welcome: &crate::upstream::Welcome| welcome.is_whole();
    is_possible
        && standing.residue < Residue::Anything
        && standing.status == Status::Idle
        && !client.relay_only
        && matches!(client.turn, Turn::Free)
        && client.query.is_empty()
        && client.out.is_empty()
        && client.key.cancelled.requested() == 0
        && upstream.welcome.as_deref().is_some_and(is_whole)
        && upstream.ledger.is_idle()
        && upstream.out.is_empty()
        && upstream.partial == crate::upstream::Partial::default()
        && !upstream.told_fatal
}

impl Hub {
    /// A client has left, whose cancel key is not valid any more. Returns what becomes of its
    /// server connection, which is dropped with it if that is nothing.
    pub fn park(&mut self, id: ClientId) -> Option<Parking> {
        let parking = self.parking(id);
        match parking {
            Some(parking) => {
                let link = self.clients.remove(id.0)?.link;
                self.outbox.timers.clear(id);
                let server = self.servers.get_mut(link.0)?;
                server.upstream.standing.only_begun.clear();
                if parking == Parking::Resets {
                    frontend::query(&mut server.upstream.out, DISCARD);
                    server.is_resetting = true;
                }
            }
            None => self.remove(id),
        }
        parking
    }

    fn parking(&mut self, id: ClientId) -> Option<Parking> {
        let client = self.clients.get(id.0)?;
        let server = self.servers.get_mut(client.link.0)?;
        let is_possible = server.lesson.is_none()
            && server.lease == id
            && may_park(client, &server.upstream, &self.lent);
        if !is_possible || !is_current(server, &self.lent) {
            return None;
        }
        match server.upstream.standing.residue {
            Residue::Nothing => Some(Parking::Parked),
            Residue::Sequences => Some(Parking::Resets),
            Residue::Anything => None,
        }
    }

    /// Takes what it can of `bytes` from a server without a client, of which nothing is expected
    /// but the answers to a reset. Returns how many were used, and whether it is parked now.
    ///
    /// # Errors
    /// Anything else: the connection is to be closed.
    pub fn parked_bytes(&mut self, id: UpstreamId, bytes: &[u8]) -> Result<(usize, bool), Error> {
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
            let body = &frame[HEADER..];
            let is_left = server.upstream.standing.residue > Residue::Nothing;
            match header.tag {
                _ if !server.is_resetting => return Err(unexpected(header.tag)),
                backend::COMMAND_COMPLETE if is_left => {
                    if backend::command_tag(body) != Some(DISCARD) {
                        return Err(unexpected(header.tag));
                    }
                    server.upstream.standing.residue = Residue::Nothing;
                }
                backend::READY_FOR_QUERY if !is_left && body == b"I" && at == bytes.len() => {
                    server.is_resetting = false;
                    return Ok((at, true));
                }
                tag => return Err(unexpected(tag)),
            }
        }
        match server.is_resetting || at == bytes.len() {
            true => Ok((at, false)),
            false => Err(unexpected(0)),
        }
    }

    /// Gives a parked connection to a client of the same identity, which is welcomed at once.
    /// `None` if the connection is no longer what a login would lead to, or no longer there.
    pub fn wake(&mut self, id: UpstreamId, number: u64, key: CancelKey) -> Option<ClientId> {
        let server = self.servers.get_mut(id.0)?;
        let is_parked = self.clients.get(server.lease.0).is_none() && !server.is_resetting;
        let interval = self.lent.settings.catalog_watch;
        let oldest = Millis(self.now.0.saturating_sub(interval.saturating_mul(MAX_LOOK)));
        let standing = &mut server.upstream.standing;
        let is_known = interval > 0 && standing.database.was_looked_at(oldest);
        if !is_parked || !is_known || !standing.knows_names() || standing.names().greets() {
            return None;
        }
        if !is_current(server, &self.lent) {
            return None;
        }
        let welcome = server.upstream.welcome.as_deref()?;
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
        let task = Task::Remember(client, server_key);
        self.outbox.tasks.push_back(task);
        Some(client)
    }

    /// Drops a server connection without a client.
    pub fn discard(&mut self, id: UpstreamId) {
        let is_parked = |server: &Server| self.clients.get(server.lease.0).is_none();
        if self.servers.get(id.0).is_some_and(is_parked)
            && let Some(mut server) = self.servers.remove(id.0)
        {
            let mirror = &mut server.upstream.standing.mirror;
            mirror.forget_all();
            self.lent.count_memory(mirror.take_tally());
        }
    }

    /// The startup packet with which a server connection was logged in.
    #[must_use]
    pub fn identity(&self, id: UpstreamId) -> Option<&[u8]> {
        let standing = &self.upstream(id)?.standing;
        Some(standing.origin.packet())
    }
}

/// Whether nothing has been seen since the connection's login began that another login might find.
fn is_current(server: &Server, lent: &Lent) -> bool {
    let database = &server.upstream.standing.database;
    let now = Began {
        database: Some((database.number(), database.contexts())),
        logins: lent.shapes.logins(),
    };
    server.began == now
}
