//! What the scan finds, token by token.

use super::*;

fn scan(text: &str, server_major: u16) -> Result<Scan, Reason> {
    let mut scan = Scan::new(ScanLimits::default(), 7);
    scan.run(text.as_bytes(), Dialect { server_major })
        .map(|()| scan)
}

/// The literals of `text` on 15, lists taken apart, as written, with their classes.
fn literals(text: &str) -> Vec<(&str, Class)> {
    let mut scan = scan(text, 15).unwrap_or_else(|reason| panic!("{text}: {reason:?}"));
    scan.unfold(text.as_bytes()).expect("few literals");
    scan.literals()
        .iter()
        .map(|found| (&text[found.range()], found.class))
        .collect()
}

fn tokens(text: &str) -> Vec<&str> {
    literals(text).into_iter().map(|(token, _)| token).collect()
}

fn refused(text: &str) -> Reason {
    scan(text, 15).map(|_| ()).expect_err(text)
}

#[test]
fn numbers_are_classified_after_their_sign_is_folded() {
    use Class::{Int4, Int8, Numeric};
    for (number, class) in [
        ("0", Int4),
        ("00012", Int4),
        ("0000000000000000000000007", Int4),
        ("2147483647", Int4),
        ("2147483648", Int8),
        ("-2147483648", Int4),
        ("- 2147483648", Int4),
        ("-2147483649", Int8),
        ("9223372036854775807", Int8),
        ("9223372036854775808", Numeric),
        ("-9223372036854775808", Int8),
        ("-9223372036854775809", Numeric),
        ("18446744073709551616", Numeric),
        ("1.", Numeric),
        (".5", Numeric),
        ("-.5", Numeric),
        ("1e3", Numeric),
        ("5.e1", Numeric),
        ("1E-3", Numeric),
        ("1.5e+0", Numeric),
    ] {
        assert_eq!(literals(&format!("select {number}")), [(number, class)]);
    }
}

#[test]
fn a_minus_is_folded_only_when_it_is_surely_unary() {
    for (text, expected) in [
        (
            "select a -5, b - 5, (a)-5, a[1]-5",
            &["5", "5", "5", "1", "5"][..],
        ),
        (
            "select 5-3, 5 -3, 'a'-3, \"a\"-3",
            &["5", "3", "5", "3", "'a'", "3", "3"],
        ),
        (
            "select -5, (-5), 1 - -5, 2 * -5, 2 < -5, 5<-1",
            &["-5", "-5", "1", "-5", "2", "-5", "2", "-5", "5", "-1"],
        ),
        (
            "select x where -1 < x and -2 > x or not -3 = x limit -4",
            &["-1", "-2", "-3", "-4"],
        ),
        (
            "select case -1 when -2 then -3 else -4 end - 5",
            &["-1", "-2", "-3", "-4", "5"],
        ),
        (
            "select x in (-1, - 2), a between -3 and -4",
            &["-1", "- 2", "-3", "-4"],
        ),
        // Repeated and looked through parentheses: the number stays in the text.
        (
            "select - -5, -(5), -((5)), -(-5), 1 - - 2, - -(5)",
            &["1", "- 2"],
        ),
        ("select - + 5, +5, a+-1", &["5", "5", "-1"]),
        // What binds tighter than the minus.
        (
            "select -5::int, -5 :: int, -5[1], - 5 /* c */ ::int",
            &["1"],
        ),
        ("select -/* c */5, - -- c\n5", &[]),
        // Operators take their signs along.
        (
            "select 2^-1, @-5, a||-5, 2^ -1, 1!=-1",
            &["2", "1", "5", "5", "2", "-1", "1", "1"],
        ),
        ("select t.* -5, t.limit -5, t.\"x\" - 5", &["5", "5", "5"]),
        ("select a[-1:-2]", &["-2"]),
        ("select by -5 from t order by -1", &[]),
        ("select 1..2", &["1"]),
    ] {
        let expected: Vec<&str> = expected.to_vec();
        assert_eq!(tokens(text), expected, "{text}");
    }
}

#[test]
fn strings_end_where_the_server_ends_them() {
    use Form::{Dollar, Doubled, Escape, Plain};
    for (string, form) in [
        ("''", Plain),
        ("'a'", Plain),
        (r"'a\'", Plain),
        ("'a''b'", Doubled),
        ("'a'\n'b'", Doubled),
        ("'a' \t\n\n  'b'", Doubled),
        ("'a' -- it's\n 'b'", Doubled),
        ("'a'\r'b'\n'c'", Doubled),
        (r"e'a\\'", Escape),
        ("E'a\\n'\n'b\\n'", Escape),
        ("$$a'b$$", Dollar),
        ("$$$$", Dollar),
        ("$t$a$$b$t$", Dollar),
        ("$a$x$ba$a$", Dollar),
        ("$é1$x$é1$", Dollar),
    ] {
        let text = format!("select {string}, a");
        let scan = scan(&text, 15).unwrap();
        let [found] = scan.literals() else {
            panic!("{text}")
        };
        assert_eq!((&text[found.range()], found.form), (string, form));
    }
    assert_eq!(
        tokens("select 'a' 'b', 'c' /* \n */ 'd'"),
        ["'a'", "'b'", "'c'", "'d'"]
    );
    assert_eq!(tokens("select B'1', x'1f', N'a', b'1'\n'0', 2"), ["2"]);
    assert_eq!(
        tokens("select'a'from t where b='c'and d=$$e$$"),
        ["'a'", "'c'", "$$e$$"]
    );
    assert_eq!(
        tokens("select a$b$c from t$1 where é=1 and _1=2"),
        ["1", "2"]
    );
    assert_eq!(tokens("select \"a'b\", \"c\"\"d'\", 'e'"), ["'e'"]);
}

#[test]
fn a_comment_switches_the_proxy_off() {
    for text in [
        "select 1 /* pgautoprep: off */",
        "/* PgAutoPrep : OFF */ select 1",
        "select /*pgautoprep:off*/ 1",
        "select 1; -- pgautoprep: off",
        "select 1 -- pgautoprep:off\n ;",
    ] {
        assert_eq!(refused(text), Reason::SwitchedOff, "{text}");
    }
    for text in [
        "select 1 /* pgautoprep: on */",
        "select 1 /* pgautoprep */",
        "select 1 /* not pgautoprep: off */",
        "select 1 /* pgautoprep: off! */",
        "select '/* pgautoprep: off */'",
    ] {
        assert!(scan(text, 17).is_ok(), "{text}");
    }
}

#[test]
fn comments_are_breaks_and_hints_are_text() {
    let hash = |text: &str| scan(text, 15).unwrap().hash();
    let body = |text: &'static str| &text[scan(text, 15).unwrap().body()];
    assert_eq!(
        body("  /* a */ -- b\n select 1 ; ; -- c\n /* d */;"),
        "select 1"
    );
    assert_eq!(
        body("/*+ SeqScan(t) */ select 1 -- x"),
        "/*+ SeqScan(t) */ select 1"
    );
    assert_eq!(
        body("/* a */ /*+ h */ /* b */ select 1"),
        "/*+ h */ /* b */ select 1"
    );
    assert_eq!(tokens("select /* 'a' /* 2 */ 3 */ 4 -- 5\n, 6"), ["4", "6"]);
    assert_eq!(tokens("select 1 +/* 2 */-3"), ["1", "-3"]);
    assert_eq!(hash("/* id=1 */ select 1"), hash("select 2 -- id=2"));
    assert_eq!(hash("select /* id=1 */ 1"), hash("select /* id=22 */ 2"));
    assert_ne!(hash("select /* a */ 1"), hash("select 1"));
    assert_ne!(hash("/*+ a */ select 1"), hash("/*+ b */ select 1"));
    assert_ne!(hash("select 1"), hash("select 3000000000"));
    assert_ne!(hash("select 1"), hash("select '1'"));
    assert_eq!(hash("select '1'"), hash("select E'\\n'"));
}

#[test]
fn what_is_not_one_preparable_statement_is_refused_with_its_reason() {
    for (text, reason) in [
        ("", Reason::Empty),
        (" \n ", Reason::Empty),
        ("-- only", Reason::Empty),
        (";;", Reason::Empty),
        ("; select 1", Reason::MultipleStatements),
        ("select 1; select 2", Reason::MultipleStatements),
        ("select 1;;select 2;", Reason::MultipleStatements),
        ("begin", Reason::NotPreparable),
        ("selec 1", Reason::NotPreparable),
        (
            "DECLARE \"a\" CURSOR WITHOUT HOLD FOR SELECT 1",
            Reason::Cursor,
        ),
        ("declare a scroll cursor for select 1", Reason::Cursor),
        ("FETCH FORWARD 100 FROM \"a\"", Reason::Cursor),
        ("/* c */ MOVE 5 IN a", Reason::Cursor),
        ("CLOSE \"a\"", Reason::Cursor),
        ("declared 1", Reason::NotPreparable),
        ("closes", Reason::NotPreparable),
        ("COPY (SELECT 1) TO STDOUT", Reason::Copy),
        ("copy t from stdin", Reason::Copy),
        ("copy_t", Reason::NotPreparable),
        ("selects 1", Reason::NotPreparable),
        ("/* c */ set x = 1", Reason::NotPreparable),
        ("\"select\" 1", Reason::NotPreparable),
        ("select $1", Reason::HasParameters),
        ("select 'a', $12", Reason::HasParameters),
        ("select 'a", Reason::Lexical),
        ("select \"a", Reason::Lexical),
        ("select /* a", Reason::Lexical),
        ("/* a", Reason::Lexical),
        ("select $a$ x", Reason::Lexical),
        ("select 1 as $x", Reason::Lexical),
        ("select 1from t", Reason::Lexical),
        ("select 1_000", Reason::Lexical),
        ("select 0x1F", Reason::Lexical),
        ("select 1e", Reason::Lexical),
        ("select 1.a", Reason::Lexical),
        ("select 5 \\", Reason::Lexical),
        ("select {", Reason::Lexical),
        ("select\u{b}1", Reason::Lexical),
        ("select 'a\0'", Reason::Lexical),
        (r"select E'\0'", Reason::Lexical),
        (r"select E'\377'", Reason::Lexical),
        (r"select E'\xc3\xa9'", Reason::Lexical),
        (r"select E'\u12'", Reason::Lexical),
        (r"select E'\ud83d\ude00'", Reason::Lexical),
        (r"select E'\v'", Reason::Lexical),
        (r"select E'it\'s'", Reason::Lexical),
        (r"select U&'\0041'", Reason::Lexical),
        ("select 1 operator(pg_catalog.+) - 5", Reason::Lexical),
    ] {
        assert_eq!(refused(text), reason, "{text}");
    }
    let long = "x".repeat(64);
    assert_eq!(
        refused(&format!("select 1 as {long}")),
        Reason::LongIdentifier
    );
    assert_eq!(
        refused(&format!("select 1 as \"{long}\"")),
        Reason::LongIdentifier
    );
    assert_eq!(tokens(&format!("select 1 as {}", &long[1..])), ["1"]);
    assert_eq!(
        refused(&format!("select '{}'", "x".repeat(70_000))),
        Reason::TooLong
    );
    assert_eq!(
        refused(&format!("select {}1", "1,".repeat(1000))),
        Reason::TooManyLiterals
    );
    let mut scan = Scan::new(ScanLimits::default(), 0);
    let dialect = Dialect { server_major: 15 };
    assert_eq!(scan.run(b"select '\xff'", dialect), Err(Reason::Encoding));
}

#[test]
fn servers_from_16_on_have_more_integers() {
    for (number, class) in [
        ("0x1F", Class::Int4),
        ("0X7fffffff", Class::Int4),
        ("0x80000000", Class::Int8),
        ("-0x80000000", Class::Int4),
        ("0o17", Class::Int4),
        ("0b_1_0", Class::Int4),
        ("1_000", Class::Int4),
        ("1_0.5_0", Class::Numeric),
        ("1_0e1_0", Class::Numeric),
        ("0xffffffffffffffffff", Class::Numeric),
    ] {
        let text = format!("select {number}");
        let scan = scan(&text, 16).unwrap();
        let [found] = scan.literals() else {
            panic!("{text}")
        };
        assert_eq!((&text[found.range()], found.class), (number, class));
    }
    for glued in [
        "1__0", "1_", "0x", "0xg", "0b2", "1_000x", "0x1Fg", "1._5", "0_x",
    ] {
        assert!(scan(&format!("select {glued}"), 16).is_err(), "{glued}");
    }
}

#[test]
fn a_scan_is_reusable() {
    let mut scan = Scan::new(ScanLimits::default(), 1);
    let dialect = Dialect { server_major: 15 };
    scan.run(b"select 1, /* c */ 'a'", dialect).unwrap();
    let first = scan.hash();
    assert!(scan.run(b"select 'a", dialect).is_err());
    scan.run(b"select 2, /* d */ 'b'", dialect).unwrap();
    assert_eq!((scan.hash(), scan.literals().len()), (first, 2));
}

#[test]
fn a_run_of_operators_is_looked_at_once() {
    // Each plus is an operator of its own, behind which the server's lexer looks at all the rest.
    assert_eq!(
        tokens(&format!("select 5 {} 7", "+".repeat(60))),
        ["5", "7"]
    );
    assert_eq!(
        tokens(&format!("select 5 {} 7", "+ ".repeat(600))),
        ["5", "7"]
    );
    for run in ["+", "+-", "<>", "@"] {
        let text = format!("select 5 {} 7", run.repeat(1_000));
        assert_eq!(refused(&text), Reason::Lexical);
    }
}
