//! The loop that moves the bytes of one connection: two sockets, one session.
//!
//! One poll reads what has come from either side, lets the session turn it into output, and writes
//! what it can, until neither side makes progress. Both directions are served in every round, so
//! two peers that only write cannot block each other.
//!
//! Invariants:
//! - a side is not read while the other side's output buffer is over its bound, so a connection
//!   holds at most the bound plus one read in each direction, and one frame that waits to be whole;
//! - nothing is awaited between a read and the session's taking it;
//! - half-close is honoured: when the client is done writing, so are we, and the rest is still
//!   relayed.

use super::stream::Stream;
use crate::error::SessionError;
use crate::metrics::Counter;
use crate::session::{ServerKey, Session, Worker};
use crate::statement::Instant;
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// Bytes read at once. One buffer serves all connections of a worker, because what is read is used
/// up before the next read; only an incomplete frame is kept per connection.
pub(super) const READ: usize = 64 * 1024;

/// Capacity an idle connection's buffer may keep: a few small messages. More is given back.
const KEEP: usize = 8 * 1024;

/// What all connections of a worker share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) worker: Worker,
    pub(super) scratch: Box<[u8]>,
    started: std::time::Instant,
}

impl Shared {
    pub(super) fn new(worker: Worker, started: std::time::Instant) -> Self {
        Self {
            worker,
            scratch: vec![0; READ].into(),
            started,
        }
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// One socket with what waits on either side of it.
#[derive(Debug)]
struct Side {
    stream: Stream,
    /// Bytes read that the session could not use yet.
    pending: Vec<u8>,
    /// Bytes of the session's output already written.
    written: usize,
    ended: bool,
}

impl Side {
    const fn new(stream: Stream, pending: Vec<u8>) -> Self {
        Self {
            stream,
            pending,
            written: 0,
            ended: false,
        }
    }

    /// Reads once. `Ready(0)` is the end of the stream.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(scratch);
        ready!(self.stream.poll_read(context, &mut buffer))?;
        let count = buffer.filled().len();
        self.ended |= count == 0;
        Poll::Ready(Ok(count))
    }

    /// Writes what it can of `output`. True if anything was written.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        let before = self.written;
        while let Some(rest) = output.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if self.written == before => return Poll::Pending,
                Poll::Pending => {
                    // Half a large buffer of bytes long gone is worth moving the rest.
                    if self.written > KEEP && self.written > output.len() / 2 {
                        output.drain(..self.written);
                        self.written = 0;
                    }
                    return Poll::Ready(Ok(true));
                }
            }
        }
        let any = self.written > before;
        self.written = 0;
        output.clear();
        give_back(output);
        Poll::Ready(Ok(any))
    }

    const fn unsent(&self, output: &[u8]) -> usize {
        output.len() - self.written
    }
}

fn give_back(buffer: &mut Vec<u8>) {
    if buffer.is_empty() && buffer.capacity() > KEEP {
        *buffer = Vec::new();
    }
}

/// A client joined to its server connection.
#[derive(Debug)]
pub(super) struct Driver {
    client: Side,
    upstream: Side,
    session: Session,
    bound: usize,
    upstream_shut: bool,
    draining: bool,
}

impl Driver {
    /// Joins the two streams; `pending` are bytes the client has sent already, `bound` the bytes of
    /// output beyond which the other side is not read.
    pub(super) const fn new(
        client: Stream,
        pending: Vec<u8>,
        upstream: Stream,
        session: Session,
        bound: usize,
    ) -> Self {
        Self {
            client: Side::new(client, pending),
            upstream: Side::new(upstream, Vec::new()),
            session,
            bound,
            upstream_shut: false,
            draining: false,
        }
    }

    pub(super) const fn is_logged_in(&self) -> bool {
        self.session.is_logged_in()
    }

    /// End as soon as nothing is in flight.
    pub(super) const fn drain(&mut self) {
        self.draining = true;
    }

    /// The client's side, to say a last word.
    pub(super) fn into_client(self) -> (Stream, Vec<u8>) {
        let unsent = self.session.to_client.get(self.client.written..);
        (self.client.stream, unsent.unwrap_or_default().to_vec())
    }

    /// Moves bytes until one side ends (`Ok`), fails, or there is nothing to do.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Poll<Result<(), SessionError>> {
        loop {
            let mut progress = self.read_upstream(context, shared, on_key)?;
            progress |= self.read_client(context, shared)?;
            progress |= self.write(context)?;
            if self.upstream.ended {
                self.session.upstream_gone();
                while self.client.unsent(&self.session.to_client) > 0 {
                    let to_client = &mut self.session.to_client;
                    ready!(self.client.poll_write(context, to_client))
                        .map_err(SessionError::ClientIo)?;
                }
                let _ = ready!(self.client.stream.poll_shutdown(context));
                return Poll::Ready(Ok(()));
            }
            if progress {
                continue;
            }
            // Who has not logged in has nothing to lose; an idle client is told to come again.
            let idle = self.session.is_idle() && self.client.pending.is_empty();
            if self.draining && (idle || !self.is_logged_in()) {
                return Poll::Ready(Err(SessionError::ShuttingDown));
            }
            return Poll::Pending;
        }
    }

    fn read_upstream(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<bool, SessionError> {
        if self.upstream.ended || self.client.unsent(&self.session.to_client) >= self.bound {
            return Ok(false);
        }
        let count = match self.upstream.poll_read(context, &mut shared.scratch) {
            Poll::Ready(Ok(count)) => count,
            // A reset after the last word is an end like any other.
            Poll::Ready(Err(_)) => {
                self.upstream.ended = true;
                0
            }
            Poll::Pending => return Ok(false),
        };
        let now = shared.now();
        let worker = &mut shared.worker;
        let counters = worker.counters();
        counters.add(Counter::BytesFromUpstream, count as u64);
        let read = shared.scratch.get(..count).unwrap_or_default();
        let session = &mut self.session;
        take(&mut self.upstream.pending, read, |bytes| {
            session.upstream_bytes(bytes, now, worker, on_key)
        })
        .map_err(SessionError::UpstreamProtocol)?;
        self.offer_pending(now, worker)?;
        Ok(true)
    }

    /// Offers the session what the client sent while it was not listening.
    fn offer_pending(&mut self, now: Instant, worker: &mut Worker) -> Result<(), SessionError> {
        if self.client.pending.is_empty() || !self.session.accepts_client() {
            return Ok(());
        }
        let session = &mut self.session;
        take(&mut self.client.pending, &[], |bytes| {
            session.client_bytes(bytes, now, worker)
        })
        .map_err(SessionError::ClientProtocol)
    }

    fn read_client(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
    ) -> Result<bool, SessionError> {
        let wanted = self.session.accepts_client()
            && !self.client.ended
            && self.upstream.unsent(&self.session.to_upstream) < self.bound
            && (self.is_logged_in() || self.client.pending.len() < READ);
        if !wanted {
            return Ok(false);
        }
        let count = match self.client.poll_read(context, &mut shared.scratch) {
            Poll::Ready(Ok(count)) => count,
            Poll::Ready(Err(error)) => return Err(SessionError::ClientIo(error)),
            Poll::Pending => return Ok(false),
        };
        let now = shared.now();
        let worker = &mut shared.worker;
        worker
            .counters()
            .add(Counter::BytesFromClients, count as u64);
        let read = shared.scratch.get(..count).unwrap_or_default();
        let session = &mut self.session;
        take(&mut self.client.pending, read, |bytes| {
            session.client_bytes(bytes, now, worker)
        })
        .map_err(SessionError::ClientProtocol)?;
        Ok(true)
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<bool, SessionError> {
        let mut progress = false;
        let to_upstream = &mut self.session.to_upstream;
        match self.upstream.poll_write(context, to_upstream) {
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
        match self.client.poll_write(context, &mut self.session.to_client) {
            Poll::Ready(Ok(any)) => progress |= any,
            Poll::Ready(Err(error)) => return Err(SessionError::ClientIo(error)),
            Poll::Pending => {}
        }
        let all_sent = self.session.to_upstream.is_empty();
        // Before the login is over whole frames wait for its end. After it, what is left of the
        // client's bytes is an incomplete frame that nobody can use.
        let all_taken = self.session.accepts_client()
            && (self.is_logged_in() || self.client.pending.is_empty());
        let half_close = self.client.ended && !self.upstream_shut && all_sent && all_taken;
        if half_close && let Poll::Ready(outcome) = self.upstream.stream.poll_shutdown(context) {
            self.upstream_shut = true;
            outcome.map_err(SessionError::UpstreamIo)?;
        }
        Ok(progress)
    }
}

/// Hands `pending` followed by `read` to `use_up`, and keeps in `pending` what was not used. When
/// nothing is pending, which is nearly always, nothing is copied.
fn take<E>(
    pending: &mut Vec<u8>,
    read: &[u8],
    use_up: impl FnOnce(&[u8]) -> Result<usize, E>,
) -> Result<(), E> {
    if pending.is_empty() {
        let used = use_up(read)?;
        pending.extend_from_slice(read.get(used..).unwrap_or_default());
        return Ok(());
    }
    pending.extend_from_slice(read);
    let used = use_up(pending)?;
    pending.drain(..used);
    give_back(pending);
    Ok(())
}
