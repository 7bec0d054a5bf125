//! The words of a text, for those who do not care what stands between them.

use super::lex::{self, KIND, Kind};

/// A word, or something else.
pub(super) enum Item<'a> {
    /// A word, or a quoted identifier without its quotes.
    Word(&'a [u8]),
    /// An identifier written with escapes (`U&"…"`), whose name is not decoded.
    Escaped,
    Other(u8),
    End,
    /// Something unterminated: the server will refuse the text, or we do not understand it.
    Broken,
}

/// An item, or what is skipped between items.
pub(super) enum Token<'a> {
    Item(Item<'a>),
    /// A string or a number as it is written.
    Literal(&'a [u8]),
}

/// The words of a text; strings, numbers and comments are skipped.
#[derive(Default)]
pub(super) struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The byte that the next item begins with, or NUL at the end; `None` if it is not understood.
    pub(super) fn peek(&self) -> Option<u8> {
        lex::blank(self.text, self.at).map(|at| lex::at(self.text, at))
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Whether the word returned last stands in quotes.
    pub(super) fn is_quoted(&self) -> bool {
        self.at.checked_sub(1).map(|last| lex::at(self.text, last)) == Some(b'"')
    }

    /// The next word or other character.
    #[inline]
    pub(super) fn next(&mut self) -> Item<'a> {
        loop {
            if let Token::Item(item) = self.token() {
                return item;
            }
        }
    }

    /// The next word or other character, or what is skipped before it.
    #[inline(always)]
    pub(super) fn token(&mut self) -> Token<'a> {
        let Some(start) = lex::blank(self.text, self.at) else {
            return Token::Item(Item::Broken);
        };
        let Some(&byte) = self.text.get(start) else {
            return Token::Item(Item::End);
        };
        let end = match KIND[byte as usize] {
            Kind::Word => {
                let end = lex::word(self.text, start);
                if self.text.get(start..end + 2).is_some_and(is_escape) {
                    match lex::quoted_identifier(self.text, end + 1) {
                        Some(end) => {
                            self.at = end;
                            return Token::Item(Item::Escaped);
                        }
                        None => return Token::Item(Item::Broken),
                    }
                }
                if lex::at(self.text, end) != b'\'' || end > start + 1 {
                    self.at = end;
                    return Token::Item(Item::Word(&self.text[start..end]));
                }
                let escapes = byte | 0x20 == b'e';
                lex::string(self.text, end, escapes).map(|found| found.end)
            }
            Kind::DoubleQuote => match lex::quoted_identifier(self.text, start) {
                Some(end) => {
                    self.at = end;
                    return Token::Item(Item::Word(&self.text[start + 1..end - 1]));
                }
                None => None,
            },
            Kind::Quote => lex::string(self.text, start, false).map(|found| found.end),
            Kind::Dollar if !lex::at(self.text, start + 1).is_ascii_digit() => {
                lex::dollar_string(self.text, start)
            }
            Kind::Digit => Some(lex::word(self.text, start)),
            _ => {
                self.at = start + 1;
                return Token::Item(Item::Other(byte));
            }
        };
        let Some(end) = end else {
            return Token::Item(Item::Broken);
        };
        self.at = end;
        Token::Literal(self.text.get(start..end).unwrap_or_default())
    }
}

/// Whether this is the beginning of an identifier with escapes (scan.l, `xuistart`).
const fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'u' | b'U', b'&', b'"'])
}
