//! The acceptor: it hands out new connections, and has a word and a descriptor left for those that
//! there is no room for.
//!
//! Invariants:
//! - a connection beyond the limit is read before it is refused, because it may be a cancel
//!   request, which is served however many clients there are;
//! - at most [`REFUSALS`] wait for their refusal; the oldest makes room for the next at once, so
//!   nobody who sends nothing keeps others out;
//! - [`SPARE`] descriptors are kept for when there are no others: one to accept, one to reach the
//!   server with a cancel request.

use super::accept::{Bound, come_late, greet};
use super::admission::Admission;
use super::console::Console;
use super::environment::Environment;
use super::files::{REFUSALS, SPARE};
use super::listener::Listener;
use super::orders::{Arrival, OpenClient};
use super::phase::Phase;
use super::places::Places;
use super::stream::Stream;
use super::worker::Handle;
use crate::metrics::Counter;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Pause after an accept that failed for lack of something (file descriptors, memory): long enough
/// not to spin, short enough not to be noticed once it is there again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Hands out new connections.
#[derive(Debug)]
pub(super) struct Acceptor {
    workers: Vec<Handle>,
    open: Arc<AtomicUsize>,
    next_number: AtomicU64,
    environment: Arc<Environment>,
    console: Arc<Console>,
    waiting: Mutex<Waiting>,
    /// Its receiver learns that nobody arrives any more. Dropped last.
    _arriving: mpsc::Sender<()>,
}

/// Those who are about to be refused, and what is kept for them.
#[derive(Debug)]
struct Waiting {
    refusals: Places,
    /// Those that are not let in yet.
    knocking: Places,
    spare: Vec<File>,
}

impl Waiting {
    /// Keeps as many descriptors as there should be, and are to be had.
    fn keep_spare(&mut self) {
        while self.spare.len() < SPARE {
            match File::open("/dev/null") {
                Ok(file) => self.spare.push(file),
                Err(_) => return,
            }
        }
    }
}

impl Acceptor {
    pub(super) fn new(
        workers: Vec<Handle>,
        environment: Arc<Environment>,
        console: Arc<Console>,
        arriving: mpsc::Sender<()>,
    ) -> Self {
        let max_clients = environment.config().max_clients;
        Self {
            workers,
            open: Arc::default(),
            next_number: AtomicU64::new(1),
            environment,
            console,
            waiting: Mutex::new(Waiting {
                refusals: Places::new(REFUSALS),
                knocking: Places::new(max_clients),
                spare: Vec::new(),
            }),
            _arriving: arriving,
        }
    }

    /// How many clients are open that workers serve, or are about to.
    pub(super) fn open(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.open)
    }

    /// Accepts as long as the proxy serves.
    pub(super) async fn accept_until(
        self: Arc<Self>,
        listener: Arc<Listener>,
        mut draining: watch::Receiver<Phase>,
    ) {
        tokio::select! {
            () = self.accept(&listener) => {}
            _ = draining.wait_for(|phase| *phase != Phase::Serving) => {}
        }
        let is_ending = draining.borrow().is_ending();
        let has_heirs = self.environment.config().takeover_socket.is_some();
        if is_ending && !has_heirs && !listener.is_shared() {
            let all = (Arc::clone(&self.environment), Arc::clone(&self.console));
            // As long as there are acceptors, workers wait for clients.
            drop(self);
            let over = draining.wait_for(|phase| *phase == Phase::Over);
            tokio::select! {
                () = turn_away(&listener, all) => {}
                _ = over => {}
            }
        }
    }

    /// Accepts for ever.
    async fn accept(self: &Arc<Self>, listener: &Listener) {
        loop {
            // Without a spare descriptor there is none for a server connection either.
            let mut room = true;
            self.waiting().keep_spare();
            let client = loop {
                match listener.accept().await {
                    Ok(client) => break client,
                    Err(error) if is_lack(&error) => {
                        // Once, however often it is tried.
                        if room {
                            tracing::warn!(%error, "accepting a connection failed");
                        }
                        room = false;
                        self.make_room().await;
                    }
                    // The client's doing: it has gone again.
                    Err(error) => tracing::debug!(%error, "accepting a connection failed"),
                }
            };
            self.meet(client, room);
        }
    }

    /// Accepts who waits at a socket that is about to be closed.
    pub(super) fn accept_waiting(self: &Arc<Self>, listener: &Listener) {
        while let Ok(client) = listener.accept_at_once() {
            self.meet(client, true);
        }
    }

    /// Has a client greeted that has just been accepted.
    fn meet(self: &Arc<Self>, client: Stream, room: bool) {
        let load = |index: &usize| self.workers[*index].open.load(Ordering::Relaxed);
        let Some(index) = (0..self.workers.len()).min_by_key(load) else {
            return;
        };
        let admission = self.admit(room);
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let open = match admission {
            Admission::Admitted(_) => vec![&self.workers[index].open, &self.open],
            // It must not keep out others when there is room again.
            Admission::Refused(_) => Vec::new(),
        };
        let open = OpenClient::count(&open);
        let acceptor = Arc::clone(self);
        tokio::spawn(async move {
            acceptor
                .greet(client, number, admission, (index, open))
                .await;
        });
    }

    /// Greets a client that is counted for a worker, and hands it to that or to the one that has
    /// its server connection.
    async fn greet(
        &self,
        client: Stream,
        number: u64,
        admission: Admission,
        (index, open): (usize, OpenClient),
    ) {
        let environment = &self.environment;
        let load = |index: usize| {
            let worker = self.workers.get(index);
            worker.map_or(usize::MAX, |worker| worker.open.load(Ordering::Relaxed))
        };
        let greeted = greet(
            client,
            number,
            admission,
            (environment, &self.console),
            load,
        )
        .await;
        let (mut joined, wanted) = match greeted {
            None => return,
            Some(Bound::Worker(joined, wanted)) => (*joined, wanted),
            Some(Bound::Console(client, pending, guest)) => {
                // It is none of those that there is room for, and must not keep the proxy from its
                // end: nothing of the acceptor is held any longer.
                let console = Arc::clone(&self.console);
                tokio::spawn(console.serve(client, pending, guest));
                return;
            }
        };
        let (worker, open) = match wanted.and_then(|wanted| self.workers.get(wanted)) {
            Some(worker) => (worker, OpenClient::count(&[&worker.open, &self.open])),
            None => (&self.workers[index], open),
        };
        let open = open.counted_as(joined.attendee.take());
        worker.send(Arrival {
            joined,
            number,
            open,
        });
    }

    /// Gives up what is kept for this moment; if nothing is, has somebody leave.
    async fn make_room(&self) {
        let had_spare = {
            let mut waiting = self.waiting();
            let had_spare = !waiting.spare.is_empty();
            waiting.spare.clear();
            if !had_spare {
                let _ = waiting.refusals.free_oldest() || waiting.knocking.free_oldest();
            }
            had_spare
        };
        if !had_spare {
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    fn admit(&self, room: bool) -> Admission {
        let counters = self.environment.metrics.acceptor();
        counters.add(Counter::ConnectionsOpened, 1);
        let max_clients = self.environment.config().max_clients;
        let is_full = self.open.load(Ordering::Relaxed) >= max_clients;
        let mut waiting = self.waiting();
        waiting.knocking.set_most(max_clients);
        // Who sends nothing keeps nobody out.
        if room && (!is_full || waiting.knocking.free_oldest()) {
            return Admission::Admitted(waiting.knocking.take());
        }
        counters.add(Counter::ConnectionsRefused, 1);
        Admission::Refused(waiting.refusals.take())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says to all who come that nobody is let in any more, and serves cancel requests: those whom they
/// are about may still be here. It never ends by itself.
async fn turn_away(listener: &Listener, (environment, console): (Arc<Environment>, Arc<Console>)) {
    let mut places = Places::new(REFUSALS);
    let mut leaving = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(client) => {
                    let all = (Arc::clone(&environment), Arc::clone(&console));
                    leaving.spawn(come_late(client, places.take(), all));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = leaving.join_next() => {}
        }
    }
}

/// Whether the system lacks something, which waiting may help.
fn is_lack(error: &io::Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| lacking.contains(&errno))
}
