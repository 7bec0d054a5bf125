//! Clients that were to have a warm connection on which the server has not been asked for too long
//! what a new login would find: it is asked now, instead of another login.
//!
//! Invariants:
//! - such a client waits for one connection, and is connected otherwise as soon as that is closed
//!   for any reason, and [`PATIENCE`] after it has begun to wait;
//! - the last look at the catalog took no longer than [`MOST`], or than [`LOGINS`] logins take:
//!   where the catalog is so large that it does, another login is sooner done.

use super::Worker;
use super::ports::PortId;
use crate::hub::Parking;
use crate::ids::UpstreamId;
use crate::net::news::Place;
use crate::net::orders::Arrival;
use std::time::{Duration, Instant};

/// How long a client waits for an answer. Something on the server may keep the look waiting that
/// would not keep a login.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest time, in milliseconds, that the last look may have taken in any case. A login takes
/// some 3 where the server is near and has little to do.
const MOST: u64 = 20;

/// How many times as long as the last login it may have taken where that took longer: a look is
/// answered in as many round trips as a login or fewer, and behind a login the first statements
/// of a session take as long again.
const LOGINS: u32 = 2;

/// The longest time, in milliseconds, that a look may take where the last login took this long.
fn longest_look(login: Duration) -> u64 {
    let logins = login.saturating_mul(LOGINS).as_millis();
    u64::try_from(logins).unwrap_or(u64::MAX).max(MOST)
}

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
            true => {
                let key = arrival.joined.key.clone();
                self.hub.look(id, key, longest_look(self.login_took))
            }
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
            return self.sweeps_after(PATIENCE);
        }
        if let Some(server) = self.upstreams.get_mut(id.0) {
            arrival.joined.place = server.place.take();
        }
        self.close_parked(id);
        self.redial(arrival);
    }

    /// Since when a connection without a client is kept too long, if the server does not answer.
    pub(super) fn answers_by(&self, id: UpstreamId, asked: Instant) -> Option<Instant> {
        let is_awaited = self.awaited.iter().any(|(awaited, _)| *awaited == id);
        let limit = match is_awaited {
            true => PATIENCE,
            false => self.config.server_idle_timeout,
        };
        asked.checked_add(limit)
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

#[cfg(test)]
mod tests {
    use super::longest_look;
    use std::time::Duration;

    #[test]
    fn a_look_may_take_longer_where_logins_do() {
        assert_eq!(longest_look(Duration::ZERO), 20);
        assert_eq!(longest_look(Duration::from_millis(3)), 20);
        // A server that is far away, or has much to do.
        assert_eq!(longest_look(Duration::from_millis(120)), 240);
    }
}
