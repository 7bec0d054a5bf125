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

use super::oracle::{self, Answer, MAX_ANSWER};
use super::proof::Exposure;
use super::route::judge;
use super::settings::{context_query, digest};
use super::{Session, Turn, Worker};
use super::{catalog, lists};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::effect;
use crate::sql::hazard::Hazards;
use crate::sql::scan::Scan;
use crate::statement::cache::Name;
use crate::statement::database::NamesClaim;
use crate::statement::guard::Guard;
use crate::statement::names::{Names, Row};
use crate::statement::{Instant, Plans, Statement, Terms, Verdict};
use crate::upstream::ServerSettings;
use crate::upstream::ledger::Kind;
use crate::wire::backend::{self, Status};
use crate::wire::fields;
use crate::wire::frame::HEADER;
use crate::wire::{Error, frontend};
use std::sync::Arc;

/// Milliseconds after which a question somebody else put counts as forgotten.
const PATIENCE: u64 = 10_000;

/// What precedes a question that takes locks, in the same implicit transaction, which SET LOCAL does
/// not outlive. Whoever waits for a lock waits for as long as the original would; a question of ours
/// gives up at once, and the original goes through. Its time is not the client's, either, so what
/// cancels it is a cancel request.
pub(super) const CAREFUL: &[u8] = b"SET LOCAL lock_timeout = 1; SET LOCAL statement_timeout = 0; ";

/// The same for messages of the extended protocol, where SET LOCAL would raise a warning.
pub(super) const CAREFUL_SET: &[u8] = b"SELECT pg_catalog.set_config('lock_timeout', '1', true), \
    pg_catalog.set_config('statement_timeout', '0', true)";

fn careful_batch() -> Vec<u8> {
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
    Watch(Instant),
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
    is_behind: bool,
    step: Step,
    pub(super) answers: Vec<Answer>,
    current: Answer,
    asked: usize,
    pub(super) rounds: u8,
    pub(super) candidate: Option<Candidate>,
    /// What a client could see of another plan than the generic one, and its guards.
    pub(super) exposure: Option<(Exposure, Vec<Guard>)>,
    /// The right to ask for names.
    claim: Option<NamesClaim>,
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
    /// Begins the lesson in `self.turn`.
    pub(super) fn start_lesson(&mut self, now: Instant, worker: &mut Worker) {
        self.advance(now, worker, |session, lesson, worker| {
            let due = matches!(lesson.subject, Subject::Watch) && !lesson.is_behind;
            let interval = worker.settings.catalog_watch;
            let unverified = session.upstream.is_unverified(now);
            let database = &session.upstream.database;
            if due || unverified || database.take_watch(now, interval) {
                session.question(|out| frontend::query(out, catalog::sign().as_bytes()));
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
        if self.upstream.is_unverified(now) {
            return Err(Reason::Unproven);
        }
        if matches!(lesson.subject, Subject::Watch) && !lesson.is_behind {
            return Ok(Next::Learned);
        }
        if !self.upstream.knows_names() {
            let claim = self.upstream.database.claim_names(now);
            lesson.claim = Some(claim.ok_or(Reason::Unproven)?);
            let names = catalog::names(self.upstream.dialect.server_major);
            self.question(|out| frontend::query(out, names.as_bytes()));
            return Ok(lesson.ask(Step::Names, 1));
        }
        let epoch = self.upstream.database.epoch();
        self.survey_late()?;
        if self.upstream.is_unverified(now) {
            return Err(Reason::Unproven);
        }
        if self.upstream.context.is_none() || self.upstream.context_epoch != epoch {
            let listens = worker.settings.ddl_notices;
            self.question(|out| frontend::query(out, context_query(listens).as_bytes()));
            return Ok(lesson.ask(Step::Context, 1));
        }
        self.lesson_subject(lesson, now, worker)
    }

    /// The catalog was looked at. An answer that failed says nothing; the age of statements bounds
    /// what that can cost.
    fn watched(&mut self, answer: &Answer, asked: Instant, now: Instant) {
        let Ok(sign) = <&[String; 2]>::try_from(&answer.values[..]) else {
            return;
        };
        if !answer.is_good() {
            return;
        }
        let suspect = self.upstream.unverified.take().is_some();
        self.upstream.is_new = false;
        if self.upstream.database.observed(sign, asked, now, suspect) {
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
            Next::Learned => {
                self.memory.setbacks.clear();
                self.lesson_over(&lesson, None, now, worker);
            }
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
        if lesson.is_behind {
            debug_assert!(self.query.is_empty());
            return;
        }
        // Whoever cancels what this connection does means the query that waits.
        if self.end_if_cancelled(lesson.cancelled.as_deref()) {
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

    /// Appends one question about what users define, which waits for nobody and is not cut short by
    /// what is meant for the client's own queries.
    pub(super) fn careful_question(&mut self, text: &[u8]) {
        let text = [CAREFUL, text].concat();
        self.question(|out| frontend::query(out, &text));
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
        if let (Step::Watch(asked), Some(answer)) = (lesson.step, lesson.answers.first()) {
            self.watched(answer, asked, now);
        }
        if let (Step::Names, Some(answer)) = (lesson.step, lesson.answers.first())
            && let Some(claim) = lesson.claim.take()
        {
            named(answer, claim, now);
        }
        self.cut_short(lesson)?;
        self.check_blame(lesson, now)?;
        match lesson.step {
            Step::Watch(_) => self.begin_lesson(lesson, now, worker),
            Step::Names if !self.upstream.knows_names() => Err(Reason::Unproven),
            Step::Names => self.begin_lesson(lesson, now, worker),
            Step::Context => {
                let values = digest(&lesson.answer(0)?.values)?;
                let answer = Answer {
                    values,
                    ..Answer::default()
                };
                self.read_context(&answer, worker)?;
                let lookups = self.upstream.cache.lookups();
                self.memory.patience.learned(lookups);
                self.memory.idle_patience.learned(lookups);
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

    fn read_context(&mut self, answer: &Answer, worker: &Worker) -> Result<(), Reason> {
        let [chooses, quiet, nulls, memory, indirect, settings] = &answer.values[..] else {
            return Err(Reason::OracleFailed);
        };
        let interned = worker
            .table
            .contexts()
            .intern(&self.memory.origin, settings);
        self.upstream.context = Some(interned.context());
        self.upstream.context_epoch = self.upstream.database.epoch();
        self.memory.context = Some(interned);
        self.upstream.settings = ServerSettings {
            chooses_plans: chooses == "t",
            is_quiet: quiet == "t",
            has_array_nulls: nulls == "t",
            work_memory: memory.parse().unwrap_or_default(),
            has_indirect_rights: indirect != "0",
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
                self.careful_question(&explain);
                self.careful_question(&oracle::explain_generic(&execute));
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
        if !self.upstream.knows_names() {
            return Err(Reason::Unproven);
        }
        let names = Arc::clone(self.upstream.names());
        let survey = effect::survey(&lesson.text, &*names);
        let mut recipe = self.recipe(&lesson.text, worker)?;
        if survey.reads_partitions() && recipe.shape().has_rows() {
            // Rows of arrays are always planned once.
            worker.table.take_apart(&recipe);
            recipe = self.recipe(&lesson.text, worker)?;
        }
        let (text, scan) = (&lesson.text, &worker.scan);
        let dialect = self.upstream.dialect;
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        if oracle::has_volatile_inline(text, scan, eligible) {
            return Err(Reason::VolatileLiteral);
        }
        let epoch = self.upstream.database.epoch();
        let plans = match lesson.subject {
            // A generic plan locks all partitions, whatever the literals say.
            Subject::Statement(Plans::Generic) if survey.reads_partitions() => Plans::Custom,
            Subject::Statement(plans) => plans,
            Subject::Watch | Subject::Audit(..) => Plans::Generic,
        };
        let statement = self.statement(&recipe, plans, text, worker)?;
        if let Some(reason) = hazard_of(survey.hazards) {
            statement.settle(Verdict::Declined { reason, epoch });
        }
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
        let (verified, terms) = trusted.unwrap_or_else(|| {
            let effect = survey.hazards.effect();
            (
                now,
                Arc::new(Terms {
                    effect,
                    ..Terms::default()
                }),
            )
        });
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
                out.extend_from_slice(&careful_batch());
                frontend::parse(out, b"", body, &[]);
                frontend::describe_statement(out, b"");
                out.extend_from_slice(frontend::SYNC_FRAME);
            });
        }
        let declared = statement.declared(&candidate.terms);
        self.question(|out| {
            out.extend_from_slice(&careful_batch());
            frontend::parse(out, name, statement.text(), &declared);
            frontend::describe_statement(out, name);
            out.extend_from_slice(frontend::SYNC_FRAME);
        });
        if !is_trusted {
            return lesson.ask(Step::Describe, 2);
        }
        let warming = lists::warming_questions((statement, &candidate.terms), name, text, scan);
        for question in &warming {
            self.careful_question(question);
        }
        lesson.ask(Step::Prepare, 1 + warming.len())
    }
}

/// The names whose use has hazards are here. An answer too long to be read makes all of them
/// hazardous; one that failed says nothing.
fn named(answer: &Answer, claim: NamesClaim, now: Instant) {
    let names = match answer {
        answer if answer.overflowed => Names::unknown(),
        answer if answer.error.is_some() => return,
        answer => {
            let rows = answer.values.as_chunks().0;
            Names::of_rows(rows.iter().filter_map(Row::read))
        }
    };
    tracing::debug!(count = names.len(), "asked for names with hazards");
    claim.answer(names, now);
}

/// Why a text whose objects have these hazards is passed through.
const fn hazard_of(hazards: Hazards) -> Option<Reason> {
    if hazards.has(Hazards::SEES) {
        Some(Reason::Introspection)
    } else if hazards.has(Hazards::FOREIGN) {
        Some(Reason::ForeignTable)
    } else if hazards.has(Hazards::SECURED) {
        Some(Reason::RoleRights)
    } else if hazards.has(Hazards::PLANS) {
        Some(Reason::PlannerRuns)
    } else {
        None
    }
}
