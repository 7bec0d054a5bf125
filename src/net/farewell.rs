//! The ends of connections: counted, logged, and said if anybody listens.

use super::stream::{Handover, Stream, read, write_all};
use super::tls::Tunnel;
use crate::error::{ConnectionError, Fault};
use crate::metrics::{Counter, Counters};
use std::future::poll_fn;
use std::time::Duration;

/// How long a last word to a client that does not read may take.
pub(super) const LAST_WORD: Duration = Duration::from_secs(1);

/// How long an answer of a server's may take that nobody needs any more.
const HEARING_OUT: Duration = Duration::from_secs(10);

/// The target of the lines about clients that come and go, which somebody has asked for.
pub const CONNECTIONS: &str = "pgautoprep::connections";

/// Counts the end of a connection, and says in the log how it ended.
pub(super) fn count_end(number: u64, counters: &Counters, outcome: &Result<(), ConnectionError>) {
    counters.add(Counter::ConnectionsClosed, 1);
    let Err(error) = outcome else {
        tracing::debug!(client = number, "connection closed");
        return;
    };
    let fault = error.fault();
    let counter = match fault {
        Fault::Client => Counter::ErrorsClient,
        Fault::Upstream => Counter::ErrorsUpstream,
        Fault::Operator => Counter::ErrorsOperator,
        Fault::Proxy => Counter::ErrorsProxy,
    };
    counters.add(counter, 1);
    if let Some(why) = error.refused() {
        counters.refused(why);
    }
    let fault = fault.label();
    if error.is_trouble() {
        tracing::warn!(client = number, %error, fault, "a client was ended");
    } else {
        tracing::debug!(client = number, %error, fault, "connection ended");
    }
}

/// Tells a client that a worker has ended why, behind what it has not been sent yet.
pub(super) async fn dismiss(client: Handover, unsent: Vec<u8>, error: ConnectionError) {
    match Stream::adopt(client) {
        Ok(mut client) => last_word(&mut client, unsent, &error).await,
        Err(error) => tracing::debug!(%error, "a last word could not be said"),
    }
}

/// Tells the client why its connection ends, if it is there to hear it.
pub(super) async fn last_word(client: &mut Stream, mut unsent: Vec<u8>, error: &ConnectionError) {
    if client.tls().is_some_and(Tunnel::is_handshaking) || !error.put_last_word(&mut unsent) {
        return;
    }
    let speak = async {
        write_all(client, &unsent).await?;
        poll_fn(|context| client.poll_shutdown(context)).await
    };
    // Whether it was heard changes nothing.
    let _ = tokio::time::timeout(LAST_WORD, speak).await;
}

/// Ends an encrypted connection as it should be. Who does not listen any more misses nothing.
pub(super) async fn farewell(client: &mut Stream) {
    if client.tls().is_some() {
        let speak = poll_fn(|context| client.poll_shutdown(context));
        let _ = tokio::time::timeout(LAST_WORD, speak).await;
    }
}

/// Says to a server what is `unsent`, and hears its answers out, which nobody needs any more. One
/// that cannot send them writes to its log that the connection was lost, and counts the session as
/// abandoned (`internal_flush` in `pqcomm.c`, `sessions_abandoned`).
pub(super) async fn hear_out(server: Handover, unsent: Vec<u8>) {
    let Ok(mut server) = Stream::adopt(server) else {
        return;
    };
    let hear = async {
        write_all(&mut server, &unsent).await?;
        let mut scratch = [0; 1024];
        while read(&mut server, &mut scratch).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whether it has ended as it should changes nothing.
    let _ = tokio::time::timeout(HEARING_OUT, hear).await;
}
