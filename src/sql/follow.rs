//! A text that is likely to have a known shape is compared with it, instead of scanned: its own
//! text piece by piece, and only the literals between are read.
//!
//! That finds what a scan of the whole text would find, or nothing. For a scan goes from left to
//! right, and what it makes of a token depends on the tokens before and on the bytes up to the next
//! one. So over a piece of text that a scan has read before, in the same state, it finds the same
//! tokens, and arrives at the literal behind in the same state, if the first byte there makes no
//! difference to a token before it; which first bytes do not is what [`Starts`] says. Behind a
//! literal the state is always the same, and the literal itself is read as a scan reads it.
//!
//! Not followed are shapes with comments between their tokens, with hints, with no literals, with
//! lists that were taken apart, and with rows, whose number is not known before they are read.

use std::ops::Range;

use memchr::memchr;

use super::lex::{self, KIND, Kind};
use super::list::List;
use super::literal;
use super::pass::Found;
use super::scan::{Break, COMMENT, Class, Scan};
use super::shape::Shape;

/// What has to be known of a shape beside its text to follow it.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// For each literal, what it may begin with.
    starts: Box<[Starts]>,
    /// Numbers may have underscores: the dialect it was scanned in.
    underscores: bool,
}

impl Guide {
    /// That of `text`, which `scan` has just scanned; `None` if the shape is not to be followed.
    pub(super) fn of(text: &[u8], scan: &Scan) -> Option<Self> {
        let breaks = scan.breaks();
        let apart = !scan.is_folded() && scan.lists().next().is_some();
        let comments = breaks.iter().any(|cut| cut.kind == COMMENT);
        let unlike = comments || apart || scan.has_rows() || !scan.hints().is_empty();
        if breaks.is_empty() || unlike {
            return None;
        }
        let mut from = scan.body().start;
        let starts = breaks.iter().map(|cut| {
            let gap = from..cut.start as usize;
            from = cut.end as usize;
            Starts::behind(&text[gap], KIND[text[cut.start as usize] as usize])
        });
        Some(Self {
            starts: starts.collect(),
            underscores: scan.underscores(),
        })
    }

    /// The memory it takes beside itself.
    pub(super) const fn bytes(&self) -> usize {
        self.starts.len() * size_of::<Starts>()
    }
}

/// The kinds of the first bytes with which a literal may begin, as a set of bits.
#[derive(Clone, Copy, Debug)]
struct Starts(u16);

impl Starts {
    const NUMBER: Self = Self::of(&[Kind::Digit, Kind::Dot, Kind::Operator]);
    const STRING: Self = Self::of(&[Kind::Quote, Kind::Dollar, Kind::Word]);

    const fn of(kinds: &[Kind]) -> Self {
        let (mut set, mut rest) = (0, kinds);
        while let [kind, others @ ..] = rest {
            set |= 1 << *kind as u16;
            rest = others;
        }
        Self(set)
    }

    /// Those of a literal behind `gap` that once began with a byte of kind `first`.
    ///
    /// A byte of the same kind never makes a difference. Behind an operator, an opening parenthesis
    /// or a comma any notation of the same class will do: a minus is a sign there, unless it would
    /// become part of the operator, and none of the three looks for what follows white space. `*`
    /// may be a whole row, a minus behind which is binary, and a minus may be a sign itself.
    fn behind(gap: &[u8], first: Kind) -> Self {
        let same = Self::of(&[first]);
        let class = match first {
            Kind::Digit | Kind::Dot | Kind::Operator => Self::NUMBER,
            _ => Self::STRING,
        };
        let tokens = gap.trim_ascii_end();
        let apart = tokens.len() < gap.len();
        let operator = tokens.iter().rev();
        let mut operator = operator.take_while(|byte| KIND[**byte as usize] == Kind::Operator);
        match tokens.last() {
            Some(b'(' | b'[' | b',') => class,
            Some(b'*' | b'-') | None => same,
            Some(b'<' | b'>' | b'=') if operator.all(|byte| b"<>=".contains(byte)) => class,
            Some(last) if apart && KIND[*last as usize] == Kind::Operator => class,
            Some(_) => same,
        }
    }

    #[inline]
    const fn admit(self, first: u8) -> bool {
        self.0 >> KIND[first as usize] as u16 & 1 == 1
    }
}

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

/// Whether nothing follows but white space, semicolons and at most one comment, which is no hint.
#[inline]
fn is_end(text: &[u8], from: usize) -> bool {
    let at = blank(text, from);
    at == text.len() || ends_with_comment(text, at)
}

fn ends_with_comment(text: &[u8], at: usize) -> bool {
    match lex::comment(text, at) {
        Ok(Some(end)) => {
            let harmless = !lex::is_hint(text, at) && is_clean(&text[at..end]);
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
