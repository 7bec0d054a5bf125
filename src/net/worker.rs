//! A worker: one thread with an event loop of its own, which owns its connections outright.
//!
//! The loop is ours, not tokio's: waking a task, polling it and asking its sockets' readiness cost
//! more than half of what a converted query costs in all, and a connection needs nothing of it but
//! to be told which of its two sockets has news.
//!
//! Invariants:
//! - a panic ends the connection it came from and no other;
//! - a connection that always has more to do has its turn after each look at all the others;
//! - the thread ends once the proxy is ending and the last connection has gone, or the time for
//!   that is over.

use super::Phase;
use super::cancel::Registry;
use super::connection::{Connection, End};
use super::driver::{GRACE, Peer, Progress, Shared};
use super::greeting::{Joined, count_end, dismiss};
use super::slots::{Queue, Slots};
use crate::config::Config;
use crate::convert::Lent;
use crate::error::SessionError;
use crate::ids::ClientId;
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use std::collections::BTreeSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::runtime;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

/// Events taken from the system at once.
const EVENTS: usize = 256;

/// The token of the event that there are arrivals, or that the proxy is ending. Connections have
/// two each, from zero.
const WOKEN: Token = Token(usize::MAX);

/// A client on its way to a worker.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) joined: Joined,
    pub(super) id: ClientId,
    /// Counts the client as open until the connection ends.
    pub(super) open: OpenClient,
}

/// One client counted among those open on a worker and in all.
#[derive(Debug)]
pub(super) struct OpenClient(Vec<Arc<AtomicUsize>>);

impl OpenClient {
    pub(super) fn count(counts: &[&Arc<AtomicUsize>]) -> Self {
        for count in counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Self(counts.iter().copied().cloned().collect())
    }
}

impl Drop for OpenClient {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The acceptor's hold on a worker.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) open: Arc<AtomicUsize>,
    arrivals: mpsc::Sender<Arrival>,
    waker: Arc<Waker>,
}

/// A worker's thread.
#[derive(Debug)]
pub(super) struct Thread {
    thread: JoinHandle<()>,
    waker: Arc<Waker>,
}

impl Thread {
    /// Has the worker look at what has changed: that the proxy is ending, or that its [`Handle`] is
    /// gone.
    pub(super) fn wake(&self) {
        wake(&self.waker);
    }

    /// Waits for its end, which comes once the proxy is ending, its [`Handle`] is gone, and so are
    /// its connections, or the time to drain is over.
    pub(super) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("a worker thread panicked");
        }
    }
}

fn wake(waker: &Waker) {
    if let Err(error) = waker.wake() {
        tracing::error!(%error, "a worker could not be woken");
    }
}

impl Handle {
    /// Hands a client over. The queue is bounded by the limit of clients, which counts those in it.
    pub(super) fn send(&self, arrival: Arrival) {
        // A worker that has ended has run out of time to drain; the client sees its socket close.
        let _ = self.arrivals.send(arrival);
        wake(&self.waker);
    }
}

/// What a worker is made of.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) lent: Lent,
    pub(super) started: Instant,
    pub(super) draining: watch::Receiver<Phase>,
    /// Where the last words to clients are said.
    pub(super) runtime: runtime::Handle,
    /// Held by the worker, and by the last words it leaves behind.
    pub(super) parting: Sender<()>,
}

/// Starts the worker with this number.
///
/// # Errors
/// The thread or its event loop cannot be made.
pub(super) fn start(number: usize, setup: Setup) -> io::Result<(Handle, Thread)> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WOKEN)?);
    let (arrivals, incoming) = mpsc::channel();
    let worker = Worker {
        poll,
        shared: Shared::new(setup.lent, setup.started),
        config: setup.config,
        registry: setup.registry,
        runtime: setup.runtime,
        parting: setup.parting,
        draining: setup.draining,
        incoming: Some(incoming),
        connections: Slots::default(),
        deadlines: BTreeSet::new(),
        unfinished: Queue::default(),
        held: Queue::default(),
        drained_by: None,
        waker: Arc::clone(&waker),
    };
    let thread = std::thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || worker.run())?;
    let handle = Handle {
        open: Arc::default(),
        arrivals,
        waker: Arc::clone(&waker),
    };
    Ok((handle, Thread { thread, waker }))
}

struct Worker {
    poll: Poll,
    shared: Shared,
    config: Arc<Config>,
    registry: Arc<Registry>,
    runtime: runtime::Handle,
    parting: Sender<()>,
    draining: watch::Receiver<Phase>,
    /// `None` once no more clients can come.
    incoming: Option<mpsc::Receiver<Arrival>>,
    connections: Slots<Connection>,
    /// When which connection needs something: the end of its login, or to be let go.
    deadlines: BTreeSet<(Instant, usize)>,
    /// Connections that have more to do.
    unfinished: Queue,
    /// Connections that wait for a cancel request to reach the server.
    held: Queue,
    /// When the worker ends, whatever is still open: once the proxy is ending.
    drained_by: Option<Instant>,
    /// Wakes this worker.
    waker: Arc<Waker>,
}

impl Worker {
    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.is_over() {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::error!(%error, "a worker cannot wait for events");
                    return;
                }
            }
            self.shared.tick();
            let mut woken = false;
            for event in &events {
                match event.token() {
                    WOKEN => woken = true,
                    token => self.hear(token, event),
                }
            }
            for slot in self.unfinished.take() {
                self.serve(slot);
            }
            // Last, so that no event of this batch is about a connection that was not there yet.
            if woken {
                self.look_around();
            }
            self.expire();
        }
        self.cut_off();
    }

    /// Ends what is left.
    fn cut_off(&mut self) {
        let left = self.connections.occupied();
        if !left.is_empty() {
            tracing::warn!(connections = left.len(), "busy connections are cut off");
        }
        for slot in left {
            self.end(slot, End::Failed(SessionError::ShuttingDown));
        }
    }

    /// How long there is nothing to do without an event.
    fn timeout(&self) -> Option<std::time::Duration> {
        if !self.unfinished.is_empty() {
            return Some(std::time::Duration::ZERO);
        }
        let login = self.deadlines.first().map(|(deadline, _)| *deadline);
        let next = [login, self.drained_by].into_iter().flatten().min();
        let next = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Memory is given back also when nobody asks for anything.
        Some(next.map_or(Shared::nap(), |next| next.min(Shared::nap())))
    }

    fn is_over(&self) -> bool {
        let Some(drained_by) = self.drained_by else {
            return false;
        };
        if self.connections.is_empty() && self.incoming.is_none() {
            return true;
        }
        Instant::now() >= drained_by
    }

    /// Takes note of an event and gives its connection a turn, unless it has one coming anyway.
    fn hear(&mut self, token: Token, event: &Event) {
        let (slot, peer) = of_token(token);
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.driver.note(peer, event);
            if !self.unfinished.contains(slot) {
                self.serve(slot);
            }
        }
    }

    /// Gives a connection a turn.
    fn serve(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let (shared, registry) = (&mut self.shared, &self.registry);
        let events = self.poll.registry();
        let turn = catch_unwind(AssertUnwindSafe(|| {
            connection.turn(shared, events, registry)
        }));
        if let Some(deadline) = connection.login_is_over() {
            self.deadlines.remove(&(deadline, slot));
        }
        match turn {
            Ok(Ok(Progress::Waits)) => {}
            Ok(Ok(Progress::Lingers)) => self.linger(slot),
            Ok(Ok(Progress::Held)) => self.held.add(slot),
            Ok(Ok(Progress::Unfinished)) => self.unfinished.add(slot),
            Ok(Ok(Progress::Ended)) => self.end(slot, End::Done),
            Ok(Err(error)) => self.end(slot, End::Failed(error)),
            Err(_) => self.end(slot, End::Panicked),
        }
    }

    /// Lets a connection go after a while, once.
    #[cold]
    fn linger(&mut self, slot: usize) {
        if let Some(connection) = self.connections.get_mut(slot)
            && connection.linger.is_none()
        {
            let deadline = Instant::now() + GRACE;
            connection.linger = Some(deadline);
            self.deadlines.insert((deadline, slot));
        }
    }

    #[cold]
    fn end(&mut self, slot: usize, end: End) {
        let Some(connection) = self.connections.remove(slot) else {
            return;
        };
        for deadline in [connection.login, connection.linger].into_iter().flatten() {
            self.deadlines.remove(&(deadline, slot));
        }
        let id = connection.id;
        let outcome = match end {
            End::Done => Ok(()),
            End::Failed(error) => Err(error),
            End::Panicked => {
                tracing::error!(client = id.0, "a connection panicked");
                Ok(())
            }
        };
        count_end(id, self.shared.lent.counters(), &outcome);
        let Err(error) = outcome else { return };
        if !connection.driver.is_between_messages() {
            // A last word in the middle of a message would be read as part of it.
            return;
        }
        match connection.into_client(self.poll.registry()) {
            Ok((client, unsent, open)) => {
                let parting = self.parting.clone();
                self.runtime.spawn(async move {
                    dismiss(client, unsent, error).await;
                    drop((open, parting));
                });
            }
            Err(error) => tracing::debug!(client = id.0, %error, "a last word could not be said"),
        }
    }

    /// Sees to what has come from other threads.
    fn look_around(&mut self) {
        let phase = *self.draining.borrow();
        if phase == Phase::Over {
            self.drained_by = Some(Instant::now());
        }
        if self.drained_by.is_none() && phase == Phase::Draining {
            self.drained_by = Some(Instant::now() + self.config.drain_timeout);
            for slot in self.connections.occupied() {
                if let Some(connection) = self.connections.get_mut(slot) {
                    connection.driver.drain();
                }
                self.serve(slot);
            }
        }
        for slot in self.held.take() {
            self.serve(slot);
        }
        while let Some(incoming) = &self.incoming {
            match incoming.try_recv() {
                Ok(arrival) => self.adopt(arrival),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.incoming = None,
            }
        }
    }

    fn adopt(&mut self, arrival: Arrival) {
        let slot = self.connections.next();
        let (id, deadline) = (arrival.id, arrival.joined.deadline);
        let worker = (&self.shared.lent, &self.waker);
        let bound = self.config.buffer_bytes;
        let tokens = [Peer::Client, Peer::Upstream].map(|peer| to_token(slot, peer));
        match Connection::new(arrival, self.poll.registry(), tokens, worker, bound) {
            Ok(mut connection) => {
                if self.drained_by.is_some() {
                    connection.driver.drain();
                }
                self.deadlines.insert((deadline, slot));
                self.connections.insert(connection);
                // What the client has sent behind its startup packet has no event of its own.
                self.serve(slot);
            }
            Err(error) => {
                let counters = self.shared.lent.counters();
                count_end(id, counters, &Err(SessionError::System(error)));
            }
        }
    }

    /// Ends logins that have taken too long, and lets go of clients that have finished.
    fn expire(&mut self) {
        while let Some(&(deadline, slot)) = self.deadlines.first()
            && deadline <= Instant::now()
        {
            self.deadlines.pop_first();
            let Some(connection) = self.connections.get_mut(slot) else {
                continue;
            };
            if connection.linger == Some(deadline) {
                connection.driver.let_go();
                self.serve(slot);
            } else {
                self.end(slot, End::Failed(SessionError::LoginTimeout));
            }
        }
    }
}

const fn to_token(slot: usize, peer: Peer) -> Token {
    match peer {
        Peer::Client => Token(2 * slot),
        Peer::Upstream => Token(2 * slot + 1),
    }
}

const fn of_token(token: Token) -> (usize, Peer) {
    let peer = match token.0 % 2 {
        0 => Peer::Client,
        _ => Peer::Upstream,
    };
    (token.0 / 2, peer)
}
