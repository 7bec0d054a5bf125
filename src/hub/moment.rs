//! What a client is doing at a moment, as far as that may take too long.

use super::Hub;
use crate::client::Turn;
use crate::ids::{ClientId, UpstreamId};
use crate::statement::Micros;
use crate::wire::backend::Status;

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing, outside a transaction.
    Idle,
    /// Nothing, inside one.
    IdleInTransaction,
    /// Its query is not answered.
    Query,
}

/// What a client is doing at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What it does.
    pub activity: Activity,
    /// Another number for each of its queries.
    pub query: (u64, u32),
    /// Other numbers for each of its transactions; `None` outside. A query outside is a transaction
    /// by itself.
    pub transaction: Option<(UpstreamId, u32, u64)>,
}

impl Hub {
    /// The time that was noted last.
    #[must_use]
    pub const fn clock(&self) -> Micros {
        self.clock
    }

    /// Whether what was forwarded to a client so far ends with a whole message.
    #[must_use]
    pub fn is_between_messages(&self, id: ClientId) -> bool {
        let link = self.clients.get(id.0).map(|client| client.link);
        let upstream = link.and_then(|link| self.upstream(link));
        upstream.is_none_or(|upstream| upstream.partial.pass == 0)
    }

    /// What a client is doing now; `None` if it is not logged in, or about to go, or if that cannot
    /// be known. What is asked on its server connection without a query of its own is not its
    /// doing.
    #[must_use]
    pub fn moment(&self, id: ClientId) -> Option<Moment> {
        let client = self.clients.get(id.0)?;
        let is_there = client.is_logged_in() && !client.relay_only && !client.is_parting;
        let upstream = self.upstream(client.link);
        if !is_there || upstream.is_some_and(|upstream| upstream.ledger.is_lost()) {
            return None;
        }
        let owes = upstream.is_some_and(|upstream| !upstream.ledger.is_idle());
        let is_busy = match client.turn {
            Turn::Free => owes || client.skip > 0,
            Turn::Learning | Turn::Settling(_) => !client.query.is_empty(),
            _ => true,
        };
        let is_open = |status| status != Status::Idle;
        let open = upstream
            .filter(|upstream| upstream.begin_due.is_some() || is_open(upstream.standing.status));
        let concluded = upstream.map_or(0, |upstream| upstream.concluded);
        Some(Moment {
            activity: match (is_busy, open) {
                (true, _) => Activity::Query,
                (false, Some(_)) => Activity::IdleInTransaction,
                (false, None) => Activity::Idle,
            },
            query: (
                client.counts.queries,
                upstream.map_or(0, |upstream| upstream.answered),
            ),
            transaction: match (open, is_busy) {
                (Some(upstream), _) => Some((client.link, upstream.concluded, 0)),
                (None, true) => Some((client.link, concluded, client.counts.queries)),
                (None, false) => None,
            },
        })
    }
}
