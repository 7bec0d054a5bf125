//! Whether the names in a plan are those of the tables.

use super::super::statistics::Fact;
use super::Visibility;
use crate::sql::eligible::Named;

impl Visibility {
    /// Whether the names in the plan are those of the tables: each table that is read is one that
    /// the text names, by the same alias and without names for its columns, and there are no
    /// others.
    ///
    /// A table may be named and not read: the planner leaves out what is joined by LEFT JOIN and
    /// has at most one row for each, if nothing of it is shown (`remove_useless_joins` in
    /// `analyzejoins.c`). If it is a table, and no view, nothing is read in its place, and all that
    /// is read are the others that the text names. That it is left out follows from the text and
    /// from a unique index without a predicate, before anything is estimated: where the generic
    /// plan leaves it out there is one row for each whatever the values, and no plan looks at them.
    pub(in super::super) fn is_named(&self, facts: &[Fact<'_>]) -> bool {
        let named = self.named();
        // How often each is read; `None` if its name says nothing.
        let read = |(index, named): (usize, &Named)| {
            let mut scans = self.scans.iter().filter(|scan| scan.alias == named.alias);
            let Some(scan) = scans.next() else {
                let is_table = facts.contains(&Fact::Table { name: index });
                return is_table.then_some(0);
            };
            let table = facts.iter().find_map(|fact| match fact {
                Fact::Named { name, table } => (*name == index).then_some(*table),
                _ => None,
            });
            (table == Some(scan.table) && scans.next().is_none()).then_some(1)
        };
        let read: Option<usize> = named.iter().enumerate().map(read).sum();
        self.named.is_some() && read == Some(self.scans.len())
    }

    /// Whether some table that the text names is not read, as far as the plan tells.
    pub(super) fn may_remove(&self) -> bool {
        self.named().len() > self.scans.len()
    }

    pub(in super::super) fn named(&self) -> &[Named] {
        self.named.as_deref().unwrap_or_default()
    }
}
