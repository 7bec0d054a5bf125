//! How many files may be open, for as many clients as there may be.

use super::warm::Warm;
use crate::config::Config;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Clients that may wait for their refusal at once.
pub(super) const REFUSALS: usize = 16;

/// Descriptors kept for when there are no others.
pub(super) const SPARE: usize = 2;

/// Clients at the console at once.
pub(super) const GUESTS: usize = 64;

/// Connections to the ports for HTTP at once.
pub(super) const HTTP_CONNECTIONS: usize = 64;

/// Descriptors beside those of clients, workers and listeners: standard streams, the runtime's, and
/// those that looking up a name takes for a moment.
const FEW: usize = 16;

/// Descriptors of a worker: its event loop and what wakes it.
const WORKER: usize = 2;

/// Open files that `config` asks for beside the two of each client.
fn other_files(config: &Config) -> u64 {
    let warm = Warm::new(config).bound();
    let http = match config.http_listen.len() {
        0 => 0,
        ports => ports + HTTP_CONNECTIONS,
    };
    // The next process is given others for the same sockets.
    let takeover = match config.takeover_socket {
        Some(_) => config.listen.len() + config.http_listen.len() + 3,
        None => 0,
    };
    let ports = config.listen.len() + http + takeover;
    let guests = match config.console.is_empty() {
        true => 0,
        false => GUESTS,
    };
    let files = FEW + SPARE + REFUSALS + WORKER * config.workers + ports + guests + warm;
    files as u64
}

/// Raises the soft limit of open files, which is often 1,024 for the sake of programs that call
/// `select`, towards the two per client that are needed.
///
/// # Errors
/// That is not allowed, and there are files for so many clients only.
pub fn raise_file_limit(config: &Config) -> Result<(), usize> {
    let others = other_files(config);
    let needed = 2 * config.max_clients as u64 + others;
    let mut limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else {
        return Ok(());
    };
    let allowed = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    limit.current = Some(allowed);
    let mut files = allowed;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
        files = current;
    }
    if files >= needed {
        return Ok(());
    }
    let clients = files.saturating_sub(others) / 2;
    let wanted = config.max_clients;
    Err(usize::try_from(clients).unwrap_or(wanted).clamp(1, wanted))
}
