//! Lessons that a query waits for, or that follow a reply: how they begin, what is sent for them,
//! which replies they are handed, and what follows them.

use super::{Session, Turn};
use crate::convert::Lent;
use crate::oracle::{Asked, Env, Lesson, Next};
use crate::reason::Reason;
use crate::statement::Millis;
use crate::upstream::ledger::{Kind, Recipient};
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;

impl Session {
    /// Begins the lesson in `self.turn`.
    pub(super) fn start_lesson(&mut self, now: Millis, lent: &mut Lent) {
        self.with_lesson(now, lent, |lesson, env| Some(lesson.begin(env)));
    }

    /// Takes a step with the lesson in `self.turn`, sends what it asks, and does what follows if it
    /// is over.
    fn with_lesson(
        &mut self,
        now: Millis,
        lent: &mut Lent,
        step: impl FnOnce(&mut Lesson, &mut Env<'_>) -> Option<Next>,
    ) {
        let is_pointless = self.parting || self.is_cancelled();
        let Turn::Learning(lesson) = &mut self.turn else {
            return;
        };
        let mut asks = Asked::default();
        let mut env = Env {
            standing: &mut self.upstream.standing,
            lent,
            now,
            asks: &mut asks,
            is_pointless,
            client: self.client.0,
        };
        let next = step(lesson, &mut env);
        self.send_asked(&asks);
        match next {
            None | Some(Next::Asked) => {}
            Some(Next::Learned) => self.lesson_over(None, now, lent),
            Some(Next::Over(reason)) => self.lesson_over(Some(reason), now, lent),
        }
    }

    /// Sends what a lesson asks, and expects the replies.
    fn send_asked(&mut self, asks: &Asked) {
        self.upstream.out.extend_from_slice(&asks.bytes);
        if asks.closes > 0 {
            let closes = Kind::Closes(asks.closes);
            self.upstream
                .ledger
                .expect(Recipient::Client(self.client), closes);
        }
        for _ in 0..asks.questions {
            self.upstream
                .ledger
                .expect(Recipient::Lesson, Kind::Question);
        }
    }

    /// The lesson in `self.turn` is over, and the text cannot be converted for this reason if there
    /// is one.
    fn lesson_over(&mut self, reason: Option<Reason>, now: Millis, lent: &mut Lent) {
        let Turn::Learning(lesson) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        if lesson.is_behind() {
            debug_assert!(self.query.is_empty());
            return;
        }
        // Whoever cancels what this connection does means the query that waits.
        if self.end_if_cancelled(lesson.cancelled()) {
            return;
        }
        match reason {
            Some(reason) if lesson.text() == self.query => {
                let text = std::mem::take(&mut self.query);
                self.relay_query(&text, reason, lent);
            }
            _ => self.resume(now, lent),
        }
    }

    /// Appends one question outside a lesson, which `write` ends with Query or Sync.
    pub(super) fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.upstream.out);
        self.upstream
            .ledger
            .expect(Recipient::Lesson, Kind::Question);
    }

    /// A reply to a question, in a lesson or outside one.
    pub(super) fn question_reply(&mut self, tag: u8, frame: &[u8], now: Millis, lent: &mut Lent) {
        let body = &frame[HEADER..];
        match tag {
            backend::ERROR if fields::field(body, fields::SEVERITY) != Some(b"ERROR") => {
                // The connection ends; the client should hear why.
                self.to_client.extend_from_slice(frame);
            }
            backend::READY_FOR_QUERY => {
                self.upstream.ledger.settle();
                if let Some(status) = Status::read(body) {
                    self.upstream.ready(status);
                }
            }
            _ => {}
        }
        if matches!(self.turn, Turn::Learning(_)) {
            self.with_lesson(now, lent, |lesson, env| lesson.reply(tag, frame, env));
        } else {
            self.repair_reply(tag, frame);
        }
    }

    /// A reply to a question is too large to be looked at: it is swallowed.
    pub(super) const fn large_answer(&mut self, tag: u8) {
        if let Turn::Learning(lesson) = &mut self.turn {
            lesson.large(tag);
        }
    }
}
