//! Lessons: the conversations with the oracle that precede a query while it waits.
//!
//! They are held in front of a query rather than behind it, so that the client's own text is the
//! last the server has seen, and only outside transactions. A lesson is a few round trips:
//!
//! - *context*: settings and search path, when anything may have changed them;
//! - *columns*: the types of the columns that rows are stored in, if it has rows;
//! - *describe*: the original and the rewritten text are parsed and described;
//! - *explain*: the plans of both, the generic plan, and what only the catalog knows;
//! - *keys*, *statistics*: whether the generic plan may stand for the plans of other values;
//! - *prepare*: a statement already trusted is parsed on this connection, and must infer the same
//!   types;
//! - *audit*: the plan proof again, with the literals of the moment.

use super::lists;
use super::oracle::{self, Answer, MAX_ANSWER};
use super::proof::Exposure;
use super::route::judge;
use super::settings::{context_query, digest};
use super::{Session, Turn, Worker};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::scan::Scan;
use crate::statement::cache::Name;
use crate::statement::guard::Guard;
use crate::statement::{Context, Instant, Plans, Statement, Terms, Verdict};
use crate::upstream::ServerSettings;
use crate::upstream::ledger::Kind;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::{Error, frontend};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Milliseconds after which a question somebody else put counts as forgotten.
const PATIENCE: u64 = 10_000;

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
    Watch(Instant),
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
    /// The text it is about, which need not be the query on hold.
    pub(super) text: Vec<u8>,
    step: Step,
    pub(super) answers: Vec<Answer>,
    current: Answer,
    asked: usize,
    pub(super) rounds: u8,
    pub(super) candidate: Option<Candidate>,
    /// What a client could see of another plan than the generic one, and its guards.
    pub(super) exposure: Option<(Exposure, Vec<Guard>)>,
    /// The error frame of a question the client's cancel request has hit.
    cancelled: Option<Vec<u8>>,
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
    pub(super) verified: Instant,
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
            step: Step::Context,
            answers: Vec::new(),
            current: Answer::default(),
            asked: 0,
            rounds: 0,
            candidate: None,
            exposure: None,
            cancelled: None,
        }
    }

    pub(super) fn ask(&mut self, step: Step, questions: usize) -> Next {
        self.step = step;
        self.asked = questions;
        self.answers.clear();
        Next::Asked
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
    /// Begins the lesson in `self.turn`.
    pub(super) fn start_lesson(&mut self, now: Instant, worker: &mut Worker) {
        self.advance(now, worker, |session, lesson, worker| {
            let watch = matches!(lesson.subject, Subject::Watch);
            let interval = worker.settings.catalog_watch;
            if watch || session.upstream.database.take_watch(now, interval) {
                session.question(|out| frontend::query(out, oracle::CATALOG_SIGN.as_bytes()));
                return Ok(lesson.ask(Step::Watch(now), 1));
            }
            session.begin_lesson(lesson, now, worker)
        });
    }

    fn begin_lesson(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        if matches!(lesson.subject, Subject::Watch) {
            return Ok(Next::Learned);
        }
        if self.upstream.context.is_none() {
            let listens = worker.settings.ddl_notices;
            self.question(|out| frontend::query(out, context_query(listens).as_bytes()));
            return Ok(lesson.ask(Step::Context, 1));
        }
        self.lesson_subject(lesson, now, worker)
    }

    /// The catalog was looked at. An answer that failed says nothing; the age of statements bounds
    /// what that can cost.
    fn watched(&self, answer: &Answer, asked: Instant, now: Instant) {
        if let [sign] = &answer.values[..]
            && answer.is_good()
            && self.upstream.database.observed(sign, asked, now)
        {
            tracing::debug!(client = self.client.0, "the catalog has changed");
        }
    }

    /// Takes a step with the lesson out of the turn, and puts it back if it goes on.
    fn advance(
        &mut self,
        now: Instant,
        worker: &mut Worker,
        step: impl FnOnce(&mut Self, &mut Lesson, &mut Worker) -> Result<Next, Reason>,
    ) {
        let Turn::Learning(mut lesson) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        let next = step(self, &mut lesson, worker).unwrap_or_else(Next::Over);
        match next {
            Next::Asked => self.turn = Turn::Learning(lesson),
            Next::Learned => self.lesson_over(&lesson, None, now, worker),
            Next::Over(reason) => self.lesson_over(&lesson, Some(reason), now, worker),
        }
    }

    fn lesson_over(
        &mut self,
        lesson: &Lesson,
        reason: Option<Reason>,
        now: Instant,
        worker: &mut Worker,
    ) {
        if self.key.cancelled.swap(false, Ordering::Relaxed)
            && let Some(error) = &lesson.cancelled
        {
            // The client has cancelled its query while it waited: that is its answer.
            self.to_client.extend_from_slice(error);
            backend::ready_for_query(&mut self.to_client, Status::Idle);
            self.query.clear();
            return;
        }
        match reason {
            Some(reason) if lesson.text == self.query => {
                let text = std::mem::take(&mut self.query);
                self.relay_query(&text, reason, worker);
            }
            _ => self.resume(now, worker),
        }
    }

    /// Appends one question, which `write` ends with Query or Sync.
    pub(super) fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.to_upstream);
        self.upstream.ledger.expect(self.client, Kind::Question);
    }

    pub(super) fn question_reply(
        &mut self,
        tag: u8,
        frame: &[u8],
        now: Instant,
        worker: &mut Worker,
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
            return Ok(());
        };
        lesson.current.size += frame.len();
        if lesson.current.size > MAX_ANSWER {
            lesson.current.overflowed = true;
        }
        match tag {
            backend::ERROR => {
                if fields::field(body, fields::SQLSTATE) == Some(b"57014") {
                    lesson.cancelled = Some(frame.to_vec());
                }
                lesson.current.error.get_or_insert_with(|| body.to_vec());
            }
            backend::ROW_DESCRIPTION => lesson.current.description = Some(body.to_vec()),
            backend::PARAMETER_DESCRIPTION => {
                lesson.current.types = backend::parameter_description(body);
            }
            backend::DATA_ROW if !lesson.current.overflowed => {
                let columns = backend::columns(body).map(Option::unwrap_or_default);
                let texts = columns.map(|text| String::from_utf8_lossy(text).into_owned());
                lesson.current.values.extend(texts);
            }
            backend::READY_FOR_QUERY => {
                let answer = std::mem::take(&mut lesson.current);
                lesson.answers.push(answer);
                if lesson.answers.len() == lesson.asked {
                    self.advance(now, worker, |session, lesson, worker| {
                        session.answered(lesson, now, worker)
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An answer too large to be looked at is swallowed: the oracle is too talkative.
    pub(super) fn large_answer(&mut self, tag: u8) -> Option<bool> {
        if let Turn::Learning(lesson) = &mut self.turn
            && tag != backend::NOTICE
        {
            lesson.current.overflowed = true;
        }
        matches!(tag, backend::DATA_ROW | backend::NOTICE | backend::ERROR).then_some(false)
    }

    fn answered(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        match lesson.step {
            Step::Watch(asked) => {
                if let Some(answer) = lesson.answers.first() {
                    self.watched(answer, asked, now);
                }
                self.begin_lesson(lesson, now, worker)
            }
            Step::Context => {
                let values = digest(&lesson.answer(0)?.values)?;
                self.read_context(&Answer {
                    values,
                    ..Answer::default()
                })?;
                self.lesson_subject(lesson, now, worker)
            }
            Step::Columns => self.columns_known(lesson, now, worker),
            Step::Describe => self.described(lesson, now, worker),
            Step::Explain => self.explained(lesson, now, worker),
            Step::Keys => self.keys_known(lesson, now, worker),
            Step::Statistics => self.statistics_known(lesson, now, worker),
            Step::Prepare => self.parsed(lesson, worker),
            Step::Audit => self.audited(lesson, worker),
        }
    }

    fn read_context(&mut self, answer: &Answer) -> Result<(), Reason> {
        let [chooses, quiet, nulls, memory, settings] = &answer.values[..] else {
            return Err(Reason::OracleFailed);
        };
        let private = match self.upstream.local_objects {
            0 => (0, 0),
            objects => (self.client.0, objects),
        };
        let hasher = foldhash::quality::FixedState::default();
        let hash = hasher.hash_one((self.memory.identity, private, settings));
        self.upstream.context = Some(Context(hash));
        self.upstream.settings = ServerSettings {
            chooses_plans: chooses == "t",
            is_quiet: quiet == "t",
            has_array_nulls: nulls == "t",
            work_memory: memory.parse().unwrap_or_default(),
        };
        Ok(())
    }

    fn lesson_subject(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        self.check_settings()?;
        match &lesson.subject {
            Subject::Watch => Ok(Next::Learned),
            Subject::Statement(_) => self.teach(lesson, now, worker),
            Subject::Audit(statement, name) => {
                let (recipe, name) = (Arc::clone(statement.recipe()), *name);
                let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
                let text = &lesson.text;
                worker.scan_again(text, self.upstream.dialect, &recipe)?;
                let name = name.as_bytes();
                let execute = oracle::explain_execute(name, text, &worker.scan, eligible, None);
                let explain = oracle::explain(text, &worker.scan);
                self.question(|out| frontend::query(out, &explain));
                self.question(|out| frontend::query(out, &oracle::explain_generic(&execute)));
                Ok(lesson.ask(Step::Audit, 2))
            }
        }
    }

    /// Finds out what is known of the text's statement, and asks what is not.
    pub(super) fn teach(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let recipe = self.recipe(&lesson.text, worker)?;
        let (text, scan) = (&lesson.text, &worker.scan);
        let dialect = self.upstream.dialect;
        let eligible = recipe.judgement(|| judge(text, scan, dialect))?;
        if oracle::has_volatile_inline(text, scan, eligible) {
            return Err(Reason::VolatileLiteral);
        }
        let epoch = self.upstream.database.epoch();
        let plans = match lesson.subject {
            Subject::Statement(plans) => plans,
            Subject::Watch | Subject::Audit(..) => Plans::Generic,
        };
        let statement = self.statement(&recipe, plans, text, worker)?;
        if let Some(reason) = statement.settled_against(epoch) {
            return Err(reason);
        }
        let trusted = match statement.verdict() {
            Verdict::Trusted {
                epoch: known,
                at,
                terms,
            } if known == epoch && now.since(at) <= worker.settings.statement_max_age => {
                Some((at, terms))
            }
            _ => None,
        };
        if trusted.is_none() {
            if !statement.claim(now, PATIENCE) {
                return Err(Reason::Threshold);
            }
            // A lesson is about one shape, in however many forms.
            if lesson.candidate.is_none() {
                if !worker.table.take_question(now) {
                    statement.settle(Verdict::Unasked);
                    return Err(Reason::Budget);
                }
                worker.counters().add(Counter::OracleQuestions, 1);
            }
        }
        let is_trusted = trusted.is_some();
        let (verified, terms) = trusted.unwrap_or_default();
        let candidate = Candidate {
            verified,
            terms,
            statement,
            name: Name::default(),
            epoch,
        };
        if !is_trusted && recipe.shape().has_rows() {
            return self.ask_columns(lesson, candidate);
        }
        Ok(self.prepare(lesson, candidate, is_trusted, worker))
    }

    /// Gives the candidate, which is for the text the worker's scanner has just scanned, a name on
    /// this connection and has it parsed.
    pub(super) fn prepare(
        &mut self,
        lesson: &mut Lesson,
        mut candidate: Candidate,
        is_trusted: bool,
        worker: &Worker,
    ) -> Next {
        let statement = Arc::clone(&candidate.statement);
        let (name, evicted) = self.upstream.cache.begin(statement, candidate.epoch);
        candidate.name = name;
        let counters = worker.counters();
        counters.add(Counter::StatementsEvicted, evicted.into());
        self.close_owed(worker);
        let next = self.parse(lesson, &candidate, is_trusted, &worker.scan);
        lesson.candidate = Some(candidate);
        next
    }

    /// Has the candidate parsed, and what else there is to know of it in the state it is in.
    fn parse(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        is_trusted: bool,
        scan: &Scan,
    ) -> Next {
        let text = &lesson.text;
        let (statement, name) = (&candidate.statement, candidate.name.as_bytes());
        if !is_trusted {
            let body = text.get(scan.body()).unwrap_or_default();
            self.question(|out| {
                frontend::parse(out, b"", body, &[]);
                frontend::describe_statement(out, b"");
                out.extend_from_slice(frontend::SYNC_FRAME);
            });
        }
        let declared = statement.declared(&candidate.terms);
        self.question(|out| {
            frontend::parse(out, name, statement.text(), &declared);
            frontend::describe_statement(out, name);
            out.extend_from_slice(frontend::SYNC_FRAME);
        });
        if !is_trusted {
            return lesson.ask(Step::Describe, 2);
        }
        let warming = lists::warming_questions((statement, &candidate.terms), name, text, scan);
        for question in &warming {
            self.question(|out| frontend::query(out, question));
        }
        lesson.ask(Step::Prepare, 1 + warming.len())
    }
}
