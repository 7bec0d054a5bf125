//! Lessons: the conversations with the oracle that precede a query while it waits.
//!
//! They are held in front of a query rather than behind it, so that the client's own text is the
//! last the server has seen, and only outside transactions. A lesson is a few round trips:
//!
//! - *watch*: whether the catalog has changed, when that is due or may have happened unseen;
//! - *names*: which names have hazards, when nobody has asked since that may have changed;
//! - *context*: settings and who the session is, when anything may have changed them;
//! - *columns*: the types of the columns that rows are stored in, if it has rows;
//! - *describe*: the original and the rewritten text are parsed and described;
//! - *explain*: the plans of both, the generic plan, and what only the catalog knows;
//! - *keys*, *statistics*: whether the generic plan may stand for the plans of other values;
//! - *prepare*: a statement already trusted is parsed on this connection, and must infer the same
//!   types;
//! - *audit*: the plan proof again, with the literals of the moment.

use super::lesson::{Candidate, Lesson, Next, Step, Subject, careful_batch};
use super::oracle::{self, Answer};
use super::settings::{context_query, digest};
use super::{Session, Turn};
use super::{catalog, lists, naming};
use crate::convert::{Lent, find, judge};
use crate::metrics::Counter;
use crate::reason::Reason;
use crate::sql::effect;
use crate::sql::hazard::Hazards;
use crate::sql::scan::Scan;
use crate::standing::ServerSettings;
use crate::statement::database::NamesClaim;
use crate::statement::mirror::Name;
use crate::statement::names::{Names, Row};
use crate::statement::{Millis, Plans, Statement, Terms, Verdict};
use crate::wire::frontend;
use std::sync::Arc;

/// Milliseconds after which a question somebody else put counts as forgotten.
const PATIENCE: u64 = 10_000;

impl Session {
    /// Begins the lesson in `self.turn`.
    pub(super) fn start_lesson(&mut self, now: Millis, lent: &mut Lent) {
        self.advance(now, lent, |session, lesson, lent| {
            let due = matches!(lesson.subject, Subject::Watch) && !lesson.is_behind;
            let interval = lent.settings.catalog_watch;
            let unverified = session.upstream.standing.is_unverified(now);
            let database = &session.upstream.standing.database;
            if due || unverified || database.take_watch(now, interval) {
                let sign = catalog::sign();
                return Ok(session.ask_catalog(lesson, Step::Watch(now), sign.as_bytes()));
            }
            session.begin_lesson(lesson, now, lent)
        });
    }

    fn begin_lesson(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        if self.upstream.standing.is_unverified(now) {
            return Err(Reason::Unproven);
        }
        if matches!(lesson.subject, Subject::Watch) && !lesson.is_behind {
            return Ok(Next::Learned);
        }
        let knows = self.upstream.standing.knows_names();
        if !knows || self.upstream.standing.database.doubts_names() {
            lesson.claim = self.upstream.standing.database.claim_names(now);
            if lesson.claim.is_none() && !knows {
                return Err(Reason::Unproven);
            }
        }
        if lesson.claim.is_some() {
            let names = naming::names(self.upstream.standing.dialect.server_major);
            return Ok(self.ask_catalog(lesson, Step::Names, names.as_bytes()));
        }
        let contexts = self.upstream.standing.database.contexts();
        self.upstream.standing.survey_late()?;
        if self.upstream.standing.is_unverified(now) {
            return Err(Reason::Unproven);
        }
        if self.upstream.standing.context.is_none()
            || self.upstream.standing.context_count != contexts
        {
            // What changes from now on may not be in the answer.
            self.upstream.standing.context_count = contexts;
            let listens = lent.settings.ddl_notices;
            self.question(|out| frontend::query(out, context_query(listens).as_bytes()));
            return Ok(lesson.ask(Step::Context, 1));
        }
        self.lesson_subject(lesson, now, lent)
    }

    /// The catalog was looked at. An answer that failed says nothing; the age of statements bounds
    /// what that can cost.
    fn watched(&mut self, answer: &Answer, asked: Millis, now: Millis) {
        let Ok(sign) = <&[String; 2]>::try_from(&answer.values[..]) else {
            return;
        };
        if !answer.is_good() {
            return;
        }
        let suspect = self.upstream.standing.unverified.is_some();
        self.upstream.standing.is_new = false;
        if self
            .upstream
            .standing
            .database
            .observed(sign, asked, now, suspect)
        {
            tracing::debug!(client = self.client.0, "the catalog has changed");
        }
        if suspect {
            self.upstream.standing.verified();
        }
    }

    /// Takes a step with the lesson out of the turn, and puts it back if it goes on.
    pub(super) fn advance(
        &mut self,
        now: Millis,
        lent: &mut Lent,
        step: impl FnOnce(&mut Self, &mut Lesson, &mut Lent) -> Result<Next, Reason>,
    ) {
        let Turn::Learning(mut lesson) = std::mem::replace(&mut self.turn, Turn::Free) else {
            return;
        };
        let next = step(self, &mut lesson, lent).unwrap_or_else(Next::Over);
        match next {
            Next::Asked => self.turn = Turn::Learning(lesson),
            Next::Learned => {
                self.upstream.standing.setbacks.clear();
                self.lesson_over(&lesson, None, now, lent);
            }
            Next::Over(reason) => self.lesson_over(&lesson, Some(reason), now, lent),
        }
    }

    fn lesson_over(
        &mut self,
        lesson: &Lesson,
        reason: Option<Reason>,
        now: Millis,
        lent: &mut Lent,
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
                self.relay_query(&text, reason, lent);
            }
            _ => self.resume(now, lent),
        }
    }

    pub(super) fn answered(
        &mut self,
        lesson: &mut Lesson,
        now: Millis,
        lent: &mut Lent,
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
            Step::Watch(_) => self.begin_lesson(lesson, now, lent),
            Step::Names if !self.upstream.standing.knows_names() => Err(Reason::Unproven),
            Step::Names => self.begin_lesson(lesson, now, lent),
            Step::Context => {
                let values = digest(&lesson.answer(0)?.values)?;
                let answer = Answer {
                    values,
                    ..Answer::default()
                };
                self.read_context(&answer, lent)?;
                let lookups = self.upstream.standing.mirror.lookups();
                self.upstream.standing.patience.learned(lookups);
                self.upstream.standing.idle_patience.learned(lookups);
                self.lesson_subject(lesson, now, lent)
            }
            Step::Columns => self.columns_known(lesson, now, lent),
            Step::Describe => self.described(lesson, now, lent),
            Step::Explain => self.explained(lesson, now, lent),
            Step::Keys => self.keys_known(lesson, now, lent),
            Step::Statistics => self.statistics_known(lesson, now, lent),
            Step::Prepare => self.parsed(lesson, lent),
            Step::Audit => self.audited(lesson, lent),
        }
    }

    fn read_context(&mut self, answer: &Answer, lent: &Lent) -> Result<(), Reason> {
        let [chooses, quiet, nulls, memory, indirect, settings] = &answer.values[..] else {
            return Err(Reason::OracleFailed);
        };
        let interned = lent
            .shapes
            .contexts()
            .intern(&self.upstream.standing.origin, settings);
        self.upstream.standing.context = Some(interned.context());
        self.upstream.standing.interned = Some(interned);
        self.upstream.standing.settings = ServerSettings {
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
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        self.upstream.standing.check_settings()?;
        match &lesson.subject {
            Subject::Watch => Ok(Next::Learned),
            Subject::Statement(_) => self.teach(lesson, now, lent),
            Subject::Audit(statement, name) => {
                let (recipe, name) = (Arc::clone(statement.recipe()), *name);
                let eligible = recipe.eligible().ok_or(Reason::Unstable)?;
                let text = &lesson.text;
                lent.scan_again(text, self.upstream.standing.dialect, &recipe)?;
                let name = name.as_bytes();
                let execute = oracle::explain_execute(name, text, &lent.scan, eligible, None);
                let explain = oracle::explain(text, &lent.scan);
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
        now: Millis,
        lent: &mut Lent,
    ) -> Result<Next, Reason> {
        // First: whoever moves it changes the names before.
        let epoch = self.upstream.standing.database.epoch();
        if self.upstream.standing.context_count != self.upstream.standing.database.contexts()
            || !self.upstream.standing.knows_names()
        {
            return Err(Reason::Unproven);
        }
        let names = Arc::clone(self.upstream.standing.names());
        let survey = effect::survey(&lesson.text, &*names);
        let mut recipe = find::recipe(&lesson.text, &self.upstream.standing, lent)?;
        if survey.reads_partitions() && recipe.shape().has_rows() {
            // Rows of arrays are always planned once.
            lent.shapes.unfold(&recipe);
            recipe = find::recipe(&lesson.text, &self.upstream.standing, lent)?;
        }
        let (text, scan) = (&lesson.text, &lent.scan);
        let dialect = self.upstream.standing.dialect;
        let eligible = recipe.judgement(scan, || judge(text, scan, dialect))?;
        if oracle::has_volatile_inline(text, scan, eligible) {
            return Err(Reason::VolatileLiteral);
        }
        let plans = match lesson.subject {
            // A generic plan locks all partitions, whatever the literals say.
            Subject::Statement(Plans::Generic) if survey.reads_partitions() => Plans::Custom,
            Subject::Statement(plans) => plans,
            Subject::Watch | Subject::Audit(..) => Plans::Generic,
        };
        let statement = find::statement(&recipe, plans, text, &self.upstream.standing, lent)?;
        if let Some(reason) = hazard_of(survey.hazards) {
            statement.record(Verdict::Declined { reason, epoch });
        }
        if let Some(reason) = statement.settled_against(epoch) {
            return Err(reason);
        }
        let trusted = match statement.verdict() {
            Verdict::Trusted {
                epoch: known,
                at,
                terms,
            } if known == epoch && now.since(at) <= lent.settings.statement_max_age => {
                Some((at, terms))
            }
            _ => None,
        };
        if trusted.is_none() {
            claim(&statement, lesson, now, lent)?;
        }
        let is_trusted = trusted.is_some();
        let (verified, terms) = trusted.unwrap_or_else(|| {
            let terms = Terms {
                effect: survey.hazards.effect(),
                ..Terms::default()
            };
            (now, Arc::new(terms))
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
        Ok(self.prepare(lesson, candidate, is_trusted, lent))
    }

    /// Gives the candidate, which is for the text the worker's scanner has just scanned, a name on
    /// this connection and has it parsed.
    pub(super) fn prepare(
        &mut self,
        lesson: &mut Lesson,
        mut candidate: Candidate,
        is_trusted: bool,
        lent: &Lent,
    ) -> Next {
        let statement = Arc::clone(&candidate.statement);
        let (name, evicted) = self
            .upstream
            .standing
            .mirror
            .begin(statement, candidate.epoch);
        candidate.name = name;
        let counters = lent.counters();
        counters.add(Counter::StatementsEvicted, evicted.into());
        self.close_owed(lent);
        let next = self.parse(lesson, &candidate, is_trusted, &lent.scan);
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

/// The names whose use has hazards are here. An answer that cannot be read to its end makes all of
/// them hazardous; one that failed says nothing.
fn named(answer: &Answer, claim: NamesClaim, now: Millis) {
    if answer.error.is_some() && !answer.overflowed {
        return;
    }
    let names = read_names(answer).unwrap_or_else(Names::unknown);
    tracing::debug!(count = names.len(), "asked for names with hazards");
    claim.answer(names, now);
}

fn read_names(answer: &Answer) -> Option<Names> {
    let (rows, []) = answer.values.as_chunks() else {
        return None;
    };
    let rows: Option<Vec<Row<'_>>> = rows.iter().map(Row::read).collect();
    rows.filter(|_| !answer.overflowed)
        .map(|rows| Names::of_rows(&rows))
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

/// Claims the right to ask about this statement, and a question from the budget. A lesson is about
/// one shape, in however many forms.
fn claim(statement: &Statement, lesson: &Lesson, now: Millis, lent: &Lent) -> Result<(), Reason> {
    if !statement.claim(now, PATIENCE) {
        return Err(Reason::Threshold);
    }
    if lesson.candidate.is_none() {
        if !lent.shapes.take_question(now) {
            statement.record(Verdict::Unasked);
            return Err(Reason::Budget);
        }
        lent.counters().add(Counter::OracleQuestions, 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::effect::Known as _;
    use crate::statement::database::Database;

    #[test]
    fn an_answer_that_is_not_read_to_its_end_makes_all_names_hazardous() {
        let of = |cells: &[&str], overflowed| {
            let answer = Answer {
                values: cells.iter().map(ToString::to_string).collect(),
                overflowed,
                ..Answer::default()
            };
            let database = Arc::new(Database::default());
            let claim = database.claim_names(Millis(0)).unwrap();
            named(&answer, claim, Millis(0));
            database.names(0).1.unwrap().of(b"t")
        };
        let row = ["r", "r1", "other", "f", ""];
        assert!(of(&row, false).is_none());
        assert_eq!(of(&row, true), Hazards::ALL);
        assert_eq!(of(&row[..4], false), Hazards::ALL, "half a row");
        let unknown = ["x", "r1", "other", "f", ""];
        assert_eq!(of(&[row, unknown].concat(), false), Hazards::ALL);
    }
}
