//! A worker: one thread with a runtime of its own, which owns its connections outright.

use super::connection::{Environment, serve};
use super::driver::Shared;
use super::registry::Registry;
use super::stream::Accepted;
use crate::config::Config;
use crate::session::Worker as Lent;
use crate::upstream::ledger::ClientId;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

/// A client on its way to a worker.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) socket: Accepted,
    pub(super) id: ClientId,
    pub(super) admitted: bool,
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
    arrivals: mpsc::UnboundedSender<Arrival>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Hands a client over. The queue is bounded by the limit of clients, which counts those in it.
    pub(super) fn send(&self, arrival: Arrival) {
        // The worker only ends after the acceptor; a client lost between the two sees its socket
        // close.
        let _ = self.arrivals.send(arrival);
    }

    /// Lets the worker end when its connections have, and waits for that.
    pub(super) fn join(self) {
        drop(self.arrivals);
        if self.thread.join().is_err() {
            tracing::error!("a worker thread panicked");
        }
    }
}

/// What a worker is made of.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) lent: Lent,
    pub(super) started: std::time::Instant,
    pub(super) draining: watch::Receiver<bool>,
}

/// Starts the worker with this number.
///
/// # Errors
/// The thread or its runtime cannot be made.
pub(super) fn start(number: usize, setup: Setup) -> io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (arrivals, incoming) = mpsc::unbounded_channel();
    let thread = std::thread::Builder::new()
        .name(format!("worker-{number}"))
        .spawn(move || {
            let tasks = LocalSet::new();
            // A task of its own, so that it is not looked at whenever a connection is.
            tasks.spawn_local(work(setup, incoming));
            runtime.block_on(tasks);
        })?;
    Ok(Handle {
        open: Arc::default(),
        arrivals,
        thread,
    })
}

/// Serves clients until no more can come and the last has gone, or the time to drain is over.
async fn work(setup: Setup, mut incoming: mpsc::UnboundedReceiver<Arrival>) {
    let drain_timeout = setup.config.drain_timeout;
    let mut draining = setup.draining.clone();
    let environment = Environment {
        config: setup.config,
        registry: setup.registry,
        shared: Rc::new(RefCell::new(Shared::new(setup.lent, setup.started))),
        draining: setup.draining,
    };
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            arrival = incoming.recv() => match arrival {
                Some(arrival) => {
                    let Arrival { socket, id, admitted, open } = arrival;
                    let environment = environment.clone();
                    connections.spawn_local(async move {
                        let _open = open;
                        serve(socket, id, admitted, environment).await;
                    });
                }
                None => break,
            },
            Some(ended) = connections.join_next() => report(ended),
        }
    }
    let _ = draining.wait_for(|draining| *draining).await;
    let rest = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(drain_timeout, rest).await.is_err() {
        tracing::warn!("connections still busy after the time to drain are cut off");
    }
}

/// A panic ends one connection; it is a defect all the same.
fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task panicked");
    }
}
