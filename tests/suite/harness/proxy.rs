//! The proxy under test: in this process, where its counters can be read, or as the real program,
//! where it can be sent signals and its memory measured.

use super::client::PATIENCE;
use pgautoprep::config::{Config, SETTINGS};
use pgautoprep::metrics::{Counter, Metrics, Summary};
use pgautoprep::statement::journal::Journal;
use rustix::process::{Pid, Signal, kill_process};
use settings::settings;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

#[path = "settings.rs"]
mod settings;

/// The settings of a proxy; `PGAUTOPREP_SHARED_READS` and `PGAUTOPREP_POOL_MODE` are those of these
/// names, unless the test chooses them.
fn chosen<'a>(upstream: &'a str, changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    static SHARED: OnceLock<Option<String>> = OnceLock::new();
    static POOLED: OnceLock<Option<String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| std::env::var("PGAUTOPREP_SHARED_READS").ok());
    let pooled = POOLED.get_or_init(|| std::env::var("PGAUTOPREP_POOL_MODE").ok());
    let mut all = settings(upstream, changes);
    let is_chosen = |all: &[(&str, &str)], name| all.iter().any(|(known, _)| *known == name);
    if is_real(upstream) && !is_chosen(changes, "shared_reads") {
        all.retain(|(name, _)| *name != "shared_reads");
        if let Some(shared) = shared {
            all.push(("shared_reads", shared));
            if shared == "on" {
                watches_once(&mut all);
            }
        }
    }
    let is_other = |(name, value): &(&str, &str)| {
        matches!(
            (*name, *value),
            ("mode" | "pool_mode", _) | ("warm_connections", "off")
        )
    };
    if let Some(pooled) = pooled
        && is_real(upstream)
        && !all.iter().any(is_other)
    {
        watches_once(&mut all);
        all.push(("pool_mode", pooled));
        if !is_chosen(&all, "default_pool_size") {
            all.push(("default_pool_size", POOL));
        }
    }
    all
}

/// Whether this server is no test's own: one that a test plays would have to expect what is asked
/// for these settings.
fn is_real(upstream: &str) -> bool {
    REAL.get().is_some_and(|real| real == upstream)
}

/// Has the catalog looked at once, and again when nobody tests any longer. Without that nobody
/// shares anything.
fn watches_once(all: &mut [(&str, &str)]) {
    for (name, value) in all {
        if *name == "catalog_watch_ms" && *value == "0" {
            *value = "3600000";
        }
    }
}

/// The address of the server that all tests share which do not play one.
pub(crate) static REAL: OnceLock<String> = OnceLock::new();

/// The size of a pool where the test does not say: so small that clients have to leave their homes.
const POOL: &str = "20";

/// A proxy in this process; it ends when dropped.
pub(crate) struct Proxy {
    addresses: Vec<String>,
    metrics: Arc<Metrics>,
    journal: Arc<Journal>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy for the server at `upstream`.
    pub(crate) fn start(upstream: &str) -> Self {
        Self::with(upstream, &[])
    }

    /// Starts a proxy with some settings changed.
    pub(crate) fn with(upstream: &str, changes: &[(&str, &str)]) -> Self {
        Self::configured(&chosen(upstream, changes))
    }

    /// Starts a proxy with some settings changed, without a server but those of these tables.
    pub(crate) fn with_tables(tables: &str, changes: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (key, value) in chosen("", changes) {
            let setting = SETTINGS.iter().find(|setting| setting.key == key).unwrap();
            if key != "upstream" {
                writeln!(text, "{key} = {}", setting.toml(&[value.to_owned()])).unwrap();
            }
        }
        Self::of(Config::from_text(&(text + tables)).unwrap())
    }

    /// Starts a proxy with these settings and otherwise the defaults.
    pub(crate) fn configured(settings: &[(&str, &str)]) -> Self {
        Self::of(Config::from_pairs(settings).unwrap())
    }

    fn of(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let proxy = pgautoprep::net::Proxy::bind(config).await.unwrap();
                let own = (proxy.addresses(), proxy.metrics(), proxy.journal());
                sender.send(own).unwrap();
                proxy.serve(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let (addresses, metrics, journal) = receiver.recv().unwrap();
        Self {
            addresses,
            metrics,
            journal,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// Its counters.
    pub(crate) fn summary(&self) -> Summary {
        self.metrics.summary()
    }

    /// What has changed in the catalogs lately.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Waits until no more than `left` clients are connected.
    pub(crate) fn await_connections(&self, left: u64) {
        let started = Instant::now();
        while self.summary().connections_open() > left {
            let summary = self.summary();
            assert!(started.elapsed() < PATIENCE, "clients stay\n{summary}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Queries run as prepared statements so far.
    pub(crate) fn converted(&self) -> u64 {
        self.summary().count(Counter::Converted)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.take();
        let ended = self.thread.take().unwrap().join();
        assert!(
            ended.is_ok() || std::thread::panicking(),
            "the proxy panicked"
        );
    }
}

/// The program `pgautoprep serve`; it is killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
}

impl Process {
    /// Starts the program for the server at `upstream`.
    pub(crate) fn start(upstream: &str, changes: &[(&str, &str)]) -> Self {
        // Few open files, as services often begin with: the program must see to that itself.
        Self::start_under("ulimit -S -n 128", upstream, changes)
    }

    /// Starts the program after this command of the shell.
    pub(crate) fn start_under(shell: &str, upstream: &str, changes: &[(&str, &str)]) -> Self {
        Self::start_as(shell, &chosen(upstream, changes))
    }

    /// Starts the program with these settings and no others.
    pub(crate) fn start_as(shell: &str, settings: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        let script = format!("{shell}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_pgautoprep")]);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_string_lossy().starts_with("PGAUTOPREP_")) {
            command.env_remove(name);
        }
        command.arg("serve");
        for (name, value) in settings {
            command.arg(format!("--{}={value}", name.replace('_', "-")));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let address = address.unwrap_or_else(|| panic!("the proxy did not start: {line}"));
        Self { child, address }
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// What the program prints from now on.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }

    /// The most memory it has had so far, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    /// The memory it has now, the program itself not counted, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("RssAnon:")
    }

    /// The CPU time that it has used so far, in ticks of the system's clock, of which a second has
    /// a hundred.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may have anything in it: `utime` and `stime` of `proc(5)`.
        let (_, rest) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        [11, 12]
            .map(|at| fields[at].parse::<u64>().unwrap())
            .iter()
            .sum()
    }

    /// How many files it may have open.
    pub(crate) fn file_limit(&self) -> u64 {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap();
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"));
        let soft = line.and_then(|line| line.split_whitespace().next());
        soft.and_then(|soft| soft.parse().ok()).unwrap()
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap()
    }

    /// Waits for the program to end; returns its status, the time it took, and what it printed.
    pub(crate) fn ended(&mut self) -> (ExitStatus, Duration, String) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "the proxy does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        (status, started.elapsed(), text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
