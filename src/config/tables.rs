//! The tables of a file beside the settings, `[databases.NAME]` and `[users.NAME]`, as they were
//! written.

mod reading;

pub(super) use reading::read;

use toml::Value;

use super::password::NOT_SHOWN;
use super::raw::{DATABASES, Source, USERS, Written};
use super::settings::{DATABASE_KEYS, DATABASE_PASSWORD, Setting, USER_KEYS};
use super::{Error, ValueForm};

/// The name of the table for all databases that no other is for.
pub const FALLBACK: &str = "*";

/// The longest name of the server's, in bytes: it would cut a longer one.
pub(super) const MAX_NAME: usize = 63;

/// What is said to be found where that may be a secret.
pub(super) const SOMETHING_ELSE: &str = "something else";

/// What a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A database that clients ask for, or all others.
    Database,
    /// A user.
    User,
}

impl TableKind {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Database, Self::User];

    /// The first part of its name in a file.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Database => DATABASES,
            Self::User => USERS,
        }
    }

    /// What it may say.
    pub(super) const fn keys(self) -> &'static [Setting] {
        match self {
            Self::Database => DATABASE_KEYS,
            Self::User => USER_KEYS,
        }
    }

    /// How the table of this name is called.
    pub(super) fn table(self, name: &str) -> String {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        match !name.is_empty() && name.chars().all(is_bare) {
            true => format!("{}.{name}", self.word()),
            false => format!("{}.{}", self.word(), Value::String(name.to_owned())),
        }
    }
}

/// A table as it was written.
#[derive(Debug, Clone)]
pub struct WrittenTable {
    /// What it is about.
    pub kind: TableKind,
    /// The name of that; of databases maybe [`FALLBACK`].
    pub name: String,
    /// Where its table is.
    pub place: Source,
    /// What it says.
    pub keys: Vec<(Setting, Written)>,
}

impl WrittenTable {
    pub(super) fn written(&self, key: &Setting) -> Option<&Written> {
        let found = self.keys.iter().find(|(known, _)| known.key == key.key);
        found.map(|(_, written)| written)
    }

    /// The text of a key that has one.
    pub(super) fn text(&self, key: &Setting) -> Option<&str> {
        let written = self.written(key)?;
        written.items.first().map(String::as_str)
    }

    pub(super) fn refuse(&self, key: &Setting, expected: impl Into<String>, found: &str) -> Error {
        let place = self
            .written(key)
            .map_or(&self.place, |written| &written.origin);
        Error::Value {
            place: format!("{place}: {}.{}", self.kind.table(&self.name), key.key),
            expected: expected.into(),
            found: found.to_owned(),
        }
    }

    /// A name of the server's.
    pub(super) fn name_of(&self, key: &Setting) -> Result<Option<String>, Error> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.contains('\0');
        match is_name {
            true => Ok(Some(text.to_owned())),
            false => {
                let expected = format!("a name of 1 to {MAX_NAME} bytes");
                Err(self.refuse(key, expected, &format!("{text:?}")))
            }
        }
    }

    /// One of the words of a key.
    pub(super) fn choice(&self, key: &Setting) -> Result<&str, Error> {
        let text = self.text(key).or(key.default).unwrap_or_default();
        let ValueForm::Choice(words) = key.kind else {
            return Ok(text);
        };
        match words.contains(&text) {
            true => Ok(text),
            false => Err(self.refuse(key, words.join(" or "), &format!("{text:?}"))),
        }
    }

    /// A whole number; `None` if it does not say.
    pub(super) fn count(&self, key: &Setting) -> Result<Option<usize>, Error> {
        let (Some(text), ValueForm::Integer { min, max }) = (self.text(key), key.kind) else {
            return Ok(None);
        };
        let number = text.parse::<u64>().ok();
        let number = number.filter(|number| (min..=max).contains(number));
        let number = number.and_then(|number| usize::try_from(number).ok());
        let expected = || format!("a whole number from {min} to {max}");
        let number = number.ok_or_else(|| self.refuse(key, expected(), text))?;
        Ok(Some(number))
    }
}

/// Writes tables as they could stand in a file, each key with the comment that `comment` makes of
/// where it was written, and without passwords.
#[must_use]
pub fn show(tables: &[WrittenTable], comment: impl Fn(&Source) -> String) -> String {
    let mut out = String::new();
    for table in tables {
        out += &format!(
            "\n[{}]{}\n",
            table.kind.table(&table.name),
            comment(&table.place)
        );
        for (key, written) in &table.keys {
            let line = match key.key == DATABASE_PASSWORD.key {
                true => NOT_SHOWN.to_owned(),
                false => format!("{} = {}", key.key, key.toml(&written.items)),
            };
            out += &format!("{line}{}\n", comment(&written.origin));
        }
    }
    out
}
