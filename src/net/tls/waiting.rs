//! A connection of the program's own to a server, on which a thread waits for each answer: it is
//! encrypted as the settings say, like those that the proxy opens.

use super::clients::PROTOCOL;
use super::servers::ServerTerms;
use crate::config::{Address, Config};
use crate::wire::startup::ssl_request;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// What a server takes and says.
pub trait Conversation: Read + Write + Send {}
impl<T: Read + Write + Send> Conversation for T {}

/// Encrypts a connection to the server at this address, if that is wanted and can be.
///
/// # Errors
/// A file cannot be used, the server knows no TLS and has to, or it is not who it should be.
pub fn encrypt(
    config: &Config,
    address: &Address,
    mut stream: TcpStream,
) -> io::Result<Box<dyn Conversation>> {
    let side = ServerTerms::read(config).map_err(io::Error::other)?;
    let Some(connection) = side.connection(address) else {
        return Ok(Box::new(stream));
    };
    let connection: ClientConnection = connection.map_err(io::Error::other)?;
    if !side.begins_at_once() {
        let mut request = Vec::new();
        ssl_request(&mut request);
        stream.write_all(&request)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        match answer {
            [b'S'] => {}
            [b'N'] if side.is_optional() => return Ok(Box::new(stream)),
            [b'N'] => return Err(io::Error::other("the server knows no TLS")),
            _ => {
                return Err(io::Error::other(
                    "the server does not answer as one of PostgreSQL's",
                ));
            }
        }
    }
    let mut encrypted = StreamOwned::new(connection, stream);
    // What is wrong with a certificate is told before anything else is said.
    while encrypted.conn.is_handshaking() {
        encrypted.conn.complete_io(&mut encrypted.sock)?;
    }
    // As libpq does: only a server that has named the protocol has understood.
    if side.begins_at_once() && encrypted.conn.alpn_protocol() != Some(PROTOCOL) {
        return Err(io::Error::other("the server has named no protocol in ALPN"));
    }
    Ok(Box::new(encrypted))
}
