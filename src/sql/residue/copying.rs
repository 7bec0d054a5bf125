//! COPY between the client and a table, or from a query to the client.
//!
//! Rows that come are written as those of an INSERT are, by the same triggers, defaults, checks and
//! indexes, but by no rule (`CopyFrom` in `copyfrom.c`), and those that go are read as by a SELECT.
//! What has other options, a condition or a file is not read here; nor is what comes in binary
//! form, which the types of columns read by functions that INSERT does not call.

use super::is_in;
use super::passing::{expect, word};
use crate::sql::words::{Item, Token, Words};

/// What is copied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copy<'a> {
    /// The table, maybe with its columns, or the query in its parentheses.
    pub(super) what: &'a [u8],
    pub(super) is_query: bool,
    /// The rows come from the client.
    pub(super) writes: bool,
}

/// What the text copies, if it does nothing else.
pub(super) fn read(text: &[u8]) -> Option<Copy<'_>> {
    let mut words = Words::new(text);
    expect(&mut words, "copy")?;
    let rest = words.rest();
    let is_query = words.peek() == Some(b'(');
    if !is_query {
        word(&mut words)?;
        while words.peek() == Some(b'.') {
            words.next();
            word(&mut words)?;
        }
    }
    if words.peek() == Some(b'(') {
        reads_parentheses(&mut words)?;
    }
    let what = &rest[..rest.len() - words.rest().len()];
    let direction = word(&mut words).filter(|_| !words.is_quoted())?;
    let writes = is_in(&["from"], direction) && !is_query;
    match writes {
        true => expect(&mut words, "stdin")?,
        false if is_in(&["to"], direction) => expect(&mut words, "stdout")?,
        false => return None,
    }
    reads_options(&mut words)?;
    Some(Copy {
        what,
        is_query,
        writes,
    })
}

/// Reads what stands in parentheses, which are next.
fn reads_parentheses(words: &mut Words<'_>) -> Option<()> {
    let mut depth = 0_usize;
    loop {
        match words.token() {
            Token::Item(Item::Other(b'(')) => depth += 1,
            Token::Item(Item::Other(b')')) => depth -= 1,
            Token::Item(Item::Other(b';' | 0) | Item::End | Item::Escaped | Item::Broken) => {
                return None;
            }
            Token::Item(Item::Word(_) | Item::Other(_)) | Token::Literal(_) => {}
        }
        if depth == 0 {
            return Some(());
        }
    }
}

/// Reads options of either form, and the end of the text.
fn reads_options(words: &mut Words<'_>) -> Option<()> {
    let mut depth = 0_usize;
    loop {
        match words.token() {
            Token::Item(Item::Other(b'(')) => depth += 1,
            Token::Item(Item::Other(b')')) => depth = depth.checked_sub(1)?,
            // The names of columns.
            Token::Item(Item::Word(_)) if depth > 1 => {}
            Token::Item(Item::Word(option)) if is_in(&OPTIONS, option) && !words.is_quoted() => {}
            Token::Literal(_) | Token::Item(Item::Other(b',' | b'*')) => {}
            Token::Item(Item::Other(b';')) if depth == 0 => break,
            Token::Item(Item::End) if depth == 0 => return Some(()),
            Token::Item(_) => return None,
        }
    }
    matches!(words.token(), Token::Item(Item::End)).then_some(())
}

/// Options that say how rows are written, and their values.
const OPTIONS: [&str; 24] = [
    "as",
    "csv",
    "default",
    "delimiter",
    "encoding",
    "escape",
    "false",
    "force_not_null",
    "force_null",
    "force_quote",
    "format",
    "header",
    "ignore",
    "log_verbosity",
    "match",
    "null",
    "off",
    "on",
    "on_error",
    "quote",
    "stop",
    "text",
    "true",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_read_to_its_end() {
        for (text, what, is_query, writes) in [
            ("copy t from stdin", "t", false, true),
            (
                "COPY s.\"T\" (a, \"b\") FROM STDIN;",
                "s.\"T\" (a, \"b\")",
                false,
                true,
            ),
            ("copy t to stdout with csv header", "t", false, false),
            (
                "copy t from stdin (format csv, force_null (a, b), null '')",
                "t",
                false,
                true,
            ),
            (
                "copy (select f(1) from t) to stdout with (format text, header 1);",
                "(select f(1) from t)",
                true,
                false,
            ),
            (
                "copy t to stdout with delimiter as E'\\t' null as ''",
                "t",
                false,
                false,
            ),
        ] {
            let found = read(text.as_bytes()).unwrap();
            assert_eq!(found.what.trim_ascii(), what.as_bytes(), "{text}");
            assert_eq!((found.is_query, found.writes), (is_query, writes), "{text}");
        }
        for text in [
            "copy t from '/tmp/x'",
            "copy t from program 'x'",
            "copy t to stdin",
            "copy t from stdin where f(a)",
            "copy t from stdin (format binary)",
            "copy t from stdin (format \"csv\")",
            "copy t from stdin with binary",
            "copy binary t from stdin",
            "copy t from stdin; select f()",
            "copy t from stdin;;",
            "copy t (a from stdin",
            "copy t from stdin (format csv",
            "copy t from stdin format csv)",
            "copy (select 1; select 2) to stdout",
            "copy (select 1) from stdin",
            "copy U&\"t\" from stdin",
            "\"copy\" t from stdin",
            "copy t \"from\" stdin",
            "copy t from \"stdin\"",
            "copy t",
            "copy",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
