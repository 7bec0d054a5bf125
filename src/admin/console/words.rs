//! The text of commands, cut into words.

use crate::wire::answers::Told;

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A bare word, as it was written.
    Bare(String),
    /// A name in double quotes, or a text in single ones.
    Quoted(String),
    /// Any other character.
    Sign(char),
}

impl Word {
    /// Whether it is this word, in capitals or not, and without quotes.
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Bare(text) if text.eq_ignore_ascii_case(word))
    }

    /// What it says, quoted or not.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Bare(text) | Self::Quoted(text) => Some(text),
            Self::Sign(_) => None,
        }
    }
}

/// Cuts a text into commands, and these into words. Those without words are left out.
///
/// # Errors
/// A quote or a comment does not end.
pub(super) fn commands(text: &str) -> Result<Vec<Vec<Word>>, Told> {
    let unfinished = |what| Told::new("42601", format!("unterminated {what}"));
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        rest = match first {
            _ if first.is_whitespace() => behind,
            '-' if behind.starts_with('-') => behind.split_once('\n').map_or("", |(_, rest)| rest),
            '/' if behind.starts_with('*') => {
                let inside = behind.get(1..).unwrap_or_default();
                let end = inside.split_once("*/");
                end.ok_or_else(|| unfinished("comment"))?.1
            }
            '\'' | '"' => {
                let (word, rest) =
                    quoted(behind, first).ok_or_else(|| unfinished("quoted text"))?;
                words.push(Word::Quoted(word));
                rest
            }
            ';' => {
                all.push(std::mem::take(&mut words));
                behind
            }
            _ if is_plain(first) => {
                let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
                let (word, rest) = rest.split_at(end);
                words.push(Word::Bare(word.to_owned()));
                rest
            }
            _ => {
                words.push(Word::Sign(first));
                behind
            }
        };
    }
    all.push(words);
    all.retain(|words| !words.is_empty());
    Ok(all)
}

/// Characters of bare words.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '$')
}

/// What stands before the quote that ends it, in which two of them are one, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once(quote)?;
        word.push_str(before);
        match behind.strip_prefix(quote) {
            Some(more) => {
                word.push(quote);
                rest = more;
            }
            None => return Some((word, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(text: &str) -> Word {
        Word::Bare(text.to_owned())
    }

    #[test]
    fn commands_are_cut_at_semicolons_and_comments_are_none() {
        let found = commands(" SHOW /* a; */ stats;; -- b\nSET \"k\"='it''s' ;").unwrap();
        let quoted = |text: &str| Word::Quoted(text.to_owned());
        let set = vec![bare("SET"), quoted("k"), Word::Sign('='), quoted("it's")];
        assert_eq!(found, [vec![bare("SHOW"), bare("stats")], set]);
        assert_eq!(commands(" ; -- x").unwrap(), Vec::<Vec<Word>>::new());
        assert_eq!(commands("a-b ä").unwrap().concat().len(), 4);
    }

    #[test]
    fn what_does_not_end_is_refused() {
        for bad in ["'a", "\"a\"\"", "/* a", "show /*"] {
            assert_eq!(commands(bad).unwrap_err().sqlstate, "42601", "{bad}");
        }
    }
}
