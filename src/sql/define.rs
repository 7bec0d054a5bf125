//! Definitions: which names a text that changes the catalog may give hazards, and from what.
//!
//! Most of DDL gives nothing hazards that has had none: what it defines mentions nothing that has
//! any. So the whole catalog need not be asked again for each. What a definition mentions are the
//! words of its text, and those of a function's body; who takes on their hazards stands at its head.
//!
//! Invariant: leaving something out would be a wrong answer, too much in here costs a question. So
//! what is not understood is opaque, and a keyword is told from a name only where that is certain:
//! where it is reserved and not quoted.

use super::body::Body;
use super::effect;
use super::hazard::{self, Hazards};
use super::words::{Item, Token, Words};
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::sync::Arc;

/// A name, in lower case and as a text writes it between quotes.
pub type Name = Box<[u8]>;

/// What one statement defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// The names that take on the hazards of what is mentioned, each once; `None` if any may.
    pub of: Option<Vec<Name>>,
    /// The names it mentions.
    pub mentions: HashSet<Name, RandomState>,
    /// Hazards it gives whatever the names it mentions have.
    pub hazards: Hazards,
    /// Only who writes to what is defined does what is mentioned.
    pub by_writing: bool,
    /// It defines a function that the planner may run.
    pub is_planned: bool,
}

/// What a text defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Its definitions, in order.
    pub list: Vec<Arc<Definition>>,
    /// It may define anything else, too.
    pub is_opaque: bool,
    /// It may change what other sessions are told of schemas, rights and settings.
    pub moves_contexts: bool,
}

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// Definitions that are remembered together.
const MAX_DEFINITIONS: usize = 256;

/// Objects that have nothing to do with the settings, roles and schemas of other sessions.
const OBJECTS: [&[u8]; 20] = [
    b"aggregate",
    b"cast",
    b"collation",
    b"conversion",
    b"domain",
    b"function",
    b"index",
    b"materialized",
    b"operator",
    b"policy",
    b"procedure",
    b"routine",
    b"rule",
    b"sequence",
    b"statistics",
    b"table",
    b"text",
    b"trigger",
    b"type",
    b"view",
];

impl Definition {
    /// Whether something else than what has this name takes on its hazards.
    #[must_use]
    pub fn uses(&self, name: &[u8]) -> bool {
        let is_other = |of: &Vec<Name>| of.iter().any(|other| &**other != name);
        self.mentions.contains(name) && self.of.as_ref().is_none_or(is_other)
    }
}

impl Definitions {
    /// Of a text of which nothing is known.
    #[must_use]
    pub const fn opaque() -> Self {
        Self {
            list: Vec::new(),
            is_opaque: true,
            moves_contexts: true,
        }
    }

    /// What `text` defines.
    #[must_use]
    pub fn read(text: &[u8]) -> Self {
        let mut all = Self::default();
        let mut words = Words::new(text);
        loop {
            let read = statement(&mut words).filter(|_| text.len() <= MAX_TEXT);
            let Some((tokens, more)) = read else {
                return Self::opaque();
            };
            all.add(&Tokens(&tokens));
            if all.is_opaque {
                return Self::opaque();
            }
            if !more {
                return all;
            }
        }
    }

    /// Adds what another text defines.
    pub fn extend(&mut self, other: Self) {
        self.moves_contexts |= other.moves_contexts;
        self.is_opaque |= other.is_opaque || self.list.len() > MAX_DEFINITIONS;
        self.list.extend(other.list);
        if self.is_opaque {
            *self = Self::opaque();
        }
    }

    fn add(&mut self, tokens: &Tokens<'_>) {
        let Some((verb, about)) = tokens.head() else {
            return;
        };
        let kind = tokens.word(about).unwrap_or_default();
        let defined = match verb {
            b"create" => create(tokens, about),
            b"alter" => alter(tokens, about),
            // By that names can only lose hazards.
            b"drop" | b"comment" | b"grant" | b"revoke" | b"security" => Some(None),
            b"truncate" if tokens.has(b"cascade") => None,
            b"explain" if tokens.has(b"execute") => None,
            b"import" | b"reassign" => None,
            _ if effect::is_understood(verb) => return,
            _ => None,
        };
        let is_about_objects = matches!(verb, b"create" | b"alter" | b"drop")
            && (OBJECTS.contains(&kind) || tokens.are(about, &[b"foreign", b"table"]));
        self.moves_contexts |= !is_about_objects && verb != b"comment";
        match defined {
            Some(definition) => self.list.extend(definition.map(Arc::new)),
            None => self.is_opaque = true,
        }
    }
}

/// A word in lower case, or something else.
#[derive(Debug)]
enum Tok<'a> {
    Word(Name),
    Quoted(Name),
    Other(u8),
    Literal(&'a [u8]),
}

/// The tokens of a statement, up to a semicolon that stands in no parentheses, and whether there
/// may be another one; `None` if they are not understood.
fn statement<'a>(words: &mut Words<'a>) -> Option<(Vec<Tok<'a>>, bool)> {
    let mut tokens = Vec::new();
    let mut depth = 0_i32;
    loop {
        tokens.push(match words.token() {
            Token::Literal(literal) => Tok::Literal(literal),
            Token::Item(Item::Word(word)) => {
                let lower = word.to_ascii_lowercase().into();
                match words.is_quoted() {
                    true => Tok::Quoted(lower),
                    false => Tok::Word(lower),
                }
            }
            Token::Item(Item::Other(b';')) if depth <= 0 => return Some((tokens, true)),
            Token::Item(Item::Other(byte)) => {
                depth += i32::from(byte == b'(') - i32::from(byte == b')');
                Tok::Other(byte)
            }
            Token::Item(Item::End) => return Some((tokens, false)),
            Token::Item(Item::Escaped | Item::Broken) => return None,
        });
    }
}

/// The tokens of one statement.
struct Tokens<'a>(&'a [Tok<'a>]);

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
    fn head(&self) -> Option<(&[u8], usize)> {
        let verb = match self.0.first()? {
            Tok::Word(word) => word,
            // `(select …)`, or what is refused.
            _ => return Some((b"select", 0)),
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

    /// The unquoted word at `at`.
    fn word(&self, at: usize) -> Option<&[u8]> {
        match self.0.get(at)? {
            Tok::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether these unquoted words stand at `at`.
    fn are(&self, at: usize, words: &[&[u8]]) -> bool {
        let mut all = words.iter().enumerate();
        all.all(|(index, word)| self.word(at + index) == Some(word))
    }

    /// Whether the unquoted word is one of these.
    fn has(&self, word: &[u8]) -> bool {
        self.find(0, word).is_some()
    }

    /// Where the unquoted word stands first, from `from` on.
    fn find(&self, from: usize, word: &[u8]) -> Option<usize> {
        (from..self.0.len()).find(|at| self.word(*at) == Some(word))
    }

    /// Every word, quoted or not.
    fn names(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().filter_map(|token| match token {
            Tok::Word(name) | Tok::Quoted(name) => Some(name),
            Tok::Other(_) | Tok::Literal(_) => None,
        })
    }

    /// The last part of the qualified name at `at`, and where it ends.
    fn name(&self, at: usize) -> Option<(Name, usize)> {
        let (Tok::Word(name) | Tok::Quoted(name)) = self.0.get(at)? else {
            return None;
        };
        match self.0.get(at + 1) {
            Some(Tok::Other(b'.')) => self.name(at + 2),
            _ => Some((name.clone(), at + 1)),
        }
    }

    /// The same behind `IF [NOT] EXISTS`, `ONLY` or `CONCURRENTLY`, which may be names themselves:
    /// then there are two.
    fn object(&self, at: usize) -> Option<Vec<Name>> {
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

    /// The names behind every occurrence of the unquoted word, each of which may be a list.
    fn behind(&self, word: &[u8]) -> Vec<Name> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = self.find(from, word) {
            from = at + 1;
            let mut next = from;
            loop {
                while matches!(self.0.get(next), Some(Tok::Other(b'(' | b','))) {
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
                next = end;
                if !matches!(self.0.get(next), Some(Tok::Other(b','))) {
                    break;
                }
            }
        }
        found
    }

    /// All that the statement mentions, for whoever takes it on.
    fn definition(&self, of: Option<Vec<Name>>) -> Definition {
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

/// What CREATE defines; `None` if that is not understood.
fn create(tokens: &Tokens<'_>, about: usize) -> Option<Option<Definition>> {
    // Statements in its body end with semicolons.
    if tokens.has(b"atomic") {
        return None;
    }
    let behind = |keyword: &[u8]| {
        let at = tokens.find(about, keyword)? + 1;
        tokens.object(at)
    };
    let mut foreign = Hazards::NONE;
    let mut about = about;
    if tokens.are(about, &[b"foreign", b"table"]) {
        (foreign, about) = (Hazards::FOREIGN, about + 1);
    } else if tokens.are(about, &[b"materialized", b"view"]) {
        about += 1;
    }
    let kind = tokens.word(about)?;
    Some(Some(match kind {
        b"function" | b"procedure" => function(tokens, about),
        // What it runs is not in the text.
        b"table" | b"view" if tokens.has(b"execute") => return None,
        b"table" => table(tokens, about, foreign),
        b"view" | b"aggregate" => tokens.definition(tokens.object(about + 1)),
        b"trigger" | b"index" => Definition {
            by_writing: true,
            ..tokens.definition(behind(b"on"))
        },
        b"statistics" => tokens.definition(behind(b"from")),
        b"rule" => tokens.definition(behind(b"to")),
        b"policy" => secured(tokens.definition(behind(b"on"))),
        // Its elements are statements of their own.
        b"schema" if tokens.find(1, b"create").is_none() => return Some(None),
        _ if RUNS_NOTHING.contains(&kind) => return Some(None),
        b"access" | b"event" | b"extension" | b"language" | b"procedural" | b"schema"
        | b"subscription" | b"transform" | b"trusted" => return None,
        _ => tokens.definition(None),
    }))
}

/// What ALTER defines; `None` if that is not understood.
fn alter(tokens: &Tokens<'_>, about: usize) -> Option<Option<Definition>> {
    let mut foreign = Hazards::NONE;
    let mut about = about;
    if tokens.are(about, &[b"foreign", b"table"]) {
        (foreign, about) = (Hazards::FOREIGN, about + 1);
    } else if tokens.are(about, &[b"materialized", b"view"]) {
        about += 1;
    }
    let kind = tokens.word(about)?;
    let mut of = tokens.object(about + 1);
    if let Some(of) = of.as_mut().filter(|_| tokens.has(b"rename")) {
        of.extend(tokens.behind(b"to"));
    }
    Some(Some(match kind {
        b"function" | b"procedure" | b"routine" => altered_function(tokens, of),
        b"table" | b"view" => {
            let mut altered = table(tokens, about, foreign);
            altered.of = altered
                .of
                .zip(of)
                .map(|(of, also)| once([of, also].concat()));
            altered
        }
        b"aggregate" => tokens.definition(of),
        b"policy" => {
            let at = tokens.find(about, b"on")? + 1;
            secured(tokens.definition(tokens.object(at)))
        }
        _ if RUNS_NOTHING.contains(&kind) => return Some(None),
        b"event" | b"extension" | b"language" | b"subscription" => return None,
        _ => tokens.definition(None),
    }))
}

/// What nobody runs anything by using.
const RUNS_NOTHING: [&[u8]; 10] = [
    b"collation",
    b"conversion",
    b"database",
    b"group",
    b"publication",
    b"role",
    b"sequence",
    b"server",
    b"tablespace",
    b"user",
];

fn once(mut names: Vec<Name>) -> Vec<Name> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Who sees what of it may depend on roles.
fn secured(definition: Definition) -> Definition {
    let hazards = definition.hazards | Hazards::SECURED;
    Definition {
        hazards,
        ..definition
    }
}

/// A table, with its parents, partitions, and what its foreign keys refer to.
fn table(tokens: &Tokens<'_>, about: usize, hazards: Hazards) -> Definition {
    let of = tokens.object(about + 1).map(|mut of| {
        of.extend(tokens.behind(b"references"));
        let parents: [&[u8]; 4] = [b"inherit", b"inherits", b"partition", b"of"];
        of.extend(parents.iter().flat_map(|word| tokens.behind(word)));
        of
    });
    let mut table = tokens.definition(of);
    table.hazards |= hazards;
    // A view may be renamed as a table, too.
    table.by_writing = !tokens.has(b"rename");
    let parents: [&[u8]; 3] = [b"inherit", b"inherits", b"partition"];
    if parents.iter().any(|word| tokens.has(word)) {
        table.hazards |= Hazards::PARTITIONED;
    }
    match tokens.has(b"security") {
        true => secured(table),
        false => table,
    }
}

/// Whether a setting changes how the function's body is read.
fn reads_otherwise(tokens: &Tokens<'_>) -> bool {
    tokens
        .names()
        .any(|name| &**name == b"standard_conforming_strings")
}

fn is_planned(tokens: &Tokens<'_>) -> bool {
    tokens.has(b"stable") || tokens.has(b"immutable")
}

/// A function: what its body does, and what its arguments' defaults do.
fn function(tokens: &Tokens<'_>, about: usize) -> Definition {
    let mut function = tokens.definition(tokens.object(about + 1));
    function.is_planned = is_planned(tokens);
    let body = match language(tokens).filter(|_| !reads_otherwise(tokens)) {
        Some(is_sql) => bodies(tokens, is_sql),
        None => Body::opaque(),
    };
    function.hazards |= body.hazards;
    function.mentions.extend(body.names);
    function
}

/// A function whose body stays as it is, but may be run otherwise.
fn altered_function(tokens: &Tokens<'_>, of: Option<Vec<Name>>) -> Definition {
    let mut function = tokens.definition(of);
    function.is_planned = is_planned(tokens);
    if reads_otherwise(tokens) {
        function.hazards |= Body::opaque().hazards;
    }
    function
}

/// Whether the function is in SQL or else in PL/pgSQL; `None` if it is in another language.
fn language(tokens: &Tokens<'_>) -> Option<bool> {
    let at = tokens.find(0, b"language")? + 1;
    let name = match tokens.0.get(at)? {
        Tok::Word(name) | Tok::Quoted(name) => name,
        Tok::Literal(literal) => &string(literal)?.to_ascii_lowercase().into(),
        Tok::Other(_) => return None,
    };
    // An argument may have this name.
    let is_certain = tokens.find(at, b"language").is_none();
    match &**name {
        b"sql" if is_certain => Some(true),
        b"plpgsql" if is_certain => Some(false),
        _ => None,
    }
}

/// All strings of the statement, of which one is the body.
fn bodies(tokens: &Tokens<'_>, is_sql: bool) -> Body {
    let mut all = Body::default();
    let mut count = 0;
    for token in tokens.0 {
        let Tok::Literal(literal) = token else {
            continue;
        };
        if literal.first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let Some(source) = string(literal) else {
            return Body::opaque();
        };
        count += 1;
        let body = Body::read(&source, is_sql, |_| false);
        all.hazards |= body.hazards;
        all.names.extend(body.names);
    }
    match count {
        0 => Body::opaque(),
        _ => all,
    }
}

/// The value of a plain or a dollar-quoted string.
fn string(literal: &[u8]) -> Option<Vec<u8>> {
    if literal.starts_with(b"$") {
        let tag = memchr::memchr(b'$', literal.get(1..)?)? + 2;
        let end = literal.len().checked_sub(tag)?;
        return literal.get(tag..end).map(<[u8]>::to_vec);
    }
    let inner = literal.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut value = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        // What is no pair goes on behind white space.
        if *byte == b'\'' && bytes.next() != Some(&b'\'') {
            return None;
        }
        value.push(*byte);
    }
    Some(value)
}

#[cfg(test)]
#[path = "define_tests.rs"]
mod tests;
