//! Clients that were to have a warm connection on which the server has not been asked for too long
//! what a new login would find: it is asked now, which is sooner done than another login.
//!
//! Invariant: such a client waits for one connection, and is connected otherwise as soon as that is
//! closed for any reason.

use super::Worker;
use super::ports::PortId;
use crate::hub::Parking;
use crate::ids::UpstreamId;
use crate::net::news::Place;
use crate::net::orders::Arrival;
use std::time::Instant;

impl Worker {
    /// Whether a connection has no client and is there.
    pub(super) fn is_parked(&mut self, id: UpstreamId) -> bool {
        let is_alive = self
            .upstreams
            .get_mut(id.0)
            .is_some_and(|server| server.parked.is_some() && !server.shut && !server.port.ended);
        is_alive && self.parked.contains(&id)
    }

    /// A warm connection could not be given to a client. If that may be for want of a look at the
    /// catalog, the server is asked first; else the client is connected otherwise.
    #[cold]
    pub(super) fn ask_first(&mut self, mut arrival: Arrival, id: UpstreamId, may_ask: bool) {
        let may_ask = may_ask && self.is_parked(id);
        let asks = match may_ask {
            true => self.hub.look(id, arrival.joined.key.clone()),
            false => None,
        };
        if let (Some(Parking::Learns | Parking::Resets), Some(server)) =
            (asks, self.upstreams.get_mut(id.0))
        {
            let now = Instant::now();
            server.parked = None;
            server.asked = Some(now);
            self.awaited.push((id, arrival));
            self.make_dirty(PortId::Upstream(id));
            return self.sweeps_after(now);
        }
        if let Some(server) = self.upstreams.get_mut(id.0) {
            arrival.joined.place = server.place.take();
        }
        self.close_parked(id);
        self.redial(arrival);
    }

    /// What the server was asked on a connection without a client has been answered, and it is fit
    /// for one: for who waits for it, or for anybody.
    pub(super) fn is_fit(&mut self, id: UpstreamId) {
        let at = self.awaited.iter().position(|(awaited, _)| *awaited == id);
        let Some(at) = at else {
            return self.offer(id);
        };
        let (_, arrival) = self.awaited.swap_remove(at);
        if let Some(server) = self.upstreams.get_mut(id.0) {
            server.parked = Some(Instant::now());
            server.asked = None;
        }
        self.adopt_warm(arrival, id, false);
    }

    /// A connection without a client was closed, which had this place: who has waited for it is
    /// connected otherwise.
    pub(super) fn is_unfit(&mut self, id: UpstreamId, place: Option<Place>) {
        let at = self.awaited.iter().position(|(awaited, _)| *awaited == id);
        let Some(at) = at else { return };
        let (_, mut arrival) = self.awaited.swap_remove(at);
        arrival.joined.place = place;
        self.redial(arrival);
    }
}
