//! A ledger that has lost track of what the server owes, and what it still knows.
//!
//! The client's frames and the replies go through as they are then. What the proxy itself has sent
//! stands in the queue for as long as its replies are owed, because they are not the client's.

use super::{Batch, Kind, Ledger, is_maybe};
use crate::wire::frontend;

/// Whether what the server owes is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Track {
    /// It is.
    #[default]
    Kept,
    /// Not how many replies, because more stands behind a Query in a batch that may have failed.
    /// The next Sync ends what the server skips (`PostgresMain` in `postgres.c`).
    Doubted,
    /// Nor what the server does with a message.
    Blind,
}

impl Ledger {
    /// Whether what the server owes cannot be known any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.track != Track::Kept
    }

    /// The client has sent what makes it unknown what the server will owe: nothing but relaying is
    /// safe. What was owed before is known up to the last Close of ours.
    pub fn lose(&mut self) {
        let is_close = |kind: &Kind| matches!(kind, Kind::Closes(_));
        let mut queue = std::mem::take(&mut self.queue);
        let last = queue.iter().rposition(|entry| is_close(&entry.kind));
        queue.truncate(last.map_or(0, |last| last + 1));
        queue.shrink_to_fit();
        *self = Self {
            queue,
            sender: self.sender,
            said: self.said,
            own_closes: self.own_closes,
            track: Track::Blind,
            ..Self::default()
        };
    }

    /// The client has sent more behind a Query in a batch that may have failed.
    pub(super) fn doubt(&mut self) {
        self.lose();
        self.track = Track::Doubted;
        self.batch = Batch::Doubtful;
    }

    /// The server's replies are not those that are owed: nothing but relaying is safe. A
    /// CloseComplete can only be ours if the client has closed nothing.
    pub(super) fn give_up(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|entry| matches!(entry.kind, Kind::Closes(_)) && !self.own_closes);
        queue.shrink_to_fit();
        *self = Self {
            queue,
            sender: self.sender,
            track: Track::Blind,
            ..Self::default()
        };
    }

    /// Notes a client's frame, relayed when the ledger is lost: whether the server skips what
    /// follows, and whether a CloseComplete may be the client's.
    pub(super) fn follow_lost(&mut self, tag: u8) {
        match tag {
            frontend::SYNC => self.batch = Batch::Closed,
            frontend::PARSE
            | frontend::BIND
            | frontend::DESCRIBE
            | frontend::EXECUTE
            | frontend::CLOSE => {
                self.own_closes |= tag == frontend::CLOSE;
                self.batch = Batch::Doubtful;
            }
            _ => {}
        }
    }

    /// A CloseComplete has come where a bare Sync may have been answered first. Nothing but Closes
    /// of ours behind it is answered so: then no such Sync is answered any more.
    pub(super) fn answers_close(&mut self) -> bool {
        let ahead = self
            .queue
            .iter()
            .take_while(|entry| is_maybe(entry))
            .count();
        let next = self.queue.get(ahead).map(|entry| &entry.kind);
        let is_ours = ahead > 0 && matches!(next, Some(Kind::Closes(_)));
        if is_ours {
            self.queue.drain(..ahead);
        }
        is_ours
    }
}
