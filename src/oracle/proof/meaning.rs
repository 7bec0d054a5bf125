//! What a statement means by whatever plan the server chooses.
//!
//! A plan decides in which order rows come, and where LIMIT cuts. It must not decide anything else
//! ([`Strictness::Server`](crate::convert::Strictness)). Of what the theorems rest on these
//! premises protect the meaning, and are kept:
//!
//! - *Nothing fails that would have failed earlier, or not at all* (H-11). What is done with an
//!   argument beyond using it is known from the plan of literals, and cannot fail behind the guards
//!   ([`loosely`]). The plans may have another form, the expressions may not.
//! - *The planner tries nothing out*: its errors and notices come with each planning (D1, D2).
//! - *It does not show which rows are looked at.* The conditions on tables and joins have a result
//!   for every row (`total`). Whatever else is computed is computed of the rows that come out,
//!   which are the same rows by every plan unless a LIMIT stands above.
//! - *Rows are compared as indexes order them*: local times may not be compared with moments
//!   (`may_mix_moments`).
//! - *No predicate is locked*, as in the theorem of one row.
//! - *What looks like the server's own is its own*, and the names in the plan are the tables'.
//!
//! These protect nothing but order and choice, and are waived:
//!
//! - that both plans have the same nodes, indexes and joins;
//! - that a value is not common, and that nothing but equality is estimated (ranges, patterns,
//!   statistics of several columns, partial indexes, `constraint_exclusion`);
//! - that no hash table orders the rows, and that LIMIT is the same in every plan.
//!
//! What follows from the order may differ with it: sums of floating-point numbers in their last
//! digits, `string_agg` without ORDER BY, values of a sequence, in which order triggers run and
//! rows are locked, and which of several rows that violate a constraint is found first.
//!
//! Partitioned tables stay out: a generic plan locks each partition, so it may wait where the
//! original would not have, and that is no matter of order.

use super::Hidden;
use super::align::{Aligned, Node};
use super::constant::Types;
use super::kinds::{JOINS, TABLE_SCANS};
use super::loose::loosely;
use super::plan::{self, Column};
use super::statistics::{self, Fact, Known};
use super::tokens::Token;
use super::total::{Need, needs};
use super::tree::{Plan, text};
use super::visibility::{self, Visibility};
use crate::oracle::answer::Answer;
use crate::sql::eligible::Eligible;
use crate::statement::database::Database;
use crate::statement::guard::Guard;

/// Nodes beside [`TABLE_SCANS`] and [`JOINS`] that do the same with the same rows, wherever they
/// stand.
const NODES: [&str; 21] = [
    "Result",
    "Limit",
    "Sort",
    "Incremental Sort",
    "Unique",
    "Group",
    "Aggregate",
    "WindowAgg",
    "Materialize",
    "Memoize",
    "Hash",
    "LockRows",
    "Subquery Scan",
    "ModifyTable",
    "Gather",
    "Gather Merge",
    "Bitmap Index Scan",
    "BitmapAnd",
    "BitmapOr",
    "Append",
    "SetOp",
];

/// A statement that means the same by every plan, if the catalog agrees.
#[derive(Debug)]
pub(in crate::oracle) struct Meaning {
    seen: Visibility,
    /// The columns that decide which rows there are.
    compared: Vec<(Column, Need)>,
    guards: Vec<Guard>,
    /// The arguments that stand elsewhere than in the condition of an index.
    unsearched: Vec<usize>,
}

impl Meaning {
    /// Of a text that was judged so, whose literals get the plan `original`; `None` if another plan
    /// could show in more than the order of the rows.
    pub(in crate::oracle) fn of(
        original: &Plan,
        generic: &Plan,
        types: Types<'_>,
        (hidden, eligible): (&Hidden<'_>, &Eligible),
    ) -> Option<Self> {
        let mut aligned = loosely(original, generic, types, hidden)?;
        let guards = std::mem::take(&mut aligned.guards);
        let seen = Visibility::of(&aligned, eligible);
        if seen.is_open() || seen.tries_time() {
            return None;
        }
        let mut meaning = Self {
            seen,
            compared: Vec::new(),
            guards,
            unsearched: Vec::new(),
        };
        meaning.take(&aligned)?;
        Some(meaning)
    }

    /// Looks at all that is computed.
    fn take(&mut self, aligned: &Aligned<'_>) -> Option<()> {
        let nodes = &aligned.nodes;
        let limited = nodes.iter().any(|node| node.kind == "Limit");
        // Up to the last join, or all the way, there is one node below each.
        let mut lower = nodes.iter();
        let lower = lower.position(|n| !visibility::is_only_child(n, nodes));
        let lower = lower.unwrap_or(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            is_known(node).then_some(())?;
            let is_free = index < lower && !limited;
            self.take_node(node, is_free)?;
        }
        Some(())
    }

    /// Of a node with `is_free` all plans compute what they compute there of the same rows.
    fn take_node(&mut self, node: &Node<'_>, is_free: bool) -> Option<()> {
        let chooses = TABLE_SCANS.contains(&node.kind)
            || JOINS.contains(&node.kind)
            || node.kind == "Bitmap Index Scan";
        for expression in &node.expressions {
            let (label, tokens) = (expression.label, &*expression.tokens);
            if !matches!(label, "Index Cond" | "Recheck Cond") {
                self.unsearched.extend(plan::arguments(tokens));
            }
            if plan::is_condition(label) {
                match needs(tokens) {
                    Some(needs) => self.compared.extend(needs),
                    None if is_free && !chooses => {}
                    None => return None,
                }
            } else if plan::is_result(label) || label == "Window" {
                (is_free || is_plain(label, tokens)).then_some(())?;
            } else if label != "Conflict Filter" {
                return None;
            }
        }
        Some(())
    }

    /// Whether these arguments, which are lists, are nothing but searched for. Elsewhere a list of
    /// constants may be made a hash table, which a parameter never is, and the server does not know
    /// how much that costs.
    pub(in crate::oracle) fn searches_for(&self, lists: &[usize]) -> bool {
        let converted = |list| self.guards.iter().any(|guard| guard.argument == list);
        let mut lists = lists.iter();
        lists.all(|list| !self.unsearched.contains(list) && !converted(*list))
    }

    /// Asks what the columns are.
    pub(in crate::oracle) fn question(&self) -> Vec<u8> {
        let seen = &self.seen;
        let columns = self.compared.iter().filter_map(|(column, _)| {
            let scan = seen.scans.iter().find(|scan| scan.alias == column.alias)?;
            Some((scan.table, &*column.name))
        });
        let mut columns: Vec<_> = columns.collect();
        columns.sort_unstable();
        columns.dedup();
        statistics::meaning_query(&seen.subject(&columns)).into_bytes()
    }

    /// See [`Visibility::shares`].
    pub(in crate::oracle) fn shares(&mut self, database: Option<&Database>) {
        self.seen.shares(database);
    }

    /// See [`Visibility::tells`].
    pub(in crate::oracle) fn tells(&self, answer: Option<&Answer>, database: &Database) {
        self.seen.tells(answer, database);
    }

    /// Notes what an answer to another question says, so that it is not asked for again.
    pub(in crate::oracle) fn note(&mut self, answer: &Answer) {
        self.seen.note(answer);
    }

    /// Whether every plan means the same with arguments of these types, by what the catalog says.
    pub(in crate::oracle) fn holds(&self, answer: &Answer, kinds: &[u32]) -> bool {
        let facts: Vec<_> = visibility::facts_in(answer).collect();
        let is_met = |(column, need): &(Column, Need)| {
            let known = self.seen.column(column, &facts);
            known.is_some_and(|known| match need {
                Need::Known => true,
                Need::Ordered => known.is_total,
                Need::Text => known.is_matched(),
            })
        };
        // Which of them are compared with which is not looked at.
        let all = self.compared.iter();
        let known: Vec<_> = all
            .filter_map(|(column, _)| self.seen.column(column, &facts))
            .collect();
        let agree = |one: &&Known| known.iter().all(|other| one.agrees_with(other));
        let matches = self.compared.iter().any(|(_, need)| *need == Need::Text);
        self.seen.is_built_in(&facts)
            && facts.contains(&Fact::Unserializable)
            && (!matches || facts.contains(&Fact::Patterns))
            && self.seen.is_named(&facts)
            && self.compared.iter().all(is_met)
            && known.iter().all(agree)
            && !self.seen.may_mix_moments(&known, kinds)
    }

    /// The guards behind which nothing fails.
    pub(in crate::oracle) fn into_guards(self) -> Vec<Guard> {
        self.guards
    }
}

/// Whether nothing is computed: it is a column, something constant, or a column to sort by.
fn is_plain(label: &str, tokens: &[Token<'_>]) -> bool {
    let is_key = matches!(label, "Sort Key" | "Presorted Key");
    let direction = |token: &Token<'_>| {
        matches!(
            token,
            Token::Word("ASC" | "DESC" | "NULLS" | "FIRST" | "LAST")
        )
    };
    let end = tokens
        .iter()
        .rposition(|token| !(is_key && direction(token)));
    visibility::is_plain(&tokens[..end.map_or(0, |end| end + 1)])
}

/// Whether a node does the same with the same rows. What is computed before or for each row is not
/// known; what MERGE does is not shown.
fn is_known(node: &Node<'_>) -> bool {
    let relation = text(node.facts, "Parent Relationship");
    let kind = node.kind;
    (NODES.contains(&kind) || TABLE_SCANS.contains(&kind) || JOINS.contains(&kind))
        && !matches!(relation, "InitPlan" | "SubPlan")
        && text(node.facts, "Operation") != "Merge"
}

#[cfg(test)]
#[path = "meaning_tests.rs"]
mod tests;
