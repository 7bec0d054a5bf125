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
//!   CONFLICT. LIMIT is estimated and not shown, so a plan with more limits than the text has
//!   numbers behind LIMIT has no theorem.
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
//!   collation of the database finds different strings equal (facts `c`).
//! - Nodes above give at most one row of one; the plan shows it.
//! - A plan that visits other rows computes with them nothing that could fail or tell: conditions
//!   are comparisons of columns with constants or each other, of types for which every comparison
//!   has a result (facts `c`); for these the names in the plan must be the tables' (facts `n`: each
//!   table read is one that the text names, none is renamed, and there are no others). With more
//!   than one table, results below the join are plain columns.
//! - No predicate is locked: the transaction is not serializable, which the default says (fact `s`)
//!   and the session looks out for ([`Terms::one_row`](crate::statement::Terms)).
//!
//! **One plan.** Every value gets the same plan, because nothing the planner looks at depends on
//! the value; so rows visited and locks are the same, too. Premises:
//!
//! - Arguments are only computed with, or compared by `=`, `<>` or `= ANY` with columns of tables.
//!   Equality is estimated by the column's common values, all others being alike (`var_eq_const`):
//!   the values that are common are left out ([`Common`](crate::statement::common_values)). The
//!   types are known, no collation of the database finds different strings equal, there are no
//!   statistics of several columns, and the role may see all there is (facts `c`, `p`, `v`). A cast
//!   to text is none if the column is text or varchar. The names are the tables' (facts `n`).
//! - No index could be searched for it whose cost looks at the value: all are btree or hash. No
//!   partial index is about the column. No constraint is looked at: `constraint_exclusion` is not
//!   `on`, the table does not inherit, nothing is appended, and no column is compared twice.
//! - What is not shown of an argument (LIMIT, a function's rows) is weighed, and so is whatever
//!   else is done with it: no theorem.
//! - The order of rows does not follow from an estimate, as it does of hash joins and hash
//!   aggregates, which the generic plan sizes by an estimate of its own.
//!
//! Where the server may choose its plans, less has to be proven: [`Meaning`] says what.
//!
//! [`Plans::Custom`]: crate::statement::Plans::Custom

mod align;
mod constant;
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
pub(super) use meaning::Meaning;
pub(super) use statistics::questions;
pub(super) use tree::Plan;
pub(super) use visibility::Visibility;

use crate::sql::eligible::Eligible;
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};
use crate::statement::{Statement, StoredIn};
use align::align;
use constant::{Constant, Types};

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
mod tests {
    use super::tree::tests::drawn;
    use super::*;

    /// A plan, or one node with these expressions.
    fn plan(text: &str) -> Plan {
        match text.starts_with(' ') {
            true => drawn(&format!("Seq Scan on public.t\n{text}")),
            false => drawn(text),
        }
    }

    fn same(custom: &str, generic: &str) -> bool {
        let hidden = Hidden {
            bare: &[true; 30],
            stored: &[],
        };
        same_plan(&plan(custom), &plan(generic), &[23; 30], &hidden).is_some()
    }

    #[test]
    fn a_call_left_to_the_execution_by_both_plans_is_alike() {
        assert!(same("  Output: f1(5)", "  Output: f1($1)"));
        assert!(same(
            "  Function Call: f(1, 'x'::text)",
            "  Function Call: f($1, $2)"
        ));
        // So is one inside another, and a cast or an operator that both leave to it.
        for (custom, generic) in [
            ("f1(g(5))", "f1(g($1))"),
            ("f1((5 / 2))", "f1((5 / $1))"),
            ("(f(5) AT TIME ZONE 'UTC'::text)", "(f($1) AT TIME ZONE $2)"),
            ("timezone('UTC'::text, f(5))", "timezone($2, f($1))"),
            ("(f(5))::date", "(f($1))::date"),
            ("('x'::text)::date", "($2)::date"),
            ("((f(5) + 1) - 2)", "((f($1) + $2) - $3)"),
        ] {
            let output = |expression: &str| format!("  Output: {expression}");
            assert!(same(&output(custom), &output(generic)), "{custom}");
        }
        // Folded in one plan only; estimated with its value; something else inside.
        for (custom, generic) in [
            ("  Output: 25", "  Output: f1($1)"),
            ("  Filter: (t.a = f1(5))", "  Filter: (t.a = f1($1))"),
            ("  Output: f1(2)", "  Output: f1((5 / $1))"),
            ("  Output: f1(2)", "  Output: f1(g($1))"),
            (
                "  Output: f1('2020-01-01'::date)",
                "  Output: f1(($1)::date)",
            ),
            ("  Output: (f(5) + 2)", "  Output: (f($1) + (5 / $2))"),
            ("  Output: '2020-01-01'::date", "  Output: (f($1))::date"),
            ("  Output: f1((- 5))", "  Output: f1((~ $1))"),
        ] {
            assert!(!same(custom, generic), "{custom} / {generic}");
        }
    }

    #[test]
    fn moments_are_planned_once_for_numbers_that_are_near() {
        let original = plan("  Output: '2020-09-13 12:26:41'::timestamp without time zone");
        let checks = |kind: u32, generic: &str| {
            let generic = plan(&format!("  Output: {generic}"));
            let hidden = Hidden {
                bare: &[true; 2],
                stored: &[],
            };
            let types = [kind, 25];
            let aligned = align(&original, &generic, &types, &hidden);
            let aligned = aligned.map_err(|apart| apart.fixable)?;
            let checks = aligned.guards.iter().map(|guard| guard.check);
            Ok(checks.filter(|check| *check != Check::Digits(30)).collect())
        };
        let seconds = "to_timestamp(($1)::double precision)";
        let few: Vec<Check> = vec![Check::Digits(11)];
        for (kind, generic, expected) in [
            (
                23,
                format!("({seconds} AT TIME ZONE 'UTC'::text)"),
                Ok(vec![]),
            ),
            (23, format!("timezone('UTC'::text, {seconds})"), Ok(vec![])),
            (
                20,
                format!("({seconds} AT TIME ZONE 'UTC'::text)"),
                Ok(few.clone()),
            ),
            (
                701,
                "(to_timestamp($1) AT TIME ZONE 'UTC'::text)".into(),
                Ok(few),
            ),
            (
                25,
                format!("({seconds} AT TIME ZONE 'UTC'::text)"),
                Err(vec![]),
            ),
            (23, format!("({seconds} AT TIME ZONE $2)"), Err(vec![1])),
            (
                23,
                format!("({seconds} AT TIME ZONE lower($2))"),
                Err(vec![]),
            ),
            (
                23,
                "(($2)::date AT TIME ZONE 'UTC'::text)".into(),
                Err(vec![]),
            ),
            (
                23,
                "to_timestamp(((5 / $1))::double precision)".into(),
                Err(vec![]),
            ),
            (23, "to_timestamp($2, 'YYYY'::text)".into(), Err(vec![])),
        ] {
            let seen: Result<Vec<Check>, _> = checks(kind, &generic);
            assert_eq!(seen, expected, "{kind} {generic}");
        }
    }

    #[test]
    fn constants_are_alike_however_they_are_written() {
        for (custom, generic) in [
            ("  Index Cond: (t.id = 42)", "  Index Cond: (t.id = $1)"),
            (
                "  Filter: (t.n = '5'::numeric)",
                "  Filter: (t.n = ($1)::numeric)",
            ),
            (
                "  Index Cond: (a.aid = ANY ('{1,2}'::integer[]))",
                "  Index Cond: (a.aid = ANY (ARRAY[$1, ($2 + $3)]))",
            ),
            ("  Output: (t.a + 5), 'x'::text", "  Output: (t.a + $1), $2"),
            ("  Cache Key: (t.a + 5)", "  Cache Key: (t.a + $1)"),
            (
                "  Output: 'abc'::character varying(10), now()",
                "  Output: ($1)::character varying(10), now()",
            ),
            (
                "  Filter: (t.x = 'a''b'::text)",
                "  Filter: (t.x = lower(($1)::text))",
            ),
            (
                "  Filter: (t.x = '-5'::integer)",
                "  Filter: (t.x = (- $1))",
            ),
            (
                "  Filter: (t.x = E'a\\\\''b'::text)",
                "  Filter: (t.x = $1)",
            ),
        ] {
            assert!(same(custom, generic), "{custom} / {generic}");
        }
    }

    #[test]
    fn everything_else_must_be_equal() {
        for (custom, generic) in [
            ("Index Scan using a on public.t", "Seq Scan on public.t"),
            (
                "Index Scan using a on public.t",
                "Index Scan using b on public.t",
            ),
            ("  Filter: (t.id = 42)", "  Filter: (t.other = $1)"),
            ("  Filter: (t.id = 42)", "  Filter: (t.id > $1)"),
            ("  Index Cond: (t.id = 42)", "  Filter: (t.id = $1)"),
            (
                "  Filter: (t.email = 'x'::text)",
                "  Filter: (($1 = ''::text) OR (t.email = $2))",
            ),
            (
                "  Filter: (t.x = f(t.y, 1))",
                "  Filter: (t.x = g(t.y, $1))",
            ),
            ("Limit\n  -> Result", "Limit"),
            ("Limit\n  -> Result", "Result\n  -> Limit"),
            ("  Filter: now()", "  Filter: f()"),
            ("  Output: 1, 2", "  Output: $1"),
            ("Seq Scan on public.t", "Seq Scan on s.t"),
            ("Seq Scan on public.t", "Seq Scan on public.t u"),
            (
                "  Filter: ((t.x)::text = 'a'::text)",
                "  Filter: ((t.x)::bpchar = $1)",
            ),
        ] {
            assert!(!same(custom, generic), "{custom} / {generic}");
        }
    }

    #[test]
    fn a_long_list_in_a_filter_needs_its_hash_table() {
        let array = |n: usize| {
            (1..=n)
                .map(|k| format!("${k}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let custom = "  Filter: (t.x = ANY ('{1,2,3}'::integer[]))";
        let generic = |n| format!("  Filter: (t.x = ANY (ARRAY[{}]))", array(n));
        assert!(same(custom, &generic(8)));
        assert!(!same(custom, &generic(9)));
        assert!(same(
            "  Index Cond: (t.x = ANY ('{1}'::integer[]))",
            &format!("  Index Cond: (t.x = ANY (ARRAY[{}]))", array(30))
        ));
    }

    #[test]
    fn casts_that_only_the_literal_shows_are_guarded() {
        let guards = |kind: u32, custom: &str| {
            let (custom, generic) = (plan(custom), plan("  Output: $1, ctid"));
            let guards = same_plan(&custom, &generic, &[kind], &Hidden::default())?;
            Some(guards.iter().map(|guard| guard.check).collect::<Vec<_>>())
        };
        for (kind, custom, expected) in [
            (23, "5", Some(vec![])),
            (23, "'5'::bigint", Some(vec![])),
            (23, "'5'::smallint", Some(vec![Check::Magnitude(32767)])),
            (20, "5", Some(vec![Check::Magnitude(2_147_483_647)])),
            (23, "'5'::money", None),
            (1043, "'a'::character varying", Some(vec![])),
            (
                1043,
                "'a'::character varying(8)",
                Some(vec![Check::Length(8)]),
            ),
            (1042, "'a   '::character(4)", Some(vec![Check::Length(4)])),
            (1700, "1.00::numeric(6,2)", Some(vec![Check::Digits(4)])),
            (1700, "1.5", Some(vec![])),
            (
                1114,
                "'2020-01-01 00:00:00'::timestamp without time zone",
                Some(vec![]),
            ),
            (
                1184,
                "'2020-01-01 00:00:00+00'::timestamp(3) with time zone",
                Some(vec![]),
            ),
            (
                1082,
                "'2020-01-01 00:00:00'::timestamp without time zone",
                None,
            ),
            (16_400, "'sad'::mood", Some(vec![])),
            (16_400, "'x'::vector(3)", None),
            (16, "true", Some(vec![])),
            (1007, "'{1,2}'::integer[]", Some(vec![])),
            (1015, "'{a}'::character varying(3)[]", None),
            (1560, "'101'::bit(3)", None),
        ] {
            let custom = format!("  Output: {custom}, ctid");
            assert_eq!(guards(kind, &custom), expected, "{custom}");
        }
    }

    #[test]
    fn what_the_plan_does_not_show_must_be_bare() {
        let values = plan("Values Scan");
        let bare = Hidden {
            bare: &[true],
            stored: &[],
        };
        assert_eq!(same_plan(&values, &values, &[23], &bare), Some(vec![]));
        assert_eq!(
            same_plan(&values, &values, &[1700], &bare).map(|g| g.len()),
            Some(1)
        );
        assert_eq!(same_plan(&values, &values, &[23], &Hidden::default()), None);
        let initplan = plan("  Filter: (t.a = $1)");
        let hidden = Hidden::default();
        assert_eq!(same_plan(&initplan, &initplan, &[23], &hidden), None);
    }

    #[test]
    fn what_the_plan_does_not_show_is_converted_to_its_column() {
        let values = plan("Values Scan");
        let checks = |kind: u32, column: &str, is_moment: bool| {
            let stored = [Some(StoredIn {
                type_name: column.to_owned(),
                is_moment,
            })];
            let hidden = Hidden {
                bare: &[false],
                stored: &stored,
            };
            let guards = same_plan(&values, &values, &[kind], &hidden)?;
            Some(guards.iter().map(|guard| guard.check).collect::<Vec<_>>())
        };
        for (kind, column, expected) in [
            (23, "integer", Some(vec![])),
            (23, "bigint", Some(vec![])),
            (23, "text", Some(vec![])),
            (23, "smallint", Some(vec![Check::Magnitude(32767)])),
            (1700, "numeric(6,2)", Some(vec![Check::Digits(4)])),
            (1043, "character varying(8)", Some(vec![Check::Length(8)])),
            (1042, "character(4)", Some(vec![Check::Length(4)])),
            (1114, "timestamp(3) without time zone", Some(vec![])),
            (16_400, "public.mood", Some(vec![])),
            (1560, "bit(3)", None),
            (23, "some_domain", None),
        ] {
            assert_eq!(checks(kind, column, false), expected, "{kind} in {column}");
        }
        for (kind, column, expected) in [
            (23, "timestamp with time zone", Some(vec![])),
            (23, "timestamp(0) without time zone", Some(vec![])),
            (
                20,
                "timestamp with time zone",
                Some(vec![Check::Digits(11)]),
            ),
            (25, "timestamp with time zone", None),
            (23, "date", None),
            (23, "text", None),
        ] {
            assert_eq!(checks(kind, column, true), expected, "{kind} in {column}");
        }
    }
}
