//! What a text locks that it does not change, as whoever is about to change it does first.

use super::tokens::{Tok, Tokens, statement};
use crate::sql::touched::{Name, Touched};
use crate::sql::words::Words;

/// The verbs of statements that lock relations so that others cannot read or write them, and are no
/// definitions.
const VERBS: [&[u8]; 5] = [b"cluster", b"lock", b"refresh", b"reindex", b"truncate"];

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// What the text locks so, by name; `None` if it locks nothing so. Strings are read as
/// `standard_conforming_strings` has them: see to it that nothing is made of this otherwise.
#[must_use]
pub fn locks(text: &[u8]) -> Option<Touched> {
    let mut own = text.iter().skip_while(|byte| byte.is_ascii_whitespace());
    let first = own.next()?.to_ascii_lowercase();
    // A comment or a parenthesis may stand before the first statement.
    let may_begin = matches!(first, b'c' | b'l' | b'r' | b't') || !first.is_ascii_alphabetic();
    if !may_begin && memchr::memchr(b';', text).is_none() {
        return None;
    }
    if text.len() > MAX_TEXT {
        return Some(Touched::Everything);
    }
    let mut words = Words::new(text);
    let mut locked = None;
    loop {
        let Some((tokens, more)) = statement(&mut words) else {
            return Some(Touched::Everything);
        };
        if let Some(by_one) = of(&tokens) {
            let before: Option<Touched> = locked.take();
            locked = Some(before.unwrap_or_default().and(by_one));
        }
        if !more {
            return locked;
        }
    }
}

/// What one statement locks so.
fn of(tokens: &Tokens<'_>) -> Option<Touched> {
    let verb = tokens.word(0).filter(|verb| VERBS.contains(verb))?;
    let names = match verb {
        b"lock" | b"truncate" => {
            let at = if tokens.word(1) == Some(b"table") {
                2
            } else {
                1
            };
            list(tokens, at).filter(|_| !tokens.has(b"cascade"))
        }
        b"refresh" if tokens.are(1, &[b"materialized", b"view"]) => tokens.object(3),
        b"cluster" => tokens.object(1),
        b"reindex" => match tokens.word(1) {
            Some(b"table") => tokens.object(2),
            _ => None,
        },
        _ => None,
    };
    Some(names.map_or(Touched::Everything, Touched::names))
}

/// The names of a list, up to the first word that can be none of them.
fn list(tokens: &Tokens<'_>, at: usize) -> Option<Vec<Name>> {
    let mut at = at;
    let mut found = Vec::new();
    loop {
        found.extend(tokens.object(at)?);
        let only = usize::from(tokens.word(at) == Some(b"only"));
        let (_, mut end) = tokens.name(at + only).or_else(|| tokens.name(at))?;
        if matches!(tokens.list.get(end), Some(Tok::Other(b'*'))) {
            end += 1;
        }
        match tokens.list.get(end) {
            Some(Tok::Other(b',')) => at = end + 1,
            Some(Tok::Word(_)) | None => return Some(found),
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Touched {
        Touched::names(all.iter().map(|name| name.as_bytes().into()).collect())
    }

    #[test]
    fn what_is_locked_has_a_name() {
        for (text, expected) in [
            ("LOCK TABLE t", names(&["t"])),
            ("lock s.t in access exclusive mode nowait", names(&["t"])),
            (
                "LOCK TABLE ONLY t, u IN SHARE MODE",
                names(&["only", "t", "u"]),
            ),
            ("lock table t *, \"U\"", names(&["t", "u"])),
            ("TRUNCATE t, s.u RESTART IDENTITY", names(&["t", "u"])),
            ("BEGIN; TRUNCATE TABLE t; SELECT 1", names(&["t"])),
            ("SELECT 1; LOCK t; lock u", names(&["t", "u"])),
            ("/* x */ CLUSTER t USING i", names(&["t"])),
            (
                "REINDEX TABLE CONCURRENTLY t",
                names(&["concurrently", "t"]),
            ),
            ("REFRESH MATERIALIZED VIEW v", names(&["v"])),
            ("TRUNCATE t CASCADE", Touched::Everything),
            ("REINDEX INDEX i", Touched::Everything),
            ("REINDEX (VERBOSE) TABLE t", Touched::Everything),
            ("CLUSTER", Touched::Everything),
            ("LOCK TABLE t, (SELECT 1)", Touched::Everything),
        ] {
            assert_eq!(locks(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn most_texts_lock_nothing_so() {
        for text in [
            "",
            "COMMIT",
            "SELECT * FROM lock",
            "SELECT 'a;lock t'",
            "BEGIN; SELECT 1",
            "UPDATE t SET a = 1",
            "CREATE TABLE lock ()",
            "TABLE t",
            "-- lock t\nSELECT 1",
        ] {
            assert_eq!(locks(text.as_bytes()), None, "{text}");
        }
    }
}
