//! What the text of a read says about whether another session's server process may run it.
//!
//! The text alone can only forbid it. What it mentions (names, calls, operators) is looked up in
//! the catalog by whoever asks the server. A word may name anything, in any schema, so no search
//! path has to be known.

mod clock;
mod known;

use super::words::{Item, Words};
use crate::reason::Stay;
pub use clock::{is_word as is_time_word, may_say_now, names_time};
pub use known::{denial, is_known};

/// What a text mentions, each once.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Mentions {
    /// Every word, as an object of that name would be called.
    pub names: Vec<String>,
    /// Those in front of a parenthesis, and those that begin as functions of the catalog do.
    pub calls: Vec<String>,
    /// Those behind a dot that are no calls: columns, or functions of what stands in front of the
    /// dot (`ParseFuncOrColumn` in `parse_func.c`).
    pub attributes: Vec<String>,
    /// Operators, or what the lexer might take for some.
    pub operators: Vec<String>,
}

/// Bytes of the longest name.
const MAX_NAME: usize = 63;

/// Names of one text that are looked up.
const MAX_NAMES: usize = 1000;

/// The longest run of characters that operators are made of.
const MAX_RUN: usize = 8;

/// What operators are made of (`scan.l`).
const OPERATORS: &[u8] = b"*+-/<>=~!@#%^&|`?";

/// Types whose values are names: to read or to show one is to look it up.
const NAMED: [&str; 11] = [
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
];

/// Operators that are written in words (IN, LIKE, BETWEEN, DISTINCT, USING and so on; `gram.y`).
const IMPLIED: [&str; 14] = [
    "=", "<>", "<", ">", "<=", ">=", "~", "!~", "~*", "!~*", "~~", "!~~", "~~*", "!~~*",
];

/// What the text mentions, if nothing in it keeps it at home.
///
/// # Errors
/// Why it stays at home.
pub fn mentions(text: &[u8]) -> Result<Mentions, Stay> {
    let mut reader = Reader {
        words: Words::new(text),
        end: text.len(),
        found: Mentions::default(),
        run: (0, Vec::new()),
        before: Before::Start,
    };
    loop {
        match reader.words.next() {
            Item::Word(word) => reader.word(word)?,
            Item::Other(byte) => reader.other(byte)?,
            Item::Escaped | Item::Broken => return Err(Stay::Unclear),
            Item::End => break,
        }
    }
    reader.end_run()?;
    if matches!(reader.before, Before::Start) {
        return Err(Stay::NoRead);
    }
    let mut found = reader.found;
    found.operators.extend(IMPLIED.map(str::to_owned));
    let (names, calls) = (&mut found.names, &mut found.calls);
    for list in [names, calls, &mut found.attributes, &mut found.operators] {
        list.sort_unstable();
        list.dedup();
        if list.len() > MAX_NAMES {
            return Err(Stay::Unclear);
        }
    }
    Ok(found)
}

/// What stands before the next item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing but parentheses.
    Start,
    /// A semicolon.
    Semicolon,
    /// FOR.
    For,
    Dot,
    Anything,
}

struct Reader<'a> {
    words: Words<'a>,
    /// The length of the text.
    end: usize,
    found: Mentions,
    /// Where the last character of an operator ended, and those before it without a gap.
    run: (usize, Vec<u8>),
    before: Before,
}

impl Reader<'_> {
    fn word(&mut self, word: &[u8]) -> Result<(), Stay> {
        self.end_run()?;
        let text = str::from_utf8(word).map_err(|_| Stay::Unclear)?;
        let is_quoted = self.words.is_quoted();
        // Braces stand for something in the questions that names are put into.
        let has_marks = word.iter().any(|byte| matches!(byte, b'"' | b'{' | b'}'));
        let is_odd = !word.is_ascii() || word.len() > MAX_NAME || has_marks;
        if is_odd || self.before == Before::Semicolon {
            return Err(Stay::Unclear);
        }
        let name = match is_quoted {
            true => text.to_owned(),
            false => text.to_ascii_lowercase(),
        };
        if self.before == Before::Start
            && (is_quoted || !matches!(&*name, "select" | "values" | "table" | "with"))
        {
            return Err(Stay::NoRead);
        }
        if !is_quoted {
            keyword(&name)?;
            if self.before == Before::For && matches!(&*name, "update" | "share" | "no" | "key") {
                return Err(Stay::Locks);
            }
        }
        let is_attribute = self.before == Before::Dot;
        self.before = match &*name {
            "for" if !is_quoted => Before::For,
            _ => Before::Anything,
        };
        if NAMED.contains(&&*name) {
            return Err(Stay::Names);
        }
        let is_call = self.words.peek().ok_or(Stay::Unclear)? == b'(' || name.starts_with("pg_");
        if is_call {
            if let Some(stay) = denial(&name) {
                return Err(stay);
            }
            self.found.calls.push(name.clone());
        } else if is_attribute {
            self.found.attributes.push(name.clone());
        }
        self.found.names.push(name);
        Ok(())
    }

    fn other(&mut self, byte: u8) -> Result<(), Stay> {
        let end = self.end - self.words.rest().len();
        if OPERATORS.contains(&byte) {
            if self.run.0 + 1 != end {
                self.end_run()?;
            }
            self.run.0 = end;
            self.run.1.push(byte);
        } else {
            self.end_run()?;
        }
        self.before = match (byte, self.before) {
            (b'(', Before::Start) => Before::Start,
            (_, Before::Start) => return Err(Stay::NoRead),
            (_, Before::Semicolon) => return Err(Stay::Unclear),
            (b';', _) => Before::Semicolon,
            (b'.', _) => Before::Dot,
            _ => Before::Anything,
        };
        Ok(())
    }

    /// Takes all that the lexer might read in the characters before a gap: it leaves signs at the
    /// end to what follows.
    fn end_run(&mut self) -> Result<(), Stay> {
        let run = std::mem::take(&mut self.run.1);
        if run.len() > MAX_RUN {
            return Err(Stay::Unclear);
        }
        for start in 0..run.len() {
            for end in start + 1..=run.len() {
                let part = run.get(start..end).unwrap_or_default();
                // Text search: `text @@ text` looks for a dictionary.
                if part == b"@@" {
                    return Err(Stay::TextSearch);
                }
                let part = String::from_utf8_lossy(part).into_owned();
                self.found.operators.push(part);
            }
        }
        Ok(())
    }
}

/// What a word of the language says that is not quoted.
fn keyword(name: &str) -> Result<(), Stay> {
    match name {
        "current_schema" => Err(Stay::Schema),
        "current_user" | "current_role" | "session_user" | "system_user" | "user" => {
            Err(Stay::Role)
        }
        "current_catalog" => Err(Stay::Server),
        "tablesample" => Err(Stay::Random),
        // COLLATION FOR calls a function.
        "collation" => Err(Stay::Names),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stays(text: &str) -> Option<Stay> {
        mentions(text.as_bytes()).err()
    }

    #[test]
    fn names_calls_and_operators_are_mentioned() {
        let found = mentions(b"SELECT \"A\", lower(b)||'x' FROM s.T WHERE id=-$1 /* c */").unwrap();
        let names = ["A", "b", "from", "id", "lower", "s", "select", "t", "where"];
        assert_eq!(found.names, names);
        assert_eq!(found.calls, ["lower"]);
        for operator in ["||", "=-", "=", "-", "~~"] {
            assert!(
                found.operators.iter().any(|it| it == operator),
                "{operator}"
            );
        }
        assert!(!found.operators.iter().any(|it| it.contains('/')));
    }

    /// What stands behind a dot may be a function of what stands in front of it.
    #[test]
    fn what_may_be_a_function_written_as_a_column_is_mentioned() {
        for text in [
            "SELECT (o).f FROM t",
            "SELECT (o) . /* a */ \"f\" FROM t",
            "SELECT a[1].F FROM t",
            "SELECT o.f FROM unnest(ARRAY[1]) o",
        ] {
            assert_eq!(
                mentions(text.as_bytes()).unwrap().attributes,
                ["f"],
                "{text}"
            );
        }
        let found = mentions(b"SELECT t.f(1), o, 1.5, g FROM t").unwrap();
        assert!(found.attributes.is_empty(), "{found:?}");
    }

    #[test]
    fn a_text_can_keep_itself_at_home() {
        for (text, stay) in [
            ("INSERT INTO t VALUES (1)", Stay::NoRead),
            ("", Stay::NoRead),
            ("\"select\" 1", Stay::NoRead),
            ("SELECT 1; SELECT 2", Stay::Unclear),
            ("SELECT a FROM t FOR /**/ UPDATE", Stay::Locks),
            ("SELECT a FROM t FOR NO KEY UPDATE", Stay::Locks),
            ("SELECT U&\"\\0061\" FROM t", Stay::Unclear),
            ("SELECT \u{e4} FROM t", Stay::Unclear),
            ("SELECT \"a\"\"b\" FROM t", Stay::Unclear),
            ("SELECT \"{names}\" FROM t", Stay::Unclear),
            ("SELECT CURRENT_SCHEMA", Stay::Schema),
            ("SELECT a FROM t WHERE o = current_user", Stay::Role),
            ("SELECT a::regclass FROM t", Stay::Names),
            ("SELECT COLLATION FOR (a) FROM t", Stay::Names),
            ("SELECT a @@ b FROM t", Stay::TextSearch),
            ("SELECT a FROM t TABLESAMPLE system (1)", Stay::Random),
            ("SELECT \"version\" ()", Stay::Server),
            ("SELECT pg_catalog . VERSION ( )", Stay::Server),
            ("SELECT Current_Setting('a')", Stay::Settings),
            ("SELECT t.pg_typeof FROM t", Stay::Names),
            ("SELECT 1 <=========> 2", Stay::Unclear),
        ] {
            assert_eq!(stays(text), Some(stay), "{text}");
        }
    }

    #[test]
    fn other_reads_may_travel_as_far_as_the_text_says() {
        for text in [
            "SELECT version, \"user\", \"current_schema\" FROM t WHERE id = $1",
            "(SELECT a FROM t) UNION SELECT 'pg_sleep(1)' ;",
            "WITH a AS (SELECT 1) SELECT substring(b FOR 3), now() FROM a -- for update",
            "VALUES (1)",
            "TABLE t",
        ] {
            assert_eq!(stays(text), None, "{text}");
        }
    }
}
