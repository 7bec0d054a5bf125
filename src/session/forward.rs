//! Bytes that go through as they are, and buffers that are not needed between two queries.
//!
//! Most bytes of a large result or a COPY belong to frames nobody has to look at. They are measured
//! here, and the caller sends them from where they are.

use super::{Session, Turn};
use crate::convert::Lent;
use crate::upstream::ledger::Fate;
use crate::wire::{Error, backend, frame, frontend};

/// Capacity that may stay with a waiting session in each place: a query text, a small reply.
const IDLE: usize = 2 * 1024;

impl Session {
    /// How many of the server's bytes go to the client as they are, before any that must be looked
    /// at. They count as taken: they go out behind what is in `to_client`, and the rest is for
    /// [`Session::upstream_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub fn forward_upstream(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        if self.upstream.partial.swallow > 0 {
            return Ok(0);
        }
        let mut at = self.upstream.partial.pass.min(bytes.len());
        self.upstream.partial.pass -= at;
        while let Some(header) = frame::header(&bytes[at..])? {
            // Notifications are rare, and whether one is for the client is not decided here.
            if header.tag == backend::NOTIFICATION || self.fate(header.tag) != Fate::Pass {
                break;
            }
            // What passes changes nothing, so the next of its type passes too.
            let run = frame::run(&bytes[at..], header.tag)?;
            at += run.bytes;
            self.upstream.partial.pass = run.missing;
        }
        Ok(at)
    }

    /// How many of the client's bytes go to the server as they are: what is left of a large frame,
    /// and copy data. They count as taken: they go out behind what is in `to_upstream`, and the
    /// rest is for [`Session::client_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub fn forward_client(&mut self, bytes: &[u8], lent: &Lent) -> Result<usize, Error> {
        let at = self.client_skip.min(bytes.len());
        self.client_skip -= at;
        let rest = &bytes[at..];
        if rest.first() != Some(&frontend::COPY_DATA) || !matches!(self.turn, Turn::Free) {
            return Ok(at);
        }
        let run = frame::run(rest, frontend::COPY_DATA)?;
        if run.bytes > 0 {
            self.relay_other(frontend::COPY_DATA, &[], lent);
        }
        self.client_skip = run.missing;
        Ok(at + run.bytes)
    }

    /// What becomes of a reply of this type. During the login all are looked at.
    #[inline]
    pub(super) fn fate(&mut self, tag: u8) -> Fate {
        match self.is_logged_in() {
            true => self.upstream.ledger.fate(tag),
            false => Fate::Note,
        }
    }

    /// Gives back what large queries and replies have left behind in buffers that are empty now.
    #[inline]
    pub fn give_back(&mut self) {
        give_back(&mut self.query);
        self.upstream.ledger.give_back();
    }
}

#[inline]
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > IDLE && buffer.is_empty() {
        *buffer = Vec::new();
    }
}
