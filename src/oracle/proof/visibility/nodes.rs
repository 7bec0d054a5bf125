//! What kinds of nodes do to the rows below them.

use super::super::align::Node;
use super::super::kinds::{JOINS, SINGLE, SINGLE_JOINS, TABLE_SCANS};
use super::super::plan;
use super::super::tokens::Token;
use super::super::tree::text;

/// Whether the node gives at most one row of one.
pub(super) fn is_single(node: &Node<'_>) -> bool {
    let sets = node.facts.contains_key("Grouping Sets");
    let join = text(node.facts, "Join Type");
    SINGLE.contains(&node.kind) && !sets
        || JOINS.contains(&node.kind) && SINGLE_JOINS.contains(&join)
}

/// Whether the node stands alone below the one above it, and is neither computed before nor for
/// each row.
pub(in super::super) fn is_only_child(node: &Node<'_>, nodes: &[Node<'_>]) -> bool {
    let siblings = nodes.iter().filter(|other| other.parent == node.parent);
    let relation = text(node.facts, "Parent Relationship");
    siblings.count() == 1 && !matches!(relation, "InitPlan" | "SubPlan")
}

/// Whether rows are more than put together where other plans might not find them. With one table
/// that is the row that is found; with two, what is computed above both is.
pub(super) fn computes_below_a_join(nodes: &[Node<'_>]) -> bool {
    let lowest = nodes.iter().position(|node| !is_only_child(node, nodes));
    let Some(lowest) = lowest else {
        return false;
    };
    let scans = nodes.iter().filter(|node| TABLE_SCANS.contains(&node.kind));
    let above = if scans.count() == 2 { lowest } else { 0 };
    let below = nodes.iter().skip(above);
    let mut results = below.flat_map(|node| &node.expressions);
    results.any(|expression| plan::is_result(expression.label) && !is_plain(&expression.tokens))
}

/// Whether it is a column, or something that is constant.
pub(in super::super) fn is_plain(tokens: &[Token<'_>]) -> bool {
    matches!(
        tokens,
        [Token::Word(_)] | [Token::Mark('('), Token::Word(_), Token::Mark(')')]
    ) || matches!(tokens, [Token::Constant(constant)] if constant.is_given())
}

/// A node that returns its rows in an order that follows from an estimate, as a generic plan makes
/// it otherwise than the literals do: by the size of a hash table, or by the number of its parts.
pub(super) fn orders_by_estimate(node: &Node<'_>) -> bool {
    let strategy = text(node.facts, "Strategy");
    node.kind == "Hash Join" || matches!(strategy, "Hashed" | "Mixed")
}
