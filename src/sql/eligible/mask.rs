//! The statement as the parser gets to see it: every byte in its place, and nothing to argue about.
//!
//! The parser has a lexer of its own, which differs from the server's in corners (strings,
//! comments, white space beyond ASCII). So it is handed a text of the same length in which strings
//! hold only `x`, numbers only `1`, comments and white space only blanks, and every byte is ASCII
//! on one line. A column then is a byte offset, and the two lexers cannot disagree about where a
//! literal ends.

use std::ops::Range;

use sqlparser::tokenizer::Span;

use crate::sql::class::{COMMENT, Class, Form, Literal};
use crate::sql::lex::{self, KIND, Kind};
use crate::sql::scan::Scan;

/// A masked statement and its tokens.
pub(super) struct Masked {
    /// The masked body; offsets are relative to the body's start.
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Word,
    Quoted,
    /// A string literal, by its index among the scan's literals.
    Text(usize),
    Number,
    Symbol(u8),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) sort: Sort,
}

/// The bytes of a literal that the parser will report: without a folded sign.
pub(super) fn value_range(text: &[u8], literal: &Literal) -> Range<usize> {
    let mut range = literal.range();
    if literal.form == Form::Number && text[range.start] == b'-' {
        let rest = &text[range.start + 1..range.end];
        range.start = range.end - rest.trim_ascii_start().len();
    }
    range
}

impl Masked {
    pub(super) fn new(text: &[u8], scan: &Scan) -> Self {
        let body = scan.body();
        let mut masked = text[body.clone()].to_vec();
        for hint in scan.hints() {
            if (hint.end as usize) <= body.end {
                blank(
                    &mut masked,
                    hint.start as usize - body.start..hint.end as usize - body.start,
                );
            }
        }
        for comment in scan.breaks().iter().filter(|cut| cut.kind == COMMENT) {
            let range = comment.start as usize - body.start..comment.end as usize - body.start;
            blank(&mut masked, range);
        }
        for literal in scan.literals() {
            let value = value_range(text, literal);
            let bytes = &mut masked[value.start - body.start..value.end - body.start];
            if literal.class == Class::Text {
                bytes.fill(b'x');
                if let [first, .., last] = bytes {
                    (*first, *last) = (b'\'', b'\'');
                }
            } else {
                bytes.fill(b'1');
            }
        }
        for byte in &mut masked {
            match byte {
                0x80.. => *byte = b'x',
                0..b' ' => *byte = b' ',
                _ => {}
            }
        }
        let tokens = tokens(&masked, body.start, scan);
        for token in tokens
            .iter()
            .filter(|token| token.sort == Sort::Symbol(b'\''))
        {
            // `B'…'`, `X'…'` and `N'…'` may all hold digits.
            masked[token.start + 2..token.end.max(token.start + 3) - 1].fill(b'1');
        }
        // Every byte is ASCII now.
        Self {
            text: String::from_utf8(masked).unwrap_or_default(),
            tokens,
        }
    }

    /// The text of a token.
    pub(super) fn str(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// Whether the token is this word (in lower case), unquoted.
    pub(super) fn is_word(&self, index: Option<usize>, word: &str) -> bool {
        index
            .and_then(|index| self.tokens.get(index))
            .is_some_and(|token| {
                token.sort == Sort::Word && self.str(token).eq_ignore_ascii_case(word)
            })
    }

    /// Whether the token is this character.
    pub(super) fn is_symbol(&self, index: Option<usize>, symbol: u8) -> bool {
        index
            .and_then(|index| self.tokens.get(index))
            .is_some_and(|token| token.sort == Sort::Symbol(symbol))
    }

    /// Blanks the targets of `ON CONFLICT (…) [WHERE …] DO`.
    ///
    /// The parser knows only plain columns there. The literals in a target must stay in the text
    /// anyway (the fidelity rules, H-08), and what is blanked cannot be reported as a value.
    pub(super) fn blank_conflict_targets(&mut self) {
        // Each target is passed over as a whole, so no byte is looked at or blanked twice.
        let mut next = 0;
        while next < self.tokens.len() {
            let (index, target) = (next, next + 2);
            next += 1;
            if !self.is_word(Some(index), "on")
                || !self.is_word(Some(index + 1), "conflict")
                || !self.is_symbol(Some(target), b'(')
            {
                continue;
            }
            let Some(end) = self.end_of_target(target) else {
                return;
            };
            next = end;
            let range = self.tokens[target].start..self.tokens[end].start;
            self.text
                .replace_range(range.clone(), &" ".repeat(range.len()));
        }
    }

    /// Makes `FOR NO KEY UPDATE` and `FOR KEY SHARE` the locks that the parser knows.
    pub(super) fn blank_key_locks(&mut self) {
        for index in 0..self.tokens.len() {
            let follow = |words: &[&str]| {
                let mut words = words.iter().zip(index..);
                words.all(|(word, index)| self.is_word(Some(index), word))
            };
            let last = if follow(&["for", "no", "key", "update"]) {
                index + 2
            } else if follow(&["for", "key", "share"]) {
                index + 1
            } else {
                continue;
            };
            let range = self.tokens[index + 1].start..self.tokens[last].end;
            self.text
                .replace_range(range.clone(), &" ".repeat(range.len()));
        }
    }

    /// The index of the `DO` that ends a conflict target.
    fn end_of_target(&self, target: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for index in target..self.tokens.len() {
            match self.tokens[index].sort {
                Sort::Symbol(b'(') => depth += 1,
                Sort::Symbol(b')') => depth = depth.checked_sub(1)?,
                _ if depth == 0 && self.is_word(Some(index), "do") => return Some(index),
                _ => {}
            }
        }
        None
    }
}

fn blank(masked: &mut [u8], range: Range<usize>) {
    masked[range].fill(b' ');
}

/// The tokens of a masked text; it lexed before, so nothing in it is unterminated.
fn tokens(text: &[u8], base: usize, scan: &Scan) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut literals = scan.literals().iter().enumerate().peekable();
    let mut start = 0;
    while start < text.len() {
        while literals
            .next_if(|(_, literal)| (literal.end as usize) <= start + base)
            .is_some()
        {}
        let (sort, end) = match KIND[text[start] as usize] {
            Kind::Space => {
                start += 1;
                continue;
            }
            Kind::Quote => {
                let literal = literals.peek().filter(|(_, found)| {
                    found.start as usize == start + base && found.class == Class::Text
                });
                match literal {
                    Some((index, found)) => (Sort::Text(*index), found.end as usize - base),
                    // The string behind UESCAPE, which the scan leaves in the text.
                    None => (Sort::Symbol(b'\''), end_of_string(text, start)),
                }
            }
            Kind::Word if lex::at(text, start + 1) == b'\'' => {
                // B'…', X'…' and N'…'; an E stands inside the mask of its literal.
                (Sort::Symbol(b'\''), end_of_string(text, start + 1))
            }
            Kind::Word => (Sort::Word, lex::word(text, start)),
            Kind::DoubleQuote => (
                Sort::Quoted,
                lex::quoted_identifier(text, start).unwrap_or(text.len()),
            ),
            Kind::Digit => {
                let end = (start..text.len()).find(|at| !lex::continues_word(text[*at]));
                (Sort::Number, end.unwrap_or(text.len()))
            }
            _ => (Sort::Symbol(text[start]), start + 1),
        };
        tokens.push(Token { start, end, sort });
        start = end;
    }
    tokens
}

fn end_of_string(text: &[u8], quote: usize) -> usize {
    lex::string(text, quote, false).map_or(text.len(), |found| found.end)
}

/// The bytes of the masked text where the parser has seen something: the mask is one line of ASCII,
/// so a column is a byte offset plus one.
pub(super) fn offsets(span: Span) -> Option<(usize, usize)> {
    let offset = |column: u64| usize::try_from(column).ok()?.checked_sub(1);
    Some((offset(span.start.column)?, offset(span.end.column)?))
}
