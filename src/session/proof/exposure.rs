//! What a client could see of another plan.
//!
//! A generic plan is proven for the values of one query. Others would get the same plan unless the
//! planner weighs them differently, which it does by what it knows of a column: a value that is
//! among the most common, a bound, a pattern, a limit. Another plan shows in the order of the rows,
//! and under LIMIT in the rows themselves. So a generic plan may stand for the plans of all values
//! only if
//!
//! - there is one way to run the statement; or
//! - it finds at most one row, because every table is read by a unique key; or
//! - its arguments are only computed with, or compared for equality with columns of whose values
//!   the server keeps no counts, or not of the value at hand ([`Common`]).
//!
//! Anything else is planned each time for its values.

use super::constant::Types;
use super::facts::{self, Fact};
use super::plan::{self, Node};
use crate::session::oracle::Answer;
use crate::statement::common::Common;

/// What the answer depends on, of one plan.
#[derive(Debug)]
pub(in crate::session) struct Exposure {
    /// The tables read; [`Scan::relation`] and [`Use::relation`] are indexes here.
    relations: Vec<String>,
    scans: Vec<Scan>,
    uses: Vec<Use>,
    /// An argument is weighed by its value in a way we do not follow.
    weighed: bool,
    /// There may be several rows even if each table gives one.
    multiplies: bool,
    /// There is one way to run it.
    only_way: bool,
}

/// One table read, with the columns that are compared with one value.
#[derive(Debug)]
struct Scan {
    relation: usize,
    columns: Vec<String>,
}

/// An argument that a column is compared with.
#[derive(Debug)]
struct Use {
    relation: usize,
    /// The scan and the condition in it.
    place: (usize, usize),
    column: String,
    argument: usize,
    /// Nothing is computed of it first.
    as_given: bool,
    /// An index is searched for it.
    is_searched: bool,
}

/// Nodes that read one of the tables of the query.
const TABLE_SCANS: [&str; 6] = [
    "Seq Scan",
    "Index Scan",
    "Index Scan Backward",
    "Index Only Scan",
    "Index Only Scan Backward",
    "Bitmap Heap Scan",
];

/// Nodes that give at most one row if those below them do.
const SINGLE: [&str; 29] = [
    "Result",
    "Limit",
    "Sort",
    "Incremental Sort",
    "Unique",
    "Group",
    "Aggregate",
    "GroupAggregate",
    "WindowAgg",
    "Materialize",
    "Memoize",
    "Hash",
    "LockRows",
    "Subquery Scan",
    "CTE Scan",
    "Bitmap Index Scan",
    "BitmapAnd",
    "BitmapOr",
    "Nested Loop",
    "Nested Loop Left Join",
    "Nested Loop Semi Join",
    "Nested Loop Anti Join",
    "Hash Join",
    "Hash Left Join",
    "Hash Semi Join",
    "Hash Anti Join",
    "Merge Join",
    "Merge Left Join",
    "Merge Semi Join",
];

/// Nodes with which there is nothing to choose, if at most one of them is a scan.
const ONLY_WAYS: [&str; 5] = [
    "Result",
    "Limit",
    "ProjectSet",
    "Values Scan",
    "Function Scan",
];

/// Nodes that write.
const WRITES: [&str; 4] = ["Insert", "Update", "Delete", "Merge"];

impl Exposure {
    /// Of this generic plan, whose parameters have these types.
    pub(in crate::session) fn of(lines: &[String], types: Types<'_>) -> Self {
        let nodes = plan::nodes(lines, types);
        let is_scan = |node: &&Node<'_>| node.kind.contains("Scan");
        let mut exposure = Self {
            relations: Vec::new(),
            scans: Vec::new(),
            uses: Vec::new(),
            weighed: false,
            multiplies: false,
            only_way: nodes.iter().filter(is_scan).count() <= 1
                && nodes
                    .iter()
                    .all(|node| is_one_of(node, &[&ONLY_WAYS, &WRITES])),
        };
        let mut seen = vec![false; types.len()];
        for node in &nodes {
            exposure.add(node);
            let compared = node.conditions.iter().flat_map(|c| &c.arguments);
            for argument in node.computed.iter().chain(&node.weighed).chain(compared) {
                if let Some(seen) = seen.get_mut(*argument) {
                    *seen = true;
                }
            }
        }
        // VALUES of several rows and LIMIT are not shown.
        exposure.weighed |= seen.contains(&false);
        exposure
    }

    fn add(&mut self, node: &Node<'_>) {
        self.weighed |= !node.weighed.is_empty();
        let is_table = TABLE_SCANS.contains(&node.kind);
        self.multiplies |=
            node.groupings > 1 || !(is_table || is_one_of(node, &[&SINGLE, &WRITES]));
        if !is_table {
            let mut compared = node.conditions.iter().map(|c| &c.arguments);
            self.weighed |= compared.any(|arguments| !arguments.is_empty());
            return;
        }
        let relation = self
            .relations
            .iter()
            .position(|known| known == node.relation);
        let relation = relation.unwrap_or(self.relations.len());
        if relation == self.relations.len() {
            self.relations.push(node.relation.to_owned());
        }
        let single = node.conditions.iter().filter(|c| c.is_one_value);
        self.scans.push(Scan {
            relation,
            columns: single.map(|c| c.column.to_owned()).collect(),
        });
        for (index, condition) in node.conditions.iter().enumerate() {
            for argument in &condition.arguments {
                self.uses.push(Use {
                    relation,
                    place: (self.scans.len(), index),
                    column: condition.column.to_owned(),
                    argument: *argument,
                    as_given: condition.as_given,
                    is_searched: condition.is_searched,
                });
            }
        }
    }

    /// Whether indexes are searched for this argument, and nothing else is done with it.
    pub(in crate::session) fn is_searched_for(&self, argument: usize) -> bool {
        let mut uses = self.uses.iter().filter(|used| used.argument == argument);
        !self.weighed && uses.clone().next().is_some() && uses.all(|used| used.is_searched)
    }

    /// Whether nothing depends on the catalog.
    pub(in crate::session) const fn is_none(&self) -> bool {
        self.only_way || self.relations.is_empty() && !self.weighed
    }

    /// Asks which keys the tables have; `None` if the answer cannot matter.
    pub(in crate::session) fn keys_question(&self) -> Option<Vec<u8>> {
        let may_be_single = !self.multiplies && self.scans.iter().all(|s| !s.columns.is_empty());
        may_be_single.then(|| facts::keys_query(&self.relations).into_bytes())
    }

    /// Whether there is at most one row, so that no order shows.
    pub(in crate::session) fn is_single(&self, keys: &Answer) -> bool {
        let facts = facts_in(keys);
        !self.multiplies && self.scans.iter().all(|scan| scan.is_single(&facts))
    }

    /// Asks how the columns are estimated; `None` if the answer cannot matter.
    pub(in crate::session) fn statistics_question(&self) -> Option<Vec<u8>> {
        if self.weighed || self.compares_twice() {
            return None;
        }
        let columns = self.uses.iter().map(|used| (used.relation, &*used.column));
        let mut columns: Vec<_> = columns.collect();
        columns.sort_unstable();
        columns.dedup();
        Some(facts::statistics_query(&self.relations, &columns).into_bytes())
    }

    /// Whether the generic plan may stand for all: the values to be left out, or `None`.
    pub(in crate::session) fn common(&self, statistics: &Answer) -> Option<Vec<Common>> {
        let facts = facts_in(statistics);
        let mut common = Vec::new();
        for used in &self.uses {
            common.extend(used.common(&facts)?);
        }
        common.sort_by_key(|common| common.argument);
        common.dedup();
        Some(common)
    }

    /// Two comparisons of one column exclude each other or not, which the planner may find out.
    fn compares_twice(&self) -> bool {
        self.uses.iter().enumerate().any(|(index, used)| {
            let mut others = self.uses[..index].iter();
            others.any(|other| {
                used.place.0 == other.place.0
                    && used.place.1 != other.place.1
                    && used.column == other.column
            })
        })
    }
}

fn facts_in(answer: &Answer) -> Vec<Fact<'_>> {
    answer
        .values
        .chunks_exact(4)
        .filter_map(Fact::read)
        .collect()
}

fn is_one_of(node: &Node<'_>, kinds: &[&[&str]]) -> bool {
    kinds.iter().any(|kinds| kinds.contains(&node.kind))
}

impl Scan {
    /// Whether a unique key of the table is compared in full.
    fn is_single(&self, facts: &[Fact<'_>]) -> bool {
        facts.iter().any(|fact| match fact {
            Fact::Unique { relation, columns } => {
                let mut columns = columns.split('\n');
                *relation == self.relation
                    && columns.all(|column| self.columns.iter().any(|known| known == column))
            }
            _ => false,
        })
    }
}

impl Use {
    /// The values that have a plan of their own; `None` if all may have.
    fn common(&self, facts: &[Fact<'_>]) -> Option<Option<Common>> {
        let estimated = facts.iter().any(|fact| match fact {
            Fact::Relation {
                relation,
                plain,
                partial,
            } => {
                // No column that a partial index is about: the value decides whether it applies.
                let name = facts::unquoted(&self.column);
                *relation == self.relation && *plain && !partial.contains(&name)
            }
            _ => false,
        });
        let type_oid = facts.iter().find_map(|fact| match fact {
            Fact::Column {
                relation,
                column,
                type_oid,
            } => (*relation == self.relation && *column == self.column).then_some(*type_oid),
            _ => None,
        })?;
        let values = facts.iter().filter_map(|fact| match fact {
            Fact::Value {
                relation,
                column,
                value,
            } => {
                (*relation == self.relation && *column == self.column).then(|| (*value).to_owned())
            }
            _ => None,
        });
        let values: Vec<String> = values.collect();
        match (estimated, values.is_empty()) {
            (false, _) => None,
            (true, true) => Some(None),
            (true, false) if !self.as_given => None,
            (true, false) => Common::new(self.argument, type_oid, &values).map(Some),
        }
    }
}
