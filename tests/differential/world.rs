//! One server, and pairs of databases that hold the same down to the object identifiers.

use super::client::{self, Client};
use super::events::RESTORE;
use pgautoprep::config::Config;
use pgautoprep::lab::postgres::{Options, Scratch, Wanted};
use pgautoprep::metrics::{Metrics, Summary};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// What both databases are made of.
const SCHEMA: &str = include_str!("schema.sql");

/// The server, started by the first test that needs it.
pub(crate) fn server() -> &'static Scratch {
    static SERVER: OnceLock<Scratch> = OnceLock::new();
    SERVER.get_or_init(|| {
        let mut options = Options::default();
        if let Ok(major) = std::env::var("PGAUTOPREP_RANDOM_MAJOR") {
            options.wanted = Wanted::Major(major.parse().unwrap());
        }
        let settings = [
            ("autovacuum", "off"),
            ("max_connections", "100"),
            // Their rows come in the order of chance.
            ("max_parallel_workers_per_gather", "0"),
        ];
        for (name, value) in settings {
            options.settings.push((name.to_owned(), value.to_owned()));
        }
        let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
        let mut admin = Client::login(&server.host_port(), "postgres");
        admin.run("CREATE DATABASE pristine");
        Client::login(&server.host_port(), "pristine").run(SCHEMA);
        let mut filled = Client::login(&server.host_port(), "pristine");
        filled.run("VACUUM ANALYZE");
        let last = filled.run("SELECT max(oid::int8) FROM pg_class");
        client::alike_up_to(last[1].columns()[0].as_ref().unwrap().parse().unwrap());
        server
    })
}

/// Two databases with the same content: one is used directly, the other through a proxy.
pub(crate) struct Pair {
    pub(crate) address: String,
    pub(crate) names: [String; 2],
    admins: [Client; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        // A template must have no users while it is copied.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let address = server().host_port();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let names = ["direct", "proxied"].map(|kind| format!("{kind}{number}"));
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut admin = Client::login(&address, "postgres");
        for name in &names {
            // The session that filled the template may take a moment to end.
            while admin
                .query(&format!("CREATE DATABASE {name} TEMPLATE pristine"))
                .iter()
                .any(|frame| frame.field(b'C').as_deref() == Some("55006"))
            {}
        }
        let admins = [0, 1].map(|index| Client::login(&address, &names[index]));
        Self {
            address,
            names,
            admins,
        }
    }

    /// Makes planning seem so dear to the server that it plans nearly everything once, in sessions
    /// that begin from now on.
    pub(crate) fn plan_once(&mut self) {
        for (admin, name) in self.admins.iter_mut().zip(&self.names) {
            admin.run(&format!("ALTER DATABASE {name} SET cpu_operator_cost = 1"));
        }
    }

    /// Where sessions that begin from now on look for names.
    pub(crate) fn search(&mut self, path: &str) {
        for (admin, name) in self.admins.iter_mut().zip(&self.names) {
            admin.run(&format!("ALTER DATABASE {name} SET search_path = {path}"));
        }
    }

    /// The same for what they define, too.
    pub(crate) fn restore(&mut self) {
        for admin in &mut self.admins {
            for text in RESTORE {
                admin.run(text);
            }
        }
        self.reset();
    }

    /// Makes what both hold what it was in the beginning.
    pub(crate) fn reset(&mut self) {
        for admin in &mut self.admins {
            admin.run("SELECT pristine.reset()");
        }
    }
}

/// Roles are those of the whole server: what changes them makes every proxy look again, which the
/// others would have to wait for. Whoever changes them is alone.
static ROLES: RwLock<()> = RwLock::new(());

/// Nobody changes roles meanwhile.
pub(crate) fn with_roles() -> RwLockReadGuard<'static, ()> {
    ROLES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Roles may be changed meanwhile.
pub(crate) fn changing_roles() -> RwLockWriteGuard<'static, ()> {
    ROLES.write().unwrap_or_else(PoisonError::into_inner)
}

/// A proxy in this process; it ends when dropped.
pub(crate) struct Proxy {
    pub(crate) address: String,
    /// Its setting of that name.
    pub(crate) plans: &'static str,
    metrics: Arc<Metrics>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(upstream: &str, plans: &'static str, threshold: usize) -> Self {
        Self::sharing(upstream, plans, threshold, None)
    }

    /// One that shares reads like this, unless `PGAUTOPREP_SHARED_READS` says otherwise.
    pub(crate) fn sharing(
        upstream: &str,
        plans: &'static str,
        threshold: usize,
        shared: Option<&str>,
    ) -> Self {
        let threshold = threshold.to_string();
        let wanted = std::env::var("PGAUTOPREP_SHARED_READS").ok();
        let shared = wanted.or_else(|| shared.map(str::to_owned));
        let shared = shared
            .as_ref()
            .map(|value| ("shared_reads", value.as_str()));
        let settings = [
            ("listen", "127.0.0.1:0"),
            ("upstream", upstream),
            ("workers", "1"),
            ("plans", plans),
            ("prepare_threshold", &threshold),
            ("oracle_per_second", "1000000"),
            ("min_array_rows", "4"),
            ("drain_timeout_s", "0"),
        ];
        let pooled = std::env::var("PGAUTOPREP_POOL_MODE").ok();
        let pooled = pooled.as_ref().map(|value| ("pool_mode", value.as_str()));
        let chosen = shared.into_iter().chain(pooled);
        let settings: Vec<(&str, &str)> = settings.into_iter().chain(chosen).collect();
        let config = Config::from_pairs(&settings).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let proxy = pgautoprep::net::Proxy::bind(config).await.unwrap();
                let address = proxy.addresses().remove(0);
                sender.send((address, proxy.metrics())).unwrap();
                proxy.serve(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let (address, metrics) = receiver.recv().unwrap();
        Self {
            address,
            plans,
            metrics,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        self.metrics.summary()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.take();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            matches!(ended, Some(Ok(()))) || std::thread::panicking(),
            "the proxy panicked"
        );
    }
}
