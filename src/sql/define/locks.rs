//! What a text locks that it does not change, as whoever is about to change it does first.

use super::tokens::{Tok, Tokens, statement};
use crate::sql::touched::{Name, Touched};
use crate::sql::words::{Item, Words};

/// The verbs of statements that lock relations so that others cannot read or write them, and are no
/// definitions, or lock others than those that they define: DROP TABLE does those that it refers
/// to.
const VERBS: [&[u8]; 7] = [
    b"cluster",
    b"drop",
    b"lock",
    b"refresh",
    b"reindex",
    b"truncate",
    b"vacuum",
];

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// What the text locks so, by name; `None` if it locks nothing so. Strings are read as
/// `standard_conforming_strings` has them: see to it that nothing is made of this otherwise.
///
/// A statement counts also if it is alone in its transaction. It does not change what others read,
/// but where they read it (`relfilenode`): a prepared statement that has waited for it finds its
/// plan outdated, gives its locks back and asks for them again, behind whoever has come meanwhile
/// (`RevalidateCachedQuery` in `plancache.c`).
#[must_use]
pub fn locks(text: &[u8]) -> Option<Touched> {
    if !may_lock(text) {
        return None;
    }
    if text.len() > MAX_TEXT {
        return Some(Touched::Everything);
    }
    let mut words = Words::new(text);
    let (mut locked, mut makes) = (None, false);
    loop {
        let Some((tokens, more)) = statement(&mut words) else {
            return Some(Touched::Everything);
        };
        makes |= tokens.word(0) == Some(b"create");
        if let Some(by_one) = of(&tokens) {
            // What has that name may be a view that stands before it.
            let by_one = if makes { Touched::Everything } else { by_one };
            let before: Option<Touched> = locked.take();
            locked = Some(before.unwrap_or_default().and(by_one));
        }
        if !more {
            return locked;
        }
    }
}

/// Whether it is worth to read the text: most of what is relayed has none of the verbs. Nobody who
/// sends several statements sends more of them than [`MAX_TEXT`] to lock something.
fn may_lock(text: &[u8]) -> bool {
    let is_verb = |word: &[u8]| VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb));
    let first = text.trim_ascii_start().first();
    // A comment or a parenthesis may stand in front.
    if first.is_some_and(|byte| {
        matches!(byte | 0x20, b'c' | b'd' | b'l' | b'r' | b't' | b'v')
            || !byte.is_ascii_alphabetic()
    }) {
        match Words::new(text).next() {
            Item::Word(word) if is_verb(word) => return true,
            Item::Escaped | Item::Broken => return true,
            _ => {}
        }
    }
    let own = text.trim_ascii_end();
    let own = own.strip_suffix(b";").unwrap_or(own);
    let has_more = own.len() <= MAX_TEXT && memchr::memchr(b';', own).is_some();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    has_more && own.split(|byte| !is_part(*byte)).any(is_verb)
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
        // Nobody waits for these, which may take hours, but who changes what they are about.
        b"refresh" | b"reindex" if tokens.has(b"concurrently") => return None,
        b"refresh" if tokens.are(1, &[b"materialized", b"view"]) => tokens.object(3),
        b"cluster" => tokens.object(1),
        b"drop" if tokens.word(1) != Some(b"table") => return None,
        // Only so it writes the tables anew.
        b"vacuum" if !tokens.has(b"full") => return None,
        b"vacuum" => list(tokens, options(tokens)),
        b"reindex" => match tokens.word(1) {
            Some(b"table") => tokens.object(2),
            _ => None,
        },
        _ => None,
    };
    Some(names.map_or(Touched::Everything, Touched::names))
}

/// Where the options of VACUUM end.
fn options(tokens: &Tokens<'_>) -> usize {
    const WORDS: [&[u8]; 4] = [b"full", b"freeze", b"verbose", b"analyze"];
    let is_option = |at: &usize| tokens.word(*at).is_some_and(|word| WORDS.contains(&word));
    let closes = |token: &Tok<'_>| matches!(token, Tok::Other(b')'));
    match tokens.list.get(1) {
        Some(Tok::Other(b'(')) => {
            let end = tokens.list.iter().position(closes);
            end.map_or(tokens.list.len(), |end| end + 1)
        }
        _ => (1..).take_while(is_option).last().map_or(1, |at| at + 1),
    }
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
            (
                "CREATE VIEW v AS SELECT * FROM t; LOCK v",
                Touched::Everything,
            ),
            ("LOCK t; CREATE VIEW v AS SELECT 1", names(&["t"])),
            ("DROP TABLE IF EXISTS t", Touched::Everything),
            ("/* x */ CLUSTER t USING i", names(&["t"])),
            ("REINDEX TABLE t", names(&["t"])),
            ("REFRESH MATERIALIZED VIEW v", names(&["v"])),
            ("TRUNCATE t CASCADE", Touched::Everything),
            ("REINDEX INDEX i", Touched::Everything),
            ("REINDEX (VERBOSE) TABLE t", Touched::Everything),
            ("CLUSTER", Touched::Everything),
            ("LOCK TABLE t, (SELECT 1)", Touched::Everything),
            (";/* x */ lock t; ;", names(&["t"])),
            ("VACUUM FULL", Touched::Everything),
            ("vacuum (full)", Touched::Everything),
            ("VACUUM FULL verbose t", names(&["t"])),
            ("VACUUM (ANALYZE, FULL true) s.t, u", names(&["t", "u"])),
            ("VACUUM FULL ANALYZE t (a, b)", Touched::Everything),
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
            "REINDEX INDEX CONCURRENTLY i",
            "REFRESH MATERIALIZED VIEW CONCURRENTLY v",
            "VACUUM t",
            "vacuum (analyze) t",
            "-- lock t\nSELECT 1",
        ] {
            assert_eq!(locks(text.as_bytes()), None, "{text}");
        }
    }
}
