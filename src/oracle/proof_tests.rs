//! Plans of which it is proven, or not, that no other value could show another.

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
fn what_coalesce_begins_with_is_all_of_it_if_it_is_a_literal() {
    for (custom, generic) in [
        ("5", "COALESCE($1, a)"),
        ("5", "COALESCE($1, $2)"),
        ("5", "COALESCE($1, (a + f(b, $2)), c)"),
        ("'5'::numeric", "COALESCE(($1)::numeric, n)"),
        ("'5'::bigint", "(COALESCE(($1)::numeric, (n / $2)))::bigint"),
        ("f(5)", "f(COALESCE($1, COALESCE(a, $2)))"),
        ("COALESCE(a, 5)", "COALESCE(a, COALESCE($1, b))"),
    ] {
        let output = |expression: &str| format!("  Output: {expression}");
        assert!(same(&output(custom), &output(generic)), "{custom}");
        let filter = |expression: &str| format!("  Filter: (t.a = {expression})");
        assert!(!same(&filter(custom), &filter(generic)), "{custom}");
    }
    // What may be NULL, or may fail, or is another word.
    for (custom, generic) in [
        ("5", "COALESCE(NULLIF($1, $2), a)"),
        ("5", "COALESCE(f($1), a)"),
        ("5", "COALESCE(a, $1)"),
        ("5", "COALESCE(b, a)"),
        ("'5'::date", "COALESCE(($1)::date, a)"),
        ("5", "GREATEST($1, a)"),
        ("COALESCE($1, a)", "COALESCE($1, b)"),
        ("COALESCE($1, a)", "5"),
    ] {
        let output = |expression: &str| format!("  Output: {expression}");
        assert!(!same(&output(custom), &output(generic)), "{custom}");
    }
    // The executor's own parameter.
    let same_in_both = "  Output: COALESCE($1, a)";
    assert!(same(same_in_both, same_in_both));
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
