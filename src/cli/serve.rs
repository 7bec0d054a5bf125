//! `serve`: the proxy itself, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::SettingFlags;
use super::logging::{self, Output};
use super::notify::Manager;
use super::summary::{Summaries, line};
use crate::config::{Config, Sources};
use crate::metrics::Metrics;
use crate::net::{Means, Proxy, Steward, raise_file_limit};

/// What a service manager shows.
const SERVING: &str = "serving";

/// How often it is told how many clients there are, if that has changed.
const STATUS_PERIOD: Duration = Duration::from_secs(5);

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,
}

impl Serve {
    /// Serves until SIGTERM or SIGINT, the second of which cuts off who is still busy; SIGUSR1
    /// prints a summary of the counters to standard error; SIGHUP has the configuration, the files
    /// of TLS and that of users read again; SIGUSR2 changes nothing.
    ///
    /// # Errors
    /// The configuration cannot be used, or an address cannot be listened on.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let sources = self.settings.sources();
        let mut config = Config::load(&sources)?;
        let output = logging::start(&config)?;
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a defect")));
        make_room(&mut config);
        // The acceptor's runtime; each worker has its own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(serve(config, sources, &output));
        output.finish();
        outcome
    }
}

/// Has room made for all clients; where that is not allowed, no more are admitted than there is
/// room for: the others are told so.
fn make_room(config: &mut Config) {
    if let Err(most) = raise_file_limit(config) {
        let wanted = std::mem::replace(&mut config.max_clients, most);
        tracing::warn!(
            wanted,
            max_clients = most,
            "the limit of open files lowers max_clients"
        );
    }
}

async fn serve(config: Config, sources: Sources, output: &Output) -> anyhow::Result<()> {
    let stops = [SignalKind::terminate(), SignalKind::interrupt()];
    let [terminate, interrupt] = stops.map(signal);
    let (stop, stopped) = oneshot::channel();
    let (hurry, hurried) = oneshot::channel();
    let manager = Manager::from_environment();
    let stops = [terminate?, interrupt?];
    tokio::spawn(stop_on_signal(stops, stop, hurry, manager.clone()));
    let others = [
        SignalKind::user_defined1(),
        SignalKind::hangup(),
        SignalKind::user_defined2(),
    ];
    let [summary, hangup, ignored] = others.map(signal);
    let upstream = config.shown_servers();
    let mode = config.mode;
    let warnings = config.obstacles();
    let proxy = Proxy::bind(config).await?;
    for sentence in warnings.into_iter().flatten() {
        tracing::warn!("{sentence}");
    }
    for address in proxy.addresses() {
        // On standard output, so that whoever has started us learns the port the system chose.
        let told = super::print(&format!("listening on {address}\n"));
        if let Err(error) = told {
            // A full disk, say: who wants to know reads the next line.
            tracing::warn!(%error, "standard output cannot be written to");
        }
        tracing::info!(%address, %upstream, ?mode, "listening");
    }
    for address in proxy.http_addresses() {
        tracing::info!(%address, "answering HTTP");
    }
    let set_log = output.clone();
    let steward = proxy.steward();
    steward.provide(Means {
        sources,
        set_log: Box::new(move |config| set_log.follow(config)),
    });
    let summaries = Arc::new(Summaries::of(&proxy));
    let others = [summary?, hangup?, ignored?];
    let told = (output.clone(), manager.clone());
    let telling = tell_of_clients(manager.clone(), proxy.metrics());
    let (ending, teller) = (Arc::clone(&steward), manager.clone());
    tokio::spawn(async move {
        ending.told_to_end().await;
        teller.stopping();
    });
    let signals = answer_signals(others, Arc::clone(&summaries), steward, told);
    tokio::spawn(signals);
    tokio::spawn(telling);
    // Who connects from now on is served, if not at once.
    manager.ready(SERVING);
    // Neither sender is dropped before it is used: the signals never end.
    let stop = async { drop(stopped.await) };
    let hurry = async { drop(hurried.await) };
    proxy.serve_until(stop, hurry).await?;
    manager.stopping();
    tell(output, &summaries);
    Ok(())
}

/// Tells a service manager how many clients there are, whenever that has changed.
async fn tell_of_clients(manager: Manager, metrics: Arc<Metrics>) {
    if !manager.is_there() {
        return;
    }
    let mut told = 0;
    loop {
        tokio::time::sleep(STATUS_PERIOD).await;
        let clients = metrics.summary().connections_open();
        if std::mem::replace(&mut told, clients) != clients {
            manager.clients(clients);
        }
    }
}

/// Prints what was done since the last time.
fn tell(output: &Output, summaries: &Summaries) {
    let text = summaries.next();
    let text = if output.is_json() { line(&text) } else { text };
    output.say(text.as_bytes());
}

/// Sends on that the proxy is to stop, and that it is to do so at once.
async fn stop_on_signal(
    [mut terminate, mut interrupt]: [Signal; 2],
    stop: oneshot::Sender<()>,
    hurry: oneshot::Sender<()>,
    manager: Manager,
) {
    for (sender, meaning) in [(stop, "stopping"), (hurry, "stopping at once")] {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "{meaning}");
        manager.stopping();
        // Once the proxy has ended it does not matter.
        let _ = sender.send(());
    }
}

/// Does what the signals ask for that do not end the program.
async fn answer_signals(
    [mut summary, mut hangup, mut ignored]: [Signal; 3],
    summaries: Arc<Summaries>,
    steward: Arc<Steward>,
    (output, manager): (Output, Manager),
) {
    loop {
        tokio::select! {
            _ = summary.recv() => tell(&output, &summaries),
            // Also sent by those who have moved a log file away, and by a terminal that closes.
            _ = hangup.recv() => {
                manager.reloading();
                manager.ready(reload(&steward));
            }
            _ = ignored.recv() => tracing::info!("SIGUSR2 means nothing"),
        }
    }
}

/// Reads again what may change while the proxy runs: some settings, keys and certificates, which
/// expire, and who may come in. Returns what a service manager is to show.
fn reload(steward: &Steward) -> &'static str {
    match steward.reload() {
        Ok(fixed) => {
            tracing::info!("SIGHUP: settings, the files of TLS and users have been read again");
            if !fixed.is_empty() {
                let settings = fixed.join(", ");
                tracing::warn!(settings, "only a restart changes these");
            }
            SERVING
        }
        Err(error) => {
            tracing::error!(%error, "SIGHUP: what was read before stays in force");
            "serving; what was to be read again cannot be used, the log says why"
        }
    }
}
