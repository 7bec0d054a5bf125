//! What is to be done at a certain time even if nothing comes.

use crate::ids::ClientId;
use crate::statement::Millis;
use std::collections::{BTreeSet, HashMap};

/// What is done about a client when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// Its login has taken too long.
    Login,
    /// It has finished, and its query need not be kept ready any longer.
    Grace,
    /// Its transaction has been loose for as long as one may be.
    Loose,
}

/// At most one timer of each client.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Millis, ClientId)>,
    /// Where in the queue each client is.
    set: HashMap<ClientId, (Millis, Timer), foldhash::fast::FixedState>,
}

impl Timers {
    /// Sets a timer, unless the client has one that does not give way to it: that of a loose
    /// transaction does to all others.
    pub(super) fn set(&mut self, client: ClientId, timer: Timer, at: Millis) {
        if timer != Timer::Loose
            && self
                .set
                .get(&client)
                .is_some_and(|(_, set)| *set == Timer::Loose)
        {
            self.clear(client);
        }
        if let std::collections::hash_map::Entry::Vacant(entry) = self.set.entry(client) {
            entry.insert((at, timer));
            self.queue.insert((at, client));
        }
    }

    /// Takes a client's timer back, if it has one.
    pub(super) fn clear(&mut self, client: ClientId) {
        if let Some((at, _)) = self.set.remove(&client) {
            self.queue.remove(&(at, client));
        }
    }

    /// When the first is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes one that is due.
    pub(super) fn due(&mut self, now: Millis) -> Option<(ClientId, Timer)> {
        let (at, client) = *self.queue.first()?;
        if at > now {
            return None;
        }
        self.queue.pop_first();
        let (_, timer) = self.set.remove(&client)?;
        Some((client, timer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Arena;

    #[test]
    fn each_client_has_one_timer_that_is_due_once() {
        let mut arena = Arena::default();
        let [one, two] = [(); 2].map(|()| ClientId(arena.insert_with(|_| ())));
        let mut timers = Timers::default();
        timers.set(one, Timer::Login, Millis(20));
        timers.set(one, Timer::Grace, Millis(5));
        timers.set(two, Timer::Grace, Millis(10));
        assert_eq!(timers.next(), Some(Millis(10)));
        assert_eq!(timers.due(Millis(9)), None);
        assert_eq!(timers.due(Millis(10)), Some((two, Timer::Grace)));
        assert_eq!(timers.due(Millis(10)), None);
        timers.clear(one);
        assert_eq!((timers.next(), timers.due(Millis(99))), (None, None));
    }

    #[test]
    fn that_of_a_loose_transaction_gives_way() {
        let mut arena = Arena::default();
        let client = ClientId(arena.insert_with(|_| ()));
        let mut timers = Timers::default();
        timers.set(client, Timer::Loose, Millis(5));
        timers.set(client, Timer::Loose, Millis(3));
        assert_eq!(timers.next(), Some(Millis(5)));
        timers.set(client, Timer::Grace, Millis(10));
        timers.set(client, Timer::Loose, Millis(1));
        assert_eq!(timers.due(Millis(9)), None);
        assert_eq!(timers.due(Millis(10)), Some((client, Timer::Grace)));
        assert_eq!(timers.next(), None);
    }
}
