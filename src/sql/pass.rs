//! The pass itself: token by token through a text, until its end or something not understood.

use super::class::{Break, COMMENT, Literal};
use super::found::Found;
use super::lex::{self, KIND, Kind};
use super::list::{self, List};
use super::literal;
use crate::reason::Reason;

/// The longest identifier that is not truncated with a notice (`NAMEDATALEN - 1`).
const MAX_IDENTIFIER: usize = 63;

/// Passes through `text` from its first token at `start`, and returns where its last token ends.
pub(super) fn pass(
    text: &[u8],
    start: usize,
    underscores: bool,
    most: usize,
    found: &mut Found,
) -> Result<usize, Reason> {
    let mut pass = Pass {
        text,
        at: start,
        end: start,
        word: start,
        prev: Prev::Operator,
        underscores,
        most,
        list: None,
        listed: 0,
        found,
    };
    pass.tokens()?;
    if pass.found.literals.len() - pass.listed > most {
        return Err(Reason::TooManyLiterals);
    }
    let end = pass.end;
    // Comments behind the last token do not belong to the body.
    while found
        .breaks
        .last()
        .is_some_and(|last| last.start as usize >= end)
    {
        found.breaks.pop();
    }
    Ok(end)
}

/// Where the statement's text begins: its first word, or a hint comment before it.
///
/// Statements that cannot be prepared are refused here, before anything else is looked at.
pub(super) fn first_token(text: &[u8]) -> Result<usize, Reason> {
    let mut at = 0;
    let mut hint = None;
    loop {
        while KIND[lex::at(text, at) as usize] == Kind::Space {
            at += 1;
        }
        match lex::comment(text, at) {
            Ok(Some(end)) if lex::is_switch(text, at, end) => return Err(Reason::SwitchedOff),
            Ok(Some(end)) => {
                if hint.is_none() && lex::is_hint(text, at) {
                    hint = Some(at);
                }
                at = end;
            }
            Ok(None) => break,
            Err(()) => return Err(Reason::Lexical),
        }
    }
    match text.get(at) {
        None => Err(Reason::Empty),
        Some(b';') => Err(after_semicolon(text, at).err().unwrap_or(Reason::Empty)),
        Some(b'(') => Ok(hint.unwrap_or(at)),
        Some(_) if is_preparable(&text[at..]) => Ok(hint.unwrap_or(at)),
        Some(_) => Err(refusal(&text[at..])),
    }
}

/// What a text is that begins with none of those words.
fn refusal(text: &[u8]) -> Reason {
    let is = |word: &&[u8]| text[..letters(text)].eq_ignore_ascii_case(word);
    let cursor: [&[u8]; 4] = [b"declare", b"fetch", b"move", b"close"];
    if cursor.iter().any(is) {
        Reason::Cursor
    } else if is(&&b"copy"[..]) {
        Reason::Copy
    } else {
        Reason::NotPreparable
    }
}

/// The length of the word that the text begins with, if it is not longer than those that matter.
fn letters(text: &[u8]) -> usize {
    text.iter()
        .take(8)
        .take_while(|byte| lex::continues_word(**byte))
        .count()
}

/// Whether the text begins with one of the words that begin a preparable statement.
fn is_preparable(text: &[u8]) -> bool {
    let letters = letters(text);
    let words: &[&[u8]] = match letters {
        4 => &[b"with"],
        5 => &[b"merge", b"table"],
        6 => &[b"select", b"insert", b"update", b"delete", b"values"],
        _ => return false,
    };
    words
        .iter()
        .any(|word| text[..letters].eq_ignore_ascii_case(word))
}

/// Whether nothing but semicolons, white space and comments follows.
fn after_semicolon(text: &[u8], semicolon: usize) -> Result<(), Reason> {
    if next_statement(text, semicolon)? == text.len() {
        Ok(())
    } else {
        Err(Reason::MultipleStatements)
    }
}

/// Where the statement behind this semicolon begins, or the text ends: semicolons, white space and
/// comments are no statements.
pub(super) fn next_statement(text: &[u8], semicolon: usize) -> Result<usize, Reason> {
    let mut at = semicolon;
    while lex::at(text, at) == b';' {
        at = blank(text, at + 1)?;
    }
    Ok(at)
}

/// The first byte at or after `from` that belongs to neither white space nor a comment.
fn blank(text: &[u8], from: usize) -> Result<usize, Reason> {
    let mut at = from;
    loop {
        while KIND[lex::at(text, at) as usize] == Kind::Space {
            at += 1;
        }
        match lex::comment(text, at) {
            Ok(Some(end)) if lex::is_switch(text, at, end) => return Err(Reason::SwitchedOff),
            Ok(Some(end)) => at = end,
            Ok(None) => return Ok(at),
            Err(()) => return Err(Reason::Lexical),
        }
    }
}

/// What the token before says about a minus or a number behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prev {
    /// An operator, `(`, `[`, `,` or the start: a minus is unary.
    Operator,
    /// The end of an operand: a minus is binary.
    Operand,
    /// An identifier or keyword; which, is only looked up before a minus.
    Word,
    /// A dot: an identifier behind it is a column, an operator is a name's part.
    Dot,
    /// A unary minus.
    Minus,
    /// Something before a number that may or may not fold: the number stays in the text.
    Doubt,
    /// Parentheses behind a minus, which folding looks through (`-(5)`).
    DoubtOpen,
}

struct Pass<'a> {
    text: &'a [u8],
    at: usize,
    /// One past the last token.
    end: usize,
    /// Where the word or the minus that `prev` speaks of begins.
    word: usize,
    prev: Prev,
    underscores: bool,
    /// The most literals, and the most comments.
    most: usize,
    /// Behind `IN (`, with nothing in parentheses since: where that ends, and the literals before.
    list: Option<(usize, usize)>,
    /// Literals that do not count, because they are in a list with others.
    listed: usize,
    found: &'a mut Found,
}

impl Pass<'_> {
    fn tokens(&mut self) -> Result<(), Reason> {
        while let Some(&byte) = self.text.get(self.at) {
            match KIND[byte as usize] {
                Kind::Space => {
                    self.at += 1;
                    continue;
                }
                Kind::Word => self.word(byte)?,
                Kind::Operator => {
                    if self.comment()? {
                        continue;
                    }
                    self.operator()?;
                }
                Kind::Comma => self.single(Prev::Operator),
                Kind::Open => self.open(byte)?,
                Kind::Close => self.close(byte),
                Kind::Quote => self.string(self.at, false)?,
                Kind::Digit => self.number()?,
                Kind::Dot if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                    self.number()?;
                }
                Kind::Dot => self.dot(),
                Kind::Colon => self.colon(),
                Kind::DoubleQuote => self.quoted_identifier()?,
                Kind::Dollar => self.dollar()?,
                Kind::Semicolon => {
                    self.found.semicolon = Some(self.at);
                    return after_semicolon(self.text, self.at);
                }
                Kind::Other => return Err(Reason::Lexical),
            }
            self.end = self.at;
        }
        Ok(())
    }

    fn single(&mut self, prev: Prev) {
        self.at += 1;
        self.prev = prev;
    }

    fn dot(&mut self) {
        // `..` is one token, or `1..2` would hold the number `.2`.
        let double = lex::at(self.text, self.at + 1) == b'.';
        self.at += 1 + usize::from(double);
        self.prev = if double { Prev::Doubt } else { Prev::Dot };
    }

    fn word(&mut self, first: u8) -> Result<(), Reason> {
        let start = self.at;
        let next = lex::at(self.text, start + 1);
        if matches!(next, b'\'' | b'&') {
            match (first | 0x20, next) {
                (b'e', b'\'') => return self.string(start + 1, true),
                // Bit strings and national strings have types of their own: text of the shape.
                (b'b' | b'x' | b'n', b'\'') => return self.inline_string(start + 1, false),
                // What `U&'…'` says depends on a UESCAPE behind it.
                (b'u', b'&') if matches!(lex::at(self.text, start + 2), b'\'' | b'"') => {
                    return Err(Reason::Lexical);
                }
                _ => {}
            }
        }
        self.at = lex::word(self.text, start);
        if self.at - start > MAX_IDENTIFIER {
            return Err(Reason::LongIdentifier);
        }
        self.prev = if self.prev == Prev::Dot {
            Prev::Operand
        } else {
            Prev::Word
        };
        self.word = start;
        Ok(())
    }

    fn quoted_identifier(&mut self) -> Result<(), Reason> {
        let end = lex::quoted_identifier(self.text, self.at).ok_or(Reason::Lexical)?;
        if end - self.at - 2 > MAX_IDENTIFIER {
            return Err(Reason::LongIdentifier);
        }
        self.at = end;
        self.prev = Prev::Operand;
        Ok(())
    }

    /// Steps over a comment. Returns whether there was one.
    #[inline]
    fn comment(&mut self) -> Result<bool, Reason> {
        let Some(end) = lex::comment(self.text, self.at).map_err(|()| Reason::Lexical)? else {
            return Ok(false);
        };
        let start = self.at;
        if lex::is_switch(self.text, start, end) {
            return Err(Reason::SwitchedOff);
        }
        self.at = end;
        if self.prev == Prev::Minus {
            self.prev = Prev::Doubt;
        }
        if lex::is_hint(self.text, start) {
            self.found.hints.push(start as u32..end as u32);
            self.end = end;
            return Ok(true);
        }
        if self.found.breaks.len() - self.found.literals.len() >= self.most {
            return Err(Reason::TooManyLiterals);
        }
        self.found.breaks.push(Break {
            start: start as u32,
            end: end as u32,
            kind: COMMENT,
        });
        Ok(true)
    }

    fn operator(&mut self) -> Result<(), Reason> {
        let start = self.at;
        self.at = lex::operator(self.text, start).ok_or(Reason::Lexical)?;
        self.prev = match &self.text[start..self.at] {
            b"-" => match self.prev {
                Prev::Operator => Prev::Minus,
                Prev::Operand => Prev::Operator,
                Prev::Word => before_minus(&self.text[self.word..lex::word(self.text, self.word)]),
                Prev::Dot | Prev::Minus | Prev::Doubt | Prev::DoubtOpen => Prev::Doubt,
            },
            // `t.*` is a whole row; so is a lone `*`, but no minus can follow that.
            b"*" if self.prev == Prev::Dot => Prev::Operand,
            _ => Prev::Operator,
        };
        self.word = start;
        Ok(())
    }

    fn open(&mut self, byte: u8) -> Result<(), Reason> {
        let word = self.prev == Prev::Word && byte == b'(';
        if word && self.word_is(b"operator") {
            // `OPERATOR(pg_catalog.-)`: the parenthesis closes no operand.
            return Err(Reason::Lexical);
        }
        let is_in = word && self.is_in();
        let doubtful = matches!(self.prev, Prev::Minus | Prev::Doubt | Prev::DoubtOpen);
        self.single(if doubtful && byte == b'(' {
            Prev::DoubtOpen
        } else {
            Prev::Operator
        });
        self.list = is_in.then_some((self.at, self.found.literals.len()));
        Ok(())
    }

    /// Whether nothing but white space stands between the word IN and here.
    fn is_in(&self) -> bool {
        let (word, rest) = self.text[self.word..self.at].split_at(2.min(self.at - self.word));
        let mut rest = rest.iter();
        word.eq_ignore_ascii_case(b"in") && rest.all(|byte| KIND[*byte as usize] == Kind::Space)
    }

    fn close(&mut self, byte: u8) {
        if let Some((open, first)) = self.list.take()
            && byte == b')'
            && list::is_list(self.text, open, &self.found.literals[first..], self.at)
        {
            let last = self.found.literals.len();
            let elements = first..last;
            self.listed += elements.len() - 1;
            // Nothing but its literals interrupts a list.
            let first_break = self.found.breaks.len() - elements.len();
            self.found.lists.push(List {
                elements,
                first_break,
            });
        }
        self.single(Prev::Operand);
    }

    fn colon(&mut self) {
        let double = matches!(lex::at(self.text, self.at + 1), b':' | b'=');
        self.at += 1 + usize::from(double);
        // A slice's bound may have a sign; behind a cast stands a type.
        self.prev = if double { Prev::Doubt } else { Prev::Operator };
    }

    fn dollar(&mut self) -> Result<(), Reason> {
        if lex::at(self.text, self.at + 1).is_ascii_digit() {
            return Err(Reason::HasParameters);
        }
        let literal = literal::dollar_string(self.text, self.at).ok_or(Reason::Lexical)?;
        self.literal(literal)
    }

    /// A string constant whose quote is at `quote`; an `E` may stand before it.
    fn string(&mut self, quote: usize, escapes: bool) -> Result<(), Reason> {
        if self.prev == Prev::Word && self.word_is(b"uescape") {
            return self.inline_string(quote, escapes);
        }
        let literal = literal::string(self.text, self.at, quote, escapes).ok_or(Reason::Lexical)?;
        self.literal(literal)
    }

    fn inline_string(&mut self, quote: usize, escapes: bool) -> Result<(), Reason> {
        self.at = lex::string(self.text, quote, escapes)
            .ok_or(Reason::Lexical)?
            .end;
        self.prev = Prev::Operand;
        Ok(())
    }

    fn number(&mut self) -> Result<(), Reason> {
        let number = lex::number(self.text, self.at, self.underscores).ok_or(Reason::Lexical)?;
        let (start, liftable) = match self.prev {
            Prev::Minus => {
                let folds = literal::folds(self.text, number.end).ok_or(Reason::Lexical)?;
                (self.word, folds)
            }
            Prev::Doubt | Prev::DoubtOpen => (self.at, false),
            _ => (self.at, true),
        };
        if !liftable {
            self.at = number.end;
            self.prev = Prev::Operand;
            return Ok(());
        }
        self.literal(literal::number(start, self.at, number))
    }

    fn word_is(&self, lower: &[u8]) -> bool {
        self.text[self.word..lex::word(self.text, self.word)].eq_ignore_ascii_case(lower)
    }

    #[inline]
    fn literal(&mut self, literal: Literal) -> Result<(), Reason> {
        if self.found.literals.len() - self.listed >= self.most && self.list.is_none() {
            return Err(Reason::TooManyLiterals);
        }
        self.found.push(literal);
        self.at = literal.end as usize;
        self.prev = Prev::Operand;
        Ok(())
    }
}

/// What a minus is behind this word.
///
/// Behind a reserved word that cannot end an expression it is unary, behind a name it is binary.
/// Words that may be both are doubted; the parser checks again that a folded minus is unary.
fn before_minus(word: &[u8]) -> Prev {
    const UNARY: &str = "\
        select where and or not between then else when in like ilike limit offset returning on \
        having case distinct all any some from using for placing to symmetric asymmetric is \
        union except intersect";
    const DOUBT: &str = "\
        by set values escape rows range groups zone local operator similar return first next \
        fetch with as collate value default array row check variadic exists do into only path \
        passing content document";
    let is = |list: &str| {
        list.split(' ')
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    };
    if is(UNARY) {
        Prev::Minus
    } else if is(DOUBT) {
        Prev::Doubt
    } else {
        Prev::Operator
    }
}
