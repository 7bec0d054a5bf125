//! What a hub is told, and what it wants done.

use super::LoginOutcome;
use super::fitness::Departure;
use super::timers::Timers;
use crate::client::CancelKey;
use crate::ids::{ClientId, UpstreamId};
use crate::reason::Reason;
use crate::statement::Millis;
use crate::statement::context::Origin;
use std::collections::VecDeque;

/// A client that has been greeted, and for which the startup packet was sent to the server.
#[derive(Debug)]
pub struct Arrival {
    /// What it is called in the log.
    pub number: u64,
    /// Its cancel key.
    pub key: CancelKey,
    /// How it logs in.
    pub origin: Origin,
    /// Its frames are never read: it wants to replicate.
    pub relay_only: bool,
    /// When the login must be over.
    pub deadline: Millis,
    /// The server had no room for its first try.
    pub is_second: bool,
}

/// How to cancel what a server process does for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerKey {
    /// Process id of the server process.
    pub pid: u32,
    /// Its secret key.
    pub secret: Vec<u8>,
    /// The secret the client was given in its place.
    pub ours: Vec<u8>,
}

/// What became of a query, for those who want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It was executed as a prepared statement.
    Converted,
    /// It was sent as it came.
    Passed(Reason),
}

/// What the owner of the hub is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Remember how the client can be cancelled.
    Remember(ClientId, ServerKey),
    /// End the client: its login has taken too long.
    EndLogin(ClientId),
    /// End the client once it has been given its output: it has been told why.
    Finish(ClientId),
    /// See whether the client can go on: [`super::Hub::go_on`].
    See(ClientId),
    /// The server has decided about the client's login.
    Login(ClientId, LoginOutcome),
    /// The client has left: [`super::Hub::park`].
    Park(ClientId),
    /// The server has no room for the client. Either it logs in on another connection, after
    /// [`super::Hub::remove`], or it is told: [`super::Hub::tell_crowded`].
    Crowded(ClientId),
    /// Who may log in, or what a login finds, may be about to change: parked connections go.
    DropParked,
    /// The server has said how a client's session began, or cannot: [`super::Hub::settled`].
    Settled(ClientId),
    /// A client's output is to be sent, and it may go on: its read was answered on another's
    /// connection, or it had to wait for its own.
    Return(ClientId),
    /// A server connection's output is to be sent.
    Send(UpstreamId),
    /// Ask the server to cancel what it does on this connection, then say so:
    /// [`super::Hub::hastened`].
    Hasten(UpstreamId),
    /// Tell whoever wants to know what became of a query: only after
    /// [`super::Hub::tell_decisions`].
    Decided(ClientId, Decided),
}

/// What input leads to beside output: tasks that wait to be polled, and timers.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub(super) tasks: VecDeque<Task>,
    pub(super) timers: Timers,
    /// The servers that are to be told of a transaction, and by when: in that order, each at most
    /// as late as the same time behind its entry. Those that have been told since are passed over.
    pub(super) begins: VecDeque<(Millis, UpstreamId)>,
    pub(super) tells_decisions: bool,
    /// A read that is to run on another client's connection, until the hub has found one.
    pub(super) departure: Option<Box<Departure>>,
}

impl Outbox {
    #[inline]
    pub(super) fn decided(&mut self, client: ClientId, decided: Decided) {
        if self.tells_decisions {
            self.tasks.push_back(Task::Decided(client, decided));
        }
    }
}

/// What a client that cannot go on by itself waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Its sockets.
    Sockets,
    /// That a cancel request reaches the server.
    Cancel,
}
