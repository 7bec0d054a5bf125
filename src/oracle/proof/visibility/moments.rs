//! Local times that are compared with moments.

use super::super::plan::Test;
use super::super::statistics::Fact;
use super::{Answer, Visibility, facts_in};
use crate::sql::oid;

impl Visibility {
    /// Whether a key of `timestamp` or `date` may be searched for a `timestamptz`. That equality is
    /// not the key's own: two local times in the gap of a spring night are one moment, as are two
    /// days of which a zone has skipped one (Apia in 2011), and an index finds one of them where
    /// other plans find both.
    pub(in crate::oracle) fn searches_for_moments(&self, answer: &Answer, kinds: &[u32]) -> bool {
        let facts: Vec<_> = facts_in(answer).collect();
        let of_column = |fact: &Fact<'_>| match fact {
            Fact::KeyColumn { declared, .. } => Some(*declared),
            Fact::Column { known, .. } => Some(known.declared),
            _ => None,
        };
        let is_local =
            |fact: &Fact<'_>| matches!(of_column(fact), Some(oid::TIMESTAMP | oid::DATE));
        let may_be = |kind: Option<u32>| kind.is_none_or(|kind| kind == oid::TIMESTAMPTZ);
        let mut equalities = self.conditions.iter().filter(|c| c.test == Test::Equal);
        facts.iter().any(is_local)
            && equalities.any(|condition| {
                let declared = |column| self.column(column, &facts).map(|known| known.declared);
                let mut arguments = condition.arguments.iter();
                match &condition.other {
                    Some(other) => may_be(declared(other)) || may_be(declared(&condition.column)),
                    // What type a constant has that is no argument is not known here.
                    None if condition.arguments.is_empty() => true,
                    // A function of an argument may make a moment of it.
                    None => {
                        !condition.as_given || arguments.any(|at| may_be(kinds.get(*at).copied()))
                    }
                }
            })
    }
}
