//! What a lesson is about, and what of its course decides how it goes on.

pub use crate::convert::Subject;

/// What a lesson is about, and how far it has come: the part that its states look at.
#[derive(Debug)]
pub(super) struct Topic {
    /// Never changes.
    pub(super) subject: Subject,
    /// The text it is about: the query on hold, or one of its statements, unless there is none.
    /// Never changes; empty if the subject is a look at the catalog.
    pub(super) text: Vec<u8>,
    /// It follows a reply, and no query waited for it when it began. Never changes.
    pub(super) is_behind: bool,
    /// How often another recipe has taken the place of the candidate's. Never decreases.
    pub(super) rounds: u8,
    /// A question was taken from the budget. Set with the first claim to ask about a statement, and
    /// never cleared: a lesson is about one shape, in however many forms.
    pub(super) is_paid: bool,
    /// The statement has been executed so often that the lesson is within its own share of the
    /// time. Set before `is_paid`.
    pub(super) is_earned: bool,
}

impl Topic {
    /// Whether nothing but the look at the catalog is asked for.
    pub(super) const fn only_watches(&self) -> bool {
        matches!(self.subject, Subject::Watch) && !self.is_behind
    }

    /// Whether it has to be known of all names what they leave.
    pub(super) const fn needs_all_names(&self) -> bool {
        matches!(self.subject, Subject::Names | Subject::Session)
    }

    /// Whether a statement is to be learned, and what it leaves with it.
    pub(super) const fn is_about_statement(&self) -> bool {
        matches!(self.subject, Subject::Statement(_))
    }

    /// Whether nothing but that and the names with hazards is asked for.
    pub(super) const fn only_names(&self) -> bool {
        matches!(self.subject, Subject::Names)
    }
}
