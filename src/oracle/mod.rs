//! The oracle is the server itself, asked about a text before the text is converted.
//!
//! A [`Lesson`] is one conversation with it. Lessons are held in front of a query rather than
//! behind it, so that the client's own text is the last the server has seen. Nothing here knows a
//! socket, a client or a ledger: a lesson writes its questions to [`Asked`], which the caller
//! sends, and the caller hands over the replies.
//!
//! Inside a client's transaction each step stands behind a savepoint, and each of its questions is
//! followed by a return to it, so that neither locks nor settings nor a failure are left. The
//! snapshot that a transaction keeps is taken by the query that waits, a moment later, if not by a
//! question. Only the tables of the catalog are seen as of that snapshot: where they may have
//! changed since, the answers are of no use.
//!
//! A lesson is a few round trips. Each is a *state* that consumes the answers to its questions:
//!
//! - *watch*: whether the catalog has changed, when that is due or may have happened unseen;
//! - *kinds*, *names*: which names have hazards, when nobody has asked since that may have changed;
//! - *context*: settings and who the session is, when anything may have changed them;
//! - *columns*: the types of the columns that rows are stored in, if it has rows;
//! - *describe*: the original and the rewritten text are parsed and described;
//! - *explain*: the plans of both, the generic plan, and what only the catalog knows;
//! - *keys*, *statistics*: whether the generic plan may stand for the plans of other values;
//! - *chosen*: between them, whether whatever plan the server chooses means the same, if that is
//!   enough;
//! - *prepare*: a statement already trusted is parsed on this connection, and must infer the same
//!   types;
//! - *audit*: the plan proof again, with the literals of the moment;
//! - *travel*: whether another session's server process may run the statement, if that is wanted
//!   (`shared_reads`).
//!
//! ```text
//!   begin ─▶ watch ─▶ names ─▶ context ─┬─▶ (a watch is over)
//!                                       ├─▶ audit
//!                                       └─▶ teach ─┬─▶ prepare
//!                                             ▲    └─▶ columns ─▶ describe ─▶ explain ─▶ keys
//!                                             │            another recipe         │        │
//!                                             └───────────── or plans ◀───────────┴─ statistics
//! ```
//!
//! Every step but the last question may be left out.

mod answer;
mod audit;
mod blame;
mod candidate;
mod catalog;
mod chosen;
mod columns;
mod context;
mod describe;
mod explain;
mod keys;
mod lengths;
mod lesson;
mod lists;
mod names;
mod naming;
mod prepare;
mod proof;
mod question;
mod settings;
mod sign;
mod state;
mod statistics;
mod teach;
mod topic;
mod travel;
mod values;
mod watch;

#[cfg(test)]
mod lesson_tests;

pub use lesson::Lesson;
pub use question::Asked;
pub use settings::{DDL_CHANNEL, Hears, Rights, context_query, digest, is_announcement};
pub use topic::Subject;
pub use travel::Inquiry;

use crate::convert::Lent;
use crate::reason::Reason;
use crate::standing::{Reset, Standing};
use crate::statement::Millis;
use answer::Answer;

/// What a step of a lesson works with.
#[derive(Debug)]
pub struct Env<'a> {
    /// What is known of the session that is asked.
    pub standing: &'a mut Standing,
    /// What the worker lends.
    pub lent: &'a mut Lent,
    /// The time.
    pub now: Millis,
    /// Where the questions go that the step puts: empty, when the step begins.
    pub asks: &'a mut Asked,
    /// The query that waits for the lesson was cancelled, or its client is leaving: nobody is left
    /// to gain from the lesson.
    pub is_pointless: bool,
    /// The number of the client, for log lines.
    pub client: u64,
}

impl Env<'_> {
    /// Puts a question whose answer depends on the catalog and on the context of the session alone,
    /// unless another lesson has been told the answer lately.
    fn ask_catalog(&mut self, question: &[u8]) {
        let max_age = self.lent.settings.statement_max_age;
        let time = (self.now, max_age);
        let standing = &self.standing;
        let known = standing.context.filter(|_| !self.asks.is_inside);
        let told = known.map(|context| {
            let database = &standing.database;
            database.recall(question, database.as_of(context), time)
        });
        match told {
            None => self.asks.careful(question),
            Some(None) => self.asks.shared(question),
            Some(Some(told)) => self.asks.know(Answer::recalled(told)),
        }
    }

    /// Whether somebody is left to gain from the lesson.
    ///
    /// # Errors
    /// [`Reason::Pipelined`] if nobody is.
    const fn goes_on(&self) -> Result<(), Reason> {
        match self.is_pointless {
            true => Err(Reason::Pipelined),
            false => Ok(()),
        }
    }
}

/// Where a lesson goes after its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The lesson goes on: more questions are in flight, or about to be sent.
    Asked,
    /// The lesson is over: the text can be executed.
    Learned,
    /// The lesson is over: the text is passed through.
    Over(Reason),
}

/// Every text that the proxy asks a server of this version on its own behalf, with sample values
/// spliced in; but those that are about a text of the client's and hold it (EXPLAIN, Parse).
#[doc(hidden)]
#[must_use]
pub fn questions(major: u16) -> Vec<String> {
    let mut all = vec![naming::kinds(), naming::names(major, naming::Kinds::ALL)];
    all.extend(catalog::samples());
    all.extend(sign::samples());
    all.extend(proof::questions());
    all.extend(lists::samples());
    all.extend(travel::samples());
    for (rights, asks_for_left) in [(Rights::Asked, true), (Rights::Known, false)] {
        let hears = Hears {
            but: DDL_CHANNEL,
            asks_for_left,
            may_lock: asks_for_left,
        };
        all.push(context_query(true, true, Some(hears), rights));
    }
    all.push(String::from_utf8_lossy(Reset::IDLE.text).into_owned());
    all.push(question::CAREFUL.to_owned());
    all.push(String::from_utf8_lossy(question::CAREFUL_SET).into_owned());
    all
}
