//! Whether a server connection may be visited by a read (`guests`).

use super::{Hub, Server};
use crate::client::{Client, Turn};
use crate::convert::{Call, Elsewhere};
use crate::ids::{Arena, ClientId, UpstreamId};
use crate::standing::Likeness;
use crate::statement::{Key, Millis, Recipe, Statement, Terms};
use crate::upstream::Partial;
use crate::wire::backend::Status;
use std::sync::Arc;

/// Bytes that a client has not taken yet, above which it is no guest and its connection takes none:
/// nothing is read from that while there are too many.
pub(super) const MAX_UNSENT: usize = 32 * 1024;

/// A read that leaves home.
#[derive(Debug)]
pub(super) struct Departure(pub(super) Read);

/// Its statement.
#[derive(Debug)]
pub(super) enum Read {
    /// It is prepared at home, too.
    Ready(Call, Arc<Recipe>),
    /// It is not.
    Absent(Box<Elsewhere>),
}

impl Read {
    pub(super) const fn recipe(&self) -> &Arc<Recipe> {
        match self {
            Self::Ready(_, recipe) => recipe,
            Self::Absent(elsewhere) => &elsewhere.recipe,
        }
    }
}

/// What a host must hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) likeness: Likeness,
    pub(super) key: Key,
    pub(super) statement: *const Statement,
    pub(super) terms: *const Terms,
    pub(super) epoch: u64,
    pub(super) oldest: Millis,
    pub(super) most: usize,
}

/// What a connection is to a guest.
#[derive(Debug)]
pub(super) enum Fitness {
    /// It takes the read, as a call of its own statement.
    Fits(Call),
    /// Not now, or not this one.
    Busy,
    /// It will not soon.
    Unlike,
}

/// Whether a connection may be visited now.
pub(super) fn fitness(server: &mut Server, clients: &Arena<Client>, wanted: Wanted) -> Fitness {
    let Some(holder) = clients.get(server.lease.0) else {
        return Fitness::Unlike;
    };
    let upstream = &mut server.upstream;
    if upstream.told_fatal || holder.is_parting || holder.leaves || holder.relay_only {
        return Fitness::Unlike;
    }
    let is_used = upstream.standing.status != Status::Idle
        || !upstream.ledger.is_idle()
        || server.lesson.is_some()
        || upstream.partial != Partial::default()
        || holder.skip > 0
        || !matches!(holder.turn, Turn::Free | Turn::Visiting)
        || !holder.key.cancelled.all_delivered()
        || !holder.insisters.is_empty()
        || holder.out.len() > MAX_UNSENT;
    let visits = &server.visits;
    if is_used || visits.is_wanted || visits.is_hastened || visits.len() >= wanted.most {
        return Fitness::Busy;
    }
    let standing = &mut upstream.standing;
    if standing.likeness() != Some(wanted.likeness) {
        return Fitness::Unlike;
    }
    if !standing.is_surveyed() || standing.present_epoch() != wanted.epoch {
        return Fitness::Busy;
    }
    match standing.mirror.held(wanted.key) {
        Some(entry)
            if entry.epoch == wanted.epoch
                && entry.verified >= wanted.oldest
                && std::ptr::eq(Arc::as_ptr(&entry.statement), wanted.statement)
                && std::ptr::eq(Arc::as_ptr(&entry.terms), wanted.terms)
                && !entry.statement.is_withdrawn() =>
        {
            Fitness::Fits(Call::of(entry))
        }
        _ => Fitness::Busy,
    }
}

impl Hub {
    /// The client's home, and what a host for its read must hold.
    pub(super) fn wanted(&mut self, id: ClientId, read: &Read) -> Option<(UpstreamId, Wanted)> {
        let home = self.clients.get(id.0)?.link;
        let max_age = self.lent.settings.statement_max_age;
        let server = self.servers.get_mut(home.0)?;
        let standing = &mut server.upstream.standing;
        let likeness = standing.likeness_of_guest()?;
        let (key, statement, terms, epoch) = match read {
            Read::Ready(call, _) => {
                let entry = standing.mirror.held(call.key)?;
                (call.key, &entry.statement, &entry.terms, entry.epoch)
            }
            Read::Absent(of) => (of.key, &of.statement, &of.terms, standing.present_epoch()),
        };
        let wanted = Wanted {
            likeness,
            key,
            statement: Arc::as_ptr(statement),
            terms: Arc::as_ptr(terms),
            epoch,
            oldest: Millis(self.now.0.saturating_sub(terms.lifetime(max_age))),
            most: self.sharing.pace.most(),
        };
        Some((home, wanted))
    }
}
