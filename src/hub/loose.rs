//! Transactions of which no server has heard (`hop/loose`): where their reads run if nobody else's
//! connection takes them, and when they have lasted too long.

use super::fitness::{Fitness, Read, fitness};
use super::timers::Timer;
use super::{Hub, Task};
use crate::client::Turn;
use crate::convert::Call;
use crate::ids::{ClientId, UpstreamId};
use crate::wire::backend::Status;

impl Hub {
    /// The own connection of a client whose transaction is loose, for its read with this key, as a
    /// visit among those of others: who is alone reads there.
    pub(super) fn home_for(&mut self, id: ClientId, read: &Read) -> Option<(UpstreamId, Call)> {
        if !self.clients.get(id.0)?.is_loose {
            return None;
        }
        let (home, mut wanted) = self.wanted(id, read)?;
        // Whoever has come before is sent home rather than this one.
        wanted.most = usize::MAX;
        match fitness(self.servers.get_mut(home.0)?, &self.clients, wanted) {
            Fitness::Fits(call) => Some((home, call)),
            Fitness::Busy | Fitness::Unlike => None,
        }
    }

    /// A client's transaction may have been loose for as long as one may be.
    pub(super) fn opens_late(&mut self, id: ClientId) {
        let Some(mut hop) = self.hop_of_client(id) else {
            return;
        };
        if let Some(due) = hop.opens_late() {
            self.outbox.timers.set(id, Timer::Loose, due);
        } else if let Some(client) = self.clients.get(id.0) {
            self.outbox.tasks.push_back(Task::Send(client.link));
        }
    }

    /// Whether nothing of a client is in flight: the moment to end it when it is to be drained.
    #[must_use]
    pub fn is_idle(&self, id: ClientId) -> bool {
        let Some(client) = self.clients.get(id.0) else {
            return true;
        };
        let upstream = self.upstream(client.link);
        matches!(client.turn, Turn::Free)
            && client.skip == 0
            && upstream.is_none_or(|upstream| {
                upstream.ledger.is_idle() && upstream.standing.status == Status::Idle
            })
            && !client.is_loose
    }
}
