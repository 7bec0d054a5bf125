//! `check`: print the effective settings as a configuration file, each with where it stood.

use std::fmt::Write as _;

use clap::Args;

use super::SettingFlags;
use crate::config::{Config, Effective, show_databases};
use crate::net;

/// The arguments of `check`: those of every setting, so that a whole command line can be tried.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    settings: SettingFlags,
}

impl Check {
    /// Prints the settings, also when one of them, or a file that it names, turns out to be bad.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let effective = Effective::load(&self.settings.sources())?;
        let checked = effective.config();
        super::print(&render(&effective, checked.as_ref().ok()))?;
        net::check(&checked?)?;
        Ok(())
    }
}

/// The settings as TOML; `config` is what follows from them, if they are good.
fn render(effective: &Effective, config: Option<&Config>) -> String {
    let lines: Vec<_> = effective
        .values()
        .iter()
        .map(|(setting, written)| {
            let value = format!("{} = {}", setting.key, setting.toml(&written.items));
            (value, written.origin.to_string())
        })
        .collect();
    let width = lines
        .iter()
        .map(|(value, _)| value.chars().count())
        .max()
        .unwrap_or(0);

    let mut out = String::new();
    for (value, origin) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{value:<width$}  # {origin}");
    }
    out += &show_databases(effective.databases(), |place| format!("  # {place}"));
    for stranger in effective.strangers() {
        let _ = writeln!(out, "# {stranger} is set but names no setting");
    }
    if let Some(config) = config {
        let (workers, servers) = (config.workers, config.shown_servers());
        let _ = writeln!(out, "# good: {workers} workers will relay to {servers}");
        let conflict = config.tls_conflict();
        for sentence in config.warnings() {
            let but = if Some(sentence) == conflict {
                "but "
            } else {
                ""
            };
            let _ = writeln!(out, "# {but}{sentence}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, settings};

    #[test]
    fn what_is_printed_is_a_file_that_means_the_same() {
        let given = |setting, text: &str| (setting, vec![text.to_owned()]);
        let sources = Sources {
            flags: vec![
                given(settings::UPSTREAM, "[::1]:5432"),
                given(settings::LISTEN, "a:1,/with \"quotes\""),
                given(settings::AUDIT, "off"),
                given(settings::WORKERS, "0"),
            ],
            ..Sources::default()
        };
        let effective = Effective::load(&sources).expect("valid sources");
        let config = effective.config().expect("a valid configuration");
        let printed = render(&effective, Some(&config));
        assert!(printed.contains("# --audit\n"), "{printed}");

        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("printed.toml");
        std::fs::write(&path, &printed).expect("a writable directory");
        let again = Sources {
            file: Some(path),
            ..Sources::default()
        };
        assert_eq!(Config::load(&again).expect(&printed), config);
    }
}
