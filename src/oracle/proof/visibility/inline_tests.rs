//! What the literals in a text may be to the planner.

use super::*;
use crate::sql::{Dialect, ScanLimits};

fn scanned(text: &str) -> Scan {
    let mut scan = Scan::new(ScanLimits::default(), 0);
    let dialect = Dialect { server_major: 17 };
    scan.run(text.as_bytes(), dialect).expect("a text");
    scan
}

/// How the last literal of this text stands.
fn stands(text: &str) -> Stand {
    let text = format!("select x from t where {text}");
    let scan = scanned(&text);
    let literal = scan.literals().last().unwrap_or_else(|| panic!("{text}"));
    stand(text.as_bytes(), &scan, literal)
}

#[test]
fn what_is_compared_otherwise_is_equal_to_nothing() {
    for text in [
        "a LIMIT 5",
        "a offset\n5",
        "a.x < 5",
        "x >= 5 + a",
        "x ORDER BY 5",
        "x between 5 and y",
        "x between y and 5",
        "x between y and 5 and z",
        "(x like 'a')",
        "x in (1, 2, 3)",
        "x < /* c */ -- d\n 5",
    ] {
        assert_eq!(stands(text), Stand::Apart, "{text}");
    }
}

#[test]
fn what_is_only_shown_is_equal_to_nothing() {
    let stands = |text: &str| {
        let scan = scanned(text);
        let literal = scan.literals().last().unwrap_or_else(|| panic!("{text}"));
        stand(text.as_bytes(), &scan, literal)
    };
    for text in [
        "SELECT 1 FROM t",
        "/* a */ Select/**/ 1 as one from t",
        "select 'a', b from t",
        "select a from t where not exists (select 1 from u)",
        "select a from t where exists /* b */ ( select -- c\n 1 from u)",
    ] {
        assert_eq!(stands(text), Stand::Apart, "{text}");
    }
    for text in [
        "select 1 + a from t",
        "select 1 = a from t",
        "select 1::int from t",
        "select a from t where b in (select 1 from u)",
        "select a from (select 1 as b from u) c",
        "insert into t select 1, a from u",
        "with a as (select 1 as b) select b from a",
        "select a from t where f(exists_, (select 1 from u))",
        "select a from t where \"exists\" (select 1 from u)",
    ] {
        assert_eq!(stands(text), Stand::Unclear, "{text}");
    }
}

#[test]
fn what_is_compared_alone_is_equal_as_it_is() {
    for text in [
        "x = 5",
        "x =-- c\n5 /* and */ and y",
        "(x <> 'a')",
        "x != 'a' order by y",
        "case when y then 'a' else z end",
        "f(x = 5, y)",
    ] {
        assert_eq!(stands(text), Stand::Equal, "{text}");
    }
}

#[test]
fn of_others_something_may_be_computed() {
    for text in [
        "length('a')",
        "x = y + 5",
        "x = 5 + y",
        "x = 5::bigint",
        "x = 'a' || y",
        "x = ('a')",
        "x = y and 5 = z",
        "f(a => 5)",
        "j -> 5",
        "x > date 'a'",
        "nolimit 5",
        "\"limit\" 5",
        "x in (5)",
        "x = any ('{5}')",
        "x like 'a' || y",
        "x is distinct from 5",
        "x < /*+ h */ 5",
        "x <~5",
    ] {
        assert_eq!(stands(text), Stand::Unclear, "{text}");
    }
}

#[test]
fn a_value_is_read_as_the_argument_that_it_may_be() {
    let read = |literal: &str, kind: u32| {
        let text = format!("select {literal}");
        let scan = scanned(&text);
        let kept = kept(text.as_bytes(), &scan.literals()[0]).expect("text");
        kept.as_of(kind)
    };
    let known = |value: &str| Some(Some(value.to_owned()));
    for (literal, kind, expected) in [
        ("5", oid::INT4, known("5")),
        ("- 5", oid::INT8, known("-5")),
        ("3000000000", oid::INT4, known("3000000000")),
        ("'05'", oid::INT4, known("5")),
        ("' 5 '", oid::INT2, known("5")),
        ("'5x'", oid::INT2, None),
        ("'\u{b}5'", oid::INT4, None),
        ("1.5", oid::INT4, Some(None)),
        ("'open'", oid::INT4, Some(None)),
        ("'a''b '", oid::TEXT, known("a'b ")),
        ("5", oid::TEXT, Some(None)),
        ("'open'", oid::UUID, Some(None)),
        ("'a0eebc999c0b4ef8bb6d6bb9bd380a11'", oid::UUID, None),
        ("5", oid::UUID, Some(None)),
        ("5", oid::NUMERIC, None),
    ] {
        assert_eq!(read(literal, kind), expected, "{literal} {kind}");
    }
}
