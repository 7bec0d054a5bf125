//! Local times that are compared with moments.

use super::super::constant::Instant;
use super::super::plan::Test;
use super::super::statistics::{Fact, Known};
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
                    None if condition.arguments.is_empty() => {
                        may_be(condition.instant.map(Instant::oid))
                    }
                    // A function of an argument may make a moment of it.
                    None => {
                        !condition.as_given || arguments.any(|at| may_be(kinds.get(*at).copied()))
                    }
                }
            })
    }

    /// Whether one of these columns, which are compared, may be a local time compared with a
    /// moment, among arguments of these types. By moments local times are in another order than
    /// by themselves, where a zone goes on or back an hour: an index, which they stand in by
    /// themselves, may find other rows than are found one by one.
    pub(in super::super) fn may_mix_moments(&self, compared: &[&Known], kinds: &[u32]) -> bool {
        let is_local = |known: &&Known| matches!(known.declared, oid::TIMESTAMP | oid::DATE);
        let is_moment = |known: &&Known| known.declared == oid::TIMESTAMPTZ;
        let makes_one = self.relies || self.tells_time || self.has_inline();
        compared.iter().any(is_local)
            && (makes_one || kinds.contains(&oid::TIMESTAMPTZ) || compared.iter().any(is_moment))
    }
}
