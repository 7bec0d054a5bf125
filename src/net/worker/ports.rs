//! The ports of a worker, by the names that their clients and server connections have in the hub.

use crate::auth::Credential;
use crate::client::Cancels;
use crate::ids::{ClientId, Slot, UpstreamId};
use crate::net::admission::Admission;
use crate::net::cancel::Registration;
use crate::net::endpoint::Endpoint;
use crate::net::news::Place;
use crate::net::orders::OpenClient;
use crate::net::pools::Pool;
use crate::net::port::Port;
use crate::net::spell::Spell;
use crate::net::ways::Way;
use crate::statement::Micros;
use mio::Token;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::AbortHandle;

/// Names a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortId {
    Client(ClientId),
    Upstream(UpstreamId),
}

impl PortId {
    /// The token of its socket's events.
    pub(super) const fn token(self) -> Token {
        match self {
            Self::Client(id) => Token(2 * id.0.index()),
            Self::Upstream(id) => Token(2 * id.0.index() + 1),
        }
    }
}

/// The socket of a client.
#[derive(Debug)]
pub(super) struct ClientPort {
    pub(super) port: Port,
    /// The server connection that is held for it; none while it is adrift.
    pub(super) link: UpstreamId,
    /// Whose connections it has, if it gives them back while it can do without.
    pub(super) pool: Option<Arc<Pool>>,
    /// What it needs to come home, from when it has left its home until it has one.
    pub(super) adrift: Option<Box<Adrift>>,
    /// What it is called in the log.
    pub(super) number: u64,
    /// Why it cannot be read any more.
    pub(super) lost: Option<io::Error>,
    /// Its server connection has ended: it is given what is left, and ended, too.
    pub(super) finishes: bool,
    pub(super) cancels: Arc<Cancels>,
    /// Keeps its cancel key valid.
    pub(super) registration: Option<Registration>,
    /// When its login began.
    pub(super) began: Instant,
    /// What the server can be shown for it, as long as it may have to be.
    pub(super) credential: Option<Arc<Credential>>,
    /// To the servers of its database.
    pub(super) way: Arc<Way>,
    pub(super) open: OpenClient,
    /// Its place, until the server has let it in.
    pub(super) admission: Option<Admission>,
    /// Bytes that have come from it.
    pub(super) received: u64,
    /// When any came last, by the worker's clock.
    pub(super) heard: Micros,
    /// Bytes that have come from its server connection.
    pub(super) sent: u64,
    /// What it has been doing, if that may not last for ever.
    pub(super) spell: Option<Box<Spell>>,
}

/// A client without a home.
#[derive(Debug)]
pub(super) struct Adrift {
    /// Where its session was.
    pub(super) endpoint: Arc<Endpoint>,
    /// What it waits for.
    pub(super) seeks: Seeks,
    /// How many cancel requests had come when that was seen to last.
    pub(super) cancels_seen: u32,
}

/// What a client without a home waits for.
#[derive(Debug)]
pub(super) enum Seeks {
    /// It has sent nothing.
    Nothing,
    /// Its turn, with this ticket, since then.
    Turn(u64, Instant),
    /// A connection that is being opened, and since when it waits.
    Connection(u64, AbortHandle, Instant),
}

/// The socket of a server connection.
#[derive(Debug)]
pub(super) struct UpstreamPort {
    pub(super) port: Port,
    /// The server.
    pub(super) endpoint: Arc<Endpoint>,
    /// The client it is held for.
    pub(super) holder: ClientId,
    /// Nothing more is written to it.
    pub(super) shut: bool,
    /// When it is closed as soon as it has no client.
    pub(super) dies: Option<Instant>,
    /// Since when it waits for another client, if it does.
    pub(super) parked: Option<Instant>,
    /// Since when the server is asked something on it first.
    pub(super) asked: Option<Instant>,
    /// Its client is ended for it, as soon as it is outside a transaction.
    pub(super) is_stale: bool,
    /// There is no need of it once its client has left.
    pub(super) is_spare: bool,
    /// When it came to the worker.
    pub(super) opened: Instant,
    /// The server's process, once it has said so.
    pub(super) process: Option<u32>,
    /// Its place in a pool, or among those that are of none, if it is counted.
    pub(super) place: Option<Place>,
    /// How the last client has come that had it.
    pub(super) way: Option<Arc<Way>>,
}

impl UpstreamPort {
    /// A connection that is held for this client.
    pub(super) fn new(port: Port, endpoint: Arc<Endpoint>, holder: ClientId) -> Self {
        Self {
            port,
            endpoint,
            holder,
            shut: false,
            dies: None,
            parked: None,
            asked: None,
            is_stale: false,
            is_spare: false,
            opened: Instant::now(),
            process: None,
            place: None,
            way: None,
        }
    }

    /// Whether it is one of a pool.
    pub(super) fn is_of_pool(&self) -> bool {
        self.place.as_ref().is_some_and(Place::is_of_pool)
    }
}

/// Ports by slot. They are boxed, because most places are empty after a rush.
#[derive(Debug)]
pub(super) struct Ports<P>(Vec<Option<Box<(Slot, P)>>>);

impl<P> Default for Ports<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Ports<P> {
    pub(super) fn insert(&mut self, slot: Slot, port: P) {
        if self.0.len() <= slot.index() {
            self.0.resize_with(slot.index() + 1, || None);
        }
        self.0[slot.index()] = Some(Box::new((slot, port)));
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&P> {
        let place = self.0.get(slot.index())?.as_deref()?;
        (place.0 == slot).then_some(&place.1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut P> {
        let place = self.0.get_mut(slot.index())?.as_deref_mut()?;
        (place.0 == slot).then_some(&mut place.1)
    }

    /// The port in this place, and the name it has.
    #[inline]
    pub(super) fn at(&mut self, index: usize) -> Option<(Slot, &mut P)> {
        let place = self.0.get_mut(index)?.as_deref_mut()?;
        Some((place.0, &mut place.1))
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<P> {
        let place = self.0.get_mut(slot.index())?;
        place.take_if(|place| place.0 == slot).map(|place| place.1)
    }

    /// The names of all ports.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let places = self.0.iter().flatten();
        places.map(|place| place.0).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The ports in so many places from this one on, and where to go on if there are more.
    pub(super) fn slice(
        &self,
        from: usize,
        most: usize,
    ) -> (impl Iterator<Item = (Slot, &P)>, Option<usize>) {
        let end = from.saturating_add(most).min(self.0.len());
        let places = self.0.get(from..end).unwrap_or_default().iter();
        let ports = places.flatten().map(|place| (place.0, &place.1));
        (ports, (end < self.0.len()).then_some(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Arena;

    #[test]
    fn a_port_is_found_by_the_name_it_was_given_and_by_no_later_one() {
        let mut arena = Arena::default();
        let first = arena.insert_with(|_| ());
        let mut ports = Ports::default();
        ports.insert(first, "a");
        arena.remove(first);
        let second = arena.insert_with(|_| ());
        assert_eq!(ports.get_mut(second), None);
        assert_eq!(ports.remove(second), None);
        assert_eq!(ports.at(0), Some((first, &mut "a")));
        assert_eq!(ports.remove(first), Some("a"));
        assert!(ports.is_empty() && ports.slots().is_empty());
    }

    #[test]
    fn ports_are_looked_at_a_few_places_at_a_time() {
        let mut arena = Arena::default();
        let mut ports = Ports::default();
        let slots: Vec<_> = (0..5).map(|_| arena.insert_with(|_| ())).collect();
        (slots.iter().enumerate()).for_each(|(index, slot)| ports.insert(*slot, index));
        ports.remove(slots[1]);
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let (some, next) = ports.slice(at, 2);
            seen.extend(some.map(|(slot, index)| (slot, *index)));
            from = next;
        }
        assert_eq!(seen, [0, 2, 3, 4].map(|index| (slots[index], index)));
        let (mut none, next) = ports.slice(99, 2);
        assert!(none.next().is_none() && next.is_none());
    }
}
