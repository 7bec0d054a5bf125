//! What a query that is passed through may do to the session or the catalogs.
//!
//! Prepared statements go stale with a setting or a definition, so the caller must know when to
//! forget them. The answer comes from the words of the text alone and errs on the strong side: a
//! verb that is not known may do anything. What a function called by a statement does inside is not
//! seen; command tags and the age of statements cover that.

use memchr::memmem;

use super::lex::{self, KIND, Kind};

/// What a query may do, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Nothing that a prepared statement could notice.
    None,
    /// Begins, ends or marks a transaction.
    Transaction,
    /// Makes a transaction serializable.
    Isolation,
    /// Changes settings of the session or drops its statements.
    Session,
    /// Creates a temporary object.
    LocalCatalog,
    /// Anything this session may do to itself: DO, CALL, EXECUTE, and what is not understood. What
    /// it may do to others is theirs to notice, as if it had been done past the proxy.
    Unknown,
    /// Changes a catalog that others see.
    Catalog,
}

/// How much of a long text is read word by word; behind that only two words are searched for.
const READ: usize = 64 * 1024;

/// The strongest effect of the statements in `text`.
#[must_use]
pub fn effect(text: &[u8]) -> Effect {
    let mut words = Words { text, at: 0 };
    let mut strongest = Effect::None;
    while strongest < Effect::Catalog {
        let (effect, more) = statement(&mut words);
        strongest = strongest.max(effect);
        if !more {
            break;
        }
    }
    strongest
}

/// The effect of the statement at `words`, which is left behind its semicolon, and whether there
/// may be another one.
fn statement(words: &mut Words<'_>) -> (Effect, bool) {
    let verb = loop {
        match words.next() {
            Item::Word(word) => break word,
            Item::Other(b';') => {}
            // `(select …)`
            Item::Other(b'(') => break b"select",
            Item::End => return (Effect::None, false),
            Item::Other(_) | Item::Broken => return (Effect::Unknown, false),
        }
    };
    match Verb::of(verb) {
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
            _ => skim(words, Effect::None, false),
        },
        Verb::Unknown => (Effect::Unknown, false),
    }
}

/// Reads to the end of a statement. In a query, `INTO` creates a table unless it is that of INSERT
/// or MERGE, and some functions change the session.
fn skim(words: &mut Words<'_>, effect: Effect, query: bool) -> (Effect, bool) {
    let mut effect = effect;
    let mut inserting = false;
    loop {
        if words.at > READ {
            return (effect.max(search(&words.text[words.at..], query)), false);
        }
        match words.next() {
            Item::Word(word) => {
                if query && word.len() == 4 && is(word, "into") && !inserting {
                    effect = effect.max(Effect::Catalog);
                } else if is_session_function(word) {
                    effect = effect.max(Effect::Session);
                } else if effect == Effect::Transaction && is(word, "serializable") {
                    effect = Effect::Isolation;
                }
                inserting =
                    matches!(word.len(), 5 | 6) && (is(word, "insert") || is(word, "merge"));
            }
            Item::Other(b';') => return (effect, true),
            Item::Other(_) => inserting = false,
            Item::End => return (effect, false),
            Item::Broken => return (Effect::Unknown, false),
        }
    }
}

/// The rest of a long text: no tokens, only the search for what matters, anywhere in it.
fn search(rest: &[u8], query: bool) -> Effect {
    let mentions = |word: &str| {
        let upper = word.to_ascii_uppercase();
        memmem::find(rest, word.as_bytes()).is_some()
            || memmem::find(rest, upper.as_bytes()).is_some()
    };
    if memchr::memchr(
        b';',
        rest.trim_ascii_end().strip_suffix(b";").unwrap_or(rest),
    )
    .is_some()
        && (mentions("create") || mentions("alter") || mentions("drop") || mentions("set "))
    {
        Effect::Unknown
    } else if query && mentions("into") {
        Effect::Catalog
    } else if mentions("set_config") {
        Effect::Session
    } else if mentions("serializable") {
        Effect::Isolation
    } else {
        Effect::None
    }
}

/// `CREATE [OR REPLACE] [LOCAL] TEMP …` is the session's own.
fn create(words: &mut Words<'_>) -> Effect {
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

/// Settings that change neither what a statement means nor how it is planned.
fn set(words: &mut Words<'_>) -> Effect {
    const HARMLESS: &str = "\
        application_name deadlock_timeout idle_in_transaction_session_timeout \
        idle_session_timeout lock_timeout log_duration log_min_duration_statement log_statement \
        statement_timeout synchronous_commit transaction_timeout";
    let mut scoped = false;
    loop {
        match words.next() {
            Item::Word(word) if !scoped && (is(word, "session") || is(word, "local")) => {
                scoped = true;
            }
            Item::Word(word) if is(word, "transaction") || is(word, "constraints") => {
                return Effect::Transaction;
            }
            Item::Word(word) if HARMLESS.split(' ').any(|known| is(word, known)) => {
                return Effect::None;
            }
            Item::Word(_) => return Effect::Session,
            _ => return Effect::Unknown,
        }
    }
}

/// EXPLAIN does what it explains, if it is told to ANALYZE; that is not looked for.
fn explain(words: &mut Words<'_>) -> (Effect, bool) {
    loop {
        match words.next() {
            Item::Word(word) => match Verb::of(word) {
                Verb::Write => return skim(words, Effect::None, false),
                Verb::Query => return skim(words, Effect::None, true),
                Verb::Create => return skim(words, Effect::Catalog, false),
                Verb::Unknown if is(word, "execute") => return (Effect::Unknown, false),
                _ => {}
            },
            Item::Other(b';') => return (Effect::None, true),
            Item::Other(_) => {}
            Item::End => return (Effect::None, false),
            Item::Broken => return (Effect::Unknown, false),
        }
    }
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
            | b"notify" | b"lock" | b"truncate" | b"vacuum" | b"analyze" | b"analyse"
            | b"checkpoint" | b"cluster" | b"reindex" | b"refresh" => Self::Harmless,
            b"reset" | b"discard" | b"deallocate" | b"unlisten" => Self::Session,
            b"create" => Self::Create,
            b"alter" | b"drop" | b"grant" | b"revoke" | b"comment" | b"security" | b"import"
            | b"reassign" => Self::Catalog,
            b"explain" => Self::Explain,
            b"prepare" => Self::Prepare,
            _ => Self::Unknown,
        }
    }
}

fn is(word: &[u8], lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower.as_bytes())
}

/// Functions that change settings.
fn is_session_function(word: &[u8]) -> bool {
    matches!(word.len(), 10 | 14) && (is(word, "set_config") || is(word, "pg_reload_conf"))
}

enum Item<'a> {
    /// A word, or a quoted identifier without its quotes.
    Word(&'a [u8]),
    Other(u8),
    End,
    /// Something unterminated: the server will refuse the text, or we do not understand it.
    Broken,
}

/// The words of a text; strings, numbers and comments are skipped.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Item<'a> {
        loop {
            let Some(start) = lex::blank(self.text, self.at) else {
                return Item::Broken;
            };
            let Some(&byte) = self.text.get(start) else {
                return Item::End;
            };
            let end = match KIND[byte as usize] {
                Kind::Word => {
                    let end = lex::word(self.text, start);
                    if lex::at(self.text, end) != b'\'' || end > start + 1 {
                        self.at = end;
                        return Item::Word(&self.text[start..end]);
                    }
                    let escapes = byte | 0x20 == b'e';
                    lex::string(self.text, end, escapes).map(|found| found.end)
                }
                Kind::DoubleQuote => match lex::quoted_identifier(self.text, start) {
                    Some(end) => {
                        self.at = end;
                        return Item::Word(&self.text[start + 1..end - 1]);
                    }
                    None => None,
                },
                Kind::Quote => lex::string(self.text, start, false).map(|found| found.end),
                Kind::Dollar if !lex::at(self.text, start + 1).is_ascii_digit() => {
                    lex::dollar_string(self.text, start)
                }
                Kind::Digit => Some(lex::word(self.text, start)),
                _ => {
                    self.at = start + 1;
                    return Item::Other(byte);
                }
            };
            let Some(end) = end else { return Item::Broken };
            self.at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_statement_decides() {
        use Effect::{Catalog, Isolation, LocalCatalog, None, Session, Transaction, Unknown};
        for (text, expected) in [
            ("", None),
            (" ; -- x", None),
            ("select 1; select 'set_config'", None),
            ("(select 1)", None),
            ("insert into t select * from u", None),
            (
                "with x as (insert into t values (1) returning a) select a from x",
                None,
            ),
            (
                "merge into t using u on a = b when matched then delete",
                None,
            ),
            ("copy t from stdin", None),
            (
                "set statement_timeout = 5; set local lock_timeout to '1s'",
                None,
            ),
            ("SET application_name TO 'begin; drop table t'", None),
            ("explain select 1", None),
            ("explain insert into t values (1)", None),
            ("explain (analyze, verbose) select 1", None),
            ("prepare p as select 1", None),
            ("notify c, 'x'", None),
            ("begin; select 1; commit", Transaction),
            ("/* c */ ROLLBACK TO SAVEPOINT a", Transaction),
            ("prepare transaction 'x'", Transaction),
            (
                "set transaction isolation level repeatable read",
                Transaction,
            ),
            ("set transaction isolation level serializable", Isolation),
            (
                "begin; start transaction /* */ isolation level Serializable",
                Isolation,
            ),
            ("begin isolation level serializable; set a = 5", Session),
            ("select serializable from t", None),
            ("set search_path = a", Session),
            ("set local search_path = a", Session),
            ("set session authorization x", Session),
            ("set role x", Session),
            ("reset all", Session),
            ("begin; discard all", Session),
            ("unlisten *", Session),
            ("select set_config('a', 'b', true)", Session),
            ("select pg_catalog.\"set_config\"('a', 'b', true)", Session),
            ("create temp table t (a int)", LocalCatalog),
            (
                "create or replace local temporary view v as select 1",
                LocalCatalog,
            ),
            ("select 1 into t", Catalog),
            ("explain analyze select 1 into t", Catalog),
            ("explain analyze create table t as select 1", Catalog),
            ("create table t as select 1", Catalog),
            ("begin; alter table t add b int; commit", Catalog),
            ("drop table t", Catalog),
            ("do $$ begin end $$", Unknown),
            ("call p()", Unknown),
            ("execute p", Unknown),
            ("explain analyze execute p(1)", Unknown),
            ("load 'x'", Unknown),
            ("selec 1", Unknown),
            ("select 'a", Unknown),
        ] {
            assert_eq!(effect(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_searched() {
        let filler = "'x', ".repeat(20_000);
        for (text, expected) in [
            (format!("insert into t values ({filler}1)"), Effect::None),
            (format!("insert into t values ({filler}1);"), Effect::None),
            (
                format!("select {filler} set_config('a', 'b', true)"),
                Effect::Session,
            ),
            (format!("select {filler} 1 into t"), Effect::Catalog),
            (format!("select {filler} 1; drop table t"), Effect::Unknown),
        ] {
            assert_eq!(effect(text.as_bytes()), expected);
        }
    }
}
