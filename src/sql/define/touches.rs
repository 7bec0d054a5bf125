//! What a statement that changes the catalog touches.
//!
//! Only what is certain is bounded by names. A new object can hide another only by its name, and
//! what is dropped without CASCADE is used by nothing that was parsed early, and takes nothing
//! along but the partitions of a table. Of everything else it is for the server to say, so it
//! touches everything.

use super::tokens::{Tok, Tokens};
use super::{Name, survey};
use crate::sql::touched::Touched;

/// What the statement with this verb touches; what it is about stands at `about`.
pub(super) fn of(tokens: &Tokens<'_>, verb: &[u8], about: usize) -> Touched {
    let bounded = match verb {
        b"create" if RELATIONS_READ.contains(&tokens.word(about).unwrap_or_default()) => {
            return read_otherwise(tokens, about).map_or(Touched::Everything, Touched::users);
        }
        b"create" if CALLED.contains(&tokens.word(about).unwrap_or_default()) => {
            return create(tokens, about).map_or(Touched::Everything, Touched::users);
        }
        b"create" => create(tokens, about),
        b"drop" if tokens.word(about) == Some(b"table") => {
            return drop(tokens, about).map_or(Touched::Everything, Touched::families);
        }
        b"drop" => drop(tokens, about),
        b"alter" => alter(tokens, about),
        b"grant" | b"revoke" => rights(tokens),
        b"comment" => Some(Vec::new()),
        // SELECT INTO makes a table.
        b"select" | b"with" | b"values" | b"table" if tokens.has(b"into") => None,
        b"do" | b"call" | b"execute" | b"explain" => None,
        // The command tag of the rest says that it is no definition.
        _ if survey::is_understood(verb) && !is_definition(verb) => return Touched::Unsaid,
        _ => None,
    };
    bounded.map_or(Touched::Everything, Touched::names)
}

/// What only changes how a relation is read. No type depends on it, nor what a name stands for.
const RELATIONS_READ: [&[u8]; 2] = [b"index", b"statistics"];

/// What a function may use without a plan of its caller's that says so: its body is read again when
/// there is something new by that name, and may leave something then in the session.
const CALLED: [&[u8]; 4] = [b"aggregate", b"function", b"procedure", b"view"];

/// The name of what is made, if it has one, and that of the relation it is made for.
fn read_otherwise(tokens: &Tokens<'_>, about: usize) -> Option<Vec<Name>> {
    let behind = match tokens.word(about)? {
        b"index" => b"on".as_slice(),
        _ => b"from",
    };
    let at = tokens.find(about + 1, behind)?;
    let mut names = tokens.object(at + 1)?;
    if at > about + 1 {
        names.extend(tokens.object(about + 1)?);
    }
    // A list of relations would be another statement of the server's than is known here.
    let (_, end) = tokens.name(at + 1)?;
    let is_one = !matches!(tokens.list.get(end), Some(Tok::Other(b',')));
    is_one.then_some(names)
}

fn is_definition(verb: &[u8]) -> bool {
    matches!(verb, b"security" | b"import" | b"reassign")
}

/// The names that CREATE touches; `None` if there may be others.
fn create(tokens: &Tokens<'_>, about: usize) -> Option<Vec<Name>> {
    // What was there before may be in use.
    let replaces = (1..about).any(|at| tokens.word(at) == Some(b"replace"));
    let is_materialized = tokens.are(about, &[b"materialized", b"view"]);
    let about = about + usize::from(is_materialized);
    let object = || tokens.object(about + 1);
    match tokens.word(about)? {
        b"table" => table(tokens, about),
        b"view" | b"sequence" | b"aggregate" | b"domain" if !replaces => object(),
        b"function" | b"procedure" if !replaces => object(),
        // Ranges come with functions, casts and types of other names.
        b"type" if super::is_composite(tokens, about) => object(),
        // They are made for other databases, or for no statement.
        b"database" | b"tablespace" | b"publication" | b"subscription" => Some(Vec::new()),
        _ => None,
    }
}

/// The names that a new table touches, unless it becomes part of others.
fn table(tokens: &Tokens<'_>, about: usize) -> Option<Vec<Name>> {
    let others: [&[u8]; 3] = [b"inherits", b"partition", b"of"];
    // The sequence of an identity column may have been given a name, for a dump.
    let is_named = (about..tokens.list.len()).any(|at| tokens.are(at, &[b"sequence", b"name"]));
    if is_named || others.iter().any(|word| tokens.has(word)) {
        return None;
    }
    let mut names = tokens.object(about + 1)?;
    // Constraints may have names of their own, and foreign keys have triggers on both sides.
    for word in [&b"constraint"[..], b"references"] {
        names.extend(tokens.behind(word)?);
    }
    Some(names)
}

/// The names that DROP touches; `None` if there may be others.
fn drop(tokens: &Tokens<'_>, about: usize) -> Option<Vec<Name>> {
    if tokens.has(b"cascade") {
        return None;
    }
    let is_materialized = tokens.are(about, &[b"materialized", b"view"]);
    let about = about + usize::from(is_materialized);
    match tokens.word(about)? {
        b"table" | b"view" | b"sequence" | b"function" | b"procedure" | b"routine"
        | b"aggregate" => tokens.objects(about + 1),
        b"database" | b"tablespace" | b"publication" | b"subscription" => Some(Vec::new()),
        _ => None,
    }
}

/// The names that ALTER touches; `None` if there may be others.
fn alter(tokens: &Tokens<'_>, about: usize) -> Option<Vec<Name>> {
    match tokens.word(about)? {
        b"sequence" => {
            // It may get another name, schema, owner or type, but nothing else can be noticed.
            let words: [&[u8]; 4] = [b"rename", b"set", b"owner", b"owned"];
            let is_plain = !words.iter().any(|word| tokens.has(word)) && !tokens.has(b"as");
            is_plain.then(Vec::new)
        }
        b"default" if tokens.are(about + 1, &[b"privileges"]) => Some(Vec::new()),
        b"publication" | b"subscription" | b"system" | b"large" => Some(Vec::new()),
        _ => None,
    }
}

/// The names that GRANT and REVOKE touch: rights on these are checked with each execution, but
/// whether the statement was found to be allowed may have been noted. `None` if they are rights on
/// schemas, which are checked when a text is parsed, or roles.
fn rights(tokens: &Tokens<'_>) -> Option<Vec<Name>> {
    let on = tokens.find(0, b"on")? + 1;
    let kinds: [&[u8]; 6] = [
        b"table",
        b"sequence",
        b"function",
        b"procedure",
        b"routine",
        b"type",
    ];
    match tokens.word(on) {
        Some(b"schema" | b"database" | b"foreign" | b"large" | b"all" | b"parameter") => None,
        Some(b"language" | b"tablespace" | b"domain") => None,
        Some(kind) if kinds.contains(&kind) && !is_dot(tokens, on + 1) => tokens.objects(on + 1),
        _ => tokens.objects(on),
    }
}

fn is_dot(tokens: &Tokens<'_>, at: usize) -> bool {
    matches!(tokens.list.get(at), Some(Tok::Other(b'.' | b',')))
}
