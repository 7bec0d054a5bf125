//! The way to the server: a connection, encrypted as the settings say.

use super::endpoint::Endpoint;
use super::stream::{Stream, read, write_all};
use super::tls::{PROTOCOL, ServerSide, Tunnel};
use crate::error::ConnectionError;
use crate::metrics::{Counter, Counters};
use crate::wire::startup::ssl_request;
use std::io;

/// Connects to the server.
///
/// What a server says that has not proven who it is reaches neither client nor log
/// (CVE-2024-10977 of libpq), and nothing that came in the clear is used inside (CVE-2021-23222):
/// exactly one byte is read, and whatever comes behind it has to be TLS. Where TLS is only
/// preferred, a server with which it fails is spoken to in the clear, by a connection of its own,
/// as libpq does.
pub(super) async fn dial(
    endpoint: &Endpoint,
    tls: &ServerSide,
    counters: &Counters,
) -> Result<Stream, ConnectionError> {
    let mut stream = connect(endpoint).await?;
    let tls = tls.terms();
    let Some(tunnel) = tls.tunnel(&endpoint.address) else {
        return Ok(stream);
    };
    let failed = |error: io::Error| {
        tracing::warn!(server = %endpoint.address, %error, "no TLS with the server");
        ConnectionError::UpstreamTls(error)
    };
    let tunnel = tunnel.map_err(|error| failed(io::Error::other(error)))?;
    if !tls.begins_at_once() {
        match ask(&mut stream)
            .await
            .map_err(ConnectionError::UpstreamIo)?
        {
            Some(b'S') => {}
            Some(b'N') if tls.is_optional() => {
                counters.add(Counter::TlsRefused, 1);
                return Ok(stream);
            }
            Some(b'N') => return Err(failed(io::Error::other("it knows no TLS"))),
            Some(_) => {
                return Err(failed(io::Error::other(
                    "it does not say whether it knows TLS",
                )));
            }
            None => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
        }
    }
    let encrypted = stream.encrypt(tunnel, &mut Vec::new()).await;
    if let Err(error) = encrypted {
        let error = failed(error);
        if !tls.is_optional() {
            return Err(error);
        }
        drop(stream);
        counters.add(Counter::TlsRefused, 1);
        return connect(endpoint).await;
    }
    // As libpq does: only a server that has named the protocol has understood.
    if tls.begins_at_once() && stream.tls().and_then(Tunnel::protocol) != Some(PROTOCOL) {
        return Err(failed(io::Error::other("it has named no protocol in ALPN")));
    }
    Ok(stream)
}

/// Connects to the server in the clear.
async fn connect(endpoint: &Endpoint) -> Result<Stream, ConnectionError> {
    let stream = match endpoint.peer {
        Some(peer) => Stream::connect_to(peer).await,
        None => Stream::connect(&endpoint.address).await,
    };
    stream.map_err(ConnectionError::Unreachable)
}

/// Asks the server for TLS: its answer is one byte, unless it hangs up.
async fn ask(stream: &mut Stream) -> io::Result<Option<u8>> {
    let mut request = Vec::new();
    ssl_request(&mut request);
    write_all(stream, &request).await?;
    let mut answer = [0];
    let count = read(stream, &mut answer).await?;
    Ok((count > 0).then_some(answer[0]))
}
