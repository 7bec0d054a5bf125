//! Where the reads of sessions that are alike run: which connections take them.
//!
//! A read that is prepared at home, too, leaves only if that is faster ([`pace`](super::pace)), and
//! then several go together. One that is not prepared there is parsed and planned at home, so it
//! gains wherever it is prepared, if only for itself.

use super::fitness::{Fitness, Read, Wanted, fitness};
use super::{Hub, Server};
use crate::client::Client;
use crate::convert::Call;
use crate::ids::{Arena, ClientId, UpstreamId};
use crate::statement::Millis;

/// The most hosts for sessions that are alike.
const MAX_HOSTS: usize = 16;

/// Milliseconds between two looks among all connections of a worker for more that take what is not
/// prepared at home, whoever is looked for: there may be thousands of either.
const SELDOM: u64 = 50;

/// Milliseconds between reads of two clients that make it worth having a host.
const NEAR: u64 = 5;

/// Sessions that are alike.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Whose connections are visited, first those that are to be filled first.
    hosts: Vec<UpstreamId>,
    /// Connections that have been found for what is not prepared at home.
    others: Vec<UpstreamId>,
    /// Who has left home last, and when.
    last: Option<(ClientId, Millis)>,
    /// When a host was last found.
    used: Millis,
}

impl Group {
    /// Whether anybody has used it so lately, in milliseconds.
    pub(super) fn is_used(&self, now: Millis, within: u64) -> bool {
        now.since(self.used) < within || is_near(self.last, now, within)
    }

    /// A connection that is no host, because its client reads at home, but fits the read now. If
    /// none is known, they are looked for among all, though not often.
    fn find_another(
        &mut self,
        servers: &mut Arena<Server>,
        clients: &Arena<Client>,
        (wanted, may_look): (Wanted, bool),
    ) -> Option<(UpstreamId, Call)> {
        let known = Self::find(&mut self.others, servers, clients, wanted);
        if known.is_some() || !may_look {
            return known;
        }
        self.others.clear();
        for client in clients.iter() {
            let Some(server) = servers.get_mut(client.link.0) else {
                continue;
            };
            let standing = &mut server.upstream.standing;
            if standing.mirror.held(wanted.key).is_some()
                && standing.likeness() == Some(wanted.likeness)
            {
                self.others.push(client.link);
            }
            if self.others.len() >= MAX_HOSTS {
                break;
            }
        }
        Self::find(&mut self.others, servers, clients, wanted)
    }

    /// The first of the hosts that fits the read now; those that never will are none any more.
    fn find(
        hosts: &mut Vec<UpstreamId>,
        servers: &mut Arena<Server>,
        clients: &Arena<Client>,
        wanted: Wanted,
    ) -> Option<(UpstreamId, Call)> {
        let mut found = None;
        hosts.retain(|host| {
            if found.is_some() {
                return true;
            }
            let Some(server) = servers.get_mut(host.0) else {
                return false;
            };
            match fitness(server, clients, wanted) {
                Fitness::Fits(call) => found = Some((*host, call)),
                Fitness::Busy => {}
                Fitness::Unlike => return false,
            }
            true
        });
        found
    }
}

fn is_near(last: Option<(ClientId, Millis)>, now: Millis, within: u64) -> bool {
    last.is_some_and(|(_, at)| now.since(at) <= within)
}

impl Hub {
    /// The connection that the client's read is to run on, as what.
    pub(super) fn host_for(&mut self, id: ClientId, read: &Read) -> Option<(UpstreamId, Call)> {
        let now = self.now;
        let (home, wanted) = self.wanted(id, read)?;
        if matches!(read, Read::Absent(_)) {
            return self.host_of_another(wanted);
        }
        if wanted.most == 0 {
            return None;
        }
        let group = self.sharing.groups.entry(wanted.likeness).or_default();
        let last = group.last.replace((id, now));
        let (servers, clients) = (&mut self.servers, &self.clients);
        let mut found = Group::find(&mut group.hosts, servers, clients, wanted);
        if found.is_none() && group.hosts.len() < MAX_HOSTS && !group.hosts.contains(&home) {
            // One client alone has nobody to share with.
            let others = last.is_some_and(|(other, _)| other != id) && is_near(last, now, NEAR);
            let is_worth = others || !group.hosts.is_empty();
            if is_worth
                && let Fitness::Fits(call) = fitness(servers.get_mut(home.0)?, clients, wanted)
            {
                group.hosts.push(home);
                found = Some((home, call));
            }
        }
        if found.is_some() {
            group.used = now;
        }
        found
    }

    /// The same of a read that is not prepared at home. It gains where it is, however few are read
    /// on one connection now.
    fn host_of_another(&mut self, mut wanted: Wanted) -> Option<(UpstreamId, Call)> {
        wanted.most = wanted.most.max(1);
        let (sharing, now) = (&mut self.sharing, self.now);
        let group = sharing.groups.entry(wanted.likeness).or_default();
        let (servers, clients) = (&mut self.servers, &self.clients);
        let found = Group::find(&mut group.hosts, servers, clients, wanted).or_else(|| {
            let may_look = now.since(sharing.looked) >= SELDOM;
            if may_look {
                sharing.looked = now;
            }
            group.find_another(servers, clients, (wanted, may_look))
        });
        if found.is_some() {
            group.used = now;
        }
        found
    }
}
