//! What a text leaves behind in its session that a fresh login would not find there.
//!
//! A server connection whose client has left may serve the next one only if nothing can be told
//! from what the first has done. So here is no list of what leaves something, which grows with each
//! version of the server and each extension, but of what does not: a few verbs, and the functions
//! of `pg_catalog` that only compute or read. A call of anything else may leave anything, and so
//! may a name behind which a user's function runs, which is for the caller to know.

mod body;
mod copying;
mod known;
mod passing;
pub mod prepared;
mod reader;
mod upkeep;
mod words;

use super::effect::Effect;
use super::hazard::Hazards;
use super::moves::{self, Assignment, Move, Part};
use super::settings;
use super::survey::{ANY_NAME, Survey};
use super::words::{Item, Token, Words};
pub use body::{Deeds, deeds};
pub use known::functions;
use known::is_known;
use reader::Reader;
use std::ops::{BitOr, BitOrAssign};
use upkeep::Upkeep;

/// What a text leaves behind: nothing, what a reset takes away, or anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residue(u16);

impl Residue {
    /// Nothing.
    pub const NOTHING: Self = Self(0);
    /// Values of sequences that it has drawn: `currval` and `lastval` would tell them. DISCARD
    /// SEQUENCES takes them away.
    pub const SEQUENCES: Self = Self(1);
    /// Settings, of those that RESET ALL takes back to what they were at the login.
    pub const SETTINGS: Self = Self(1 << 1);
    /// Locks of the session (`pg_advisory_lock`), which one function gives back.
    pub const LOCKS: Self = Self(1 << 2);
    /// What the server keeps of functions that have run. Nobody can tell as long as the catalog
    /// does not change, and nothing takes it away.
    pub const KEPT: Self = Self(1 << 3);
    /// Nothing, but its client has asked which session it is, or what others see of it.
    pub const SEEN: Self = Self(1 << 4);
    /// Settings, of those that are the others', too, which decide how the server writes names.
    pub const NAMES: Self = Self(1 << 5);
    /// What the server keeps of functions in PL/pgSQL that have run for the first time: under which
    /// names, as they were written then, messages speak of them (`plpgsql_compile_callback` in
    /// `pl_comp.c`). Nobody can tell if names were written then as a login has them written.
    pub const COMPILED: Self = Self(1 << 6);
    /// What is left by functions that nobody can tell.
    pub const OF_FUNCTIONS: Self = Self(Self::KEPT.0 | Self::COMPILED.0);
    /// Nothing, as far as it is known what draws from sequences when it is written: it has written.
    pub const WROTE: Self = Self(1 << 7);
    /// Channels that it listens to, which UNLISTEN has it forget.
    pub const CHANNELS: Self = Self(1 << 8);
    /// Cursors that outlive their transactions (`WITH HOLD`), which CLOSE ALL closes. Their queries
    /// run when the transaction ends.
    pub const CURSORS: Self = Self(1 << 9);
    /// Statements that the client has prepared, in either protocol, which are dropped one by one.
    pub const STATEMENTS: Self = Self(1 << 10);
    /// Nothing, but it may take away what was left: locks, channels, cursors or statements.
    pub const UNDOES: Self = Self(1 << 11);
    /// Who the session is (`role`, `session_authorization`). RESET ALL leaves both as they are, and
    /// a login may have begun as another role than it names.
    pub const ROLE: Self = Self(1 << 12);
    /// Settings that somebody has made up (`app.tenant`), of which nothing takes away that they are
    /// known.
    pub const MADE_UP: Self = Self(1 << 13);
    /// What a session may go on with that nothing takes away.
    const LASTING: Self = Self(Self::ROLE.0 | Self::MADE_UP.0);
    /// Anything.
    pub const ANYTHING: Self = Self(u16::MAX);

    /// Whether it may be anything.
    #[must_use]
    #[inline]
    pub const fn is_anything(self) -> bool {
        self.0 == u16::MAX
    }

    /// This without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// This and what `new` leaves in a session in which this is left: anything, if functions have
    /// run in it while names were not written as a login has them written, or may have, when a
    /// transaction has ended.
    #[must_use]
    pub const fn then(self, new: Self) -> Self {
        let all = Self(self.0 | new.0);
        match all.has(Self::NAMES) && (new.has(Self::COMPILED) || all.has(Self::CURSORS)) {
            true => Self::ANYTHING,
            false => all.but(Self::COMPILED),
        }
    }

    /// This without `other`, unless it is anything.
    #[must_use]
    pub const fn but(self, other: Self) -> Self {
        match self.is_anything() {
            true => self,
            false => self.without(other),
        }
    }

    /// Whether some of it nothing takes away, so that the session can serve nobody else.
    #[must_use]
    #[inline]
    pub const fn stays(self) -> bool {
        self.has(Self::LASTING)
    }

    /// Whether some of `other` is left.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl Default for Residue {
    /// That of what is not known.
    fn default() -> Self {
        Self::ANYTHING
    }
}

impl BitOr for Residue {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Residue {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// When using a name may run a function of a user's, or whatever else leaves something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaves {
    /// Never.
    #[default]
    Nothing,
    /// When a function is run whose body uses it: the server may keep there what was computed with
    /// the settings of then.
    InBodies,
    /// When it is written: a trigger runs then, or a default is computed.
    WhenWritten,
    /// Whenever it is used.
    Always,
}

/// When using a name may run a function of a user's in PL/pgSQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compiles {
    /// Never.
    #[default]
    Nothing,
    /// When it is written: a trigger runs then, or a default is computed.
    WhenWritten,
    /// Whenever it is used.
    Always,
}

impl Compiles {
    /// Whether it may be run by what writes, or does not.
    #[must_use]
    pub fn by(self, writes: bool) -> bool {
        self == Self::Always || writes && self == Self::WhenWritten
    }
}

/// Knows what the objects leave that users define.
pub trait Remains {
    /// When using this name may leave anything, which is written as in the text, without quotes.
    fn leaves(&self, name: &[u8]) -> Leaves;

    /// Whether writing what has this name, which is written so, may draw numbers from sequences.
    fn draws(&self, name: &[u8]) -> bool;

    /// Whether what is called by this name are functions of users that leave nothing, and no
    /// others.
    fn is_harmless(&self, name: &[u8]) -> bool;

    /// Whether a text may run the body of a function.
    fn has_bodies(&self) -> bool;

    /// When using this name may run a function in PL/pgSQL.
    fn compiles(&self, name: &[u8]) -> Compiles;

    /// Whether a function of a user's may run whenever something is defined.
    fn fires(&self) -> bool;
}

/// Hazards with which a name may leave anything. Those that only leave something are looked up name
/// by name.
const LEAVING: [Hazards; 3] = [Hazards::ANYTHING, Hazards::SETTINGS, Hazards::FOREIGN];

/// What `text` leaves behind, of which this is the survey.
#[must_use]
pub fn residue(text: &[u8], survey: &Survey, known: &impl Remains) -> Residue {
    if let Some(does) = moves::read(text)
        && let Some(residue) = of_move(&does, text, known)
    {
        return residue;
    }
    if survey.effect == Effect::Catalog && passing::is_restart(text) && !known.fires() {
        return Residue::SEQUENCES;
    }
    if survey.effect == Effect::Session && passing::stops_listening(text) {
        return Residue::UNDOES;
    }
    let mut residue = of_hazards(survey.hazards);
    if matches!(survey.effect, Effect::None | Effect::Catalog)
        && !survey.executes
        && let Some(upkeep) = upkeep::read(text)
    {
        return residue | of_upkeep(&upkeep, survey, known);
    }
    if residue.is_anything() || survey.executes || survey.effect > Effect::Isolation {
        return Residue::ANYTHING;
    }
    if known.has_bodies() {
        residue |= of_bodies(survey);
    }
    residue
        | match copying::read(text) {
            Some(copy) if copy.is_query => of_words(copy.what, Reader::default(), known, false),
            Some(copy) => of_words(copy.what, Reader::at_table(), known, copy.writes),
            None => of_words(text, Reader::default(), known, false),
        }
}

/// What a statement leaves behind that looks after objects, with what it runs of those it names. A
/// function in PL/pgSQL may run then with a search path that is nobody's (`RestrictSearchPath` in
/// `guc.c` of 17 and later), and be kept under the name that it has there.
fn of_upkeep(upkeep: &Upkeep<'_>, survey: &Survey, known: &impl Remains) -> Residue {
    if known.fires() {
        return Residue::ANYTHING;
    }
    let bodies = match known.has_bodies() {
        true => of_bodies(survey),
        false => Residue::NOTHING,
    };
    match *upkeep {
        Upkeep::Quiet => Residue::NOTHING,
        Upkeep::Rows(names) => match of_words(names, Reader::at_table(), known, true) {
            left if left.has(Residue::COMPILED) => Residue::ANYTHING,
            left => bodies | left,
        },
        // A name that is cut off may be that of anything.
        Upkeep::AllRows => match known.leaves(ANY_NAME) {
            Leaves::Always | Leaves::WhenWritten => Residue::ANYTHING,
            _ if known.compiles(ANY_NAME).by(true) => Residue::ANYTHING,
            Leaves::InBodies | Leaves::Nothing => bodies | Residue::WROTE,
        },
        Upkeep::Table { words, draws } => match names_leave(words, known) {
            true => Residue::ANYTHING,
            false if draws => Residue::SEQUENCES,
            false => Residue::NOTHING,
        },
    }
}

/// Whether one of the words is the name of something whose use may leave anything.
fn names_leave(text: &[u8], known: &impl Remains) -> bool {
    let mut words = Words::new(text);
    loop {
        match words.next() {
            Item::Word(word) if known.leaves(word) == Leaves::Always => return true,
            Item::Word(_) | Item::Other(_) => {}
            Item::Escaped | Item::Broken => return true,
            Item::End => return false,
        }
    }
}

/// What the words of a text leave, which writes if it `writes`, or if they say so.
fn of_words<'a>(
    text: &'a [u8],
    mut reader: Reader<'a>,
    known: &impl Remains,
    mut writes: bool,
) -> Residue {
    let mut residue = Residue::NOTHING;
    let mut words = Words::new(text);
    let asks = known.has_bodies();
    let mut strongest = Leaves::Nothing;
    let mut compiles = Compiles::Nothing;
    while !residue.is_anything() {
        residue |= match words.token() {
            Token::Literal(_) => reader.literal(),
            Token::Item(Item::Word(word)) => {
                strongest = strongest.max(known.leaves(word));
                writes |= is_in(&WRITES, word);
                if asks {
                    compiles = compiles.max(known.compiles(word));
                }
                match strongest == Leaves::Always || writes && strongest == Leaves::WhenWritten {
                    true => Residue::ANYTHING,
                    false => reader.word(word),
                }
            }
            Token::Item(Item::Other(byte)) => reader.other(byte, known),
            Token::Item(Item::End) => break,
            Token::Item(Item::Escaped | Item::Broken) => Residue::ANYTHING,
        };
    }
    if writes {
        residue |= Residue::WROTE;
        if draws(text, known) {
            residue |= Residue::SEQUENCES;
        }
    }
    match compiles.by(writes) {
        true => residue | Residue::COMPILED,
        false => residue,
    }
}

/// Whether a text that writes may draw numbers from sequences by that: it has the name of something
/// that does when it is written. What it calls by name is seen to elsewhere.
fn draws(text: &[u8], known: &impl Remains) -> bool {
    let mut words = Words::new(text);
    loop {
        match words.next() {
            Item::Word(word) if known.draws(word) => return true,
            Item::Word(_) | Item::Other(_) => {}
            Item::Escaped | Item::Broken => return true,
            Item::End => return false,
        }
    }
}

/// What a text leaves behind where functions of users have bodies: one that fetches may run what
/// another has declared.
#[must_use]
pub const fn of_bodies(survey: &Survey) -> Residue {
    match survey.fetches {
        true => Residue::OF_FUNCTIONS,
        false => Residue::KEPT,
    }
}

/// What a text leaves behind because of these hazards of the names in it.
#[must_use]
pub fn of_hazards(hazards: Hazards) -> Residue {
    let leaves = LEAVING.iter().any(|one| hazards.has(*one));
    if leaves || hazards.effect() > Effect::Isolation {
        return Residue::ANYTHING;
    }
    match hazards.has(Hazards::NOISY) {
        true => Residue::SEQUENCES,
        false => Residue::NOTHING,
    }
}

/// What a text leaves behind that changes settings, if it does nothing else.
fn of_move(does: &Move, text: &[u8], known: &impl Remains) -> Option<Residue> {
    let set = |changes: &[Assignment]| {
        let is_server =
            |change: &Assignment| !change.is_call || known.leaves(b"set_config") == Leaves::Nothing;
        let of = |change: &Assignment| match is_server(change) && !makes_schema(change) {
            true => of_setting(&change.name),
            false => Residue::ANYTHING,
        };
        changes
            .iter()
            .map(of)
            .fold(Residue::SETTINGS, Residue::bitor)
    };
    match does {
        Move::Settings(changes) => Some(set(changes)),
        Move::ResetAll => Some(Residue::SETTINGS),
        Move::Several(parts) => Some(parts.iter().fold(Residue::NOTHING, |all, one| {
            all | match one {
                Part::Settings(changes) => set(changes),
                Part::ResetAll => Residue::SETTINGS,
                // What is temporary has left anything, and keeps doing so.
                Part::Begin | Part::DiscardTemp => Residue::NOTHING,
                Part::Quiet(_) => Residue::UNDOES,
            }
        })),
        // What was prepared by the client is not followed.
        Move::DiscardAll => Some(Residue::UNDOES),
        Move::Nothing => passing::sets_constraints(text).then(|| match known.has_bodies() {
            true => Residue::OF_FUNCTIONS,
            false => Residue::NOTHING,
        }),
        Move::Commit
        | Move::Rollback
        | Move::RollbackTo(_)
        | Move::Savepoint(_)
        | Move::Release(_) => None,
    }
}

/// What setting this leaves. RESET ALL takes it back to what it was at the login, and leaves no
/// trace of it, but of who the session is, and of a name with a dot: that may be one that nobody
/// knew before, and from then on is known.
fn of_setting(name: &[u8]) -> Residue {
    const WHO: [&str; 2] = ["role", "session_authorization"];
    const OTHERS: [&str; 3] = ["*", "is_superuser", "seed"];
    match name {
        _ if is_in(&WHO, name) => Residue::SETTINGS | Residue::ROLE,
        _ if is_in(&OTHERS, name) || settings::is_of_transaction(name) => Residue::ANYTHING,
        _ if name.contains(&b'.') => Residue::SETTINGS | Residue::MADE_UP,
        _ if is_in(&NAMING_SETTINGS, name) => Residue::SETTINGS | Residue::NAMES,
        _ => Residue::SETTINGS,
    }
}

/// Whether the change may have the session look for names in its temporary schema, which whoever
/// asks for the path then makes if that stands first, and which stays (`namespace.c`,
/// `fetch_search_path`). Behind `U&` any character may escape others.
fn makes_schema(change: &Assignment) -> bool {
    const SCHEMA: &[u8] = b"pg_temp";
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\\' | b'&');
    let value: Vec<u8> = change.to.iter().copied().filter(is_part).collect();
    let is_named = |part: &[u8]| part.eq_ignore_ascii_case(SCHEMA);
    &*change.name == b"search_path"
        && (value.iter().any(|byte| matches!(byte, b'\\' | b'&'))
            || value.windows(SCHEMA.len()).any(is_named))
}

/// Whether the text, which has this effect, may change who may log in, or with which settings: it
/// has a word that roles, databases, rights, the server's configuration or event triggers are
/// changed with.
#[must_use]
pub fn is_about_logins(text: &[u8], effect: Effect) -> bool {
    const RELOAD: &str = "pg_reload_conf";
    const WORDS: [&str; 11] = [
        RELOAD, "database", "event", "grant", "group", "owned", "reassign", "revoke", "role",
        "system", "user",
    ];
    // Settings of a session are no others', whatever they are called.
    let wanted = match effect {
        Effect::Session => &WORDS[..1],
        _ => &WORDS,
    };
    let mut words = Words::new(text);
    loop {
        match words.next() {
            Item::Word(word) if is_in(wanted, word) => return true,
            Item::Word(_) | Item::Other(_) => {}
            Item::Escaped | Item::Broken => return true,
            Item::End => return false,
        }
    }
}

/// Settings that decide how the server writes the name of a function: with its schema, or in quotes
/// (`format_procedure` in `regproc.c`).
const NAMING_SETTINGS: [&str; 2] = ["quote_all_identifiers", "search_path"];

/// Words of statements that write: columns and triggers may draw from sequences unseen.
const WRITES: [&str; 5] = ["delete", "insert", "merge", "truncate", "update"];

/// Whether the function of this name is one of the server's own that nobody could tell to have run.
#[must_use]
pub fn is_known_call(name: &[u8]) -> bool {
    is_known(name)
}

fn is_in(list: &[&str], word: &[u8]) -> bool {
    list.iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
#[path = "residue_tests.rs"]
mod tests;
