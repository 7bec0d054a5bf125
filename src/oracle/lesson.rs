//! One lesson: what it is about, which questions of it are in flight, and their answers.

use super::oracle::{self, Answer, MAX_ANSWER};
use super::proof::Visibility;
use super::{Session, Turn};
use crate::convert::Lent;
use crate::reason::Reason;
use crate::statement::database::NamesClaim;
use crate::statement::guard::Guard;
use crate::statement::mirror::Name;
use crate::statement::{Millis, Plans, Statement, Terms};
use crate::upstream::ledger::Kind;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::{Error, frontend};
use std::sync::Arc;

/// What precedes a question that takes locks, in the same implicit transaction, which SET LOCAL
/// does not outlive. Whoever waits for a lock waits for as long as the original would; a question
/// of ours gives up at once, and the original goes through. Its time is not the client's, either,
/// so what cancels it is a cancel request.
pub(super) const CAREFUL: &str = "SET LOCAL lock_timeout = 1; SET LOCAL statement_timeout = 0; ";

/// The same for messages of the extended protocol, where SET LOCAL would raise a warning.
pub(super) const CAREFUL_SET: &[u8] = b"SELECT pg_catalog.set_config('lock_timeout', '1', true), \
    pg_catalog.set_config('statement_timeout', '0', true)";

pub(super) fn careful_batch() -> Vec<u8> {
    let mut out = Vec::new();
    frontend::parse(&mut out, b"", CAREFUL_SET, &[]);
    frontend::bind(&mut out, b"", 0, |_, _| {});
    out.extend_from_slice(frontend::EXECUTE_FRAME);
    out
}

/// What a lesson is about.
#[derive(Debug)]
pub(super) enum Subject {
    /// Make the statement for the text usable on this connection, or the one with custom plans if
    /// it says so.
    Statement(Plans),
    /// Only look whether the catalog has changed.
    Watch,
    /// Repeat the plan proof of a statement this connection holds under this name.
    Audit(Arc<Statement>, Name),
}

/// The questions in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Watch(Millis),
    Names,
    Context,
    Columns,
    Describe,
    Explain,
    Keys,
    Statistics,
    Prepare,
    Audit,
}

/// A conversation with the oracle.
#[derive(Debug)]
pub(super) struct Lesson {
    pub(super) subject: Subject,
    /// The text it is about: the query on hold, unless there is none.
    pub(super) text: Vec<u8>,
    /// It follows a reply, and no query waits for it yet.
    pub(super) is_behind: bool,
    pub(super) step: Step,
    pub(super) answers: Vec<Answer>,
    pub(super) current: Answer,
    pub(super) asked: usize,
    pub(super) rounds: u8,
    pub(super) candidate: Option<Candidate>,
    /// What a client could see of another plan than the generic one, and its guards.
    pub(super) exposure: Option<(Visibility, Vec<Guard>)>,
    /// The right to ask for names.
    pub(super) claim: Option<NamesClaim>,
    /// The error frame of a question that was cancelled, by whomever.
    pub(super) cancelled: Option<Vec<u8>>,
}

/// The statement in question.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) statement: Arc<Statement>,
    /// The name it is being prepared under.
    pub(super) name: Name,
    /// The catalog epoch when asked.
    pub(super) epoch: u64,
    /// What it is trusted with, or is about to be.
    pub(super) terms: Arc<Terms>,
    /// When it was, if it is already.
    pub(super) verified: Millis,
}

/// Where a lesson goes after its answers.
pub(super) enum Next {
    /// More questions are in flight.
    Asked,
    /// It is over: the text can be executed.
    Learned,
    /// It is over: the text is passed through.
    Over(Reason),
}

impl Lesson {
    pub(super) fn new(subject: Subject, text: Vec<u8>) -> Self {
        Self {
            subject,
            text,
            is_behind: false,
            step: Step::Context,
            answers: Vec::new(),
            current: Answer::default(),
            asked: 0,
            rounds: 0,
            candidate: None,
            exposure: None,
            claim: None,
            cancelled: None,
        }
    }

    /// A lesson that no query waits for.
    pub(super) fn behind(subject: Subject, text: Vec<u8>) -> Self {
        Self {
            is_behind: true,
            ..Self::new(subject, text)
        }
    }

    /// Whether no query waited for it when it began.
    pub(super) const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Bytes of an answer that are read.
    const fn most(&self) -> usize {
        match self.step {
            Step::Names => oracle::MAX_NAMES,
            _ => MAX_ANSWER,
        }
    }

    pub(super) fn ask(&mut self, step: Step, questions: usize) -> Next {
        self.step = step;
        self.asked = questions;
        self.answers.clear();
        Next::Asked
    }

    pub(super) const fn step(&self) -> Step {
        self.step
    }

    pub(super) fn answer(&self, index: usize) -> Result<&Answer, Reason> {
        let answer = self.answers.get(index).ok_or(Reason::OracleFailed)?;
        if answer.is_good() {
            Ok(answer)
        } else {
            Err(Reason::OracleFailed)
        }
    }
}

impl Session {
    /// Appends one question, which `write` ends with Query or Sync.
    pub(super) fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.to_upstream);
        self.upstream.ledger.expect(self.client, Kind::Question);
    }

    /// Appends one question about what users define, which waits for nobody and is not cut short by
    /// what is meant for the client's own queries.
    pub(super) fn careful_question(&mut self, text: &[u8]) {
        let text = [CAREFUL.as_bytes(), text].concat();
        self.question(|out| frontend::query(out, &text));
    }

    /// Puts one question about the catalog, which is all there is to ask in this step. A table of
    /// the catalog can be locked, too: by VACUUM FULL, for as long as it takes.
    pub(super) fn ask_catalog(&mut self, lesson: &mut Lesson, step: Step, text: &[u8]) -> Next {
        self.careful_question(text);
        lesson.ask(step, 1)
    }

    pub(super) fn question_reply(
        &mut self,
        tag: u8,
        frame: &[u8],
        now: Millis,
        lent: &mut Lent,
    ) -> Result<(), Error> {
        let body = &frame[HEADER..];
        match tag {
            backend::NOTIFICATION | backend::PARAMETER_STATUS => {
                self.to_client.extend_from_slice(frame);
                return Ok(());
            }
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
        let Turn::Learning(lesson) = &mut self.turn else {
            self.repair_reply(tag, frame);
            return Ok(());
        };
        lesson.current.size += frame.len();
        if lesson.current.size > lesson.most() {
            lesson.current.overflowed = true;
            lesson.current.values = Vec::new();
        }
        match tag {
            backend::ERROR => {
                if fields::field(body, fields::SQLSTATE) == Some(b"57014") {
                    lesson.cancelled = Some(frame.to_vec());
                }
                lesson.current.error.get_or_insert_with(|| body.to_vec());
            }
            backend::NOTICE => lesson.current.notices = true,
            backend::ROW_DESCRIPTION => lesson.current.description = Some(body.to_vec()),
            backend::PARAMETER_DESCRIPTION => {
                lesson.current.types = backend::parameter_description(body);
            }
            backend::DATA_ROW if !lesson.current.overflowed => {
                let columns = backend::columns(body).map(Option::unwrap_or_default);
                lesson.current.values.extend(columns.map(oracle::column));
            }
            backend::READY_FOR_QUERY => {
                let answer = std::mem::take(&mut lesson.current);
                lesson.answers.push(answer);
                if lesson.answers.len() == lesson.asked {
                    self.advance(now, lent, |session, lesson, lent| {
                        session.answered(lesson, now, lent)
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An answer too large to be looked at is swallowed: the oracle is too talkative.
    pub(super) fn large_answer(&mut self, tag: u8) -> Option<bool> {
        if let Turn::Learning(lesson) = &mut self.turn {
            lesson.current.overflowed |= tag != backend::NOTICE;
            lesson.current.notices |= tag == backend::NOTICE;
        }
        matches!(tag, backend::DATA_ROW | backend::NOTICE | backend::ERROR).then_some(false)
    }
}
