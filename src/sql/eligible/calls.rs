//! Calls that the server takes for one where all their literals are equal, which two parameters
//! never are: aggregates and calls in windows may share a state (`find_compatible_agg` in
//! `prepagg.c`, `ExecInitWindowAgg`), functions of rows are run once (`split_pathtarget_at_srfs` in
//! `tlist.c`), and windows that are written alike are one (`transformWindowFuncCall` in
//! `parse_agg.c`).

use super::search::{any_expr, has_literal};
use crate::sql::residue;
use sqlparser::ast::{
    Expr, Function, NamedWindowExpr, ObjectNamePart, Select, WindowSpec, WindowType,
};

/// Whether this is a call with a literal of a function that may be somebody's own, so that it may
/// show how often it is run.
pub(super) fn may_show(function: &Function) -> bool {
    let name = function.name.0.last().and_then(ObjectNamePart::as_ident);
    let is_known = name.is_some_and(|name| residue::is_known_call(name.value.as_bytes()));
    !is_known && has_literal(function)
}

/// Whether there is a literal in the frame of a window of this select, beside which there is
/// another window.
pub(super) fn frames_by_literal(select: &Select) -> bool {
    let (mut windows, mut frames) = (0, false);
    let mut take = |spec: &WindowSpec| {
        windows += 1;
        frames |= spec.window_frame.as_ref().is_some_and(has_literal);
    };
    for window in &select.named_window {
        if let NamedWindowExpr::WindowSpec(spec) = &window.1 {
            take(spec);
        }
    }
    any_expr(&select.projection, |expr| {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(spec)) = &function.over
        {
            take(spec);
        }
        false
    });
    windows > 1 && frames
}
