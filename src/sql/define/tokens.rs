//! The tokens of a statement, and where the names in it stand.

use super::{Definition, Name};
use crate::sql::hazard::{self, Hazards};
use crate::sql::words::{Item, Token, Words};

/// A word in lower case, or something else.
#[derive(Debug)]
pub(super) enum Tok<'a> {
    Word(Name),
    Quoted(Name),
    Other(u8),
    Literal(&'a [u8]),
}

/// The tokens of a statement, up to a semicolon that stands in no parentheses, and whether there
/// may be another one; `None` if they are not understood.
///
/// In a function whose body follows `ATOMIC`, semicolons end the statements of the body (`gram.y`,
/// `routine_body_stmt_list`). Where the body ends is not looked for: all that follows belongs to
/// the function, as long as it could stand in a body.
pub(super) fn statement<'a>(words: &mut Words<'a>) -> Option<(Tokens<'a>, bool)> {
    let mut tokens = Tokens::default();
    let mut depth = 0_i32;
    loop {
        let token = match words.token() {
            Token::Literal(literal) => Tok::Literal(literal),
            Token::Item(Item::Word(word)) => {
                let lower = word.to_ascii_lowercase().into();
                match words.is_quoted() {
                    true => Tok::Quoted(lower),
                    false => Tok::Word(lower),
                }
            }
            Token::Item(Item::Other(b';')) if depth <= 0 && tokens.body.is_none() => {
                return Some((tokens, true));
            }
            Token::Item(Item::Other(byte)) => {
                depth += i32::from(byte == b'(') - i32::from(byte == b')');
                Tok::Other(byte)
            }
            Token::Item(Item::End) => return Some((tokens, false)),
            Token::Item(Item::Escaped | Item::Broken) => return None,
        };
        let follows = tokens.body.is_some() && matches!(tokens.list.last(), Some(Tok::Other(b';')));
        if follows && !may_follow(&token) {
            return None;
        }
        if matches!(&token, Tok::Word(word) if &**word == b"atomic") && tokens.is_routine() {
            tokens.body = Some(words.rest());
        }
        tokens.list.push(token);
    }
}

/// Whether this may stand behind a semicolon in the body of a function.
fn may_follow(token: &Tok<'_>) -> bool {
    const VERBS: [&[u8]; 9] = [
        b"delete", b"end", b"insert", b"merge", b"return", b"select", b"update", b"values", b"with",
    ];
    match token {
        Tok::Word(word) => VERBS.contains(&&**word),
        Tok::Other(byte) => matches!(byte, b';' | b'('),
        Tok::Quoted(_) | Tok::Literal(_) => false,
    }
}

/// Parts of a qualified name: database, schema, table and column.
const MAX_PARTS: usize = 4;

/// Names that a statement may define something for.
const MAX_NAMES: usize = 256;

/// The tokens of one statement.
#[derive(Default)]
pub(super) struct Tokens<'a> {
    pub(super) list: Vec<Tok<'a>>,
    /// What follows `ATOMIC`, if that may begin the body of a function.
    pub(super) body: Option<&'a [u8]>,
}

/// Words between CREATE or ALTER and what it is about.
const MODIFIERS: [&[u8]; 10] = [
    b"constraint",
    b"global",
    b"local",
    b"or",
    b"recursive",
    b"replace",
    b"temp",
    b"temporary",
    b"unique",
    b"unlogged",
];

impl Tokens<'_> {
    /// The verb, and where what it is about stands.
    pub(super) fn head(&self) -> Option<(&[u8], usize)> {
        let Tok::Word(verb) = self.list.first()? else {
            // `(select …)`, or what is refused.
            return Some((b"select", 0));
        };
        let mut about = 1;
        while self
            .word(about)
            .is_some_and(|word| MODIFIERS.contains(&word))
        {
            about += 1;
        }
        Some((verb, about))
    }

    /// Whether they define a function or a procedure.
    fn is_routine(&self) -> bool {
        let about = self.head().and_then(|(_, about)| self.word(about));
        matches!(about, Some(b"function" | b"procedure"))
    }

    /// The unquoted word at `at`.
    pub(super) fn word(&self, at: usize) -> Option<&[u8]> {
        match self.list.get(at)? {
            Tok::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether these unquoted words stand at `at`.
    pub(super) fn are(&self, at: usize, words: &[&[u8]]) -> bool {
        let mut all = words.iter().enumerate();
        all.all(|(index, word)| self.word(at + index) == Some(word))
    }

    /// Whether the unquoted word is one of these.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        self.find(0, word).is_some()
    }

    /// Where the unquoted word stands first, from `from` on.
    pub(super) fn find(&self, from: usize, word: &[u8]) -> Option<usize> {
        (from..self.list.len()).find(|at| self.word(*at) == Some(word))
    }

    /// Every word, quoted or not.
    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        self.list.iter().filter_map(|token| match token {
            Tok::Word(name) | Tok::Quoted(name) => Some(name),
            Tok::Other(_) | Tok::Literal(_) => None,
        })
    }

    /// The last part of the qualified name at `at`, and where it ends; `None` if it has more parts
    /// than any name has.
    pub(super) fn name(&self, at: usize) -> Option<(Name, usize)> {
        let mut at = at;
        for _ in 0..MAX_PARTS {
            let (Tok::Word(name) | Tok::Quoted(name)) = self.list.get(at)? else {
                return None;
            };
            match self.list.get(at + 1) {
                Some(Tok::Other(b'.')) => at += 2,
                _ => return Some((name.clone(), at + 1)),
            }
        }
        None
    }

    /// The same behind `IF [NOT] EXISTS`, `ONLY` or `CONCURRENTLY`, which may be names themselves:
    /// then there are two.
    pub(super) fn object(&self, at: usize) -> Option<Vec<Name>> {
        let mut from = at;
        for skipped in [
            &[&b"concurrently"[..]][..],
            &[b"if", b"not", b"exists"],
            &[b"if", b"exists"],
            &[b"only"],
        ] {
            if self.are(from, skipped) {
                from += skipped.len();
            }
        }
        let found = [at, from].map(|at| self.name(at).map(|(name, _)| name));
        found[1]
            .is_some()
            .then(|| found.into_iter().flatten().collect())
    }

    /// The names of a list of objects at `at`, behind `IF EXISTS`, to the end of the statement or
    /// of the list; arguments of functions are left out. `None` if it is not understood.
    pub(super) fn objects(&self, at: usize) -> Option<Vec<Name>> {
        let skipped = if self.are(at, &[b"if", b"exists"]) {
            2
        } else {
            0
        };
        let mut at = at + skipped;
        let mut found = Vec::new();
        loop {
            let (name, end) = self.name(at)?;
            found.push(name);
            at = end;
            if matches!(self.list.get(at), Some(Tok::Other(b'('))) {
                at = self.behind_parentheses(at)?;
            }
            match self.list.get(at) {
                Some(Tok::Other(b',')) if found.len() < MAX_NAMES => at += 1,
                None => return Some(found),
                Some(Tok::Word(word)) if [&b"to"[..], b"from", b"restrict"].contains(&&**word) => {
                    return Some(found);
                }
                Some(_) => return None,
            }
        }
    }

    /// What follows the parentheses that open at `at`.
    fn behind_parentheses(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (index, token) in self.list.iter().enumerate().skip(at) {
            match token {
                Tok::Other(b'(') => depth += 1,
                Tok::Other(b')') => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The names behind every occurrence of the unquoted word, each of which may be a list;
    /// `None` if they are too many.
    pub(super) fn behind(&self, word: &[u8]) -> Option<Vec<Name>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = self.find(from, word) {
            from = at + 1;
            let mut next = from;
            loop {
                while matches!(self.list.get(next), Some(Tok::Other(b'(' | b','))) {
                    next += 1;
                }
                // `PARTITION BY`, and `PARTITION OF`, which is looked for by its other word.
                let is_clause = ["by", "of"]
                    .iter()
                    .any(|word| self.are(next, &[word.as_bytes()]));
                let Some((name, end)) = self.name(next).filter(|_| !is_clause) else {
                    break;
                };
                found.push(name);
                if found.len() > MAX_NAMES {
                    return None;
                }
                next = end;
                if !matches!(self.list.get(next), Some(Tok::Other(b','))) {
                    break;
                }
            }
        }
        Some(found)
    }

    /// All that the statement mentions, for whoever takes it on.
    pub(super) fn definition(&self, of: Option<Vec<Name>>) -> Definition {
        let of = of.map(once);
        let hazards = self.names().map(|name| hazard::builtin(name));
        Definition {
            of,
            hazards: hazards.fold(Hazards::NONE, |all, one| all | one),
            mentions: self.names().cloned().collect(),
            ..Definition::default()
        }
    }
}

/// The names, each once.
pub(super) fn once(mut names: Vec<Name>) -> Vec<Name> {
    names.sort_unstable();
    names.dedup();
    names
}
