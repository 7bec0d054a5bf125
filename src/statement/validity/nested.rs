//! Values that hold others: JSON, and arrays written as strings. Only what is plain is found valid.

/// How deep JSON may be nested. The server allows as much as its stack holds.
const DEEPEST: u32 = 32;

/// The most digits of a number before its point, and behind it.
const DIGITS: usize = 15;

/// Whether a string is JSON without escapes, and all its numbers are plain ones. That is a value of
/// `jsonb`, too, which takes neither `\u0000` nor numbers of any size.
pub(super) fn is_json(value: &[u8]) -> bool {
    json(value, 0).is_some_and(|rest| behind_space(rest).is_empty())
}

fn behind_space(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let at = bytes.iter().position(|byte| !is_space(byte));
    bytes.get(at.unwrap_or(bytes.len())..).unwrap_or_default()
}

/// What stands behind the first value.
fn json(bytes: &[u8], depth: u32) -> Option<&[u8]> {
    match behind_space(bytes) {
        [b'{', rest @ ..] => members(rest, b'}', depth, |bytes| {
            let [b'"', rest @ ..] = behind_space(bytes) else {
                return None;
            };
            match behind_space(string(rest)?) {
                [b':', rest @ ..] => json(rest, depth + 1),
                _ => None,
            }
        }),
        [b'[', rest @ ..] => members(rest, b']', depth, |bytes| json(bytes, depth + 1)),
        [b'"', rest @ ..] => string(rest),
        rest @ [b'-' | b'0'..=b'9', ..] => number(rest),
        rest => {
            let words: [&[u8]; 3] = [b"true", b"false", b"null"];
            let found = words.iter().find_map(|word| rest.strip_prefix(*word))?;
            found
                .first()
                .is_none_or(|next| is_end(*next))
                .then_some(found)
        }
    }
}

/// What stands behind the members of an object or an array, and its end.
fn members<'a>(
    bytes: &'a [u8],
    end: u8,
    depth: u32,
    member: impl Fn(&'a [u8]) -> Option<&'a [u8]>,
) -> Option<&'a [u8]> {
    if depth >= DEEPEST {
        return None;
    }
    let mut rest = bytes;
    if let [first, behind @ ..] = behind_space(rest)
        && *first == end
    {
        return Some(behind);
    }
    loop {
        match behind_space(member(rest)?) {
            [b',', behind @ ..] => rest = behind,
            [last, behind @ ..] if *last == end => return Some(behind),
            _ => return None,
        }
    }
}

/// What stands behind a string, of which the first quote was read.
fn string(bytes: &[u8]) -> Option<&[u8]> {
    let at = bytes
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
    bytes.get(at..)?.strip_prefix(b"\"")
}

/// What stands behind a number.
fn number(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let (whole, mut rest) = digits(bytes)?;
    if whole.len() > 1 && whole.first() == Some(&b'0') {
        return None;
    }
    if let [b'.', behind @ ..] = rest {
        rest = digits(behind)?.1;
    }
    rest.first()
        .is_none_or(|next| is_end(*next))
        .then_some(rest)
}

/// A few digits, and what stands behind them.
fn digits(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = bytes.split_at(at.unwrap_or(bytes.len()));
    (1..=DIGITS)
        .contains(&digits.len())
        .then_some((digits, rest))
}

/// Whether this may stand behind a word or a number.
const fn is_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'}' | b']')
}

/// Whether a string is an array of one dimension without escapes, all of whose items are values.
pub(super) fn is_array(value: &[u8], is_value: impl Fn(&[u8]) -> bool) -> bool {
    let inside = value
        .strip_prefix(b"{")
        .and_then(|it| it.strip_suffix(b"}"));
    let Some(mut rest) = inside else {
        return false;
    };
    if rest.is_empty() {
        return true;
    }
    loop {
        let (item, behind) = match rest {
            [b'"', quoted @ ..] => {
                let Some(behind) = string(quoted) else {
                    return false;
                };
                (&quoted[..quoted.len() - behind.len() - 1], behind)
            }
            bare => {
                let is_plain = |byte: &u8| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'+')
                };
                let at = bare.iter().position(|byte| !is_plain(byte));
                let (item, behind) = bare.split_at(at.unwrap_or(bare.len()));
                if item.is_empty() || item.eq_ignore_ascii_case(b"null") {
                    return false;
                }
                (item, behind)
            }
        };
        if !is_value(item) {
            return false;
        }
        rest = match behind {
            [] => return true,
            [b',', behind @ ..] => behind,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_json_is_valid_and_all_else_in_doubt() {
        for yes in [
            "{}",
            " [ ] ",
            "null",
            "-0.5",
            "\"é\"",
            "{\"k\": 1, \"a\" :[true,false , null], \"o\": {\"x\": \"1e4\"}}",
            "[1,2.25,\"a b\"]",
        ] {
            assert!(is_json(yes.as_bytes()), "{yes}");
            assert!(
                serde_json::from_str::<serde_json::Value>(yes).is_ok(),
                "{yes}"
            );
        }
        for no in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{a: 1}",
            "01",
            "1.",
            ".5",
            "+1",
            "1e5",
            "truex",
            "nul",
            "\"a",
            "\"\\u0000\"",
            "\"a\\n\"",
            "\"\t\"",
            "[1] 2",
            "1234567890123456",
            "{\"a\":1,}",
            "'a'",
            "[1 2]",
            "\u{a0}1",
        ] {
            assert!(!is_json(no.as_bytes()), "{no}");
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_json(deep(32).as_bytes()) && !is_json(deep(33).as_bytes()));
    }

    #[test]
    fn plain_arrays_are_valid_if_their_items_are() {
        let of_text = |value: &str| is_array(value.as_bytes(), |_| true);
        for yes in [
            "{}",
            "{a}",
            "{a,b15,-1.5}",
            "{\"a b\",\"\",c}",
            "{\"NULL\",\"{,}\"}",
        ] {
            assert!(of_text(yes), "{yes}");
        }
        for no in [
            "",
            "{",
            "a",
            "{a",
            "a}",
            "{,}",
            "{a,}",
            "{a b}",
            "{{a}}",
            "{NULL}",
            "{\"a}",
            "{\"a\\\"\"}",
            "{\"a\"b}",
            "[0:1]={a,b}",
            "{a}{b}",
            " {a}",
            "{a;b}",
        ] {
            assert!(!of_text(no), "{no}");
        }
        let of_numbers = |value: &str| is_array(value.as_bytes(), |item| item.len() == 1);
        assert!(of_numbers("{1,2}") && !of_numbers("{1,22}") && !of_numbers("{\"22\"}"));
    }
}
