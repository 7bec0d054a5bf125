//! `check`: print the effective settings as a configuration file, each with where it stood; and
//! what a proxy that runs would make of them.

use std::fmt::Write as _;

use anyhow::Context;
use clap::Args;

use super::SettingFlags;
use super::dialogue::Server;
use super::logging;
use crate::config::{Address, Config, Effective, show_tables};
use crate::lab::login::Account;
use crate::net;

/// The arguments of `check`: those of every setting, so that a whole command line can be tried.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Ask the proxy that listens at this address, at its console, what of this it would change at
    /// a RELOAD, and what only at a restart; the user is PGUSER, the password PGPASSWORD
    #[arg(long, value_name = "ADDRESS")]
    against: Option<Address>,

    #[command(flatten)]
    settings: SettingFlags,
}

impl Check {
    /// Prints the settings, also when one of them, or a file that it names, turns out to be bad.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let effective = Effective::load(&self.settings.sources())?;
        let checked = effective.config();
        // What the files have in them that is doubtful.
        let output = checked.as_ref().ok().map(logging::start).transpose()?;
        let files = checked.as_ref().ok().map(net::check);
        if let Some(output) = output {
            output.finish();
        }
        let good = checked.as_ref().ok();
        let good = good.filter(|_| matches!(files, Some(Ok(_))));
        super::print(&render(&effective, good))?;
        let config = checked?;
        files.transpose()?;
        if let Some(address) = &self.against {
            let running = running(address).with_context(|| format!("the proxy at {address}"))?;
            super::print(&compare(&config, &running))?;
        }
        Ok(())
    }
}

/// The longest value behind which the others' places are written.
const WIDEST: usize = 60;

/// A setting of a proxy that runs: its name, its value, and whether a RELOAD changes it.
type Running = (String, String, bool);

/// What the console there says of the settings in force.
fn running(address: &Address) -> anyhow::Result<Vec<Running>> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let account = Account {
        user: variable("PGUSER")
            .or_else(|| variable("USER"))
            .context("no user: set PGUSER")?,
        database: "pgautoprep".to_owned(),
        password: variable("PGPASSWORD"),
    };
    let console = Server::connect_to_proxy(address)?.log_in(&account, &[])?;
    let rows = { console }.rows("SHOW CONFIG")?;
    let settings = rows.into_iter().filter_map(|row| match &row[..] {
        [Some(key), value, _, Some(changeable)] => {
            let value = value.clone().unwrap_or_default();
            Some((key.clone(), value, changeable == "yes"))
        }
        _ => None,
    });
    Ok(settings.collect())
}

/// What would change if this configuration were read there.
fn compare(config: &Config, running: &[Running]) -> String {
    let mut out = String::new();
    for (key, value) in &config.written {
        let found = running.iter().find(|(other, ..)| other == key);
        // Writing to a String cannot fail.
        let _ = match found {
            Some((_, current, _)) if current == value => Ok(()),
            Some((_, current, true)) => {
                writeln!(out, "# RELOAD changes {key}: {current:?} becomes {value:?}")
            }
            Some((_, current, false)) => {
                writeln!(
                    out,
                    "# only a restart changes {key}: {current:?} becomes {value:?}"
                )
            }
            None => writeln!(out, "# the proxy that runs does not know {key}"),
        };
    }
    if out.is_empty() {
        out.push_str("# the proxy that runs has the same settings\n");
    }
    out.push_str("# files and the tables of databases were not compared\n");
    out
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
    // One long value does not move the others' places out of sight.
    let widths = lines.iter().map(|(value, _)| value.chars().count());
    let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);

    let mut out = String::new();
    for (value, origin) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{value:<width$}  # {origin}");
    }
    out += &show_tables(effective.tables(), |place| format!("  # {place}"));
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
    fn what_a_running_proxy_would_change_is_told() {
        let pairs = [
            ("upstream", "a:1"),
            ("log_level", "debug"),
            ("max_shapes", "7"),
        ];
        let config = Config::from_pairs(&pairs).unwrap();
        let mut running: Vec<Running> = config
            .written
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone(), *key == "log_level"))
            .collect();
        assert!(compare(&config, &running).starts_with("# the proxy that runs has the same"));
        for (key, value, _) in &mut running {
            if ["log_level", "max_shapes"].contains(&&**key) {
                "9".clone_into(value);
            }
        }
        running.retain(|(key, ..)| key != "audit");
        let told = compare(&config, &running);
        for line in [
            "# RELOAD changes log_level: \"9\" becomes \"debug\"\n",
            "# only a restart changes max_shapes: \"9\" becomes \"7\"\n",
            "# the proxy that runs does not know audit\n",
        ] {
            assert!(told.contains(line), "{told}");
        }
        assert_eq!(told.lines().count(), 4, "{told}");
    }

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
        // The query for secrets is longer than what fits a window.
        let mut lines = printed.lines();
        let audit = lines.find(|line| line.starts_with("audit = "));
        assert!(audit.is_some_and(|line| line.len() < 80), "{printed}");

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
