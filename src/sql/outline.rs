//! What a text of any kind looks like without its values, to be shown to people.
//!
//! The shape that queries are remembered by (`shape`) keeps what cannot become an argument: a bit
//! string, a hint, everything in a text that is not understood. This shows none of it. It is for
//! those who look for what is not converted, who may not be those who may see the data.
//!
//! Invariant: nothing out of a constant or a comment is in the outcome. Where a constant ends
//! depends on what the server was told, and an application that does not quote rightly puts its
//! values elsewhere. So of a text that is not understood to its last byte, or might be understood
//! otherwise, nothing is shown from its first quote or comment on.

use super::lex::{self, KIND, Kind};

/// The bytes of the outcome, but for the dots that say that there is more.
pub const MAX_BYTES: usize = 160;

/// The bytes of a text that are looked at.
const MAX_LOOK: usize = 64 * 1024;

/// The longest name that is shown: longer ones are none (`NAMEDATALEN - 1`).
const MAX_NAME: usize = 63;

/// Says that there is more.
const MORE: &str = "...";

/// Words that begin statements whose words are keywords and names. In others a word may be a value:
/// `SET app.user TO alice`.
const PLAIN: [&[u8]; 9] = [
    b"select", b"insert", b"update", b"delete", b"merge", b"values", b"with", b"table", b"explain",
];

/// Words that begin statements around one of those.
const AROUND: [&[u8]; 4] = [b"declare", b"prepare", b"copy", b"create"];

/// Words of other statements behind which values stand, or names that many clients have made up
/// each for itself.
const BEFORE_VALUES: [&[u8]; 5] = [b"to", b"role", b"authorization", b"zone", b"names"];

/// `text` with `?` for each constant, `...` for what follows the first constant in a list of them,
/// or the first row behind VALUES if others look like it, and neither comments nor line breaks. It
/// is never longer than [`MAX_BYTES`] and three dots.
#[must_use]
pub fn outline(text: &[u8], out: String) -> String {
    outline_within(text, out, MAX_BYTES)
}

/// The same, no longer than `most` bytes and three dots.
#[must_use]
pub fn outline_within(text: &[u8], mut out: String, most: usize) -> String {
    out.clear();
    out.reserve(most.min(MAX_BYTES) + MAX_NAME);
    let seen = text.get(..MAX_LOOK).unwrap_or(text);
    let is_sure = seen.len() == text.len() && std::str::from_utf8(text).is_ok();
    let mut outline = Outline {
        text: seen,
        at: 0,
        out,
        most,
        space: false,
        comma: false,
        last: Last::Opening,
        statement: Statement::Beginning,
        hides: false,
        is_sure,
        certain: None,
        rows: Rows::default(),
    };
    if outline.tokens().is_none() {
        outline.is_sure = false;
        outline.doubt();
    }
    outline.finish()
}

/// What stands before the next token, but for commas behind constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Something that an operand follows.
    Opening,
    /// A constant.
    Constant,
    /// Several with commas between.
    Constants,
    /// Anything else.
    Operand,
}

/// What the words of a statement may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statement {
    /// The next one decides.
    Beginning,
    /// Keywords and names.
    Plain,
    /// Also values, as far as the next that begins with one of the plain words.
    Around,
    /// Also values.
    Other,
}

/// The rows behind VALUES.
#[derive(Debug, Clone, Copy, Default)]
struct Rows {
    /// How many parentheses are open in the row that is read.
    depth: usize,
    /// Where that row begins in the outcome.
    begin: usize,
    /// Where the first one begins and ends, and where what is shown for all of them ends.
    first: Option<(usize, usize, usize)>,
    /// What comes next belongs to them: a row, or behind a row a comma.
    expects: bool,
}

#[derive(Debug)]
struct Outline<'t> {
    text: &'t [u8],
    at: usize,
    out: String,
    /// The bytes of the outcome, but for the dots.
    most: usize,
    /// White space, or a comment, comes before the next token.
    space: bool,
    /// A comma behind a constant is still to be shown, unless another constant follows.
    comma: bool,
    last: Last,
    statement: Statement,
    /// The words of the rest of the statement may be values.
    hides: bool,
    /// The server reads the text as it is read here.
    is_sure: bool,
    /// How much of the outcome comes before the first quote or comment.
    certain: Option<usize>,
    rows: Rows,
}

impl Outline<'_> {
    /// Reads to the end; `None` if something is not understood.
    fn tokens(&mut self) -> Option<()> {
        while let Some(&byte) = self.text.get(self.at) {
            match KIND[byte as usize] {
                Kind::Space => {
                    self.space = true;
                    self.at += 1;
                }
                Kind::Word => self.word(byte)?,
                Kind::Operator => self.operator()?,
                Kind::Comma => self.comma(),
                Kind::Open => self.open(),
                Kind::Close => self.close(),
                Kind::Colon => self.mark(Last::Opening),
                Kind::Quote => self.string(self.at, false)?,
                Kind::Digit => self.number()?,
                Kind::Dot if self.next().is_ascii_digit() => self.number()?,
                Kind::Dot => self.mark(Last::Operand),
                Kind::DoubleQuote => self.quoted_name()?,
                Kind::Dollar => self.dollar()?,
                Kind::Semicolon => {
                    self.mark(Last::Opening);
                    self.statement = Statement::Beginning;
                    self.hides = false;
                }
                Kind::Other => return None,
            }
        }
        Some(())
    }

    fn next(&self) -> u8 {
        lex::at(self.text, self.at + 1)
    }

    fn has_values(&self) -> bool {
        matches!(self.statement, Statement::Around | Statement::Other)
    }

    /// What comes now may be read otherwise by the server, or was meant otherwise.
    fn doubt(&mut self) {
        self.certain.get_or_insert(self.out.len());
    }

    /// Shows a token that is no constant.
    fn show(&mut self, token: &str, last: Last) {
        self.separate();
        self.push(token);
        self.last = last;
    }

    /// What stands in front of the next token.
    fn separate(&mut self) {
        if self.rows.depth == 0 {
            self.rows = Rows::default();
        }
        if std::mem::take(&mut self.comma) {
            self.push(",");
        }
        if std::mem::take(&mut self.space) && !self.out.is_empty() {
            self.push(" ");
        }
    }

    fn push(&mut self, piece: &str) {
        // What is behind the bound is only read to be sure of what is before it.
        if self.out.len() <= self.most {
            self.out.push_str(piece);
        }
    }

    /// Shows a constant that ends at `end`, unless it stands in a list behind another.
    fn constant(&mut self, end: usize) {
        self.at = end;
        if !self.comma {
            self.show("?", Last::Constant);
            return;
        }
        (self.comma, self.space) = (false, false);
        if self.last == Last::Constant {
            self.push(", ");
            self.push(MORE);
        }
        self.last = Last::Constants;
    }

    /// Shows the one byte of a token.
    fn mark(&mut self, last: Last) {
        let byte = [lex::at(self.text, self.at)];
        self.at += 1;
        self.show(std::str::from_utf8(&byte).unwrap_or_default(), last);
    }

    fn open(&mut self) {
        let rows = self.rows;
        self.separate();
        self.rows = match rows.depth {
            0 if rows.expects => Rows {
                depth: 1,
                begin: self.out.len(),
                expects: false,
                ..rows
            },
            0 => Rows::default(),
            depth => Rows {
                depth: depth + 1,
                ..rows
            },
        };
        self.mark(Last::Opening);
    }

    fn close(&mut self) {
        self.mark(Last::Operand);
        match self.rows.depth {
            0 => {}
            1 => self.row(),
            _ => self.rows.depth -= 1,
        }
    }

    /// A row has been shown. If it looks like the first one, it is left out again.
    fn row(&mut self) {
        let (begin, end) = (self.rows.begin, self.out.len());
        self.rows.depth = 0;
        let Some((first, first_end, shown)) = self.rows.first else {
            self.rows.first = Some((begin, end, end));
            return;
        };
        if self.out.get(first..first_end) != self.out.get(begin..end) {
            self.rows = Rows::default();
            return;
        }
        self.out.truncate(shown);
        self.certain = self.certain.map(|certain| certain.min(shown));
        if shown == first_end {
            self.out.push_str(", ");
            self.out.push_str(MORE);
            self.rows.first = Some((first, first_end, self.out.len()));
        }
    }

    fn comma(&mut self) {
        if matches!(self.last, Last::Constant | Last::Constants) && !self.comma {
            (self.comma, self.space) = (true, false);
            self.at += 1;
        } else {
            let rows = self.rows;
            self.mark(Last::Opening);
            if rows.depth == 0 && rows.first.is_some() {
                self.rows = Rows {
                    expects: true,
                    ..rows
                };
            }
        }
    }

    fn operator(&mut self) -> Option<()> {
        match lex::comment(self.text, self.at) {
            Ok(Some(end)) => {
                self.doubt();
                (self.at, self.space) = (end, true);
                return Some(());
            }
            Ok(None) => {}
            Err(()) => return None,
        }
        let end = lex::operator(self.text, self.at)?;
        let operator = &self.text[self.at..end];
        let is_sign = matches!(operator, b"-" | b"+");
        let opens = self.comma || self.last == Last::Opening;
        self.at = end;
        if is_sign && opens && lex::at(self.text, end).is_ascii_digit() {
            return Some(());
        }
        self.hides |= self.has_values() && operator == b"=";
        let operator = std::str::from_utf8(operator).ok()?;
        self.show(operator, Last::Opening);
        Some(())
    }

    fn string(&mut self, quote: usize, escapes: bool) -> Option<()> {
        self.doubt();
        let end = lex::string(self.text, quote, escapes)?.end;
        // Without `standard_conforming_strings` it would not end there.
        let quoted = &self.text[quote..end];
        self.is_sure &= escapes || memchr::memmem::find(quoted, b"\\'").is_none();
        self.constant(end);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let end = lex::number(self.text, self.at, true)?.end;
        self.constant(end);
        Some(())
    }

    fn dollar(&mut self) -> Option<()> {
        if self.next().is_ascii_digit() {
            let digits = self.text[self.at + 1..].iter();
            self.at += 1 + digits.take_while(|byte| byte.is_ascii_digit()).count();
            self.show("$n", Last::Operand);
            return Some(());
        }
        self.doubt();
        let end = lex::dollar_string(self.text, self.at)?;
        self.constant(end);
        Some(())
    }

    fn quoted_name(&mut self) -> Option<()> {
        self.doubt();
        let end = lex::quoted_identifier(self.text, self.at)?;
        let name = &self.text[self.at + 1..end - 1];
        self.at = end;
        // What holds anything else was perhaps meant to be a string.
        let is_name = name.iter().all(|byte| lex::continues_word(*byte));
        match is_name && name.len() <= MAX_NAME && !(self.hides && self.has_values()) {
            true => self.show_legible("\"", name),
            false => self.show("\"?\"", Last::Operand),
        }
        Some(())
    }

    fn word(&mut self, first: u8) -> Option<()> {
        let end = lex::word(self.text, self.at);
        // `e'…'`, `b'…'`, `x'…'` and `n'…'` are one token each.
        if end == self.at + 1 && self.next() == b'\'' {
            match first | 0x20 {
                b'e' => return self.string(end, true),
                b'b' | b'x' | b'n' => return self.string(end, false),
                _ => {}
            }
        }
        let word = &self.text[self.at..end];
        self.at = end;
        let is_one_of = |words: &[&[u8]]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
        self.statement = match self.statement {
            Statement::Beginning | Statement::Around if is_one_of(&PLAIN) => Statement::Plain,
            Statement::Beginning if is_one_of(&AROUND) => Statement::Around,
            Statement::Beginning => Statement::Other,
            known => known,
        };
        let hides = self.hides && self.has_values();
        let opens = self.comma || self.last == Last::Opening;
        let is_constant = opens && is_one_of(&[b"null", b"true", b"false"]);
        if hides && self.last == Last::Constant && !self.comma {
            return Some(());
        }
        if hides || is_constant || word.len() > MAX_NAME {
            self.constant(end);
            return Some(());
        }
        self.hides |= self.has_values() && is_one_of(&BEFORE_VALUES);
        match std::str::from_utf8(word) {
            // Nearly every word: nothing in it is to be replaced.
            Ok(plain) if plain.is_ascii() && !self.has_values() => self.show(plain, Last::Operand),
            _ => self.show_legible("", word),
        }
        self.rows.expects = self.rows.depth == 0 && is_one_of(&[b"values"]);
        Some(())
    }

    /// Shows a name without what a terminal could take for an order; without numbers in it, too,
    /// where these tell what clients have made up.
    fn show_legible(&mut self, quote: &str, name: &[u8]) {
        self.separate();
        self.last = Last::Operand;
        if self.out.len() > self.most {
            return;
        }
        let is_plain = !self.has_values();
        self.out.push_str(quote);
        let start = self.out.len();
        for c in String::from_utf8_lossy(name).chars() {
            match c {
                '0'..='9' if !is_plain && self.out[start..].ends_with('?') => {}
                '0'..='9' if !is_plain => self.out.push('?'),
                '_' | '$' => self.out.push(c),
                c if c.is_alphanumeric() => self.out.push(c),
                _ => self.out.push('?'),
            }
        }
        self.out.push_str(quote);
    }

    fn finish(mut self) -> String {
        if !self.is_sure
            && let Some(certain) = self.certain
        {
            self.out.truncate(certain);
            self.out.truncate(self.out.trim_end().len());
            self.out.push(' ');
            self.out.push_str(MORE);
        }
        if self.out.len() > self.most {
            let fits = |at: &usize| self.out.is_char_boundary(*at);
            let end = (0..=self.most).rev().find(fits);
            self.out.truncate(end.unwrap_or_default());
            self.out.push_str(MORE);
        }
        self.out
    }
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
