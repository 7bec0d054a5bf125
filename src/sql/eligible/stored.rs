//! Where an INSERT puts its literals, as far as a plan does not show it: the rows of VALUES, if
//! they are several, and what ON CONFLICT sets.

use super::bare::constant;
use sqlparser::ast::{
    AssignmentTarget, Ident, Insert, ObjectName, ObjectNamePart, OnConflictAction, OnInsert, Query,
    SetExpr, ValueWithSpan,
};

/// A column of the table that is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// The one of this name.
    Name(String),
    /// The one at this index among those that are not dropped.
    Index(usize),
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
            let column = name(target).map(Column::Name);
            out.extend(constant(&assignment.value).zip(column));
        }
    }
    out
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
