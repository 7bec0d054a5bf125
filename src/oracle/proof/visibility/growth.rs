//! What a table that has grown could show.
//!
//! The planner reads how many blocks a table has (`estimate_rel_size` in `plancat.c`), of which
//! nobody is told: so the plan that every value gets may be another one soon. Until that is found
//! out, the rows may come in the order of the old plan. More than that must not show.
//!
//! Premise: comparisons with `=`, `<` and the like, LIKE, and tests for NULL have a result for any
//! two values ([`needs`]). Of the types that arguments are compared with that is known (fact `c` of
//! the [proof](super::super)); of those of other columns it is not asked: a type of a user's may
//! have a `=` that fails.

use super::super::align::Node;
use super::super::kinds::{JOINS, TABLE_SCANS};
use super::super::plan;
use super::super::total::needs;
use super::super::tree::text;

/// Whether more could show than in which order rows come: which of several rows is written, in
/// which order rows are made, or that a condition fails for a row that another plan does not visit.
pub(super) fn could_show(nodes: &[Node<'_>]) -> bool {
    let writes = nodes.iter().find(|node| node.kind == "ModifyTable");
    let joins = nodes.iter().any(|node| JOINS.contains(&node.kind));
    let reads = nodes.iter().any(|node| TABLE_SCANS.contains(&node.kind));
    let makes = |node: &Node<'_>| text(node.facts, "Operation") == "Insert" && reads;
    writes.is_some_and(|node| joins || makes(node)) || nodes.iter().any(may_fail)
}

/// Whether a condition of the node need not have a result for every row.
fn may_fail(node: &Node<'_>) -> bool {
    let conditions = node.expressions.iter();
    conditions
        .filter(|expression| plan::is_condition(expression.label))
        .any(|expression| needs(&expression.tokens).is_none())
}
