//! How much memory of the server a prepared statement takes, as far as the proxy can tell.
//!
//! Measured on 14 to 18 by `pg_backend_memory_contexts` (`CachedPlanSource`, `CachedPlanQuery` and
//! `CachedPlan`, of which blocks are taken from the system) and on 13 by the private memory of the
//! process, a mean over 40 statements of one kind. KiB on 15 without and with a generic plan, and
//! the estimate with one as a multiple of that:
//!
//! | statement | without | with | estimate |
//! |---|---|---|---|
//! | two columns of a row by its key | 8 | 12 | 1.7 |
//! | all of 5 / 50 / 200 columns | 8 / 24 / 90 | 12 / 40 / 157 | 1.9 / 1.5 / 1.2 |
//! | all columns of joins of 2 / 4 / 8 tables | 13 / 43 / 85 | 29 / 74 / 212 | 1.6 / 1.4 / 1.3 |
//! | three columns each of 2 / 4 / 8 tables | 16 / 49 / 99 | 32 / 81 / 163 | 1.5 / 1.2 / 1.4 |
//! | a view of 8 tables | 68 | 132 | 1.5 |
//! | `IN` with 10 / 100 / 1000 arguments | 8 / 32 / 160 | 16 / 65 / 317 | 1.8 / 1.2 / 1.4 |
//! | `= ANY` of an array | 8 | 12 | 2.1 |
//! | INSERT of 2 / 12 columns | 6 / 12 | 14 / 28 | 3.1 / 1.5 |
//! | INSERT of 50 / 200 columns | 48 / 107 | 81 / 176 | 1.0 / 1.5 |
//! | UPDATE of 3 / 19 columns, DELETE | 10 / 16, 6 | 18 / 32, 14 | 1.6 / 1.5, 1.8 |
//! | ten CASE in one SELECT | 49 | 82 | 0.9 |
//! | of a table of 200 columns: UPDATE or SELECT one | 20 | 53 | 0.5 |
//!
//! On 13 and 14 it is as much, on 16 to 18 at times a third less. What the parser keeps grows with
//! the text, and with what it does not show: the columns behind a star, the tables of a view. Those
//! are in the plan. Only the names of columns that a statement does not use are in neither, of
//! which a table of 200 has 14 KiB for each time it is named.

use super::{Plans, Terms};

/// What a statement takes that says next to nothing: blocks for three contexts, of which the last
/// is twice as large as the one before and mostly free.
const BASE: usize = 12 << 10;

/// Bytes of nodes for each byte of text and plan.
const PER_BYTE: usize = 36;

/// What a statement takes that is planned for its values each time, so that no plan is kept, in
/// eighths of what it takes with a generic plan.
const WITHOUT_PLAN: usize = 5;

/// The estimate, in bytes, for a statement with so long a text that was trusted with these terms.
/// Without a plan in them, as before the statement was asked about, one as long as the text is
/// assumed.
#[must_use]
pub(super) fn estimate(text: usize, plans: Plans, terms: &Terms) -> usize {
    let plan = match terms.plan_bytes {
        0 => text,
        known => known,
    };
    let nodes = text.saturating_add(plan).saturating_mul(PER_BYTE);
    let all = BASE.saturating_add(nodes);
    match plans {
        Plans::Generic => all,
        Plans::Custom => all / 8 * WITHOUT_PLAN,
    }
}
