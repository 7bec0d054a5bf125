//! Lists: the literals of `x IN (1, 2, 3)`, which one argument can stand for.
//!
//! The server makes `x = ANY (ARRAY[1, 2, 3])` of two or more constants behind IN, each converted
//! to one common type, and `x <> ALL (…)` behind NOT IN (parse_expr.c, `transformAExprIn`). So the
//! whole list may be an array that is bound to `$1` in `x = ANY ($1)`, and texts that differ only
//! in the length of a list have one shape. Of a single constant the server makes `x = 1`, which is
//! another shape.
//!
//! A list holds nothing but literals of one class, with commas and white space between. That is
//! decided by the text around its literals, so texts with the same gaps and the same classes have
//! the same lists.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::class::{Break, Class, Form, Literal};
use super::lex::{self, KIND, Kind};
use super::{rows, value};

/// A list in a text: which of the literals are its elements, and which break is the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct List {
    pub(super) elements: Range<usize>,
    pub(super) first_break: usize,
}

/// What a list's elements have in common, if such literals make a list.
const fn class_of(element: Class) -> Option<Class> {
    match element {
        Class::Int4 => Some(Class::Int4List),
        Class::Text => Some(Class::TextList),
        _ => None,
    }
}

/// Whether what stands between the parenthesis that ends at `open` and the one at `close` is a list
/// of these literals.
pub(super) fn is_list(text: &[u8], open: usize, literals: &[Literal], close: usize) -> bool {
    let [first, .., last] = literals else {
        return false;
    };
    let is_gap = |gap: &[u8], commas: usize| {
        let mut found = 0;
        gap.iter().all(|byte| match KIND[*byte as usize] {
            Kind::Space => true,
            Kind::Comma => {
                found += 1;
                true
            }
            _ => false,
        }) && found == commas
    };
    class_of(first.class).is_some()
        && literals.iter().all(|literal| literal.class == first.class)
        && is_gap(&text[open..first.start as usize], 0)
        && is_gap(&text[last.end as usize..close], 0)
        && literals
            .windows(2)
            .all(|pair| is_gap(&text[pair[0].end as usize..pair[1].start as usize], 1))
}

/// Literals and breaks with each list as one of them.
pub(super) fn fold(
    lists: &[List],
    (literals, breaks): (&[Literal], &[Break]),
    folded: &mut (Vec<Literal>, Vec<Break>),
) {
    let (mut literal, mut cut) = (0, 0);
    for list in lists {
        let elements = &literals[list.elements.clone()];
        let [first, .., last] = elements else {
            continue;
        };
        let Some(class) = class_of(first.class) else {
            continue;
        };
        folded
            .0
            .extend_from_slice(&literals[literal..list.elements.start]);
        folded.1.extend_from_slice(&breaks[cut..list.first_break]);
        let whole = Literal::list(class, first.start, last.end);
        folded.0.push(whole);
        folded.1.push(Break::at(&whole));
        (literal, cut) = (list.elements.end, list.first_break + elements.len());
    }
    folded.0.extend_from_slice(&literals[literal..]);
    folded.1.extend_from_slice(&breaks[cut..]);
}

/// What stands for the operator of a list and its parenthesis, and where those begin: `IN (` is
/// read backwards from the first element at `start`, and so is a NOT before it.
///
/// The server places an error about the operator at IN or at NOT (gram.y, `a_expr`).
pub(super) fn operator(text: &[u8], start: usize) -> (&'static str, usize) {
    let space = |end: usize| {
        let spaces = text[..end].iter().rev();
        end - spaces
            .take_while(|byte| KIND[**byte as usize] == Kind::Space)
            .count()
    };
    let open = space(start).saturating_sub(1);
    let word = space(open).saturating_sub(2);
    let end = space(word);
    let Some(not) = end.checked_sub(3).filter(|_| end < word) else {
        return ("= ANY (", word);
    };
    let is_not = text[not..end].eq_ignore_ascii_case(b"not")
        && (not == 0 || !(lex::continues_word(text[not - 1]) || text[not - 1] == b'.'));
    match is_not {
        true => ("<> ALL (", not),
        false => ("= ANY (", word),
    }
}

/// Appends a list, or a column of rows, as an array in text form. Strings are always quoted:
/// otherwise the word NULL, an empty one, spaces and braces would mean something else
/// (arrayfuncs.c, `array_in`).
pub(super) fn array(text: &[u8], elements: &[Literal], out: &mut Vec<u8>) {
    let mut separator = b'{';
    for element in elements {
        out.push(separator);
        separator = b',';
        match (element.form, element.class) {
            (Form::Word, _) if rows::is_null(text, element) => out.extend_from_slice(b"NULL"),
            (Form::Word, _) => out.push(text[element.start as usize].to_ascii_lowercase()),
            (_, Class::Text) => {
                out.push(b'"');
                let start = out.len();
                value::single(text, element, out);
                escape(out, start);
                out.push(b'"');
            }
            (_, Class::Numeric) => value::single(text, element, out),
            _ => integer(value::token(text, element), out),
        }
    }
    out.push(b'}');
}

/// Appends a list of integers, from the first to the last, as an array if all of them are plain
/// decimals: that is the list's own text without its spaces. Otherwise appends nothing.
pub(super) fn decimals(list: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + list.len() + 2, b'{');
    let array = &mut out[start..];
    let (mut end, mut all) = (1, KNOWN);
    for &byte in list {
        let use_of = USES[byte as usize];
        array[end] = byte;
        end += usize::from(use_of & KEPT);
        all &= use_of;
    }
    array[end] = b'}';
    let done = all & KNOWN != 0;
    out.truncate(if done { start + end + 1 } else { start });
    done
}

/// What each byte is to a list of plain decimals: kept, left out, or (zero) not part of one.
const USES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' | b',' | b'-' => KEPT | KNOWN,
            _ if matches!(KIND[byte], Kind::Space) => KNOWN,
            _ => 0,
        };
        byte += 1;
    }
    table
};
const KEPT: u8 = 1;
const KNOWN: u8 = 2;

/// Puts a backslash before each quote and backslash from `start` on.
fn escape(out: &mut Vec<u8>, start: usize) {
    let special = |byte: &&u8| matches!(**byte, b'"' | b'\\');
    if memchr2(b'"', b'\\', &out[start..]).is_none() {
        return;
    }
    let mut from = out.len();
    let mut to = from + out[start..].iter().filter(special).count();
    out.resize(to, 0);
    while from < to {
        (from, to) = (from - 1, to - 1);
        out[to] = out[from];
        if special(&&out[to]) {
            to -= 1;
            out[to] = b'\\';
        }
    }
}

/// An integer in decimal: the array's elements may be of a type that reads no other notation.
fn integer(token: &[u8], out: &mut Vec<u8>) {
    let (sign, digits) = match token {
        [b'-', rest @ ..] => (true, rest.trim_ascii_start()),
        _ => (false, token),
    };
    if sign {
        out.push(b'-');
    }
    if digits.iter().all(u8::is_ascii_digit) {
        out.extend_from_slice(digits);
        return;
    }
    let (radix, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', b'o' | b'O', rest @ ..] => (8, rest),
        [b'0', b'b' | b'B', rest @ ..] => (2, rest),
        _ => (10, digits),
    };
    let digits = digits
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(radix));
    // It fits: its class was found so.
    let number = digits.fold(0_u64, |number, digit| {
        number.wrapping_mul(radix.into()).wrapping_add(digit.into())
    });
    let mut divisor = 10_u64.pow(number.checked_ilog10().unwrap_or(0));
    while divisor > 0 {
        out.push(b'0' + (number / divisor % 10) as u8);
        divisor /= 10;
    }
}

/// Appends an array as a string constant.
pub(super) fn quoted_array(text: &[u8], elements: &[Literal], out: &mut Vec<u8>) {
    let mut content = Vec::new();
    array(text, elements, &mut content);
    out.push(b'\'');
    let mut rest = &*content;
    while let Some(at) = memchr(b'\'', rest) {
        out.extend_from_slice(&rest[..=at]);
        out.push(b'\'');
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
