//! Lessons: the conversations with the oracle that precede a query while it waits.
//!
//! They are held in front of a query rather than behind it, so that the client's own text is the last
//! the server has seen, and only outside transactions. A lesson is a few round trips:
//!
//! - *context*: settings and search path, when anything may have changed them;
//! - *describe*: the original and the rewritten text are parsed and described;
//! - *explain*: the plans of both, the generic plan, and what only the catalog knows;
//! - *prepare*: a statement already trusted is parsed on this connection, and must infer the same types;
//! - *audit*: the plan proof again, with the literals of the moment.

use super::oracle::{self, Answer, MAX_ANSWER};
use super::route::judge;
use super::{Session, Turn, Worker, proof};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::eligible::Eligible;
use crate::sql::rewrite;
use crate::statement::cache::Name;
use crate::statement::{Context, Instant, Recipe, Statement, Terms, Verdict};
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

/// Demotions tried for one shape before it is given up: one round trip each.
const MAX_ROUNDS: u8 = 16;

/// What a lesson is about.
#[derive(Debug)]
pub(super) enum Subject {
    /// Make the statement for the text usable on this connection.
    Statement,
    /// Repeat the plan proof of a statement this connection holds under this name.
    Audit(Arc<Statement>, Name),
}

/// The questions in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Context,
    Describe,
    Explain,
    Prepare,
    Audit,
}

/// A conversation with the oracle.
#[derive(Debug)]
pub(super) struct Lesson {
    subject: Subject,
    /// The text it is about, which need not be the query on hold.
    text: Vec<u8>,
    step: Step,
    answers: Vec<Answer>,
    current: Answer,
    asked: usize,
    rounds: u8,
    /// The statement in question, the name it is being prepared under, the epoch when asked.
    candidate: Option<Candidate>,
    /// The error frame of a question the client's cancel request has hit.
    cancelled: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct Candidate {
    statement: Arc<Statement>,
    name: Name,
    epoch: u64,
    /// What it is trusted with, or is about to be.
    terms: Arc<Terms>,
    /// When it was, if it is already.
    verified: Instant,
}

/// Where a lesson goes after its answers.
enum Next {
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
            cancelled: None,
        }
    }

    fn ask(&mut self, step: Step, questions: usize) -> Next {
        self.step = step;
        self.asked = questions;
        self.answers.clear();
        Next::Asked
    }

    fn answer(&self, index: usize) -> Result<&Answer, Reason> {
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
            if session.upstream.context.is_none() {
                session.question(|out| frontend::query(out, oracle::context_query().as_bytes()));
                return Ok(lesson.ask(Step::Context, 1));
            }
            session.lesson_subject(lesson, now, worker)
        });
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
    fn question(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
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

    fn answered(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        match lesson.step {
            Step::Context => {
                self.read_context(lesson.answer(0)?)?;
                self.lesson_subject(lesson, now, worker)
            }
            Step::Describe => self.described(lesson, now, worker),
            Step::Explain => self.explained(lesson, now, worker),
            Step::Prepare => self.parsed(lesson, worker),
            Step::Audit => self.audited(lesson, worker),
        }
    }

    fn read_context(&mut self, answer: &Answer) -> Result<(), Reason> {
        let [mode, settings] = &answer.values[..] else {
            return Err(Reason::OracleFailed);
        };
        let private = match self.upstream.local_objects {
            0 => (0, 0),
            objects => (self.client.0, objects),
        };
        let hasher = foldhash::quality::FixedState::default();
        let hash = hasher.hash_one((self.memory.identity, private, settings));
        self.upstream.context = Some(Context(hash));
        self.upstream.chooses_plans = mode == "auto";
        Ok(())
    }

    fn lesson_subject(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        if !self.upstream.chooses_plans {
            return Err(Reason::PlanCacheMode);
        }
        match &lesson.subject {
            Subject::Statement => self.teach(lesson, now, worker),
            Subject::Audit(statement, name) => {
                let (recipe, name) = (Arc::clone(statement.recipe()), *name);
                let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
                worker.scan.run(&lesson.text, self.upstream.dialect)?;
                let execute =
                    oracle::explain_execute(name.as_bytes(), &lesson.text, &worker.scan, eligible);
                let explain = oracle::explain(&lesson.text, &worker.scan);
                self.question(|out| frontend::query(out, &explain));
                self.question(|out| frontend::query(out, &oracle::explain_generic(&execute)));
                Ok(lesson.ask(Step::Audit, 2))
            }
        }
    }

    /// Finds out what is known of the text's statement, and asks what is not.
    fn teach(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let recipe = self.recipe(&lesson.text, worker)?;
        let (text, scan) = (&lesson.text, &worker.scan);
        let dialect = self.upstream.dialect;
        let eligible = recipe.judgement(|| judge(text, scan, dialect))?;
        let inline = scan.literals().iter().zip(&eligible.arguments);
        if inline
            .filter(|(_, argument)| !**argument)
            .any(|(literal, _)| oracle::is_volatile(rewrite::token(text, literal)))
        {
            return Err(Reason::VolatileLiteral);
        }
        let context = self.upstream.context.ok_or(Reason::OracleFailed)?;
        let statement = worker
            .table
            .statement(&recipe, eligible, context, text, scan)?;
        let epoch = self.upstream.database.epoch();
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
            if !worker.table.take_question(now) {
                statement.settle(Verdict::Unasked);
                return Err(Reason::Budget);
            }
            worker.counters().add(Counter::OracleQuestions, 1);
        }
        let name = self.upstream.cache.begin(Arc::clone(&statement), epoch);
        self.close_owed(worker);
        let step = if trusted.is_some() {
            Step::Prepare
        } else {
            let body = text.get(scan.body()).unwrap_or_default();
            self.question(|out| {
                frontend::parse(out, b"", body, &[]);
                frontend::describe_statement(out, b"");
                frontend::sync(out);
            });
            Step::Describe
        };
        self.question(|out| {
            frontend::parse(out, name.as_bytes(), statement.text(), statement.oids());
            frontend::describe_statement(out, name.as_bytes());
            frontend::sync(out);
        });
        let (verified, terms) = trusted.unwrap_or_default();
        lesson.candidate = Some(Candidate {
            verified,
            terms,
            statement,
            name,
            epoch,
        });
        Ok(lesson.ask(step, if step == Step::Prepare { 1 } else { 2 }))
    }

    /// Both texts were parsed and described: they must agree, and the inferred types must be allowed.
    fn described(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let [original, rewritten] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if rewritten.error.is_some() {
            self.upstream.cache.revoke(candidate.statement.key());
        }
        if !original.is_good() {
            return Err(self.give_up(&candidate));
        }
        if !rewritten.is_good() {
            let state = rewritten.sqlstate();
            return match rewritten.parameter_named() {
                Some(argument) => self.demote(lesson, &candidate, &[argument], now, worker),
                None => Err(self.decline(&candidate, Reason::Refused, &state, worker)),
            };
        }
        worker.counters().add(Counter::StatementsPrepared, 1);
        if original.description != rewritten.description {
            return Err(self.decline(&candidate, Reason::DifferentResult, "", worker));
        }
        let types = rewritten.types.clone().unwrap_or_default();
        if types.len() != candidate.statement.oids().len() {
            return Err(self.decline(&candidate, Reason::Refused, "", worker));
        }
        let recipe = Arc::clone(candidate.statement.recipe());
        let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
        let forbidden = forbidden(&types, eligible);
        if !forbidden.is_empty() {
            return self.demote(lesson, &candidate, &forbidden, now, worker);
        }
        worker.scan.run(&lesson.text, self.upstream.dialect)?;
        let (text, scan) = (&lesson.text, &worker.scan);
        let execute = oracle::explain_execute(candidate.name.as_bytes(), text, scan, eligible);
        let catalog = oracle::catalog_query(&types, eligible);
        self.question(|out| frontend::query(out, &oracle::explain(text, scan)));
        self.question(|out| frontend::query(out, &execute));
        self.question(|out| frontend::query(out, &oracle::explain_generic(&execute)));
        if let Some(catalog) = &catalog {
            self.question(|out| frontend::query(out, catalog));
        }
        let terms = Terms {
            types: types.into(),
            guards: Box::default(),
        };
        lesson.candidate = Some(Candidate {
            terms: Arc::new(terms),
            verified: now,
            ..candidate
        });
        Ok(lesson.ask(Step::Explain, 3 + usize::from(catalog.is_some())))
    }

    /// The plans are here: the custom plan must be the original's to the letter, the generic plan the
    /// same but for its constants.
    fn explained(
        &mut self,
        lesson: &mut Lesson,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        if lesson.answers.iter().any(|answer| !answer.is_good()) {
            return Err(self.give_up(&candidate));
        }
        let [original, custom, generic] = [0, 1, 2].map(|k| {
            let answer = lesson.answers.get(k);
            answer.map(Answer::plan).unwrap_or_default()
        });
        if !proof::is_one_tree(&original) {
            return Err(self.decline(&candidate, Reason::RewriteRules, "", worker));
        }
        if let Some(catalog) = lesson.answers.get(3) {
            let domains = match oracle::read_catalog(catalog) {
                Ok(domains) => domains,
                Err(reason) => return Err(self.decline(&candidate, reason, "", worker)),
            };
            if !domains.is_empty() {
                let demoted = positions(&candidate.terms.types, |oid| domains.contains(&oid));
                return self.demote(lesson, &candidate, &demoted, now, worker);
            }
        }
        if original != custom {
            return Err(self.decline(&candidate, Reason::DifferentPlan, "", worker));
        }
        let types = &candidate.terms.types;
        let Some(guards) = proof::same_plan(&original, &generic, types) else {
            if let Some(narrow) = candidate.statement.recipe().narrowed() {
                return self.narrow(lesson, &candidate, narrow, now, worker);
            }
            return Err(self.decline(&candidate, Reason::GenericPlan, "", worker));
        };
        worker.counters().add(Counter::OracleAccepted, 1);
        tracing::debug!(
            shape = candidate.statement.recipe().shape().text_for_display(),
            "trusted"
        );
        let terms = Arc::new(Terms {
            types: types.clone(),
            guards: guards.into(),
        });
        candidate.statement.settle(Verdict::Trusted {
            epoch: candidate.epoch,
            at: candidate.verified,
            terms: Arc::clone(&terms),
        });
        let key = candidate.statement.key();
        self.upstream.cache.settle(key, candidate.verified, terms);
        Ok(Next::Learned)
    }

    /// A trusted statement was parsed on this connection: it must infer the types it was trusted with.
    fn parsed(&mut self, lesson: &Lesson, worker: &Worker) -> Result<Next, Reason> {
        let candidate = lesson.candidate.clone().ok_or(Reason::OracleFailed)?;
        let key = candidate.statement.key();
        let [answer] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !answer.is_good() {
            self.upstream.cache.revoke(key);
            candidate.statement.settle(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        worker.counters().add(Counter::StatementsPrepared, 1);
        if answer.types.as_deref() != Some(&candidate.terms.types) {
            // The catalog has changed unseen: everything about this statement is asked anew.
            self.upstream.cache.remove(key);
            candidate.statement.settle(Verdict::Unasked);
            return Err(Reason::Refused);
        }
        let Candidate {
            verified, terms, ..
        } = candidate;
        self.upstream.cache.settle(key, verified, terms);
        Ok(Next::Learned)
    }

    fn audited(&mut self, lesson: &Lesson, worker: &Worker) -> Result<Next, Reason> {
        let Subject::Audit(statement, _) = &lesson.subject else {
            return Err(Reason::OracleFailed);
        };
        let [original, generic] = &lesson.answers[..] else {
            return Err(Reason::OracleFailed);
        };
        if !original.is_good() || !generic.is_good() {
            return Err(Reason::OracleFailed);
        }
        let key = statement.key();
        let terms = self
            .upstream
            .cache
            .lookup(key)
            .map(|entry| Arc::clone(&entry.terms));
        let terms = terms.ok_or(Reason::Unstable)?;
        let guards = proof::same_plan(&original.plan(), &generic.plan(), &terms.types);
        let passed = guards.as_deref() == Some(&terms.guards);
        worker.counters().add(
            if passed {
                Counter::AuditsPassed
            } else {
                Counter::AuditsFailed
            },
            1,
        );
        if passed {
            return Ok(Next::Learned);
        }
        self.upstream.cache.remove(statement.key());
        if let Some(narrow) = statement.recipe().narrowed() {
            worker.table.narrow(statement.recipe(), narrow);
            return Ok(Next::Learned);
        }
        let candidate = Candidate {
            statement: Arc::clone(statement),
            name: Name::default(),
            epoch: self.upstream.database.epoch(),
            terms,
            verified: Instant::default(),
        };
        Err(self.decline(&candidate, Reason::GenericPlan, "", worker))
    }

    /// Keeps the arguments at these indexes inline from now on, and tries again.
    fn demote(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: &[usize],
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        let recipe = candidate.statement.recipe();
        let Some(eligible) = recipe.eligible() else {
            return Err(Reason::Unstable);
        };
        let narrow = without(eligible, arguments);
        if narrow == eligible.arguments {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        worker.counters().add(Counter::Demotions, 1);
        self.narrow(lesson, candidate, narrow, now, worker)
    }

    fn narrow(
        &mut self,
        lesson: &mut Lesson,
        candidate: &Candidate,
        arguments: Vec<bool>,
        now: Instant,
        worker: &mut Worker,
    ) -> Result<Next, Reason> {
        self.upstream.cache.remove(candidate.statement.key());
        candidate.statement.settle(Verdict::Unasked);
        lesson.rounds += 1;
        if lesson.rounds > MAX_ROUNDS {
            return Err(self.decline(candidate, Reason::Refused, "", worker));
        }
        let recipe: &Recipe = candidate.statement.recipe();
        worker.table.narrow(recipe, arguments);
        self.teach(lesson, now, worker)
    }

    fn decline(
        &mut self,
        candidate: &Candidate,
        reason: Reason,
        detail: &str,
        worker: &Worker,
    ) -> Reason {
        let statement = &candidate.statement;
        self.upstream.cache.remove(statement.key());
        statement.settle(Verdict::Declined {
            reason,
            epoch: candidate.epoch,
        });
        worker.counters().add(Counter::OracleDeclined, 1);
        tracing::debug!(
            reason = reason.label(),
            sqlstate = detail,
            shape = statement.recipe().shape().text_for_display(),
            "declined"
        );
        reason
    }

    /// The questions themselves failed: nothing is known. After a few times that counts as an answer.
    fn give_up(&mut self, candidate: &Candidate) -> Reason {
        let statement = &candidate.statement;
        self.upstream.cache.remove(statement.key());
        let reason = Reason::OracleFailed;
        statement.settle(if statement.count_failure() {
            Verdict::Declined {
                reason,
                epoch: candidate.epoch,
            }
        } else {
            Verdict::Unasked
        });
        reason
    }
}

/// The indexes at which `wanted` holds.
fn positions(types: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<usize> {
    let matching = types.iter().enumerate().filter(|(_, oid)| wanted(**oid));
    matching.map(|(index, _)| index).collect()
}

/// The arguments whose inferred types no string may be bound to (rules 4 and 5 of the fidelity rules).
fn forbidden(types: &[u32], eligible: &Eligible) -> Vec<usize> {
    let lifted = eligible.arguments.iter().zip(&eligible.interval_casts);
    let casts = lifted.filter_map(|(argument, cast)| argument.then_some(*cast));
    let forbidden = types
        .iter()
        .zip(casts)
        .enumerate()
        .filter(|(_, (oid, cast))| oracle::is_forbidden(**oid, *cast));
    forbidden.map(|(index, _)| index).collect()
}

/// The arguments of `eligible` without those at the given indexes among them.
fn without(eligible: &Eligible, indexes: &[usize]) -> Vec<bool> {
    let mut argument = 0;
    let keep = eligible.arguments.iter().map(|lifted| {
        let keep = *lifted && !indexes.contains(&argument);
        argument += usize::from(*lifted);
        keep
    });
    keep.collect()
}
