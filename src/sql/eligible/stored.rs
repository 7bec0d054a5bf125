//! Where an INSERT puts its literals, as far as a plan does not show it: the rows of VALUES, if
//! they are several, and what ON CONFLICT sets.

use super::bare::{constant, peel};
use sqlparser::ast::{
    AssignmentTarget, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Insert,
    ObjectName, ObjectNamePart, OnConflictAction, OnInsert, Query, SetExpr, ValueWithSpan,
};

/// A column of the table that is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The one of this name.
    Name(String),
    /// The one at this index among those that are not dropped.
    Index(usize),
    /// The one of this name, with the moment that `to_timestamp` makes of the literal.
    Moment(String),
}

/// The literals that are all there is to a value stored, each with its column.
pub(super) fn stored(insert: &Insert) -> Vec<(&ValueWithSpan, Column)> {
    let mut out = Vec::new();
    if let Some(SetExpr::Values(values)) = insert.source.as_deref().and_then(plain) {
        for row in &values.rows {
            for (index, expr) in row.iter().enumerate() {
                let column = match insert.columns.get(index) {
                    Some(column) => name(column).map(Column::Name),
                    None => insert.columns.is_empty().then_some(Column::Index(index)),
                };
                out.extend(constant(expr).zip(column));
            }
        }
    }
    if let Some(OnInsert::OnConflict(conflict)) = &insert.on
        && let OnConflictAction::DoUpdate(update) = &conflict.action
    {
        for assignment in &update.assignments {
            let AssignmentTarget::ColumnName(target) = &assignment.target else {
                continue;
            };
            let value = &assignment.value;
            let moment = || seconds(value).zip(name(target).map(Column::Moment));
            let column = name(target).map(Column::Name);
            out.extend(constant(value).zip(column).or_else(moment));
        }
    }
    out
}

/// What `to_timestamp` is called with, if that is a bare constant.
fn seconds(value: &Expr) -> Option<&ValueWithSpan> {
    let Expr::Function(call) = peel(value) else {
        return None;
    };
    let is_plain = call.over.is_none()
        && call.filter.is_none()
        && call.null_treatment.is_none()
        && call.within_group.is_empty()
        && matches!(call.parameters, FunctionArguments::None)
        && name(&call.name).as_deref() == Some("to_timestamp");
    match &call.args {
        FunctionArguments::List(list)
            if is_plain && list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
        {
            match &list.args[..] {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(seconds))] => constant(seconds),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The body of a query that is nothing but its body: with ORDER BY or LIMIT its values are typed
/// before they are stored.
fn plain(query: &Query) -> Option<&SetExpr> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    bare.then_some(&*query.body)
}

/// The name of a column that is a column and no part of one.
fn name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [
            ObjectNamePart::Identifier(Ident {
                value, quote_style, ..
            }),
        ] => Some(match quote_style {
            Some(_) => value.clone(),
            None => value.to_lowercase(),
        }),
        _ => None,
    }
}
