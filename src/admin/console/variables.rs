//! What clients expect a server to have set: told at login, by SHOW, and not to be changed.

use super::value::{TableColumn, text};

/// Something that a server has set.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its column in what SHOW answers, whose name is its own.
    pub columns: [TableColumn; 1],
    /// Its value.
    pub value: &'static str,
    /// It is told at login.
    pub is_told: bool,
}

/// The version that is told: drivers read its number, people what follows it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/pgautoprep");

/// All of them. The console shows no dates and no fractions that these would change.
pub(super) static VARIABLES: [Variable; 13] = [
    told("server_version", VERSION),
    told("server_encoding", "UTF8"),
    told("client_encoding", "UTF8"),
    told("DateStyle", "ISO"),
    told("TimeZone", "GMT"),
    told("standard_conforming_strings", "on"),
    told("integer_datetimes", "on"),
    known("default_transaction_isolation", "read committed"),
    known("transaction_isolation", "read committed"),
    known("extra_float_digits", "2"),
    known("application_name", ""),
    known("client_min_messages", "notice"),
    known("statement_timeout", "0"),
];

const fn told(name: &'static str, value: &'static str) -> Variable {
    Variable {
        columns: [text(name)],
        value,
        is_told: true,
    }
}

const fn known(name: &'static str, value: &'static str) -> Variable {
    Variable {
        is_told: false,
        ..told(name, value)
    }
}

impl Variable {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.columns[0].name
    }

    /// The one of this name, in capitals or not.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        VARIABLES.iter().find(|variable| variable.is(name))
    }

    /// Whether this is its name, in capitals or not.
    #[must_use]
    pub const fn is(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }
}
