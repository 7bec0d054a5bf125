//! What the body of a function leaves behind in the session that runs it.
//!
//! A body is read as a text is: by the verbs its statements begin with, and by what it calls. But
//! there is more that it could leave, because the server keeps it for the session, parsed
//! (`pl_comp.c`, `plancache.c`):
//!
//! - the types of its variables stay those that their names stood for first, whatever the search
//!   path says later. So these are the server's own;
//! - its constants stay what they were read as first, by the settings of then, or at the time of
//!   then (`'now'`). So its strings can be no dates, times or amounts, and no constant can be
//!   written out in a way that a setting decides, nor what is computed from constants alone;
//! - what the server says about a name or a precision when it parses them, it says once. So all
//!   names are short enough, and no time has a precision beyond six digits;
//! - the fields of a record stay of the types that they had when they were first looked at, and so
//!   do their collations (`setup_param_list` in `pl_exec.c`). So no variable is a record, and what
//!   has arguments that may be some is for the caller to know;
//! - portals without a name are numbered, and a loop over a query opens one.
//!
//! Whatever else is kept, which types and functions the catalog has, may be relied on as long as
//! the catalog has not changed. That is for the caller to see to.

use super::is_in;
use super::known::{is_draw, is_known, is_sight};
use super::reader::NAMING;
use super::words::{COMPUTED, LEVELS, OPTIONS, OTHER_VERBS, PORTALS, STATEMENTS, TYPES, VERBS};
use super::words::{VALUES, WRITTEN_OUT};
use crate::sql::body::string;
use crate::sql::hazard::{self, Hazards};
use crate::sql::words::{Item, Token, Words};

/// The longest body that is read, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// How far arguments are looked at, in bytes. Calls may stand in calls, so that is often.
const MAX_ARGUMENTS: usize = 256;

/// The longest name that the server does not cut off, in bytes.
const MAX_NAME: usize = 63;

/// What a body does that leaves nothing by itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// The functions that it calls, other than those of `pg_catalog` that are known to leave
    /// nothing; in lower case.
    pub calls: Vec<Box<[u8]>>,
    /// The types of its variables, in lower case. They are meant to be those of `pg_catalog`.
    pub types: Vec<Box<[u8]>>,
    /// It may write to what it names.
    pub writes: bool,
    /// It is in SQL and computes what settings decide how to write out. The server may put it in
    /// the place of its call, where its arguments may be constants.
    pub computes: bool,
}

/// What the body with this source text does, in SQL itself if `is_sql`, or else in PL/pgSQL;
/// `None` if it may leave something.
#[must_use]
pub fn deeds(source: &[u8], is_sql: bool) -> Option<Deeds> {
    if source.len() > MAX_BODY {
        return None;
    }
    let mut reader = Reader {
        words: Words::new(source),
        is_sql,
        at: At::Start { is_sure: true },
        ..Reader::default()
    };
    while reader.step()? {}
    Some(reader.deeds)
}

/// Where in a body the reader is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum At {
    /// Before a statement, or maybe only before the result of a CASE if it is not sure.
    Start { is_sure: bool },
    /// In the name of a label.
    Label,
    /// Before a declaration.
    Declaration,
    /// Behind the name of a variable, in its type.
    Type,
    /// In what an assignment assigns to.
    Target,
    /// Behind a name, which is called if a parenthesis follows.
    Name,
    /// Behind INTO, or a part of the name that follows it.
    Into,
    /// Behind the name that follows INTO, whose columns may be next.
    Named,
    /// Behind anything else.
    #[default]
    Other,
}

/// What was read last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last<'a> {
    #[default]
    Nothing,
    Word(&'a [u8]),
    Literal,
    Byte(u8),
}

impl Last<'_> {
    fn is(self, word: &str) -> bool {
        matches!(self, Last::Word(last) if last.eq_ignore_ascii_case(word.as_bytes()))
    }
}

#[derive(Default)]
struct Reader<'a> {
    words: Words<'a>,
    is_sql: bool,
    at: At,
    /// Declarations are being read.
    declares: bool,
    /// Parentheses that are open.
    depth: usize,
    /// The last three tokens, the last one first.
    last: [Last<'a>; 3],
    /// An equals sign that was read last is that of an assignment.
    assigned: bool,
    /// In a RAISE.
    raises: bool,
    /// In the head of a FOR loop that has not been seen to be one over numbers.
    is_over_query: bool,
    deeds: Deeds,
}

impl<'a> Reader<'a> {
    /// Reads one token. Returns false at the end, `None` if something may be left.
    fn step(&mut self) -> Option<bool> {
        let token = self.words.token();
        let last = match token {
            Token::Literal(literal) => {
                self.literal(literal)?;
                Last::Literal
            }
            Token::Item(Item::Word(word)) => {
                match self.words.is_quoted() {
                    true => self.quoted(word)?,
                    false => self.word(word)?,
                }
                Last::Word(word)
            }
            Token::Item(Item::Other(byte)) => {
                self.other(byte)?;
                Last::Byte(byte)
            }
            Token::Item(Item::End) => return Some(false),
            Token::Item(Item::Escaped | Item::Broken) => return None,
        };
        self.last = [last, self.last[0], self.last[1]];
        Some(true)
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        match self.at {
            At::Start { is_sure: true } | At::Label | At::Declaration => return None,
            // How long or precise it is.
            At::Type => return literal.iter().all(u8::is_ascii_digit).then_some(()),
            _ => {}
        }
        if self.is_zone() && !is_zone(literal) {
            return None;
        }
        let is_number = literal.first().is_some_and(u8::is_ascii_digit);
        if !is_number && !self.is_message() {
            is_text(literal).then_some(())?;
        }
        self.at = At::Other;
        Some(())
    }

    /// Whether a string here is the name of a time zone.
    fn is_zone(&self) -> bool {
        let [last, before, _] = self.last;
        last.is("zone") || last == Last::Byte(b'(') && before.is("timezone")
    }

    /// Whether a string here is a text of a RAISE, or a state.
    fn is_message(&self) -> bool {
        let [last, before, _] = self.last;
        if last.is("sqlstate") && (before.is("when") || before.is("or") || self.raises) {
            return true;
        }
        let is_option = last == Last::Byte(b'=')
            && OPTIONS.iter().any(|one| before.is(one))
            && matches!(self.words.peek(), Some(b',' | b';'));
        self.raises && (is_option || LEVELS.iter().any(|level| last.is(level)))
    }

    /// A quoted name, which is never a keyword.
    fn quoted(&mut self, word: &[u8]) -> Option<()> {
        self.named(word)?;
        if is_in(&WRITTEN_OUT, word) {
            return None;
        }
        self.at = match self.at {
            At::Start { is_sure } => self.target(is_sure)?,
            At::Label => At::Label,
            At::Declaration => At::Type,
            At::Type => return None,
            At::Target => At::Target,
            At::Into => At::Named,
            At::Name | At::Named | At::Other => At::Name,
        };
        Some(())
    }

    /// What any name must be for nothing to be left.
    fn named(&mut self, word: &[u8]) -> Option<()> {
        self.deeds.writes |= is_in(&super::WRITES, word);
        let is_harmless = word.len() <= MAX_NAME
            && !hazard::builtin(word).has(Hazards::LEAVES)
            && !is_in(&PORTALS, word);
        is_harmless.then_some(())
    }

    fn word(&mut self, word: &'a [u8]) -> Option<()> {
        self.named(word)?;
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if is("null") {
            self.null().then_some(())?;
        }
        match self.at {
            At::Label => return Some(()),
            At::Declaration => {
                self.declaration(word);
                return Some(());
            }
            At::Type => return self.type_word(word),
            At::Target => return Some(()),
            At::Start { is_sure } => return self.start(word, is_sure),
            At::Into => {
                self.at = if is("strict") { At::Into } else { At::Named };
                return Some(());
            }
            At::Name | At::Named | At::Other => {}
        }
        // The results of CASE begin with the same words, so not all of it is a statement.
        if !self.is_sql && (is("then") || is("else") || is("loop")) {
            if is("loop") && std::mem::take(&mut self.is_over_query) {
                return None;
            }
            self.at = At::Start {
                is_sure: is("loop"),
            };
            return Some(());
        }
        if is_in(&WRITTEN_OUT, word) {
            return None;
        }
        self.at = if is("into") { At::Into } else { At::Name };
        Some(())
    }

    /// The first word of a statement.
    fn start(&mut self, word: &'a [u8], is_sure: bool) -> Option<()> {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if self.is_sql {
            self.at = At::Name;
            return is_in(&VERBS, word).then_some(());
        }
        if is("begin") || is("loop") {
            let is_over_query = std::mem::take(&mut self.is_over_query);
            (self.declares, self.at) = (false, At::Start { is_sure: true });
            return (!is_over_query).then_some(());
        } else if is("else") {
            self.at = At::Start { is_sure };
        } else if is("declare") {
            (self.declares, self.at) = (true, At::Declaration);
            // It may be the name of a column.
            return is_sure.then_some(());
        } else if is_in(&VERBS, word) || is_in(&STATEMENTS, word) {
            self.raises = is("raise");
            self.is_over_query = is("for");
            self.at = At::Name;
        } else {
            let may_be_verb = is_in(&OTHER_VERBS, word) || is_in(&WRITTEN_OUT, word);
            self.at = self.target(is_sure || may_be_verb)?;
        }
        Some(())
    }

    /// A name that begins a statement: something is assigned to it, or if it is not sure that it
    /// is a statement, it is a value.
    fn target(&self, is_sure: bool) -> Option<At> {
        let is_assigned = matches!(self.words.peek()?, b':' | b'=' | b'.' | b'[');
        match (is_assigned, is_sure) {
            (true, true) => Some(At::Target),
            // `CASE … THEN a = NULL`, `THEN f(…)`
            (_, false) => Some(At::Name),
            (false, true) => None,
        }
    }

    fn declaration(&mut self, word: &[u8]) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if is("begin") {
            (self.declares, self.at) = (false, At::Start { is_sure: true });
        } else if !is("declare") {
            self.at = At::Type;
        }
    }

    fn type_word(&mut self, word: &[u8]) -> Option<()> {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if is("default") || is("alias") {
            self.at = At::Other;
            return Some(());
        }
        self.deeds.types.push(word.to_ascii_lowercase().into());
        is_in(&TYPES, word).then_some(())
    }

    /// Whether a NULL here is compared with nothing: `a = NULL` may mean `a IS NULL`.
    fn null(&self) -> bool {
        if self.words.peek() == Some(b'=') {
            return false;
        }
        let [last, target, before] = self.last;
        if last == Last::Byte(b'(') {
            // `a = (NULL)`, `(NULL) = a`
            return matches!(target, Last::Word(_)) && self.words.peek() != Some(b')');
        }
        if last != Last::Byte(b'=') || self.assigned {
            return true;
        }
        match target {
            // `:=`, and others that are no equals sign
            Last::Byte(b':' | b'<' | b'>' | b'!') => true,
            // `UPDATE t SET a = NULL, b = NULL`
            Last::Word(_) if self.depth == 0 => before.is("set") || before == Last::Byte(b','),
            _ => false,
        }
    }

    fn other(&mut self, byte: u8) -> Option<()> {
        let before = self.at;
        self.assigned = matches!(before, At::Target | At::Type) && byte == b'=';
        match byte {
            b';' => {
                let is_sure = true;
                (self.depth, self.raises, self.is_over_query) = (0, false, false);
                self.at = match self.declares {
                    true => At::Declaration,
                    false => At::Start { is_sure },
                };
                return Some(());
            }
            b'(' => self.depth += 1,
            b')' => self.depth = self.depth.saturating_sub(1),
            b'.' if self.depth == 0 && self.last[0] == Last::Byte(b'.') => {
                self.is_over_query = false;
            }
            // Powers and roots are double precision.
            b'^' if !matches!(self.last[0], Last::Word(word) if is_varying(word)) => return None,
            b'/' if self.last[0] == Last::Byte(b'|') => return None,
            _ => {}
        }
        self.at = match (before, byte) {
            (At::Start { is_sure: true }, b'<') if !self.is_sql => At::Label,
            // `(SELECT …)`
            (At::Start { .. }, b'(') if self.is_sql => before,
            (At::Start { is_sure: true } | At::Declaration, _) => return None,
            (At::Label, b'>') if self.last[0] == Last::Byte(b'>') => At::Start { is_sure: true },
            (At::Label, b'<' | b'>') => At::Label,
            (At::Label, _) => return None,
            (At::Type, b':' | b'=') => At::Other,
            (At::Type, b'(') if self.is_precise() => return None,
            (At::Type, b'(' | b')' | b',' | b'[' | b']') => At::Type,
            (At::Type, _) => return None,
            (At::Target, b'=') => At::Other,
            // `a.b[f(1)]`: what is called there is not read.
            (At::Target, b'(') => return None,
            (At::Target, _) => At::Target,
            (At::Named, b'.') => At::Into,
            (At::Name, b'(') => {
                self.call()?;
                At::Other
            }
            _ => At::Other,
        };
        Some(())
    }

    /// Whether the parenthesis is about a precision that the server may warn of, which it does when
    /// it reads the function for the first time.
    fn is_precise(&self) -> bool {
        is_time(self.last[0]) && !is_usual_precision(self.words.rest())
    }

    /// A parenthesis behind a name.
    fn call(&mut self) -> Option<()> {
        let Last::Word(name) = self.last[0] else {
            return Some(());
        };
        if self.is_precise() {
            return None;
        }
        if is_in(&COMPUTED, name) {
            is_varied(self.words.rest()).then_some(())?;
            self.deeds.computes |= self.is_sql;
        }
        let is_clause = !self.is_sql && is_in(&STATEMENTS, name)
            || NAMING.iter().any(|word| self.last[1].is(word));
        // What tells of the session is nothing to be run unseen.
        let is_told = is_known(name) && !is_sight(name);
        if !is_clause && !is_told && !is_draw(name) {
            self.deeds.calls.push(name.to_ascii_lowercase().into());
        }
        Some(())
    }
}

/// Whether a parenthesis is closed behind one digit, which is a precision that the server does not
/// warn of (`MAX_TIMESTAMP_PRECISION`).
fn is_usual_precision(text: &[u8]) -> bool {
    let [digit, rest @ ..] = text.trim_ascii_start() else {
        return false;
    };
    matches!(digit, b'0'..=b'6') && rest.trim_ascii_start().first() == Some(&b')')
}

/// Whether a parenthesis behind this is about the precision of a time.
fn is_time(last: Last<'_>) -> bool {
    const TIMES: [&str; 9] = [
        "current_time",
        "current_timestamp",
        "interval",
        "localtime",
        "localtimestamp",
        "time",
        "timestamp",
        "timestamptz",
        "timetz",
    ];
    matches!(last, Last::Word(word) if is_in(&TIMES, word))
}

/// Whether this is the name of a time zone, and not one that a setting decides about, as it does
/// about `EST` (`timezone_abbreviations`).
fn is_zone(literal: &[u8]) -> bool {
    string(literal).is_some_and(|name| name.contains(&b'/') || is_in(&["gmt", "utc"], &name))
}

/// Whether this may be the name of a variable or of a column.
fn is_varying(word: &[u8]) -> bool {
    !is_in(&TYPES, word) && !is_in(&VALUES, word)
}

/// Whether arguments, which begin here, may differ from call to call: one of them may have a
/// variable or a column in it.
fn is_varied(text: &[u8]) -> bool {
    let mut words = Words::new(text.get(..MAX_ARGUMENTS).unwrap_or(text));
    let mut open = 1;
    while open > 0 {
        match words.next() {
            Item::Word(word) if words.peek() != Some(b'(') && is_varying(word) => return true,
            Item::Other(b'$') => return true,
            Item::Other(b'(') => open += 1,
            Item::Other(b')') => open -= 1,
            Item::Word(_) | Item::Other(_) => {}
            Item::Escaped | Item::Broken | Item::End => return false,
        }
    }
    false
}

/// Whether a string means the same whatever the settings are, and at any time: it has no digits,
/// none of the words that stand for a moment, and no NULL that might be an element of an array.
fn is_text(literal: &[u8]) -> bool {
    const MOMENTS: [&str; 5] = ["now", "null", "today", "tomorrow", "yesterday"];
    let Some(value) = string(literal) else {
        return false;
    };
    let mut words = value.split(|byte| !byte.is_ascii_alphabetic());
    let is_plain = |byte: &u8| !byte.is_ascii_digit() && *byte != b'\\';
    value.iter().all(is_plain) && !words.any(|word| is_in(&MOMENTS, word))
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
