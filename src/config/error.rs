//! What can be wrong with a configuration. Each error says where, and what was expected there.

use std::io;
use std::path::PathBuf;

use super::Address;
use super::raw::Source;
use super::settings::Setting;

/// Why a configuration was refused. The program then ends with exit code 64.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration file could not be read.
    #[error("cannot read the configuration file {}", path.display())]
    Read {
        /// The path of the file, as the user gave it.
        path: PathBuf,
        /// Why the file could not be read.
        source: io::Error,
    },
    /// The configuration file is not TOML, or holds a key that is no setting.
    #[error("{place}: {message}")]
    Syntax {
        /// The place in the file.
        place: Source,
        /// What the TOML parser says.
        message: String,
    },
    /// A value is not what its setting expects.
    #[error("{place}: expected {expected}, found {found}")]
    Value {
        /// Where the value was written, and for which setting.
        place: String,
        /// What the setting accepts.
        expected: String,
        /// What was written.
        found: String,
    },
    /// An environment variable holds bytes that are not valid Unicode.
    #[error("{0}: the variable is not valid Unicode")]
    NotUnicode(String),
    /// An environment variable that is no setting is nearly the name of one.
    #[error("{name}: no setting has this variable, expected {meant}")]
    Misspelt {
        /// The variable.
        name: String,
        /// The variable that may be meant.
        meant: String,
    },
    /// A setting without a default was not written anywhere.
    #[error(
        "{} is required: use --{}, the variable {} or the key {} of a file",
        .0.key, .0.flag(), .0.variable(), .0.key
    )]
    Required(Setting),
    /// The proxy would be its own server.
    #[error("listen and upstream are both {0}: the proxy would connect to itself")]
    Loop(Address),
    /// No setting has this name.
    #[error("{0} is no setting")]
    UnknownKey(String),
}

impl Error {
    /// The error for a value of `setting`, written at `origin`, that is `found` instead of
    /// `expected`.
    pub(super) fn value(
        setting: &Setting,
        origin: &Source,
        expected: impl Into<String>,
        found: &str,
    ) -> Self {
        // The name of a flag or variable says already which setting it is.
        let place = match origin {
            Source::Flag(_) | Source::Variable(_) => origin.to_string(),
            Source::File { .. } | Source::Default => format!("{origin}: {}", setting.key),
        };
        Self::Value {
            place,
            expected: expected.into(),
            found: found.to_owned(),
        }
    }
}
