//! Functions: what their bodies do.

use super::tokens::{Tok, Tokens};
use super::{Definition, Name};
use crate::sql::body::{Body, string};
use crate::sql::hazard::Hazards;

/// Whether a setting changes how the function's body is read.
fn reads_otherwise(tokens: &Tokens<'_>) -> bool {
    tokens
        .names()
        .any(|name| &**name == b"standard_conforming_strings")
}

/// Whether the planner may run it.
fn is_planned(tokens: &Tokens<'_>) -> bool {
    tokens.has(b"stable") || tokens.has(b"immutable")
}

/// A function: what its body does, and what its arguments' defaults do.
pub(super) fn created(tokens: &Tokens<'_>, about: usize) -> Definition {
    let mut function = tokens.definition(tokens.object(about + 1));
    function.is_planned = is_planned(tokens);
    function.leaves = true;
    let mut body = match language(tokens).filter(|_| !reads_otherwise(tokens)) {
        Some(is_sql) => bodies(tokens, is_sql),
        // What is in no string needs no language.
        None if tokens.body.is_some() && !tokens.has(b"language") => Body::default(),
        None => Body::opaque(),
    };
    if tokens.body.is_none() && language(tokens) != Some(false) {
        body.hazards |= Hazards::REREADS;
    }
    if let Some(statements) = tokens.body {
        let parsed = Body::read(statements, true, |_| false);
        body.hazards |= parsed.hazards;
        body.names.extend(parsed.names);
    }
    function.hazards |= body.hazards;
    function.mentions.extend(body.names);
    function
}

/// A function whose body stays as it is, but may be run otherwise.
pub(super) fn altered(tokens: &Tokens<'_>, of: Option<Vec<Name>>) -> Definition {
    let mut function = tokens.definition(of);
    function.is_planned = is_planned(tokens);
    function.leaves = true;
    if reads_otherwise(tokens) {
        function.hazards |= Body::opaque().hazards;
    }
    function
}

/// Whether the function is in SQL, or else its body is read otherwise; `None` if it is not read.
fn language(tokens: &Tokens<'_>) -> Option<bool> {
    let at = tokens.find(0, b"language")? + 1;
    let name = match tokens.list.get(at)? {
        Tok::Word(name) | Tok::Quoted(name) => name,
        Tok::Literal(literal) => &string(literal)?.to_ascii_lowercase().into(),
        Tok::Other(_) => return None,
    };
    // An argument may have this name.
    let is_certain = tokens.find(at, b"language").is_none();
    match &**name {
        b"sql" if is_certain => Some(true),
        // The body of the latter is the name of one of the server's own.
        b"plpgsql" | b"internal" if is_certain => Some(false),
        _ => None,
    }
}

/// All strings of the statement, of which one is the body.
fn bodies(tokens: &Tokens<'_>, is_sql: bool) -> Body {
    let mut all = Body::default();
    let mut count = 0;
    for token in &tokens.list {
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
        0 if tokens.body.is_none() => Body::opaque(),
        _ => all,
    }
}
