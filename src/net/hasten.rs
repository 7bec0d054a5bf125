//! How a cancel request reaches the server.

use super::dial::dial;
use super::endpoint::Endpoint;
use super::environment::Environment;
use super::stream::{read, write_all};
use crate::error::ConnectionError;
use crate::wire::startup::cancel_request;

/// Asks this server to cancel what this process does. Returns when it has signalled the process, or
/// cannot be told.
pub(super) async fn hasten(
    pid: u32,
    secret: &[u8],
    endpoint: &Endpoint,
    environment: &Environment,
) {
    let mut request = Vec::new();
    cancel_request(&mut request, pid, secret);
    let send = async {
        let counters = environment.metrics.acceptor();
        let dialled = dial(endpoint, &environment.tls.servers, counters);
        let mut upstream = dialled.await?;
        let sent = write_all(&mut upstream, &request).await;
        sent.map_err(ConnectionError::UpstreamIo)?;
        // The server closes when it has signalled; libpq waits for that, and so do we, so that the
        // client's own wait means something.
        let ended = read(&mut upstream, &mut [0; 64]).await;
        ended.map_err(ConnectionError::UpstreamIo)
    };
    let limit = environment.config.connect_timeout;
    match tokio::time::timeout(limit, send).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "cancel request not delivered"),
        Err(_) => tracing::debug!("cancel request not delivered in time"),
    }
}
