//! The plan proof: whether a generic plan is the plan the literals get.
//!
//! Both plans come as the lines of `EXPLAIN (VERBOSE, COSTS OFF)`. Node for node, index for index,
//! condition for condition they must be the same once everything that is constant for one execution
//! is written alike: a literal, a parameter, a cast of either, a function call or operator over
//! nothing else, an array of them. Folding makes the first plan show `'8'::integer` where the
//! second shows `($1 + $2)`; both are one constant. What is not constant must be equal to the
//! letter.
//!
//! Where the generic plan has more to do with a parameter than to use it, that must be something
//! that cannot fail for the values admitted; these become [`Guard`]s.

mod constant;
mod exposure;
mod facts;
mod plan;
mod tokens;

pub(super) use exposure::Exposure;

use crate::sql::oid;
use crate::statement::guard::{Check, Guard};
use constant::{Constant, Types};
use tokens::{Token, normalize};

/// Elements from which the server looks an IN list up in a hash table if the list is a constant,
/// and only then (`MIN_ARRAY_SIZE_FOR_HASHED_SAOP` in `clauses.c`, since 14).
const HASHED_LIST: usize = 9;

/// Whether `generic` is `custom` with parameters of these types in place of constants: the guards
/// under which it behaves alike, or `None`.
#[must_use]
pub(super) fn same_plan(
    custom: &[String],
    generic: &[String],
    types: &[u32],
    hidden: &Hidden<'_>,
) -> Option<Vec<Guard>> {
    if custom.len() != generic.len() {
        return None;
    }
    let mut guards = Vec::new();
    let mut visible = vec![false; types.len()];
    for (custom, generic) in custom.iter().zip(generic) {
        let custom_tokens = normalize(custom, types);
        let generic_tokens = normalize(generic, types);
        if custom_tokens != generic_tokens
            || loses_hashed_list(generic)
            || orders_by_estimate(generic)
        {
            return None;
        }
        let label = generic.trim_start();
        let is_result = label.starts_with("Output:") || label.starts_with("Function Call:");
        let mut operator = "";
        for pair in generic_tokens.into_iter().zip(&custom_tokens) {
            let (mut constant, folded) = match pair {
                (Token::Constant(constant), Token::Constant(folded)) => (constant, folded),
                (Token::Operator(found), _) => {
                    operator = found;
                    continue;
                }
                _ => {
                    operator = "";
                    continue;
                }
            };
            if !(is_result && constant.run_like(folded)) {
                constant.convert_like(folded, types);
            }
            guards.extend(constant.guards(operator)?);
            operator = "";
            // What has a number in both plans is the executor's, and no argument of anybody's.
            if folded.parameters().is_empty() {
                for index in constant.parameters() {
                    *visible.get_mut(*index)? = true;
                }
            }
        }
    }
    for (argument, visible) in visible.into_iter().enumerate() {
        if !visible {
            guards.extend(hidden.guards(argument, types)?);
        }
    }
    guards.sort_by_key(|guard| guard.argument);
    guards.dedup();
    Some(guards)
}

/// What is known of arguments that a plan does not show: VALUES of several rows, LIMIT, what ON
/// CONFLICT sets, and some more are left out of it, and so is what is done with the argument there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hidden<'a> {
    /// For each argument whether nothing is done with it where it stands.
    pub bare: &'a [bool],
    /// The type of the column it is stored in.
    pub stored: &'a [Option<String>],
}

impl Hidden<'_> {
    /// What must be admitted of an argument; `None` if something might be done with it.
    fn guards(&self, argument: usize, types: Types<'_>) -> Option<Vec<Guard>> {
        if let Some(Some(column)) = self.stored.get(argument) {
            let mut constant = Constant::parameter(argument);
            constant.convert_like(&Constant::shown(column), types);
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
}

/// Whether the lines hold more than one plan tree, or none: what rewrite rules make.
#[must_use]
pub(super) fn is_one_tree(lines: &[String]) -> bool {
    let roots = lines
        .iter()
        .filter(|line| !line.starts_with(' ') && !line.starts_with("Query Identifier"));
    roots.count() == 1
        && !lines.iter().any(|line| line.trim().is_empty())
        && lines
            .first()
            .is_some_and(|line| !line.contains("rewrites to nothing"))
}

/// A long list outside an index condition that the generic plan must search one by one.
fn loses_hashed_list(line: &str) -> bool {
    let label = line.trim_start();
    if label.starts_with("Index Cond:") || label.starts_with("Recheck Cond:") {
        return false;
    }
    line.match_indices("(ARRAY[").any(|(at, _)| {
        let list = &line[at..];
        let list = &list[..list.find(']').unwrap_or(list.len())];
        list.contains('$') && list.matches(',').count() + 1 >= HASHED_LIST
    })
}

/// A node that returns its rows in the order of a hash table, whose size follows from an estimate:
/// a generic plan estimates otherwise than the literals do.
fn orders_by_estimate(line: &str) -> bool {
    const NODES: [&str; 7] = [
        "HashAggregate",
        "MixedAggregate",
        "HashSetOp",
        "Hash Full Join",
        "Hash Right Join",
        "Hash Right Anti Join",
        "Hash Right Semi Join",
    ];
    let node = line.trim_start().trim_start_matches("->").trim_start();
    let node = node.strip_prefix("Partial ").unwrap_or(node);
    let node = node.strip_prefix("Finalize ").unwrap_or(node);
    NODES.iter().any(|known| node.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(custom: &str, generic: &str) -> bool {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let hidden = Hidden {
            bare: &[true; 30],
            stored: &[],
        };
        same_plan(&lines(custom), &lines(generic), &[23; 30], &hidden).is_some()
    }

    #[test]
    fn a_call_left_to_the_execution_by_both_plans_is_alike() {
        assert!(same("  Output: f1(5)", "  Output: f1($1)"));
        assert!(same(
            "  Function Call: f(1, 'x'::text)",
            "  Function Call: f($1, $2)"
        ));
        // Folded in one plan only; estimated with its value; something else inside.
        assert!(!same("  Output: 25", "  Output: f1($1)"));
        assert!(!same("  Filter: (t.a = f1(5))", "  Filter: (t.a = f1($1))"));
        assert!(!same("  Output: f1((5 / 2))", "  Output: f1((5 / $1))"));
        assert!(!same("  Output: f1(g(5))", "  Output: f1(g($1))"));
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
            (
                "  Output: 'abc'::character varying(10), now()",
                "  Output: ($1)::character varying(10), now()",
            ),
            (
                "  Filter: (t.x = 'a''b'::text)",
                "  Filter: (t.x = lower($1))",
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
            ("a\n  b", "a"),
            ("  Output: 1, 2", "  Output: $1"),
            (" Seq Scan on t", "  Seq Scan on t"),
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
            let (custom, generic) = (custom.to_owned(), "  Output: $1, ctid".to_owned());
            let guards = same_plan(&[custom], &[generic], &[kind], &Hidden::default())?;
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
        let plan = ["Values Scan on \"*VALUES*\"".to_owned()];
        let bare = Hidden {
            bare: &[true],
            stored: &[],
        };
        assert_eq!(same_plan(&plan, &plan, &[23], &bare), Some(vec![]));
        assert_eq!(
            same_plan(&plan, &plan, &[1700], &bare).map(|g| g.len()),
            Some(1)
        );
        assert_eq!(same_plan(&plan, &plan, &[23], &Hidden::default()), None);
        let initplan = ["  Filter: (t.a = $1)".to_owned()];
        let hidden = Hidden::default();
        assert_eq!(same_plan(&initplan, &initplan, &[23], &hidden), None);
    }

    #[test]
    fn what_the_plan_does_not_show_is_converted_to_its_column() {
        let plan = ["Values Scan on \"*VALUES*\"".to_owned()];
        let checks = |kind: u32, column: &str| {
            let stored = [Some(column.to_owned())];
            let hidden = Hidden {
                bare: &[false],
                stored: &stored,
            };
            let guards = same_plan(&plan, &plan, &[kind], &hidden)?;
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
            assert_eq!(checks(kind, column), expected, "{kind} in {column}");
        }
    }

    #[test]
    fn rows_in_the_order_of_a_hash_table_are_not_trusted() {
        for line in [
            "HashAggregate",
            "    ->  Partial HashAggregate",
            "  ->  HashSetOp Except",
            "Hash Full Join",
            "  ->  Hash Right Join",
        ] {
            assert!(!same(line, line), "{line}");
        }
        for line in [
            "Hash Join",
            "  ->  Hash",
            "GroupAggregate",
            "  Output: \"HashAggregate\"",
        ] {
            assert!(same(line, line), "{line}");
        }
    }

    #[test]
    fn several_trees_are_told_from_one() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(is_one_tree(&lines("Update on t\n  ->  Seq Scan on t")));
        assert!(is_one_tree(&lines(
            "Result\n  Output: 1\nQuery Identifier: -5"
        )));
        assert!(!is_one_tree(&lines(
            "Update on t\n  -> x\n\nInsert on u\n  -> y"
        )));
        assert!(!is_one_tree(&lines("Update on t\nInsert on u")));
        assert!(!is_one_tree(&[]));
    }
}
