//! Which tables are read by a key, so that at most one row comes out.
//!
//! It is a matter of what the statement says, not of the plan: each table has a key all of whose
//! columns are compared with one value each. What a value may be depends on where the table is
//! read ([`Place`]); by induction from the lowest join up, at most one row comes out of each node.

use super::super::align::Node;
use super::super::kinds::{BITMAPS, JOINS};
use super::super::plan::Condition;
use super::super::statistics::{self, Fact};
use super::super::tree::text;
use super::{Scan, Visibility};
use std::collections::BTreeSet;

/// How many rows of a table there may be, by where in the plan it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One, of those that the table itself is read by.
    Alone,
    /// The same; or one of those that are joined by the node with this index, for each row that
    /// they are joined with. An inner join holds for all rows that come out; an outer join has one
    /// row for a row that it keeps, if there is one to be joined with it.
    Joined(usize),
    /// Any number: it is only looked whether there is one to be joined (`EXISTS`), with nothing
    /// between that chooses among them, as LIMIT does, or puts them together in their order. Where
    /// rows are locked or written it shows which has been found: if somebody has changed a row in
    /// the meantime, it is joined with that one alone (`EvalPlanQual` in `execMain.c`).
    Any,
}

/// Nodes that give each row once that is below them, and no other.
const PASSING: [&str; 5] = ["Hash", "Materialize", "Memoize", "Sort", "Incremental Sort"];

/// Where the table stands that the node with this index reads.
pub(super) fn place(index: usize, nodes: &[Node<'_>]) -> Place {
    let mut found = Place::Alone;
    let mut marking = nodes.iter();
    let marks = marking.any(|node| matches!(node.kind, "LockRows" | "ModifyTable"));
    // Whether no join has been met, and nothing but joins that does more than to pass rows on.
    let (mut is_next, mut is_passed) = (true, true);
    let mut at = index;
    while let Some(node) = nodes.get(at).filter(|node| !is_computed(node))
        && let Some(above) = node.parent
        && let Some(parent) = nodes.get(above)
    {
        if JOINS.contains(&parent.kind) {
            let is_outer = is_first(at, above, nodes);
            // The inner table of a nested loop may be searched for what the outer one has.
            let is_given = is_outer && parent.kind == "Nested Loop";
            match (text(parent.facts, "Join Type"), is_outer) {
                ("Semi" | "Anti", false) | ("Right Semi" | "Right Anti", true)
                    if is_passed && !marks =>
                {
                    return Place::Any;
                }
                ("Inner", _) | ("Left", false) | ("Right", true)
                    if is_next && is_passed && !is_given =>
                {
                    found = Place::Joined(above);
                }
                _ => {}
            }
            is_next = false;
        } else {
            is_passed &= PASSING.contains(&parent.kind);
        }
        at = above;
    }
    found
}

/// Whether the node helps to read a table of which it is only looked whether there is a row.
pub(super) fn is_looked_up(index: usize, nodes: &[Node<'_>]) -> bool {
    let mut at = index;
    while let Some(node) = nodes.get(at).filter(|node| BITMAPS.contains(&node.kind))
        && let Some(above) = node.parent
    {
        at = above;
    }
    at != index && place(at, nodes) == Place::Any
}

/// Whether it is computed for a row of the node above, or before any: then its rows are its own.
fn is_computed(node: &Node<'_>) -> bool {
    matches!(
        text(node.facts, "Parent Relationship"),
        "InitPlan" | "SubPlan"
    )
}

/// Whether it is the first of the two that are joined by the node above.
fn is_first(index: usize, above: usize, nodes: &[Node<'_>]) -> bool {
    let mut before = nodes.iter().take(index);
    !before.any(|node| node.parent == Some(above) && !is_computed(node))
}

impl Visibility {
    /// Whether there may be a key for every table that needs one.
    pub(super) fn may_be_single(&self) -> bool {
        let may_be = |scan: &Scan| scan.is_narrow || scan.place != Place::Alone;
        let begins = self.scans.is_empty() || self.scans.iter().any(|scan| scan.is_narrow);
        !self.multiplies && begins && self.scans.iter().all(may_be)
    }

    /// Whether every table that needs a key has one. Of two tables that are joined, one at most may
    /// have it by what joins them: they may be joined by keys of each other.
    pub(super) fn have_keys(&self, facts: &[Fact<'_>]) -> bool {
        let mut joins = BTreeSet::new();
        self.scans.iter().enumerate().all(|(number, scan)| {
            let own = |condition: &&Condition| condition.scan == Some(number);
            match scan.place {
                Place::Any => true,
                _ if self.has_key(scan, own, facts) => true,
                Place::Alone => false,
                Place::Joined(join) => {
                    let joined = |it: &&Condition| own(it) || it.join == Some(join);
                    joins.insert(join) && self.has_key(scan, joined, facts)
                }
            }
        })
    }

    /// Whether all columns of a key are compared with one value each by these conditions, by an
    /// equality that is the key's: that of their type, where no collation has another. Rows of
    /// outer and anti joins are kept that a condition of the join does not hold for, and two tables
    /// may be joined by keys of each other; so what counts is by what the table itself is read, or
    /// else what its [`Place`] says.
    fn has_key(
        &self,
        scan: &Scan,
        counts: impl Fn(&&Condition) -> bool,
        facts: &[Fact<'_>],
    ) -> bool {
        let is_compared = |name: &str| {
            let mut compared = self.conditions.iter().filter(&counts);
            compared.any(|condition| {
                let column = condition.one_value(&scan.alias);
                column.is_some_and(|column| {
                    let known = self.column(column, facts);
                    column.name == name
                        && known.is_some_and(|known| known.is_total && known.is_bytewise)
                })
            })
        };
        let indexes = facts.iter().filter_map(|fact| match fact {
            Fact::KeyColumn { table, index, .. } if *table == scan.table => Some(*index),
            _ => None,
        });
        // Each once: a key may have many columns.
        let indexes: BTreeSet<&str> = indexes.collect();
        indexes.into_iter().any(|index| {
            let names = statistics::key(scan.table, index, facts);
            names.is_some_and(|names| names.into_iter().all(is_compared))
        })
    }
}
