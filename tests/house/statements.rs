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
        "END",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "SHOW",
        "SET",
        "RESET",
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
fn run(model: &mut Model, text: &str, source: &str, x: usize, notices: &mut Vec<u8>) -> Said {
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
    let writes = text.starts_with("INSERT") || text.starts_with("UPDATE");
    let stamp = match model.is_shared && !writes {
        true => "0".to_owned(),
        false => model.stamp.to_string(),
    };
    let shown = format!("{text} -- x = {x}");
    let mut out = Vec::new();
    if writes {
        *model.executed.entry(text.to_owned()).or_default() += 1;
        if model.status == b'T' {
            model.undo.push(text.to_owned());
        }
        if text.contains("RETURNING") && !value.is_multiple_of(3) {
            out.extend(frames::row(&[&stamp, &shown]));
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
            true if value % 29 == 7 => frames::row(&[&stamp, &shown, &"w".repeat(WIDE)]),
            true => frames::row(&[&stamp, &shown, "w"]),
            false => frames::row(&[&stamp, &shown]),
        });
    }
    out.extend(frames::complete(&format!("SELECT {count}")));
    Ok(out)
}

/// A statement that changes the session. `None` if it is none.
fn utility(model: &mut Model, text: &str) -> Option<Said> {
    let word = text.split(' ').next().unwrap_or_default();
    let last = text.rsplit(' ').next().unwrap_or_default();
    if let Some(said) = moves(model, text, word, last) {
        return Some(said);
    }
    let tag = match (word, model.status) {
        ("BEGIN", status) => {
            if status == b'I' {
                model.course.begin();
                model.status = b'T';
                model.is_repeatable = text.contains("REPEATABLE");
            }
            "BEGIN"
        }
        ("COMMIT" | "END", status) => {
            model.status = b'I';
            if status == b'E' {
                model.undo(0);
                model.course.rollback();
            }
            model.course.commit();
            model.undo.clear();
            model.is_repeatable = false;
            if status == b'E' { "ROLLBACK" } else { "COMMIT" }
        }
        ("ROLLBACK", _) => {
            model.status = b'I';
            model.undo(0);
            model.course.rollback();
            model.is_repeatable = false;
            "ROLLBACK"
        }
        ("SHOW", _) => return Some(Ok(isolation(model))),
        ("CREATE", _) => "CREATE TABLE",
        ("DISCARD", b'T') => {
            let message = "DISCARD ALL cannot run inside a transaction block";
            return Some(Err(frames::error("25001", message)));
        }
        ("DISCARD", _) => {
            model.prepared.clear();
            model.portal = None;
            model.course.set(0, false);
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

/// A statement that changes the setting, or goes back to where it was something else.
fn moves(model: &mut Model, text: &str, word: &str, last: &str) -> Option<Said> {
    let error = |state, message| Some(Err(frames::error(state, message)));
    let is_inside = model.status != b'I';
    let course = &mut model.course;
    let (tag, done) = match word {
        "SAVEPOINT" if is_inside => {
            course.savepoint(last, model.undo.len());
            ("SAVEPOINT", Some(()))
        }
        "RELEASE" if is_inside => ("RELEASE", course.release(last)),
        "ROLLBACK" if text.starts_with("ROLLBACK TO ") && is_inside => {
            let back = course.rollback_to(last);
            if let Some(writes) = back {
                model.undo(writes);
                model.status = b'T';
            }
            ("ROLLBACK", back.map(drop))
        }
        "SAVEPOINT" | "RELEASE" => return error("25P01", "there is no transaction"),
        "ROLLBACK" if text.starts_with("ROLLBACK TO ") => {
            return error("25P01", "there is no transaction");
        }
        "RESET" => ("RESET", course.set(0, false)),
        "SET" => {
            let to = last.parse().unwrap_or_default();
            let is_other = text.contains("app.");
            let is_local = text.starts_with("SET LOCAL");
            let set = if is_other {
                Some(())
            } else {
                course.set(to, is_local)
            };
            ("SET", set)
        }
        "SELECT" if text.contains("set_config(") && !text.contains("pg_catalog.") => {
            let value = text.split('\'').nth(3).unwrap_or_default();
            course.set(value.parse().unwrap_or_default(), text.contains("true"))?;
            let row = frames::row(&[&model.stamp.to_string(), value]);
            return Some(Ok([row, frames::complete("SELECT 1")].concat()));
        }
        _ => return None,
    };
    match done {
        Some(()) => Some(Ok(frames::complete(tag))),
        None if word == "SET" => error("22023", "invalid value"),
        None => error("3B001", "savepoint does not exist"),
    }
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
    let ends = ["COMMIT", "END", "ROLLBACK"]
        .iter()
        .any(|word| text.starts_with(word));
    if model.status == b'E' && !ends && !text.is_empty() {
        let message = "current transaction is aborted";
        return Err(frames::error("25P02", message));
    }
    Ok(())
}

/// An error about a part of a text: its position is counted in the whole.
pub(crate) fn in_whole(error: &[u8], whole: &str, part: &str) -> Vec<u8> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    let before = whole[..start].chars().count();
    let mut body = Vec::new();
    for (code, value) in frames::fields(&error[5..]) {
        body.push(code);
        match code {
            b'P' => {
                let position: usize = std::str::from_utf8(value).unwrap().parse().unwrap();
                body.extend((position + before).to_string().into_bytes());
            }
            _ => body.extend(value),
        }
        body.push(0);
    }
    body.push(0);
    frames::frame(b'E', &body)
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
    let x = model.course.x();
    if let Some(said) = utility(model, text) {
        let described = columns(text).map(frames::description);
        out.extend([described.unwrap_or_default(), said?].concat());
        return Ok(());
    }
    planned(text, text)?;
    let described = columns(text).map(frames::description).unwrap_or_default();
    let mut notices = Vec::new();
    if text.starts_with("SELECT") {
        out.extend(described);
        interrupt.check()?;
        let said = run(model, text, text, x, out)?;
        out.extend(said);
        return Ok(());
    }
    let said = run(model, text, text, x, &mut notices)?;
    out.extend([notices, described, said].concat());
    Ok(())
}

/// An Execute.
pub(crate) fn execute(model: &mut Model, text: &str, source: &str, x: usize) -> Said {
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
    let said = run(model, text, source, x, &mut out)?;
    out.extend(said);
    Ok(out)
}
