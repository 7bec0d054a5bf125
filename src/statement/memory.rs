//! How much memory of the server a prepared statement takes, as far as the proxy can tell.
//!
//! Measured on 14 to 18 by `pg_backend_memory_contexts` (`CachedPlanSource`, `CachedPlanQuery` and
//! `CachedPlan`, of which blocks are taken from the system) and on 13 by the private memory of the
//! process, a mean over 40 statements of one kind. KiB on 15 without and with a generic plan, and
//! the estimate with one as a multiple of that:
//!
//! | statement | without | with | estimate |
//! |---|---|---|---|
//! | one row by its key, two columns of 5 | 8 | 12 | 1.9 |
//! | one row by its key, all columns of 5 / 50 / 200 | 8 / 24 / 90 | 12 / 40 / 157 | 2.0 / 1.2 / 0.8 |
//! | joins of 2 / 4 / 8 tables | 16 / 49 / 99 | 32 / 81 / 163 | 1.6 / 1.2 / 1.3 |
//! | a view of 8 tables | 68 | 132 | 1.4 |
//! | `IN` with 10 / 100 / 1000 arguments, or one array | 8 / 32 / 160 / 8 | 16 / 65 / 317 / 12 | 2.2 / 1.3 / 1.5 / 2.4 |
//! | INSERT of 2 / 12 / 50 / 200 columns | 6 / 12 / 48 / 106 | 14 / 28 / 81 / 176 | 3.0 / 1.5 / 0.8 / 1.2 |
//! | UPDATE of 3 / 19 columns | 10 / 16 | 18 / 32 | 1.8 / 1.5 |
//! | two columns of a table of 200: UPDATE, SELECT | 20 / 22 | 52 / 54 | 0.6 / 0.4 |
//!
//! On 13 and 14 it is as much, on 16 to 18 up to a third less. What the parser keeps grows with the
//! text, and with what it does not show: the columns behind a star, the tables of a view. Those are
//! in the plan. Only the names of columns that a statement does not use are in neither, of which a
//! table of 200 has 14 KiB for each time it is named.

use super::{Plans, Terms};

/// A statement that says next to nothing: blocks of 1 KiB and more for three contexts, a hash
/// entry, and a portal's worth of what is left over.
const BASE: usize = 12 << 10;

/// Bytes of nodes for each byte of text and plan.
const PER_BYTE: usize = 40;

/// What a statement takes that is planned for its values, by whose plans nothing is kept, in eighths
/// of what one with a generic plan takes.
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
