//! The only place with sockets: listeners, workers, and the drivers that move bytes.
//!
//! One acceptor hands each new connection to the worker with the fewest; from then on nothing of it
//! is shared but the table of shapes, the counters and the registry of cancel keys.

mod buffers;
mod connection;
mod driver;
mod registry;
mod stream;
mod worker;

use crate::config::{Address, Config, Mode};
use crate::metrics::{Counter, Metrics};
use crate::session::{self, Limits, Settings};
use crate::statement::table::Table;
use crate::upstream::ledger::ClientId;
use registry::Registry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stream::Listener;
use tokio::sync::{mpsc, watch};
use worker::{Arrival, Handle, OpenClient, Setup};

/// Pause after an accept that failed for lack of something (file descriptors, memory): long enough
/// not to spin, short enough not to be noticed once it is there again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address as configured.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
    /// A worker could not be started.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
}

/// A proxy that listens but does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    listeners: Vec<Listener>,
}

impl Proxy {
    /// Listens on every configured address.
    ///
    /// # Errors
    /// The first address that cannot be listened on.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let mut listeners = Vec::new();
        for address in &config.listen {
            let listener = Listener::bind(address, config.unix_socket_mode).await;
            listeners.push(listener.map_err(|source| Error::Listen {
                address: address.clone(),
                source,
            })?);
        }
        Ok(Self {
            metrics: Arc::new(Metrics::new(config.workers)),
            config: Arc::new(config),
            listeners,
        })
    }

    /// Where it listens, with the ports the system chose where that was left to it.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let addresses = self.listeners.iter().map(Listener::address);
        addresses.filter_map(Result::ok).collect()
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Serves until `stop` resolves, then drains: idle clients are told to go, busy ones may
    /// finish, and after the configured time the rest is cut off.
    ///
    /// # Errors
    /// A worker that cannot be started.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let (drain, draining) = watch::channel(false);
        let workers = Arc::new(self.start_workers(&draining)?);
        let acceptor = Arc::new(Acceptor {
            workers: Arc::clone(&workers),
            max_clients: self.config.max_clients,
            open: Arc::default(),
            next_id: AtomicUsize::new(1),
        });
        let (ended, mut all_ended) = mpsc::channel::<()>(1);
        for listener in self.listeners {
            let acceptor = Arc::clone(&acceptor);
            let (mut draining, metrics) = (draining.clone(), Arc::clone(&self.metrics));
            let ended = ended.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = acceptor.accept(&listener, &metrics) => {}
                    _ = draining.wait_for(|draining| *draining) => {}
                }
                drop((listener, acceptor, ended));
            });
        }
        drop((ended, acceptor));
        stop.await;
        // Nobody is listening any more only after all workers are gone, which cannot be.
        let _ = drain.send(true);
        let _ = all_ended.recv().await;
        let Some(workers) = Arc::into_inner(workers) else {
            return Ok(());
        };
        let joined = tokio::task::spawn_blocking(|| workers.into_iter().for_each(Handle::join));
        if joined.await.is_err() {
            tracing::error!("waiting for the workers failed");
        }
        Ok(())
    }

    fn start_workers(&self, draining: &watch::Receiver<bool>) -> Result<Vec<Handle>, Error> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| Error::Worker(error.into()))?;
        let seed = u64::from_ne_bytes(seed);
        let config = &self.config;
        let table = Table::new(config.max_shapes, config.oracle_per_second, seed);
        let table = Arc::new(table);
        let registry = Arc::new(Registry::default());
        let started = std::time::Instant::now();
        let settings = settings(config);
        (0..config.workers)
            .map(|index| {
                let (table, metrics) = (Arc::clone(&table), Arc::clone(&self.metrics));
                let setup = Setup {
                    config: Arc::clone(config),
                    registry: Arc::clone(&registry),
                    lent: session::Worker::new(settings, table, metrics, index, seed),
                    started,
                    draining: draining.clone(),
                };
                worker::start(index, setup).map_err(Error::Worker)
            })
            .collect()
    }
}

/// The settings a session needs, out of the configuration.
#[must_use]
pub fn settings(config: &Config) -> Settings {
    Settings {
        mode: match config.mode {
            Mode::Convert => session::Mode::Convert,
            Mode::Observe => session::Mode::Observe,
            Mode::Off => session::Mode::Off,
        },
        prepare_threshold: config.prepare_threshold,
        statement_max_age: u64::try_from(config.statement_max_age.as_millis()).unwrap_or(u64::MAX),
        catalog_watch: u64::try_from(config.catalog_watch.as_millis()).unwrap_or(u64::MAX),
        ddl_notices: config.ddl_notices,
        audit: config.audit,
        limits: Limits {
            max_query: config.max_query_bytes,
            max_literals: config.max_literals,
            max_statements: config.max_statements,
        },
    }
}

/// Hands out new connections.
#[derive(Debug)]
struct Acceptor {
    workers: Arc<Vec<Handle>>,
    max_clients: usize,
    open: Arc<AtomicUsize>,
    next_id: AtomicUsize,
}

impl Acceptor {
    async fn accept(&self, listener: &Listener, metrics: &Metrics) {
        loop {
            let socket = match listener.accept().await {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let load = |worker: &&Handle| worker.open.load(Ordering::Relaxed);
            let Some(worker) = self.workers.iter().min_by_key(load) else {
                return;
            };
            let admitted = self.open.load(Ordering::Relaxed) < self.max_clients;
            let counters = metrics.acceptor();
            counters.add(Counter::ConnectionsOpened, 1);
            if !admitted {
                counters.add(Counter::ConnectionsRefused, 1);
            }
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            worker.send(Arrival {
                socket,
                id: ClientId(id as u32),
                admitted,
                open: OpenClient::count(&[&worker.open, &self.open]),
            });
        }
    }
}
