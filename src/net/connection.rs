//! A connection of a worker: the driver with what is to be done when it logs in and when it ends.

use super::cancel::{Registration, Registry};
use super::driver::{Driver, Progress, Shared};
use super::socket::Socket;
use super::stream::Handover;
use super::worker::{Arrival, OpenClient};
use crate::convert::Lent;
use crate::error::SessionError;
use crate::ids::ClientId;
use crate::session::{Cancels, Session};
use crate::statement::context::Origin;
use mio::{Token, Waker};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    Done,
    Failed(SessionError),
    /// A defect of ours, which nobody else is to suffer from.
    Panicked,
}

/// One client joined to its server connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ClientId,
    pub(super) driver: Driver,
    /// When the login must be over; `None` once it is.
    pub(super) login: Option<Instant>,
    /// When a query whose client has finished is no longer kept ready to be sent again.
    pub(super) linger: Option<Instant>,
    cancelled: Arc<Cancels>,
    waker: Arc<Waker>,
    /// Keeps the client's cancel key valid.
    registration: Option<Registration>,
    open: OpenClient,
}

impl Connection {
    /// Takes over the two sockets of an arrival, whose events will carry the tokens of client and
    /// server; `bound` is the driver's.
    ///
    /// # Errors
    /// The system's, when it can watch no more sockets.
    pub(super) fn new(
        arrival: Arrival,
        events: &mio::Registry,
        tokens: [Token; 2],
        (lent, waker): (&Lent, &Arc<Waker>),
        bound: usize,
    ) -> io::Result<Self> {
        let Arrival { joined, id, open } = arrival;
        let client = Socket::register(joined.client, events, tokens[0])?;
        let upstream = Socket::register(joined.upstream, events, tokens[1])?;
        let cancelled = Arc::clone(&joined.key.cancelled);
        let login = joined.login;
        let origin = Origin::new(&login.database, &login.packet);
        let session = Session::new(id, joined.key, origin, login.replication, lent);
        Ok(Self {
            id,
            driver: Driver::new(client, joined.pending, upstream, session, bound),
            login: Some(joined.deadline),
            linger: None,
            cancelled,
            waker: Arc::clone(waker),
            registration: None,
            open,
        })
    }

    /// Gives the driver a turn.
    ///
    /// # Errors
    /// Why the connection has to end.
    pub(super) fn turn(
        &mut self,
        shared: &mut Shared,
        events: &mio::Registry,
        registry: &Arc<Registry>,
    ) -> Result<Progress, SessionError> {
        let registration = &mut self.registration;
        let (cancelled, waker) = (&self.cancelled, &self.waker);
        self.driver.turn(shared, events, &mut |key| {
            let given = (key.pid, key.ours);
            let (cancelled, waker) = (Arc::clone(cancelled), Arc::clone(waker));
            *registration = Some(registry.register(given, key.secret, cancelled, waker));
        })
    }

    /// The deadline of the login, once, when it is over.
    #[inline]
    pub(super) fn login_is_over(&mut self) -> Option<Instant> {
        match self.login {
            Some(_) if self.driver.is_logged_in() => self.login.take(),
            _ => None,
        }
    }

    /// The client's socket, what it has not been sent yet, and its being counted.
    ///
    /// # Errors
    /// The system's, when the socket cannot be taken out of the event loop.
    pub(super) fn into_client(
        self,
        events: &mio::Registry,
    ) -> io::Result<(Handover, Vec<u8>, OpenClient)> {
        let (client, unsent) = self.driver.into_client(events)?;
        Ok((client, unsent, self.open))
    }
}
