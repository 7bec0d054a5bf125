//! The states of a lesson: which questions are in flight, and what their answers are about.
//!
//! A state holds what its answers need and nothing else. The file that puts the questions of a
//! state also reads their answers; it may know the states that follow it, and this file knows none.

use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::lists::Lists;
use super::proof::{Meaning, Plan, Visibility};
use super::settings::Rights;
use crate::statement::database::{Glance, Made, NamesClaim};
use crate::statement::guard::Guard;
use crate::statement::hindrance::Hindrance;
use crate::statement::{Millis, Plans, Statement};
use std::sync::Arc;

/// The questions of a lesson that are in flight.
#[derive(Debug)]
pub(super) enum State {
    /// None is: the lesson has not begun, or is over.
    Idle,
    /// This question whether anything is otherwise than the last look has seen it, put at this
    /// time.
    Glance(Millis, Glance),
    /// The question what the catalog looks like, put at this time, and what was made before.
    Watch(Millis, Made),
    /// The question which kinds of objects there are, before that which names have hazards, with
    /// the right to put it. Who drops the state leaves the question to others.
    Kinds(NamesClaim),
    /// The question which names have hazards, with the same right.
    Names(NamesClaim),
    /// The question about the session's settings, and maybe about its role's rights.
    Context(Rights),
    /// The questions for the plans of this statement, which is trusted.
    Audit(Arc<Statement>),
    /// Whether this statement, trusted as of this catalog epoch, may run elsewhere; and the answers
    /// about its plan, if they are here.
    Travel(Arc<Statement>, u64, Vec<Answer>),
    /// Questions about a candidate.
    About(Candidate, About),
}

/// The questions about a candidate that are in flight.
#[derive(Debug)]
pub(super) enum About {
    /// Of which types the columns are that its rows are stored in.
    Columns,
    /// What the original and the rewritten text are parsed to.
    Describe,
    /// Its plans, and what only the catalog knows.
    Explain(Questions),
    /// Its plans for lists of other lengths.
    Lengths(Box<Listed>),
    /// What the theorems of one way and of one row need.
    Keys(Exposure),
    /// Whether the server may choose the plan; what is known of the theorems if one may hold, or
    /// why none does.
    Chosen(Box<Meaning>, Result<Exposure, Hindrance>),
    /// What the theorem of one plan needs.
    Statistics(Exposure),
    /// Its plans for the common values of an argument.
    Values(Box<Valued>),
    /// What the rewritten text, which is trusted, is parsed to on this connection.
    Prepare,
}

/// Which questions were put about the plans of a candidate, beside those for the original's and for
/// its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Questions {
    /// Only what the catalog knows, before anything else.
    pub(super) is_first: bool,
    /// The generic plan.
    pub(super) generic: bool,
    /// The types that lists might be of instead of the inferred ones.
    pub(super) others: bool,
    /// What the role may use only because of what it is.
    pub(super) rights: bool,
    /// What the catalog alone knows of the statement.
    pub(super) catalog: bool,
}

/// What a client could see of another plan than the generic one, and under which guards the generic
/// plan stands for the literals' own.
#[derive(Debug)]
pub(super) struct Exposure {
    pub(super) generic: Plan,
    pub(super) visibility: Box<Visibility>,
    pub(super) guards: Vec<Guard>,
    /// The lists that keep another plan from being the generic one.
    pub(super) lists: Lists,
    /// What the statement means by any plan, if the server may choose one.
    pub(super) meaning: Option<Box<Meaning>>,
}

/// A list whose lengths are asked about.
#[derive(Debug)]
pub(super) struct Listed {
    /// Which argument it is.
    pub(super) argument: usize,
    /// How long the list at hand is.
    pub(super) seen: usize,
    /// What the theorems need.
    pub(super) exposure: Exposure,
}

/// A theorem of one plan, but for common values that are asked about.
#[derive(Debug)]
pub(super) struct Valued {
    pub(super) generic: Plan,
    pub(super) proven: Proven,
    /// The argument whose values they are, which begin what `proven` has for it.
    pub(super) argument: usize,
    /// The values, as their type writes them.
    pub(super) asked: Vec<Box<[u8]>>,
}

impl Exposure {
    /// Notes what an answer says that other questions would ask for again.
    pub(super) fn note(&mut self, answer: &Answer) {
        self.visibility.note(answer);
        if let Some(meaning) = &mut self.meaning {
            meaning.note(answer);
        }
    }
}

/// Where a step of a lesson leads.
#[derive(Debug)]
pub(super) enum Step {
    /// The questions of this state were put.
    Ask(State),
    /// The text's statement with these plans is to be found, as it is by now, and asked about.
    Teach(Plans),
    /// The lesson is over: the text can be executed.
    Learned,
}

impl Step {
    /// The questions about the candidate were put.
    pub(super) const fn ask(candidate: Candidate, about: About) -> Self {
        Self::Ask(State::About(candidate, about))
    }
}
