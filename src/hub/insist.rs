//! Cancel requests that the server may not have heard.
//!
//! A statement that runs prepared is several messages to the server, which ignores between two of
//! them what it is told to cancel. So a request that comes while it binds may be lost, where that
//! text as one message would have been cancelled.
//!
//! Invariants:
//! - only the statement that was meant is insisted on: the client's next waits until the server has
//!   been told, and nobody visits the connection meanwhile;
//! - only a young one is, because an old one has been bound for long: whatever goes on behind a
//!   request that it has heard is its own doing; but one of several in a query may be the next each
//!   time, however long that has gone on.

use super::Hub;
use crate::client::{Cancels, Insister, Turn};
use crate::ids::ClientId;
use std::sync::Arc;

/// Whether the server may not have heard what it was told to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unheard {
    /// It has, or it would be the wrong query by now.
    Not,
    /// A statement runs that it was to cancel.
    Statement,
    /// One of several statements of a query does, or of several queries.
    Series,
}

/// Microseconds that a statement may take until it is bound, on a machine that has much to do.
const YOUNG: u64 = 1_000_000;

impl Hub {
    /// Whether the query of the client with these requests runs although one has reached the
    /// server, which may not have heard of it. Then nothing else of it goes to the server until
    /// [`Self::relent`].
    pub fn insist(&mut self, insister: &Insister) -> Unheard {
        let clock = self.clock;
        let id = self.client_of(&insister.cancels);
        let Some(client) = id.and_then(|id| self.clients.get_mut(id.0)) else {
            return Unheard::Not;
        };
        let server = self.servers.get_mut(client.link.0);
        let execution = server.and_then(|server| server.upstream.ledger.execution());
        let is_series = execution.is_some_and(|execution| execution.chain.is_some());
        let is_series = is_series || client.trail > 0;
        let age = clock.since(client.habits.sent.since);
        let is_meant = client.is_cancelled() && matches!(client.turn, Turn::Executing);
        let insists = is_meant && (is_series || age < YOUNG);
        if insists {
            client.insisters.push(insister.number);
        }
        match (insists, is_series) {
            (false, _) => Unheard::Not,
            (true, false) => Unheard::Statement,
            (true, true) => Unheard::Series,
        }
    }

    /// The server has been told once more, as far as by this one. Returns the client, which may go
    /// on unless another holds it back.
    pub fn relent(&mut self, insister: &Insister) -> Option<ClientId> {
        let id = self.client_of(&insister.cancels)?;
        let insisters = &mut self.clients.get_mut(id.0)?.insisters;
        insisters.retain(|number| *number != insister.number);
        Some(id)
    }

    fn client_of(&self, cancels: &Arc<Cancels>) -> Option<ClientId> {
        let mut all = self.clients.iter();
        let found = all.find(|client| Arc::ptr_eq(&client.key.cancelled, cancels));
        found.map(|client| client.id)
    }
}
