//! What the model does with a statement: all that it says follows from the text, the session's
//! state, and for whom the connection is.

use crate::frames;
use crate::model::{Interrupt, Model};
use crate::tokens::{Kind, Token, position, tokens};

/// The error of a statement, or what it says.
pub(crate) type Said = Result<Vec<u8>, Vec<u8>>;

/// Bytes of the large row: more than are looked at whole.
const WIDE: usize = 300_000;

/// An error at a place of the text.
fn error_at(state: &str, message: &str, at: usize) -> Vec<u8> {
    let fields = [
        "SERROR".to_owned(),
        "VERROR".to_owned(),
        format!("C{state}"),
        format!("M{message}"),
        format!("P{at}"),
    ];
    frames::report(b'E', &fields.each_ref().map(String::as_str))
}

/// What a statement returns; `None` if it is no rows.
pub(crate) fn columns(text: &str) -> Option<&'static [&'static str]> {
    if text.starts_with("SELECT pg_catalog.set_config") {
        return Some(&["a", "b"]);
    }
    if text.contains("FROM wide") {
        return Some(&["stamp", "text", "more"]);
    }
    let returns = text.starts_with("SELECT") || text.contains("RETURNING");
    returns.then_some(&["stamp", "text"])
}

/// The number that decides what a statement does, and where it stands in `source`.
fn key(text: &str, source: &str) -> Option<(u64, Token)> {
    let find = |text: &str| tokens(text).into_iter().find(|token| token.is_integer);
    let value = find(text)?.value.parse().ok()?;
    Some((value, find(source)?))
}

/// What is wrong with a text before any value is looked at.
pub(crate) fn analysed(text: &str) -> Result<(), Vec<u8>> {
    let known = [
        "SELECT",
        "INSERT",
        "UPDATE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "SHOW",
        "SET",
        "CREATE",
        "DISCARD",
        "DEALLOCATE",
        "COPY",
    ];
    if !text.is_empty() && !known.iter().any(|word| text.starts_with(word)) {
        return Err(error_at("42601", "syntax error", 1));
    }
    if let Some(at) = text.find("missing") {
        let at = text[..at].chars().count() + 1;
        return Err(error_at("42P01", "relation does not exist", at));
    }
    for token in tokens(text) {
        if token.is_integer && token.kind == Kind::Text && token.value.parse::<u64>().is_err() {
            let message = format!("invalid input syntax for type integer: \"{}\"", token.value);
            return Err(error_at("22P02", &message, position(text, &token)));
        }
    }
    Ok(())
}

/// What is wrong with a statement when it is planned: `source` is what the server was sent.
pub(crate) fn planned(text: &str, source: &str) -> Result<(), Vec<u8>> {
    match key(text, source) {
        Some((value, token)) if value % 41 == 15 => {
            let at = position(source, &token);
            Err(error_at("22003", "integer out of range", at))
        }
        _ => Ok(()),
    }
}

/// What running it says behind its description, which goes to `notices` if it stands before that.
fn run(model: &mut Model, text: &str, source: &str, notices: &mut Vec<u8>) -> Said {
    let key = key(text, source);
    let value = key.as_ref().map_or(0, |(value, _)| *value);
    if value % 41 == 13 {
        return Err(frames::error("22012", "division by zero"));
    }
    if let Some((_, token)) = &key
        && value % 41 == 14
    {
        return Err(error_at(
            "22003",
            "value out of range",
            position(source, token),
        ));
    }
    if value % 11 == 5 {
        notices.extend(frames::notice(&format!("about {value}")));
    }
    let stamp = model.stamp.to_string();
    let mut out = Vec::new();
    let writes = text.starts_with("INSERT") || text.starts_with("UPDATE");
    if writes {
        *model.executed.entry(text.to_owned()).or_default() += 1;
        if model.status == b'T' {
            model.undo.push(text.to_owned());
        }
        if text.contains("RETURNING") && !value.is_multiple_of(3) {
            out.extend(frames::row(&[&stamp, text]));
        }
        let tag = if text.starts_with("INSERT") {
            "INSERT 0 1"
        } else {
            "UPDATE 1"
        };
        out.extend(frames::complete(tag));
        return Ok(out);
    }
    if text.contains("pg_prepared_statements") {
        let mut names: Vec<_> = model
            .prepared
            .keys()
            .filter(|name| !name.is_empty())
            .collect();
        names.sort();
        for name in &names {
            out.extend(frames::row(&[&stamp, name]));
        }
        out.extend(frames::complete(&format!("SELECT {}", names.len())));
        return Ok(out);
    }
    let count = value % 4;
    for _ in 0..count {
        out.extend(match text.contains("FROM wide") {
            true if value % 29 == 7 => frames::row(&[&stamp, text, &"w".repeat(WIDE)]),
            true => frames::row(&[&stamp, text, "w"]),
            false => frames::row(&[&stamp, text]),
        });
    }
    out.extend(frames::complete(&format!("SELECT {count}")));
    Ok(out)
}

/// A statement that changes the session. `None` if it is none.
fn utility(model: &mut Model, text: &str) -> Option<Said> {
    let word = text.split(' ').next().unwrap_or_default();
    let tag = match (word, model.status) {
        ("BEGIN", status) => {
            model.status = if status == b'I' { b'T' } else { status };
            model.is_repeatable |= status == b'I' && text.contains("REPEATABLE");
            "BEGIN"
        }
        ("COMMIT", status) => {
            if status == b'E' {
                model.undo(0);
            }
            end(model);
            if status == b'E' { "ROLLBACK" } else { "COMMIT" }
        }
        ("SAVEPOINT" | "RELEASE", _) => return Some(savepoint(model, text)),
        ("ROLLBACK", _) if text.contains(" TO ") => return Some(savepoint(model, text)),
        ("ROLLBACK", _) => {
            model.undo(0);
            end(model);
            "ROLLBACK"
        }
        ("SHOW", _) => return Some(Ok(isolation(model))),
        ("SET", _) => "SET",
        ("CREATE", _) => "CREATE TABLE",
        ("DISCARD", b'T') => {
            let message = "DISCARD ALL cannot run inside a transaction block";
            return Some(Err(frames::error("25001", message)));
        }
        ("DISCARD", _) => {
            model.prepared.clear();
            model.portal = None;
            "DISCARD ALL"
        }
        ("DEALLOCATE", _) => {
            model.prepared.retain(|name, _| name.is_empty());
            "DEALLOCATE ALL"
        }
        _ => return None,
    };
    Some(Ok(frames::complete(tag)))
}

/// The transaction ends.
fn end(model: &mut Model) {
    model.status = b'I';
    model.undo.clear();
    model.savepoints.clear();
    model.is_repeatable = false;
}

/// SAVEPOINT, RELEASE and ROLLBACK TO.
fn savepoint(model: &mut Model, text: &str) -> Said {
    if model.status == b'I' {
        return Err(frames::error("25P01", "only in transaction blocks"));
    }
    let name = text.rsplit(' ').next().unwrap_or_default();
    if text.starts_with("SAVEPOINT") {
        model.savepoints.push((name.to_owned(), model.undo.len()));
        return Ok(frames::complete("SAVEPOINT"));
    }
    let found = model
        .savepoints
        .iter()
        .rposition(|(known, _)| known == name);
    let Some(at) = found else {
        return Err(frames::error("3B001", "savepoint does not exist"));
    };
    if text.starts_with("RELEASE") {
        model.savepoints.truncate(at);
        return Ok(frames::complete("RELEASE"));
    }
    model.status = b'T';
    model.undo(model.savepoints[at].1);
    model.savepoints.truncate(at + 1);
    Ok(frames::complete("ROLLBACK"))
}

fn isolation(model: &Model) -> Vec<u8> {
    let level = match model.is_repeatable {
        true => "repeatable read",
        false => "read committed",
    };
    let described = frames::description(&["transaction_isolation"]);
    [described, frames::row(&[level]), frames::complete("SHOW")].concat()
}

/// Whether the state of the transaction lets it run.
pub(crate) fn admitted(model: &Model, text: &str) -> Result<(), Vec<u8>> {
    let ends = text.starts_with("COMMIT") || text.starts_with("ROLLBACK");
    if model.status == b'E' && !ends && !text.is_empty() {
        let message = "current transaction is aborted";
        return Err(frames::error("25P02", message));
    }
    Ok(())
}

/// One statement of a Query. What it has said before an error stays said.
pub(crate) fn simple(
    model: &mut Model,
    text: &str,
    interrupt: &mut Interrupt,
    out: &mut Vec<u8>,
) -> Result<(), Vec<u8>> {
    interrupt.check()?;
    admitted(model, text)?;
    analysed(text)?;
    if text == "COPY t FROM STDIN" {
        model.copying = Some(0);
        out.extend(frames::frame(b'G', b"\0\0\0"));
        return Ok(());
    }
    if let Some(said) = utility(model, text) {
        out.extend(said?);
        return Ok(());
    }
    planned(text, text)?;
    let described = columns(text).map(frames::description).unwrap_or_default();
    let mut notices = Vec::new();
    if text.starts_with("SELECT") {
        out.extend(described);
        interrupt.check()?;
        let said = run(model, text, text, out)?;
        out.extend(said);
        return Ok(());
    }
    let said = run(model, text, text, &mut notices)?;
    out.extend([notices, described, said].concat());
    Ok(())
}

/// An Execute.
pub(crate) fn execute(model: &mut Model, text: &str, source: &str) -> Said {
    if text.starts_with("SELECT pg_catalog.set_config") {
        return Ok([frames::row(&["1", "0"]), frames::complete("SELECT 1")].concat());
    }
    if text.is_empty() {
        return Ok(frames::frame(b'I', b""));
    }
    if let Some(said) = utility(model, text) {
        return said;
    }
    let mut out = Vec::new();
    let said = run(model, text, source, &mut out)?;
    out.extend(said);
    Ok(out)
}
