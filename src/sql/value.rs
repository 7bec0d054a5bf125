//! What a literal says: its bytes as Bind and EXECUTE want them.
//!
//! Bind takes the value in text form, which for a string is its content and for a number the
//! number. EXECUTE takes the token as written.

use memchr::{memchr, memchr2};

use super::class::{Form, Literal};
use super::lex;

/// The literal as written.
#[must_use]
pub fn token<'a>(text: &'a [u8], literal: &Literal) -> &'a [u8] {
    &text[literal.range()]
}

/// The value of `literal` in text form; of a list, nothing.
#[must_use]
pub fn of(text: &[u8], literal: &Literal) -> Vec<u8> {
    let mut out = Vec::new();
    single(text, literal, &mut out);
    out
}

/// Appends the value of `literal`, which is no list, in text form.
#[inline]
pub(super) fn single(text: &[u8], literal: &Literal, out: &mut Vec<u8>) {
    let token = token(text, literal);
    match literal.form {
        Form::Number => number(token, out),
        Form::Plain => out.extend_from_slice(&token[1..token.len() - 1]),
        Form::Doubled => string(token, out, false),
        Form::Escape => string(&token[1..], out, true),
        Form::Dollar => {
            let tag = lex::dollar_tag(token, 0).unwrap_or(0);
            out.extend_from_slice(&token[tag..token.len() - tag]);
        }
        // Its elements have values; and these are elements, of arrays.
        Form::List | Form::Word => {}
    }
}

/// A number without the spaces that may stand behind its sign.
#[inline]
fn number(token: &[u8], out: &mut Vec<u8>) {
    match token {
        [b'-', rest @ ..] => {
            out.push(b'-');
            out.extend_from_slice(rest.trim_ascii_start());
        }
        _ => out.extend_from_slice(token),
    }
}

/// A quoted string, from its first quote, without quotes, doublings, escapes and continuations.
fn string(quoted: &[u8], out: &mut Vec<u8>, escapes: bool) {
    let mut at = 1;
    while let Some(rest) = quoted.get(at..) {
        let found = if escapes {
            memchr2(b'\'', b'\\', rest)
        } else {
            memchr(b'\'', rest)
        };
        let Some(found) = found else { return };
        out.extend_from_slice(&rest[..found]);
        at += found;
        if quoted[at] == b'\\' {
            let Some((escape, length)) = escape(&quoted[at..]) else {
                return;
            };
            escape.append(out);
            at += length;
        } else if lex::at(quoted, at + 1) == b'\'' {
            out.push(b'\'');
            at += 2;
        } else {
            match lex::continuation(quoted, at + 1) {
                Some(quote) => at = quote + 1,
                None => return,
            }
        }
    }
}

/// Whether every escape of this quoted string is one that [`single`] decodes.
///
/// Left to the server: NUL, bytes that might form a character together, surrogates, malformed
/// escapes, `\v`, which 16 made a vertical tab, and `\'`, which a setting (`backslash_quote`) may
/// forbid.
pub(super) fn is_understood(quoted: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = quoted.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += found;
        match escape(&quoted[at..]) {
            Some((_, length)) => at += length,
            None => return false,
        }
    }
    true
}

enum Escape {
    Byte(u8),
    Char(char),
}

impl Escape {
    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Byte(byte) => out.push(*byte),
            Self::Char(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The escape at the start of `text`, and its length (scan.l, `xeescape` to `xeunicode`).
fn escape(text: &[u8]) -> Option<(Escape, usize)> {
    let byte = |value: u32, length| {
        let value = u8::try_from(value)
            .ok()
            .filter(|value| (1..0x80).contains(value))?;
        Some((Escape::Byte(value), length))
    };
    match *text.get(1)? {
        b'b' => Some((Escape::Byte(8), 2)),
        b'f' => Some((Escape::Byte(12), 2)),
        b'n' => Some((Escape::Byte(b'\n'), 2)),
        b'r' => Some((Escape::Byte(b'\r'), 2)),
        b't' => Some((Escape::Byte(b'\t'), 2)),
        b'v' | b'\'' => None,
        b'0'..=b'7' => {
            let (value, digits) = hex(&text[1..], 3, 8);
            byte(value, 1 + digits)
        }
        b'x' => match hex(&text[2..], 2, 16) {
            (_, 0) => Some((Escape::Byte(b'x'), 2)),
            (value, digits) => byte(value, 2 + digits),
        },
        kind @ (b'u' | b'U') => {
            let wanted = if kind == b'u' { 4 } else { 8 };
            let (value, digits) = hex(&text[2..], wanted, 16);
            let char = char::from_u32(value).filter(|char| *char != '\0')?;
            (digits == wanted).then_some((Escape::Char(char), 2 + wanted))
        }
        // The first byte of a longer character stands for itself, as the others will.
        other => Some((Escape::Byte(other), 2)),
    }
}

/// Up to `most` digits at the start of `text`: their value and their number.
fn hex(text: &[u8], most: usize, radix: u32) -> (u32, usize) {
    let digits = text
        .iter()
        .take(most)
        .map_while(|byte| char::from(*byte).to_digit(radix));
    digits.fold((0, 0), |(value, count), digit| {
        (value.wrapping_mul(radix) + digit, count + 1)
    })
}
