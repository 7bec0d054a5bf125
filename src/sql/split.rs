//! Several statements in one text: where each of them stands.
//!
//! The server's parser knows statements by their semicolons (`stmtmulti` in `gram.y`). Those of
//! which a semicolon is a part, as of the body of a function, begin with words that no statement
//! does which can be prepared, and the first of these ends it.

use std::ops::Range;

use super::moves::{self, Move};
use super::pass::{first_token, next_statement, pass};
use super::scan::Scan;
use crate::reason::Reason;

/// The most statements of a text that are told apart.
pub const MOST: usize = 1000;

/// One of the statements of a text, without the semicolons between them and what stands around
/// these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands in the text.
    pub place: Range<usize>,
    /// What it says of the transaction, if it is about that.
    pub control: Option<Control>,
}

impl Piece {
    /// A text that is one statement.
    #[must_use]
    pub const fn alone(text: &[u8]) -> Self {
        Self {
            place: 0..text.len(),
            control: None,
        }
    }
}

/// A statement about the transaction that it stands in, of which everything is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// SAVEPOINT or RELEASE.
    Marks,
    /// COMMIT or END, without a chain.
    Commits,
}

/// The statements of a text for which a [run](Scan::run) of this scan has found that it is several,
/// or that [`begins_with_mark`]. The scan is of no use until the next run.
///
/// # Errors
/// Why they are not told apart: [`Reason::MultipleStatements`] if one of them is no [`Control`] and
/// begins with no word that a preparable statement begins with, if they are more than [`MOST`], or
/// if a hint among them might be about any of them; or what [`Scan::run`] says of one.
pub fn statements(scan: &mut Scan, text: &[u8]) -> Result<Vec<Piece>, Reason> {
    if memchr::memmem::find(text, b"/*+").is_some() {
        return Err(Reason::MultipleStatements);
    }
    let mut statements = Vec::new();
    let mut from = 0;
    while from < text.len() {
        if statements.len() == MOST {
            return Err(Reason::MultipleStatements);
        }
        let (piece, next) = statement(scan, text, from)?;
        statements.push(piece);
        from = next;
    }
    Ok(statements)
}

/// Whether the text may be several statements the first of which is SAVEPOINT or RELEASE.
#[must_use]
pub fn begins_with_mark(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let is = |word: &[u8]| {
        let first = text.get(..word.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(word))
    };
    let is_mark = is(b"savepoint") || is(b"release");
    is_mark && memchr::memchr(b';', text).is_some_and(|at| at + 1 < text.len())
}

/// Whether this, behind a BEGIN and its semicolon, may be statements that go with it.
#[must_use]
pub fn may_follow_begin(text: &[u8]) -> bool {
    first_token(text).is_ok() || begins_with_mark(text)
}

/// The statement that begins at `from`, and where the next begins.
fn statement(scan: &mut Scan, text: &[u8], from: usize) -> Result<(Piece, usize), Reason> {
    let start = match first_token(&text[from..]) {
        Ok(start) => from + start,
        Err(Reason::NotPreparable) => return control(text, from),
        Err(Reason::Cursor | Reason::Copy) => return Err(Reason::MultipleStatements),
        Err(reason) => return Err(reason),
    };
    let (found, underscores) = scan.found_anew();
    match pass(text, start, underscores, usize::MAX, found) {
        Ok(_) | Err(Reason::MultipleStatements) => {}
        Err(reason) => return Err(reason),
    }
    let (end, next) = match found.semicolon {
        Some(semicolon) => (semicolon, next_statement(text, semicolon)?),
        None => (text.len(), text.len()),
    };
    let place = from..end;
    let control = None;
    Ok((Piece { place, control }, next))
}

/// The same for one that cannot be prepared. A semicolon in a name or a comment would leave
/// something that does not end, which is not read.
fn control(text: &[u8], from: usize) -> Result<(Piece, usize), Reason> {
    let found = memchr::memchr(b';', &text[from..]);
    let end = found.map_or(text.len(), |at| from + at);
    let said = &text[from..end];
    // A comment may say more.
    let may_comment = memchr::memchr2(b'/', b'-', said).is_some();
    let control = match moves::read(said) {
        _ if may_comment => return Err(Reason::MultipleStatements),
        Some(Move::Savepoint(_) | Move::Release(_)) => Control::Marks,
        Some(Move::Commit) => Control::Commits,
        _ => return Err(Reason::MultipleStatements),
    };
    let next = match found {
        Some(_) => next_statement(text, end)?,
        None => end,
    };
    let place = from..end;
    let control = Some(control);
    Ok((Piece { place, control }, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Dialect, ScanLimits};

    const DIALECT: Dialect = Dialect { server_major: 15 };

    fn split(text: &str) -> Result<Vec<&str>, Reason> {
        let mut scan = Scan::new(ScanLimits::default(), 0);
        let is_marked = begins_with_mark(text.as_bytes());
        let expected = match is_marked {
            true => Reason::NotPreparable,
            false => Reason::MultipleStatements,
        };
        assert_eq!(scan.run(text.as_bytes(), DIALECT), Err(expected), "{text}");
        let statements = statements(&mut scan, text.as_bytes())?;
        let mut parts = Vec::new();
        for Piece { place, control } in statements {
            parts.extend(control.map(|control| match control {
                Control::Marks => "marks",
                Control::Commits => "commits",
            }));
            parts.push(&text[place]);
        }
        Ok(parts)
    }

    #[test]
    fn statements_are_told_apart_by_their_semicolons() {
        for (text, expected) in [
            ("SELECT 1;SELECT 2", &["SELECT 1", "SELECT 2"][..]),
            (
                " SELECT ';' ;; -- a; b\n;\n UPDATE t SET a = E'b\\\\;' ; ",
                &[" SELECT ';' ", "UPDATE t SET a = E'b\\\\;' "],
            ),
            (
                "/* a */ SELECT 1 /* ; */ ; /* c */ SELECT $$;$$, \";\"; VALUES (1); -- e",
                &[
                    "/* a */ SELECT 1 /* ; */ ",
                    "SELECT $$;$$, \";\"",
                    "VALUES (1)",
                ],
            ),
        ] {
            assert_eq!(split(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn savepoints_and_the_end_of_a_transaction_may_stand_among_them() {
        for (text, expected) in [
            (
                "SAVEPOINT a;SELECT 1;RELEASE a",
                &["marks", "SAVEPOINT a", "SELECT 1", "marks", "RELEASE a"][..],
            ),
            (
                " release savepoint \"a\" ; SELECT 1; end work;",
                &[
                    "marks",
                    " release savepoint \"a\" ",
                    "SELECT 1",
                    "commits",
                    "end work",
                ],
            ),
            (
                "SELECT 1; COMMIT; SELECT 2",
                &["SELECT 1", "commits", "COMMIT", "SELECT 2"],
            ),
        ] {
            assert_eq!(split(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "SELECT 1; COMMIT AND CHAIN",
            "SELECT 1; COMMIT PREPARED 'a'",
            "SELECT 1; ROLLBACK",
            "SAVEPOINT a; ROLLBACK TO a; SELECT 1",
            "SAVEPOINT /* a; b */ a; SELECT 1",
            "SAVEPOINT \"a;b\"; SELECT 1",
            "SAVEPOINT a -- b\n; SELECT 1",
            "SAVEPOINT a b; SELECT 1",
            "SAVEPOINT; SELECT 1",
            "RELEASED; SELECT 1",
        ] {
            assert_eq!(split(text), Err(Reason::MultipleStatements), "{text}");
        }
        for alone in ["SAVEPOINT a", "SAVEPOINT a ; ", "SELECT 1; SAVEPOINT a"] {
            assert!(!begins_with_mark(alone.as_bytes()), "{alone}");
        }
    }

    #[test]
    fn what_is_no_row_of_preparable_statements_is_not_taken_apart() {
        let many = "SELECT 1;".repeat(MOST + 1);
        for (text, reason) in [
            ("SELECT 1; BEGIN", Reason::MultipleStatements),
            ("SELECT 1; FETCH c", Reason::MultipleStatements),
            ("SELECT 1; COPY t FROM stdin", Reason::MultipleStatements),
            ("SELECT 1; /*+ a */ SELECT 2", Reason::MultipleStatements),
            ("/*+ a */ SELECT 1; SELECT 2", Reason::MultipleStatements),
            (&many, Reason::MultipleStatements),
            ("SELECT 1; SELECT 'a", Reason::Lexical),
            (
                "SELECT 1; SELECT 2 /* pgautoprep: off */",
                Reason::SwitchedOff,
            ),
        ] {
            assert_eq!(split(text), Err(reason), "{text}");
        }
    }
}
