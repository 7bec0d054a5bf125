//! Where settings may have been written: flags, variables and a file.

use super::settings::{self, Setting};
use std::ffi::OsString;
use std::path::PathBuf;

/// Where settings may have been written.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The settings that were given as flags, each with all its texts.
    pub flags: Vec<(Setting, Vec<String>)>,
    /// The environment variables whose names begin with [`settings::VARIABLE_PREFIX`].
    pub variables: Vec<(String, OsString)>,
    /// The configuration file.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// Takes the flags and the file of the command line, together with the process's environment.
    #[must_use]
    pub fn from_process(flags: Vec<(Setting, Vec<String>)>, file: Option<PathBuf>) -> Self {
        // An empty variable counts as not set: it is how compose files spell "not set".
        let variables: Vec<_> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, value)| {
                name.starts_with(settings::VARIABLE_PREFIX) && !value.is_empty()
            })
            .collect();
        let named = variables
            .iter()
            .find(|(name, _)| name == settings::CONFIG_VARIABLE);
        let file = file.or_else(|| named.map(|(_, path)| PathBuf::from(path)));
        Self {
            flags,
            variables,
            file,
        }
    }
}
