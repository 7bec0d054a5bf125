//! The form in which databases are described.

/// The pairs of a connection string, whose values may stand in single quotes, in which two stand
/// for one.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text.trim();
    while let Some((key, tail)) = rest.split_once('=') {
        let tail = tail.trim_start();
        let (value, tail) = match tail.strip_prefix('\'') {
            Some(quoted) => unquoted(quoted, '\''),
            None => {
                let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
                let (value, tail) = tail.split_at(end);
                (value.to_owned(), tail)
            }
        };
        pairs.push((key.trim().to_owned(), value));
        rest = tail.trim_start();
    }
    pairs
}

/// The value of the first pair of this name.
pub(super) fn value<'p>(pairs: &'p [(String, String)], name: &str) -> Option<&'p str> {
    let found = pairs.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// The text up to the quote that ends it, in which two stand for one, and what follows.
pub(super) fn unquoted(text: &str, quote: char) -> (String, &str) {
    let mut out = String::new();
    let mut rest = text;
    while let Some((piece, tail)) = rest.split_once(quote) {
        out.push_str(piece);
        match tail.strip_prefix(quote) {
            Some(tail) => {
                out.push(quote);
                rest = tail;
            }
            None => return (out, tail),
        }
    }
    out.push_str(rest);
    (out, "")
}
