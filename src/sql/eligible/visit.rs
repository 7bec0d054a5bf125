//! The walk over the parsed statement: which values are literals, and which of them must stay.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DataType, Distinct, Expr, FromTable, Function, FunctionArgumentClause,
    FunctionArguments, GroupByExpr, Insert, Interval, NamedWindowExpr, ObjectName, OnInsert,
    OrderByExpr, OrderByKind, Query, Select, SetExpr, Statement, TableFactor, TableObject,
    TableWithJoins, UnaryOperator, ValueWithSpan, Visit, Visitor, WindowSpec, WindowType,
};

use super::bare::{constant, peel, whole};
use super::calls;
use super::mask::offsets;
use super::search::{any_expr, has_literal, values};
use super::slot::{Place, Slot, Stay};
use super::stored::stored;
use super::tables::{Tables, name_ranges};
use crate::reason::Reason;

/// Everything the walk finds out.
pub(super) struct Walk {
    pub(super) slots: Vec<Slot>,
    /// Data-modifying statements seen; the first may be the statement itself.
    pub(super) writes: usize,
    pub(super) targets: Vec<Vec<(usize, usize)>>,
    pub(super) tables: Tables,
    /// Queries seen, one within the other.
    queries: usize,
    /// It reads something, or calls a function.
    is_busy: bool,
    /// Calls that may show how often they are run, up to two.
    pub(super) shown: usize,
}

type Flow = ControlFlow<Reason>;

impl Walk {
    pub(super) fn new(slots: Vec<Slot>) -> Self {
        Self {
            slots,
            writes: 0,
            targets: Vec::new(),
            tables: Tables::default(),
            queries: 0,
            is_busy: false,
            shown: 0,
        }
    }

    /// Whether the server has next to nothing to do for it: parsing costs as little as binding.
    pub(super) const fn is_trivial(&self) -> bool {
        !self.is_busy && self.writes == 0 && self.queries <= 1
    }

    /// The literal whose value the parser reports here.
    fn slot(&mut self, value: &ValueWithSpan) -> Option<&mut Slot> {
        let (start, end) = offsets(value.span)?;
        let index = self
            .slots
            .binary_search_by_key(&start, |slot| slot.start)
            .ok()?;
        Some(&mut self.slots[index]).filter(|slot| slot.end == end)
    }

    fn each(&mut self, node: &impl Visit, mut action: impl FnMut(&mut Slot)) {
        values(node, |value| {
            if let Some(slot) = self.slot(value) {
                action(slot);
            }
        });
    }

    fn ban(&mut self, node: &impl Visit) {
        self.each(node, |slot| slot.stays(Stay::Banned));
    }

    fn ban_sorted(&mut self, node: &impl Visit) {
        self.each(node, |slot| slot.stays(Stay::Sorted));
    }

    /// `x BETWEEN a AND b` and `x IN (a, b)` may compare `x` several times, and a string's type is
    /// resolved anew in each comparison, a parameter's only in the first (parse_expr.c,
    /// `transformAExprBetween`).
    fn ban_strings(&mut self, node: &impl Visit) {
        values(node, |value| {
            if value.value.clone().into_string().is_some()
                && let Some(slot) = self.slot(value)
            {
                slot.stays(Stay::Banned);
            }
        });
    }

    fn sort_clauses(&mut self, query: &Query) {
        let Some(order_by) = &query.order_by else {
            return;
        };
        let OrderByKind::Expressions(items) = &order_by.kind else {
            return;
        };
        let select = sorted_select(&query.body);
        let hazard = select.is_some_and(has_sort_hazard);
        let mut matching = false;
        for item in items {
            let free = !hazard && select.is_some_and(|select| is_free(&item.expr, select));
            if !free && has_literal(item) {
                self.ban_sorted(item);
                matching |= constant(&item.expr).is_none();
            }
        }
        if let (Some(select), true) = (select, matching) {
            self.ban_select(select);
        }
    }

    /// Keeps every literal that a sort or group clause might be matched with (H-02): what
    /// is compared must read the same on both sides, so both sides keep their literals.
    fn ban_select(&mut self, select: &Select) {
        self.ban_sorted(&select.projection);
        self.ban_sorted(&select.group_by);
        self.ban_sorted(&select.having);
        self.ban_sorted(&select.named_window);
        self.ban_sorted(&select.distinct);
    }

    fn write(&mut self, statement: &Statement) -> Result<(), Reason> {
        let (name, odd) = match statement {
            Statement::Insert(insert) => {
                if let Some(SetExpr::Values(rows)) = insert.source.as_ref().map(|q| &*q.body) {
                    self.each(rows, |slot| slot.is_at(Place::Stored));
                }
                for (value, column) in stored(insert) {
                    if let Some(slot) = self.slot(value) {
                        slot.column = Some(column);
                    }
                }
                (insert_target(insert)?, is_foreign_insert(insert))
            }
            Statement::Update(update) => (
                table_target(&update.table)?,
                update.or.is_some()
                    || update.output.is_some()
                    || !update.order_by.is_empty()
                    || update.limit.is_some(),
            ),
            Statement::Delete(delete) => {
                let FromTable::WithFromKeyword(from) = &delete.from else {
                    return Err(Reason::Unparsed);
                };
                let [table] = from.as_slice() else {
                    return Err(Reason::Unparsed);
                };
                let odd = !delete.tables.is_empty()
                    || delete.output.is_some()
                    || !delete.order_by.is_empty()
                    || delete.limit.is_some();
                (table_target(table)?, odd)
            }
            Statement::Merge(merge) => (factor_target(&merge.table)?, false),
            Statement::Query(_) => return Ok(()),
            _ => return Err(Reason::NotPreparable),
        };
        if odd {
            return Err(Reason::Unparsed);
        }
        self.writes += 1;
        self.targets
            .push(name_ranges(name).ok_or(Reason::Unparsed)?);
        Ok(())
    }

    fn cast(&mut self, expr: &Expr, data_type: &DataType) {
        let DataType::Interval { fields, precision } = data_type else {
            return;
        };
        if fields.is_some() || precision.is_some() {
            self.ban(expr);
        } else if let Expr::Value(value) = peel(expr)
            && let Some(slot) = self.slot(value)
        {
            slot.interval = true;
        }
    }

    /// `interval '…'`; with fields the literal is read in another way (H-04).
    fn interval(&mut self, interval: &Interval) {
        let bare = Interval {
            value: interval.value.clone(),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        };
        match &*interval.value {
            Expr::Value(value) if *interval == bare => {
                self.typed(value);
                if let Some(slot) = self.slot(value) {
                    slot.interval = true;
                }
            }
            value => self.ban(value),
        }
    }

    /// `type '…'`: what cannot be made a cast stays (`sql::typed`).
    fn typed(&mut self, value: &ValueWithSpan) {
        if let Some(slot) = self.slot(value) {
            slot.typed = true;
            if !slot.is_named() {
                slot.stays(Stay::Banned);
            }
        }
    }
}

impl Visitor for Walk {
    type Break = Reason;

    fn pre_visit_statement(&mut self, statement: &Statement) -> Flow {
        self.write(statement)
            .map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        let foreign = query.settings.is_some()
            || query.for_clause.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
            || query.order_by.as_ref().is_some_and(|order_by| {
                order_by.interpolate.is_some() || matches!(order_by.kind, OrderByKind::All(_))
            });
        if foreign {
            return ControlFlow::Break(Reason::Unparsed);
        }
        self.queries += 1;
        self.is_busy |= matches!(*query.body, SetExpr::Table(_));
        self.sort_clauses(query);
        self.tables.query(query);
        for expr in whole(query) {
            if let Some(slot) = constant(expr).and_then(|value| self.slot(value)) {
                slot.is_at(Place::Bare);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        if select.into.is_some() {
            return ControlFlow::Break(Reason::Clause);
        }
        if is_foreign_select(select) {
            return ControlFlow::Break(Reason::Unparsed);
        }
        if let Some(Distinct::On(items)) = &select.distinct {
            self.ban_sorted(items);
        }
        self.ban_sorted(&select.group_by);
        if has_sort_hazard(select) {
            self.ban_select(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> Flow {
        self.is_busy = true;
        self.tables.factor(factor);
        match factor {
            // Paths and column defaults there are read by the grammar.
            TableFactor::JsonTable { .. } | TableFactor::XmlTable { .. } => self.ban(factor),
            TableFactor::Table {
                with_hints,
                partitions,
                ..
            } if !with_hints.is_empty() || !partitions.is_empty() => {
                return ControlFlow::Break(Reason::Unparsed);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        if let Expr::Function(function) = expr {
            self.is_busy = true;
            // Two are enough to know.
            self.shown += usize::from(self.shown < 2 && calls::may_show(function));
        }
        match expr {
            Expr::Interval(interval) => self.interval(interval),
            Expr::TypedString(string) => self.typed(&string.value),
            Expr::Prefixed { .. } => self.ban(expr),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: operand,
            } => {
                if let Expr::Value(value) = peel(operand)
                    && let Some(slot) = self.slot(value)
                {
                    slot.negated = true;
                }
            }
            Expr::Cast {
                expr, data_type, ..
            } => self.cast(expr, data_type),
            Expr::Between { expr, .. } => self.ban_strings(expr),
            Expr::InList { expr, list, .. } => {
                self.ban_strings(expr);
                for value in list.iter().filter_map(constant) {
                    if let Some(slot) = self.slot(value) {
                        slot.is_at(Place::Listed);
                    }
                }
            }
            Expr::Function(function) if has_sorted_argument(function) => self.ban_sorted(expr),
            Expr::Function(function) if takes_precision(function) => self.ban(expr),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> Flow {
        if let Some(slot) = self.slot(value) {
            slot.reported = true;
        }
        ControlFlow::Continue(())
    }
}

/// The select whose target list an ORDER BY is matched with: parentheses around it do not count
/// (gram.y, `insertSelectOptions`).
fn sorted_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => sorted_select(&query.body),
        _ => None,
    }
}

/// Whether a clause of this select other than ORDER BY holds an expression with a literal that is
/// matched with others, or groups in a way that makes the matching visible.
fn has_sort_hazard(select: &Select) -> bool {
    let matched = |expr: &Expr| constant(expr).is_none() && has_literal(expr);
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(items, _) => items.iter().any(|item| match peel(item) {
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => true,
            Expr::Tuple(items) => items.iter().any(matched),
            item => matched(item),
        }),
        GroupByExpr::All(_) => true,
    };
    let distinct = match &select.distinct {
        Some(Distinct::On(items)) => items.iter().any(matched),
        _ => false,
    };
    grouped
        || distinct
        || calls::frames_by_literal(select)
        || select.named_window.iter().any(|window| match &window.1 {
            NamedWindowExpr::WindowSpec(spec) => sorts_by_literal(spec),
            NamedWindowExpr::NamedWindow(_) => false,
        })
        || any_expr(&select.projection, |expr| match expr {
            Expr::Function(Function {
                over: Some(WindowType::WindowSpec(spec)),
                ..
            }) => sorts_by_literal(spec),
            _ => false,
        })
}

fn sorts_by_literal(window: &WindowSpec) -> bool {
    has_literal(&window.partition_by) || has_literal(&window.order_by)
}

/// Whether an aggregate sorts its input by an expression with a literal.
fn has_sorted_argument(function: &Function) -> bool {
    let within: &[OrderByExpr] = &function.within_group;
    let arguments = match &function.args {
        FunctionArguments::List(list) => list.clauses.as_slice(),
        _ => &[],
    };
    within.iter().any(has_literal)
        || arguments.iter().any(|clause| match clause {
            FunctionArgumentClause::OrderBy(items) => items.iter().any(has_literal),
            _ => false,
        })
}

/// `current_timestamp(3)` and the like: the grammar wants an integer constant there.
fn takes_precision(function: &Function) -> bool {
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| {
        [
            "current_time",
            "current_timestamp",
            "localtime",
            "localtimestamp",
        ]
        .iter()
        .any(|known| name.value.eq_ignore_ascii_case(known))
    })
}

/// Whether this ORDER BY item may have an argument: `column <op> 'literal'`, as searches by
/// distance write it, while no item of the select list could be the same expression (H-02).
fn is_free(item: &Expr, select: &Select) -> bool {
    let Expr::BinaryOp { left, op, right } = peel(item) else {
        return false;
    };
    let column = |expr: &Expr| {
        matches!(
            peel(expr),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_)
        )
    };
    let literal = |expr: &Expr| match peel(expr) {
        Expr::Value(value) => value.value.clone().into_string().is_some(),
        Expr::Cast { expr, .. } => matches!(peel(expr), Expr::Value(value)
            if value.value.clone().into_string().is_some()),
        _ => false,
    };
    let shape = (column(left) && literal(right)) || (literal(left) && column(right));
    shape
        && select.distinct.is_none()
        && !any_expr(&select.projection, |expr| match expr {
            Expr::BinaryOp { op: other, .. } => {
                other == op || matches!(other, BinaryOperator::PGCustomBinaryOperator(_))
            }
            _ => false,
        })
}

/// Clauses of other databases: where the parser sees one, it has misread an identifier.
fn is_foreign_select(select: &Select) -> bool {
    select.top.is_some()
        || select.exclude.is_some()
        || !select.lateral_views.is_empty()
        || select.prewhere.is_some()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || select.select_modifiers.is_some()
        || matches!(&select.group_by, GroupByExpr::All(_))
        || matches!(&select.group_by, GroupByExpr::Expressions(_, with) if !with.is_empty())
}

fn is_foreign_insert(insert: &Insert) -> bool {
    insert.or.is_some()
        || insert.ignore
        || insert.overwrite
        || !insert.assignments.is_empty()
        || insert.partitioned.is_some()
        || !insert.after_columns.is_empty()
        || insert.output.is_some()
        || insert.replace_into
        || insert.priority.is_some()
        || insert.insert_alias.is_some()
        || insert.settings.is_some()
        || insert.format_clause.is_some()
        || insert.multi_table_insert_type.is_some()
        || !insert.into
        || matches!(insert.on, Some(OnInsert::DuplicateKeyUpdate(_)))
}

fn insert_target(insert: &Insert) -> Result<&ObjectName, Reason> {
    match &insert.table {
        TableObject::TableName(name) => Ok(name),
        _ => Err(Reason::Unparsed),
    }
}

fn table_target(table: &TableWithJoins) -> Result<&ObjectName, Reason> {
    if table.joins.is_empty() {
        factor_target(&table.relation)
    } else {
        Err(Reason::Unparsed)
    }
}

fn factor_target(factor: &TableFactor) -> Result<&ObjectName, Reason> {
    match factor {
        TableFactor::Table {
            name, args: None, ..
        } => Ok(name),
        _ => Err(Reason::Unparsed),
    }
}
