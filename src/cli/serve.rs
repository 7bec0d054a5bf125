//! `serve`: the proxy itself, until it is told to stop.

use std::io::Write;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use super::{SettingFlags, logging};
use crate::config::Config;
use crate::metrics::Metrics;
use crate::net::Proxy;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    #[command(flatten)]
    settings: SettingFlags,
}

impl Serve {
    /// Serves until SIGTERM or SIGINT; SIGUSR1 prints a summary of the counters to standard error.
    ///
    /// # Errors
    /// The configuration cannot be used, or an address cannot be listened on.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let config = Config::load(&self.settings.sources())?;
        logging::start(&config)?;
        raise_file_limit(config.max_clients);
        // The acceptor's runtime; each worker has its own.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(serve(config))
    }
}

/// Open files beside those of the clients: listeners, runtimes, standard streams, cancel requests.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit of open files, which is often 1,024 for the sake of programs that call
/// `select`, towards the two per client that are needed.
fn raise_file_limit(max_clients: usize) {
    let needed = 2 * max_clients as u64 + OTHER_FILES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let allowed = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    limit.current = Some(allowed);
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    } else if allowed < needed {
        let clients = allowed.saturating_sub(OTHER_FILES) / 2;
        tracing::warn!(
            allowed,
            clients,
            "the limit of open files is below max_clients"
        );
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let upstream = config.upstream.clone();
    let mode = config.mode;
    let proxy = Proxy::bind(config).await?;
    for address in proxy.addresses() {
        // On standard output, so that whoever has started us learns the port the system chose.
        super::print(&format!("listening on {address}\n"))?;
        tracing::info!(%address, %upstream, ?mode, "listening");
    }
    let metrics = proxy.metrics();
    tokio::spawn(print_on_signal(Arc::clone(&metrics)));
    let stop = async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "stopping");
    };
    proxy.serve(stop).await?;
    print_summary(&metrics);
    Ok(())
}

async fn print_on_signal(metrics: Arc<Metrics>) {
    match signal(SignalKind::user_defined1()) {
        Ok(mut asked) => {
            while asked.recv().await.is_some() {
                print_summary(&metrics);
            }
        }
        Err(error) => tracing::warn!(%error, "SIGUSR1 cannot be waited for"),
    }
}

fn print_summary(metrics: &Metrics) {
    // Nobody may be reading standard error any more.
    let _ = write!(std::io::stderr().lock(), "{}", metrics.summary());
}
