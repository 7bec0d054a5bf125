//! The tables as they stand in a file.

use super::super::Error;
use super::super::raw::{Source, Written, items_of, line_and_column, unknown_key};
use super::super::settings::{DATABASE_PASSWORD, Setting};
use super::{FALLBACK, MAX_NAME, SOMETHING_ELSE, TableKind, WrittenTable};
use std::path::Path;
use toml::Value;
use toml::de::{DeTable, DeValue};

/// What a table of `PgBouncer`'s may say, and what to do in its stead.
const CONNECT_QUERY: &str = "connect_query";
const NO_CONNECT_QUERY: &str = "there is no such key, because a session begins as it does \
    directly; ALTER DATABASE … SET, or ALTER ROLE … IN DATABASE … SET, has it begin otherwise";

/// A file as it was written.
#[derive(Clone, Copy)]
struct Original<'t> {
    path: &'t Path,
    text: &'t str,
}

impl Original<'_> {
    fn place(self, offset: usize) -> Source {
        let (line, column) = line_and_column(self.text, offset);
        Source::File {
            path: self.path.to_owned(),
            line,
            column,
        }
    }

    /// The error for something that is no table.
    fn no_table(self, kind: TableKind, offset: usize, name: &str) -> Error {
        Error::Value {
            place: format!("{}: {name}", self.place(offset)),
            expected: format!("a table, as in [{}.NAME]", kind.word()),
            // It may be a connection string with a password in it.
            found: SOMETHING_ELSE.to_owned(),
        }
    }
}

/// The tables about this in the file at `path`, which holds `text` and is TOML. `value` is all of
/// them.
///
/// # Errors
/// What is no table, has a key that is none, or a value of the wrong type.
pub(in crate::config) fn read(
    path: &Path,
    text: &str,
    (kind, value): (TableKind, &Value),
) -> Result<Vec<WrittenTable>, Error> {
    let file = Original { path, text };
    let spans = DeTable::parse(text).map(toml::Spanned::into_inner);
    let spans = spans.unwrap_or_default();
    let whole = spans
        .iter()
        .find(|(key, _)| key.get_ref().as_ref() == kind.word());
    let start = whole.map_or(0, |(key, _)| key.span().start);
    let whole = whole.map(|(_, value)| value.get_ref());
    let (Value::Table(values), Some(DeValue::Table(spans))) = (value, whole) else {
        return Err(file.no_table(kind, start, kind.word()));
    };
    let mut found = Vec::new();
    for (key, span) in spans {
        let (name, place) = (key.get_ref().as_ref(), key.span().start);
        let (Some(Value::Table(value)), DeValue::Table(keys)) = (values.get(name), span.get_ref())
        else {
            return Err(file.no_table(kind, place, &kind.table(name)));
        };
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return Err(Error::Value {
                place: file.place(place).to_string(),
                expected: match kind {
                    TableKind::Database => {
                        format!("a database's name of 1 to {MAX_NAME} bytes, or \"{FALLBACK}\"")
                    }
                    TableKind::User => format!("a user's name of 1 to {MAX_NAME} bytes"),
                },
                found: format!("{name:?}"),
            });
        }
        found.push(WrittenTable {
            kind,
            name: name.to_owned(),
            place: file.place(place),
            keys: read_keys(file, (kind, name), value, keys)?,
        });
    }
    Ok(found)
}

/// What a table says.
fn read_keys(
    file: Original<'_>,
    (kind, name): (TableKind, &str),
    values: &toml::Table,
    spans: &DeTable<'_>,
) -> Result<Vec<(Setting, Written)>, Error> {
    let mut written = Vec::new();
    for (key, span) in spans {
        let (word, origin) = (key.get_ref().as_ref(), file.place(span.span().start));
        let Some(setting) = kind.keys().iter().find(|known| known.key == word) else {
            let known: Vec<_> = kind.keys().iter().map(|one| one.key).collect();
            let message = match word {
                CONNECT_QUERY => format!("{word} in {}: {NO_CONNECT_QUERY}", kind.table(name)),
                _ => unknown_key(word, &format!(" in {}", kind.table(name)), &known),
            };
            let place = file.place(key.span().start);
            return Err(Error::Syntax { place, message });
        };
        let Some(value) = values.get(word) else {
            continue;
        };
        let items = items_of(setting, value).map_err(|expected| Error::Value {
            place: format!("{origin}: {}.{word}", kind.table(name)),
            expected: expected.to_owned(),
            found: match word == DATABASE_PASSWORD.key {
                true => SOMETHING_ELSE.to_owned(),
                false => value.to_string(),
            },
        })?;
        written.push((*setting, Written { items, origin }));
    }
    Ok(written)
}
