//! What one question finds out for others, of this lesson and of all.

use super::super::statistics::Fact;
use super::{Answer, Visibility, facts_in};
use crate::statement::database::Database;

impl Visibility {
    /// Takes over what lessons in this database have found out, which has it for the others what
    /// this one will; with `None` the session sees of the catalog what others do not.
    pub(in crate::oracle) fn shares(&mut self, database: Option<&Database>) {
        self.alterations = database.map(Database::alterations);
        self.knows_built_in = database.is_some_and(Database::is_built_in);
    }

    /// Has other lessons know what an answer says of nothing but the catalog.
    pub(in crate::oracle) fn tells(&self, answer: Option<&Answer>, database: &Database) {
        let says = |answer: &Answer| facts_in(answer).any(|fact| fact == Fact::BuiltIn);
        if let Some(at) = self.alterations.filter(|_| answer.is_some_and(says)) {
            database.found_built_in(at);
        }
    }

    /// Notes what an answer to another question says, so that it is not asked for again.
    pub(in crate::oracle) fn note(&mut self, answer: &Answer) {
        self.knows_built_in |= facts_in(answer).any(|fact| fact == Fact::BuiltIn);
    }

    /// Whether what is taken for the server's own is that.
    pub(in super::super) fn is_built_in(&self, facts: &[Fact<'_>]) -> bool {
        (self.knows_built_in || facts.contains(&Fact::BuiltIn))
            && (!self.tells_time || facts.contains(&Fact::Clock))
            && (self.made.is_empty() || facts.contains(&Fact::Uncast))
    }
}
