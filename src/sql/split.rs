//! Several statements in one text: where each of them stands.
//!
//! The server's parser knows statements by their semicolons (`stmtmulti` in `gram.y`). Those of
//! which a semicolon is a part, as of the body of a function, begin with words that no statement
//! does which can be prepared, and the first of these ends it.

use std::ops::Range;

use super::pass::{first_token, next_statement, pass};
use super::scan::Scan;
use crate::reason::Reason;

/// The most statements of a text that are told apart.
pub const MOST: usize = 1000;

/// The statements of a text for which a [run](Scan::run) of this scan has found that it is several,
/// without the semicolons between them and what stands around these. The scan is of no use until
/// the next run.
///
/// # Errors
/// Why they are not told apart: [`Reason::MultipleStatements`] if one of them begins with no word
/// that a preparable statement begins with, if they are more than [`MOST`], or if a hint among them
/// might be about any of them; or what [`Scan::run`] says of one.
pub fn statements(scan: &mut Scan, text: &[u8]) -> Result<Vec<Range<usize>>, Reason> {
    if memchr::memmem::find(text, b"/*+").is_some() {
        return Err(Reason::MultipleStatements);
    }
    let mut statements = Vec::new();
    let mut from = 0;
    while from < text.len() {
        if statements.len() == MOST {
            return Err(Reason::MultipleStatements);
        }
        let (end, next) = statement(scan, text, from)?;
        statements.push(from..end);
        from = next;
    }
    Ok(statements)
}

/// Where the statement ends that begins at `from`, and where the next begins.
fn statement(scan: &mut Scan, text: &[u8], from: usize) -> Result<(usize, usize), Reason> {
    let start = match first_token(&text[from..]) {
        Ok(start) => from + start,
        Err(Reason::NotPreparable | Reason::Cursor | Reason::Copy) => {
            return Err(Reason::MultipleStatements);
        }
        Err(reason) => return Err(reason),
    };
    let (found, underscores) = scan.found_anew();
    match pass(text, start, underscores, usize::MAX, found) {
        Ok(_) | Err(Reason::MultipleStatements) => {}
        Err(reason) => return Err(reason),
    }
    match found.semicolon {
        Some(semicolon) => Ok((semicolon, next_statement(text, semicolon)?)),
        None => Ok((text.len(), text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Dialect, ScanLimits};

    const DIALECT: Dialect = Dialect { server_major: 15 };

    fn split(text: &str) -> Result<Vec<&str>, Reason> {
        let mut scan = Scan::new(ScanLimits::default(), 0);
        assert_eq!(
            scan.run(text.as_bytes(), DIALECT),
            Err(Reason::MultipleStatements),
            "{text}"
        );
        let statements = statements(&mut scan, text.as_bytes())?;
        Ok(statements.into_iter().map(|range| &text[range]).collect())
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
    fn what_is_no_row_of_preparable_statements_is_not_taken_apart() {
        let many = "SELECT 1;".repeat(MOST + 1);
        for (text, reason) in [
            ("SELECT 1; COMMIT", Reason::MultipleStatements),
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
