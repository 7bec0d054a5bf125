//! Expressions that EXPLAIN may not show, but that nothing is done with if they are bare constants.

use sqlparser::ast::{Expr, LimitClause, Query, SelectItem, SetExpr, UnaryOperator, ValueWithSpan};

/// The columns of this query's rows, its LIMIT and its OFFSET.
pub(super) fn whole(query: &Query) -> Vec<&Expr> {
    let mut out = Vec::new();
    columns(&query.body, &mut out);
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        out.extend(limit);
        out.extend(offset.as_ref().map(|offset| &offset.value));
    }
    out.extend(
        query
            .fetch
            .iter()
            .filter_map(|fetch| fetch.quantity.as_ref()),
    );
    out
}

fn columns<'a>(body: &'a SetExpr, out: &mut Vec<&'a Expr>) {
    match body {
        SetExpr::Select(select) => {
            out.extend(select.projection.iter().filter_map(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    Some(expr)
                }
                _ => None,
            }));
        }
        SetExpr::Values(values) => out.extend(values.rows.iter().flat_map(|row| row.iter())),
        SetExpr::SetOperation { left, right, .. } => {
            columns(left, out);
            columns(right, out);
        }
        // A query in parentheses is visited by itself.
        _ => {}
    }
}

/// The expression inside parentheses, which the grammar does not keep.
pub(super) fn peel(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The value, if the expression is a bare constant: an ordinal, or an error (parse_clause.c,
/// `findTargetlistEntrySQL92`).
pub(super) fn constant(expr: &Expr) -> Option<&ValueWithSpan> {
    match peel(expr) {
        Expr::Value(value) => Some(value),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => constant(expr),
        _ => None,
    }
}
