//! Bytes to frames and back: the PostgreSQL frontend/backend protocol, without policy and without
//! IO.
//!
//! A *frame* is one whole protocol message, header and body, undecoded. This module cuts frames out
//! of byte streams ([`frame`]), writes the few messages the proxy originates ([`frontend`],
//! [`backend`]), reads the few it inspects ([`backend`], [`fields`]) and understands the untagged
//! packets that open a connection ([`startup`]) and the messages of a login ([`authentication`]).
//! Where the proxy is the server itself, it reads [`requests`] and writes [`answers`].
//! Formats are those of the protocol chapter of PostgreSQL's documentation, "Message Formats".
//!
//! Invariants, each with its tests:
//! - either one whole header leaves the buffer or nothing changes; a length is checked before it is
//!   used;
//! - nothing is allocated in proportion to a number that came from the wire;
//! - every encoder has a byte-exact test;
//! - decoders return `None` on anything malformed; they never panic and never guess.

pub mod answers;
pub mod authentication;
pub mod backend;
pub mod canonical;
pub mod fields;
pub mod frame;
pub mod frontend;
pub mod requests;
pub mod startup;

/// What is wrong with bytes that should be protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A frame's length field is below four or above what the protocol allows.
    #[error("invalid message length {length} in a message of type {tag:?} (expected 4 to {limit})")]
    Length {
        /// The message type byte.
        tag: char,
        /// The length as it stands in the header.
        length: i64,
        /// The largest length accepted.
        limit: i64,
    },
    /// A startup-shaped packet's length is out of range.
    #[error("invalid length of startup packet: {length} bytes (expected 8 to {limit})")]
    StartupLength {
        /// The length as it stands in the packet.
        length: i64,
        /// The largest length accepted.
        limit: i64,
    },
    /// A startup-shaped packet ends before its length says so.
    #[error("incomplete startup packet")]
    StartupCut,
    /// A cancel request is too short for what it has to hold.
    #[error("invalid length of cancel request packet")]
    CancelLength,
    /// A startup packet has become too long by the names that the server knows.
    #[error("the startup packet is too long with the names that the server knows: {length} bytes")]
    StartupGrown {
        /// The length in bytes.
        length: usize,
    },
    /// The parameters of a startup packet are not name/value pairs of C strings.
    #[error("invalid startup packet layout: expected terminator as last byte")]
    StartupLayout,
    /// Bytes follow a request for encryption that should have waited for its answer: somebody who
    /// is not the client may have put them there (CVE-2021-23214 of PostgreSQL).
    #[error("received unencrypted data after {request}")]
    Unencrypted {
        /// What was asked for, in the words of the server.
        request: &'static str,
    },
    /// Neither this proxy nor PostgreSQL 13 to 18 speaks the protocol version.
    #[error("unsupported frontend protocol {major}.{minor}: this proxy supports 3.0 to 3.2")]
    Version {
        /// The major version asked for.
        major: u16,
        /// The minor version asked for.
        minor: u16,
    },
    /// The server sent something that cannot follow what came before.
    #[error("unexpected message of type {tag:?} from the server")]
    Unexpected {
        /// The message type byte.
        tag: char,
    },
}

impl Error {
    /// Whether a client that has sent this is told nothing before its connection is closed, as by
    /// the server (`COMMERROR` in `ProcessStartupPacket` and in `pq_getmessage`): what it speaks
    /// may be another protocol.
    #[must_use]
    pub const fn is_noise(&self) -> bool {
        matches!(
            self,
            Self::Length { .. }
                | Self::StartupLength { .. }
                | Self::StartupCut
                | Self::CancelLength
        )
    }
}
