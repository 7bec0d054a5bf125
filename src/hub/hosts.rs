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

/// Milliseconds between reads of two clients that make it worth having a host.
const NEAR: u64 = 5;

/// Sessions that are alike.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Whose connections are visited, first those that are to be filled first.
    hosts: Vec<UpstreamId>,
    /// Connections whose clients read at home, because that is faster for them. They take what is
    /// not prepared at home; the latest is the last.
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

    /// The client of this connection reads at home.
    fn reads_at_home(&mut self, home: UpstreamId) {
        if self.others.contains(&home) {
            return;
        }
        if self.others.len() >= MAX_HOSTS {
            self.others.remove(0);
        }
        self.others.push(home);
    }
}

fn is_near(last: Option<(ClientId, Millis)>, now: Millis, within: u64) -> bool {
    last.is_some_and(|(_, at)| now.since(at) <= within)
}

impl Hub {
    /// The connection that the client's read is to run on, as what.
    pub(super) fn host_for(&mut self, id: ClientId, read: &Read) -> Option<(UpstreamId, Call)> {
        let now = self.now;
        let (home, mut wanted) = self.wanted(id, read)?;
        let is_absent = matches!(read, Read::Absent(_));
        // What is not prepared at home gains where it is, however few others read there.
        let most = wanted.most;
        wanted.most = most.max(usize::from(is_absent));
        let (servers, clients) = (&mut self.servers, &self.clients);
        let group = self.sharing.groups.entry(wanted.likeness).or_default();
        let last = group.last;
        if !is_absent {
            group.last = Some((id, now));
        }
        let mut found = None;
        if wanted.most > 0 {
            found = Group::find(&mut group.hosts, servers, clients, wanted);
        }
        if is_absent {
            let others = &mut group.others;
            found = found.or_else(|| Group::find(others, servers, clients, wanted));
        } else if found.is_none()
            && most > 0
            && group.hosts.len() < MAX_HOSTS
            && !group.hosts.contains(&home)
        {
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
        match found {
            Some(_) => group.used = now,
            None if !is_absent => group.reads_at_home(home),
            None => {}
        }
        found
    }
}
