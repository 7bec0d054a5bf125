//! Clients that are welcomed without a server connection: they are adrift from the beginning, and
//! are given a home when they send something.
//!
//! Invariants:
//! - what such a client is told is what the server has just told another login that is the same;
//! - how its session began is how sessions of its identity began last (a *precedent*), and that is
//!   followed only where a warm connection could be given: nothing that changes how logins begin
//!   has been seen since the precedent's own login began, and a look at the catalog shows so that
//!   is no older than [`MAX_LOOK`](super::MAX_LOOK). What was not seen is found when it comes home.

use super::adrift::Adrift;
use super::warm::{Began, is_current};
use super::{Hub, Server};
use crate::client::{CancelKey, Client, Turn};
use crate::convert::Policy;
use crate::ids::{ClientId, UpstreamId};
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::statement::shapes::Shapes;
use crate::upstream::{Beginning, Manner, Welcome};
use std::sync::Arc;

/// The process ids that are given to such clients begin here: behind those that systems give, so
/// that whoever takes one for a server process finds none.
const FIRST_PID: u32 = 1 << 30;

/// How a session of an identity began.
#[derive(Debug, Clone)]
pub struct Precedent {
    manner: Arc<Manner>,
    began: Began,
}

impl Precedent {
    /// Whether another session of that identity, which logs in as `origin` does, would begin so and
    /// be told what this welcome tells; as of a look at the catalog after `since`.
    #[must_use]
    pub fn holds(
        &self,
        welcome: &Welcome,
        (shapes, origin): (&Shapes, &Origin),
        since: Millis,
    ) -> bool {
        let database = shapes.known_database(origin.server(), origin.database());
        let is_known = database.is_some_and(|database| {
            let (_, names) = database.names(0);
            database.was_looked_at(since)
                && !database.is_resting()
                // What a login runs may have made the session what it is.
                && names.is_some_and(|names| !names.greets())
        });
        is_known
            && self.began == Began::now(shapes, origin)
            && welcome.is_true()
            && welcome
                .reports()
                .is_some_and(|reports| reports == self.manner.reports)
    }
}

/// A client that is welcomed without a server connection.
#[derive(Debug)]
pub struct Newcomer {
    /// What it is called in the log.
    pub number: u64,
    /// Its cancel key.
    pub key: CancelKey,
    /// How it has logged in.
    pub origin: Origin,
    /// How its session began.
    pub precedent: Precedent,
    /// What it is told.
    pub welcome: Arc<Welcome>,
}

impl Hub {
    /// How the session of a connection began, if others of its identity would begin so now, and may
    /// be idle as long as they like.
    #[must_use]
    pub fn precedent(&self, id: UpstreamId) -> Option<Precedent> {
        let settings = &self.lent.settings;
        let is_possible = settings.warm && settings.mode == Policy::Convert;
        let server: &Server = self.servers.get(id.0).filter(|_| is_possible)?;
        match &server.upstream.manner {
            // The server could not end for being idle who has no session.
            Beginning::Manner(manner) if manner.may_idle && is_current(server, &self.lent) => {
                Some(Precedent {
                    manner: Arc::clone(manner),
                    began: server.began,
                })
            }
            _ => None,
        }
    }

    /// Welcomes a client that has no server connection yet. Returns its name, and the process id
    /// and the secret that it was given; `None` if it cannot be.
    pub fn welcome(&mut self, newcomer: Newcomer) -> Option<(ClientId, (u32, Vec<u8>))> {
        let Newcomer {
            number,
            key,
            origin,
            precedent,
            welcome,
        } = newcomer;
        let pid = FIRST_PID | u32::try_from(number % u64::from(FIRST_PID)).ok()?;
        let mut out = Vec::new();
        let ours = welcome.say_as(pid, &key.secret, &mut out)?.to_vec();
        let manner = self.manners.keep(Manner::clone(&precedent.manner));
        let id = self.clients.insert_with(|slot| {
            let mut client = Client::new(ClientId(slot), UpstreamId::NONE, number, key, false);
            client.is_pooled = true;
            client.turn = Turn::Free;
            client.out = out;
            client
        });
        let origin = Arc::new(origin);
        self.adrift.insert(ClientId(id), Adrift { origin, manner });
        Some((ClientId(id), (pid, ours)))
    }
}
