//! A text that is likely to have a known shape is compared with it, instead of scanned: its own
//! text piece by piece, and only the literals between are read.
//!
//! That finds what a scan of the whole text would find, or nothing. For a scan goes from left to
//! right, and what it makes of a token depends on the tokens before and on the bytes up to the next
//! one. So over a piece of text that a scan has read before, in the same state, it finds the same
//! tokens, and arrives at the literal behind in the same state, if the first byte there makes no
//! difference to a token before it; which first bytes do not is what the shape's guide says. Behind
//! a literal the state is always the same, and the literal itself is read as a scan reads it.
//!
//! Not followed are shapes with comments between their tokens, with hints, with no literals, with
//! lists that were taken apart, and with rows, whose number is not known before they are read.

use std::ops::Range;

use memchr::memchr;

use super::class::{Break, Class};
use super::found::Found;
use super::lex::{self, KIND, Kind};
use super::list::List;
use super::literal;
use super::shape::Shape;

/// The body of `text`, if that is found to be of `shape`; its literals and breaks are then in
/// `found`, which was empty.
#[inline]
pub(super) fn follow(
    text: &[u8],
    shape: &Shape,
    underscores: bool,
    found: &mut Found,
) -> Option<Range<usize>> {
    let guide = shape.guide.as_ref()?;
    if guide.underscores != underscores {
        return None;
    }
    let start = spaces(text, 0);
    let mut at = start;
    let mut gaps = &*shape.gaps;
    for (&(length, kind), starts) in shape.breaks.iter().zip(&guide.starts) {
        let (gap, behind) = gaps.split_at_checked(length as usize)?;
        at += strip(&text[at..], gap)?;
        gaps = behind;
        if !starts.admit(lex::at(text, at)) {
            return None;
        }
        at = match kind {
            INT4_LIST => elements(text, at, Class::Int4, underscores, found)?,
            TEXT_LIST => elements(text, at, Class::Text, underscores, found)?,
            class => element(text, at, class, underscores, found)?,
        };
    }
    at += strip(&text[at..], gaps)?;
    if !is_end(text, at) {
        return None;
    }
    let breaks = found.literals.iter().map(Break::at);
    found.breaks.extend(breaks);
    Some(start..at)
}

const INT4_LIST: u8 = Class::Int4List as u8;
const TEXT_LIST: u8 = Class::TextList as u8;

/// The length of `gap`, if `text` begins with it.
#[inline]
fn strip(text: &[u8], gap: &[u8]) -> Option<usize> {
    (text.get(..gap.len())? == gap).then_some(gap.len())
}

/// Notes the literal of this class at `start`; where it ends.
#[inline]
fn element(
    text: &[u8],
    start: usize,
    class: u8,
    underscores: bool,
    found: &mut Found,
) -> Option<usize> {
    // Most literals are such.
    if class == Class::Int4 as u8
        && let Some(literal) = literal::small_integer(text, start)
    {
        found.literals.push(literal);
        return Some(literal.end as usize);
    }
    other_element(text, start, class, underscores, found)
}

/// [`element`] of any notation.
#[inline(never)]
fn other_element(
    text: &[u8],
    start: usize,
    class: u8,
    underscores: bool,
    found: &mut Found,
) -> Option<usize> {
    let literal = literal::any(text, start, underscores)?;
    if literal.class as u8 != class
        || literal.class == Class::Text && !is_clean(&text[literal.range()])
    {
        return None;
    }
    found.literals.push(literal);
    Some(literal.end as usize)
}

/// Notes the list of two or more literals of this class that begins at `start`; where the last of
/// them ends. That the list ends there is for the caller to find.
fn elements(
    text: &[u8],
    start: usize,
    class: Class,
    underscores: bool,
    found: &mut Found,
) -> Option<usize> {
    let first = found.literals.len();
    let mut at = start;
    loop {
        let end = element(text, at, class as u8, underscores, found)?;
        if lex::at(text, end) == b',' {
            at = spaces(text, end + 1);
            continue;
        }
        at = spaces(text, end);
        if lex::at(text, at) != b',' {
            let elements = first..found.literals.len();
            found.lists.push(List {
                first_break: first,
                elements: elements.clone(),
            });
            return (elements.len() > 1).then_some(end);
        }
        at = spaces(text, at + 1);
    }
}

/// The first byte at or after `at` that is no white space.
#[inline]
fn spaces(text: &[u8], at: usize) -> usize {
    let mut at = at;
    while KIND[lex::at(text, at) as usize] == Kind::Space {
        at += 1;
    }
    at
}

/// Whether the scan would accept these bytes inside of a string or a comment.
#[inline]
fn is_clean(bytes: &[u8]) -> bool {
    memchr(0, bytes).is_none() && (bytes.is_ascii() || std::str::from_utf8(bytes).is_ok())
}

/// Whether nothing follows but white space, semicolons and at most one comment, which is no hint
/// and no switch.
#[inline]
fn is_end(text: &[u8], from: usize) -> bool {
    let at = blank(text, from);
    at == text.len() || ends_with_comment(text, at)
}

fn ends_with_comment(text: &[u8], at: usize) -> bool {
    match lex::comment(text, at) {
        Ok(Some(end)) => {
            let speaks = lex::is_hint(text, at) || lex::is_switch(text, at, end);
            let harmless = !speaks && is_clean(&text[at..end]);
            harmless && blank(text, end) == text.len()
        }
        _ => false,
    }
}

/// The first byte at or after `at` that is neither white space nor a semicolon.
#[inline]
fn blank(text: &[u8], at: usize) -> usize {
    let is_blank = |byte: u8| matches!(KIND[byte as usize], Kind::Space | Kind::Semicolon);
    let mut at = at;
    while is_blank(lex::at(text, at)) {
        at += 1;
    }
    at
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
