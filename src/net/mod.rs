//! The only place with sockets: listeners, and workers with their ports.
//!
//! One acceptor greets each new client, connects to its server, and hands both to the worker with
//! the fewest clients; from then on nothing of it is shared but the table of shapes, the counters
//! and the registry of cancel keys. The acceptor's runtime is tokio's; a worker has an event loop
//! of its own.

mod accept;
mod acceptor;
mod asker;
mod attrs;
mod buffers;
mod cancel;
mod console;
mod dial;
pub mod door;
mod endpoint;
mod environment;
mod farewell;
mod hasten;
mod http;
mod news;
mod orders;
mod places;
mod pools;
mod port;
mod proof;
mod reach;
mod reopen;
mod socket;
mod steward;
mod stream;
mod survey;
pub mod tls;
mod visitor;
mod warm;
mod ways;
mod worker;

use crate::admin::console::Ending;
use crate::config::{Address, Config, Mode, PlanChoice, SharedReads};
use crate::convert::{self, Limits, Settings, Strictness};
use crate::metrics::Metrics;
use crate::statement::journal::Journal;
use crate::statement::mirror::Capacity;
use crate::statement::shapes::Shapes;
use accept::HANDSHAKES;
use acceptor::Acceptor;
use asker::ask_for_others;
use cancel::Registry;
use console::Console;
use door::Door;
use environment::Environment;
use farewell::LAST_WORD;
use http::{Desk, Health};
use orders::{Mailbox, Order};
use places::Places;
use pools::Pools;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use stream::Listener;
use tls::Encryption;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use warm::Warm;
use ways::Ways;
use worker::{Handle, Setup, Thread};

pub use acceptor::other_files;
pub use steward::{Means, SetLog, Steward, Unchanged};

/// The time between two looks at whether all clients have left.
const LEFT: Duration = Duration::from_millis(50);

/// How far the proxy is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It serves.
    Serving,
    /// It takes no new clients.
    Draining,
    /// All clients have gone but for those at the console.
    Over,
}

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
    /// Encryption is wanted and cannot be had.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// Clients cannot be let in.
    #[error(transparent)]
    Door(#[from] door::Error),
    /// A worker could not be started.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
}

impl Error {
    /// Whether a file that the configuration names cannot be used.
    #[must_use]
    pub const fn is_about_files(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Door(_))
    }
}

/// A proxy that listens but does not serve yet.
#[derive(Debug)]
pub struct Proxy {
    config: Arc<Config>,
    metrics: Arc<Metrics>,
    shapes: Arc<Shapes>,
    seed: u64,
    started: Instant,
    listeners: Vec<Listener>,
    http: Vec<Listener>,
    tls: Arc<Encryption>,
    door: Arc<Door>,
    steward: Arc<Steward>,
}

impl Proxy {
    /// Listens on every configured address.
    ///
    /// # Errors
    /// The first file that cannot be used, the first address that cannot be listened on, or
    /// a system without random numbers.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let tls = Arc::new(Encryption::load(&config)?);
        let door = Arc::new(Door::load(&config)?);
        let steward = Steward::new(&config, Arc::clone(&tls), Arc::clone(&door))?;
        let listeners = bind_all(&config.listen, &config).await?;
        let http = bind_all(&config.http_listen, &config).await?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| Error::Worker(error.into()))?;
        let seed = u64::from_ne_bytes(seed);
        let shapes = Shapes::new(config.max_shapes, config.oracle_per_second, seed);
        Ok(Self {
            shapes: Arc::new(shapes),
            seed,
            started: Instant::now(),
            metrics: Arc::new(Metrics::new(config.workers)),
            config: Arc::new(config),
            listeners,
            http,
            tls,
            door,
            steward: Arc::new(steward),
        })
    }

    /// Where it answers HTTP.
    #[must_use]
    pub fn http_addresses(&self) -> Vec<String> {
        let addresses = self.http.iter().map(Listener::address);
        addresses.filter_map(Result::ok).collect()
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

    /// What may change while it runs.
    #[must_use]
    pub fn steward(&self) -> Arc<Steward> {
        Arc::clone(&self.steward)
    }

    /// What has changed in the catalogs lately. Its times count from [`Self::started`].
    #[must_use]
    pub fn journal(&self) -> Arc<Journal> {
        Arc::clone(self.shapes.journal())
    }

    /// What the clocks of the workers count from.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Serves until `stop` resolves, then drains: idle clients are told to go, busy ones may
    /// finish, and after the configured time the rest is cut off.
    ///
    /// # Errors
    /// A worker that cannot be started.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.serve_until(stop, std::future::pending()).await
    }

    /// As [`Self::serve`], and cuts off the rest as soon as `hurry` resolves.
    ///
    /// # Errors
    /// A worker that cannot be started.
    pub async fn serve_until(
        self,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let (drain, draining) = watch::channel(Phase::Serving);
        let (arriving, all_arrived) = mpsc::channel::<()>(1);
        let (parting, all_parted) = mpsc::channel::<()>(1);
        let environment = Arc::new(self.environment(&draining));
        let (workers, threads) = self.start_workers(&environment, parting)?;
        let warm = Arc::clone(&environment.warm);
        tokio::spawn(ask_for_others(asker::Means {
            ways: Arc::clone(&environment.ways),
            config: Arc::clone(&self.config),
            tls: Arc::clone(&self.tls),
            metrics: Arc::clone(&self.metrics),
            shapes: Arc::clone(&self.shapes),
            door: Arc::clone(&self.door),
            draining: draining.clone(),
        }));
        let mailboxes = threads.iter().map(Thread::mailbox).collect();
        let console = self.start_console(&environment, mailboxes);
        let acceptor = Acceptor::new(workers, environment, Arc::clone(&console), arriving);
        let (open, acceptor) = (acceptor.open(), Arc::new(acceptor));
        for listener in self.listeners {
            let acceptor = Arc::clone(&acceptor);
            tokio::spawn(acceptor.accept_until(listener, draining.clone()));
        }
        drop(acceptor);
        let servers = self.config.databases.addresses();
        let health = Health::new(threads.iter().map(Thread::mailbox), servers, draining);
        let (metrics, workers) = (Arc::clone(&self.metrics), threads.len());
        let times = (self.started, since(self.started));
        let desk = Arc::new(Desk::new(metrics, workers, times, health));
        for listener in self.http {
            tokio::spawn(Arc::clone(&desk).serve(listener));
        }
        let mut stop = pin!(stop);
        let mut ordered = self.steward.ending();
        let ending = tokio::select! {
            () = &mut stop => Ending::Drain,
            ending = next_ending(&mut ordered) => ending,
        };
        // Nobody is listening any more only after all workers are gone, which cannot be.
        let _ = drain.send(Phase::Draining);
        warm.close();
        if ending == Ending::WaitForClients {
            tokio::select! {
                () = all_left(&open) => {}
                () = stop => {}
                _ = ordered.changed() => {}
            }
        }
        threads.iter().for_each(|thread| thread.put(Order::Drain));
        end(threads, &self.config, (all_arrived, all_parted), async {
            tokio::select! {
                () = hurry => {}
                () = at_once(&mut ordered) => {}
            }
        })
        .await;
        // Those at the console have seen it to its end.
        let _ = drain.send(Phase::Over);
        let _ = timeout(LAST_WORD, console.is_left()).await;
        Ok(())
    }

    fn start_console(
        &self,
        environment: &Arc<Environment>,
        mailboxes: Vec<Mailbox>,
    ) -> Arc<Console> {
        let (environment, steward) = (Arc::clone(environment), Arc::clone(&self.steward));
        let times = (self.started, since(self.started));
        let console = Arc::new(Console::new(environment, steward, mailboxes, times));
        tokio::spawn(Arc::clone(&console).count_periods());
        console
    }

    fn environment(&self, draining: &watch::Receiver<Phase>) -> Environment {
        let warm = Arc::new(Warm::new(&self.config));
        Environment {
            pools: Pools::new(Arc::clone(&warm), tokio::runtime::Handle::current()),
            workers: Mutex::default(),
            ways: Arc::new(Ways::new(&self.config.databases)),
            config: Arc::clone(&self.config),
            registry: Arc::new(Registry::default()),
            metrics: Arc::clone(&self.metrics),
            warm,
            draining: draining.clone(),
            tls: Arc::clone(&self.tls),
            door: Arc::clone(&self.door),
            shapes: Arc::clone(&self.shapes),
            handshakes: Mutex::new(Places::new(HANDSHAKES)),
        }
    }

    fn start_workers(
        &self,
        environment: &Arc<Environment>,
        parting: mpsc::Sender<()>,
    ) -> Result<(Vec<Handle>, Vec<Thread>), Error> {
        let config = &self.config;
        let settings = settings(config);
        (0..config.workers)
            .map(|index| {
                let (table, metrics) = (Arc::clone(&self.shapes), Arc::clone(&self.metrics));
                let setup = Setup {
                    environment: Arc::clone(environment),
                    lent: convert::Lent::new(settings, table, metrics, index, self.seed),
                    started: self.started,
                    runtime: tokio::runtime::Handle::current(),
                    parting: parting.clone(),
                };
                worker::start(index, setup).map_err(Error::Worker)
            })
            .collect()
    }
}

/// When something that began at `started` did so, in seconds since 1970.
fn since(started: Instant) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = now.unwrap_or_default().saturating_sub(started.elapsed());
    since.as_secs_f64()
}

/// Waits for the end of the workers, which were told to drain: they have a time for that, or until
/// `hurry` resolves.
async fn end(
    threads: Vec<Thread>,
    config: &Config,
    (mut all_arrived, mut all_parted): (mpsc::Receiver<()>, mpsc::Receiver<()>),
    hurry: impl Future<Output = ()>,
) {
    // The workers have the same time, and cut off what is left then.
    let limit = config.drain_timeout + LAST_WORD;
    let ended = async {
        let _ = timeout(limit, all_arrived.recv()).await;
        let _ = timeout(limit, all_parted.recv()).await;
    };
    let cut_off = async {
        hurry.await;
        threads.iter().for_each(|thread| thread.put(Order::CutOff));
        tokio::time::sleep(LAST_WORD).await;
    };
    tokio::select! {
        () = ended => {}
        () = cut_off => {}
    }
    let join = || threads.into_iter().for_each(Thread::join);
    if tokio::task::spawn_blocking(join).await.is_err() {
        tracing::error!("waiting for the workers failed");
    }
}

/// How the proxy is to end, by order of somebody at the console, each time that changes.
async fn next_ending(ordered: &mut watch::Receiver<Option<Ending>>) -> Ending {
    loop {
        if let Some(ending) = *ordered.borrow_and_update() {
            return ending;
        }
        if ordered.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until somebody at the console wants the proxy to end at once.
async fn at_once(ordered: &mut watch::Receiver<Option<Ending>>) {
    let is_at_once = |ending: &Option<Ending>| *ending == Some(Ending::AtOnce);
    if ordered.wait_for(is_at_once).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until no client is open.
async fn all_left(open: &AtomicUsize) {
    while open.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(LEFT).await;
    }
}

async fn bind_all(addresses: &[Address], config: &Config) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = Listener::bind(address, config.unix_socket_mode).await;
        listeners.push(listener.map_err(|source| Error::Listen {
            address: address.clone(),
            source,
        })?);
    }
    Ok(listeners)
}

/// Reads the files that the configuration names, as the proxy would.
///
/// # Errors
/// The first that cannot be used.
pub fn check(config: &Config) -> Result<(), Error> {
    let tls = Arc::new(Encryption::load(config)?);
    let door = Arc::new(Door::load(config)?);
    Steward::new(config, tls, door)?;
    Ok(())
}

/// What a hub needs to know of the configuration.
#[must_use]
pub fn settings(config: &Config) -> Settings {
    Settings {
        mode: match config.mode {
            Mode::Convert => convert::Policy::Convert,
            Mode::Observe => convert::Policy::Observe,
            Mode::Off => convert::Policy::Off,
        },
        strictness: match config.plans {
            PlanChoice::Proven => Strictness::Proven,
            PlanChoice::Server => Strictness::Server,
        },
        prepare_threshold: config.prepare_threshold,
        statement_max_age: u64::try_from(config.statement_max_age.as_millis()).unwrap_or(u64::MAX),
        catalog_watch: u64::try_from(config.catalog_watch.as_millis()).unwrap_or(u64::MAX),
        ddl_notices: config.ddl_notices,
        audit: config.audit,
        trials: config.trials,
        deferred_begin: config.deferred_begin,
        proves_reads: config.shared_reads != SharedReads::Off,
        // What is not looked at may have changed.
        shares: config.shared_reads == SharedReads::On && !config.catalog_watch.is_zero(),
        // What is not looked at may have changed.
        warm: config.warm_connections && !config.catalog_watch.is_zero(),
        limits: Limits {
            max_query: config.max_query_bytes,
            max_literals: config.max_literals,
            min_array_rows: config.min_array_rows,
            statements: Capacity {
                statements: config.max_statements,
                bytes: config.statement_memory,
            },
        },
    }
}
