//! Texts that prepare a statement, run one, or drop it: PREPARE, EXECUTE and DEALLOCATE, read
//! exactly.
//!
//! What is not read to its end is none of them. Names are folded as the server folds them, of which
//! only those are read that mean the same in every encoding.

use super::is_in;
use crate::sql::words::{Item, Token, Words};

/// What a text does with a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed<'a> {
    /// It prepares one.
    Prepare {
        /// Its name.
        name: Box<[u8]>,
        /// The words of the types that are given for its parameters.
        types: Vec<&'a [u8]>,
        /// Its text.
        body: &'a [u8],
    },
    /// It runs the one of this name, with nothing but constants for the parameters.
    Execute(Box<[u8]>),
    /// It drops the one of this name.
    Deallocate(Box<[u8]>),
    /// It drops all.
    DeallocateAll,
}

/// The most bytes of an identifier that the server looks at.
const MAX_NAME: usize = 63;

/// Constants that are words.
const CONSTANTS: [&str; 3] = ["false", "null", "true"];

/// What `text` does with a prepared statement, if it does that and nothing else. Strings are read
/// as the standard has them.
#[must_use]
pub fn read(text: &[u8]) -> Option<Deed<'_>> {
    let mut words = Words::new(text);
    let verb = keyword(&mut words)?;
    if is_in(&["prepare"], verb) {
        let name = name(&mut words)?;
        let types = types(&mut words)?;
        let body = words.rest();
        is_one(body).then_some(Deed::Prepare { name, types, body })
    } else if is_in(&["execute"], verb) {
        let name = name(&mut words)?;
        has_constants(&mut words).then_some(Deed::Execute(name))
    } else if is_in(&["deallocate"], verb) {
        deallocate(&mut words)
    } else {
        None
    }
}

/// Behind DEALLOCATE: `[PREPARE] { name | ALL }`.
fn deallocate<'a>(words: &mut Words<'a>) -> Option<Deed<'a>> {
    let mut rest = Words::new(words.rest());
    if keyword(&mut rest).is_some_and(|word| is_in(&["prepare"], word))
        && !matches!(rest.peek()?, 0 | b';')
    {
        keyword(words)?;
    }
    let mut rest = Words::new(words.rest());
    let is_all = keyword(&mut rest).is_some_and(|word| is_in(&["all"], word));
    let name = name(words)?;
    ends(words).then_some(match is_all {
        true => Deed::DeallocateAll,
        false => Deed::Deallocate(name),
    })
}

/// The next word, if it stands without quotes.
fn keyword<'a>(words: &mut Words<'a>) -> Option<&'a [u8]> {
    match words.token() {
        Token::Item(Item::Word(word)) if !words.is_quoted() => Some(word),
        _ => None,
    }
}

/// An identifier. Beyond ASCII, how it is folded depends on the server's locale.
fn name(words: &mut Words<'_>) -> Option<Box<[u8]>> {
    let Token::Item(Item::Word(word)) = words.token() else {
        return None;
    };
    if !word.is_ascii() || word.is_empty() || word.len() > MAX_NAME {
        return None;
    }
    match words.is_quoted() {
        true => (!word.contains(&b'"')).then(|| word.into()),
        false => Some(word.to_ascii_lowercase().into()),
    }
}

/// `[(type [, …])] AS`, which is taken.
fn types<'a>(words: &mut Words<'a>) -> Option<Vec<&'a [u8]>> {
    let mut types = Vec::new();
    let mut depth = 0_u32;
    loop {
        match words.token() {
            Token::Item(Item::Word(word)) if depth == 0 => {
                let is_as = is_in(&["as"], word) && !words.is_quoted();
                return is_as.then_some(types);
            }
            Token::Item(Item::Word(word)) => types.push(word),
            Token::Item(Item::Other(b'(')) if depth > 0 || types.is_empty() => depth += 1,
            Token::Item(Item::Other(b')')) => depth = depth.checked_sub(1)?,
            Token::Item(Item::Other(b',' | b'.' | b'[' | b']')) | Token::Literal(_)
                if depth > 0 => {}
            _ => return None,
        }
    }
}

/// Whether a text is one statement, whatever it is.
fn is_one(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    loop {
        match words.next() {
            Item::Other(b';') => return matches!(words.next(), Item::End),
            Item::End => return true,
            Item::Broken => return false,
            Item::Word(_) | Item::Escaped | Item::Other(_) => {}
        }
    }
}

/// Reads `[(constant [, …])] [;]` to the end of the text.
fn has_constants(words: &mut Words<'_>) -> bool {
    let mut depth = 0_u32;
    loop {
        match words.token() {
            Token::Item(Item::Other(b'(')) if depth == 0 => depth = 1,
            Token::Item(Item::Other(b')')) if depth == 1 => return ends(words),
            Token::Item(Item::Other(b',' | b'.' | b'+' | b'-')) | Token::Literal(_)
                if depth == 1 => {}
            Token::Item(Item::Word(word))
                if depth == 1 && is_in(&CONSTANTS, word) && !words.is_quoted() => {}
            Token::Item(Item::Other(b';')) if depth == 0 => {
                return matches!(words.token(), Token::Item(Item::End));
            }
            Token::Item(Item::End) => return depth == 0,
            _ => return false,
        }
    }
}

/// Reads `[;]` to the end of the text.
fn ends(words: &mut Words<'_>) -> bool {
    match words.token() {
        Token::Item(Item::Other(b';')) => matches!(words.token(), Token::Item(Item::End)),
        Token::Item(Item::End) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Box<[u8]> {
        name.as_bytes().into()
    }

    #[test]
    fn what_is_prepared_is_told_from_how_it_is_called() {
        let (name, body) = (named("p"), &b" SELECT $1 "[..]);
        for (text, types) in [
            ("PREPARE p AS SELECT $1 ", &[][..]),
            ("prepare P (int) as SELECT $1 ", &[&b"int"[..]]),
            (
                "/* a */ PREPARE \"p\" (numeric(3, 2), s.\"T\"[]) AS SELECT $1 ",
                &[b"numeric", b"s", b"T"],
            ),
        ] {
            let types = types.to_vec();
            let name = name.clone();
            assert_eq!(
                read(text.as_bytes()),
                Some(Deed::Prepare { name, types, body }),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_run_or_dropped_is_found_by_its_name() {
        let execute = |name| Some(Deed::Execute(named(name)));
        let drop = |name| Some(Deed::Deallocate(named(name)));
        for (text, deed) in [
            ("EXECUTE p", execute("p")),
            ("execute \"P\" (1, -2.5, 'a', NULL, true);", execute("P")),
            ("DEALLOCATE p", drop("p")),
            ("deallocate prepare \"a b\";", drop("a b")),
            ("DEALLOCATE prepare", drop("prepare")),
            ("DEALLOCATE ALL", Some(Deed::DeallocateAll)),
            ("DEALLOCATE PREPARE ALL", Some(Deed::DeallocateAll)),
            ("DEALLOCATE \"all\"", drop("all")),
        ] {
            assert_eq!(read(text.as_bytes()), deed, "{text}");
        }
    }

    #[test]
    fn whatever_says_more_is_none_of_them() {
        let long = format!("EXECUTE {}", "a".repeat(64));
        for text in [
            "",
            "SELECT 1",
            "PREPARE TRANSACTION 'a'",
            "PREPARE p SELECT 1",
            "PREPARE p AS SELECT 1; SELECT 2",
            "PREPARE p AS SELECT 'a",
            "PREPARE U&\"p\" AS SELECT 1",
            "PREPARE p \"as\" SELECT 1",
            "PREPARE p (int) (int) AS SELECT 1",
            "PREPARE \u{e9} AS SELECT 1",
            "\"prepare\" p AS SELECT 1",
            "EXECUTE p (f(1))",
            "EXECUTE p (now())",
            "EXECUTE p ((1))",
            "EXECUTE p (1",
            "EXECUTE p (a)",
            "EXECUTE p ('1'::mine)",
            "EXECUTE p (\"true\")",
            "EXECUTE p (1) x",
            "EXECUTE p; EXECUTE q",
            "EXECUTE p;;",
            &long,
            "DEALLOCATE",
            "DEALLOCATE p q",
            "DEALLOCATE \"a\"\"b\"",
            "DEALLOCATE p; SELECT 1",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
