//! Splicing, values and positions.

use super::*;
use crate::sql::{Dialect, Scan, ScanLimits};
use proptest::prelude::*;

fn scanned(text: &[u8]) -> Option<Scan> {
    let mut scan = Scan::new(ScanLimits::default(), 5);
    scan.run(text, Dialect { server_major: 16 })
        .ok()
        .map(|()| scan)
}

fn scan(text: &str) -> Scan {
    scanned(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
}

fn rewritten(text: &str, arguments: &[bool]) -> String {
    String::from_utf8(rewrite(text.as_bytes(), &scan(text), arguments).text).unwrap()
}

#[test]
fn placeholders_keep_their_distance() {
    for (text, expected) in [
        ("select'a'from t", "select $1 from t"),
        ("select.5,a", "select $1,a"),
        ("select'a''b'\"x\"", "select $1 \"x\""),
        ("select a='b'or'c'<d", "select a=$1 or $2<d"),
        ("select 1'a'$$b$$", "select $1 $2 $3"),
        ("select 5<-1,a||'x'||$$y$$", "select $1<$2,a||$3||$4"),
        ("select 1/* c */-2", "select $1 -$2"),
        ("select 1 -- c\n, 2", "select $1  \n, $2"),
        ("/*+ h */select 1", "/*+ h */select $1"),
    ] {
        assert_eq!(rewritten(text, &[true; 4]), expected);
    }
    assert_eq!(
        rewritten("select 1, 'a', 2", &[false, true, false]),
        "select 1, $1, 2"
    );
}

#[test]
fn the_name_of_a_type_becomes_a_cast() {
    for (text, expected) in [
        (
            "select a-interval'1 day'from t",
            "select a-CAST($1 AS interval)from t",
        ),
        (
            "select 5, DATE /* c */ '2020-01-01' -- d\n, 'x'",
            "select $1, CAST(  $2 AS date)  \n, $3",
        ),
        (
            "select timestamp -- c\n WITH time /* c */ zone E'x'",
            "select CAST($1 AS timestamp with time zone)",
        ),
        (
            "select a at time zone 'x', timestamp without time zone 'y'",
            "select a at time zone $1, CAST($2 AS timestamp without time zone)",
        ),
        // These are no names of types, or of others.
        ("select \"date\" 'x'", "select \"date\" $1"),
        ("select a . date 'x'", "select a . date $1"),
        ("select update 'x'", "select update $1"),
        ("select time zone 'x'", "select time zone $1"),
        ("select /*+ date */ 'x'", "select /*+ date */ $1"),
    ] {
        assert_eq!(rewritten(text, &[true; 3]), expected, "{text}");
    }
    let text = "select date 'x', date 'y'";
    assert_eq!(
        rewritten(text, &[false, true]),
        "select date 'x', CAST($1 AS date)"
    );
}

#[test]
fn positions_in_a_cast_are_those_of_the_literal() {
    let text = "select a, date 'x', b";
    let scan = scan(text);
    let original = |wanted: &str| {
        let rewritten = rewritten(text, &[true]);
        let at = rewritten.find(wanted).unwrap() as u32 + 1;
        original_position((text.as_bytes(), &scan, Unit::Character), &[true], at)
    };
    assert_eq!(original("CAST"), Some(11));
    assert_eq!(original("$1"), Some(16));
    assert_eq!(original(", b"), Some(19));
}

#[test]
fn types_are_declared_by_class() {
    let text = "select 1, 3000000000, 1.5, 'a', -2147483648";
    let found = rewrite(
        text.as_bytes(),
        &scan(text),
        &[true, true, true, false, true],
    );
    assert_eq!(found.oids, [23, 20, 1700, 23]);
}

#[test]
fn values_are_what_the_literals_say() {
    for (literal, expected) in [
        ("''", ""),
        ("'a\\b'", "a\\b"),
        ("'a''b'''", "a'b'"),
        ("'a' -- it's\n  'b''c'\n'd'", "ab'cd"),
        (
            "E'a\\nb\\t\\\\\\x41\\101\\u00e9\\U0001F600'",
            "a\nb\t\\A\u{41}é😀",
        ),
        ("E'it''s ''q'' \\é \\q\\x'", "it's 'q' é qx"),
        ("e'a\\n'\n'b\\n'", "a\nb\n"),
        ("$$a'b\\$$", "a'b\\"),
        ("$t$a$$b$t$", "a$$b"),
        ("$$$$", ""),
        ("007", "007"),
        ("-  5", "-5"),
        ("-\n.5e1", "-.5e1"),
        ("0x_1F", "0x_1F"),
    ] {
        let text = format!("select {literal}");
        let scan = scan(&text);
        let [found] = scan.literals() else {
            panic!("{text}")
        };
        let mut value = Vec::new();
        argument(text.as_bytes(), &scan, found, &mut value);
        assert_eq!(String::from_utf8(value).unwrap(), expected, "{text}");
        assert_eq!(token(text.as_bytes(), found), literal.as_bytes());
    }
}

#[test]
fn positions_count_characters_and_map_back() {
    let text = "/* é */ select 'ü', a, 'x'from é where b = - 5 /* ö */ and c";
    let scan = scan(text);
    let arguments = [true, true, true];
    let rewritten = rewritten(text, &arguments);
    assert_eq!(rewritten, "select $1, a, $2 from é where b = $3   and c");
    let position = |text: &str, part: &str| {
        let at = text.find(part).unwrap();
        text[..at].chars().count() as u32 + 1
    };
    for (k, literal) in ["'ü'", "'x'", "- 5"].iter().enumerate() {
        let found = literal_position(
            (text.as_bytes(), &scan, Unit::Character),
            k,
            &arguments,
            b"",
        );
        assert_eq!(found, Some(position(text, literal)));
    }
    assert_eq!(
        literal_position(
            (text.as_bytes(), &scan, Unit::Character),
            3,
            &arguments,
            b""
        ),
        None
    );
    for (there, here) in [
        ("select", "select"),
        ("$1", "'ü'"),
        ("a,", "a,"),
        ("$2", "'x'"),
        ("from", "from"),
        ("b =", "b ="),
        ("$3", "- 5"),
        ("and", "and"),
    ] {
        let found = original_position(
            (text.as_bytes(), &scan, Unit::Character),
            &arguments,
            position(&rewritten, there),
        );
        assert_eq!(found, Some(position(text, here)), "{there}");
    }
    let end = rewritten.chars().count() as u32 + 1;
    let found = original_position((text.as_bytes(), &scan, Unit::Character), &arguments, end);
    assert_eq!(found, Some(text.chars().count() as u32 + 1));
    assert_eq!(
        original_position(
            (text.as_bytes(), &scan, Unit::Character),
            &arguments,
            end + 1
        ),
        None
    );
    assert_eq!(
        original_position((text.as_bytes(), &scan, Unit::Character), &arguments, 0),
        None
    );
}

/// The body with its comments blanked: what a rewritten text is with its literals put back.
fn blanked(text: &[u8], scan: &Scan) -> Vec<u8> {
    rewrite(text, scan, &[]).text
}

fn put_back(text: &[u8], scan: &Scan, arguments: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chosen = scan
        .literals()
        .iter()
        .zip(arguments)
        .filter(|(_, chosen)| **chosen);
    emit(text, scan, arguments, |bytes, origin| match origin {
        Origin::Instead(_) if bytes != b" " => {
            let (literal, _) = chosen.next().expect("one literal for each placeholder");
            out.extend_from_slice(token(text, literal));
        }
        _ => out.extend_from_slice(bytes),
    });
    out
}

/// Texts that look enough like SQL to get through the scan.
fn sql() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        " ",
        " ",
        "\n",
        "a",
        "t.b",
        "select",
        "from",
        "where",
        "and",
        "'x'",
        "'it''s'",
        "E'\\n'",
        "$$q$$",
        "$t$'$t$",
        "1",
        "-",
        "2.5",
        ".5",
        "1e3",
        "+",
        "=",
        "<",
        "(",
        ")",
        "[",
        "]",
        "::int",
        ",",
        "/* c */",
        "-- d\n",
        "\"q\"",
        "é",
        "B'1'",
        "3000000000",
        "/*+ h */",
        ";",
        "'",
        "\"",
        "$",
        "*",
        "||",
        ":",
        "\\",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| format!("select {}", pieces.concat()))
}

proptest! {
    #[test]
    fn literals_put_back_give_the_body(text in sql(), pattern in any::<u64>()) {
        let Some(scan) = scanned(text.as_bytes()) else { return Ok(()) };
        let choose = |index: usize| pattern >> (index % 64) & 1 == 1;
        let arguments: Vec<bool> = (0..scan.literals().len()).map(choose).collect();
        let text = text.as_bytes();
        prop_assert_eq!(put_back(text, &scan, &arguments), blanked(text, &scan));
    }

    #[test]
    fn gaps_and_breaks_give_the_body(text in sql()) {
        let Some(scan) = scanned(text.as_bytes()) else { return Ok(()) };
        let mut from = scan.body().start;
        let mut whole = String::new();
        for cut in scan.breaks() {
            whole += &text[from..cut.start as usize];
            whole += &text[cut.start as usize..cut.end as usize];
            from = cut.end as usize;
        }
        whole += &text[from..scan.body().end];
        prop_assert_eq!(&whole, &text[scan.body()]);
    }

    #[test]
    fn placeholders_are_tokens_of_their_own(text in sql()) {
        let Some(scan) = scanned(text.as_bytes()) else { return Ok(()) };
        let all = vec![true; scan.literals().len()];
        let rewritten = rewrite(text.as_bytes(), &scan, &all);
        prop_assert_eq!(rewritten.oids.len(), all.len());
        // With `'v'` in the place of `$n` itself, pads untouched, every literal is found again. A
        // number that stayed for its comment may be found in addition.
        let mut again = Vec::new();
        emit(text.as_bytes(), &scan, &all, |bytes, origin| match origin {
            Origin::Instead(_) if bytes != b" " => {
                let (left, right) = (bytes[0] == b' ', bytes.ends_with(b" "));
                again.extend_from_slice(if left { b" $$v$$" } else { b"$$v$$" });
                again.extend_from_slice(if right { b" " } else { b"" });
            }
            _ => again.extend_from_slice(bytes),
        });
        let found = scanned(&again).map_or(0, |second| second.literals().len());
        prop_assert!(found >= all.len(), "{}", String::from_utf8_lossy(&again));
    }

    #[test]
    fn a_shape_matches_itself_with_other_values(text in sql(), other in sql()) {
        let Some(first) = scanned(text.as_bytes()) else { return Ok(()) };
        let shape = first.shape(text.as_bytes());
        prop_assert!(first.has_shape(text.as_bytes(), &shape));
        prop_assert_eq!(shape.literal_count(), first.literals().len());
        let Some(second) = scanned(other.as_bytes()) else { return Ok(()) };
        let same = shape == second.shape(other.as_bytes());
        prop_assert_eq!(second.has_shape(other.as_bytes(), &shape), same);
    }

    #[test]
    fn positions_round_trip(text in sql()) {
        let Some(scan) = scanned(text.as_bytes()) else { return Ok(()) };
        let all = vec![true; scan.literals().len()];
        let rewritten = rewrite(text.as_bytes(), &scan, &all).text;
        let length = Unit::Character.count(&rewritten);
        let mut last = 0;
        for position in 1..=length {
            let read = (text.as_bytes(), &scan, Unit::Character);
            let found = original_position(read, &all, position).unwrap();
            prop_assert!(found >= last && found as usize <= text.chars().count());
            last = found;
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        text in sql(),
    ) {
        crate::sql::scan::fuzz_scan(&bytes);
        crate::sql::scan::fuzz_scan(text.as_bytes());
        crate::sql::eligible::fuzz_judge(text.as_bytes());
        let _ = crate::sql::effect(&bytes);
        let _ = crate::sql::effect(text.as_bytes());
    }
}
