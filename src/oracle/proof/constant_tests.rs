//! Constants as plans show them: which ones a parameter stands for.

use super::super::tokens::{Token, normalize};
use super::*;

/// Guards of `$1` of this type after the casts, in order.
fn cast(kind: u32, casts: &[&str]) -> Option<Vec<Check>> {
    let mut constant = Constant::number_or_parameter("$1");
    for name in casts {
        constant.cast(name, &[kind]);
    }
    let guards = constant.guards("=")?;
    Some(guards.iter().map(|guard| guard.check).collect())
}

#[test]
fn casts_that_cannot_fail_need_no_guard() {
    assert_eq!(cast(oid::INT4, &[]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["bigint"]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["numeric"]), Some(vec![]));
    assert_eq!(cast(oid::VARCHAR, &["text"]), Some(vec![]));
    assert_eq!(cast(oid::INT4, &["oid"]), Some(vec![]));
}

#[test]
fn casts_that_may_fail_are_guarded() {
    assert_eq!(
        cast(oid::VARCHAR, &["character varying(10)"]),
        Some(vec![Check::Length(10)])
    );
    assert_eq!(
        cast(oid::INT4, &["numeric", "numeric(5,2)"]),
        Some(vec![Check::Digits(3)])
    );
    assert_eq!(
        cast(oid::INT4, &["smallint"]),
        Some(vec![Check::Magnitude(32767)])
    );
    assert_eq!(cast(oid::TEXT, &["date"]), None);
    assert_eq!(cast(oid::TEXT, &["bit(3)"]), None);
}

#[test]
fn sums_are_guarded_and_other_operations_refused() {
    let parameter = || Constant::number_or_parameter("$1");
    let three = || Constant::number_or_parameter("3");
    let sum = Constant::operation(vec![parameter(), three()], &["+"], &[oid::INT4]);
    assert_eq!(sum.guards("=").map(|guards| guards.len()), Some(1));
    let quotient = Constant::operation(vec![three(), parameter()], &["/"], &[oid::INT4]);
    assert_eq!(quotient.guards("="), None);
    let big = Constant::number_or_parameter("2147483647");
    let risky = Constant::operation(vec![parameter(), big], &["+"], &[oid::INT4]);
    assert_eq!(risky.guards("="), None);
    assert_eq!(
        Constant::operation(vec![three(), three()], &["/"], &[]).guards("="),
        Some(vec![])
    );
}

#[test]
fn patterns_and_functions() {
    let parameter = || Constant::number_or_parameter("$1");
    assert_eq!(parameter().guards("~"), None);
    assert_eq!(parameter().guards("~~").map(|guards| guards.len()), Some(1));
    assert_eq!(
        Constant::call("lower", vec![parameter()], &[oid::TEXT]).guards("="),
        Some(vec![])
    );
    for (function, types) in [("f", [oid::TEXT]), ("length", [17]), ("upper", [3904])] {
        let call = Constant::call(function, vec![parameter()], &types);
        assert_eq!(call.guards("="), None, "{function}");
    }
    let two = vec![parameter(), Constant::literal()];
    assert_eq!(Constant::call("btrim", two, &[oid::TEXT]).guards("="), None);
    assert_eq!(
        Constant::call("f", vec![Constant::literal()], &[]).guards("="),
        Some(vec![])
    );
}

/// The guards of what a generic plan shows so, with parameters of these types.
fn shown(expression: &str, types: &[u32]) -> Option<Vec<(usize, Check)>> {
    let tokens = normalize(expression, types);
    let [Token::Constant(constant)] = &tokens[..] else {
        panic!("{expression}: {tokens:?}");
    };
    let guards = constant.guards("")?;
    let guards = guards.iter().map(|guard| (guard.argument, guard.check));
    Some(guards.collect())
}

#[test]
fn what_is_null_if_empty_is_an_address_a_number_or_nothing() {
    let texts = [oid::TEXT; 3];
    assert_eq!(shown("NULLIF($1, $2)", &texts), Some(vec![]));
    assert_eq!(
        shown("(NULLIF($1, $2))::inet", &texts),
        Some(vec![(0, Check::Address), (1, Check::Empty)])
    );
    for (name, limit) in [
        ("smallint", 32_767),
        ("integer", 2_147_483_647),
        ("bigint", 9_223_372_036_854_775_807),
    ] {
        assert_eq!(
            shown(&format!("(NULLIF($1, $2))::{name}"), &texts),
            Some(vec![(0, Check::WholeOrEmpty(limit)), (1, Check::Empty)])
        );
    }
    for expression in [
        "(NULLIF($1, $2))::cidr",
        "(NULLIF($1, $2))::numeric",
        "((NULLIF($1, $2))::bigint)::integer",
        "((NULLIF($1, $2))::integer + 1)",
        "((NULLIF($1, $2))::bigint << 32)",
        "(NULLIF($1, 'x'::text))::inet",
        "(NULLIF(lower($1), $2))::inet",
        "(NULLIF(NULLIF($1, $2), $3))::inet",
        "((NULLIF($1, $2))::character varying)::inet",
        "f(NULLIF($1, $2))",
        "COALESCE(NULLIF($1, f($2)), $3)",
    ] {
        let tokens = normalize(expression, &texts);
        let sure = tokens.iter().all(|token| match token {
            Token::Constant(constant) => constant.guards("").is_some(),
            _ => true,
        });
        assert!(!sure, "{expression}");
    }
    // Equality of other types may fail, as far as is known here.
    assert_eq!(shown("NULLIF($1, $2)", &[oid::INT4, oid::INT4]), None);
    assert_eq!(shown("NULLIF($1, $2)", &[oid::TEXT, oid::VARCHAR]), None);
}

#[test]
fn a_difference_of_what_has_no_sign_is_never_too_large() {
    let (short, long) = ([oid::INT4; 3], [oid::INT4, oid::INT8, oid::INT4]);
    let natural = Check::Natural(i32::MAX as u64);
    let small = Check::Magnitude(1 << 28);
    assert_eq!(
        shown("($1 - $2)", &short),
        Some(vec![(0, natural), (1, natural)])
    );
    assert_eq!(shown("($1 - 5)", &short), Some(vec![(0, natural)]));
    assert_eq!(shown("(5 - $1)", &short), Some(vec![(0, natural)]));
    // Sums are, and what is taken away from a negative number may be too much.
    assert_eq!(
        shown("($1 + $2)", &short),
        Some(vec![(0, small), (1, small)])
    );
    assert_eq!(shown("($1 - '-5'::integer)", &short), None);
    let more = shown("(($1 - $2) - $3)", &short).unwrap();
    for argument in 0..3 {
        assert!(more.contains(&(argument, small)), "{more:?}");
    }
    assert_eq!(
        shown("($1 - $2)", &long),
        Some(vec![(0, small), (1, small)])
    );
}

#[test]
fn shifted_numbers_are_guarded_to_stay_far_from_overflow() {
    let wide = [oid::INT8; 3];
    let (few, many) = (Check::Magnitude(1 << 27), Check::Magnitude(1 << 59));
    assert_eq!(shown("($1 << 32)", &wide), Some(vec![(0, few)]));
    let types = [oid::INT8, oid::INT4, oid::INT8];
    assert_eq!(
        shown("(($1 << $2) + $3)", &types),
        Some(vec![(0, few), (1, Check::Shift), (2, many)])
    );
    assert_eq!(
        shown("($3 - ($1 << 3) - 5)", &types),
        Some(vec![(2, many), (0, few)])
    );
    assert_eq!(
        shown("((($1 << 3))::bigint)::numeric", &wide).map(|g| g.len()),
        Some(1)
    );
    for (expression, types) in [
        ("((($1 << $2))::bigint + 268435457)", types),
        ("((($1 << 3))::bigint * 2)", wide),
        ("($1 << 33)", wide),
        ("($1 << $2)", wide),
        ("($1 << 3)", [oid::INT4; 3]),
        ("(($1 << 3) << 3)", wide),
        ("($1 >> 3)", wide),
        ("(($1 << 3) * 2)", wide),
        ("(($1 << 3) + ($2)::bigint)", types),
        ("(($1 << 3) + 268435457)", wide),
        ("(($1 << 3))::integer", wide),
        ("((($1 << 3))::integer + $2)", types),
        ("(($1 << 3) + 1 + 1 + 1 + 1 + 1 + 1 + 1)", wide),
    ] {
        assert_eq!(shown(expression, &types), None, "{expression}");
    }
}

#[test]
fn what_is_made_of_a_number_is_not_guarded_as_the_number_is() {
    assert_eq!(
        shown("($1)::smallint", &[oid::INT4]).map(|g| g.len()),
        Some(1)
    );
    for expression in ["(($1 + 5))::smallint", "(($1 - 5))::character varying(3)"] {
        assert_eq!(shown(expression, &[oid::INT4]), None, "{expression}");
    }
    assert_eq!(
        shown("(($1 + 5))::bigint", &[oid::INT4]).map(|g| g.len()),
        Some(1)
    );
}

/// A guard looks at the argument as it is written: it may be laid only where that says what the
/// value is that is cast.
#[test]
fn what_is_no_longer_what_is_written_is_not_guarded() {
    let guards = |expression: &str, kind: u32| {
        let found = shown(expression, &[kind])?;
        Some(
            found
                .into_iter()
                .map(|(_, check)| check)
                .collect::<Vec<_>>(),
        )
    };
    let whole = Check::Whole(i32::MAX as u64);
    for (expression, kind, expected) in [
        ("($1)::integer", oid::TEXT, vec![whole]),
        ("(btrim($1))::integer", oid::TEXT, vec![whole]),
        (
            "(lower($1))::character varying(9)",
            oid::TEXT,
            vec![Check::Length(4)],
        ),
        (
            "(rtrim($1))::character varying(9)",
            oid::TEXT,
            vec![Check::Length(9)],
        ),
        (
            "($1)::character varying(9)",
            oid::INT4,
            vec![Check::Length(9)],
        ),
        (
            "((($1)::smallint)::integer + 1)",
            oid::INT4,
            vec![Check::Magnitude(32767), Check::Magnitude(1 << 28)],
        ),
        (
            "($1)::bigint",
            oid::FLOAT8,
            vec![Check::Magnitude(i64::MAX as u64 / 2)],
        ),
        ("($1)::numeric(8,0)", oid::FLOAT4, vec![Check::Digits(7)]),
    ] {
        assert_eq!(
            guards(expression, kind).as_ref(),
            Some(&expected),
            "{expression}"
        );
    }
}

#[test]
fn what_is_made_of_what_is_written_may_not_be_cast() {
    for (expression, kind) in [
        ("(reverse($1))::integer", oid::TEXT),
        ("(length($1))::smallint", oid::TEXT),
        ("(md5($1))::character varying(9)", oid::TEXT),
        ("(upper(lower($1)))::character varying(9)", oid::TEXT),
        ("(length($1) + 1)", oid::TEXT),
        ("($1)::character varying(9)", oid::NUMERIC),
        ("($1)::character varying(9)", oid::BOOL),
        ("($1)::character varying(9)", oid::DATE),
        ("(($1)::text)::integer", oid::NUMERIC),
        ("(($1)::text)::character varying(9)", oid::FLOAT8),
        ("(($1 + 5))::numeric(3,0)", oid::INT4),
        ("((- $1))::character varying(9)", oid::INT4),
        ("($1)::integer", oid::JSON),
        // Each of the sizes that it is written with.
        ("ARRAY[$1, '{3,4}'::integer[]]", oid::INT4_ARRAY),
        ("ARRAY[ARRAY[$1], ARRAY[2]]", oid::INT4),
        ("(($1 + 5))::oid", oid::INT8),
        ("(NULLIF($1, ''::text))::character varying(4)", oid::TEXT),
    ] {
        assert_eq!(shown(expression, &[kind]), None, "{expression}");
    }
    for kind in [oid::INT4, oid::TEXT, 16_400] {
        assert_eq!(shown("ARRAY[$1, $1]", &[kind]), Some(vec![]), "{kind}");
    }
    let types = [oid::INT8, oid::INT4];
    assert_eq!(
        shown("(NULLIF($1, $2))::character varying(4)", &[oid::TEXT; 2]),
        None
    );
    assert_eq!(shown("(($1 << $2))::numeric(4,2)", &types), None);
    assert_eq!(
        shown("to_timestamp((($1 << $2))::double precision)", &types),
        None
    );
    let minus = shown("((- $1))::smallint", &[oid::INT4]).unwrap();
    assert!(minus.contains(&(0, Check::Magnitude(32767))), "{minus:?}");
}

/// EXPLAIN shows what a literal was made by a cast that nobody has written.
#[test]
fn what_is_cast_unasked_is_known_by_its_type() {
    let guards = |kind: u32, name: &str| {
        let mut constant = Constant::number_or_parameter("$1");
        constant.convert_like(&Constant::shown(name), &[kind]);
        constant.guards("").map(|guards| guards.len())
    };
    for (kind, name) in [
        (774, "macaddr8"),
        (602, "path"),
        (16_400, "mood"),
        (16_400, "mood[]"),
        (16_401, "mood[]"),
        (701, "double precision[]"),
        (1022, "double precision[]"),
        (23, "bigint[]"),
        (2205, "regclass"),
    ] {
        assert_eq!(guards(kind, name), Some(0), "{kind} {name}");
    }
    for (kind, name) in [
        (774, "macaddr"),
        (602, "polygon"),
        (774, "macaddr[]"),
        (701, "integer[]"),
        (1022, "integer[]"),
        (1007, "smallint[]"),
        (3904, "int4range"),
    ] {
        assert_eq!(guards(kind, name), None, "{kind} {name}");
    }
}
