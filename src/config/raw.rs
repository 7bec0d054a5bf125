//! What the user wrote in files, variables and flags, as text that is not checked yet.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Spanned, Value};

use super::Error;
use super::near::nearest;
use super::settings::{SETTINGS, Setting, ValueForm};

/// The key of the tables in a file.
pub(super) const DATABASES: &str = "databases";
/// That of users.
pub(super) const USERS: &str = "users";

/// A configuration file as written: each key and its value, and where they stand.
type File = BTreeMap<Spanned<String>, Spanned<Value>>;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The value was given as this flag, which is named with its dashes.
    Flag(String),
    /// The value was given as this environment variable.
    Variable(String),
    /// The value stands in a configuration file.
    File {
        /// The path of the file, as the user gave it.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// The value was not written: it is the default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The value of one setting as it was written, and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The parts of a list; one part for any other value.
    pub items: Vec<String>,
    /// Where the value was written.
    pub origin: Source,
}

impl Written {
    /// The default of `setting`, as if it had been written.
    pub(super) fn from_default(setting: &Setting) -> Option<Self> {
        let items = setting.items(setting.default?);
        Some(Self {
            items,
            origin: Source::Default,
        })
    }
}

/// What a file says about each setting it names, and its tables of databases and of users, if it
/// has any.
type Said = (Vec<(Setting, Written)>, [Option<Value>; 2]);

/// What the file at `path`, holding `text`, says about each setting it names, and its tables.
///
/// # Errors
/// The text is not TOML, has a key that is no setting, or a value of the wrong type.
pub(super) fn read_file(path: &Path, text: &str) -> Result<Said, Error> {
    let origin = |offset| {
        let (line, column) = line_and_column(text, offset);
        Source::File {
            path: path.to_owned(),
            line,
            column,
        }
    };
    let file: File = toml::from_str(text).map_err(|error| Error::Syntax {
        place: origin(error.span().map_or(0, |span| span.start)),
        message: plainly(error.message()),
    })?;
    let is_unknown = |key: &&Spanned<String>| {
        let is_table = [DATABASES, USERS].contains(&key.get_ref().as_str());
        SETTINGS.iter().all(|one| one.key != *key.get_ref()) && !is_table
    };
    if let Some(key) = file.keys().find(is_unknown) {
        let known: Vec<_> = SETTINGS.iter().map(|one| one.key).collect();
        let (key, place) = (key.get_ref(), origin(key.span().start));
        let message = unknown_key(key, "", &[&known[..], &[DATABASES, USERS]].concat());
        return Err(Error::Syntax { place, message });
    }
    let mut written = Vec::new();
    for setting in SETTINGS {
        let Some(value) = file.get(setting.key) else {
            continue;
        };
        let origin = origin(value.span().start);
        let items = items_of(setting, value.get_ref()).map_err(|expected| {
            Error::value(setting, &origin, expected, &value.get_ref().to_string())
        })?;
        written.push((*setting, Written { items, origin }));
    }
    let tables = [DATABASES, USERS].map(|of| file.get(of).map(|value| value.get_ref().clone()));
    Ok((written, tables))
}

/// What is said of a key that is not known: which one may be meant, or else which there are.
pub(super) fn unknown_key(key: &str, place: &str, known: &[&str]) -> String {
    let expected = match nearest(key, known.iter().copied()) {
        Some(meant) => format!("`{meant}`"),
        None => {
            let known: Vec<_> = known.iter().map(|one| format!("`{one}`")).collect();
            format!("one of {}", known.join(", "))
        }
    };
    format!("unknown key `{key}`{place}, expected {expected}")
}

/// What the parser says, where it speaks of its own types in the words of whoever writes a file.
fn plainly(message: &str) -> String {
    let number = message.strip_prefix("invalid type: integer `");
    match number.and_then(|rest| rest.split('`').next()) {
        Some(number) => format!("expected a whole number of at most 64 bits, found {number}"),
        None => message.to_owned(),
    }
}

/// The text of a file with these bytes.
///
/// # Errors
/// They are no UTF-8: where they are not.
pub(super) fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let (offset, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let before = String::from_utf8_lossy(bytes.get(..offset).unwrap_or_default());
        let (line, column) = line_and_column(&before, offset);
        let byte = bytes.get(offset).copied().unwrap_or_default();
        Error::Syntax {
            place: Source::File {
                path: path.to_owned(),
                line,
                column,
            },
            message: format!("expected UTF-8, found the byte 0x{byte:02x}"),
        }
    })
}

/// The texts of a value, if it has the type that its setting asks for.
///
/// # Errors
/// What was expected instead.
pub(super) fn items_of(setting: &Setting, value: &Value) -> Result<Vec<String>, &'static str> {
    match (setting.kind, value) {
        (ValueForm::Integer { .. }, Value::Integer(number)) => Ok(vec![number.to_string()]),
        (ValueForm::Integer { .. }, _) => Err("a whole number"),
        (ValueForm::Switch, Value::Boolean(on)) => Ok(vec![on.to_string()]),
        (ValueForm::Switch, _) => Err("true or false"),
        (ValueForm::Addresses, Value::Array(parts)) => parts
            .iter()
            .map(|part| {
                part.as_str()
                    .map(str::to_owned)
                    .ok_or("a list of texts in quotes")
            })
            .collect(),
        (ValueForm::Addresses | ValueForm::Names, Value::String(text)) => Ok(setting.items(text)),
        (ValueForm::Names, Value::Array(parts)) => names(parts),
        (ValueForm::Addresses | ValueForm::Names, _) => Err("a text in quotes, or a list of them"),
        (ValueForm::Text(_) | ValueForm::Choice(_), Value::String(text)) => Ok(setting.items(text)),
        (ValueForm::Text(_) | ValueForm::Choice(_), _) => Err("a text in quotes"),
    }
}

/// Names as the one text that they are elsewhere.
fn names(parts: &[Value]) -> Result<Vec<String>, &'static str> {
    let name = |part: &Value| {
        part.as_str()
            .filter(|it| !it.contains(','))
            .map(str::to_owned)
    };
    let names: Option<Vec<_>> = parts.iter().map(name).collect();
    let names = names.ok_or("a list of texts in quotes, without commas in them")?;
    Ok(vec![names.join(", ")])
}

/// Line and column, both from 1, of the byte at `offset`; the column counts characters.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_from_one_and_in_characters() {
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("ab\ncd", 4), (2, 2));
        assert_eq!(line_and_column("ä = 1", 3), (1, 3));
        assert_eq!(line_and_column("ab", 99), (1, 3));
    }

    #[test]
    fn the_file_knows_exactly_the_settings() {
        for setting in SETTINGS {
            let text = format!("{} = 1979-05-27", setting.key);
            let error = read_file(Path::new("f"), &text).expect_err("no setting is a date");
            let place = format!("f:1:{}: {}: ", setting.key.len() + 4, setting.key);
            assert!(error.to_string().starts_with(&place), "{error}");
        }
        let error = read_file(Path::new("f"), "mode = 'off'\n\"new\" = 1").expect_err("refused");
        let known = "f:2:1: unknown key `new`, expected one of `listen`, `upstream`, `mode`, ";
        assert!(error.to_string().starts_with(known), "{error}");
        let told = |text: &str| read_file(Path::new("f"), text).unwrap_err().to_string();
        assert_eq!(
            told("workres = 3"),
            "f:1:1: unknown key `workres`, expected `workers`"
        );
        assert_eq!(
            told("workers = 99999999999999999999"),
            "f:1:11: expected a whole number of at most 64 bits, found 99999999999999999999"
        );
    }

    #[test]
    fn what_is_no_text_is_told_by_its_place() {
        let read = |bytes: &[u8]| text_of(Path::new("f"), bytes.to_vec());
        assert_eq!(read("ä = 1".as_bytes()).unwrap(), "ä = 1");
        let error = read(b"\xc3\xa4 = 1\nb = \xff").unwrap_err();
        assert_eq!(
            error.to_string(),
            "f:2:5: expected UTF-8, found the byte 0xff"
        );
    }

    #[test]
    fn an_octal_number_is_no_socket_mode() {
        // 0o777 would arrive as 511, and be read as the octal 0511.
        let error = read_file(Path::new("f"), "unix_socket_mode = 0o777").expect_err("refused");
        assert_eq!(
            error.to_string(),
            "f:1:20: unix_socket_mode: expected a text in quotes, found 511"
        );
    }
}
