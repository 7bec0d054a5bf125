//! Bytes that go through as they are, and buffers that are not needed between two queries.
//!
//! Most bytes of a large result or a COPY belong to frames nobody has to look at. They are measured
//! here, and the caller sends them from where they are.

use super::Hop;
use crate::client::Turn;
use crate::upstream::ledger::Fate;
use crate::wire::{Error, backend, frame, frontend};

/// Capacity that the buffer for a query on hold may keep while its client waits.
const IDLE: usize = 2 * 1024;

impl Hop<'_> {
    /// How many of the server's bytes go to the client as they are, before any that must be looked
    /// at. They count as taken: they go out behind what is in its buffer, and the rest is for
    /// [`Hop::upstream_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub(in crate::hub) fn forward_upstream(&mut self, bytes: &[u8]) -> Result<usize, Error> {
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
    /// and copy data. They count as taken: they go out behind what is in its buffer, and the
    /// rest is for [`Hop::client_bytes`].
    ///
    /// # Errors
    /// A length field no frame can have.
    pub(in crate::hub) fn forward_client(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let is_held = self.visits.is_busy() || self.upstream.begin_due.is_some();
        if self.client.leaves || is_held {
            return Ok(0);
        }
        let at = self.client.skip.min(bytes.len());
        self.client.skip -= at;
        let rest = &bytes[at..];
        if rest.first() != Some(&frontend::COPY_DATA) || !matches!(self.client.turn, Turn::Free) {
            return Ok(at);
        }
        if at > 0 && self.upstream.standing.past.may_show_statements() {
            // What closes them would come before what is left of the large frame.
            return Ok(at);
        }
        let Ok(run) = frame::run(rest, frontend::COPY_DATA) else {
            return Ok(at);
        };
        if run.bytes > 0 {
            self.relay_other(frontend::COPY_DATA, &[]);
        }
        self.client.skip = run.missing;
        Ok(at + run.bytes)
    }

    /// Gives back the room that a long query or a long pipeline has left behind, once it is empty.
    #[inline]
    pub(in crate::hub) fn give_back(&mut self) {
        give_back(&mut self.client.query);
        self.upstream.ledger.give_back();
    }
}

#[inline]
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > IDLE && buffer.is_empty() {
        *buffer = Vec::new();
    }
}
