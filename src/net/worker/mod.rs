//! A worker: one thread with an event loop of its own, which owns its ports and its hub outright.
//!
//! The loop is ours, not tokio's: waking a task, polling it and asking its sockets' readiness cost
//! more than half of what a converted query costs in all, and a port needs nothing of it but to be
//! told that its socket has news.
//!
//! A turn of the loop has three parts. Each port that may be read is read once, and the hub makes
//! output of what came. Then the hub's tasks are done. Then each port that has output is written
//! once, however much of it there is and whoever caused it. Both directions are served in every
//! turn, so two peers that only write cannot block each other.
//!
//! Invariants:
//! - a port is not read while the output it leads to is over its bound, so a connection holds at
//!   most the bound plus one read in each direction, and one frame that waits to be whole;
//! - a panic while a port is read, offered or written ends that port's client and no other;
//! - a port that always has more to read has its turn after each look at all the others;
//! - the thread ends once the proxy is ending and the last client has gone, or the time for that is
//!   over.

mod adopt;
mod adrift;
mod asked;
mod end;
mod flush;
mod guests;
mod halt;
mod hear;
mod moving;
mod newcomers;
mod orders;
mod ports;
mod spells;
mod survey;
mod waiting;
mod warm;

use super::buffers::Spares;
use super::environment::Environment;
use super::news::Tells;
use super::orders::{Arrival, Mailbox, Order};
use super::port::Port;
use super::warm::Warm;
use crate::admin::console::{Counted, Halted};
use crate::config::Config;
use crate::convert::Lent;
use crate::error::ConnectionError;
use crate::hub::{self, Hub, Task};
use crate::ids::{ClientId, UpstreamId};
use crate::statement::{Micros, Millis};
use end::End;
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use ports::{ClientPort, PortId, Ports, UpstreamPort};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::mpsc::Sender;

/// Events taken from the system at once.
const EVENTS: usize = 256;

/// Bytes read at once. One buffer serves all ports of a worker, because what is read is used up
/// before the next read; only an incomplete frame is kept per port.
const READ: usize = 64 * 1024;

/// Turns of the loop between two looks for events, as long as there is something to do.
const TURNS: usize = 16;

/// The token of the event that there are orders. Ports have theirs from zero.
const WOKEN: Token = Token(usize::MAX);

/// The acceptor's hold on a worker. When it is dropped, no other client can come.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) open: Arc<AtomicUsize>,
    mailbox: Mailbox,
}

impl Handle {
    /// Hands a client over.
    pub(super) fn send(&self, arrival: Arrival) {
        self.mailbox.put(Order::Serve(Box::new(arrival)));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.mailbox.put(Order::NoMore);
    }
}

/// A worker's thread.
#[derive(Debug)]
pub(super) struct Thread {
    thread: JoinHandle<()>,
    mailbox: Mailbox,
}

impl Thread {
    /// Where orders for the worker are put.
    pub(super) fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// Puts an order into the worker's mailbox.
    pub(super) fn put(&self, order: Order) {
        self.mailbox.put(order);
    }

    /// Waits for its end, which comes once the proxy is ending, its [`Handle`] is gone, and so are
    /// its clients, or the time to drain is over.
    pub(super) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("a worker thread panicked");
        }
    }
}

/// What a worker is made of.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) environment: Arc<Environment>,
    pub(super) lent: Lent,
    /// What the worker's clock counts from.
    pub(super) started: Instant,
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
    let (mailbox, orders) = Mailbox::new(Waker::new(poll.registry(), WOKEN)?);
    let environment = setup.environment;
    let by: Arc<dyn Tells> = Arc::new(mailbox.clone());
    environment.add_worker(mailbox.clone(), Arc::clone(&by));
    let is_limited = !environment.config().time_limits.is_none();
    let looks_at = is_limited.then(Instant::now);
    let worker = Worker {
        poll,
        hub: Hub::new(setup.lent),
        clients: Ports::default(),
        upstreams: Ports::default(),
        ready: Vec::new(),
        dirty: Vec::new(),
        spare: Vec::new(),
        held: Vec::new(),
        scratch: vec![0; READ].into(),
        spares: Spares::default(),
        config: environment.config(),
        warm: Arc::clone(&environment.warm),
        environment,
        number,
        counted: Counted::new(),
        renewed: None,
        has_stale: false,
        halted: None,
        parked: Vec::new(),
        awaited: Vec::new(),
        login_took: Duration::ZERO,
        swept_at: None,
        looks_at,
        runtime: setup.runtime,
        parting: setup.parting,
        started: setup.started,
        orders,
        mailbox: mailbox.clone(),
        by: Arc::clone(&by),
        waits: VecDeque::new(),
        is_closed: false,
        drained_by: None,
    };
    let thread = std::thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || worker.run())?;
    let handle = Handle {
        open: Arc::default(),
        mailbox: mailbox.clone(),
    };
    Ok((handle, Thread { thread, mailbox }))
}

struct Worker {
    poll: Poll,
    hub: Hub,
    clients: Ports<ClientPort>,
    upstreams: Ports<UpstreamPort>,
    /// Ports that may be read; each is marked so, and is here once.
    ready: Vec<PortId>,
    /// Ports that may have output; each is marked so, and is here once.
    dirty: Vec<PortId>,
    /// An empty list, so that no turn allocates one.
    spare: Vec<PortId>,
    /// Clients that wait for a cancel request to reach the server.
    held: Vec<ClientId>,
    scratch: Box<[u8]>,
    spares: Spares,
    config: Arc<Config>,
    environment: Arc<Environment>,
    warm: Arc<Warm>,
    /// Which worker it is.
    number: usize,
    /// What the clients that have left had counted, by database.
    counted: Counted,
    /// When server connections were last to be closed as they become free. One that was asked for
    /// before may come behind that.
    renewed: Option<Instant>,
    /// There may be clients that are ended for the sake of their server connections.
    has_stale: bool,
    /// The halts in force, if any database is paused.
    halted: Option<Arc<Halted>>,
    /// Server connections without a client.
    parked: Vec<UpstreamId>,
    /// Clients that are to have one of these as soon as the server has said how it is.
    awaited: Vec<(UpstreamId, Arrival)>,
    /// How long the last login took that the server has accepted.
    login_took: Duration,
    /// When one of them will have waited for too long.
    swept_at: Option<Instant>,
    /// When it is seen next whether clients take too long, if there are limits.
    looks_at: Option<Instant>,
    runtime: runtime::Handle,
    parting: Sender<()>,
    started: Instant,
    orders: mpsc::Receiver<Order>,
    /// For those who relay the cancel requests of its clients.
    mailbox: Mailbox,
    /// By which others tell it something.
    by: Arc<dyn Tells>,
    /// Those who wait for a home, since when, and with which tickets, and maybe some who do not.
    waits: VecDeque<(Instant, ClientId, u64)>,
    /// No more clients can come.
    is_closed: bool,
    /// When the worker ends, whatever is still open: once the proxy is ending.
    drained_by: Option<Instant>,
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
            self.tick();
            if !self.waits.is_empty() {
                self.end_waits();
            }
            if self.swept_at.is_some_and(|at| at <= Instant::now()) {
                self.sweep();
            }
            if self.looks_at.is_some_and(|at| at <= Instant::now()) {
                self.look_at_times();
            }
            let mut is_woken = false;
            for event in &events {
                match event.token() {
                    WOKEN => is_woken = true,
                    token => self.note(token, event),
                }
            }
            self.turn();
            // Behind the turn, so that no event of this batch is about a port that was not there
            // yet.
            if is_woken {
                self.read_orders();
            }
            for _ in 1..TURNS {
                if self.is_done() {
                    break;
                }
                self.turn();
            }
        }
        self.cut_off();
    }

    /// Looks at the clock, for everything that is done until the next look.
    fn tick(&mut self) {
        let elapsed = self.started.elapsed().as_micros();
        self.hub
            .tick(Micros(u64::try_from(elapsed).unwrap_or(u64::MAX)));
    }

    fn millis(&self, at: Instant) -> Millis {
        let elapsed = at.saturating_duration_since(self.started).as_millis();
        Millis(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// How long there is nothing to do without an event.
    fn timeout(&self) -> Option<Duration> {
        if !self.is_done() {
            return Some(Duration::ZERO);
        }
        let timer = self.hub.next_timeout();
        let timer = timer.map(|at| self.started + Duration::from_millis(at.0));
        let others = [self.drained_by, self.swept_at, self.looks_at];
        let next = others.into_iter().chain([timer, self.next_wait()]);
        let next = next.flatten().min();
        let next = next.map(|next| next.saturating_duration_since(Instant::now()));
        // Memory is given back also when nobody asks for anything.
        let rest = Duration::from_millis(hub::REST);
        // A timer counts whole milliseconds, a sleep may end just before one is over.
        Some(next.map_or(rest, |next| rest.min(next + Duration::from_micros(500))))
    }

    /// Whether there is nothing to do without an event. What ends while ports are written, or an
    /// order, may leave tasks.
    fn is_done(&self) -> bool {
        self.ready.is_empty() && self.dirty.is_empty() && !self.hub.has_tasks()
    }

    fn is_over(&self) -> bool {
        let Some(drained_by) = self.drained_by else {
            return false;
        };
        self.is_closed && self.clients.is_empty() || Instant::now() >= drained_by
    }

    /// Takes note of an event.
    fn note(&mut self, token: Token, event: &Event) {
        let index = token.0 / 2;
        let id = if token.0.is_multiple_of(2) {
            let Some((slot, client)) = self.clients.at(index) else {
                return;
            };
            client.port.socket.note(event);
            if client.port.socket.is_ending() {
                self.hub.client_finishes(ClientId(slot));
            }
            PortId::Client(ClientId(slot))
        } else {
            let Some((slot, upstream)) = self.upstreams.at(index) else {
                return;
            };
            upstream.port.socket.note(event);
            PortId::Upstream(UpstreamId(slot))
        };
        self.make_ready(id);
        // There may be room for what it had none for.
        if event.is_writable() {
            self.make_dirty(id);
        }
    }

    fn port(&mut self, id: PortId) -> Option<&mut Port> {
        match id {
            PortId::Client(id) => self.clients.get_mut(id.0).map(|client| &mut client.port),
            PortId::Upstream(id) => self.upstreams.get_mut(id.0).map(|server| &mut server.port),
        }
    }

    /// Has the port read in the next turn, if there may be something to be read.
    #[inline]
    fn make_ready(&mut self, id: PortId) {
        if let Some(port) = self.port(id)
            && !port.is_ready
            && port.may_read()
        {
            port.is_ready = true;
            self.ready.push(id);
        }
    }

    /// Has the port written at the end of the turn.
    #[inline]
    fn make_dirty(&mut self, id: PortId) {
        if let Some(port) = self.port(id)
            && !port.is_dirty
        {
            port.is_dirty = true;
            self.dirty.push(id);
        }
    }

    /// Reads each port that may be read once, does the hub's tasks, and writes each port that has
    /// output once.
    fn turn(&mut self) {
        // What comes to the lists meanwhile is for the next turn.
        let mut ports = std::mem::take(&mut self.spare);
        std::mem::swap(&mut ports, &mut self.ready);
        for id in ports.drain(..) {
            self.guarded(id, Self::hear);
        }
        while let Some(task) = self.hub.poll() {
            self.perform(task);
        }
        std::mem::swap(&mut ports, &mut self.dirty);
        for id in ports.drain(..) {
            self.guarded(id, Self::flush);
        }
        self.spare = ports;
    }

    /// Does something with a port, and ends its client if that fails.
    #[inline]
    fn guarded(
        &mut self,
        id: PortId,
        step: impl FnOnce(&mut Self, PortId) -> Result<(), ConnectionError>,
    ) {
        let end = match catch_unwind(AssertUnwindSafe(|| step(self, id))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => End::Failed(error),
            Err(_) => End::Panicked,
        };
        self.failed(id, end);
    }

    fn perform(&mut self, task: Task) {
        match task {
            Task::Remember(id, key) => {
                let link = self.clients.get(id.0).map(|client| client.link);
                let server = link.and_then(|link| self.upstreams.get_mut(link.0));
                let endpoint = server.map(|server| {
                    server.process = Some(key.pid);
                    Arc::clone(&server.endpoint)
                });
                if let (Some(client), Some(endpoint)) = (self.clients.get_mut(id.0), endpoint) {
                    let given = (key.pid, key.ours);
                    let theirs = Some((key.pid, key.secret, endpoint));
                    let cancels = Arc::clone(&client.cancels);
                    let registry = &self.environment.registry;
                    let by = Arc::clone(&self.by);
                    client.registration = registry.register(given, theirs, cancels, by);
                    if client.registration.is_none() {
                        // A request with this key would mean another client.
                        let taken = io::ErrorKind::AlreadyExists.into();
                        self.end(id, End::Failed(ConnectionError::System(taken)));
                    }
                }
            }
            Task::EndLogin(id) => {
                // It may have been accepted in the same turn.
                let known = self.hub.client(id);
                if known.is_some_and(|client| !client.is_logged_in()) {
                    self.end(id, End::Failed(ConnectionError::LoginTimeout));
                }
            }
            Task::Finish(id) => {
                if let Some(client) = self.clients.get_mut(id.0) {
                    client.finishes = true;
                }
                self.make_dirty(PortId::Client(id));
            }
            Task::See(id) => self.make_dirty(PortId::Client(id)),
            Task::Login(id, outcome) => self.login_decided(id, outcome),
            Task::Park(id) => self.park(id),
            Task::Crowded(id) => self.make_room_for(id),
            Task::DropParked => {
                // It makes no difference whether there were any.
                let _ = self.warm.drop_all();
                self.close_unfit();
            }
            Task::Settled(id) => self.settled(id),
            Task::Return(id) => self.returned(id),
            Task::Send(id) => self.make_dirty(PortId::Upstream(id)),
            Task::Hasten(id) => self.hasten(id),
            Task::Decided(..) => {}
        }
    }
}
