//! What is done with a text before the server sees it takes time in proportion to its length.

use std::time::{Duration, Instant};

use super::scan::{Dialect, Scan, ScanLimits};
use super::{effect, judge, rewrite};

/// What a text begins with, is repeated, and ends with. Each repeats something that something else
/// is looked for behind.
const TEXTS: &[(&str, &str, &str)] = &[
    ("select ", "5, ", "1"),
    ("select ", "'a', ", "1"),
    ("select ", "- 5 - -5, ", "1"),
    ("select ", "-", " 5"),
    ("select ", "- ", " 5"),
    ("select -", " ", "5"),
    ("select 5 ", "+", "5"),
    ("select 5 ", "+-", "5"),
    ("select 5 ", "@-", "5"),
    ("select 5 ", "+/", "5"),
    ("select 5 ", "*/", "5"),
    ("select 5 ", "<>=", "5"),
    ("select a in (", "5, ", "1)"),
    ("select a in (", "'x', ", "1)"),
    ("select ", "a in (1, 2) and ", "true"),
    ("select ", "a in (1, ", "1"),
    ("select 5 where a in (", " (5,", "1"),
    ("select 5 where a in", " ", "(5, 6)"),
    ("select 5 where a not", " ", "in (5, 6)"),
    ("insert into t values ", "(1, 'x'), ", "(1, 'x')"),
    ("insert into t values ", "(1, 'x'), ", "(1, x)"),
    ("insert into t values ", "(null), ", "(1)"),
    ("insert into t values ", "(null),", "(x, 1)"),
    ("insert into t values (", "1, ", "1)"),
    ("insert into t values (", "null, ", "1)"),
    ("insert into t values (1)", " ", ", (2)"),
    ("", "insert into t values (1),", "(2)"),
    ("select 5 ", "(", ""),
    ("select 5 ", ")", ""),
    ("select ", "('x'), ", "1"),
    ("select 5 ", "/**/", ""),
    ("select 5 ", "/*", ""),
    ("select 5 ", "/*/", ""),
    ("select 5 ", "/*+ x */", ""),
    ("", "/*+ x */", "select 5"),
    ("select - 5 ", "--\n", ""),
    ("select 'a'", "\n'b'", ""),
    ("select 'a'", " --c\n", "'b'"),
    ("select ", "'b'\n", "5"),
    ("select 5 ", "$a$ ", ""),
    ("select 5 ", "$a$b$a$ ", ""),
    ("select 5 ", "$a$ $b$ ", ""),
    ("select 5 ", "$a", ""),
    ("select 5, $a$", "$b", ""),
    ("select 5 ", "'", ""),
    ("select 5, E'", "\\'", "'"),
    ("select ", "E'\\\\x', ", "1"),
    ("select 5 ", "\"a\" ", ""),
    ("select 5 ", "U&\"a\" uescape '!' ", ""),
    ("select 5 ", "a.b", ""),
    ("select 5", "::int", ""),
    ("select 5 ", ";", ""),
    ("select 5", ".5", ""),
    ("select 0", "5", ""),
    (
        "insert into t values (5) ",
        "on conflict () ",
        " do nothing",
    ),
    ("insert into t values (5) ", "on conflict ( ", " do nothing"),
    ("select 5 ", "for no key update ", ""),
    ("select 5, a", " between b and c", ""),
    ("select 5 from a ", "join b on true ", ""),
    ("select a from t order by ", "a <-> 'x', ", "5"),
    ("", "select 1; ", ""),
    ("", "create or replace ", ""),
    ("", "set local ", ""),
    ("explain ", "explain ", ""),
];

/// Ten times as long as a client's texts usually may be, so that squares show.
const LENGTH: usize = 300_000;

#[test]
fn texts_of_every_kind_are_dealt_with_in_time() {
    let dialect = Dialect { server_major: 16 };
    let limits = ScanLimits {
        max_text: 2 * LENGTH,
        max_literals: usize::MAX,
        min_array_rows: 16,
    };
    let mut scan = Scan::new(limits, 7);
    for (head, part, tail) in TEXTS {
        for length in [12_000, LENGTH] {
            let text = format!("{head}{}{tail}", part.repeat(length / part.len()));
            let started = Instant::now();
            let _ = effect(text.as_bytes());
            if scan.run(text.as_bytes(), dialect).is_ok()
                && let Ok(eligible) = judge(&text, &scan, dialect)
            {
                let _ = rewrite(text.as_bytes(), &scan, &eligible.arguments);
            }
            let took = started.elapsed();
            assert!(
                took < Duration::from_secs(2),
                "{took:?}: {head}{part}… {length}"
            );
        }
    }
}
