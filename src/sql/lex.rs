//! The tokens of PostgreSQL's lexer, one function each, which says where the token ends.
//!
//! Every function follows a rule of `src/backend/parser/scan.l`, named beside it. `None` means that
//! the token is unterminated or malformed; the caller then gives the whole text up.

use memchr::{memchr, memchr2, memmem};

/// What kind of token a byte begins, outside strings and comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Space,
    Word,
    Digit,
    Quote,
    DoubleQuote,
    Dollar,
    Dot,
    Open,
    Close,
    Comma,
    Colon,
    Semicolon,
    Operator,
    Other,
}

/// [`Kind`] of every byte.
///
/// A vertical tab is [`Kind::Other`]: it became white space in 16 and was an error before, so text
/// that holds one is better left alone.
pub(super) const KIND: [Kind; 256] = {
    let mut table = [Kind::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => Kind::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => Kind::Word,
            b'0'..=b'9' => Kind::Digit,
            b'\'' => Kind::Quote,
            b'"' => Kind::DoubleQuote,
            b'$' => Kind::Dollar,
            b'.' => Kind::Dot,
            b'(' | b'[' => Kind::Open,
            b')' | b']' => Kind::Close,
            b',' => Kind::Comma,
            b':' => Kind::Colon,
            b';' => Kind::Semicolon,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' => Kind::Operator,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' => Kind::Operator,
            _ => Kind::Other,
        };
        byte += 1;
    }
    table
};

/// Which bytes continue an identifier (scan.l, `ident_cont`).
const CONTINUES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(KIND[byte], Kind::Word | Kind::Digit | Kind::Dollar);
        byte += 1;
    }
    table
};

/// Whether `byte` may stand inside an identifier.
#[inline]
pub(super) const fn continues_word(byte: u8) -> bool {
    CONTINUES[byte as usize]
}

/// The byte at `at`, or NUL behind the end; the lexer meets no other NUL (the scan refuses them).
#[inline]
pub(super) fn at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The end of the identifier whose first byte is at `start`.
#[inline]
pub(super) fn word(text: &[u8], start: usize) -> usize {
    let mut end = start + 1;
    while end < text.len() && continues_word(text[end]) {
        end += 1;
    }
    end
}

/// The end of the quoted identifier that opens at `start` (scan.l, `xd`).
pub(super) fn quoted_identifier(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr(b'"', text.get(at..)?)? + 1;
        if text.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// Where a string ends, and whether its content is more than the bytes between two quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct StringEnd {
    pub(super) end: usize,
    pub(super) doubled: bool,
}

/// The end of the string whose opening quote is at `quote`, continuations included (`xq`, `xe`,
/// `xqs`). With `escapes` a backslash takes the next byte with it.
#[inline]
pub(super) fn string(text: &[u8], quote: usize, escapes: bool) -> Option<StringEnd> {
    let mut at = quote + 1;
    let mut doubled = false;
    loop {
        let rest = text.get(at..)?;
        let found = if escapes {
            memchr2(b'\'', b'\\', rest)?
        } else {
            memchr(b'\'', rest)?
        };
        at += found + 1;
        if text[at - 1] == b'\\' {
            at += 1;
        } else if self::at(text, at) == b'\'' {
            doubled = true;
            at += 1;
        } else {
            match continuation(text, at) {
                Some(next) => (at, doubled) = (next + 1, true),
                None => return Some(StringEnd { end: at, doubled }),
            }
        }
    }
}

/// The quote that continues a string closed just before `at`, if one does (scan.l,
/// `quotecontinue`): white space with a newline in it, `--` comments allowed, `/* */` not.
#[inline]
pub(super) fn continuation(text: &[u8], at: usize) -> Option<usize> {
    // Nearly every string is followed by `,`, `)`, `;` or the end.
    if !matches!(
        self::at(text, at),
        b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'-'
    ) {
        return None;
    }
    let mut at = at;
    let mut newline = false;
    loop {
        match self::at(text, at) {
            b' ' | b'\t' | 0x0c => at += 1,
            b'\n' | b'\r' => (at, newline) = (at + 1, true),
            b'-' if self::at(text, at + 1) == b'-' => at = line_comment(text, at),
            b'\'' if newline => return Some(at),
            _ => return None,
        }
    }
}

/// The end of the `--` comment at `start`, before its newline (scan.l, `comment`).
pub(super) fn line_comment(text: &[u8], start: usize) -> usize {
    memchr2(b'\n', b'\r', &text[start..]).map_or(text.len(), |found| start + found)
}

/// The end of the `/* */` comment at `start`; these nest (scan.l, `xc`).
pub(super) fn block_comment(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 2;
    let mut depth = 1_u32;
    loop {
        at += memchr2(b'*', b'/', text.get(at..)?)?;
        match (text[at], self::at(text, at + 1)) {
            (b'*', b'/') => (at, depth) = (at + 2, depth - 1),
            (b'/', b'*') => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The end of the comment at `start`, if there is one: `Ok(None)` when there is none.
pub(super) fn comment(text: &[u8], start: usize) -> Result<Option<usize>, ()> {
    match (at(text, start), at(text, start + 1)) {
        (b'-', b'-') => Ok(Some(line_comment(text, start))),
        (b'/', b'*') => block_comment(text, start).map(Some).ok_or(()),
        _ => Ok(None),
    }
}

/// Whether the comment at `start` is a hint, which `pg_hint_plan` reads (the fidelity rules, H-44).
pub(super) fn is_hint(text: &[u8], start: usize) -> bool {
    text[start..].starts_with(b"/*+")
}

/// Whether the comment at `start`, which ends at `end`, tells the proxy to pass its text through:
/// `/* pgautoprep: off */`.
pub(super) fn is_switch(text: &[u8], start: usize, end: usize) -> bool {
    let comment = text.get(start + 2..end).unwrap_or_default();
    let inside = match at(text, start) {
        b'/' => comment.strip_suffix(b"*/").unwrap_or(comment),
        _ => comment,
    };
    let mut words = inside.splitn(2, |byte| *byte == b':');
    let is = |word: Option<&[u8]>, name: &[u8]| {
        word.is_some_and(|word| word.trim_ascii().eq_ignore_ascii_case(name))
    };
    is(words.next(), b"pgautoprep") && is(words.next(), b"off")
}

/// The first byte at or after `from` that belongs to neither white space nor a comment.
pub(super) fn blank(text: &[u8], from: usize) -> Option<usize> {
    let mut from = from;
    loop {
        while from < text.len() && KIND[text[from] as usize] == Kind::Space {
            from += 1;
        }
        match comment(text, from) {
            Ok(Some(end)) => from = end,
            Ok(None) => return Some(from),
            Err(()) => return None,
        }
    }
}

/// The opening delimiter `$tag$` at `start`: its length (scan.l, `dolqdelim`).
pub(super) fn dollar_tag(text: &[u8], start: usize) -> Option<usize> {
    let mut end = start + 1;
    while end < text.len() && text[end] != b'$' {
        let first = end == start + 1;
        match KIND[text[end] as usize] {
            Kind::Word => end += 1,
            Kind::Digit if !first => end += 1,
            _ => return None,
        }
    }
    (end < text.len()).then_some(end + 1 - start)
}

/// The end of the dollar-quoted string at `start` (scan.l, `xdolq`).
pub(super) fn dollar_string(text: &[u8], start: usize) -> Option<usize> {
    let tag = dollar_tag(text, start)?;
    let (open, rest) = text[start..].split_at(tag);
    memmem::find(rest, open).map(|found| start + tag + found + tag)
}

/// The longest run of operator characters that is looked at: longer operators have no name
/// (`NAMEDATALEN`). In a run that is several operators each would look at all the rest.
const MAX_OPERATOR: usize = 64;

/// The end of the operator at `start`, which is no comment (scan.l, `operator`), or `None` if it
/// stands in a run of too many.
///
/// Comments end an operator, and `+` or `-` may end one of several characters only when it holds a
/// character that no standard operator has: `2^-1` is the operator `^-`, `5<-1` is not `<-`.
#[inline]
pub(super) fn operator(text: &[u8], start: usize) -> Option<usize> {
    let mut end = start + 1;
    let mut exotic = is_exotic(text[start]);
    let most = text.len().min(end + MAX_OPERATOR);
    while end < most && KIND[text[end] as usize] == Kind::Operator {
        if matches!((text[end], at(text, end + 1)), (b'-', b'-') | (b'/', b'*')) {
            break;
        }
        exotic |= is_exotic(text[end]);
        end += 1;
    }
    if end - start > MAX_OPERATOR {
        return None;
    }
    while !exotic && end > start + 1 && matches!(text[end - 1], b'+' | b'-') {
        end -= 1;
    }
    Some(end)
}

const fn is_exotic(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%'
    )
}

/// A number: where it ends, and its value if it is an integer below 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) end: usize,
    pub(super) value: Option<u64>,
}

/// The number at `start`, which is a digit or a dot before one (scan.l, `integer` to `realfail`).
///
/// A number glued to an identifier is refused: what that means has changed in 15 and again in 16.
/// `underscores` allows the integers of 16, `0x1F`, `0o7`, `0b1` and `1_000`.
#[inline]
pub(super) fn number(text: &[u8], start: usize, underscores: bool) -> Option<Number> {
    match plain_integer(text, start) {
        None => any_number(text, start, underscores),
        plain => plain,
    }
}

/// [`number`], if it is no more than up to nineteen decimal digits.
#[inline]
fn plain_integer(text: &[u8], start: usize) -> Option<Number> {
    let mut value = 0_u64;
    let mut length = 0;
    let mut next = Kind::Other;
    for &byte in text.get(start..)? {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            next = KIND[byte as usize];
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        length += 1;
    }
    // An underscore begins a word too, and so do a radix and an exponent.
    let plain = matches!(length, 1..=19) && !matches!(next, Kind::Word | Kind::Dot);
    plain.then_some(Number {
        end: start + length,
        value: Some(value),
    })
}

/// Where the number at `start` ends if it is no more than up to nine decimal digits, and so one of
/// 32 bits.
#[inline]
pub(super) fn small_integer(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let next = KIND[at(rest, length) as usize];
    let plain = matches!(length, 1..=9) && !matches!(next, Kind::Word | Kind::Dot);
    plain.then_some(start + length)
}

/// [`number`] of any notation.
fn any_number(text: &[u8], start: usize, underscores: bool) -> Option<Number> {
    if underscores && text[start] == b'0' {
        let radix = match at(text, start + 1) | 0x20 {
            b'x' => 16,
            b'o' => 8,
            b'b' => 2,
            _ => 10,
        };
        if radix != 10 {
            let (end, value) = digits(text, start + 2, radix, true);
            return unglued(text, Number { end, value }).filter(|_| end > start + 2);
        }
    }
    let (mut end, mut value) = digits(text, start, 10, underscores);
    // `1..2` is two integers around `..`, not two numerics (`numericfail`).
    if at(text, end) == b'.' && (at(text, end + 1) != b'.' || end == start) {
        (end, _) = digits(text, end + 1, 10, underscores);
        value = None;
    }
    if at(text, end) | 0x20 == b'e' {
        let sign = usize::from(matches!(at(text, end + 1), b'+' | b'-'));
        let (exponent, _) = digits(text, end + 1 + sign, 10, underscores);
        if exponent == end + 1 + sign {
            return None;
        }
        (end, value) = (exponent, None);
    }
    unglued(text, Number { end, value })
}

fn unglued(text: &[u8], number: Number) -> Option<Number> {
    (KIND[at(text, number.end) as usize] != Kind::Word).then_some(number)
}

/// The run of digits at `start` and its value, if that fits.
#[inline]
fn digits(text: &[u8], start: usize, radix: u32, underscores: bool) -> (usize, Option<u64>) {
    let mut end = start;
    let mut value = 0_u64;
    while let digit @ 0..10 = at(text, end).wrapping_sub(b'0') {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        end += 1;
    }
    // Nineteen decimal digits always fit; anything but a short decimal is rare.
    if radix == 10 && end - start <= 19 && !(underscores && at(text, end) == b'_') {
        return (end, Some(value));
    }
    any_digits(text, start, radix, underscores)
}

/// [`digits`] of any radix and length, with underscores.
fn any_digits(text: &[u8], start: usize, radix: u32, underscores: bool) -> (usize, Option<u64>) {
    let mut end = start;
    let mut value = Some(0_u64);
    loop {
        let mut next = at(text, end);
        // An underscore stands between two digits, or between `0x` and the first.
        let glue = underscores && next == b'_' && (end > start || radix != 10);
        if glue {
            next = at(text, end + 1);
        }
        let Some(digit) = char::from(next).to_digit(radix) else {
            return (end, value);
        };
        value = value
            .and_then(|value| value.checked_mul(u64::from(radix)))
            .and_then(|value| value.checked_add(u64::from(digit)));
        end += 1 + usize::from(glue);
    }
}
