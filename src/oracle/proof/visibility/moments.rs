//! Local times that are compared with moments.

use super::super::constant::Instant;
use super::super::plan::Test;
use super::super::statistics::{Fact, Known};
use super::{Answer, Visibility, facts_in};
use crate::sql::oid;

impl Visibility {
    /// Whether a column of `timestamp` or `date` may be compared with a `timestamptz`. An index, in
    /// which local times stand in an order of their own, finds other rows by that than are found
    /// one by one: two local times in the gap of a spring night are one moment, as are two days of
    /// which a zone has skipped one (Apia in 2011), and behind the gap come earlier moments.
    pub(in crate::oracle) fn searches_for_moments(&self, answer: &Answer, kinds: &[u32]) -> bool {
        let facts: Vec<_> = facts_in(answer).collect();
        let of_column = |fact: &Fact<'_>| match fact {
            Fact::KeyColumn { declared, .. } => Some(*declared),
            Fact::Column { known, .. } => Some(known.declared),
            _ => None,
        };
        let is_local = |declared: u32| matches!(declared, oid::TIMESTAMP | oid::DATE);
        let mut compared = self.conditions.iter().filter(|c| c.test != Test::Shown);
        facts.iter().filter_map(of_column).any(is_local)
            && compared.any(|condition| {
                let declared = |column| self.column(column, &facts).map(|known| known.declared);
                let own = declared(&condition.column);
                let mut arguments = condition.arguments.iter();
                match &condition.other {
                    Some(other) => may_be_moment(declared(other)) || may_be_moment(own),
                    // Whatever column it is, a key may be searched for one value.
                    None if condition.test != Test::Equal && !own.is_none_or(is_local) => false,
                    // What type a constant has that is no argument is known of an instant alone,
                    // whatever it is shifted by.
                    None if condition.arguments.is_empty() || condition.instant.is_some() => {
                        may_be_moment(condition.instant.map(Instant::oid))
                    }
                    // A function of an argument may make a moment of it.
                    None => {
                        let kind = |at: &usize| kinds.get(*at).copied();
                        !condition.as_given || arguments.any(|at| may_be_moment(kind(at)))
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

/// Whether what has this type, as far as it is known, may be a moment, or a list of them.
fn may_be_moment(kind: Option<u32>) -> bool {
    kind.is_none_or(|kind| matches!(kind, oid::TIMESTAMPTZ | oid::TIMESTAMPTZ_ARRAY))
}
