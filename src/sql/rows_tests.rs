//! Which rows fold, what they become, and the arrays that are bound.

use super::*;
use crate::reason::Reason;
use crate::sql::rewrite::Unit;
use crate::sql::rewrite::{argument, literal_position, original_position, rewrite};
use crate::sql::{Dialect, Scan, ScanLimits};

const DIALECT: Dialect = Dialect { server_major: 16 };

fn scan(text: &str) -> Scan {
    let limits = ScanLimits {
        min_array_rows: 4,
        ..ScanLimits::default()
    };
    let mut scan = Scan::new(limits, 5);
    let found = scan.run(text.as_bytes(), DIALECT);
    found.unwrap_or_else(|reason| panic!("{text}: {reason:?}"));
    scan
}

fn has_rows(text: &str) -> bool {
    scan(text).rows().is_some()
}

/// Classes of the columns, and the arrays bound for them.
fn columns(rows: &str) -> Vec<(Class, String)> {
    let text = format!("insert into t values {rows} returning 7");
    let scan = scan(&text);
    let columns = scan.literals().iter().filter(|l| l.class.is_column());
    let columns = columns.map(|column| {
        let mut bound = Vec::new();
        argument(text.as_bytes(), &scan, column, &mut bound);
        (column.class, String::from_utf8(bound).unwrap())
    });
    columns.collect()
}

#[test]
fn arrays_are_exact() {
    use Class::{BoolRows, Int4Rows, Int8Rows, NumericRows, TextRows};
    for (rows, expected) in [
        (
            "(1, 'a'), (2, 'b'),(3,'c'), (- 4, 'd')",
            &[(Int4Rows, "{1,2,3,-4}"), (TextRows, r#"{"a","b","c","d"}"#)][..],
        ),
        (
            "(null, true), (0x1F, FALSE), (NULL, NULL), (1_0, False)",
            &[(Int4Rows, "{NULL,31,NULL,10}"), (BoolRows, "{t,f,NULL,f}")],
        ),
        (
            "(NULL), ('NULL'), (E'\\\\'), ('it''s \"')",
            &[(TextRows, r#"{NULL,"NULL","\\","it's \""}"#)],
        ),
        (
            "('a'::date, 'b'::JSONB), (NULL, null), (E'c'::date,$$d$$::jsonb), \
             ('e'::date, 'f'::jsonb)",
            &[
                (Class::DateRows, r#"{"a",NULL,"c","e"}"#),
                (Class::JsonbRows, r#"{"b",NULL,"d","f"}"#),
            ],
        ),
        (
            "(NULL),(NULL),(NULL),(NULL)",
            &[(TextRows, "{NULL,NULL,NULL,NULL}")],
        ),
        (
            "(NULL),( null ) , (NULL),(1)",
            &[(Int4Rows, "{NULL,NULL,NULL,1}")],
        ),
        (
            "(NULL,1),(NULL,2),(NULL,3),(NULL,4)",
            &[(TextRows, "{NULL,NULL,NULL,NULL}"), (Int4Rows, "{1,2,3,4}")],
        ),
        (
            "(1, 1), (3000000000, 2.50), (0x7FFFFFFFF, -1e3), (2, .5)",
            &[
                (Int8Rows, "{1,3000000000,34359738367,2}"),
                (NumericRows, "{1,2.50,-1e3,.5}"),
            ],
        ),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(c, a)| (*c, (*a).to_owned()))
            .collect();
        assert_eq!(columns(rows), expected, "{rows}");
    }
}

#[test]
fn what_is_not_the_same_in_all_rows_does_not_fold() {
    assert!(has_rows("insert into t values (1),(2),(3),(4)"));
    assert!(has_rows("\nINSERT INTO t(a)Values\n( 1 ) ,\t(2),(3),(4);"));
    for text in [
        "insert into t values (1),(2),(3)",
        "insert into t values (1),(2),(3),('4')",
        "insert into t values (true),(2),(3),(4)",
        "insert into t values (1,2),(2),(3,4),(4,5)",
        "insert into t values (1),(2),(3),(default)",
        "insert into t values (1),(2),(3),(now())",
        "insert into t values (1),(2),(3),(4 + 1)",
        "insert into t values (1),(2),(3),('4'::int)",
        "insert into t values (1),(2),(3),(4::date)",
        "insert into t values ('1'),('2'),('3'),('4'::date)",
        "insert into t values ('1'::time),('2'::date),('3'::date),('4'::date)",
        "insert into t values ('1'::x),('2'::x),('3'::x),('4'::x)",
        "insert into t values ('1'::timestamp(0)),('2'::date),('3'::date),('4'::date)",
        "insert into t values ('1'::date[]),('2'::date[]),('3'::date[]),('4'::date[])",
        "insert into t values ('1'::a.date),('2'::a.date),('3'::a.date),('4'::a.date)",
        "insert into t values ('1'::date::text),('2'::date),('3'::date),('4'::date)",
        "insert into t values (1),(2),((3)),(4)",
        "insert into t values (1),(2),(3),(nullx)",
        "insert into t values (1),(2),(3),(4),",
        "insert into t values (1),(2),(3) (4)",
        "insert into t values (1),(2),(3) /* c */,(4)",
        "insert into t values /* c */ (1),(2),(3),(4)",
        "insert into t -- values (\n values (1),(2),(3),(4)",
        "insert into t select (1),(2),(3),(4)",
        "insert into t select xvalues (1),(2),(3),(4)",
        "insert into t (a[1]) values (1),(2),(3),(4)",
        "insert into t select 1 from u where a in (1, 2) or values (1),(2),(3),(4)",
        "insert into t values (B'1'),(B'2'),(B'3'),(B'4')",
        "insert into t values (null),(null),(null),(null)",
        "with x as (select 1) insert into t values (1),(2),(3),(4)",
        "values (1),(2),(3),(4)",
    ] {
        assert!(!has_rows(text), "{text}");
    }
}

#[test]
fn shapes_do_not_depend_on_the_number_of_rows() {
    let shape = |text: &str| scan(text).shape(text.as_bytes());
    let four = "insert into t values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd') returning a + 1";
    let five =
        "insert into t values (1,'a'),(2,NULL),\n(NULL,'c'),( 4, 'd'), (5, 'e') returning a + 1";
    assert_eq!(shape(four), shape(five));
    assert_eq!(shape(four).literal_count(), 3);
    assert!(scan(five).has_shape(five.as_bytes(), &shape(four)));
    assert_ne!(shape(four), shape(&four.replace("4, 'd'", "4.5, 'd'")));
    assert_ne!(shape(four), shape(&four.replace(", 'd'", ", 5")));
    let mut apart = scan(four);
    apart.unfold(four.as_bytes()).unwrap();
    assert_eq!(apart.literals().len(), 9);
    assert_ne!(shape(four), apart.shape(four.as_bytes()));
}

#[test]
fn few_rows_of_the_same_shape_are_enough() {
    let few = |text: &str, rows: usize| {
        let with_few_rows = scan(text).with_few_rows(text.as_bytes()).into_owned();
        let few = String::from_utf8(with_few_rows).unwrap();
        let shape = |text: &str| scan(text).shape(text.as_bytes());
        assert_eq!(shape(text), shape(&few), "{few}");
        assert_eq!(few.matches(")").count(), rows + 1, "{few}");
    };
    let insert = |rows: &str| format!("insert into t(a) values {rows} returning 'é', 5");
    few(&insert("(1),(2),(3),(4)"), 4);
    few(&insert("(1, 'a'),(2, NULL),(3, 'c'),(4, 'd'),(5, 'e')"), 4);
    few(&insert("(1),(2),(3),(NULL),(5),(6),(7),(8.5),(9),(10)"), 8);
    few(
        &insert("(1,'a'::date),(2,NULL),(3,'c'::date),(4,'d'::date),(5,'e'::DATE)"),
        4,
    );
    few(&insert("(NULL),(NULL),(NULL),(NULL),(5)"), 5);
    let plain = "insert into t values (1 + 1)";
    assert_eq!(
        &*scan(plain).with_few_rows(plain.as_bytes()),
        plain.as_bytes()
    );
}

#[test]
fn rows_become_a_select() {
    let text = "insert into t(a,b)values(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd' ) on conflict (a) \
                do update set b = 'é' || 'x'";
    let scan = scan(text);
    let rewritten = rewrite(text.as_bytes(), &scan, &[true; 4]);
    let expected = "insert into t(a,b) SELECT * FROM ROWS FROM (pg_catalog.unnest($1), \
                    pg_catalog.unnest($2)) AS \"*VALUES*\"(column1, column2 ) on conflict (a) \
                    do update set b = $3 || $4";
    assert_eq!(String::from_utf8(rewritten.text).unwrap(), expected);
    assert_eq!(rewritten.oids, [1007, 0, 0, 0]);
    let position = |needle: &str| expected.find(needle).unwrap() as u32 + 1;
    let original =
        |at| original_position((text.as_bytes(), &scan, Unit::Character), &[true; 4], at);
    assert_eq!(original(position("t(a,b)")), Some(13));
    assert_eq!(original(position("ROWS")), Some(19), "values");
    assert_eq!(
        original(position("conflict")),
        Some(text.find("conflict").unwrap() as u32 + 1)
    );
    let literal = |k, message: &str| {
        literal_position(
            (text.as_bytes(), &scan, Unit::Character),
            k,
            &[true; 4],
            message.as_bytes(),
        )
    };
    assert_eq!(
        literal(1, "invalid: \"c\""),
        Some(text.find("'c'").unwrap() as u32 + 1)
    );
    let last = text.rfind("'x'").unwrap() as u32;
    assert_eq!(
        literal(3, ""),
        Some(last),
        "one more character, one fewer byte"
    );
}

#[test]
fn a_column_is_one_literal_to_the_bound() {
    let limits = ScanLimits {
        max_text: 60_000,
        max_literals: 10,
        min_array_rows: 4,
    };
    let run = |text: &str| {
        let mut scan = Scan::new(limits, 5);
        let found = scan.run(text.as_bytes(), DIALECT);
        found.map(|()| scan.unfold(text.as_bytes()))
    };
    let insert =
        |rows: usize, row: &str| format!("insert into t values {}", vec![row; rows].join(","));
    assert_eq!(run(&insert(4, "(1,2)")), Ok(Ok(())));
    assert_eq!(
        run(&insert(5000, "(1,2)")),
        Ok(Err(Reason::TooManyLiterals))
    );
    assert_eq!(run(&insert(6, "(1,2+1)")), Err(Reason::TooManyLiterals));
    assert_eq!(
        run(&insert(4, "(0,1,2,3,4,5,6,7,8,9)")),
        Ok(Err(Reason::TooManyLiterals))
    );
    assert_eq!(
        run(&insert(4, "(0,1,2,3,4,5,6,7,8,9,0)")),
        Err(Reason::TooManyLiterals)
    );
}
