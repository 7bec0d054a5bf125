//! One TLS connection without its socket: plaintext on one side, ciphertext on the other.
//!
//! It has the shape of a socket that does not block, so that a worker and the acceptor drive it
//! alike. Invariants, each of which somebody else's proxy has lacked once:
//! - what is decrypted inside, and not taken yet, has no event of its own: [`Tunnel::may_read`]
//!   says that it is there;
//! - plaintext counts as written once it is encrypted, and what is encrypted and not sent is
//!   [`Tunnel::unsent`]; no more is encrypted before that is gone, so it is at most one piece;
//! - all ciphertext takes one way out;
//! - reading makes ciphertext, too (alerts, answers to key updates), which goes out at once;
//! - one call reads its socket at most once, so a peer that sends nothing but records without
//!   content cannot hold a thread.

use super::binding::end_point;
use super::names::names;
use crate::config::CertName;
use rustls::{Connection, ProtocolVersion, SupportedCipherSuite};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::task::{Poll, ready};

/// Ciphertext taken from the socket at once: a whole record. What is decrypted of it, together with
/// what is left of the record before, is at most twice that.
const PIECE_READ: usize = 16 * 1024;

/// Plaintext encrypted at once: two whole records.
const PIECE_WRITTEN: usize = 32 * 1024;

/// The largest buffer for ciphertext that is kept while there is none: what usual answers need.
const KEPT: usize = 1024;

/// Ciphertext after which the library's own buffer has grown: it reads as much at once.
const SMALL: usize = 4096;

/// Nothing to be read yet.
struct Nothing;

impl Read for Nothing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}

/// Where ciphertext comes from and goes to: a socket that does not block.
pub(in crate::net) trait Transport {
    /// Reads what has come; 0 is the end.
    fn receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Writes what there is room for.
    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>>;
}

/// How far the peer's side is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerEnd {
    /// More may come.
    Open,
    /// It has said that no more comes, and whoever reads has not been told.
    Unsaid,
    /// Whoever reads has been told.
    Said,
}

/// One TLS connection.
#[derive(Debug)]
pub(in crate::net) struct Tunnel {
    connection: Connection,
    /// Ciphertext on its way to the peer.
    out: Vec<u8>,
    /// How much of it was sent.
    sent: usize,
    /// Bytes decrypted and not taken.
    decrypted: usize,
    end: PeerEnd,
    /// The library's buffer for what comes has grown.
    has_grown: bool,
    /// Of the certificate that the proxy has shown.
    shown: Option<Arc<[u8]>>,
}

impl Tunnel {
    /// A connection on which nothing was said yet.
    pub(in crate::net) const fn new(connection: Connection) -> Self {
        Self {
            connection,
            out: Vec::new(),
            sent: 0,
            decrypted: 0,
            end: PeerEnd::Open,
            has_grown: false,
            shown: None,
        }
    }

    /// The same to a client that is shown a certificate with this hash.
    pub(super) fn showing(mut self, hash: Option<Arc<[u8]>>) -> Self {
        self.shown = hash;
        self
    }

    /// What a login can be bound to: the hash of the certificate that was shown by whoever is the
    /// server of this connection.
    pub(in crate::net) fn binding(&self) -> Option<Vec<u8>> {
        match &self.connection {
            Connection::Server(_) => self.shown.as_deref().map(<[u8]>::to_vec),
            Connection::Client(_) => end_point(self.connection.peer_certificates()?.first()?),
        }
    }

    /// The names of this kind in the certificate that the client of this connection has shown,
    /// which is verified if clients have to show one.
    pub(in crate::net) fn client_names(&self, kind: CertName) -> Vec<&[u8]> {
        let shown = match &self.connection {
            Connection::Server(_) => self.connection.peer_certificates(),
            Connection::Client(_) => None,
        };
        let certificate = shown.and_then(<[_]>::first);
        certificate.map_or_else(Vec::new, |it| names(it, kind))
    }

    /// Goes on with the handshake until it is over and all of ours is sent. `early` is what was
    /// read of it already.
    pub(in crate::net) fn handshake(
        &mut self,
        transport: &mut impl Transport,
        early: &mut Vec<u8>,
    ) -> Poll<io::Result<()>> {
        let mut fed = self.feed(early, &mut []);
        early.clear();
        loop {
            self.collect()?;
            let flushed = self.flush(transport);
            // The alert that says what is wrong has been tried to send.
            fed?;
            ready!(flushed)?;
            if !self.connection.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            let mut raw = [0; 1024];
            let count = ready!(transport.receive(&mut raw))?;
            if count == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
            fed = self.feed(raw.get(..count).unwrap_or_default(), &mut []);
        }
    }

    /// Whether nothing can be said yet.
    pub(in crate::net) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The protocol that both sides have named for what is inside.
    pub(in crate::net) fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Version and cipher, by the names that everybody calls them.
    pub(in crate::net) fn describe(&self) -> String {
        let version = match self.connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLS",
        };
        let suite = self.connection.negotiated_cipher_suite();
        let suite = suite.map(|suite: SupportedCipherSuite| suite.suite());
        // The library calls those of 1.3 TLS13_…, and all others as they are called.
        match suite.and_then(|suite| suite.as_str()) {
            Some(name) => match name.strip_prefix("TLS13_") {
                Some(name) => format!("{version} TLS_{name}"),
                None => format!("{version} {name}"),
            },
            None => version.to_owned(),
        }
    }

    /// Reads plaintext, and the socket at most once. `Ready(Some(0))` is the end, `Ready(None)`
    /// that what has come makes no plaintext yet. Part of `bytes` is used for ciphertext.
    pub(in crate::net) fn read(
        &mut self,
        transport: &mut impl Transport,
        bytes: &mut [u8],
    ) -> Poll<io::Result<Option<usize>>> {
        if self.decrypted > 0 {
            return Poll::Ready(self.take(bytes).map(Some));
        }
        if self.end != PeerEnd::Open {
            self.end = PeerEnd::Said;
            return Poll::Ready(Ok(Some(0)));
        }
        let raw = (bytes.len() / 4).clamp(1, PIECE_READ);
        let (bytes, raw) = bytes.split_at_mut(bytes.len() - raw);
        let count = ready!(transport.receive(raw))?;
        if count == 0 {
            // Without a word of farewell. Messages say how long they are, so an end that somebody
            // else has made up is seen as one.
            self.end = PeerEnd::Said;
            return Poll::Ready(Ok(Some(0)));
        }
        let fed = self.feed(raw.get(..count).unwrap_or_default(), bytes);
        self.has_grown |= count > SMALL;
        if self.has_grown && count < raw.len() {
            // Before it reads, the library gives back what it does not need; and all has come that
            // there is.
            let _ = self.connection.read_tls(&mut Nothing);
            self.has_grown = false;
        }
        self.collect()?;
        // A peer that cannot be written to is noticed by who has something to say.
        let _ = self.flush(transport);
        Poll::Ready(match fed? {
            0 if self.end == PeerEnd::Unsaid => {
                self.end = PeerEnd::Said;
                Ok(Some(0))
            }
            0 => Ok(None),
            count => Ok(Some(count)),
        })
    }

    /// Decrypts `raw`, and what that gives goes to `bytes` as far as there is room. Returns how
    /// many bytes that are.
    fn feed(&mut self, mut raw: &[u8], bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while !raw.is_empty() {
            if self.connection.read_tls(&mut raw)? == 0 {
                // Nothing follows the farewell.
                break;
            }
            let state = self.connection.process_new_packets();
            let state = state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            self.decrypted = state.plaintext_bytes_to_read();
            if state.peer_has_closed() && self.end == PeerEnd::Open {
                self.end = PeerEnd::Unsaid;
            }
            filled += self.take(bytes.get_mut(filled..).unwrap_or_default())?;
        }
        Ok(filled)
    }

    /// Takes what is decrypted already.
    fn take(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while self.decrypted > 0 && filled < bytes.len() {
            let count = self.connection.reader().read(&mut bytes[filled..])?;
            self.decrypted = self.decrypted.saturating_sub(count);
            filled += count;
        }
        Ok(filled)
    }

    /// Encrypts what it may of `bytes`, and sends what there is room for. `Pending` until what was
    /// encrypted before is sent.
    pub(in crate::net) fn write(
        &mut self,
        transport: &mut impl Transport,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.flush(transport))?;
        let piece = bytes.get(..PIECE_WRITTEN).unwrap_or(bytes);
        let count = self.connection.writer().write(piece)?;
        self.collect()?;
        match self.flush(transport) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    /// Sends what is encrypted already.
    pub(in crate::net) fn flush(&mut self, transport: &mut impl Transport) -> Poll<io::Result<()>> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(transport.send(rest)) {
                Ok(count) if count > 0 => self.sent += count,
                outcome => {
                    self.out = Vec::new();
                    self.sent = 0;
                    let error = outcome.err();
                    return Poll::Ready(Err(error.unwrap_or_else(|| ErrorKind::WriteZero.into())));
                }
            }
        }
        self.sent = 0;
        self.out.clear();
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Says farewell: nothing more will be written.
    pub(in crate::net) fn close(&mut self, transport: &mut impl Transport) -> Poll<io::Result<()>> {
        self.connection.send_close_notify();
        self.collect()?;
        self.flush(transport)
    }

    /// Takes over the ciphertext that the connection has made.
    fn collect(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.out)?;
        }
        Ok(())
    }

    /// Bytes encrypted and not sent.
    pub(in crate::net) const fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Whether something can be read though the socket has nothing.
    pub(in crate::net) fn may_read(&self) -> bool {
        self.decrypted > 0 || self.end == PeerEnd::Unsaid
    }

    /// Whether the peer has said that nothing more comes. What it has sent may still be there to be
    /// read.
    pub(in crate::net) fn is_ending(&self) -> bool {
        self.end != PeerEnd::Open
    }
    /// Changes the keys, as a peer may at any time.
    #[cfg(test)]
    pub(super) fn refresh(&mut self) {
        let connection = &mut self.connection;
        connection.refresh_traffic_keys().expect("TLS 1.3");
    }
}
