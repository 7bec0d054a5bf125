//! The plan proof: whether a generic plan is the plan the literals get.
//!
//! Both plans come as JSON (`EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON)`, [`tree`]). Node for node,
//! index for index, condition for condition they must be the same once everything that is constant
//! for one execution is written alike ([`align()`], `tokens`): a literal, a parameter, a cast of
//! either, a function call or operator over nothing else, an array of them. Folding makes the first
//! plan show `'8'::integer` where the second shows `($1 + $2)`; both are one constant. What is not
//! constant must be equal to the letter. What has a number in both plans at the same place is the
//! executor's own parameter, which until 16 looks like one of ours.
//!
//! What comes out of a generic plan as `COALESCE($1, …)` is `$1`: no argument is NULL but in a
//! column of rows, and no execution gets to what stands behind it (`T_CoalesceExpr` in
//! `execExpr.c`). What of that the planner could compute, it has when it was asked for the plan.
//!
//! Where the generic plan has more to do with a parameter than to use it, that must be something
//! that cannot fail for the values admitted; these become [`Guard`]s.
//!
//! # Theorems
//!
//! That proves the plans alike for the values of one query. The statement is planned once only if
//! one of three theorems ([`Visibility`]) says of every value admitted: the rows, their order, the
//! rows visited, errors, notices and predicate locks are those of the plan the original would get.
//! Whatever has no theorem is planned for its values each time ([`Plans::Custom`]).
//!
//! All three rest on these premises:
//!
//! - *The planner tries nothing out.* Where it estimates, it evaluates what is constant and not
//!   volatile: `current_setting(…)`, `now()`, anybody's STABLE function. Its value of the moment
//!   would decide a plan that is used at other moments, and its errors and notices would come once.
//!   The plan of literals shows it: what could be folded is a literal there, so a call, an
//!   operator, a cast in parentheses or a word like `CURRENT_DATE` is what remains to be tried out.
//!   It may stand only where nothing is estimated: among the columns of a result, and behind ON
//!   CONFLICT. What time it is (`instant`, by functions and operators of the server's, fact `t`)
//!   always has a result and says nothing, if no interval leads far from it ([`Check::Interval`]).
//!   So where another plan gives the same row, it may be compared with a column of its own type.
//!   LIMIT is estimated and not shown, so a plan with more limits than the text has numbers behind
//!   LIMIT has no theorem.
//! - *What looks like the server's own is its own.* Plans name operators, casts and functions as
//!   the search path finds them. The catalog has none outside `pg_catalog` with the names and types
//!   of those that are relied on, and no types with the names of those (fact `b`).
//!   Of the types of users, of which plans say the names and arguments the numbers, nothing else is
//!   made without being told to (fact `m`).
//!
//! **One way.** There is nothing to choose: constants, rows of VALUES or of one function, and what
//! writes them. Premise: no node but those, and at most one that scans; the plan shows it.
//!
//! **One row.** At most one row comes out, and no other is visited on the way that would show.
//! Another value may get another plan, which gives the same. Premises:
//!
//! - Each table is searched by an index for one value of as many columns as the index has; columns
//!   that an index is searched for are its own, so they need no names. The index is a btree,
//!   unique, valid, not deferrable, without predicate and expressions, of operator classes and
//!   types of the server's (fact `k`). What is unique by the index's own equality and collation is
//!   searched by them. Or else such a key is compared in full beside another index: then its
//!   columns are told by their names (facts `k`, `n`), and all equalities are one, because no
//!   collation of the database finds different strings equal (facts `c`). That by which the table
//!   itself is read counts, and that by which its rows are joined with one that is found without
//!   it; a table needs no key of which it is only looked whether it has a row (`keyed`). No key of
//!   local times or of days is searched for a moment, whose equality is not the key's.
//! - Nodes above give at most one row of one; the plan shows it.
//! - A plan that visits other rows computes with them nothing that could fail or tell: conditions
//!   are comparisons of columns with constants, lists or each other, joined by AND, OR and NOT, of
//!   types for which every comparison has a result (facts `c`), or LIKE of the server's own (fact
//!   `l`); for these the names in the plan must be the tables' (facts `n`: each table read is one
//!   that the text names, none is renamed, and there are no others; of what is named and not read
//!   fact `r` says that it is a table). No local time is compared with a moment
//!   (`searches_for_moments`). With more than one table, results below the join are plain columns.
//! - No predicate is locked: the transaction is not serializable, which the default says (fact `s`)
//!   and the session looks out for ([`Terms::one_row`](crate::statement::Terms)).
//!
//! So an audit lets another plan pass ([`is_as_good`]).
//!
//! **One plan.** Every value gets the same plan, because nothing the planner looks at depends on
//! the value; so rows visited and locks are the same, too. Premises:
//!
//! - Arguments are only computed with, or compared by `=`, `<>` or `= ANY` with columns of tables.
//!   Equality is estimated by the column's common values, all others being alike (`var_eq_const`):
//!   the values that are common are left out ([`Common`](crate::statement::common_values)), unless
//!   the server has made the same plan for them ([`values`](super::values)). A list
//!   has as many elements as the server was asked about (`lists`). The
//!   types are known, no collation of the database finds different strings equal, there are no
//!   statistics of several columns, and the role may see all there is (facts `c`, `p`, `v`). A cast
//!   to text is none if the column is text or varchar. The names are the tables' (facts `n`).
//! - No index could be searched for it whose cost looks at the value: all are btree or hash. No
//!   partial index is about the column. No constraint is looked at: `constraint_exclusion` is not
//!   `on`, the table neither inherits nor has had children, nothing is appended, and no column is
//!   compared twice.
//! - Where tables are joined, no two columns are compared with equal values, which would make the
//!   columns equal for the planner ([`apart`](crate::statement::apart)). A literal that stays in
//!   the text is no such value, or is one as it stands (`inline`), and then it is left out, too;
//!   and columns are equal to nothing in the plan but to these and to arguments.
//! - What is not shown of an argument (LIMIT, a function's rows) is weighed, and so is whatever
//!   else is done with it: no theorem.
//! - It holds for the present size of the tables, which changes without notice (`growth`): what is
//!   written does not depend on the order of rows, no condition fails, and no predicate is locked.
//! - The order of rows does not follow from an estimate, as it does of hash joins and hash
//!   aggregates, which the generic plan sizes by an estimate of its own.
//!
//! Where the server may choose its plans, less has to be proven: [`Meaning`] says what.
//!
//! [`Plans::Custom`]: crate::statement::Plans::Custom

mod align;
mod constant;
mod deeds;
mod differs;
mod kinds;
mod loose;
mod meaning;
mod plan;
mod premises;
mod statistics;
mod tokens;
mod total;
mod tree;
mod visibility;

pub(super) use align::Apart;
pub(super) use deeds::is_as_good;
pub(super) use differs::{arguments_apart, values_apart};
pub(super) use meaning::Meaning;
pub(super) use statistics::questions;
pub(super) use tree::Plan;
pub(super) use visibility::Visibility;

use super::answer::Answer;
use crate::sql::eligible::Eligible;
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};
use crate::statement::{Statement, StoredIn};
use align::align;
use constant::{Constant, Types};

/// Whether the answer is a plan that `generic` is with parameters of these types in place of
/// constants, of which nothing is hidden.
#[must_use]
pub(super) fn is_alike(answer: &Answer, generic: &Plan, types: &[u32]) -> bool {
    let plan = Plan::read(answer).ok().filter(|_| answer.is_good());
    let none = Hidden::default();
    plan.is_some_and(|plan| same_plan(&plan, generic, types, &none).is_some())
}

/// Whether `generic` is `original` with parameters of these types in place of constants: the guards
/// under which it behaves alike, or `None`.
#[must_use]
pub(super) fn same_plan(
    original: &Plan,
    generic: &Plan,
    types: &[u32],
    hidden: &Hidden<'_>,
) -> Option<Vec<Guard>> {
    let aligned = align(original, generic, types, hidden).ok()?;
    Some(aligned.guards)
}

/// The same, with what the plan rests on beside the guards.
///
/// # Errors
/// They are not the same.
pub(super) fn exposed(
    original: &Plan,
    generic: &Plan,
    types: &[u32],
    (hidden, eligible): (&Hidden<'_>, &Eligible),
) -> Result<(Visibility, Vec<Guard>), Apart> {
    let aligned = align(original, generic, types, hidden)?;
    let exposure = Visibility::of(&aligned, eligible);
    Ok((exposure, aligned.guards))
}

/// The plan as that of VALUES, if the rows are the only thing that differs.
pub(super) fn as_values(statement: &Statement, plan: Plan) -> Plan {
    match statement.recipe().shape().has_rows() {
        true => plan.with_rows(),
        false => plan,
    }
}

/// What is known of arguments that a plan does not show: VALUES of several rows, LIMIT, what ON
/// CONFLICT sets, and some more are left out of it, and so is what is done with the argument there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hidden<'a> {
    /// For each argument whether nothing is done with it where it stands.
    pub bare: &'a [bool],
    /// The column it is stored in.
    pub stored: &'a [Option<StoredIn>],
}

impl Hidden<'_> {
    /// What must be admitted of an argument; `None` if something might be done with it.
    fn guards(&self, argument: usize, types: Types<'_>) -> Option<Vec<Guard>> {
        if let Some(Some(column)) = self.stored.get(argument) {
            let mut constant = Constant::parameter(argument);
            if column.is_moment {
                constant = constant.moment_of(types);
                let is_one = constant.stays_moment(&column.type_name);
                return is_one.then(|| constant.guards("")).flatten();
            }
            constant.convert_like(&Constant::shown(&column.type_name), types);
            return constant.guards("");
        }
        if !*self.bare.get(argument)? {
            return None;
        }
        let check = Check::Magnitude(i64::MAX.unsigned_abs());
        let wide = types.get(argument) == Some(&oid::NUMERIC);
        Some(
            wide.then_some(Guard { argument, check })
                .into_iter()
                .collect(),
        )
    }

    /// Whether a moment is made of it.
    fn is_moment(&self, argument: usize) -> bool {
        let stored = self.stored.get(argument);
        matches!(stored, Some(Some(column)) if column.is_moment)
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
