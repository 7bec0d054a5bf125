//! The name of a type directly before a string: `date '2020-01-01'`, `interval '1 day'`.
//!
//! A parameter may not stand there, but the grammar makes the same tree of it as of
//! `CAST('2020-01-01' AS date)` (gram.y, `AexprConst` and `makeStringConstCast`), in which one may.
//! That holds of the names below. It does not hold of `char 'abc'` and `bit '101'`, which are not
//! cut to the length of one that a cast to these has (gram.y, `ConstCharacter`), nor of an interval
//! with fields or a precision. Types that read their literals by the catalog are not among them.

use std::ops::Range;

use super::scan::Scan;
use super::{around, lex};

/// The name of a type, and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypeName {
    /// From its first word to its last.
    pub(super) range: Range<usize>,
    /// How a cast names it.
    pub(super) name: &'static str,
}

/// Names of one word.
const NAMES: &[&str] = &[
    "bool",
    "boolean",
    "bytea",
    "date",
    "decimal",
    "inet",
    "int",
    "integer",
    "interval",
    "json",
    "jsonb",
    "numeric",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];

/// The type that is named directly before the string that begins at `start`, if it is one of those
/// above. Comments between the words count as blanks, so it is the same for all texts of a shape.
pub(super) fn before(text: &[u8], scan: &Scan, start: usize) -> Option<TypeName> {
    let last = word(text, scan, start)?;
    let found = match &text[last.clone()] {
        name if name.eq_ignore_ascii_case(b"zone") => zoned(text, scan, last)?,
        name => TypeName {
            name: NAMES
                .iter()
                .find(|known| name.eq_ignore_ascii_case(known.as_bytes()))?,
            range: last,
        },
    };
    let end = around::before(text, scan, found.range.start);
    // A name behind a point is qualified; behind a colon is no place for a literal.
    let is_own = end == scan.body().start || !matches!(text[end - 1], b'.' | b':');
    is_own.then_some(found)
}

/// `timestamp with time zone` or `timestamp without time zone`, of which this is the last word.
fn zoned(text: &[u8], scan: &Scan, zone: Range<usize>) -> Option<TypeName> {
    let mut start = zone.start;
    let mut next = || {
        let found = word(text, scan, start)?;
        start = found.start;
        Some(&text[found])
    };
    let is_time = next()?.eq_ignore_ascii_case(b"time");
    let with = next()?;
    let name = match with.to_ascii_lowercase().as_slice() {
        b"with" => "timestamp with time zone",
        b"without" => "timestamp without time zone",
        _ => return None,
    };
    (is_time && next()?.eq_ignore_ascii_case(b"timestamp")).then_some(TypeName {
        range: start..zone.end,
        name,
    })
}

/// The word that ends before `end`, but for blanks; part of no number and no hint.
fn word(text: &[u8], scan: &Scan, end: usize) -> Option<Range<usize>> {
    let end = around::before(text, scan, end);
    let body = &text[scan.body().start..end];
    let letters = body.iter().rev();
    let letters = letters.take_while(|byte| lex::continues_word(**byte));
    let start = end - letters.count();
    let is_word = start < end && text[start].is_ascii_alphabetic();
    let at = u32::try_from(end).ok()?;
    let hints = scan.hints();
    let is_hint = hints.iter().any(|hint| hint.start < at && at <= hint.end);
    (is_word && !is_hint).then_some(start..end)
}
