//! A series: a text that is several statements, each of which is executed as a prepared statement.
//!
//! The server runs the statements of a Query one after the other in one transaction, which it ends
//! behind the last; and so it does with what stands between two Syncs (the protocol's chapter on
//! pipelining, `exec_simple_query` and `exec_execute_message` in `postgres.c`). Each is planned
//! when its turn comes, sees what those before it have done, and an error ends all. Since version
//! 13 each has a `statement_timeout` of its own, too.
//!
//! Invariants:
//! - all of them are executed so, or the text goes through as it came;
//! - none of them does anything to the session that those behind it, which have been sent by then,
//!   would have been decided otherwise for;
//! - once the first has been executed none can be repaired, so none of them is in doubt. Outside a
//!   transaction, where a statement alone always can, no other than the first answers with rows:
//!   those that another session has changed the columns of meanwhile fail
//!   (`RevalidateCachedQuery` in `plancache.c`).

use super::super::bind::{Call, bind_and_execute, returns_rows};
use super::super::choose::{choose, joins};
use super::super::habits::Sent;
use super::{Circumstances, Decision, Found, Subject};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::split;
use crate::statement::Key;
use crate::wire::backend::Status;
use std::ops::Range;

/// The statements of one query, all of them ready.
#[derive(Debug)]
pub struct Series {
    /// They, in their order.
    pub parts: Vec<Member>,
    /// Bind, Describe and Execute of all of them.
    pub messages: Vec<u8>,
}

/// One of them.
#[derive(Debug)]
pub struct Member {
    /// Where it stands in the text of the query.
    pub text: Range<usize>,
    /// What is to be executed.
    pub call: Call,
    /// Where its messages stand among those of all.
    pub messages: Range<usize>,
    /// It may answer with rows.
    pub returns_rows: bool,
    /// By how many microseconds it is likely to be quicker than its text.
    pub gain: i32,
}

/// Statements of a query that are looked at for having been met, behind the first that was not
/// often enough.
const MOST_MET: usize = 8;

impl Circumstances<'_> {
    /// What becomes of a text that is several statements, as the scan has just found.
    ///
    /// # Errors
    /// Why it is sent as it came: what forbids the first that may not be executed.
    #[cold]
    #[inline(never)]
    pub(super) fn series(&mut self, text: &[u8], is_settled: bool) -> Result<Decision, Reason> {
        // What stands between them, too, must be what the server can read.
        self.standing.check_encoding(text)?;
        let statements = split::statements(&mut self.lent.scan, text)?;
        let mut series = Series {
            parts: Vec::with_capacity(statements.len()),
            messages: Vec::with_capacity(text.len()),
        };
        let mut met = 0;
        for range in statements {
            match self.part(text, range.clone(), is_settled, &mut series) {
                Ok(None) => {}
                Ok(Some(subject)) => return Ok(Decision::Ask(subject, range)),
                // Each of them counts as met.
                Err(Reason::Threshold) if met < MOST_MET => met += 1,
                Err(reason) => return Err(reason),
            }
        }
        if met > 0 {
            return Err(Reason::Threshold);
        }
        for part in &series.parts {
            if let Some(subject) = self.counted(part.call.key) {
                return Ok(Decision::Ask(subject, part.text.clone()));
            }
        }
        let gain = series.parts.iter().map(|part| part.gain);
        let gain = gain.fold(0, i32::saturating_add);
        self.habits.sent = Sent::default();
        self.choose_for(&series)?;
        self.habits.sent.gain = gain;
        Ok(Decision::Series(Box::new(series)))
    }

    /// By which route all of them go. Only where they are executions of one statement their time
    /// says something of it.
    ///
    /// # Errors
    /// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
    fn choose_for(&mut self, series: &Series) -> Result<(), Reason> {
        let Some(first) = series.parts.first() else {
            return Ok(());
        };
        let (key, count) = (first.call.key, series.parts.len());
        let are_all = series.parts.iter().all(|part| part.call.key == key);
        if !self.lent.settings.trials || !are_all {
            return Ok(());
        }
        let together = u32::try_from(count).unwrap_or(u32::MAX);
        match self.standing.mirror.held(key) {
            Some(entry) => choose(entry, self.habits, (self.clock, together)),
            None => Ok(()),
        }
    }

    /// Whether a statement may be executed with those before it, as far as by its time.
    ///
    /// # Errors
    /// [`Reason::Slower`] if the original is to be sent.
    fn may_join(&mut self, key: Key, series: &Series) -> Result<(), Reason> {
        let before = series.parts.last().map(|part| part.call.key);
        if !self.lent.settings.trials || before == Some(key) {
            return Ok(());
        }
        let firsts = series.parts.first().map(|part| part.call.key);
        for (key, is_first) in [(firsts, false), (Some(key), firsts.is_none())] {
            if let Some(entry) = key.and_then(|key| self.standing.mirror.held(key)) {
                joins(entry, is_first)?;
            }
        }
        Ok(())
    }

    /// Adds the statement at this place of the text to the series, if it is ready; or returns what
    /// is to be asked first.
    fn part(
        &mut self,
        text: &[u8],
        range: Range<usize>,
        is_settled: bool,
        series: &mut Series,
    ) -> Result<Option<Subject>, Reason> {
        let part = &text[range.clone()];
        let recipe = self.recipe(part)?;
        let call = match self.read_met::<false>(&recipe, is_settled, part)? {
            Found::Ask(subject) => return Ok(Some(subject)),
            Found::Execute(call) => call,
        };
        let is_plain = call.effect == Effect::None && !call.residue.is_anything();
        let returns_rows = returns_rows(&recipe);
        let is_behind = !series.parts.is_empty() && self.standing.status == Status::Idle;
        if !is_plain || is_behind && returns_rows {
            return Err(Reason::MultipleStatements);
        }
        self.may_join(call.key, series)?;
        let start = series.messages.len();
        bind_and_execute(&call, &recipe, part, self.lent, &mut series.messages);
        series.parts.push(Member {
            text: range,
            call,
            messages: start..series.messages.len(),
            returns_rows,
            gain: self.habits.sent.gain,
        });
        Ok(None)
    }
}
