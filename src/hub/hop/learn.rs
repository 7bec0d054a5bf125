//! Lessons that a query waits for, or that follow a reply: how they begin, what is sent for them,
//! which replies they are handed, and what follows them.

use super::Hop;
use crate::client::Turn;
use crate::convert::Subject;
use crate::oracle::{Asked, Env, Lesson, Next};
use crate::reason::Reason;
use crate::upstream::ledger::{Kind, Recipient};
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;

/// Lessons after which a query is not asked about again because what the last one has asked was
/// outdated meanwhile.
const AGAIN: u8 = 3;

impl Hop<'_> {
    /// Begins a lesson.
    pub(super) fn learn(&mut self, lesson: Lesson) {
        self.untimed();
        self.client.turn = Turn::Learning;
        *self.lesson = Some(Box::new(lesson));
        self.with_lesson(|lesson, env| Some(lesson.begin(env)));
    }

    /// Has the catalog looked at for others, because the client has left.
    pub(in crate::hub) fn learn_names(&mut self) {
        self.client.is_parting = false;
        self.learn(Lesson::behind(Subject::Names, Vec::new()));
    }

    /// Has the catalog looked at for itself, because the client may leave its home.
    pub(in crate::hub) fn learn_names_behind(&mut self) {
        self.learn(Lesson::behind(Subject::Names, Vec::new()));
    }

    /// Has the catalog looked at before a query of a client that gives its home back, if it is not
    /// known which names leave something: else it could never tell that this one leaves nothing.
    /// Returns whether the query waits.
    pub(super) fn learns_before(&mut self, text: &[u8]) -> bool {
        let is_open = self.may_learn_first() && !self.upstream.standing.residue.stays();
        let standing = &mut self.upstream.standing;
        let is_known = standing.knows_names() && standing.database.knows_draws();
        if !is_open || is_known || standing.setbacks.rest(self.now) {
            return false;
        }
        self.learns_first(Subject::Names, text);
        true
    }

    /// Whether a query that has just come may wait for a lesson that is not about itself.
    pub(super) fn may_learn_first(&self) -> bool {
        let upstream = &self.upstream;
        self.client.lessons == 0
            && !self.client.is_parting
            && !self.client.relay_only
            && !self.visits.is_busy()
            && upstream.begin_due.is_none()
            && upstream.ledger.is_idle()
            && upstream.standing.status == Status::Idle
    }

    /// Has this asked about, while the query waits.
    pub(super) fn learns_first(&mut self, subject: Subject, text: &[u8]) {
        self.client.lessons += 1;
        self.client.query.clear();
        self.client.query.extend_from_slice(text);
        self.learn(Lesson::new(subject, Vec::new()));
    }

    /// Takes a step with the lesson, sends what it asks, and does what follows if it is over.
    fn with_lesson(&mut self, step: impl FnOnce(&mut Lesson, &mut Env<'_>) -> Option<Next>) {
        let is_pointless = self.client.is_parting || self.client.is_cancelled();
        let Some(lesson) = self.lesson else {
            return;
        };
        let mut asks = Asked::default();
        let mut env = Env {
            standing: &mut self.upstream.standing,
            lent: self.lent,
            now: self.now,
            asks: &mut asks,
            is_pointless,
            client: self.client.number,
        };
        let next = step(lesson, &mut env);
        self.send_asked(&asks);
        if next
            .as_ref()
            .is_some_and(|next| !matches!(next, Next::Asked))
        {
            self.count_memory();
        }
        match next {
            None | Some(Next::Asked) => {}
            Some(Next::Learned) => self.lesson_over(None),
            Some(Next::Over(reason)) => self.lesson_over(Some(reason)),
        }
    }

    /// Counts what the server has come to hold of ours, or has been told to forget.
    pub(super) fn count_memory(&mut self) {
        let tally = self.upstream.standing.mirror.take_tally();
        self.client.counts.prepared += tally.prepared;
        self.lent.count_memory(tally);
    }

    /// Sends what a lesson asks, and expects the replies.
    fn send_asked(&mut self, asks: &Asked) {
        let upstream = &mut self.upstream;
        upstream.out.extend_from_slice(&asks.bytes);
        if asks.closes > 0 {
            let to = Recipient::Client(self.client.id);
            upstream.ledger.expect(to, Kind::Closes(asks.closes));
        }
        for _ in 0..asks.questions {
            upstream.ledger.expect(Recipient::Lesson, Kind::Question);
        }
    }

    /// The lesson is over, and the text cannot be converted for this reason if there is one.
    fn lesson_over(&mut self, reason: Option<Reason>) {
        let Some(lesson) = self.lesson.take() else {
            return;
        };
        self.client.turn = Turn::Free;
        if lesson.is_behind() {
            debug_assert!(self.client.query.is_empty());
            return;
        }
        // Whoever cancels what this connection does means the query that waits.
        if self.end_if_cancelled(lesson.cancelled()) {
            return;
        }
        let has_changed = reason == Some(Reason::Unproven) && self.client.lessons <= AGAIN;
        match reason {
            // What was asked is not true any more, because of another session.
            Some(_) if has_changed && self.lent.settings.is_eager() => self.resume(),
            // Not only a look at the catalog, but about the query, or one of its statements.
            Some(reason) if !lesson.text().is_empty() => {
                if let (Reason::InTransaction, Subject::Statement(plans)) = (reason, lesson.about())
                {
                    self.client.habits.want(lesson.text(), *plans);
                }
                let text = std::mem::take(&mut self.client.query);
                match self.client.is_loose {
                    true => self.at_home(Err(reason), &text),
                    false => self.relay_query(&text, reason),
                }
            }
            _ => self.resume(),
        }
    }

    /// Appends one question outside a lesson, which `write` ends with Query or Sync.
    pub(in crate::hub) fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.client.skip == 0, "in the middle of a message");
        let upstream = &mut self.upstream;
        write(&mut upstream.out);
        upstream.ledger.expect(Recipient::Lesson, Kind::Question);
    }

    /// A reply to a question, in a lesson or outside one.
    pub(super) fn question_reply(&mut self, tag: u8, frame: &[u8]) {
        let body = &frame[HEADER..];
        match tag {
            backend::ERROR if fields::field(body, fields::SEVERITY) != Some(b"ERROR") => {
                // The connection ends; the client should hear why.
                self.client.forward(frame);
            }
            backend::NOTICE if self.upstream.told_crash => self.client.forward(frame),
            backend::READY_FOR_QUERY => {
                self.upstream.ledger.settle();
                if let Some(status) = Status::read(body) {
                    self.upstream.ready(status);
                }
            }
            _ => {}
        }
        match self.lesson {
            Some(_) => self.with_lesson(|lesson, env| lesson.reply(tag, frame, env)),
            None => match self.client.turn {
                Turn::Settling(_) => self.settling_reply(tag, frame),
                Turn::Discarding(_) => self.discarding_reply(tag, frame),
                _ => self.repair_reply(tag, frame),
            },
        }
    }

    /// A reply to a question is too large to be looked at: it is swallowed.
    pub(super) fn large_answer(&mut self, tag: u8) {
        if let Some(lesson) = self.lesson {
            lesson.large(tag);
        }
    }
}
