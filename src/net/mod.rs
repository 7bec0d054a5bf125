//! The only place with sockets: listeners, and workers with their ports.
//!
//! One acceptor greets each new client, connects to its server, and hands both to the worker with
//! the fewest clients; from then on nothing of it is shared but the table of shapes, the counters
//! and the registry of cancel keys. The acceptor's runtime is tokio's; a worker has an event loop
//! of its own.

mod accept;
mod acceptor;
mod admission;
mod asker;
mod attendance;
mod attrs;
mod buffers;
mod cancel;
mod console;
mod current;
mod dial;
pub mod door;
mod ending;
mod endpoint;
mod entrances;
mod environment;
mod farewell;
mod files;
mod following;
mod given;
mod halts;
mod hasten;
mod http;
mod listener;
mod logs;
mod news;
mod orders;
mod peers;
mod phase;
mod places;
mod pools;
mod port;
mod porter;
mod process;
mod proof;
mod reach;
mod reopen;
mod session;
mod settings;
mod socket;
mod spell;
mod steward;
mod stock;
mod stream;
mod survey;
mod switches;
mod takeover;
pub mod tls;
mod visitor;
mod warm;
mod ways;
mod worker;

use crate::admin::console::Ending;
use crate::config::{Address, Config};
use crate::convert;
use crate::metrics::Metrics;
use crate::statement::journal::Journal;
use crate::statement::shapes::Shapes;
use accept::HANDSHAKES;
use acceptor::Acceptor;
use asker::ask_for_others;
use attendance::Attendance;
use cancel::Registry;
use console::Console;
use door::Doors;
use ending::{all_left, at_once, end, leave, next_ending, succeeded};
use environment::Environment;
use farewell::LAST_WORD;
use given::{Given, bind_all};
use http::{Desk, Gallery, Health};
use listener::Listener;
use logs::Logs;
use orders::{Mailbox, Order};
use phase::Phase;
use places::Places;
use pools::Pools;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use switches::SwitchKeeper;
use takeover::{Estate, Inherited, Predecessor};
use tls::Encryption;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use warm::Warm;
use ways::Ways;
use worker::{Handle, Setup, Thread};

pub use farewell::CONNECTIONS;
pub use files::raise_file_limit;
pub use settings::settings;
pub use steward::{Means, SetLog, Steward, Unchanged, with_causes};
pub use tls::{Conversation, encrypt};

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
    /// What a service manager listens on for this process cannot be used.
    #[error("the service manager's sockets (LISTEN_FDS): {0}")]
    Given(#[source] io::Error),
    /// Encryption is wanted and cannot be had.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// Clients cannot be let in.
    #[error(transparent)]
    Door(#[from] door::Error),
    /// The file of switches cannot be used.
    #[error(transparent)]
    Switches(#[from] switches::Error),
    /// A worker could not be started.
    #[error("cannot start a worker: {0}")]
    Worker(#[source] io::Error),
    /// What another process listens on cannot be taken over, or not be offered to the next one.
    #[error("takeover_socket {}: {source}", path.display())]
    Takeover {
        /// The path as configured.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

impl Error {
    /// Whether a file that the configuration names cannot be used.
    #[must_use]
    pub const fn is_about_files(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Door(_) | Self::Switches(_))
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
    /// Where the next process asks for these, once this one serves.
    takeover: Option<Listener>,
    /// The process that serves until this one does.
    predecessor: Option<Arc<Predecessor>>,
    tls: Arc<Encryption>,
    doors: Arc<Doors>,
    steward: Arc<Steward>,
}

impl Proxy {
    /// Listens on every configured address.
    ///
    /// # Errors
    /// The first file that cannot be used, the first address that cannot be listened on, or
    /// a system without random numbers.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let config = Arc::new(config);
        let tls = Arc::new(Encryption::load(&config)?);
        let doors = Arc::new(Doors::load(&config)?);
        let seed = seed()?;
        let shapes = Shapes::new(config.max_shapes, config.oracle_per_second, seed);
        let shapes = Arc::new(shapes);
        let switches = SwitchKeeper::new(config.switches_file.clone(), Arc::clone(&shapes))?;
        let metrics = Arc::new(Metrics::new(config.workers));
        let logs = Arc::new(Logs::new(&config, Arc::clone(&metrics)));
        let ways_in = (Arc::clone(&tls), Arc::clone(&doors));
        let steward = Steward::new(&config, ways_in, switches, logs)?;
        let (mut predecessor, mut inherited) = (None, Inherited::default());
        if let Some(path) = &config.takeover_socket {
            let met = Predecessor::meet(path).await;
            (predecessor, inherited) = met.map_err(|source| takeover_error(path, source))?;
        }
        let mut given = Given::from_environment().map_err(Error::Given)?;
        let mut ready = (&mut inherited.listen, &mut given);
        let listeners = bind_all(&config.listen, &mut ready, &config).await?;
        let mut ready = (&mut inherited.http, &mut given);
        let http = bind_all(&config.http_listen, &mut ready, &config).await?;
        if predecessor.is_none() {
            given.end().map_err(Error::Given)?;
        }
        let beside = |path: &PathBuf| {
            Listener::beside(path, OWN_USER).map_err(|source| takeover_error(path, source))
        };
        let takeover = config.takeover_socket.as_ref().map(beside).transpose()?;
        Ok(Self {
            shapes,
            seed,
            started: Instant::now(),
            metrics,
            config,
            listeners,
            http,
            takeover,
            predecessor: predecessor.map(Arc::new),
            tls,
            doors,
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
        mut self,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let (drain, draining) = watch::channel(Phase::Serving);
        let (arriving, all_arrived) = mpsc::channel::<()>(1);
        let (parting, all_parted) = mpsc::channel::<()>(1);
        let environment = Arc::new(self.environment(&draining));
        let (workers, threads) = self.start_workers(&environment, parting)?;
        let warm = Arc::clone(&environment.warm);
        self.answer_askers(&environment);
        let mailboxes = threads.iter().map(Thread::mailbox).collect();
        tokio::spawn(following::follow(Arc::clone(&environment)));
        tokio::spawn(stock::keep(Arc::clone(&environment)));
        let console = self.start_console(&environment, mailboxes);
        let mut estate = self.succeed().await?;
        let heirs = Arc::clone(&environment);
        let acceptor = Acceptor::new(workers, environment, Arc::clone(&console), arriving);
        let (open, acceptor) = (acceptor.open(), Arc::new(acceptor));
        let mut accepting = JoinSet::new();
        let phase = draining.clone();
        let desk = self.desk((&console, &*heirs), &threads, phase);
        let has_shared = self
            .listeners
            .iter()
            .chain(&self.http)
            .any(Listener::is_shared);
        let is_given = has_shared && !self.config.so_reuseport;
        let is_fixed = is_given || self.config.takeover_socket.is_some();
        let entrances = &self.steward.entrances;
        let coming = entrances.begin(self.listeners, self.http, is_fixed);
        accepting.spawn(porter::attend(coming, acceptor, desk, draining.clone()));
        let mut stop = pin!(stop);
        let mut ordered = self.steward.ending();
        let ending = tokio::select! {
            () = &mut stop => Ending::Drain,
            ending = next_ending(&mut ordered) => ending,
            heir = succeeded(estate.as_ref(), &drain, &mut accepting) => {
                leave(estate.take(), heir, (heirs, &open)).await;
                Ending::WaitForClients
            }
        };
        // Nobody takes over any more, and who comes now is to be refused by the system at once.
        drop(estate);
        if *drain.borrow() == Phase::Serving {
            // Nobody is listening any more only after all workers are gone, which cannot be.
            let _ = drain.send(Phase::Draining);
        }
        warm.close();
        if ending == Ending::WaitForClients {
            tokio::select! {
                () = all_left(&open) => {}
                () = stop => {}
                _ = ordered.changed() => {}
            }
        }
        let _ = drain.send(Phase::Draining);
        threads.iter().for_each(|thread| thread.put(Order::Drain));
        let config = self.steward.current().get();
        end(threads, &config, (all_arrived, all_parted), async {
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

    /// Takes over from the process before, if there is one. Returns what the next one takes over.
    async fn succeed(&mut self) -> Result<Option<Estate>, Error> {
        let Some((path, mut at)) = self
            .config
            .takeover_socket
            .as_ref()
            .zip(self.takeover.take())
        else {
            return Ok(None);
        };
        let failed = |source| takeover_error(path, source);
        let estate = Estate::claims(&self.listeners, &self.http).map_err(failed)?;
        if let Some(predecessor) = &self.predecessor {
            predecessor.succeed().await.map_err(failed)?;
            let all = self.listeners.iter_mut().chain(&mut self.http);
            all.for_each(Listener::own);
            tracing::info!(pid = predecessor.pid, "taken over from the process before");
        }
        at.move_to(path).map_err(failed)?;
        Ok(Some(estate.at(at)))
    }

    /// Whoever answers HTTP.
    fn desk(
        &self,
        (console, environment): (&Arc<Console>, &Environment),
        threads: &[Thread],
        draining: watch::Receiver<Phase>,
    ) -> Arc<Desk> {
        let mailboxes = threads.iter().map(Thread::mailbox);
        let halts = Arc::clone(&environment.halts);
        let health = Health::new(mailboxes, environment.current.clone(), draining, halts);
        let gallery = Arc::new(Gallery::new(
            Arc::clone(console),
            Arc::clone(&self.metrics),
            self.steward.current(),
            self.started,
        ));
        Arc::new(Desk::new(Arc::clone(console), health, gallery))
    }

    /// Asks servers about users, for those who let clients in.
    fn answer_askers(&self, environment: &Environment) {
        tokio::spawn(ask_for_others(asker::Means {
            ways: Arc::clone(&environment.ways),
            current: environment.current.clone(),
            tls: Arc::clone(&self.tls),
            metrics: Arc::clone(&self.metrics),
            shapes: Arc::clone(&self.shapes),
            doors: Arc::clone(&self.doors),
            draining: environment.draining.clone(),
        }));
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
            started: self.started,
            pools: Pools::new(self.steward.current(), Arc::clone(&warm)),
            attendance: Attendance::default(),
            peers: peers::Peers::new(self.steward.current()),
            workers: Mutex::default(),
            turn: AtomicUsize::default(),
            halts: Arc::default(),
            ways: Arc::new(Ways::new(&self.config.databases)),
            current: self.steward.current(),
            registry: Arc::new(Registry::default()),
            predecessor: self.predecessor.clone(),
            metrics: Arc::clone(&self.metrics),
            warm,
            draining: draining.clone(),
            logs: self.steward.logs(),
            tls: Arc::clone(&self.tls),
            doors: Arc::clone(&self.doors),
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

/// Permission bits of the socket by which processes of one user meet.
const OWN_USER: u32 = 0o600;

fn takeover_error(path: &Path, source: io::Error) -> Error {
    let path = path.to_path_buf();
    Error::Takeover { path, source }
}

/// Reads the files that the configuration names, as the proxy would.
///
/// # Errors
/// The first that cannot be used.
pub fn check(config: &Config) -> Result<(), Error> {
    let tls = Arc::new(Encryption::load(config)?);
    let doors = Arc::new(Doors::load(config)?);
    let shapes = Arc::new(Shapes::new(config.max_shapes, config.oracle_per_second, 0));
    let switches = SwitchKeeper::new(config.switches_file.clone(), shapes)?;
    let logs = Logs::new(config, Arc::new(Metrics::new(0)));
    let config = Arc::new(config.clone());
    Steward::new(&config, (tls, doors), switches, Arc::new(logs))?;
    Ok(())
}

/// What the hashes of shapes are keyed by.
fn seed() -> Result<u64, Error> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| Error::Worker(error.into()))?;
    Ok(u64::from_ne_bytes(seed))
}
