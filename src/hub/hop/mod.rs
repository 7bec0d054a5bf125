//! One client and the server connection held for it, for as long as one piece of input takes.
//!
//! ```text
//!             Query, convertible            ReadyForQuery
//!   Free ──────────────────────▶ Executing ───────────────▶ Free
//!    │                                │ error before BindComplete: original sent
//!    │ Query, something to ask        ▼
//!    └──────────▶ Learning ──────▶ the Query on hold is decided again
//! ```
//!
//! Before these comes Login. A read that may run on another connection leads to Visiting, and a
//! query that waits until the own one has no visits to Barred (`travel`). A query that is cancelled
//! while it is on hold leads to Cancelled, and one whose transaction has only begun may lead to
//! Reopening (`cancel`), as does one whose transaction the server has not heard of (`begin`,
//! `loose`). What stands for a DISCARD ALL leads to Discarding (`discard`).
//!
//! Invariants:
//! - while a converted query or a question of ours is in flight, no client frame is processed, so
//!   an error can always be repaired before anything later runs. The exception is a client that has
//!   finished and whose query is no longer to be repaired ([`Hop::let_go`]);
//! - what is forwarded is the bytes received, except error positions, one context line, and the
//!   key;
//! - while others visit the connection, nothing of its own client is sent on it;
//! - inside a client's transaction we run nothing but its converted queries. Beside these we only
//!   close and parse statements, and ask questions that are rolled back. A transaction that has
//!   only begun may be begun again, and the server may then be asked to cancel itself;
//! - every query that is relayed instead of converted is counted under exactly one [`Reason`]; a
//!   query that ends as cancelled before it is sent is counted under none.

mod begin;
mod cancel;
mod discard;
mod dispatch;
mod forward;
mod learn;
mod login;
mod loose;
mod relay;
mod replies;
mod series;
mod settle;
mod taint;
pub(super) mod timing;
mod trail;
mod travel;

use super::pace::Pace;
use super::warm::is_of_use;
use super::{Outbox, Task};
use crate::client::{Client, Then};
use crate::convert::Lent;
use crate::oracle::Lesson;
use crate::reason::Reason;
use crate::statement::{Micros, Millis};
use crate::upstream::Upstream;
use crate::upstream::visit::Visits;
use crate::wire::frame::{self, HEADER};
use crate::wire::{Error, frontend};

/// One client, one server connection, and what both work with.
#[derive(Debug)]
pub(super) struct Hop<'h> {
    pub(super) client: &'h mut Client,
    pub(super) upstream: &'h mut Upstream,
    /// The visits of other clients, and of this one, on the connection.
    pub(super) visits: &'h mut Visits,
    /// How long reads wait that may run elsewhere.
    pub(super) pace: &'h mut Pace,
    /// The lesson that is under way on the connection, if one is.
    pub(super) lesson: &'h mut Option<Box<Lesson>>,
    pub(super) lent: &'h mut Lent,
    pub(super) outbox: &'h mut Outbox,
    pub(super) now: Millis,
    /// The same time, more precisely.
    pub(super) clock: Micros,
}

impl Hop<'_> {
    /// Takes what it can of `bytes` from the client; returns how many were used.
    ///
    /// # Errors
    /// A length field no frame can have, before the client is logged in.
    pub(super) fn client_bytes(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.client.skip > 0 {
                let piece = &rest[..rest.len().min(self.client.skip)];
                if !self.client.leaves {
                    self.upstream.out.extend_from_slice(piece);
                }
                self.client.skip -= piece.len();
                at += piece.len();
                continue;
            }
            if !self.client.accepts() {
                match self.follows(rest) {
                    Some(size) => at += size,
                    None => break,
                }
                continue;
            }
            if !self.client.is_logged_in() && self.spoils_login(rest) {
                continue;
            }
            let header = match frame::header(rest) {
                Ok(Some(header)) => header,
                Err(_) if self.is_led_on() => continue,
                Err(error) if !self.client.is_logged_in() => return Err(error),
                Ok(None) | Err(_) => break,
            };
            if !self.client.is_logged_in() && !login::may_precede_login(header.tag) {
                break;
            }
            if !self.is_ready()
                && !self.is_whole_query(header, rest)
                && !self.make_ready(header.tag)
            {
                break;
            }
            let most = self.lent.settings.limits.max_query + HEADER + 1;
            let needed = match header.tag {
                frontend::QUERY => most,
                frontend::PARSE => most + 64,
                _ => 0,
            };
            if header.tag == frontend::PARSE {
                self.before_batch(rest);
            }
            match rest.get(..header.size) {
                Some(_) if header.tag == frontend::QUERY && self.waits_behind() => break,
                Some(frame) if self.leads(frame, &rest[header.size..]) => at += header.size,
                Some(frame) => {
                    self.client_frame(header.tag, frame);
                    at += header.size;
                }
                None if header.size <= needed => break,
                None => {
                    self.relay_unseen(header.tag, Reason::TooLong);
                    self.upstream.out.extend_from_slice(rest);
                    self.client.skip = header.size - rest.len();
                    at = bytes.len();
                }
            }
        }
        Ok(at)
    }

    /// Whether a frame of any type may be sent on: no visits are on their way, and the server knows
    /// of the transaction.
    #[inline(always)]
    fn is_ready(&self) -> bool {
        !self.visits.is_busy() && self.upstream.begin_due.is_none()
    }

    /// Has the server be told of the transaction, or the visits end, before a frame of this type is
    /// looked at; returns whether it need not wait.
    #[cold]
    fn make_ready(&mut self, tag: u8) -> bool {
        if self.client.is_loose && tag == frontend::TERMINATE {
            // Nothing has begun that would have to end.
            self.forgets_loose();
        }
        if self.visits.is_busy() {
            self.visits.is_wanted = true;
            return false;
        }
        let is_begun = self.upstream.begin_due.is_none();
        if !is_begun {
            self.opens();
            self.begin(Then::Nothing);
        }
        is_begun
    }

    /// The client's next message has a length that none can have: the server ends the session when
    /// it has answered what stands before, so it is given all that comes (`SocketBackend` in
    /// `postgres.c`). Returns whether it is, which may have to wait.
    #[cold]
    #[inline(never)]
    fn is_led_on(&mut self) -> bool {
        let is_ready = self.client.is_logged_in() && (self.is_ready() || self.make_ready(0));
        if is_ready {
            tracing::info!(
                client = self.client.number,
                "a message of impossible length"
            );
            self.client.relay_only = true;
            self.client.skip = usize::MAX;
        }
        is_ready
    }

    fn client_frame(&mut self, tag: u8, frame: &[u8]) {
        let body = &frame[HEADER..];
        match tag {
            frontend::QUERY if frame.len() <= self.lent.settings.limits.max_query + HEADER + 1 => {
                self.client.cancels_before = self.client.key.cancelled.requested();
                match frame::query_text(body) {
                    Some(text) => return self.client_query(text),
                    None => self.relay_unseen(tag, Reason::Lexical),
                }
            }
            frontend::QUERY => match frame::query_text(body) {
                Some(text) => {
                    self.counts_query();
                    return self.relay_query(text, Reason::TooLong);
                }
                None => self.relay_unseen(tag, Reason::TooLong),
            },
            frontend::TERMINATE if is_of_use(self.client, self.upstream, self.lent, self.now) => {
                self.client.leaves();
                let task = Task::Park(self.client.id);
                self.outbox.tasks.push_back(task);
                return;
            }
            _ => {
                self.client.is_parting |= tag == frontend::TERMINATE;
                self.relay_other(tag, body);
            }
        }
        self.upstream.out.extend_from_slice(frame);
    }
}
