//! The statements that move a session, word by word.

mod characteristics;

use super::super::words::{Item, Token, Words};
use super::{Assignment, Move, Part, UNLISTEN, part};

/// The most statements of one text that are read.
pub(super) const MAX_PARTS: usize = 16;

/// The most bytes of an identifier that the server looks at.
pub(super) const MAX_NAME: usize = 63;

/// The forms in which a change is written.
const ASSIGNED: u8 = b'=';
const SPECIAL: u8 = b' ';
const CALLED: u8 = b'(';
pub(super) const RESET: u8 = b'r';

/// The words of the modes with which a transaction may begin. A serializable one is another matter.
const MODES: [&str; 8] = [
    "isolation",
    "level",
    "read",
    "committed",
    "uncommitted",
    "repeatable",
    "only",
    "write",
];

fn is(word: &[u8], lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower.as_bytes())
}

/// The tokens of a text.
pub(super) struct Reader<'a> {
    words: Words<'a>,
    text: &'a [u8],
    size: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            words: Words::new(text),
            size: text.len(),
            text,
        }
    }

    /// The next word, if it is one without quotes.
    fn keyword(&mut self) -> Option<&'a [u8]> {
        match self.words.token() {
            Token::Item(Item::Word(word)) if !self.words.is_quoted() => Some(word),
            _ => None,
        }
    }

    fn expect(&mut self, word: &str) -> Option<()> {
        self.keyword().filter(|found| is(found, word)).map(drop)
    }

    fn byte(&mut self, wanted: u8) -> Option<()> {
        match self.words.token() {
            Token::Item(Item::Other(byte)) if byte == wanted => Some(()),
            _ => None,
        }
    }

    /// The word that comes next, which is not taken.
    fn peek(&self) -> Option<&'a [u8]> {
        self.fork().keyword()
    }

    /// Takes this word, if it comes next.
    fn skip(&mut self, word: &str) -> bool {
        let is_next = self.peek().is_some_and(|next| is(next, word));
        is_next && self.keyword().is_some()
    }

    /// The same place, to look further without going there.
    pub(super) fn fork(&self) -> Self {
        Reader {
            words: Words::new(self.words.rest()),
            ..*self
        }
    }

    /// A statement up to its end.
    pub(super) fn statement(&mut self) -> Option<Move> {
        let verb = self.keyword()?;
        Some(if is(verb, "set") {
            self.set()?
        } else if is(verb, "select") {
            self.calls()?
        } else if is(verb, "reset") {
            self.reset()?
        } else if is(verb, "discard") {
            self.expect("all")?;
            Move::DiscardAll
        } else if is(verb, "deallocate") {
            self.value()?;
            Move::Nothing
        } else if is(verb, "savepoint") {
            Move::Savepoint(self.identifier()?)
        } else if is(verb, "release") {
            Move::Release(self.savepoint()?)
        } else if is(verb, "commit") || is(verb, "end") {
            self.work();
            self.no_chain()?;
            Move::Commit
        } else if is(verb, "rollback") || is(verb, "abort") {
            self.work();
            match self.skip("to") {
                true => Move::RollbackTo(self.savepoint()?),
                false => {
                    self.no_chain()?;
                    Move::Rollback
                }
            }
        } else {
            return None;
        })
    }

    /// A statement up to its end that ends something of the session's but no setting.
    pub(super) fn quiet(&mut self) -> Option<Part> {
        let verb = self.keyword()?;
        let tag = if is(verb, "close") {
            self.expect("all")?;
            "CLOSE CURSOR ALL"
        } else if is(verb, "unlisten") {
            self.byte(b'*')?;
            UNLISTEN
        } else if is(verb, "discard") {
            match self.keyword()? {
                word if is(word, "sequences") => "DISCARD SEQUENCES",
                word if is(word, "plans") => "DISCARD PLANS",
                word if is(word, "temp") || is(word, "temporary") => {
                    return Some(Part::DiscardTemp);
                }
                _ => return None,
            }
        } else if is(verb, "select") {
            if self.skip("pg_catalog") {
                self.byte(b'.')?;
            }
            self.expect("pg_advisory_unlock_all")?;
            self.byte(b'(')?;
            self.byte(b')')?;
            "SELECT 1"
        } else {
            return None;
        };
        Some(Part::Quiet(tag))
    }

    /// The beginning of a transaction that is not serializable, up to the end of the statement.
    pub(super) fn begins(&mut self) -> Option<()> {
        let verb = self.keyword()?;
        if is(verb, "start") {
            self.expect("transaction")?;
        } else if is(verb, "begin") {
            self.work();
        } else {
            return None;
        }
        let is_mode = |word| MODES.iter().any(|mode| is(word, mode));
        loop {
            match self.words.peek()? {
                0 | b';' => return Some(()),
                b',' => self.byte(b',')?,
                _ => drop(self.keyword().filter(|word| is_mode(word))?),
            }
        }
    }

    /// Behind the beginning of a transaction and a semicolon: what is set in it, up to the end of
    /// the text.
    pub(super) fn inside(&mut self) -> Option<Move> {
        let mut parts = vec![Part::Begin];
        loop {
            let next = part(self.statement()?)?;
            if parts.len() >= MAX_PARTS {
                return None;
            }
            parts.push(next);
            if self.is_at_end()? {
                return Some(Move::Several(parts));
            }
        }
    }

    /// The statements behind the first one, up to the end of the text.
    pub(super) fn several(&mut self, first: Part) -> Option<Move> {
        let mut parts = vec![first];
        while !self.is_at_end()? {
            let mut quiet = self.fork();
            let next = match quiet.quiet() {
                Some(part) => {
                    *self = quiet;
                    part
                }
                None => part(self.statement()?)?,
            };
            if parts.len() >= MAX_PARTS {
                return None;
            }
            parts.push(next);
        }
        Some(Move::Several(parts))
    }

    /// `[WORK | TRANSACTION]`
    fn work(&mut self) {
        if !self.skip("work") {
            self.skip("transaction");
        }
    }

    /// `[AND NO CHAIN]`. With a chain another transaction begins at once.
    fn no_chain(&mut self) -> Option<()> {
        if self.skip("and") {
            self.expect("no")?;
            self.expect("chain")?;
        }
        Some(())
    }

    /// Behind a statement: whether nothing follows but semicolons. They are taken, of which there
    /// must be one if another statement follows.
    pub(super) fn is_at_end(&mut self) -> Option<bool> {
        let mut is_next = false;
        loop {
            match self.words.peek()? {
                0 => return Some(true),
                b';' => is_next = self.byte(b';').is_some(),
                _ => return is_next.then_some(false),
            }
        }
    }

    /// Whether the statement ends here.
    fn is_at_statements_end(&self) -> Option<bool> {
        self.words.peek().map(|byte| matches!(byte, 0 | b';'))
    }

    /// `[,]`
    fn skips_comma(&mut self) {
        if self.words.peek() == Some(b',') {
            self.byte(b',');
        }
    }

    /// `[SAVEPOINT] name`
    fn savepoint(&mut self) -> Option<Box<[u8]>> {
        if self.skip("savepoint") && matches!(self.words.peek()?, 0 | b';') {
            return Some((*b"savepoint").into());
        }
        self.identifier()
    }

    /// An identifier as the server folds it. Beyond ASCII that depends on the server's locale.
    fn identifier(&mut self) -> Option<Box<[u8]>> {
        let Token::Item(Item::Word(word)) = self.words.token() else {
            return None;
        };
        if !word.is_ascii() || word.len() > MAX_NAME {
            return None;
        }
        match self.words.is_quoted() {
            true => (!word.contains(&b'"')).then(|| word.into()),
            false => Some(word.to_ascii_lowercase().into()),
        }
    }

    /// The name of a setting, of one part or more, whose first part is this word.
    fn name(&mut self, first: &[u8]) -> Option<Box<[u8]>> {
        let mut name = first.to_ascii_lowercase();
        while self.words.peek()? == b'.' {
            self.byte(b'.')?;
            name.push(b'.');
            name.extend(self.identifier()?.to_ascii_lowercase());
        }
        is_plain(&name).then(|| name.into())
    }

    /// Everything up to the end of the statement, as it is written.
    fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at();
        loop {
            let end = self.at();
            if matches!(self.words.peek()?, 0 | b';') {
                return Some(self.between(start, end));
            }
            match self.words.token() {
                Token::Item(Item::Broken | Item::Escaped | Item::End) => return None,
                Token::Item(_) | Token::Literal(_) => {}
            }
        }
    }

    fn at(&self) -> usize {
        self.size - self.words.rest().len()
    }

    fn between(&self, start: usize, end: usize) -> &'a [u8] {
        self.text.get(start..end).unwrap_or_default().trim_ascii()
    }

    /// Behind SET.
    fn set(&mut self) -> Option<Move> {
        let mut scope = None;
        let (word, is_quoted) = loop {
            let Token::Item(Item::Word(word)) = self.words.token() else {
                return None;
            };
            let is_quoted = self.words.is_quoted();
            if is_quoted || scope.is_some() {
                break (word, is_quoted);
            }
            if is(word, "local") {
                scope = Some(true);
            } else if is(word, "session") && !self.authorizes() {
                scope = Some(false);
            } else {
                break (word, is_quoted);
            }
        };
        if scope == Some(false) && !is_quoted && is(word, "characteristics") {
            return self.characteristics();
        }
        let is_local = scope.unwrap_or_default();
        let special = match is_quoted {
            true => None,
            false => self.special(word)?,
        };
        let (name, form) = match special {
            Some(Special::Setting(name)) => (name.as_bytes().into(), SPECIAL),
            Some(Special::Transaction) => {
                self.value()?;
                return Some(Move::Nothing);
            }
            None => {
                let name = self.name(word)?;
                let is_assigned = self.words.peek()? == b'=';
                if !(is_assigned && self.byte(b'=').is_some() || self.skip("to")) {
                    return None;
                }
                (name, ASSIGNED)
            }
        };
        let value = self.value()?;
        let change = change(name, form, value, is_local);
        Some(Move::Settings(vec![change]))
    }

    fn authorizes(&self) -> bool {
        self.peek().is_some_and(|next| is(next, "authorization"))
    }

    /// What this word behind SET stands for, if not for a setting of that name; `None` if that is
    /// not understood.
    fn special(&mut self, word: &[u8]) -> Option<Option<Special>> {
        let special = if is(word, "transaction") || is(word, "constraints") {
            Special::Transaction
        } else if is(word, "time") {
            self.expect("zone")?;
            Special::Setting("timezone")
        } else if is(word, "session") {
            self.expect("authorization")?;
            Special::Setting("session_authorization")
        } else if is(word, "names") {
            Special::Setting("client_encoding")
        } else if is(word, "schema") {
            Special::Setting("search_path")
        } else if is(word, "role") && !self.assigns() {
            Special::Setting("role")
        } else if ["characteristics", "xml", "local", "catalog"]
            .iter()
            .any(|other| is(word, other))
        {
            return None;
        } else {
            return Some(None);
        };
        Some(Some(special))
    }

    fn assigns(&self) -> bool {
        self.words.peek() == Some(b'=') || self.peek().is_some_and(|next| is(next, "to"))
    }

    /// Behind RESET.
    fn reset(&mut self) -> Option<Move> {
        let Token::Item(Item::Word(word)) = self.words.token() else {
            return None;
        };
        let is_quoted = self.words.is_quoted();
        let name: Box<[u8]> = if is_quoted {
            self.name(word)?
        } else if is(word, "all") {
            return Some(Move::ResetAll);
        } else if is(word, "time") {
            self.expect("zone")?;
            (*b"timezone").into()
        } else if is(word, "session") {
            self.expect("authorization")?;
            (*b"session_authorization").into()
        } else {
            self.name(word)?
        };
        Some(Move::Settings(vec![change(name, RESET, b"", false)]))
    }

    /// Behind SELECT: calls of `set_config` with strings, and nothing else.
    fn calls(&mut self) -> Option<Move> {
        let mut changes = Vec::new();
        loop {
            if self.skip("pg_catalog") {
                self.byte(b'.')?;
            }
            self.expect("set_config")?;
            self.byte(b'(')?;
            let name = self.string()?;
            self.byte(b',')?;
            let value = self.string()?;
            self.byte(b',')?;
            let flag = self.keyword()?;
            let is_local = is(flag, "true");
            if !is_local && !is(flag, "false") {
                return None;
            }
            self.byte(b')')?;
            let name = name.get(1..name.len().checked_sub(1)?)?;
            if !is_plain(name) {
                return None;
            }
            let name = name.to_ascii_lowercase().into();
            changes.push(Assignment {
                is_call: true,
                ..change(name, CALLED, value, is_local)
            });
            if self.words.peek()? != b',' {
                break;
            }
            self.byte(b',')?;
        }
        Some(Move::Settings(changes))
    }

    /// A string between two quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        match self.words.token() {
            Token::Literal(literal) if literal.starts_with(b"'") => Some(literal),
            _ => None,
        }
    }
}

/// What a word behind SET may stand for.
enum Special {
    Setting(&'static str),
    Transaction,
}

fn change(name: Box<[u8]>, form: u8, value: &[u8], is_local: bool) -> Assignment {
    Assignment {
        name,
        to: [&[form], value].concat().into(),
        is_local,
        is_call: false,
    }
}

/// Whether all of the name is what names of settings are made of.
fn is_plain(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
    !name.is_empty() && name.iter().all(is_part)
}
