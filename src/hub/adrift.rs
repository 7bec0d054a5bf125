//! Clients without a server connection: *adrift*. One leaves its home to whoever waits for one
//! while it could do without, and is given another when it sends something again.
//!
//! Invariants:
//! - a client leaves its home only outside a transaction, with nothing owed or in flight either
//!   way, and with nothing in its session that a new one would not have, and nothing seen of it
//!   that a new one would show otherwise;
//! - it is given a connection only of a session that began in the same manner (`upstream/manner`),
//!   on which nothing else has been left either;
//! - a connection for which a cancel request has come while a client had it goes to no other.

use super::warm::{is_begun_alike, is_current};
use super::{Hub, Server};
use crate::client::{Client, Turn};
use crate::ids::{ClientId, UpstreamId};
use crate::sql::residue::Residue;
use crate::statement::context::Origin;
use crate::upstream::{Beginning, Manner, Partial, Welcome};
use crate::wire::backend::{self, Status};
use crate::wire::frame;
use crate::wire::frontend;
use std::sync::Arc;
use std::time::Duration;

/// A client without a server connection.
#[derive(Debug, Clone)]
pub(super) struct Adrift {
    /// How it logged in.
    pub(super) origin: Arc<Origin>,
    /// How its session began, and what it has been told.
    pub(super) manner: Arc<Manner>,
}

/// A client on its way to another worker.
#[derive(Debug)]
pub struct Mover {
    client: Box<Client>,
    adrift: Adrift,
}

/// Whether a client leaves its home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// It stays.
    Stays,
    /// The server is asked something first; it is to be seen again when that is answered.
    Asks,
    /// It can: [`Hub::leave_home`].
    Goes,
}

/// Whether a connection is the home that a client is looking for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Homecoming {
    /// It is, and the client may go on.
    Home,
    /// The server is asked first: [`super::Task::Settled`] follows.
    Asks,
    /// Its session has begun otherwise.
    Unlike,
    /// It is of no use to anybody.
    Gone,
}

/// Whether a client could do without its session, as far as what it has done there goes.
fn is_clean(server: &Server) -> bool {
    server.upstream.standing.is_as_new()
}

/// Whether it could, for all that is known: of some texts it may have to be found out what they
/// have left.
fn may_be_clean(server: &Server) -> bool {
    is_clean(server) || server.upstream.standing.is_residue_late()
}

/// Whether nothing is owed or in flight between a client and the connection that is held for it.
fn is_quiet(client: &Client, server: &Server) -> bool {
    let upstream = &server.upstream;
    client.is_pooled
        && matches!(client.turn, Turn::Free)
        && !client.relay_only
        && !client.leaves
        && !client.is_parting
        && client.skip == 0
        && client.query.is_empty()
        && client.out.is_empty()
        && server.lease == client.id
        && server.lesson.is_none()
        && server.visits.is_empty()
        && !server.visits.is_wanted
        && !server.visits.is_hastened
        && upstream.standing.status == Status::Idle
        && upstream.begin_due.is_none()
        && !upstream.carries_begin
        && upstream.ledger.is_idle()
        && upstream.out.is_empty()
        && upstream.partial == Partial::default()
        && upstream.welcome.as_deref().is_some_and(Welcome::is_whole)
        && !upstream.told_fatal
}

impl Hub {
    /// A client gives its server connection back while it can do without. How the session began is
    /// asked before it does anything there: a login that is not over asks by itself.
    pub fn pool(&mut self, id: ClientId) {
        let Some(mut hop) = self.hop_of_client(id) else {
            return;
        };
        hop.client.is_pooled = true;
        if matches!(hop.client.turn, Turn::Free) {
            hop.settle_at_first();
        }
    }

    /// How many of so many bytes are used of a client that has no connection: none of one that is
    /// adrift, because they wait; all of one that is gone.
    #[cold]
    pub(super) fn used_without_home(&self, id: ClientId, count: usize) -> usize {
        match self.clients.get(id.0) {
            Some(_) => 0,
            None => count,
        }
    }

    /// Whether a client could leave its home now, as far as is known without asking.
    #[must_use]
    pub fn could_leave(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0);
        client.is_some_and(|client| {
            let server = self.servers.get(client.link.0);
            server.is_some_and(|server| may_be_clean(server) && is_quiet(client, server))
        })
    }

    /// Since when a client has sent its home nothing.
    #[must_use]
    pub fn last_at_home(&self, id: ClientId) -> u64 {
        let client = self.clients.get(id.0);
        client.map_or(0, |client| client.at_home.0)
    }

    /// Sees whether a client can leave its home, and asks what has to be known for that.
    pub fn prepares_to_leave(&mut self, id: ClientId) -> Leaving {
        if !self.could_leave(id) {
            return Leaving::Stays;
        }
        let (now, interval) = (self.now, self.lent.settings.catalog_watch);
        let Some(mut hop) = self.hop_of_client(id) else {
            return Leaving::Stays;
        };
        let standing = &mut hop.upstream.standing;
        standing.settle_residue();
        // What is not settled yet may be when the names are known.
        if !standing.is_as_new() && !standing.is_residue_late() {
            return Leaving::Stays;
        }
        // A login is given a connection only if somebody has looked at the catalog lately.
        if !standing.knows_names() || standing.database.take_watch(now, interval) {
            if standing.setbacks.rest(now) {
                return Leaving::Stays;
            }
            hop.learn_names_behind();
            return Leaving::Asks;
        }
        // What a login runs may have made the session what it is.
        if !standing.is_as_new() || standing.names().greets() {
            return Leaving::Stays;
        }
        match &hop.upstream.manner {
            // The server could not end it for being idle, or would end who comes home to what has
            // waited.
            Beginning::Manner(manner) if !manner.may_idle => Leaving::Stays,
            Beginning::Manner(_) => Leaving::Goes,
            // It would tell of now, not of its beginning.
            Beginning::Unasked | Beginning::Never => Leaving::Stays,
        }
    }

    /// A client leaves its home, whose key it does not have any more. Returns whether the
    /// connection is fit for another client; if not, it is to be discarded.
    pub fn leave_home(&mut self, id: ClientId) -> Option<bool> {
        let client = self.clients.get_mut(id.0)?;
        let server = self.servers.get_mut(client.link.0)?;
        let Beginning::Manner(manner) = &server.upstream.manner else {
            return None;
        };
        let mut manner = Arc::clone(manner);
        let welcome = server.upstream.welcome.as_deref()?;
        let is_true = welcome.is_true();
        if !is_true {
            let told = Manner {
                reports: welcome.reports()?,
                ..Manner::clone(&manner)
            };
            manner = self.manners.keep(told);
        }
        let is_fit = is_true
            && client.key.cancelled.requested() == client.cancels_at_home
            && server.upstream.standing.keeps_the_present()
            && is_current(server, &self.lent);
        server.upstream.standing.only_begun.clear();
        server.lease = ClientId::NONE;
        client.link = UpstreamId::NONE;
        let origin = Arc::clone(&server.upstream.standing.origin);
        self.adrift.insert(id, Adrift { origin, manner });
        Some(is_fit)
    }

    /// Gives a client that is adrift a connection that no client has.
    pub fn come_home(&mut self, id: ClientId, to: UpstreamId) -> Homecoming {
        // It may still name a client that has left for good.
        let lease = self.holder(to);
        let is_held = lease.is_some_and(|lease| self.clients.get(lease.0).is_some());
        let (Some(client), Some(server), Some(adrift)) = (
            self.clients.get_mut(id.0),
            self.servers.get_mut(to.0),
            self.adrift.get(&id),
        ) else {
            return Homecoming::Gone;
        };
        let is_free = !is_held && server.resets.is_empty();
        let is_true = server
            .upstream
            .welcome
            .as_deref()
            .is_some_and(Welcome::is_true);
        let is_same = *server.upstream.standing.origin.identity() == *adrift.origin.identity();
        let is_fit = is_free && is_true && is_same && !server.upstream.told_fatal;
        if is_free {
            // What the last one has seen of the session is not this one's.
            let residue = &mut server.upstream.standing.residue;
            *residue = residue.without(Residue::SEEN);
        }
        if !is_fit || !is_clean(server) || !server.upstream.standing.keeps_the_present() {
            return Homecoming::Gone;
        }
        if let Beginning::Manner(manner) = &server.upstream.manner
            && manner.settings != adrift.manner.settings
        {
            return Homecoming::Unlike;
        }
        server.lease = id;
        client.link = to;
        client.cancels_at_home = client.key.cancelled.requested();
        match server.upstream.manner {
            Beginning::Manner(_) => self.arrives_home(id),
            Beginning::Never => Homecoming::Gone,
            Beginning::Unasked => {
                if let Some(mut hop) = self.hop_of_client(id) {
                    hop.settle();
                }
                Homecoming::Asks
            }
        }
    }

    /// The server has said how a session began, or cannot: what that means for its client if it has
    /// just come to it; `None` if it has been there from the beginning.
    pub fn settled(&mut self, id: ClientId) -> Option<Homecoming> {
        let link = self.clients.get(id.0)?.link;
        let server = self.servers.get_mut(link.0)?;
        // Whoever has come to it compares it with another.
        if !self.adrift.contains_key(&id) && !is_begun_alike(server, &self.lent) {
            server.upstream.manner = Beginning::Never;
        }
        if let Beginning::Manner(manner) = &server.upstream.manner {
            let kept = self.manners.keep(Manner::clone(manner));
            server.upstream.manner = Beginning::Manner(kept);
        }
        let adrift = self.adrift.get(&id)?;
        match &server.upstream.manner {
            Beginning::Manner(manner) if manner.settings != adrift.manner.settings => {
                Some(Homecoming::Unlike)
            }
            Beginning::Manner(_) => Some(self.arrives_home(id)),
            Beginning::Unasked | Beginning::Never => Some(Homecoming::Gone),
        }
    }

    /// A client has a home again, and is told what it has not been told yet.
    fn arrives_home(&mut self, id: ClientId) -> Homecoming {
        let Some(adrift) = self.adrift.remove(&id) else {
            return Homecoming::Gone;
        };
        if let Some(client) = self.clients.get_mut(id.0)
            && let Some(server) = self.servers.get(client.link.0)
            && let Beginning::Manner(manner) = &server.upstream.manner
        {
            adrift.manner.tell_difference(manner, &mut client.out);
        }
        Homecoming::Home
    }

    /// A login that the proxy has made for itself is over: the connection is nobody's. Returns
    /// false if it cannot be used.
    pub fn vacate(&mut self, id: ClientId, link: UpstreamId) -> bool {
        let is_whole = |server: &Server| {
            server.lease == id
                && server
                    .upstream
                    .welcome
                    .as_deref()
                    .is_some_and(Welcome::is_whole)
        };
        if !self.servers.get(link.0).is_some_and(is_whole) {
            self.remove(id);
            return false;
        }
        self.clients.remove(id.0);
        self.outbox.timers.clear(id);
        if let Some(server) = self.servers.get_mut(link.0) {
            server.lease = ClientId::NONE;
        }
        true
    }

    /// The process of a server connection, and its secret.
    #[must_use]
    pub fn server_key(&self, id: UpstreamId) -> Option<(u32, Vec<u8>)> {
        let welcome = self.upstream(id)?.welcome.as_deref()?;
        let (pid, secret) = welcome.key()?;
        Some((pid, secret.to_vec()))
    }

    /// How a client logged in, whether it has a home or not.
    #[must_use]
    pub fn origin(&self, id: ClientId) -> Option<&Arc<Origin>> {
        let link = self.clients.get(id.0)?.link;
        let at_home = self
            .upstream(link)
            .map(|upstream| &upstream.standing.origin);
        at_home.or_else(|| self.adrift.get(&id).map(|adrift| &adrift.origin))
    }

    /// Answers the query that a client without a home has sent as cancelled, which stands at the
    /// front of `bytes`. Returns how many that takes; none if it is no whole query.
    pub fn cancel_adrift(&mut self, id: ClientId, bytes: &[u8]) -> usize {
        let Ok(Some(header)) = frame::header(bytes) else {
            return 0;
        };
        let is_whole = header.tag == frontend::QUERY && bytes.len() >= header.size;
        let Some(client) = self.clients.get_mut(id.0).filter(|_| is_whole) else {
            return 0;
        };
        let message = "canceling statement due to user request";
        backend::error_response(&mut client.out, "ERROR", "57014", message);
        backend::ready_for_query(&mut client.out, Status::Idle);
        header.size
    }

    /// A client that was adrift has waited for so long.
    pub fn has_waited(&mut self, id: ClientId, time: Duration) {
        if let Some(client) = self.clients.get_mut(id.0) {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            client.counts.waited = client.counts.waited.saturating_add(micros);
        }
    }

    /// Takes a client that is adrift to another hub.
    pub fn move_out(&mut self, id: ClientId) -> Option<Mover> {
        let adrift = self.adrift.remove(&id)?;
        let client = Box::new(self.clients.remove(id.0)?);
        self.outbox.timers.clear(id);
        Some(Mover { client, adrift })
    }

    /// Takes in a client that comes from another hub.
    pub fn move_in(&mut self, mover: Mover) -> ClientId {
        let Mover { client, adrift } = mover;
        let id = self.clients.insert_with(|slot| {
            let mut client = *client;
            client.id = ClientId(slot);
            client
        });
        self.adrift.insert(ClientId(id), adrift);
        ClientId(id)
    }
}
