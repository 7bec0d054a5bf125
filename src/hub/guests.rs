//! Reads of many clients on few server connections: *guests*, and the *hosts* they visit.
//!
//! A read that the server itself proves independent of the session may run on the connection of
//! another client whose session is alike, behind the reads of others: then one write and one read
//! carry many, and the server process need not sleep and wake for each. Whatever happens there, a
//! guest asks at home again, which nobody can tell: it had nothing else in flight, and its answer
//! was not begun.
//!
//! There are as many hosts as it takes, filled in the same order each time: whoever finds all of
//! them full or in use makes its own connection one. Nothing waits to be sent together with
//! something else: what is ready at the end of a turn goes out.
//!
//! Invariants:
//! - a guest and its host are alike (`standing::alike`) when the read is sent;
//! - a host is never in a transaction, and has nothing of its own client in flight;
//! - whoever is barred from its own connection is let in when the last visit is over, and no guest
//!   is let in before;
//! - visits that make no progress for [`STALL`] milliseconds are given up, all of the connection.

use super::fitness::Departure;
use super::hop::timing::Slow;
use super::hosts::Group;
use super::pace::Pace;
use super::{Hub, Server, Task};
use crate::client::Turn;
use crate::convert::{self, Call};
use crate::ids::{ClientId, UpstreamId};
use crate::metrics::{Counter, TimedRoute};
use crate::reason::Homing;
use crate::standing::Likeness;
use crate::statement::{Key, Millis, Recipe};
use crate::upstream::visit::{Reply, Visits};
use crate::wire::Error;
use crate::wire::backend;
use crate::wire::frame::HEADER;
use std::collections::HashMap;

/// Milliseconds without an answer after which all guests of a host ask at home.
///
/// A read that travels takes a fraction of one. On a busy machine a server process may have to wait
/// for a processor as long as this, and to run all of them twice then would not make it less busy.
const STALL: u64 = 20;

/// Milliseconds by which this is noticed later than it should be if the worker itself had to wait
/// for a processor: then so had the server, and it is given as long again.
const LATE: u64 = 2;

/// Milliseconds that a read which others wait behind should not take.
const LONG: u64 = 5;

/// How often that time doubles while the server does not end what it was asked to cancel.
const MAX_DOUBLINGS: u32 = 10;

/// Milliseconds after which a host that nobody has visited is one no longer.
const IDLE: u64 = 10_000;

/// What is shared among the clients of a worker.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    pub(super) groups: HashMap<Likeness, Group, foldhash::fast::FixedState>,
    /// The connections with visits, and maybe some without.
    visited: Vec<UpstreamId>,
    /// When others were last looked for that take what is not prepared at home.
    pub(super) looked: Millis,
    /// Time has passed since it was last seen to them.
    pub(super) is_due: bool,
    /// The most visits on one connection at a time.
    pub(super) pace: Pace,
}

impl Sharing {
    /// Whether some connection may have visits.
    #[inline]
    pub(super) const fn has_visits(&self) -> bool {
        !self.visited.is_empty()
    }

    /// Forgets the hosts of sessions that have not travelled lately.
    pub(super) fn rest(&mut self, now: Millis) {
        self.groups.retain(|_, group| group.is_used(now, IDLE));
    }
}

/// Milliseconds without an answer after which something is done about these visits: twice as many
/// each time that it was of no use.
fn stall(visits: &Visits) -> u64 {
    STALL << visits.hastened.min(MAX_DOUBLINGS)
}

/// The statement with this key has taken long on this host.
#[cold]
fn takes_long(host: &mut Server, key: Key, now: Millis) {
    if let Some(entry) = host.upstream.standing.mirror.held(key) {
        entry.statement.took_long(now);
    }
}

impl Hub {
    /// Whether a server connection has visits.
    #[must_use]
    #[inline]
    pub fn is_visited(&self, id: UpstreamId) -> bool {
        self.servers
            .get(id.0)
            .is_some_and(|server| server.visits.is_busy())
    }

    /// Sends a client's read to a host, or home if there is none.
    pub(super) fn depart(&mut self, id: ClientId, departure: Departure) {
        let read = &departure.0;
        match self.host_for(id, read).or_else(|| self.home_for(id, read)) {
            Some((host, call)) => self.visit(id, host, &call, read.recipe()),
            None => {
                if let Some(mut hop) = self.hop_of_client(id) {
                    hop.stay(departure);
                }
            }
        }
    }

    /// The client's read, which has just been scanned, is sent to its host.
    fn visit(&mut self, id: ClientId, host: UpstreamId, call: &Call, recipe: &Recipe) {
        let client = self.clients.get_mut(id.0);
        let (Some(client), Some(server)) = (client, self.servers.get_mut(host.0)) else {
            return;
        };
        if client.link == host {
            // It is at home, too.
            client.at_home = self.now;
        }
        let upstream = &mut server.upstream;
        let mirror = &mut upstream.standing.mirror;
        let parsing = convert::renew(call, mirror, &self.lent, &mut upstream.out);
        client.counts.prepared += u64::from(parsing);
        convert::bind(
            call,
            recipe,
            &client.query,
            convert::Missed::default(),
            &self.lent,
            &mut upstream.out,
        );
        upstream.standing.leaves(call.residue);
        server.visits.push(id, (call.key, parsing), self.now);
        if server.visits.len() == 1 && !self.sharing.visited.contains(&host) {
            self.sharing.visited.push(host);
        }
        let task = Task::Send(host);
        if self.outbox.tasks.back() != Some(&task) {
            self.outbox.tasks.push_back(task);
        }
    }

    /// Takes what it can of `bytes` from a server that owes answers to visits; returns how many
    /// were used.
    ///
    /// # Errors
    /// A length field no frame can have, or a reply that cannot follow what was sent.
    #[inline(never)]
    pub(super) fn visited_bytes(&mut self, id: UpstreamId, bytes: &[u8]) -> Result<usize, Error> {
        let mut at = 0;
        while let Some(server) = self.servers.get_mut(id.0) {
            let partial = &mut server.upstream.partial;
            let swallowed = partial.swallow.min(bytes.len() - at);
            partial.swallow -= swallowed;
            at += swallowed;
            let rest = &bytes[at..];
            let Some(visit) = server.visits.front() else {
                break;
            };
            match visit.reply(rest)? {
                Reply::Part => return Ok(at),
                Reply::Whole(reply) => {
                    if self.now.since(server.visits.since) >= LONG {
                        takes_long(server, visit.key, self.now);
                    }
                    server.visits.pop(self.now);
                    self.answer(visit.guest, &rest[reply.swallowed..reply.size]);
                    at += reply.size;
                }
                Reply::Unusual => {
                    self.has_delayed(id, visit.key);
                    self.turn_out_first(id, 1, Homing::Unusual);
                }
                reply @ (Reply::Swallow(size) | Reply::Parsed(size)) => {
                    if matches!(reply, Reply::Parsed(_)) {
                        server.visits.parsed();
                    }
                    let come = size.min(rest.len());
                    server.upstream.partial.swallow = size - come;
                    at += come;
                }
                Reply::End(size) => {
                    if visit.parsing {
                        // It was closed, and could not be parsed.
                        server.upstream.standing.mirror.revoke(visit.key);
                    }
                    server.visits.pop(self.now);
                    at += size;
                }
                Reply::Aside(size) => {
                    if rest.first() != Some(&backend::NOTIFICATION) {
                        // What it says may make the sessions unlike each other.
                        self.turn_out_of(id, Homing::Disturbed);
                    }
                    self.own_bytes(id, &rest[..size])?;
                    at += size;
                }
            }
        }
        // The server may still be about to be told to cancel: what it says is for its own client,
        // which is not let in before.
        if !self.is_visited(id) {
            self.vacated(id);
        }
        Ok(at + self.own_bytes(id, &bytes[at..])?)
    }

    /// Takes what is for the client that the connection is held for.
    fn own_bytes(&mut self, id: UpstreamId, bytes: &[u8]) -> Result<usize, Error> {
        match self.hop_of_server(id) {
            Some(mut hop) if !bytes.is_empty() => hop.upstream_bytes(bytes),
            _ => Ok(0),
        }
    }

    /// A guest is given the answer to its read, unless it has left, or its own server has said its
    /// last word meanwhile.
    fn answer(&mut self, id: ClientId, answer: &[u8]) {
        let Some(client) = self.clients.get_mut(id.0) else {
            return;
        };
        let home = self.servers.get(client.link.0);
        let is_open = home.is_some_and(|home| !home.upstream.told_fatal);
        if !is_open || !matches!(client.turn, Turn::Visiting) {
            return;
        }
        client.forward_loosely(answer);
        client.turn = Turn::Free;
        let asked = std::mem::take(&mut client.asked);
        let micros = self.clock.since(asked);
        self.sharing.pace.waited(micros);
        client.counts.micros += micros;
        self.lent.counters().took(TimedRoute::Shared, micros);
        let text = std::mem::take(&mut client.query);
        if let Some(home) = home.filter(|_| self.lent.is_slow(micros)) {
            let database = home.upstream.standing.origin.database();
            Slow::shared((client.number, database), micros, &text).tell();
        }
        self.lent.texts.give_back(text);
        self.lent.counters().add(Counter::ReadsShared, 1);
        if let Some(mut hop) = self.hop_of_client(id) {
            hop.has_visited();
        }
        self.outbox.tasks.push_back(Task::Return(id));
    }

    /// The statement with this key has kept a host from others, or has failed there: it stays at
    /// home for a time.
    fn has_delayed(&mut self, id: UpstreamId, key: Key) {
        let now = self.now;
        if let Some(server) = self.servers.get_mut(id.0)
            && let Some(entry) = server.upstream.standing.mirror.held(key)
        {
            entry.statement.rests_at_home(now);
        }
    }

    /// All guests of a connection have to ask at home; what it owes them is swallowed.
    pub(super) fn turn_out_of(&mut self, id: UpstreamId, why: Homing) {
        self.turn_out_first(id, usize::MAX, why);
    }

    fn turn_out_first(&mut self, id: UpstreamId, among: usize, why: Homing) {
        while let Some(server) = self.servers.get_mut(id.0)
            && let Some(visit) = server.visits.abandon(among)
        {
            self.send_home(visit.guest, why);
        }
    }

    /// The same of a connection that is no longer in the hub.
    pub(super) fn turn_out(&mut self, visits: &mut Visits) {
        while let Some(visit) = visits.abandon(usize::MAX) {
            self.send_home(visit.guest, Homing::Disturbed);
        }
    }

    /// A guest asks at home, unless it has left.
    fn send_home(&mut self, id: ClientId, why: Homing) {
        if let Some(mut hop) = self.hop_of_client(id)
            && matches!(hop.client.turn, Turn::Visiting)
        {
            hop.come_home();
            self.lent.counters().add(Counter::ReadsEscaped, 1);
            self.lent.counters().homes(why);
            self.outbox.tasks.push_back(Task::Return(id));
        }
    }

    /// The last visit on a connection is over: its own client has it again.
    fn vacated(&mut self, id: UpstreamId) {
        let Some(mut hop) = self.hop_of_server(id) else {
            return;
        };
        if !std::mem::take(&mut hop.visits.is_wanted) {
            return;
        }
        hop.unbar();
        hop.opens_late();
        let holder = hop.client.id;
        self.outbox.tasks.push_back(Task::Return(holder));
    }

    /// The next task of those about hosts. What they have said in this turn has been read by now.
    #[inline(never)]
    pub(super) fn poll_hosts(&mut self) -> Option<Task> {
        if std::mem::take(&mut self.sharing.is_due) {
            self.see_to_hosts();
        }
        self.outbox.tasks.pop_front()
    }

    /// Has the guests of hosts that make no progress ask at home, and frees the hosts.
    pub(super) fn see_to_hosts(&mut self) {
        let mut at = 0;
        while let Some(id) = self.sharing.visited.get(at).copied() {
            let server = self.servers.get_mut(id.0);
            let Some(server) = server.filter(|server| !server.visits.is_empty()) else {
                self.sharing.visited.swap_remove(at);
                continue;
            };
            let holder = self.clients.get(server.lease.0);
            let visits = &mut server.visits;
            if holder.is_some_and(|holder| {
                holder.is_loose && !holder.is_parting && visits.are_only_of(holder.id)
            }) {
                // It keeps nobody else waiting, and would run at home again.
                visits.since = self.now;
                at += 1;
                continue;
            }
            let waited = self.now.since(visits.since);
            let stall = stall(visits);
            if waited >= stall && !visits.is_hastened {
                visits.since = self.now;
                if waited > stall + LATE && !visits.is_granted {
                    visits.is_granted = true;
                    at += 1;
                    continue;
                }
                visits.is_hastened = true;
                visits.hastened += 1;
                let key = visits.front().filter(|visit| !visit.is_abandoned);
                if let Some(visit) = key {
                    self.has_delayed(id, visit.key);
                }
                self.turn_out_of(id, Homing::Stalled);
                self.outbox.tasks.push_back(Task::Hasten(id));
            }
            at += 1;
        }
    }

    /// The most bytes of a message that are waited for before it is taken.
    #[must_use]
    pub const fn most_awaited(&self) -> usize {
        const PARSE: usize = 64;
        self.lent.settings.limits.max_query + HEADER + 1 + PARSE
    }

    /// When visits that make no progress are to be given up.
    pub(super) fn next_stall(&self) -> Option<Millis> {
        let stalls = self.sharing.visited.iter().filter_map(|id| {
            let visits = &self.servers.get(id.0)?.visits;
            let is_timed = !visits.is_empty() && !visits.is_hastened;
            is_timed.then_some(Millis(visits.since.0.saturating_add(stall(visits))))
        });
        stalls.min()
    }

    /// The server was asked to cancel what it did on a connection, or could not be: what is sent
    /// from now on is not hit.
    pub fn hastened(&mut self, id: UpstreamId) {
        let Some(server) = self.servers.get_mut(id.0) else {
            return;
        };
        server.visits.is_hastened = false;
        server.visits.since = self.now;
        if server.visits.is_empty() {
            self.vacated(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_host_that_stalls_is_so() {
        let said = Homing::Stalled.explain();
        assert!(said.contains(&format!(" {STALL} ms")), "{said}");
    }
}
