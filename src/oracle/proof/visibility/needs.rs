//! Conditions that are more than one comparison, and have a result for every row all the same:
//! `a = 1 OR b IS NULL`.

use super::super::plan::Column;
use super::super::statistics::{Fact, Known};
use super::super::tokens::Token;
use super::super::total::{self, Need};
use super::{Answer, Visibility, facts_in};

impl Visibility {
    /// Takes note of what these conditions need; false if one need not have a result.
    pub(super) fn takes_needs(&mut self, conditions: &[&[Token<'_>]]) -> bool {
        conditions.iter().all(|tokens| {
            total::needs(tokens).is_some_and(|needs| {
                self.needs.extend(needs);
                true
            })
        })
    }

    /// These columns, each with its table, and those of such conditions.
    pub(super) fn with_needs<'a>(
        &'a self,
        mut columns: Vec<(usize, &'a str)>,
    ) -> Vec<(usize, &'a str)> {
        let needed = self.needs.iter().filter_map(|(column, _)| {
            let scan = self.scans.iter().find(|scan| scan.alias == column.alias)?;
            Some((scan.table, &*column.name))
        });
        columns.extend(needed);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Whether all such conditions have a result for all rows there are.
    pub(super) fn has_needs(&self, facts: &[Fact<'_>]) -> bool {
        let is_met = |(column, need): &(Column, Need)| {
            let known = self.column(column, facts);
            known.is_some_and(|known| match need {
                Need::Known => true,
                Need::Ordered => known.is_total,
                Need::Text => known.is_matched(),
            })
        };
        // Which of them are compared with which is not looked at.
        let known = self.needed(facts);
        let agree = |one: &&Known| known.iter().all(|other| one.agrees_with(other));
        (!self.matches() || facts.contains(&Fact::Patterns))
            && self.needs.iter().all(is_met)
            && known.iter().all(agree)
    }

    /// Whether such a condition may compare a local time with a moment, among arguments of these
    /// types.
    pub(in crate::oracle) fn may_mix_needs(&self, answer: &Answer, kinds: &[u32]) -> bool {
        let facts: Vec<_> = facts_in(answer).collect();
        self.may_mix_moments(&self.needed(&facts), kinds)
    }

    /// Whether patterns are matched.
    pub(super) fn matches(&self) -> bool {
        self.needs.iter().any(|(_, need)| *need == Need::Text)
    }

    fn needed<'f>(&self, facts: &'f [Fact<'_>]) -> Vec<&'f Known> {
        let needed = self.needs.iter();
        let known = needed.filter_map(|(column, _)| self.column(column, facts));
        known.collect()
    }
}
