//! One lesson: what it is about, which of its questions are in flight, and their answers.

use super::answer::{self, Answer};
use super::candidate::Candidate;
use super::question::Source;
use super::state::{About, State, Step};
use super::topic::{Subject, Topic};
use super::{Env, Next, audit, blame, chosen, columns, context, describe, explain, keys, lengths};
use super::{names, prepare, statistics, teach, travel, values, watch};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::statement::Millis;
use crate::statement::database::{AsOf, FirstTurn};
use crate::wire::backend::{self, Status};
use crate::wire::frame::HEADER;

/// A conversation with the oracle.
///
/// [`Lesson::begin`] puts the first questions. Every reply to a question goes to
/// [`Lesson::reply`], or to [`Lesson::large`] if it is too large to be looked at. After each call
/// the caller sends what it finds in [`Env::asks`], and does what the [`Next`] says.
#[derive(Debug)]
pub struct Lesson {
    /// What the lesson is about, and how far it has come.
    topic: Topic,
    /// What the questions in flight are about; idle only before the first and after the last.
    state: State,
    /// The complete answers to the questions in flight, in their order: fewer than `asked` whenever
    /// the caller sees the lesson.
    answers: Vec<Answer>,
    /// The answer that is being received: it becomes one of `answers` at its ReadyForQuery.
    current: Answer,
    /// How many questions the state has put: at least one, unless it is idle.
    asked: usize,
    /// Where the answers that the state needs come from.
    sources: Vec<Source>,
    /// When it did.
    since: Millis,
    /// As of when it did.
    as_of: Option<AsOf>,
    /// The last error frame of a question that was cancelled, by whomever, or else the first of
    /// what undoes the questions. Once set, the lesson is over at the end of the step.
    cancelled: Option<Vec<u8>>,
    /// The questions are put inside the client's transaction. Never changes once it has begun.
    is_inside: bool,
    /// The turn of a connection that was never asked for its context before.
    turn: Option<FirstTurn>,
}

impl Lesson {
    /// A lesson that a query with this text waits for.
    #[must_use]
    pub fn new(subject: Subject, text: Vec<u8>) -> Self {
        Self {
            topic: Topic {
                subject,
                text,
                is_behind: false,
                rounds: 0,
                is_paid: false,
                is_earned: false,
            },
            state: State::Idle,
            answers: Vec::new(),
            current: Answer::default(),
            asked: 0,
            sources: Vec::new(),
            since: Millis::default(),
            as_of: None,
            cancelled: None,
            is_inside: false,
            turn: None,
        }
    }

    /// A lesson that no query waits for.
    #[must_use]
    pub fn behind(subject: Subject, text: Vec<u8>) -> Self {
        let mut lesson = Self::new(subject, text);
        lesson.topic.is_behind = true;
        lesson
    }

    /// Whether no query waited for the lesson when it began.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.topic.is_behind
    }

    /// The text that the lesson is about.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.topic.text
    }

    /// What the lesson is about.
    #[must_use]
    pub const fn about(&self) -> &Subject {
        &self.topic.subject
    }

    /// The error frame that ends the query which waits: of a question that was cancelled, by
    /// whomever, or of what should have undone the questions inside a transaction.
    #[must_use]
    pub fn cancelled(&self) -> Option<&[u8]> {
        self.cancelled.as_deref()
    }

    /// Puts the first questions, if there are any to be put.
    pub fn begin(&mut self, env: &mut Env<'_>) -> Next {
        self.is_inside = env.standing.status == Status::Transaction;
        env.asks.is_inside = self.is_inside;
        let is_first = env.standing.interned.is_none();
        self.turn = is_first.then(|| env.standing.database.takes_turn());
        let before = env.asks.questions;
        let first = self.first(env);
        self.go_on(first, before, env)
    }

    /// Collects one reply. If it was the last that the step has waited for, the lesson goes on, and
    /// where to is returned.
    pub fn reply(&mut self, tag: u8, frame: &[u8], env: &mut Env<'_>) -> Option<Next> {
        let body = frame.get(HEADER..).unwrap_or_default();
        let most = match self.state {
            State::Names(_) => answer::MAX_NAMES,
            _ => answer::MAX_ANSWER,
        };
        self.current.note(tag, body, most);
        if tag == backend::ERROR {
            let undoes = self.is_inside && self.cancelled.is_none() && self.undoes();
            if undoes || blame::is_cancellation(body) {
                self.cancelled = Some(frame.to_vec());
            }
        }
        if tag != backend::READY_FOR_QUERY {
            return None;
        }
        self.answers.push(std::mem::take(&mut self.current));
        if self.answers.len() < self.asked {
            return None;
        }
        env.asks.is_inside = self.is_inside;
        self.spend(env);
        let before = env.asks.questions;
        let step = self.answered(env);
        Some(self.go_on(step, before, env))
    }

    /// Whether the answer that is being received is to what undoes the questions: before the first,
    /// behind each, and behind the last.
    const fn undoes(&self) -> bool {
        let index = self.answers.len();
        index.is_multiple_of(2) || index + 1 == self.asked
    }

    /// Leaves of the answers those to questions, and notes what they were told from.
    fn keep_questions(&mut self, env: &mut Env<'_>) -> Vec<Answer> {
        let answers = std::mem::take(&mut self.answers);
        if !self.is_inside {
            return self.with_known(answers, env);
        }
        let isolation = answers.first().and_then(|answer| answer.values.first());
        env.standing.has_old_snapshot |= isolation.is_none_or(|level| level != "read committed");
        let behind = answers.into_iter().skip(1);
        behind
            .step_by(2)
            .take((self.asked / 2).saturating_sub(1))
            .collect()
    }

    /// Puts what was known already between the answers of the server, and has others know what it
    /// has said.
    fn with_known(&mut self, answers: Vec<Answer>, env: &Env<'_>) -> Vec<Answer> {
        let mut answers = answers.into_iter();
        let mut all = Vec::with_capacity(self.sources.len());
        for source in self.sources.drain(..) {
            let (answer, question) = match source {
                Source::Known(answer) => (Some(answer), None),
                Source::Server => (answers.next(), None),
                Source::Catalog(question) => (answers.next(), Some(question)),
            };
            if let (Some(question), Some(answer), Some(as_of)) = (question, &answer, self.as_of)
                && answer.is_good()
                && !answer.notices
            {
                let database = &env.standing.database;
                database.remember(question, (as_of, self.since), &answer.values);
            }
            all.extend(answer);
        }
        all
    }

    /// Records what the questions of the state have cost. Looks at the catalog and questions about
    /// names have allowances of their own, and a statement that is prepared is expected to pay.
    fn spend(&self, env: &Env<'_>) {
        let took = env.now.since(self.since);
        let counters = env.lent.counters();
        counters.add(Counter::Questions, self.asked as u64);
        counters.add(Counter::QuestionsMillis, took);
        match self.state {
            State::Glance(..) | State::Watch(..) => {
                if self.topic.only_names() || env.standing.unverified.is_some() {
                    env.standing.database.pays_for_look(took);
                }
            }
            State::Names(_) => env.standing.database.pays_for_names(took),
            // A look that saves the question behind it more than it takes.
            State::Kinds(_) | State::About(_, About::Prepare) => {}
            State::About(..) if self.topic.is_earned => {}
            State::Context(_) => {
                let questions = env.lent.shapes.questions();
                questions.spend_on_settings(self.asked, took, env.now);
                env.standing.database.pays_for_lesson(self.asked, took);
            }
            State::Idle | State::Audit(_) | State::Travel(..) | State::About(..) => {
                env.lent.shapes.questions().spend(self.asked, took, env.now);
                env.standing.database.pays_for_lesson(self.asked, took);
            }
        }
    }

    /// Notes a reply that is too large to be looked at, and is swallowed: but for a notice, the
    /// oracle is too talkative.
    pub const fn large(&mut self, tag: u8) {
        self.current.overflowed |= tag != backend::NOTICE;
        self.current.notices |= tag == backend::NOTICE;
    }

    /// Does what the step leads to; `before` is how many questions there were when it began.
    fn go_on(&mut self, mut step: Result<Step, Reason>, before: usize, env: &mut Env<'_>) -> Next {
        loop {
            match step {
                Ok(Step::Teach(plans)) => step = teach::teach(plans, &mut self.topic, env),
                Ok(Step::Ask(state)) => {
                    self.state = state;
                    env.asks.end();
                    self.asked = env.asks.questions - before;
                    self.sources = std::mem::take(&mut env.asks.sources);
                    self.since = env.now;
                    let standing = &env.standing;
                    let as_of = |context| standing.database.as_of(context);
                    self.as_of = standing.context.map(as_of);
                    debug_assert!(self.answers.is_empty());
                    if self.asked > 0 {
                        return Next::Asked;
                    }
                    step = self.answered(env);
                }
                Ok(Step::Learned) => {
                    env.standing.setbacks.clear();
                    return Next::Learned;
                }
                Err(reason) => return Next::Over(reason),
            }
        }
    }

    /// The first step: a look at the catalog, if it is due or may have changed unseen.
    fn first(&self, env: &mut Env<'_>) -> Result<Step, Reason> {
        let is_due = self.topic.only_watches() || self.topic.only_names();
        let is_unverified = env.standing.is_unverified(env.now);
        let interval = env.lent.settings.catalog_watch;
        let may_look = !(self.is_inside && env.standing.sees_otherwise());
        let takes = may_look && env.standing.database.take_watch(env.now, interval);
        if is_due || is_unverified || takes {
            return Ok(watch::ask(self.is_inside, None, env));
        }
        self.prelude(env)
    }

    /// What has to be known before the subject: the names with hazards, then the context.
    fn prelude(&self, env: &mut Env<'_>) -> Result<Step, Reason> {
        if env.standing.is_unverified(env.now) {
            return Err(Reason::Unproven);
        }
        if self.topic.only_watches() {
            return Ok(Step::Learned);
        }
        let knows = env.standing.knows_names();
        let database = &env.standing.database;
        let is_clear = match self.topic.needs_all_names() {
            true => database.is_clear() && database.knows_draws(),
            false => database.is_clear() || !self.topic.is_about_statement(),
        };
        if !knows || !is_clear || env.standing.database.doubts_names() {
            let may_look = !(self.is_inside && env.standing.sees_otherwise());
            let database = &env.standing.database;
            let insists = env.lent.settings.is_eager() && !knows;
            let insist = || insists.then(|| database.insist_on_names(env.now));
            // Nobody else asks for nothing but the names.
            let for_pool = self.topic.only_names();
            let claim = || database.claim_names(env.now, for_pool).or_else(insist);
            match may_look.then(claim).flatten() {
                Some(claim) => return Ok(names::ask(claim, env)),
                None if !knows => return Err(Reason::Unproven),
                None => {}
            }
        }
        if self.topic.only_names() {
            env.standing.settle_residue();
            return Ok(Step::Learned);
        }
        let contexts = env.standing.database.contexts();
        let is_known = env.standing.context.is_some() && env.standing.context_count == contexts;
        // What the session has made would be part of the context.
        if env.standing.has_made_temporary() && !is_known {
            return Err(Reason::Unproven);
        }
        env.standing.survey_late()?;
        if env.standing.is_unverified(env.now) {
            return Err(Reason::Unproven);
        }
        let is_other = env.standing.context_count != contexts || env.standing.names_what_stays();
        if env.standing.context.is_none() || is_other {
            // What changes from now on may not be in the answer.
            env.standing.context_count = contexts;
            return Ok(context::ask(env));
        }
        self.subject(env)
    }

    /// The context is known: the subject's own questions.
    fn subject(&self, env: &mut Env<'_>) -> Result<Step, Reason> {
        env.standing.check_settings()?;
        match &self.topic.subject {
            Subject::Watch | Subject::Names | Subject::Session => Ok(Step::Learned),
            Subject::Statement(plans) => Ok(Step::Teach(*plans)),
            Subject::Audit(statement, name) => audit::ask(statement, *name, &self.topic.text, env),
            Subject::Travel(statement, name) => travel::follow(statement, *name, env),
        }
    }

    /// The state, if what was answered in it is of use: a transaction may see the catalog as nobody
    /// else does.
    ///
    /// # Errors
    /// [`Reason::InTransaction`]: it is not.
    fn of_use(&self, state: State, env: &mut Env<'_>) -> Result<State, Reason> {
        let looks = matches!(
            state,
            State::Glance(..) | State::Watch(..) | State::Kinds(_) | State::Names(_)
        );
        let is_old = self.is_inside && env.standing.sees_otherwise();
        if !is_old || !looks && env.standing.sees_the_present() {
            return Ok(state);
        }
        if let State::About(candidate, _) = state {
            candidate.leave(env.standing);
        }
        if looks {
            let database = &env.standing.database;
            database.looked_in_vain(self.since, env.now);
        }
        Err(Reason::InTransaction)
    }

    /// All answers are here.
    fn answered(&mut self, env: &mut Env<'_>) -> Result<Step, Reason> {
        let answers = self.keep_questions(env);
        let state = std::mem::replace(&mut self.state, State::Idle);
        env.is_pointless |= self.cancelled.is_some();
        match self.of_use(state, env)? {
            State::Idle => Err(Reason::OracleFailed),
            State::Glance(asked, glance) => {
                let is_same = watch::glanced((asked, glance), &answers, env)?;
                env.goes_on()?;
                match is_same {
                    true => self.prelude(env),
                    false => Ok(watch::ask(self.is_inside, Some(glance), env)),
                }
            }
            State::Watch(asked, made) => {
                watch::answered((asked, self.is_inside), made, &answers, env)?;
                env.goes_on()?;
                self.prelude(env)
            }
            State::Kinds(claim) => {
                env.goes_on()?;
                Ok(names::follow(claim, &answers, env))
            }
            State::Names(claim) => {
                names::answered(claim, &answers, env.now);
                env.goes_on()?;
                blame::check(&answers, env)?;
                if !env.standing.knows_names() {
                    return Err(Reason::Unproven);
                }
                self.prelude(env)
            }
            State::Context(asked) => {
                env.goes_on()?;
                blame::check(&answers, env)?;
                match context::answered(asked, &answers, env)? {
                    Some(step) => Ok(step),
                    None => self.subject(env),
                }
            }
            State::Audit(statement) => {
                env.goes_on()?;
                blame::check(&answers, env)?;
                audit::answered(&statement, &answers, env)?;
                match &self.topic.subject {
                    Subject::Audit(_, name) => travel::follow(&statement, *name, env),
                    _ => Ok(Step::Learned),
                }
            }
            State::Travel(statement, epoch, told) => {
                env.goes_on()?;
                Ok(travel::answered((statement, epoch), told, answers, env))
            }
            State::About(candidate, about) => {
                if env.is_pointless {
                    return Err(candidate.leave(env.standing));
                }
                let (decisive, parse) = (decisive(&about, &answers), parse(&about, &answers));
                candidate.check_blame(decisive, parse, env)?;
                learned_of(about, candidate, answers, &mut self.topic, env)
            }
        }
    }
}

/// Those of the answers that decide something.
fn decisive<'a>(about: &About, answers: &'a [Answer]) -> &'a [Answer] {
    match about {
        About::Prepare => prepare::decisive(answers),
        About::Columns
        | About::Describe
        | About::Explain(_)
        | About::Lengths(_)
        | About::Keys(_)
        | About::Chosen(..)
        | About::Statistics(_)
        | About::Values(_) => answers,
    }
}

/// The answer to the Parse of the candidate, if it was among the questions.
fn parse<'a>(about: &About, answers: &'a [Answer]) -> Option<&'a Answer> {
    match about {
        About::Describe => describe::parse(answers),
        About::Prepare => prepare::parse(answers),
        About::Columns
        | About::Explain(_)
        | About::Lengths(_)
        | About::Keys(_)
        | About::Chosen(..)
        | About::Statistics(_)
        | About::Values(_) => None,
    }
}

/// All answers to these questions about the candidate are here.
fn learned_of(
    about: About,
    candidate: Candidate,
    answers: Vec<Answer>,
    topic: &mut Topic,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    match about {
        About::Columns => columns::answered(candidate, &answers, topic, env),
        About::Describe => describe::answered(candidate, answers, topic, env),
        About::Explain(put) => explain::answered(put, candidate, answers, topic, env),
        About::Lengths(listed) => lengths::answered(*listed, candidate, &answers, topic, env),
        About::Keys(exposure) => keys::answered(exposure, candidate, &answers, topic, env),
        About::Chosen(meaning, exposure) => {
            chosen::answered((meaning, exposure), candidate, &answers, topic, env)
        }
        About::Statistics(exposure) => {
            statistics::answered(exposure, candidate, &answers, topic, env)
        }
        About::Values(valued) => values::answered(*valued, &candidate, &answers, topic, env),
        About::Prepare => prepare::answered(candidate, &answers, env),
    }
}
