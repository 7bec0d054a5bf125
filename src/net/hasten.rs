//! How a cancel request reaches the server.

use super::dial::dial;
use super::endpoint::Endpoint;
use super::environment::Environment;
use super::stream::{Stream, read, write_all};
use crate::error::ConnectionError;
use crate::wire::startup::cancel_request;

/// Asks this server to cancel what this process does. Returns when it has signalled the process,
/// cannot be told, or does not answer in time.
pub(super) async fn hasten(
    pid: u32,
    secret: &[u8],
    endpoint: &Endpoint,
    environment: &Environment,
) {
    let request = async {
        let mut upstream = reach(endpoint, environment).await?;
        ask(pid, secret, &mut upstream).await
    };
    let limit = environment.config().connect_timeout;
    match tokio::time::timeout(limit, request).await {
        Ok(outcome) => tell(outcome),
        Err(_) => tracing::debug!("cancel request not delivered in time"),
    }
}

/// The same, but never returns while the server may still signal the process: what was sent is
/// waited for however long it takes the server.
pub(super) async fn hasten_at_last(
    pid: u32,
    secret: &[u8],
    endpoint: &Endpoint,
    environment: &Environment,
) {
    let limit = environment.config().connect_timeout;
    match tokio::time::timeout(limit, reach(endpoint, environment)).await {
        Ok(Ok(mut upstream)) => tell(ask(pid, secret, &mut upstream).await),
        Ok(Err(error)) => tell(Err(error)),
        Err(_) => tracing::debug!("no connection for a cancel request in time"),
    }
}

async fn reach(endpoint: &Endpoint, environment: &Environment) -> Result<Stream, ConnectionError> {
    let counters = environment.metrics.acceptor();
    dial(endpoint, &environment.tls.servers, counters).await
}

/// The server closes when it has signalled; libpq waits for that, and so do we, so that the
/// client's own wait means something.
async fn ask(pid: u32, secret: &[u8], upstream: &mut Stream) -> Result<(), ConnectionError> {
    let mut request = Vec::new();
    cancel_request(&mut request, pid, secret);
    let sent = write_all(upstream, &request).await;
    sent.map_err(ConnectionError::UpstreamIo)?;
    let ended = read(upstream, &mut [0; 64]).await;
    ended.map(drop).map_err(ConnectionError::UpstreamIo)
}

fn tell(outcome: Result<(), ConnectionError>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "cancel request not delivered");
    }
}
