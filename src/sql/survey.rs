//! What a query that is passed through may do to the session or the catalogs.
//!
//! Prepared statements go stale with a setting or a definition, so the caller must know when to
//! forget them. The answer comes from the words of the text and errs on the strong side: a verb
//! that is not known may do anything, and a name may stand for any object that has it. What these
//! objects do inside is for the caller to know: each name is looked up in the [`Hazards`] of the
//! database.

use super::body;
use super::effect::Effect;
use super::hazard::{self, Hazards};
use super::settings;
use super::words::{Item, Token, Words};

/// What a text may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The strongest effect of its statements, that of the objects it names included.
    pub effect: Effect,
    /// The hazards of the objects it names.
    pub hazards: Hazards,
    /// It may go on with a query that another text has opened (FETCH, MOVE).
    pub fetches: bool,
    /// It may run a statement that another text has prepared (EXECUTE).
    pub executes: bool,
    /// It prepares a statement or declares a cursor, so that what it names may run again.
    pub again: bool,
    /// It may name objects of users.
    pub names: bool,
    /// Names in it of relations that have partitions or children.
    pub partitioned: u32,
    /// It begins with INSERT.
    pub inserts: bool,
    /// It names a column that numbers the commands of transactions (`cmin`, `cmax`).
    pub counts: bool,
}

impl Survey {
    /// Whether it may read a relation that has partitions or children. What rows are inserted into
    /// is not read.
    #[must_use]
    pub const fn reads_partitions(&self) -> bool {
        self.partitioned > self.inserts as u32
    }
}

/// The strongest effect of the statements in `text`, as far as they name nothing that users define.
#[must_use]
pub fn effect(text: &[u8]) -> Effect {
    survey(text, &Builtins).effect
}

/// Knows the hazards of the objects that users define.
pub trait Known {
    /// The hazards of all objects of this name, which is written as in the text, without quotes.
    fn of(&self, name: &[u8]) -> Hazards;
}

/// Longer than any identifier: the server cuts off the end, and it may be the name of anything.
pub const ANY_NAME: &[u8] = &[b'x'; 64];

/// Knows nothing beside `pg_catalog`.
struct Builtins;

impl Known for Builtins {
    fn of(&self, _: &[u8]) -> Hazards {
        Hazards::NONE
    }
}

/// Reads the words of `text`, and looks each up in `known`.
#[must_use]
pub fn survey(text: &[u8], known: &impl Known) -> Survey {
    let mut words = Reader {
        words: Words::new(text),
        hazards: Hazards::NONE,
        fetches: false,
        executes: false,
        again: false,
        names: false,
        partitioned: 0,
        inserts: false,
        counts: false,
        is_blind: true,
        known,
    };
    let mut strongest = Effect::None;
    loop {
        let (effect, more) = statement(&mut words);
        strongest = strongest.max(effect);
        if !more {
            break;
        }
    }
    let hazards = words.hazards;
    Survey {
        effect: strongest.max(hazards.effect()),
        hazards,
        fetches: words.fetches || hazards.has(Hazards::FETCHES),
        executes: words.executes,
        again: words.again,
        names: words.names,
        partitioned: words.partitioned,
        inserts: words.inserts,
        counts: words.counts,
    }
}

/// Whether the text begins as a statement that reads or writes rows, of whose literals nothing is
/// read here.
#[must_use]
pub fn is_about_rows(text: &[u8]) -> bool {
    const VERBS: [&str; 4] = ["select", "insert", "update", "delete"];
    matches!(Words::new(text).next(), Item::Word(word) if VERBS.iter().any(|verb| is(word, verb)))
}

/// The words of `text`, each once and as an object of that name would be called: what is not quoted
/// in lower case.
#[must_use]
pub fn names(text: &[u8]) -> Vec<String> {
    let mut words = Words::new(text);
    let mut names = std::collections::BTreeSet::new();
    loop {
        match words.next() {
            Item::Word(word) => {
                let name = String::from_utf8_lossy(word);
                names.insert(name.to_lowercase());
                names.insert(name.replace("\"\"", "\""));
            }
            Item::Other(_) | Item::Escaped => {}
            Item::End | Item::Broken => return names.into_iter().collect(),
        }
    }
}

/// The words of a text, and what is known of those read so far.
struct Reader<'a, K> {
    words: Words<'a>,
    hazards: Hazards,
    fetches: bool,
    executes: bool,
    again: bool,
    names: bool,
    partitioned: u32,
    inserts: bool,
    counts: bool,
    /// Words are not looked up.
    is_blind: bool,
    known: &'a K,
}

impl<'a, K: Known> Reader<'a, K> {
    #[inline]
    fn next(&mut self) -> Item<'a> {
        let item = self.words.next();
        match item {
            // Of a verb that names no object nothing is looked up.
            _ if self.is_blind => {}
            Item::Word(word) => {
                self.names = true;
                let hazards = hazard::builtin(word) | self.known.of(word);
                self.partitioned += u32::from(hazards.has(Hazards::PARTITIONED));
                self.hazards |= hazards;
                self.counts |= word.len() == 4 && (is(word, "cmin") || is(word, "cmax"));
            }
            Item::Escaped => (self.names, self.hazards) = (true, Hazards::ALL),
            // Operators of users have no name to be looked up by.
            Item::Other(byte) if OPERATORS.contains(&byte) => {
                self.names = true;
                self.hazards |= self.known.of(b"");
            }
            _ => {}
        }
        item
    }
}

/// What operators are made of (`scan.l`).
const OPERATORS: &[u8] = b"*+-/<>=~!@#%^&|`?";

/// What the command tag of a statement tells when it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tagged {
    /// That it has run code, which may have done anything.
    Code,
    /// That it has changed a catalog, or may have.
    Catalog,
}

/// What the command tag of this statement tells. That of `SELECT INTO` tells nothing.
#[must_use]
pub fn tagged(text: &[u8]) -> Option<Tagged> {
    match Words::new(text).next() {
        Item::Word(verb) if is(verb, "do") || is(verb, "call") => Some(Tagged::Code),
        Item::Word(verb) => {
            matches!(Verb::of(verb), Verb::Catalog | Verb::Create).then_some(Tagged::Catalog)
        }
        _ => None,
    }
}

/// The effect of the statement at `words`, which is left behind its semicolon, and whether there
/// may be another one.
fn statement<K: Known>(words: &mut Reader<'_, K>) -> (Effect, bool) {
    words.is_blind = true;
    let verb = loop {
        match words.next() {
            Item::Word(word) => break word,
            Item::Other(b';') => {}
            // `(select …)`
            Item::Other(b'(') => break b"select",
            Item::End => return (Effect::None, false),
            Item::Other(_) | Item::Escaped | Item::Broken => return unknown(words),
        }
    };
    words.inserts |= is(verb, "insert");
    words.fetches |= is(verb, "fetch") || is(verb, "move");
    let what = Verb::of(verb);
    words.is_blind = match what {
        Verb::Transaction | Verb::Session | Verb::Set => true,
        Verb::Harmless if is(verb, "declare") => {
            words.again = true;
            false
        }
        Verb::Harmless => [
            "show",
            "fetch",
            "move",
            "close",
            "listen",
            "notify",
            "checkpoint",
        ]
        .iter()
        .any(|known| is(verb, known)),
        _ => false,
    };
    match what {
        Verb::Harmless | Verb::Write => skim(words, Effect::None, false),
        Verb::Query => skim(words, Effect::None, true),
        Verb::Transaction => skim(words, Effect::Transaction, false),
        Verb::Session => skim(words, Effect::Session, false),
        Verb::Catalog => skim(words, Effect::Catalog, false),
        Verb::Create => {
            let effect = create(words);
            skim(words, effect, false)
        }
        Verb::Set => {
            let effect = set(words);
            skim(words, effect, false)
        }
        Verb::Explain => explain(words),
        Verb::Prepare => match words.next() {
            Item::Word(word) if is(word, "transaction") => skim(words, Effect::Transaction, false),
            _ => {
                words.again = true;
                skim(words, Effect::None, false)
            }
        },
        Verb::Truncate => {
            // The triggers of whatever refers to the table are fired, too.
            let mut rest = words.words.rest().windows("cascade".len());
            if rest.any(|word| is(word, "cascade")) {
                words.hazards |= words.known.of(ANY_NAME);
            }
            skim(words, Effect::None, false)
        }
        Verb::Do => code(words),
        Verb::Execute => {
            words.executes = true;
            skim(words, Effect::None, false)
        }
        Verb::Unknown => unknown(words),
    }
}

/// A text that may do anything: the rest of it is read for the names in it.
fn unknown<K: Known>(words: &mut Reader<'_, K>) -> (Effect, bool) {
    loop {
        let (_, more) = skim(words, Effect::Unknown, false);
        if !more {
            return (Effect::Unknown, false);
        }
    }
}

/// `DO [LANGUAGE plpgsql] '…'`: what the block may do, its words say, as those of a function do.
fn code<K: Known>(words: &mut Reader<'_, K>) -> (Effect, bool) {
    let mut source = None;
    let more = loop {
        match words.words.token() {
            Token::Literal(literal) if source.is_none() => source = Some(literal),
            Token::Item(Item::Word(word)) if is(word, "language") => {
                let is_read = match words.words.token() {
                    Token::Item(Item::Word(name)) => is(name, "plpgsql"),
                    Token::Literal(name) => is(name, "'plpgsql'"),
                    Token::Item(_) => false,
                };
                if !is_read {
                    return unknown(words);
                }
            }
            Token::Item(Item::Other(b';')) => break true,
            Token::Item(Item::End) => break false,
            _ => return unknown(words),
        }
    };
    let Some(body) = source.and_then(body::block) else {
        return match more {
            true => unknown(words),
            false => (Effect::Unknown, false),
        };
    };
    words.names = true;
    words.hazards |= body.hazards;
    for name in &body.names {
        words.hazards |= words.known.of(name);
    }
    (Effect::None, more)
}

/// Reads to the end of a statement. In a query, `INTO` creates a table unless it is that of INSERT
/// or MERGE.
fn skim<K: Known>(words: &mut Reader<'_, K>, effect: Effect, query: bool) -> (Effect, bool) {
    let mut effect = effect;
    let mut inserting = false;
    let creates = matches!(effect, Effect::Catalog | Effect::LocalCatalog);
    loop {
        match words.next() {
            Item::Word(word) => {
                if query && word.len() == 4 && is(word, "into") && !inserting {
                    effect = effect.max(Effect::Catalog);
                } else if effect == Effect::Transaction && is(word, "serializable") {
                    effect = Effect::Isolation;
                }
                // `CREATE TABLE … AS EXECUTE`
                words.executes |= creates && word.len() == 7 && is(word, "execute");
                inserting =
                    matches!(word.len(), 5 | 6) && (is(word, "insert") || is(word, "merge"));
            }
            Item::Other(b';') => return (effect, true),
            Item::Other(_) | Item::Escaped => inserting = false,
            Item::End => return (effect, false),
            Item::Broken => return (Effect::Unknown, false),
        }
    }
}

/// `CREATE [OR REPLACE] [LOCAL] TEMP …` is the session's own.
fn create<K: Known>(words: &mut Reader<'_, K>) -> Effect {
    loop {
        match words.next() {
            Item::Word(word) if ["or", "replace", "local"].iter().any(|skip| is(word, skip)) => {}
            Item::Word(word) if is(word, "temp") || is(word, "temporary") => {
                return Effect::LocalCatalog;
            }
            Item::Word(_) => return Effect::Catalog,
            _ => return Effect::Unknown,
        }
    }
}

/// SET of something harmless may be overlooked; of `harmless.name` it may not, which is another.
fn set<K: Known>(words: &mut Reader<'_, K>) -> Effect {
    let mut scoped = false;
    loop {
        match words.next() {
            Item::Word(word) if !scoped && (is(word, "session") || is(word, "local")) => {
                scoped = true;
            }
            Item::Word(word) => {
                let effect = match word {
                    _ if is(word, "transaction") || is(word, "constraints") => Effect::Transaction,
                    _ if is(word, "transaction_isolation") => Effect::Isolation,
                    _ if settings::is_of_transaction(word) => Effect::Transaction,
                    _ if settings::is_harmless(word) => Effect::None,
                    _ => Effect::Session,
                };
                let is_whole = words.words.peek().is_some_and(|byte| byte != b'.');
                return if is_whole { effect } else { Effect::Session };
            }
            _ => return Effect::Unknown,
        }
    }
}

/// EXPLAIN does what it explains, if it is told to ANALYZE; that is not looked for.
fn explain<K: Known>(words: &mut Reader<'_, K>) -> (Effect, bool) {
    loop {
        match words.next() {
            Item::Word(word) => match Verb::of(word) {
                Verb::Write => return skim(words, Effect::None, false),
                Verb::Query => return skim(words, Effect::None, true),
                Verb::Create => return skim(words, Effect::Catalog, false),
                Verb::Execute => {
                    words.executes = true;
                    return skim(words, Effect::None, false);
                }
                _ => {}
            },
            Item::Other(b';') => return (Effect::None, true),
            Item::Other(_) | Item::Escaped => {}
            Item::End => return (Effect::None, false),
            Item::Broken => return (Effect::Unknown, false),
        }
    }
}

/// Whether it is known what a statement with this verb may do.
#[must_use]
pub fn is_understood(verb: &[u8]) -> bool {
    !matches!(Verb::of(verb), Verb::Unknown)
}

#[derive(Clone, Copy)]
enum Verb {
    Harmless,
    /// May be a SELECT INTO.
    Query,
    Write,
    Transaction,
    Session,
    Catalog,
    Create,
    Set,
    Explain,
    Prepare,
    Truncate,
    Do,
    Execute,
    Unknown,
}

impl Verb {
    /// Every query that is passed through comes by here, so no word is compared with all of them.
    fn of(word: &[u8]) -> Self {
        let mut lower = [0; "deallocate".len()];
        let Some(lower) = lower.get_mut(..word.len()) else {
            return Self::Unknown;
        };
        lower.copy_from_slice(word);
        lower.make_ascii_lowercase();
        match &*lower {
            b"select" | b"values" | b"with" | b"table" => Self::Query,
            b"insert" | b"update" | b"delete" | b"merge" => Self::Write,
            b"set" => Self::Set,
            b"begin" | b"commit" | b"rollback" | b"start" | b"end" | b"abort" | b"savepoint"
            | b"release" => Self::Transaction,
            b"copy" | b"show" | b"fetch" | b"move" | b"close" | b"declare" | b"listen"
            | b"notify" | b"lock" | b"vacuum" | b"analyze" | b"analyse" | b"checkpoint"
            | b"cluster" | b"reindex" | b"refresh" | b"call" => Self::Harmless,
            b"reset" | b"discard" | b"deallocate" | b"unlisten" => Self::Session,
            b"create" => Self::Create,
            b"alter" | b"drop" | b"grant" | b"revoke" | b"comment" | b"security" | b"import"
            | b"reassign" => Self::Catalog,
            b"explain" => Self::Explain,
            b"prepare" => Self::Prepare,
            b"truncate" => Self::Truncate,
            b"do" => Self::Do,
            b"execute" => Self::Execute,
            _ => Self::Unknown,
        }
    }
}

fn is(word: &[u8], lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower.as_bytes())
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
