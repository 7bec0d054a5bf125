//! What `--help` says about settings.

use super::settings::SETTINGS;
use std::fmt::Write as _;

/// Writes the table at the end of `--help`: which source wins, and every name of every setting.
#[must_use]
pub fn table() -> String {
    let mut out = String::from(
        "Settings: a flag wins over a variable, a variable over the file, the file over the \
         default.\nThe file is the one --config or PGAUTOPREP_CONFIG names; an empty variable \
         counts as not set.\n\n",
    );
    let mut row = |flag: &str, variable: &str, key: &str, default: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {flag:<24} {variable:<33} {key:<22} {default}");
    };
    row("flag", "variable", "key in the file", "default");
    for setting in SETTINGS {
        let flag = format!("--{}", setting.flag());
        row(
            &flag,
            &setting.variable(),
            setting.key,
            setting.shown_default(),
        );
    }
    out
}
