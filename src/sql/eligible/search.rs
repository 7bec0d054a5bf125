//! Looking for values and expressions in a part of a parsed statement.

use sqlparser::ast::{Expr, ValueWithSpan, Visit, Visitor};
use std::ops::ControlFlow;

/// Does something with each value in it.
pub(super) fn values(node: &impl Visit, action: impl FnMut(&ValueWithSpan)) {
    struct Values<F>(F);
    impl<F: FnMut(&ValueWithSpan)> Visitor for Values<F> {
        type Break = ();
        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            (self.0)(value);
            ControlFlow::Continue(())
        }
    }
    let _ = node.visit(&mut Values(action));
}

/// Whether there is any value in it; NULL and booleans count, which errs on the safe side.
pub(super) fn has_literal(node: &impl Visit) -> bool {
    let mut found = false;
    values(node, |_| found = true);
    found
}

/// Whether some expression in it passes this test.
pub(super) fn any_expr(node: &impl Visit, mut test: impl FnMut(&Expr) -> bool) -> bool {
    sqlparser::ast::visit_expressions(node, |expr| {
        if test(expr) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .is_break()
}
