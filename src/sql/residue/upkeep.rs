//! Statements that define, drop, grant, maintain or describe, and leave nothing in the session but
//! what comes of the names in them: what functions they run follows from these.
//!
//! Event triggers may run with most of them. What is temporary is not among them, nor what the
//! server does with something temporary of its own: `REFRESH MATERIALIZED VIEW CONCURRENTLY` keeps
//! what has changed in such a table (`refresh_by_match_merge` in `matview.c`), and the session has
//! a temporary schema from then on.

use super::is_in;
use super::known::is_known;
use super::passing::{expect, word};
use crate::sql::words::{Item, Token, Words};

/// What such a statement does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Upkeep<'a> {
    /// Nothing that runs anything.
    Quiet,
    /// It reads or writes the rows of what has the names in this, or computes from them what its
    /// indexes and statistics are of.
    Rows(&'a [u8]),
    /// The same, of all tables there are.
    AllRows,
    /// It makes a table of these words, of which nothing is run but what types do with their
    /// modifiers. It may use sequences if it `draws`.
    Table { words: &'a [u8], draws: bool },
}

/// What the text does, if that is such a statement and nothing else.
#[inline]
pub(super) fn read(text: &[u8]) -> Option<Upkeep<'_>> {
    // Every text that is relayed comes by here, and few of them begin so.
    match Words::new(text).peek()? | 0x20 {
        b'a' | b'c' | b'd' | b'g' | b'r' | b'v' => read_verb(text),
        _ => None,
    }
}

fn read_verb(text: &[u8]) -> Option<Upkeep<'_>> {
    let text = without_end(text);
    let mut words = Words::new(text);
    let verb = keyword(&mut words)?;
    if is_in(&["checkpoint", "comment", "grant", "revoke"], verb) {
        is_one(&mut words).then_some(Upkeep::Quiet)
    } else if is_in(&["drop"], verb) {
        let kind = keyword(&mut words)?;
        (is_in(&RELATIONS, kind) && is_one(&mut words)).then_some(Upkeep::Quiet)
    } else if is_in(&["analyse", "analyze", "vacuum"], verb) {
        maintained(&mut words)
    } else if is_in(&["refresh"], verb) {
        refreshed(&mut words)
    } else if is_in(&["create"], verb) {
        created(&mut words)
    } else {
        None
    }
}

/// What is dropped and runs nothing then.
const RELATIONS: [&str; 5] = ["index", "materialized", "sequence", "table", "view"];

/// Options of VACUUM and ANALYZE that stand in no parentheses.
const OPTIONS: [&str; 5] = ["analyse", "analyze", "freeze", "full", "verbose"];

/// The text without the semicolon at its end.
fn without_end(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    text.strip_suffix(b";").unwrap_or(text)
}

/// The next word, if it stands without quotes.
fn keyword<'a>(words: &mut Words<'a>) -> Option<&'a [u8]> {
    word(words).filter(|_| !words.is_quoted())
}

/// Whether there is no other statement behind this one.
fn is_one(words: &mut Words<'_>) -> bool {
    loop {
        match words.next() {
            Item::End => return true,
            Item::Escaped | Item::Broken | Item::Other(b';') => return false,
            Item::Word(_) | Item::Other(_) => {}
        }
    }
}

/// `VACUUM [(…)] [FULL] … [table [(column, …)] [, …]]`, and ANALYZE.
fn maintained<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    if words.peek() == Some(b'(') {
        loop {
            match words.token() {
                Token::Item(Item::Other(b')')) => break,
                Token::Item(Item::Word(_) | Item::Other(b'(' | b',')) | Token::Literal(_) => {}
                Token::Item(_) => return None,
            }
        }
    }
    loop {
        let rest = words.rest();
        let what = match words.peek() {
            Some(0) | None => return Some(Upkeep::AllRows),
            _ => word(words)?,
        };
        if !is_in(&OPTIONS, what) || words.is_quoted() {
            return is_one(words).then_some(Upkeep::Rows(rest));
        }
    }
}

/// `REFRESH MATERIALIZED VIEW name [WITH [NO] DATA]`
fn refreshed<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    expect(words, "materialized")?;
    expect(words, "view")?;
    let rest = words.rest();
    let is_concurrent = is_in(&["concurrently"], word(words)?);
    (!is_concurrent && is_one(words)).then_some(Upkeep::Rows(rest))
}

fn created<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    let kind = keyword(words)?;
    if is_in(&["table"], kind) {
        return table(words);
    }
    if is_in(&["unlogged"], kind) {
        expect(words, "table")?;
        return table(words);
    }
    if is_in(&["unique"], kind) {
        expect(words, "index")?;
    } else if !is_in(&["index"], kind) {
        return None;
    }
    index(words)
}

/// Reads a name with as many parts as it has. What of it is temporary is none.
fn name(words: &mut Words<'_>) -> Option<()> {
    const TEMPORARY: &str = "pg_temp";
    loop {
        let part = word(words)?;
        let start = part.get(..TEMPORARY.len()).unwrap_or_default();
        (!is_in(&[TEMPORARY], start)).then_some(())?;
        if words.peek() != Some(b'.') {
            return Some(());
        }
        words.next();
    }
}

/// `[CONCURRENTLY] [IF NOT EXISTS] name ON [ONLY] table (column [ASC|DESC] [NULLS …], …)
/// [INCLUDE (…)]`: no method or operators but those that a constraint would have.
fn index<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    loop {
        let part = word(words)?;
        if is_in(&["on"], part) && !words.is_quoted() {
            break;
        }
    }
    let rest = words.rest();
    if is_in(&["only"], word(&mut Words::new(rest))?) {
        word(words)?;
    }
    name(words)?;
    let table = &rest[..rest.len() - words.rest().len()];
    columns(words, &ORDERS)?;
    if words.peek() != Some(0) {
        expect(words, "include")?;
        columns(words, &[])?;
    }
    (words.peek() == Some(0)).then_some(Upkeep::Rows(table))
}

/// Words behind a column of an index.
const ORDERS: [&str; 5] = ["asc", "desc", "first", "last", "nulls"];

/// Reads `(column …, …)`, with no other words behind a column than these.
fn columns(words: &mut Words<'_>, others: &[&str]) -> Option<()> {
    matches!(words.token(), Token::Item(Item::Other(b'('))).then_some(())?;
    loop {
        word(words)?;
        loop {
            match words.token() {
                Token::Item(Item::Word(other)) if is_in(others, other) => {}
                Token::Item(Item::Other(b',')) => break,
                Token::Item(Item::Other(b')')) => return Some(()),
                _ => return None,
            }
        }
    }
}

/// `[IF NOT EXISTS] name (…) [PARTITION BY …]`, or `… PARTITION OF …` with constants for bounds.
fn table<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    let mut rest = Words::new(words.rest());
    if expect(&mut rest, "if").is_some()
        && expect(&mut rest, "not").is_some()
        && expect(&mut rest, "exists").is_some()
    {
        *words = rest;
    }
    name(words)?;
    match words.peek()? {
        b'(' => defined(words),
        _ => {
            expect(words, "partition")?;
            expect(words, "of")?;
            partition(words)
        }
    }
}

/// Words of the bounds of a partition.
const BOUNDS: [&str; 11] = [
    "default",
    "for",
    "from",
    "in",
    "maxvalue",
    "minvalue",
    "modulus",
    "remainder",
    "to",
    "values",
    "with",
];

/// `parent { FOR VALUES … | DEFAULT }`
fn partition<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    let rest = words.rest();
    name(words)?;
    let parent = &rest[..rest.len() - words.rest().len()];
    loop {
        match words.token() {
            Token::Item(Item::Word(bound)) if is_in(&BOUNDS, bound) && !words.is_quoted() => {}
            Token::Item(Item::Other(b'(' | b')' | b',' | b'-')) | Token::Literal(_) => {}
            Token::Item(Item::End) => return Some(Upkeep::Rows(parent)),
            Token::Item(_) => return None,
        }
    }
}

/// Words of a definition behind which a parenthesis is no call.
const LISTS: [&str; 6] = ["check", "hash", "key", "list", "range", "unique"];

/// Words of a definition that takes something from elsewhere.
const TAKEN: [&str; 4] = ["exclude", "inherits", "like", "using"];

/// Words of columns that have sequences (`transformColumnDefinition` in `parse_utilcmd.c`).
const DRAWING: [&str; 7] = [
    "bigserial",
    "identity",
    "serial",
    "serial2",
    "serial4",
    "serial8",
    "smallserial",
];

/// The columns and constraints of a table, and how it is partitioned.
fn defined<'a>(words: &mut Words<'a>) -> Option<Upkeep<'a>> {
    let rest = words.rest();
    let (mut last, mut draws, mut refers): (&[u8], _, _) = (b"", false, false);
    loop {
        match words.token() {
            Token::Item(Item::Word(part)) => {
                let is_new = last.is_empty() || !is_in(&["references"], last);
                refers = !is_new || refers && last.is_empty();
                (!is_in(&TAKEN, part)).then_some(())?;
                // `GENERATED BY DEFAULT AS IDENTITY`
                if is_in(&["as"], last) != is_in(&["identity"], part) {
                    return None;
                }
                draws |= is_in(&DRAWING, part);
                last = part;
            }
            // `REFERENCES s.t (a)`
            Token::Item(Item::Other(b'.')) => last = b"",
            Token::Item(Item::Other(b'(')) => {
                // `AS (SELECT …)`
                let is_list = refers || is_in(&LISTS, last) || is_known(last);
                (last.is_empty() || is_list && !is_in(&["as"], last)).then_some(())?;
                (last, refers) = (b"", false);
            }
            Token::Item(Item::Other(b';') | Item::Escaped | Item::Broken) => return None,
            Token::Item(Item::Other(_)) | Token::Literal(_) => (last, refers) = (b"", false),
            Token::Item(Item::End) => return Some(Upkeep::Table { words: rest, draws }),
        }
    }
}
