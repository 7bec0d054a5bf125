//! Joins a client to an upstream connection: what becomes of each client frame, and of each reply.
//!
//! Sans-IO. The driver hands over bytes with [`Session::client_bytes`] and
//! [`Session::upstream_bytes`], both of which return how many they used, and sends what they leave
//! in `to_upstream` and `to_client`. After `upstream_bytes` it offers the client's unused bytes
//! again: [`Session::accepts_client`] tells whether they would be taken.
//!
//! ```text
//!             Query, convertible            ReadyForQuery
//!   Free ──────────────────────▶ Executing ───────────────▶ Free
//!    │                                │ error before BindComplete: original sent
//!    │ Query, something to ask        ▼
//!    └──────────▶ Learning ──────▶ the held Query is routed again
//! ```
//!
//! Invariants:
//! - while a converted query or a question of ours is in flight no client frame is processed, so an
//!   error can always be repaired before anything later runs;
//! - what is forwarded is the bytes received, except error positions, one context line, and the
//!   key;
//! - nothing of ours happens inside a client's transaction but Bind, Describe, Execute and Sync;
//! - every query that is not converted is counted under exactly one [`Reason`].

mod cancel;
mod dispatch;
mod forward;
mod learn;
mod login;
mod relay;

pub use cancel::Cancels;

use crate::convert::Habits;
use crate::convert::Lent;
use crate::ids::ClientId;
use crate::oracle::{DDL_CHANNEL, Lesson};
use crate::reason::Reason;
use crate::standing::Standing;
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::upstream::ledger::Fate;
use crate::upstream::{Settled, Upstream};
use crate::wire::backend::Status;
use crate::wire::frame::{self, HEADER, INSPECT_LIMIT};
use crate::wire::{self, backend, frontend};
use std::sync::Arc;

/// Where the session is.
#[derive(Debug)]
enum Turn {
    /// Relaying startup and authentication.
    Login,
    /// Client frames are taken.
    Free,
    /// A converted query is in flight; its original is in `query`.
    Executing,
    /// Questions of ours are in flight; the client's query waits in `query`.
    Learning(Box<Lesson>),
    /// The client's query in `query` is answered as cancelled.
    Cancelled(Box<cancel::Cancelled>),
    /// The transaction is begun again for the client's query in `query`.
    Reopening(Box<cancel::Reopening>),
}

/// One client joined to one server connection.
#[derive(Debug)]
pub struct Session {
    client: ClientId,
    /// The server connection.
    pub upstream: Upstream,
    turn: Turn,
    key: CancelKey,
    /// The text of the query in flight or on hold.
    query: Vec<u8>,
    /// Lessons taken for the query on hold.
    lessons: u8,
    /// Cancel requests that had come when the query in hand did.
    cancels_before: u32,
    /// The client sends nothing more than it has sent already.
    parting: bool,
    /// Sightings on this connection, and texts to learn when it is idle.
    habits: Habits,
    client_skip: usize,
    relay_only: bool,
    /// The server waits for the client's part of the authentication.
    is_challenged: bool,
    /// Bytes for the client.
    pub to_client: Vec<u8>,
}

/// The secret of the cancel key given to the client, and how it was used.
///
/// The process id beside it is the server's own: clients compare it with `pg_backend_pid()`.
#[derive(Debug, Clone)]
pub struct CancelKey {
    /// Secret bytes; as many as the server's own key has are given out.
    pub secret: [u8; 32],
    /// Counted by whoever relays cancel requests for this key.
    pub cancelled: Arc<Cancels>,
}

/// What the driver is told while a session logs in: how to cancel what the server does for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerKey {
    /// Process id of the server process.
    pub pid: u32,
    /// Its secret key.
    pub secret: Vec<u8>,
    /// The secret the client was given in its place.
    pub ours: Vec<u8>,
}

impl Session {
    /// A session that is about to log in; the StartupMessage is the driver's to send.
    ///
    /// Until the server has accepted it, nothing of it is known to anybody else.
    #[must_use]
    pub fn new(
        client: ClientId,
        key: CancelKey,
        origin: Origin,
        relay_only: bool,
        lent: &Lent,
    ) -> Self {
        let most = lent.settings.limits.max_statements;
        let standing = Standing::new(origin, most, lent.shapes.tag());
        Self {
            client,
            upstream: Upstream::new(standing),
            turn: Turn::Login,
            key,
            query: Vec::new(),
            lessons: 0,
            cancels_before: 0,
            parting: false,
            habits: Habits::default(),
            client_skip: 0,
            relay_only,
            is_challenged: false,
            to_client: Vec::new(),
        }
    }

    /// Whether the next client frame would be taken now.
    #[must_use]
    pub const fn accepts_client(&self) -> bool {
        self.client_skip > 0 || matches!(self.turn, Turn::Free | Turn::Login)
    }

    /// Whether login is over.
    #[must_use]
    pub const fn is_logged_in(&self) -> bool {
        !matches!(self.turn, Turn::Login)
    }

    /// Whether questions of ours are in flight, and a query waits for their answers.
    #[must_use]
    pub const fn is_learning(&self) -> bool {
        matches!(self.turn, Turn::Learning(_))
    }

    /// The server connection as this session sees it.
    #[must_use]
    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The server is gone. If it owes something and has not said why, the client is told; whatever
    /// was held is let go of.
    pub fn upstream_gone(&mut self) {
        self.answer_cancelled();
        let asks = matches!(&self.turn, Turn::Learning(lesson) if lesson.is_behind());
        let owes = !self.is_logged_in() || !asks && self.upstream.ledger.owes();
        // A client that has said that it is done ends the connection itself.
        if owes && !self.parting && !self.upstream.told_fatal && self.upstream.partial.pass == 0 {
            let message = "server closed the connection unexpectedly";
            backend::error_response(&mut self.to_client, "FATAL", "08006", message);
            self.upstream.told_fatal = true;
        }
    }

    /// Whether what was forwarded to the client so far ends with a whole message.
    #[must_use]
    pub const fn is_between_messages(&self) -> bool {
        self.upstream.partial.pass == 0
    }

    /// Whether nothing is in flight: the moment to end a session that is being drained.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.turn, Turn::Free)
            && self.upstream.ledger.is_idle()
            && self.client_skip == 0
            && self.upstream.standing.status == Status::Idle
    }

    /// Takes what it can of `bytes` from the client; returns how many were used.
    ///
    /// # Errors
    /// A length field no frame can have.
    pub fn client_bytes(
        &mut self,
        bytes: &[u8],
        now: Millis,
        lent: &mut Lent,
    ) -> Result<usize, wire::Error> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.client_skip > 0 {
                let piece = &rest[..rest.len().min(self.client_skip)];
                self.upstream.out.extend_from_slice(piece);
                self.client_skip -= piece.len();
                at += piece.len();
                continue;
            }
            if !self.accepts_client() {
                break;
            }
            if !self.is_logged_in() && self.spoils_login(rest) {
                continue;
            }
            let Some(header) = frame::header(rest)? else {
                break;
            };
            if !self.is_logged_in() && !login::may_precede_login(header.tag) {
                break;
            }
            let whole = rest.get(..header.size);
            let needed = match header.tag {
                frontend::QUERY => lent.settings.limits.max_query + HEADER + 1,
                frontend::PARSE => lent.settings.limits.max_query + HEADER + 1 + 64,
                _ => 0,
            };
            if header.tag == frontend::PARSE {
                self.before_batch(rest, lent);
            }
            match whole {
                Some(frame) => {
                    self.client_frame(header.tag, frame, now, lent);
                    at += header.size;
                }
                None if header.size <= needed => break,
                None => {
                    self.relay_unseen(header.tag, Reason::TooLong, lent);
                    self.upstream.out.extend_from_slice(rest);
                    self.client_skip = header.size - rest.len();
                    at = bytes.len();
                }
            }
        }
        Ok(at)
    }

    fn client_frame(&mut self, tag: u8, frame: &[u8], now: Millis, lent: &mut Lent) {
        let body = &frame[HEADER..];
        match tag {
            frontend::QUERY if frame.len() <= lent.settings.limits.max_query + HEADER + 1 => {
                self.cancels_before = self.key.cancelled.requested();
                match frame::query_text(body) {
                    Some(text) => return self.client_query(text, now, lent),
                    None => self.relay_unseen(tag, Reason::Lexical, lent),
                }
            }
            frontend::QUERY => match frame::query_text(body) {
                Some(text) => return self.relay_query(text, Reason::TooLong, lent),
                None => self.relay_unseen(tag, Reason::TooLong, lent),
            },
            _ => {
                self.parting |= tag == frontend::TERMINATE;
                self.relay_other(tag, body, lent);
            }
        }
        self.upstream.out.extend_from_slice(frame);
    }

    /// Takes what it can of `bytes` from the server; returns how many were used.
    ///
    /// `on_key` is told the server's cancel key when it comes.
    ///
    /// # Errors
    /// A length field no frame can have, or a reply that cannot follow what was sent.
    pub fn upstream_bytes(
        &mut self,
        bytes: &[u8],
        now: Millis,
        lent: &mut Lent,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<usize, wire::Error> {
        // Bytes from here to `at` go to the client as they are, in one copy.
        let partial = &mut self.upstream.partial;
        let mut run = partial.swallow.min(bytes.len());
        partial.swallow -= run;
        let forwarded = partial.pass.min(bytes.len() - run);
        partial.pass -= forwarded;
        let mut at = run + forwarded;
        while let Some(header) = frame::header(&bytes[at..])? {
            if header.tag == backend::BIND_COMPLETE
                && let Some((reply, execution)) = self.upstream.whole_reply(&bytes[at..])
            {
                self.forward(&bytes[run..at]);
                self.executed(execution, Some(reply.status), lent);
                run = at + reply.swallowed;
                at += reply.size;
                continue;
            }
            let available = bytes.len() - at;
            if header.tag == backend::NOTIFICATION && lent.settings.ddl_notices {
                if available < header.size {
                    break;
                }
                if is_announcement(&bytes[at..at + header.size]) {
                    self.upstream.standing.database.advance();
                    self.forward(&bytes[run..at]);
                    at += header.size;
                    run = at;
                    continue;
                }
            }
            let fate = self.fate(header.tag);
            if fate == Fate::Pass {
                let piece = available.min(header.size);
                self.upstream.partial.pass = header.size - piece;
                at += piece;
                continue;
            }
            if header.size > INSPECT_LIMIT {
                self.forward(&bytes[run..at]);
                run = at;
                let piece = available.min(header.size);
                at += piece;
                if self.large_reply(fate, header.tag)? {
                    self.upstream.partial.pass = header.size - piece;
                } else {
                    run = at;
                    self.upstream.partial.swallow = header.size - piece;
                }
                continue;
            }
            if available < header.size {
                break;
            }
            let frame = &bytes[at..at + header.size];
            if matches!(fate, Fate::Note | Fate::Aside) && self.is_logged_in() {
                self.upstream.seen(header.tag, frame);
                at += header.size;
                if fate == Fate::Note {
                    self.relay_reply(header.tag, frame, now, lent);
                }
                continue;
            }
            self.forward(&bytes[run..at]);
            self.upstream_frame(fate, header.tag, frame, now, lent, on_key)?;
            at += header.size;
            run = at;
        }
        self.forward(&bytes[run..at]);
        Ok(at)
    }

    /// Sends these bytes of the server to the client.
    #[inline]
    fn forward(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.to_client.extend_from_slice(bytes);
        }
    }

    /// What becomes of a reply too large to be looked at: true to forward it, false to swallow it.
    fn large_reply(&mut self, fate: Fate, tag: u8) -> Result<bool, wire::Error> {
        match fate.of_large(tag) {
            Fate::Pass | Fate::Note => self.upstream.ledger.relayed(tag),
            Fate::Release | Fate::Repair => self.upstream.take_large(tag, &mut self.to_client),
            Fate::Collect => {
                self.large_answer(tag);
                return Ok(false);
            }
            _ => return Err(unexpected(tag)),
        }
        Ok(true)
    }

    fn upstream_frame(
        &mut self,
        fate: Fate,
        tag: u8,
        frame: &[u8],
        now: Millis,
        lent: &mut Lent,
        on_key: &mut dyn FnMut(ServerKey),
    ) -> Result<(), wire::Error> {
        self.upstream.seen(tag, frame);
        if matches!(self.turn, Turn::Login) {
            self.login_reply(tag, frame, lent, on_key);
            return Ok(());
        }
        match fate {
            Fate::Pass | Fate::Note | Fate::Aside => self.to_client.extend_from_slice(frame),
            Fate::Swallow | Fate::Hold | Fate::Release | Fate::Repair => {
                self.upstream
                    .take(fate, tag, frame, &mut self.to_client, lent);
            }
            Fate::Close => drop(self.upstream.ledger.closed()),
            Fate::Collect => self.question_reply(tag, frame, now, lent),
            Fate::Settle if self.upstream.ledger.execution().is_some() => {
                self.execution_ready(frame, lent);
            }
            Fate::Settle => self.question_reply(tag, frame, now, lent),
            Fate::Unexpected => return Err(unexpected(tag)),
        }
        Ok(())
    }

    fn execution_ready(&mut self, frame: &[u8], lent: &mut Lent) {
        match self.upstream.take_ready(frame, &mut self.to_client) {
            Some(Settled::Answered(execution)) => {
                let status = Status::read(&frame[HEADER..]);
                self.executed(execution, status, lent);
            }
            Some(Settled::Replay(execution)) => self.replay(execution, lent),
            None => {}
        }
    }
}

/// Whether a NotificationResponse says that the catalog has changed.
fn is_announcement(frame: &[u8]) -> bool {
    backend::notification_channel(&frame[HEADER..]) == Some(DDL_CHANNEL.as_bytes())
}

fn unexpected(tag: u8) -> wire::Error {
    wire::Error::Unexpected {
        tag: char::from(tag),
    }
}
