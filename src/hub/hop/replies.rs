//! The server's bytes: what becomes of each reply, as the ledger says.

use super::Hop;
use crate::client::{Then, Turn};
use crate::oracle::{Lesson, is_announcement};
use crate::upstream::Settled;
use crate::upstream::ledger::Fate;
use crate::wire::Error;
use crate::wire::backend::{self, Status};
use crate::wire::frame::{self, HEADER, INSPECT_LIMIT};

/// The bytes of ReadyForQuery: [`Status::read`] takes no other for one.
const READY: usize = HEADER + 1;

impl Hop<'_> {
    /// Takes what it can of `bytes` from the server; returns how many were used.
    ///
    /// # Errors
    /// A length field no frame can have, or a reply that cannot follow what was sent.
    pub(in crate::hub) fn upstream_bytes(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        // Bytes from here to `at` go to the client as they are, in one copy.
        let (mut run, mut at) = self.first_bytes(bytes);
        while let Some(header) = frame::header(&bytes[at..])? {
            if header.tag == backend::BIND_COMPLETE
                && let Some((reply, text, effect)) = self.upstream.whole_reply(&bytes[at..])
            {
                self.client.forward(&bytes[run..at]);
                self.executed(text, effect, Some(reply.status));
                run = at + reply.swallowed;
                at += reply.size;
                if reply.closed > 0 {
                    let ready = at - READY;
                    self.client.forward(&bytes[run..ready - reply.closed]);
                    run = ready;
                }
                continue;
            }
            let available = bytes.len() - at;
            if header.tag == backend::NOTIFICATION && self.upstream.standing.is_told {
                if available < header.size {
                    break;
                }
                if is_announcement(&bytes[at..at + header.size]) {
                    self.upstream.standing.database.advance();
                    self.client.forward(&bytes[run..at]);
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
                self.client.forward(&bytes[run..at]);
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
            at += header.size;
            if matches!(fate, Fate::Note | Fate::Aside) && self.client.is_logged_in() {
                self.upstream.seen(header.tag, frame);
                if fate == Fate::Note {
                    self.relay_reply(header.tag, frame);
                }
                continue;
            }
            self.client.forward(&bytes[run..at - header.size]);
            self.reply(fate, header.tag, frame)?;
            run = at;
        }
        self.client.forward(&bytes[run..at]);
        Ok(at)
    }

    /// What is swallowed at the front of `bytes`, and how many are dealt with: what is left of a
    /// large reply, or the usual answer to a BEGIN.
    #[inline(always)]
    fn first_bytes(&mut self, bytes: &[u8]) -> (usize, usize) {
        let partial = &mut self.upstream.partial;
        let run = partial.swallow.min(bytes.len());
        partial.swallow -= run;
        let forwarded = partial.pass.min(bytes.len() - run);
        partial.pass -= forwarded;
        let at = run + forwarded;
        if self.upstream.carries_begin && at == 0 {
            let begun = self.upstream.begun(bytes);
            return (begun, begun);
        }
        (run, at)
    }

    /// What becomes of a reply of this type. During the login all are looked at.
    #[inline]
    pub(super) fn fate(&mut self, tag: u8) -> Fate {
        debug_assert!(
            self.upstream.ledger.is_for(self.client.id),
            "a reply to another client"
        );
        match self.client.is_logged_in() {
            true => self.upstream.ledger.fate(tag),
            false => Fate::Note,
        }
    }

    /// What becomes of a reply too large to be looked at: true to forward it, false to swallow it.
    fn large_reply(&mut self, fate: Fate, tag: u8) -> Result<bool, Error> {
        let upstream = &mut self.upstream;
        match fate.of_large(tag) {
            Fate::Pass | Fate::Note => upstream.ledger.relayed(tag),
            Fate::Release | Fate::Repair => upstream.take_large(tag, &mut self.client.out),
            Fate::Collect => {
                self.large_answer(tag);
                return Ok(false);
            }
            _ => return Err(unexpected(tag)),
        }
        Ok(true)
    }

    /// Does with a whole reply what its fate says.
    fn reply(&mut self, fate: Fate, tag: u8, frame: &[u8]) -> Result<(), Error> {
        let upstream = &mut self.upstream;
        upstream.seen(tag, frame);
        if matches!(self.client.turn, Turn::Login) {
            self.login_reply(tag, frame);
            return Ok(());
        }
        if tag == backend::ERROR {
            self.untimed();
        }
        let upstream = &mut self.upstream;
        match fate {
            Fate::Pass | Fate::Note | Fate::Aside => self.client.forward(frame),
            Fate::Swallow | Fate::Hold | Fate::Release | Fate::Repair => {
                upstream.take(fate, tag, frame, &mut self.client.out, self.lent);
            }
            Fate::Close => drop(upstream.ledger.closed()),
            Fate::Settle if upstream.ledger.execution().is_some() => self.execution_ready(frame),
            Fate::Collect | Fate::Settle => self.question_reply(tag, frame),
            Fate::Unexpected => return Err(unexpected(tag)),
        }
        Ok(())
    }

    /// The server is gone.
    pub(in crate::hub) fn upstream_gone(&mut self) {
        self.answer_cancelled();
        let upstream = &mut self.upstream;
        let lesson = self.lesson.as_deref();
        // A client in a transaction that waits for nothing is told nothing, as it would not be.
        let begins = match &self.client.turn {
            Turn::Reopening(reopening) => {
                matches!(reopening.then, Then::Nothing | Then::Late | Then::Loose)
            }
            _ => false,
        };
        let asks = begins || lesson.is_some_and(Lesson::is_behind);
        let waits = matches!(self.client.turn, Turn::Visiting | Turn::Barred(_));
        let owes = !self.client.is_logged_in() || waits || !asks && upstream.ledger.owes();
        // A client that has said that it is done ends the connection itself.
        let is_told = upstream.told_fatal || upstream.told_crash || upstream.partial.pass > 0;
        if owes && !self.client.is_parting && !is_told {
            let message = "server closed the connection unexpectedly";
            backend::error_response(&mut self.client.out, "FATAL", "08006", message);
            upstream.told_fatal = true;
        }
    }

    fn execution_ready(&mut self, frame: &[u8]) {
        let settled = self.upstream.take_ready(frame, &mut self.client.out);
        match settled {
            Some(Settled::Answered(execution)) => {
                let status = Status::read(&frame[HEADER..]);
                self.executed(execution.text, execution.effect, status);
            }
            Some(Settled::Replay(execution)) => self.replay(execution),
            None => {}
        }
    }
}

fn unexpected(tag: u8) -> Error {
    Error::Unexpected {
        tag: char::from(tag),
    }
}
