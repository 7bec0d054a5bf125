//! The proxy as a client of the server: it logs in with what it has been shown, or for itself.

use super::Door;
use crate::auth::{Credential, LoginStep, ServerLogin};
use crate::error::ConnectionError;
use crate::net::stream::{Stream, read, write_all};
use crate::net::tls::Tunnel;
use crate::wire::frame::{self, HEADER};
use crate::wire::{self, backend};

/// The longest message that a server may send before it has accepted the login, and the most bytes
/// of notices before that, which are kept for the client.
const MAX_MESSAGE: usize = 256 * 1024;

/// Bytes of a server's that are read at once.
const PIECE: usize = 4 * 1024;

/// A server connection whose messages are read one by one.
#[derive(Debug)]
pub(in crate::net) struct Conversation {
    stream: Stream,
    /// What has come and was not taken.
    pending: Vec<u8>,
}

impl Conversation {
    const fn new(stream: Stream) -> Self {
        Self::resumed(stream, Vec::new())
    }

    /// One of which this much has come already.
    pub(in crate::net) const fn resumed(stream: Stream, pending: Vec<u8>) -> Self {
        Self { stream, pending }
    }

    /// Its connection, and what has come by it, which is `said` and what was not taken.
    pub(in crate::net) fn ended(mut self, mut said: Vec<u8>) -> (Stream, Vec<u8>) {
        said.append(&mut self.pending);
        (self.stream, said)
    }

    pub(in crate::net) async fn say(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let said = write_all(&mut self.stream, bytes).await;
        said.map_err(ConnectionError::UpstreamIo)
    }

    /// The type of the next message, and the message with its header.
    pub(in crate::net) async fn next(&mut self) -> Result<(u8, Vec<u8>), ConnectionError> {
        loop {
            let header = frame::header(&self.pending);
            if let Some(header) = header.map_err(ConnectionError::UpstreamProtocol)? {
                if header.size > MAX_MESSAGE {
                    return Err(unexpected(header.tag));
                }
                if self.pending.len() >= header.size {
                    return Ok((header.tag, self.pending.drain(..header.size).collect()));
                }
            }
            let mut bytes = [0; PIECE];
            let count = read(&mut self.stream, &mut bytes).await;
            let count = count.map_err(ConnectionError::UpstreamIo)?;
            if count == 0 {
                let end = std::io::ErrorKind::UnexpectedEof;
                return Err(ConnectionError::UpstreamIo(end.into()));
            }
            self.pending
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
        }
    }

    /// Logs in. From here on what comes is what the server says once it has accepted, first of
    /// all AuthenticationOk.
    async fn log_in(
        &mut self,
        packet: &[u8],
        credential: &Credential,
        door: &Door,
    ) -> Result<(), ConnectionError> {
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|error| ConnectionError::System(error.into()))?;
        let is_private = self.stream.is_private();
        let hash = self.stream.tls().and_then(Tunnel::binding);
        let mut login = ServerLogin::new(credential.clone(), nonce, hash.as_deref(), is_private);
        self.say(packet).await?;
        // What is told to whoever logs in, besides.
        let mut told = Vec::new();
        loop {
            let (tag, message) = self.next().await?;
            match tag {
                backend::AUTHENTICATION => {}
                backend::ERROR => return Err(ConnectionError::ServerRefused(message)),
                // A server that does not come to an end has no more to say than one message.
                backend::NOTICE if told.len() + message.len() > MAX_MESSAGE => {
                    return Err(unexpected(tag));
                }
                backend::NOTICE => {
                    told.extend_from_slice(&message);
                    continue;
                }
                other => return Err(unexpected(other)),
            }
            let costly = login.is_costly(message.get(HEADER..).unwrap_or_default());
            let body = message.get(HEADER..).unwrap_or_default().to_vec();
            let take = move || {
                let step = login.take(&body);
                (login, step)
            };
            let step;
            (login, step) = door.hash(costly, take).await?;
            match step.map_err(ConnectionError::UpstreamLogin)? {
                LoginStep::Say(bytes) => self.say(&bytes).await?,
                LoginStep::Accepted => {
                    told.extend_from_slice(&message);
                    told.append(&mut self.pending);
                    self.pending = told;
                    return Ok(());
                }
            }
        }
    }
}

/// Logs in to the server with this startup packet. Returns what the server says behind, first of
/// all AuthenticationOk.
pub(in crate::net) async fn log_in(
    stream: Stream,
    packet: &[u8],
    credential: &Credential,
    door: &Door,
) -> Result<(Stream, Vec<u8>), ConnectionError> {
    let mut conversation = Conversation::new(stream);
    conversation.log_in(packet, credential, door).await?;
    Ok((conversation.stream, conversation.pending))
}

pub(in crate::net) fn unexpected(tag: u8) -> ConnectionError {
    let tag = char::from(tag);
    ConnectionError::UpstreamProtocol(wire::Error::Unexpected { tag })
}
