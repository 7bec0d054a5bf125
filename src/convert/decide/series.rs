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
//!   (`RevalidateCachedQuery` in `plancache.c`);
//! - among them may stand savepoints of an open transaction, and behind the last its COMMIT. These
//!   are parsed each time, and none of them is to be followed: they are in no transaction that has
//!   changed settings.

use super::super::bind::{Call, bind_and_execute, returns_rows};
use super::super::choose::{choose, joins};
use super::super::habits::Sent;
use super::{Circumstances, Decision, Found, Subject};
use crate::reason::Reason;
use crate::sql::effect::Effect;
use crate::sql::split::{self, Control, Piece};
use crate::statement::Key;
use crate::wire::backend::Status;
use crate::wire::frontend;
use std::ops::Range;

/// The statements of one query, all of them ready.
#[derive(Debug)]
pub struct Series {
    /// They, in their order.
    pub parts: Vec<Member>,
    /// Bind, Describe and Execute of all of them; of those about the transaction Parse, too.
    pub messages: Vec<u8>,
}

/// One of them.
#[derive(Debug)]
pub struct Member {
    /// Where it stands in the text of the query.
    pub text: Range<usize>,
    /// What is to be executed; `None` if it is about the transaction.
    pub call: Option<Call>,
    /// It commits the transaction, which is to be noted. Of savepoints there is nothing to note
    /// where nothing is followed.
    pub commits: bool,
    /// Where its messages stand among those of all.
    pub messages: Range<usize>,
    /// It may answer with rows.
    pub returns_rows: bool,
    /// By how many microseconds it is likely to be quicker than its text.
    pub gain: i32,
}

impl Member {
    /// The key of what is to be executed.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.call.as_ref().map(|call| call.key)
    }
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
        self.standing.check_encoding(text, None)?;
        let statements = split::statements(&mut self.lent.scan, text)?;
        let mut series = Series {
            parts: Vec::with_capacity(statements.len()),
            messages: Vec::with_capacity(text.len()),
        };
        let mut met = 0;
        for Piece { place, control } in statements {
            if let Some(control) = control {
                self.control(control, text, place, &mut series)?;
                continue;
            }
            match self.part(text, place.clone(), is_settled, &mut series) {
                Ok(None) => {}
                Ok(Some(subject)) => return Ok(Decision::Ask(subject, place)),
                // Each of them counts as met.
                Err(Reason::Threshold) if met < MOST_MET => met += 1,
                Err(reason) => return Err(reason),
            }
        }
        if met > 0 {
            return Err(Reason::Threshold);
        }
        for part in &series.parts {
            if let Some(key) = part.key()
                && let Some(subject) = self.counted(key)
            {
                return Ok(Decision::Ask(subject, part.text.clone()));
            }
        }
        if series.parts.iter().all(|part| part.call.is_none()) {
            return Err(Reason::NotPreparable);
        }
        let gain = series.parts.iter().map(|part| part.gain);
        let gain = gain.fold(0, i32::saturating_add);
        self.habits.sent = Sent::default();
        self.choose_for(&series)?;
        self.habits.sent.gain = gain;
        Ok(Decision::Series(Box::new(series)))
    }

    /// By which route all of them go. Only where they are executions of one statement their time
    /// says something of it; what is about the transaction takes its part of that by either route.
    ///
    /// # Errors
    /// [`Reason::Slower`] or [`Reason::Trial`] if the original is to be sent.
    fn choose_for(&mut self, series: &Series) -> Result<(), Reason> {
        let mut keys = series.parts.iter().filter_map(Member::key);
        let Some(key) = keys.next() else {
            return Ok(());
        };
        let count = series.parts.len();
        let are_all = keys.all(|other| other == key);
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
        let before = series.parts.iter().rev().find_map(Member::key);
        if !self.lent.settings.trials || before == Some(key) {
            return Ok(());
        }
        let firsts = series.parts.iter().find_map(Member::key);
        for (key, is_first) in [(firsts, false), (Some(key), firsts.is_none())] {
            if let Some(entry) = key.and_then(|key| self.standing.mirror.held(key)) {
                joins(entry, is_first)?;
            }
        }
        Ok(())
    }

    /// Adds a statement about the transaction.
    ///
    /// # Errors
    /// [`Reason::MultipleStatements`] if what it does would have to be followed.
    fn control(
        &self,
        control: Control,
        text: &[u8],
        place: Range<usize>,
        series: &mut Series,
    ) -> Result<(), Reason> {
        let may_stand = match control {
            Control::Marks => self.standing.may_mark(),
            Control::Commits => self.standing.may_commit() && is_last(text, place.end),
        };
        if !may_stand {
            return Err(Reason::MultipleStatements);
        }
        let start = series.messages.len();
        let out = &mut series.messages;
        frontend::parse(out, b"", &text[place.clone()], &[]);
        frontend::bind(out, b"", 0, |_, _| {});
        out.extend_from_slice(frontend::EXECUTE_FRAME);
        series.parts.push(Member {
            text: place,
            call: None,
            commits: control == Control::Commits,
            messages: start..series.messages.len(),
            returns_rows: false,
            gain: 0,
        });
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
            call: Some(call),
            commits: false,
            messages: start..series.messages.len(),
            returns_rows,
            gain: self.habits.sent.gain,
        });
        Ok(None)
    }
}

/// Whether nothing stands behind the statement that ends here.
fn is_last(text: &[u8], end: usize) -> bool {
    let is_nothing = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    text.get(end..).unwrap_or_default().iter().all(is_nothing)
}
