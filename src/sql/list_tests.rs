//! Which lists fold, what they become, and the arrays that are bound.

use super::*;
use crate::reason::Reason;
use crate::sql::rewrite::Unit;
use crate::sql::rewrite::{argument, execute_argument, execute_list, rewrite};
use crate::sql::rewrite::{literal_position, original_position};
use crate::sql::{Dialect, Scan, ScanLimits};

const DIALECT: Dialect = Dialect { server_major: 16 };

fn scan(text: &str) -> Scan {
    let mut scan = Scan::new(ScanLimits::default(), 5);
    let found = scan.run(text.as_bytes(), DIALECT);
    found.unwrap_or_else(|reason| panic!("{text}: {reason:?}"));
    scan
}

/// The array bound for the only literal of `select a in (…)`, and the string in EXECUTE.
fn arrays(list: &str) -> (String, String) {
    let text = format!("select a in ({list})");
    let scan = scan(&text);
    let [literal] = scan.literals() else {
        panic!("{text}")
    };
    assert!(literal.class.is_list() && literal.form == Form::List);
    assert_eq!(&text[literal.range()], list);
    let (mut bound, mut quoted) = (Vec::new(), Vec::new());
    argument(text.as_bytes(), &scan, literal, &mut bound);
    execute_argument(text.as_bytes(), &scan, literal, &mut quoted);
    let [bound, quoted] = [bound, quoted].map(|bytes| String::from_utf8(bytes).unwrap());
    (bound, quoted)
}

#[test]
fn arrays_are_exact() {
    for (list, bound) in [
        ("1, 2,3", "{1,2,3}"),
        ("1,\n\t-  2", "{1,-2}"),
        ("007, -2147483648", "{007,-2147483648}"),
        (
            "0x1F, 1_000, -0b11, 0o0, 0x7FFFFFFF",
            "{31,1000,-3,0,2147483647}",
        ),
        ("'a','b'", r#"{"a","b"}"#),
        (r#"'a','b"c\d',''"#, r#"{"a","b\"c\\d",""}"#),
        ("'NULL', ' x ', '{}', 'a,b'", r#"{"NULL"," x ","{}","a,b"}"#),
        (
            r#"'it''s', E'\\\"\n', $$"$$, '"""'"#,
            "{\"it's\",\"\\\\\\\"\n\",\"\\\"\",\"\\\"\\\"\\\"\"}",
        ),
        (r"'\', '\\', 'ü\é'", r#"{"\\","\\\\","ü\\é"}"#),
        ("'a'\n'b', 'c'", r#"{"ab","c"}"#),
    ] {
        assert_eq!(arrays(list).0, bound, "{list}");
    }
    assert_eq!(arrays("1, 2").1, "'{1,2}'");
    assert_eq!(arrays(r"'it''s', '\'").1, r#"'{"it''s","\\"}'"#);
}

#[test]
fn a_list_is_repeated_to_any_length() {
    let text = "select a in (1, 2, 3)";
    let scan = scan(text);
    for (length, expected) in [(2, "'{1,2}'"), (3, "'{1,2,3}'"), (5, "'{1,2,3,1,2}'")] {
        let mut out = Vec::new();
        execute_list(
            text.as_bytes(),
            &scan,
            &scan.literals()[0],
            length,
            &mut out,
        );
        assert_eq!(out, expected.as_bytes());
    }
}

#[test]
fn only_plain_literals_of_one_class_make_a_list() {
    let lists = |text: &str| {
        let scan = scan(text);
        assert_eq!(scan.is_folded(), scan.lists().next().is_some());
        let lists = scan
            .literals()
            .iter()
            .filter(|literal| literal.class.is_list());
        lists.count()
    };
    for text in [
        "select a in (1, 2)",
        "select a IN(1,2)",
        "select a not\nIn ( -1 ,\n 2 )",
        "select a in ('x', E'y', $$z$$)",
        "select b in (1), a in (1, 2)",
        "select a in (select b from t where c in (1, 2))",
        "select /* c */ a in (1, 2) -- c",
        "select a in (1, 2) /* c */, c in (3, b)",
    ] {
        assert_eq!(lists(text), 1, "{text}");
    }
    for text in [
        "select a in (1)",
        "select a in ('x')",
        "select a in (1, 'x')",
        "select a in (1, 3000000000)",
        "select a in (3000000000, 3000000001)",
        "select a in (1.5, 2.5)",
        "select a in (1, null)",
        "select a in (1, b)",
        "select a in (1, 2 + 3)",
        "select a in (1, +2)",
        "select a in (1, 2::int8)",
        "select a in (1, (2))",
        "select a in ((1, 2), (3, 4))",
        "select a in (1, 2]",
        "select a in (1 2)",
        "select a in (1,, 2)",
        "select a in (, 1, 2)",
        "select a in (1, 2,)",
        "select a in (1, /* c */ 2)",
        "select a in (1, 2 /* c */)",
        "select a in (/*+ h */ 1, 2)",
        "select a in /* c */ (1, 2)",
        "select a in (1, 2 -- c\n)",
        "select t.in (1, 2)",
        "select \"in\" (1, 2)",
        "select int (1, 2), coalesce(1, 2), i (1, 2)",
        "select a in (b'1', 'x')",
        "select a in (1, 2",
    ] {
        assert_eq!(lists(text), 0, "{text}");
    }
}

#[test]
fn lengths_share_a_shape_until_they_are_taken_apart() {
    let text = |list: &str| format!("select x from t where a in ({list}) and b = 5");
    let short = text("1, 2");
    let mut scanned = scan(&short);
    let shape = scanned.shape(short.as_bytes());
    assert_eq!(shape.lists().collect::<Vec<_>>(), [true, false]);
    for list in ["1,2,3", "7,\n8", "1, 2, 3, 4, 5, 6, 7, 8, 9, -10"] {
        let text = text(list);
        let scan = scan(&text);
        assert_eq!(scan.hash(), shape.hash(), "{list}");
        assert!(scan.has_shape(text.as_bytes(), &shape), "{list}");
    }
    for list in ["1", "'1', '2'", "1, 2.0", "1, b", "( 1, 2)", "1, 2 "] {
        let text = text(list);
        let scan = scan(&text);
        assert_ne!(scan.hash(), shape.hash(), "{list}");
        assert!(!scan.has_shape(text.as_bytes(), &shape), "{list}");
    }
    scanned.unfold(short.as_bytes()).unwrap();
    assert!(!scanned.is_folded() && !scanned.has_shape(short.as_bytes(), &shape));
    let apart = scanned.shape(short.as_bytes());
    assert_eq!(apart.lists().collect::<Vec<_>>(), [false; 3]);
    let other = text("3, 4");
    let mut scan = scan(&other);
    assert!(!scan.has_shape(other.as_bytes(), &apart));
    scan.unfold_like(other.as_bytes(), &shape).unwrap();
    assert!(
        scan.has_shape(other.as_bytes(), &shape),
        "it has lists itself"
    );
    scan.unfold_like(other.as_bytes(), &apart).unwrap();
    assert!(scan.has_shape(other.as_bytes(), &apart));
}

#[test]
fn a_list_counts_as_one_literal_until_it_is_taken_apart() {
    let limits = ScanLimits {
        max_text: 10_000,
        max_literals: 3,
        ..ScanLimits::default()
    };
    let run = |text: &str| {
        let mut scan = Scan::new(limits, 5);
        let folded = scan.run(text.as_bytes(), DIALECT);
        (folded, scan.unfold(text.as_bytes()))
    };
    let too_many = Err(Reason::TooManyLiterals);
    assert_eq!(
        run("select 1, a in (1, 2, 3, 4, 5), 'x'"),
        (Ok(()), too_many)
    );
    assert_eq!(run("select 1, a in (1, 2)"), (Ok(()), Ok(())));
    assert_eq!(run("select a in (1, 2, 3, b, 4)").0, too_many);
    assert_eq!(run("select a in (1, 2, 3, 4, (5))").0, too_many);
    assert_eq!(run("select 1, 2, 3, a in (1, 2)").0, too_many);
    assert_eq!(run("select a in (1, 2, 3, 4").0, too_many);
}

fn rewritten(text: &str, arguments: &[bool]) -> String {
    let rewritten = rewrite(text.as_bytes(), &scan(text), arguments);
    String::from_utf8(rewritten.text).unwrap()
}

#[test]
fn operators_go_with_their_lists() {
    for (text, expected) in [
        ("select a in (1, 2)", "select a = ANY ($1)"),
        ("select a NOT  IN( 1,2 )", "select a <> ALL ($1 )"),
        ("select \"a\"in('x','y')", "select \"a\" = ANY ($1)"),
        ("select (a)not in (1, 2)or b", "select (a) <> ALL ($1)or b"),
        ("select x.not in (1, 2)", "select x.not = ANY ($1)"),
        ("select knot in (1, 2)", "select knot = ANY ($1)"),
        ("select 1 in (2, 3), 4", "select $1 = ANY ($2), $3"),
        (
            "select a /* c */ in (1, 2) /* d */ and b",
            "select a   = ANY ($1)   and b",
        ),
        ("select not /* c */ in (1, 2)", "select not   = ANY ($1)"),
    ] {
        assert_eq!(rewritten(text, &[true; 3]), expected);
    }
    assert_eq!(
        rewritten("select 1, a in (2, 3)", &[true, false]),
        "select $1, a in (2, 3)"
    );
    let text = "select a in (1, 2), b in ('x', 'y'), 5";
    let found = rewrite(text.as_bytes(), &scan(text), &[true; 3]);
    assert_eq!(found.oids, [0, 0, 23]);
}

#[test]
fn positions_reach_into_lists_and_behind_them() {
    let text = "select 'é', ü not in ('ä', 'x\"y', 'ö', 'x'), c from é";
    let scan = scan(text);
    let arguments = [true, true];
    let rewritten = rewritten(text, &arguments);
    assert_eq!(rewritten, "select $1, ü <> ALL ($2), c from é");
    let position = |text: &str, part: &str| {
        let at = text.find(part).unwrap();
        text[..at].chars().count() as u32 + 1
    };
    for (message, element) in [
        ("invalid: \"ö\"", "'ö'"),
        ("invalid: \"x\"", "'x')"),
        ("invalid: \"x\"y\"", "'x\"y'"),
        ("nothing", "'ä'"),
    ] {
        let message = message.as_bytes();
        let found = literal_position(
            (text.as_bytes(), &scan, Unit::Character),
            1,
            &arguments,
            message,
        );
        assert_eq!(found, Some(position(text, element)), "{element}");
    }
    for (there, here) in [
        ("select", "select"),
        ("ü", "ü"),
        ("<> ALL", "not in"),
        ("ALL", "not in"),
        ("$2", "'ä'"),
        ("), c", "), c"),
        ("from", "from"),
    ] {
        let there = position(&rewritten, there);
        let found = original_position((text.as_bytes(), &scan, Unit::Character), &arguments, there);
        assert_eq!(found, Some(position(text, here)), "{here}");
    }
}
