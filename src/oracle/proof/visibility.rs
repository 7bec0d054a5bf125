//! What a plan rests on, and which theorem it is an instance of, if any.

mod growth;
mod hindered;
mod inline;
mod keyed;
mod listed;
mod moments;
mod named;
mod needs;
mod nodes;
mod partial;
mod shared;

pub(super) use self::nodes::{is_only_child, is_plain};

use self::inline::Kept;
use self::keyed::{Place, is_looked_up, place};
use self::nodes::{computes_below_a_join, is_single, orders_by_estimate};
use super::align::{Aligned, Node};
use super::kinds::{JOINS, ONLY_WAYS, SHARING, TABLE_SCANS};
use super::plan::{self, Column, Condition, Test};
use super::statistics::{self, Fact, Known, Subject, Tables};
use super::total::Need;
use super::tree::text;
use crate::oracle::answer::Answer;
use crate::sql::eligible::{Eligible, Named};
use crate::statement::apart::{MAX_APART, can_tell};
use crate::statement::common_values::Common;

/// What the answer depends on, of one plan.
#[derive(Debug)]
pub(in crate::oracle) struct Visibility {
    /// The tables read; [`Scan::table`] is an index here.
    pub(super) tables: Tables,
    /// The tables the text names; `None` if it renames columns.
    named: Option<Vec<Named>>,
    pub(super) scans: Vec<Scan>,
    conditions: Vec<Condition>,
    /// What all other conditions need of the columns they compare.
    needs: Vec<(Column, Need)>,
    /// There is no theorem, whatever the catalog says.
    is_open: bool,
    /// There is one way to run it.
    only_way: bool,
    /// What the server has of its own is relied on.
    relies: bool,
    /// That it is the server's has been found by an earlier question.
    knows_built_in: bool,
    /// How often the catalog was known to have changed before that is asked, if others see of it
    /// what this session sees.
    alterations: Option<u64>,
    /// So are functions of time.
    tells_time: bool,
    /// The planner tries out what time it is.
    tries_time: bool,
    made: Vec<u32>,
    lists_made: bool,
    /// There may be several rows even if each table gives one, or something is computed of rows
    /// that another plan might not find.
    multiplies: bool,
    /// The arguments that are weighed by their values in a way we do not follow.
    weighed: Vec<usize>,
    /// The order of the rows follows from an estimate.
    is_ordered_by_estimate: bool,
    /// Tables are read one behind the other: the planner looks whether conditions exclude any.
    appends: bool,
    /// Something is joined: that may also be rows that nothing is scanned for.
    joins: bool,
    /// The literals in the text that a column may be equal to; `None` if the planner may compute
    /// such values of them.
    inline: Option<Vec<Kept>>,
    /// What columns are equal to in the plan, as EXPLAIN writes it.
    equals: Vec<String>,
    /// That a table has grown could show otherwise than by the order of the rows.
    shows_growth: bool,
}

/// One table read.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) table: usize,
    pub(super) alias: String,
    /// The index that is searched.
    index: String,
    /// How many columns an index is searched for one value of.
    keys: usize,
    /// Some column is compared with one value.
    is_narrow: bool,
    /// How many of its rows there may be, by where it stands.
    place: Place,
}

/// An argument that a column of a table is compared with.
struct Use<'a> {
    scan: usize,
    condition: usize,
    column: &'a Column,
    argument: usize,
    as_given: bool,
    is_searched: bool,
}

impl Visibility {
    /// Of this generic plan for a text that was judged so.
    pub(super) fn of(aligned: &Aligned<'_>, eligible: &Eligible) -> Self {
        let nodes = &*aligned.nodes;
        let is_scan = |node: &&Node<'_>| node.kind.contains("Scan");
        let joins = |node: &&Node<'_>| JOINS.contains(&node.kind);
        let limits = nodes.iter().filter(|node| node.kind == "Limit").count();
        let mut exposure = Self {
            tables: Tables::default(),
            named: eligible.tables.clone(),
            scans: Vec::new(),
            conditions: Vec::new(),
            needs: Vec::new(),
            // What limits rows is not shown, and is tried out if it can be.
            is_open: aligned.tries_out
                || limits > 0 && eligible.limits.is_none_or(|n| n < limits)
                || eligible.shares && nodes.iter().any(|node| SHARING.contains(&node.kind)),
            only_way: nodes.iter().filter(is_scan).count() <= 1
                && !aligned.tries_time
                && nodes.iter().all(|node| ONLY_WAYS.contains(&node.kind)),
            relies: aligned.computes,
            knows_built_in: false,
            alterations: None,
            tells_time: aligned.tells_time || aligned.tries_time,
            tries_time: aligned.tries_time,
            made: aligned.made.clone(),
            lists_made: aligned.lists_made,
            multiplies: computes_below_a_join(nodes),
            // VALUES of several rows and LIMIT are not shown.
            weighed: (0..aligned.visible.len())
                .filter(|index| !aligned.visible[*index])
                .collect(),
            is_ordered_by_estimate: nodes.iter().any(orders_by_estimate),
            joins: nodes.iter().any(|node| joins(&node)),
            equals: inline::equals(nodes),
            inline: (!eligible.arguments.contains(&false)).then(Vec::new),
            appends: nodes.iter().any(|node| node.kind.contains("Append")),
            shows_growth: growth::could_show(nodes),
        };
        for index in 0..nodes.len() {
            exposure.add(index, nodes);
        }
        exposure
    }

    fn add(&mut self, index: usize, nodes: &[Node<'_>]) {
        let Some(node) = nodes.get(index) else { return };
        let mut found = plan::conditions(node);
        let is_table = TABLE_SCANS.contains(&node.kind);
        let is_chain = nodes.iter().all(|other| is_only_child(other, nodes));
        // Above the one table there is the same row whatever the plan.
        if is_table || !is_chain {
            self.multiplies |= found.does_more || !self.takes_needs(&found.others);
        }
        self.multiplies |= !(is_table || is_single(node) || is_looked_up(index, nodes));
        self.weighed.append(&mut found.weighed);
        if !is_table {
            let compared = found.known.iter().flat_map(|c| &c.arguments);
            self.weighed.extend(compared);
            if !is_chain {
                found.known.iter_mut().for_each(|it| it.join = Some(index));
                self.conditions.extend(found.known);
            }
            return;
        }
        let number = Some(self.scans.len());
        found.known.iter_mut().for_each(|it| it.scan = number);
        let scan = self.scan(node, &found.known, place(index, nodes));
        let unfollowed = found.known.iter().filter(|condition| {
            condition.test == Test::Ordered || condition.column.alias != scan.alias
        });
        let unfollowed = unfollowed.flat_map(|condition| &condition.arguments);
        self.weighed.extend(unfollowed);
        self.scans.push(scan);
        self.conditions.extend(found.known);
    }

    fn scan(&mut self, node: &Node<'_>, conditions: &[Condition], place: Place) -> Scan {
        let alias = text(node.facts, "Alias");
        let narrow = || conditions.iter().filter(|c| c.is_one_value(alias));
        let keys = narrow().filter(|condition| condition.is_searched);
        let mut keys: Vec<&str> = keys.map(|key| &*key.column.name).collect();
        keys.sort_unstable();
        keys.dedup();
        Scan {
            table: self.tables.add(
                text(node.facts, "Schema"),
                text(node.facts, "Relation Name"),
            ),
            alias: alias.to_owned(),
            index: text(node.facts, "Index Name").to_owned(),
            keys: keys.len(),
            is_narrow: narrow().next().is_some(),
            place,
        }
    }

    /// The arguments that columns of tables are compared with.
    fn uses(&self) -> impl Iterator<Item = Use<'_>> {
        let conditions = self.conditions.iter().enumerate();
        conditions.flat_map(|(index, condition)| {
            let alias = &condition.column.alias;
            let scan = self.scans.iter().position(|scan| scan.alias == *alias);
            let arguments = condition.arguments.iter();
            arguments.map(move |argument| Use {
                scan: scan.unwrap_or(usize::MAX),
                condition: index,
                column: &condition.column,
                argument: *argument,
                as_given: condition.as_given,
                is_searched: condition.is_searched,
            })
        })
    }

    /// Whether the planner tries out what time it is, so that only the theorem of one row may hold.
    pub(super) const fn tries_time(&self) -> bool {
        self.tries_time
    }

    /// Whether nothing the catalog says could make it a theorem.
    pub(in crate::oracle) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether there is one way to run it, and nothing to ask about it.
    pub(in crate::oracle) const fn needs_no_facts(&self) -> bool {
        self.only_way && !self.relies && self.made.is_empty()
    }

    /// Asks what a theorem of one way or of one row needs; `None` if it cannot be either.
    pub(in crate::oracle) fn keys_question(&self) -> Option<Vec<u8>> {
        if !self.only_way && !self.may_be_single() {
            return None;
        }
        let columns = self.columns(&self.conditions);
        let columns = self.with_needs(columns);
        Some(statistics::keys_query(&self.subject(&columns)).into_bytes())
    }

    /// What the questions are about, with these columns.
    pub(super) fn subject<'a>(&'a self, columns: &'a [(usize, &'a str)]) -> Subject<'a> {
        Subject {
            tables: &self.tables,
            named: self.named(),
            removes: self.may_remove(),
            matches: self.matches(),
            knows_built_in: self.knows_built_in,
            tells_time: self.tells_time,
            made: &self.made,
            lists_made: self.lists_made,
            columns,
        }
    }

    /// Whether there is one way to run it, with nothing in it that is not the server's own.
    pub(in crate::oracle) fn has_one_way(&self, answer: &Answer) -> bool {
        let facts: Vec<_> = facts_in(answer).collect();
        self.only_way && self.is_built_in(&facts)
    }

    /// Whether it finds at most one row, and meets no other on the way that would show.
    pub(in crate::oracle) fn is_single(&self, answer: &Answer) -> bool {
        let facts: Vec<_> = facts_in(answer).collect();
        let keys = |scan: &Scan| {
            let key = statistics::key(scan.table, &scan.index, &facts);
            key.is_some_and(|names| names.len() == scan.keys)
        };
        let by_index = self.scans.iter().all(keys);
        let by_name = || self.have_keys(&facts);
        // Beside the keys, which are known by their index, columns must be known by their names.
        let mut others = self.conditions.iter();
        let others: Vec<_> = others
            .by_ref()
            .filter(|c| !(by_index && self.is_key(c)))
            .collect();
        let safe = |condition: &&Condition| self.is_safe(condition, &facts);
        !self.multiplies
            && self.is_built_in(&facts)
            && facts.contains(&Fact::Unserializable)
            && (others.is_empty() && self.needs.is_empty() || self.is_named(&facts))
            && (by_index || by_name())
            && others.iter().all(safe)
            && self.has_needs(&facts)
    }

    /// Whether it is by this condition that an index is searched for one value of an argument.
    fn is_key(&self, condition: &Condition) -> bool {
        condition.is_searched && condition.test == Test::Equal && condition.other.is_none()
    }

    /// Whether the condition is a comparison that has a result for all rows there are.
    fn is_safe(&self, condition: &Condition, facts: &[Fact<'_>]) -> bool {
        let is_total = |known: &&Known| {
            let is_same = condition
                .instant
                .is_none_or(|time| known.declared == time.oid());
            is_same && (condition.test == Test::Shown || known.is_total)
        };
        let column = |column: &Column| self.column(column, facts).filter(is_total);
        let other = condition.other.as_ref();
        column(&condition.column).is_some_and(|one| {
            other.is_none_or(|other| column(other).is_some_and(|it| one.agrees_with(it)))
        })
    }

    /// Asks how the columns are estimated.
    pub(in crate::oracle) fn statistics_question(&self) -> Vec<u8> {
        let compared = self.conditions.iter().filter(|c| !c.arguments.is_empty());
        let columns = self.columns(compared);
        statistics::statistics_query(&self.subject(&columns)).into_bytes()
    }

    /// Whether the generic plan may stand for all: the values to be left out, or `None`.
    pub(in crate::oracle) fn common(&self, answer: &Answer) -> Option<Vec<Common>> {
        let facts: Vec<_> = facts_in(answer).collect();
        let mut common = Vec::new();
        for used in self.uses() {
            common.extend(self.common_for(&used, &facts)?);
        }
        let has_uses = self.uses().next().is_some();
        if !facts.contains(&Fact::Unserializable)
            || !self.is_built_in(&facts)
            || has_uses && !(self.is_named(&facts) && self.shows_equals(&facts))
        {
            return None;
        }
        common.sort_by_key(|common| common.argument);
        common.dedup();
        Some(common)
    }

    /// The arguments of these types that may be equal neither to each other nor to a literal in the
    /// text ([`inline_values`](Self::inline_values)), because the planner would join in another
    /// order, or expect another number of rows; `None` if it cannot be told whether they are.
    pub(in crate::oracle) fn apart(&self, kinds: &[u32]) -> Option<Vec<usize>> {
        let equal = |used: &Use<'_>| self.conditions[used.condition].test == Test::Equal;
        let uses: Vec<_> = self.uses().filter(equal).collect();
        let mut apart: Vec<usize> = uses.iter().map(|used| used.argument).collect();
        apart.sort_unstable();
        apart.dedup();
        let is_alone = apart.len() < 2 && !self.has_inline() && self.equals.is_empty();
        if !self.joins || apart.is_empty() || is_alone {
            return Some(Vec::new());
        }
        let can_tell = |argument: &usize| kinds.get(*argument).copied().is_some_and(can_tell);
        let is_given = uses.iter().all(|used| used.as_given);
        let is_known = is_given && self.inline.is_some() && self.knows_equals();
        let is_clear = is_known && apart.len() <= MAX_APART && apart.iter().all(can_tell);
        is_clear.then_some(apart)
    }

    /// The values that have a plan of their own; `None` if all may have.
    fn common_for(&self, used: &Use<'_>, facts: &[Fact<'_>]) -> Option<Option<Common>> {
        let table = self.scans.get(used.scan)?.table;
        let column = self.column(used.column, facts)?;
        let partial = facts.iter().find_map(|fact| match fact {
            Fact::Plain { table: of, partial } if *of == table => Some(*partial),
            _ => None,
        })?;
        // No column that a partial index is about: the value decides whether it applies.
        let name = &*used.column.name;
        if partial::names(partial, name) || !column.is_estimated {
            return None;
        }
        let values = facts.iter().filter_map(|fact| match fact {
            Fact::Value {
                table: of,
                column,
                value,
            } => (*of == table && *column == name).then(|| (*value).to_owned()),
            _ => None,
        });
        let values: Vec<String> = values.collect();
        match values.is_empty() {
            true => Some(None),
            false if !used.as_given => None,
            false => Common::new(used.argument, column.type_oid, &values).map(Some),
        }
    }

    /// What is known of this column.
    pub(super) fn column<'f>(&self, column: &Column, facts: &'f [Fact<'_>]) -> Option<&'f Known> {
        let scan = self.scans.iter().find(|scan| scan.alias == column.alias)?;
        facts.iter().find_map(|fact| match fact {
            Fact::Column { table, name, known } => {
                let is_it = *table == scan.table && *name == column.name;
                (is_it && (!column.as_text || known.is_text)).then_some(known)
            }
            _ => None,
        })
    }

    /// The columns in these conditions, each with its table.
    fn columns<'a>(
        &self,
        conditions: impl IntoIterator<Item = &'a Condition>,
    ) -> Vec<(usize, &'a str)> {
        let columns = conditions.into_iter();
        let columns = columns.flat_map(|c| [Some(&c.column), c.other.as_ref()]);
        let columns = columns.flatten().filter_map(|column| {
            let scan = self.scans.iter().find(|scan| scan.alias == column.alias)?;
            Some((scan.table, &*column.name))
        });
        let mut columns: Vec<_> = columns.collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

pub(super) fn facts_in(answer: &Answer) -> impl Iterator<Item = Fact<'_>> {
    answer.values.chunks_exact(4).filter_map(Fact::read)
}

#[cfg(test)]
#[path = "visibility_tests.rs"]
mod tests;
