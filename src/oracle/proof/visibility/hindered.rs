//! What keeps the theorem of one plan from holding, as far as the plan alone tells.

use super::Visibility;
use crate::statement::hindrance::Hindrance;

impl Visibility {
    /// Why the theorem of one plan is out of the question, and because of which arguments, if it
    /// is.
    pub(in crate::oracle) fn hindrance(&self) -> Option<(Hindrance, Vec<usize>)> {
        let found = if self.tries_time {
            Hindrance::Time
        } else if !self.weighed.is_empty() {
            return Some((Hindrance::Weighed, self.weighed.clone()));
        } else if self.is_ordered_by_estimate {
            Hindrance::Hashed
        } else if self.appends && self.uses().next().is_some() {
            return Some((Hindrance::Excludes, self.compared()));
        } else if self.compares_twice() {
            return Some((Hindrance::Twice, self.compared()));
        } else if self.shows_growth {
            Hindrance::Grows
        } else {
            return None;
        };
        Some((found, Vec::new()))
    }

    /// The arguments that columns are compared with.
    pub(in crate::oracle) fn compared(&self) -> Vec<usize> {
        let mut arguments: Vec<_> = self.uses().map(|used| used.argument).collect();
        arguments.sort_unstable();
        arguments.dedup();
        arguments
    }

    /// Two comparisons of one column exclude each other or not, which the planner may find out.
    fn compares_twice(&self) -> bool {
        let uses: Vec<_> = self.uses().collect();
        uses.iter().enumerate().any(|(index, used)| {
            let mut others = uses[..index].iter();
            others.any(|other| {
                used.condition != other.condition
                    && used.column.alias == other.column.alias
                    && used.column.name == other.column.name
            })
        })
    }
}
