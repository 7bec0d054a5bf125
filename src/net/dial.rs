//! The way to the server: a connection, encrypted as the settings say.

use super::stream::{Stream, read, write_all};
use super::tls::ServerSide;
use crate::config::Address;
use crate::error::ConnectionError;
use crate::metrics::{Counter, Counters};
use crate::wire::startup::ssl_request;
use std::io;

/// Connects to the server.
///
/// What a server says that has not proven who it is reaches neither client nor log
/// (CVE-2024-10977 of libpq), and nothing that came in the clear is used inside (CVE-2021-23222):
/// exactly one byte is read, and whatever comes behind it has to be TLS.
pub(super) async fn dial(
    address: &Address,
    tls: &ServerSide,
    counters: &Counters,
) -> Result<Stream, ConnectionError> {
    let stream = Stream::connect(address).await;
    let mut stream = stream.map_err(ConnectionError::Unreachable)?;
    let Some(session) = tls.session() else {
        return Ok(stream);
    };
    let failed = |error: io::Error| {
        tracing::warn!(%error, "no TLS with the server");
        ConnectionError::UpstreamTls(error)
    };
    let session = session.map_err(|error| failed(io::Error::other(error)))?;
    let mut request = Vec::new();
    ssl_request(&mut request);
    let mut answer = [0];
    let asked = async {
        write_all(&mut stream, &request).await?;
        read(&mut stream, &mut answer).await
    };
    match (asked.await.map_err(ConnectionError::UpstreamIo)?, answer) {
        (1, [b'S']) => {
            let encrypted = stream.encrypt(session, &mut Vec::new()).await;
            encrypted.map_err(failed)?;
            Ok(stream)
        }
        (1, [b'N']) if tls.is_optional() => {
            counters.add(Counter::TlsRefused, 1);
            Ok(stream)
        }
        (1, [b'N']) => Err(failed(io::Error::other("it knows no TLS"))),
        (0, _) => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        _ => Err(failed(io::Error::other(
            "it does not answer whether it knows TLS",
        ))),
    }
}
