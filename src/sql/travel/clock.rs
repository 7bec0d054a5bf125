//! Whether a read looks at the time, as far as its text tells: that at which its transaction began.
//!
//! The time comes into a read by a function or a word that stands for one, or by a value that is
//! read as a time: `'now'`, `'today'`, and a time of day without a zone. A value is read as one
//! where the text says so by the name of a type, or where a time is expected.

use super::Mentions;

/// Words that stand for the time, or that make times of other things.
const WORDS: [&str; 54] = [
    "_abstime",
    "_date",
    "_daterange",
    "_time",
    "_timestamp",
    "_timestamptz",
    "_timetz",
    "_tsrange",
    "_tstzrange",
    "abstime",
    "age",
    "array_in",
    "clock_timestamp",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "date_in",
    "datemultirange",
    "daterange",
    "daytime",
    "json_populate_record",
    "json_populate_recordset",
    "json_table",
    "json_to_record",
    "json_to_recordset",
    "json_value",
    "jsonb_populate_record",
    "jsonb_populate_record_valid",
    "jsonb_populate_recordset",
    "jsonb_to_record",
    "jsonb_to_recordset",
    "localtime",
    "localtimestamp",
    "multirange_in",
    "now",
    "range_in",
    "record_in",
    "statement_timestamp",
    "time",
    "time_in",
    "timeofday",
    "timestamp",
    "timestamp_in",
    "timestamptz",
    "timestamptz_in",
    "timetz",
    "timetz_in",
    "timezone",
    "transaction_timestamp",
    "tsmultirange",
    "tsrange",
    "tstzmultirange",
    "tstzrange",
];

/// Values that are read as the time, or as a day that follows from it (`datetktbl` in
/// `datetime.c`).
const VALUES: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

/// Whether one of the words that a text mentions may stand for the time, or have it come in.
#[must_use]
pub fn names_time(mentions: &Mentions) -> bool {
    let is_one = |name: &String| is_word(&name.to_ascii_lowercase());
    mentions.names.iter().any(is_one)
}

/// Whether this word, in lower case, may stand for the time, or have it come in.
#[must_use]
pub fn is_word(word: &str) -> bool {
    word == "zone" || WORDS.binary_search(&word).is_ok()
}

/// Whether a value in the text may be read as the time, if a time is expected where it stands.
///
/// What is written with escapes, or in several parts, may say anything.
#[must_use]
pub fn may_say_now(text: &[u8]) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let word = text[at..].iter().take_while(|byte| is_inside(byte)).count();
        if word > 0 {
            let word = &text[at..at + word];
            if VALUES.iter().any(|value| word.eq_ignore_ascii_case(value)) {
                return true;
            }
            at += word.len();
            continue;
        }
        at += 1;
        let rest = &text[at..];
        if byte == b'\\' || byte == b'\'' && goes_on(rest) {
            return true;
        }
    }
    false
}

/// Whether a string whose quote stands before this goes on behind white space.
fn goes_on(rest: &[u8]) -> bool {
    rest.first().is_some_and(u8::is_ascii_whitespace) && rest.trim_ascii_start().starts_with(b"'")
}

#[cfg(test)]
mod tests {
    use super::super::mentions;
    use super::*;

    #[test]
    fn words_that_have_the_time_come_in_are_known() {
        assert!(WORDS.is_sorted());
        for text in [
            "SELECT Now()",
            "SELECT 1 WHERE a < CURRENT_DATE",
            "SELECT a::timestamptz FROM t",
            "SELECT CAST(a AS \"date\") FROM t",
            "SELECT age(a) FROM t",
            "SELECT a AT TIME ZONE 'UTC' FROM t",
            "SELECT * FROM jsonb_populate_record(NULL::t, a)",
        ] {
            assert!(names_time(&mentions(text.as_bytes()).unwrap()), "{text}");
        }
        for text in [
            "SELECT updated_at, 'now()' FROM t WHERE id = $1",
            "SELECT known FROM nowhere ORDER BY today",
        ] {
            assert!(!names_time(&mentions(text.as_bytes()).unwrap()), "{text}");
        }
    }

    #[test]
    fn values_that_are_read_as_the_time_are_known() {
        for text in [
            "SELECT a FROM t WHERE b > 'now'",
            "SELECT a FROM t WHERE b > ' TODAY '",
            "SELECT a FROM t WHERE b > '{tomorrow,2000-01-01}'",
            "SELECT a FROM t WHERE b > E'n\\x6fw'",
            "SELECT a FROM t WHERE b > 'no'\n'w'",
            "SELECT a FROM t WHERE b > 'yesterday'",
        ] {
            assert!(may_say_now(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "'",
            "SELECT a FROM t WHERE b > '2026-01-01 10:00' AND c IN ('a', 'known', 'nowhere')",
            "SELECT now_at FROM t WHERE b = 'it''s'",
        ] {
            assert!(!may_say_now(text.as_bytes()), "{text}");
        }
    }
}
