//! Clients that leave their homes to others and are given the homes of others, as in a pool, and
//! some that have none at first.

use crate::house::{House, Room};
use crate::server::Server;
use pgautoprep::client::CancelKey;
use pgautoprep::hub::{Arrival, Homecoming, Leaving, Newcomer, welcome_in};
use pgautoprep::ids::{ClientId, UpstreamId};
use pgautoprep::statement::Millis;
use pgautoprep::statement::context::Origin;
use std::sync::Arc;

/// Connections that nobody has, beyond which one is taken instead of a new one.
const IDLE: usize = 3;

impl House {
    /// A client leaves its home if it can, and comes to another.
    pub(crate) fn moves(&mut self, room: usize) -> Result<(), String> {
        let Room { client, server, .. } = &self.rooms[room];
        let (id, link) = (client.id, client.link);
        let is_silent = client.pending.is_empty()
            && !client.has_finished
            // A request is for the connection that its client had when it was sent.
            && client.requests.iter().all(|request| request.delivered.is_some())
            && server.output.is_empty()
            && server.pending.is_empty()
            && !server.has_ended;
        if !is_silent || self.hub.prepares_to_leave(id) != Leaving::Goes {
            return Ok(());
        }
        let is_fit = self.hub.leave_home(id).ok_or("it cannot leave")?;
        if self.hub.client_bytes(id, b"Q\0\0\0\x05\0") != Ok(0) {
            return Err("what a client without a home says is taken".to_owned());
        }
        let (next, new) = self.vacant();
        let mut old = std::mem::replace(&mut self.rooms[room].server, new);
        let model = &mut self.rooms[room].server.model;
        model.stamp = old.model.stamp;
        // What it has written is in the database.
        model.executed = std::mem::take(&mut old.model.executed);
        match is_fit {
            true => self.idle.push((link, old)),
            false => self.hub.discard(link),
        }
        self.rooms[room].client.link = next;
        self.moved += 1;
        self.note(room, "comes to another home");
        match self.hub.come_home(id, next) {
            Homecoming::Home | Homecoming::Asks => Ok(()),
            other => Err(format!("its home is {other:?}")),
        }
    }

    /// A client that is welcomed without a home, and then comes to one; `None` if nobody knows how
    /// its session would begin.
    pub(crate) fn newcomer(&mut self, key: CancelKey) -> Option<((ClientId, UpstreamId), Server)> {
        let precedent = self.hub.precedent(self.idle.last()?.0)?;
        let welcome = Arc::new(welcome_in(&Server::new(0, false).output)??);
        let since = Millis(self.now.saturating_sub(2_000));
        let shapes = Arc::clone(&self.hub.lent.shapes);
        let origin = || Origin::new(1, b"db", b"me");
        if !precedent.holds(&welcome, (&shapes, &origin()), since) {
            return None;
        }
        if self.dice.chance(200) {
            // What it has not sent yet is not cancelled.
            key.cancelled.request();
            key.cancelled.deliver();
        }
        let (id, (_, secret)) = self.hub.welcome(Newcomer {
            number: self.newcomers as u64,
            key: key.clone(),
            origin: origin(),
            precedent,
            welcome,
        })?;
        assert_eq!(secret, key.secret[..4]);
        self.newcomers += 1;
        assert_eq!(self.hub.client_bytes(id, b"Q\0\0\0\x05\0"), Ok(0));
        if self.dice.chance(200) {
            // It leaves before it has said anything, and another comes.
            self.hub.remove(id);
            return self.newcomer(key);
        }
        let (link, mut server) = self.vacant();
        server.model.executed = Default::default();
        let found = self.hub.come_home(id, link);
        assert!(
            matches!(found, Homecoming::Home | Homecoming::Asks),
            "its home is {found:?}"
        );
        Some(((id, link), server))
    }

    /// A connection that nobody has.
    fn vacant(&mut self) -> (UpstreamId, Server) {
        match self.idle.len() {
            0..IDLE => self.opened(),
            length => self.idle.swap_remove(self.dice.below(length)),
        }
    }

    /// A connection on which the proxy has logged in for itself.
    fn opened(&mut self) -> (UpstreamId, Server) {
        let key = CancelKey {
            secret: [0; 32],
            cancelled: Arc::default(),
        };
        let (guest, link) = self.hub.arrive(Arrival {
            number: 0,
            key,
            origin: Origin::new(1, b"db", b"me"),
            relay_only: false,
            is_second: false,
            deadline: Millis(u64::MAX),
        });
        let mut server = Server::new(0, false);
        server.model.is_shared = true;
        server.is_quiet = true;
        let greeting = std::mem::take(&mut server.output);
        let used = self.hub.upstream_bytes(link, &greeting);
        assert_eq!(used, Ok(greeting.len()));
        assert!(self.hub.vacate(guest, link), "the login is not over");
        self.names.push((guest, link));
        (link, server)
    }
}
