//! The loop that moves the bytes of one connection: two sockets, one session.
//!
//! One turn reads what has come from either side, lets the session turn it into output, and writes
//! what it can, until neither side makes progress or others should have a turn. Both directions are
//! served in every round, so two peers that only write cannot block each other.
//!
//! Invariants:
//! - a side is not read while the other side's output buffer is over its bound, so a connection
//!   holds at most the bound plus one read in each direction, and one frame that waits to be whole;
//! - a connection is lent its buffers while it is served, and keeps only what is not empty then;
//! - half-close is honoured: when the client is done writing, so are we, and the rest is still
//!   relayed;
//! - the server learns that a client has finished when it would directly, behind all that was sent
//!   before, even while the session takes nothing; but see [`GRACE`].

use super::buffers::Spares;
use super::port::Port;
use super::socket::Socket;
use super::stream::Handover;
use crate::convert::Lent;
use crate::error::SessionError;
use crate::metrics::Counter;
use crate::session::{ServerKey, Session};
use crate::statement::Millis;
use mio::event::Event;
use std::io;
use std::task::Poll;

/// Bytes read at once. One buffer serves all connections of a worker, because what is read is used
/// up before the next read; only an incomplete frame is kept per connection.
pub(super) const READ: usize = 64 * 1024;

/// A read of at least this many bytes, all to be forwarded as they are, is written from where it
/// was read. Fewer are copied faster than they are looked at twice.
const BULK: usize = 4 * 1024;

/// Rounds of reading and writing in one turn, after which other connections are served first.
const ROUNDS: usize = 16;

/// Milliseconds between two looks for what nobody uses any more.
const REST: u64 = 60_000;
/// How long a converted query is kept ready to be sent again after its client has finished.
///
/// Only then the server is told, which can hear nothing any more behind that. An error that can be
/// repaired comes as soon as the server has read the query, unless it waits for a lock first. A
/// server looks at its client every few seconds, if at all (`client_connection_check_interval`).
pub(super) const GRACE: std::time::Duration = std::time::Duration::from_millis(100);

/// What all connections of a worker share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) lent: Lent,
    scratch: Box<[u8]>,
    spares: Spares,
    started: std::time::Instant,
    now: Millis,
    rested: Millis,
}

impl Shared {
    pub(super) fn new(lent: Lent, started: std::time::Instant) -> Self {
        Self {
            lent,
            scratch: vec![0; READ].into(),
            spares: Spares::default(),
            started,
            now: Millis(0),
            rested: Millis(0),
        }
    }

    /// How long the worker may sleep.
    pub(super) const fn nap() -> std::time::Duration {
        std::time::Duration::from_millis(REST)
    }

    /// Looks at the clock, for everything that is done until the next look.
    pub(super) fn tick(&mut self) {
        let elapsed = self.started.elapsed().as_millis();
        self.now = Millis(u64::try_from(elapsed).unwrap_or(u64::MAX));
        if self.now.since(self.rested) >= REST {
            self.rested = self.now;
            self.lent.rest(self.now);
        }
    }
}

/// What a connection needs after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// An event.
    Waits,
    /// An event, or [`Driver::let_go`] after [`GRACE`].
    Lingers,
    /// An event, or that a cancel request has reached the server.
    Held,
    /// Another turn, after everybody else has had one.
    Unfinished,
    /// To be dropped.
    Ended,
}

/// Which of the two sockets an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Client,
    Upstream,
}

/// A client joined to its server connection.
#[derive(Debug)]
pub(super) struct Driver {
    client: Port,
    upstream: Port,
    session: Session,
    bound: usize,
    upstream_shut: bool,
    /// Why the client cannot be read any more.
    client_lost: Option<io::Error>,
    /// [`GRACE`] is over.
    late: bool,
    draining: bool,
}

impl Driver {
    /// Joins the two sockets; `pending` are bytes the client has sent already, `bound` the bytes of
    /// output beyond which the other side is not read.
    pub(super) const fn new(
        client: Socket,
        pending: Vec<u8>,
        upstream: Socket,
        session: Session,
        bound: usize,
    ) -> Self {
        Self {
            client: Port::new(client, pending),
            upstream: Port::new(upstream, Vec::new()),
            session,
            bound,
            upstream_shut: false,
            client_lost: None,
            late: false,
            draining: false,
        }
    }

    pub(super) const fn is_logged_in(&self) -> bool {
        self.session.is_logged_in()
    }

    /// Whether what the client has been or is about to be given ends with a whole message.
    pub(super) const fn is_between_messages(&self) -> bool {
        self.session.is_between_messages()
    }

    /// End as soon as nothing is in flight.
    pub(super) const fn drain(&mut self) {
        self.draining = true;
    }

    /// Remembers what an event has said about one of the sockets.
    pub(super) fn note(&mut self, peer: Peer, event: &Event) {
        match peer {
            Peer::Client => {
                self.client.socket.note(event);
                if self.client.socket.is_ending() {
                    self.session.client_finishes();
                }
            }
            Peer::Upstream => self.upstream.socket.note(event),
        }
    }

    /// Take the last of a client that has finished, whatever its query would need if it failed.
    pub(super) const fn let_go(&mut self) {
        self.late = true;
    }

    /// The client's socket and what it has not been sent yet, to say a last word.
    ///
    /// # Errors
    /// The system's, when the socket cannot be taken out of the event loop.
    pub(super) fn into_client(self, registry: &mio::Registry) -> io::Result<(Handover, Vec<u8>)> {
        let unsent = self.session.to_client.get(self.client.written..);
        let unsent = unsent.unwrap_or_default().to_vec();
        Ok((self.client.socket.release(registry)?, unsent))
    }

    /// Moves bytes until one side ends or fails, or there is nothing to do.
    pub(super) fn turn(
        &mut self,
        shared: &mut Shared,
        registry: &mio::Registry,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<Progress, SessionError> {
        shared.spares.to_client.lend(&mut self.session.to_client);
        shared
            .spares
            .to_upstream
            .lend(&mut self.session.upstream.out);
        let outcome = self.move_bytes(shared, on_key);
        let (client, upstream, spares) = (&mut self.client, &mut self.upstream, &mut shared.spares);
        let (to_client, to_upstream) =
            (&mut self.session.to_client, &mut self.session.upstream.out);
        spares.to_client.take_back(to_client, &mut client.written);
        spares
            .to_upstream
            .take_back(to_upstream, &mut upstream.written);
        spares.pending.take_back(&mut client.pending, &mut 0);
        spares.pending.take_back(&mut upstream.pending, &mut 0);
        self.session.give_back();
        client
            .socket
            .rearm(registry)
            .map_err(SessionError::System)?;
        upstream
            .socket
            .rearm(registry)
            .map_err(SessionError::System)?;
        outcome
    }

    fn move_bytes(
        &mut self,
        shared: &mut Shared,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<Progress, SessionError> {
        for _ in 0..ROUNDS {
            let mut progress = self.read_upstream(shared, on_key)?;
            progress |= self.read_client(shared)?;
            progress |= self.write()?;
            if self.upstream.ended {
                return self.finish();
            }
            // What the server has had no room for, a reset would have destroyed directly, too.
            if let Some(error) = self.client_lost.take() {
                return Err(SessionError::ClientIo(error));
            }
            if progress {
                continue;
            }
            if self.session.is_held() || self.session.keeps_waiting() {
                match self.go_on(shared)? {
                    Some(turn) => return Ok(turn),
                    None => continue,
                }
            }
            // Who has not logged in has nothing to lose; an idle client is told to come again.
            let idle = self.session.is_idle() && self.client.pending.is_empty();
            if self.draining && (idle || !self.is_logged_in()) {
                return Err(SessionError::ShuttingDown);
            }
            return Ok(Progress::Waits);
        }
        Ok(Progress::Unfinished)
    }

    /// Has the session go on without the sockets; if it cannot, what it needs.
    #[cold]
    fn go_on(&mut self, shared: &mut Shared) -> Result<Option<Progress>, SessionError> {
        if self.session.release() || self.session.let_go(self.late) {
            self.offer_pending(shared.now, &mut shared.lent)?;
            return Ok(None);
        }
        let held = self.session.is_held();
        Ok(Some(if held {
            Progress::Held
        } else {
            Progress::Lingers
        }))
    }

    /// Gives the client what the server had said before it closed the connection.
    fn finish(&mut self) -> Result<Progress, SessionError> {
        self.session.upstream_gone();
        while self.client.unsent(&self.session.to_client) > 0 {
            match self.client.write(&mut self.session.to_client) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Err(SessionError::ClientIo(error)),
                Poll::Pending => return Ok(Progress::Waits),
            }
        }
        // A client that is gone already does not mind.
        let _ = self.client.socket.shut_down();
        Ok(Progress::Ended)
    }

    fn read_upstream(
        &mut self,
        shared: &mut Shared,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<bool, SessionError> {
        if self.upstream.ended || self.client.unsent(&self.session.to_client) >= self.bound {
            return Ok(false);
        }
        let count = match self.upstream.read(&mut shared.scratch) {
            Poll::Ready(Ok(count)) => count,
            // A reset after the last word is an end like any other.
            Poll::Ready(Err(_)) => {
                self.upstream.ended = true;
                0
            }
            Poll::Pending => return Ok(false),
        };
        let now = shared.now;
        let lent = &mut shared.lent;
        let counters = lent.counters();
        counters.add(Counter::BytesFromUpstream, count as u64);
        let (session, client) = (&mut self.session, &mut self.client);
        let mut written = Ok(());
        self.upstream
            .take(
                &shared.scratch,
                count,
                &mut shared.spares.pending,
                |bytes| {
                    let mut used = 0;
                    if bytes.len() >= BULK {
                        used = session.forward_upstream(bytes)?;
                        let output = &mut session.to_client;
                        if let Some(outcome) = client.pass_on(bytes, used, output) {
                            written = outcome;
                            return Ok(used);
                        }
                    }
                    let rest = bytes.get(used..).unwrap_or_default();
                    Ok(used + session.upstream_bytes(rest, now, lent, on_key)?)
                },
            )
            .map_err(SessionError::UpstreamProtocol)?;
        written.map_err(SessionError::ClientIo)?;
        self.offer_pending(now, lent)?;
        Ok(true)
    }

    /// Offers the session what the client sent while it was not listening.
    fn offer_pending(&mut self, now: Millis, lent: &mut Lent) -> Result<(), SessionError> {
        if self.client.pending.is_empty() || !self.session.accepts_client() {
            return Ok(());
        }
        let pending = &mut self.client.pending;
        let used = self
            .session
            .client_bytes(pending, now, lent)
            .map_err(SessionError::ClientProtocol)?;
        pending.drain(..used);
        Ok(())
    }

    fn read_client(&mut self, shared: &mut Shared) -> Result<bool, SessionError> {
        let wanted = self.session.accepts_client()
            && !self.client.ended
            && self.upstream.unsent(&self.session.upstream.out) < self.bound
            && (self.is_logged_in() || self.client.pending.len() < READ);
        if !wanted {
            return Ok(false);
        }
        let count = match self.client.read(&mut shared.scratch) {
            Poll::Ready(Ok(count)) => count,
            // What it has sent before is still to be written in this round.
            Poll::Ready(Err(error)) => {
                self.client.ended = true;
                self.client_lost = Some(error);
                return Ok(true);
            }
            Poll::Pending => return Ok(false),
        };
        let now = shared.now;
        let lent = &mut shared.lent;
        lent.counters().add(Counter::BytesFromClients, count as u64);
        let (session, upstream) = (&mut self.session, &mut self.upstream);
        let mut written = Ok(());
        self.client
            .take(
                &shared.scratch,
                count,
                &mut shared.spares.pending,
                |bytes| {
                    let mut used = 0;
                    if bytes.len() >= BULK {
                        used = session.forward_client(bytes, lent)?;
                        let output = &mut session.upstream.out;
                        if let Some(outcome) = upstream.pass_on(bytes, used, output) {
                            written = outcome;
                            return Ok(used);
                        }
                    }
                    let rest = bytes.get(used..).unwrap_or_default();
                    Ok(used + session.client_bytes(rest, now, lent)?)
                },
            )
            .map_err(SessionError::ClientProtocol)?;
        // The server's last word may still be on its way, as below.
        self.upstream_shut |= written.is_err();
        Ok(true)
    }

    fn write(&mut self) -> Result<bool, SessionError> {
        let mut progress = false;
        let to_upstream = &mut self.session.upstream.out;
        match self.upstream.write(to_upstream) {
            Poll::Ready(Ok(any)) => progress |= any,
            // The server's last word may still be on its way: read it, and end there.
            Poll::Ready(Err(_)) if !self.upstream.ended => {
                to_upstream.clear();
                self.upstream.written = 0;
                self.upstream_shut = true;
            }
            Poll::Ready(Err(error)) => return Err(SessionError::UpstreamIo(error)),
            Poll::Pending => {}
        }
        match self.client.write(&mut self.session.to_client) {
            Poll::Ready(Ok(any)) => progress |= any,
            Poll::Ready(Err(error)) => return Err(SessionError::ClientIo(error)),
            Poll::Pending => {}
        }
        let all_sent = self.session.upstream.out.is_empty();
        // Before the login is over whole frames wait for its end. After it, what is left of the
        // client's bytes is an incomplete frame that nobody can use.
        let all_taken = self.session.accepts_client()
            && (self.is_logged_in() || self.client.pending.is_empty());
        let half_close = self.client.ended && !self.upstream_shut && all_sent && all_taken;
        if half_close {
            self.upstream_shut = true;
            let outcome = self.upstream.socket.shut_down();
            outcome.map_err(SessionError::UpstreamIo)?;
        }
        Ok(progress)
    }
}
