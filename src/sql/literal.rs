//! One literal: from where it begins to where it ends, and what it is.
//!
//! What stands before it is for the caller to know: whether a minus is a sign, and whether a string
//! is a constant at all.

use super::class::{Class, Form, Literal};
use super::lex::{self, KIND, Kind};
use super::value;

/// The string constant that begins at `start`, whose quote is at `quote`: only an `E` may stand
/// between, and then there are `escapes`.
#[inline]
pub(super) fn string(text: &[u8], start: usize, quote: usize, escapes: bool) -> Option<Literal> {
    let found = lex::string(text, quote, escapes)?;
    let form = match (escapes, found.doubled) {
        (true, _) => Form::Escape,
        (false, true) => Form::Doubled,
        (false, false) => Form::Plain,
    };
    if escapes && !value::is_understood(&text[quote..found.end]) {
        return None;
    }
    Some(literal(start, found.end, Class::Text, form))
}

/// The dollar-quoted string at `start`.
pub(super) fn dollar_string(text: &[u8], start: usize) -> Option<Literal> {
    let end = lex::dollar_string(text, start)?;
    Some(literal(start, end, Class::Text, Form::Dollar))
}

/// The number whose digits, as [`lex::number`] found them, begin at `digits`; a sign that it is
/// folded with stands at `start`.
#[inline]
pub(super) fn number(start: usize, digits: usize, number: lex::Number) -> Literal {
    let class = classify(number.value, start != digits);
    literal(start, number.end, class, Form::Number)
}

/// The unsigned integer at `start`, if it is written in a few decimal digits.
#[inline]
pub(super) fn small_integer(text: &[u8], start: usize) -> Option<Literal> {
    let end = lex::small_integer(text, start)?;
    Some(literal(start, end, Class::Int4, Form::Number))
}

/// Whether the minus before a number that ends at `end` reaches the number alone: a cast, a
/// subscript and a selection bind tighter (gram.y, the precedences behind `UMINUS`).
#[inline]
pub(super) fn folds(text: &[u8], end: usize) -> Option<bool> {
    let next = lex::blank(text, end)?;
    Some(!matches!(lex::at(text, next), b':' | b'[' | b'.'))
}

/// The literal at `start`, behind something that leaves a minus unary and a string a constant;
/// `None` if none begins there, or it cannot be lifted or is not understood.
#[inline]
pub(super) fn any(text: &[u8], start: usize, underscores: bool) -> Option<Literal> {
    match KIND[lex::at(text, start) as usize] {
        Kind::Digit => {
            let found = lex::number(text, start, underscores)?;
            Some(number(start, start, found))
        }
        Kind::Quote => string(text, start, start, false),
        Kind::Operator | Kind::Dot => signed(text, start, underscores),
        Kind::Word => {
            let escapes = text[start] | 0x20 == b'e' && lex::at(text, start + 1) == b'\'';
            escapes.then(|| string(text, start, start + 1, true))?
        }
        Kind::Dollar => dollar_string(text, start),
        _ => None,
    }
}

/// The number at `start` that begins with its sign, or with a dot.
fn signed(text: &[u8], start: usize, underscores: bool) -> Option<Literal> {
    let mut digits = start;
    let sign = text[start] == b'-';
    if sign {
        digits += 1;
        while KIND[lex::at(text, digits) as usize] == Kind::Space {
            digits += 1;
        }
    }
    let dot = usize::from(lex::at(text, digits) == b'.');
    if !lex::at(text, digits + dot).is_ascii_digit() {
        return None;
    }
    let found = lex::number(text, digits, underscores)?;
    (!sign || folds(text, found.end)?).then(|| number(start, digits, found))
}

#[inline]
const fn literal(start: usize, end: usize, class: Class, form: Form) -> Literal {
    Literal {
        start: start as u32,
        end: end as u32,
        class,
        form,
    }
}

/// The class of an integer by its magnitude (gram.y, `doNegate`; parse_node.c, `make_const`).
const fn classify(value: Option<u64>, negative: bool) -> Class {
    const INT4: u64 = i32::MAX as u64;
    const INT8: u64 = i64::MAX as u64;
    match value {
        Some(value) if value <= INT4 + negative as u64 => Class::Int4,
        Some(value) if value <= INT8 + negative as u64 => Class::Int8,
        _ => Class::Numeric,
    }
}
