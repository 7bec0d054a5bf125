//! The command line: one file per command, each with its arguments and a `run`.
//!
//! A new command is a module here, a variant of `Command` and an arm in [`Arguments::run`]. The
//! commands that measure are in [`crate::lab`].

mod advise;
mod check;
mod dialogue;
mod explain;
mod flags;
mod import;
pub mod logging;
mod notify;
mod serve;
mod summary;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::usage;
use crate::lab::{bench, demo};

pub use flags::SettingFlags;

/// The exit code for a command line or configuration that cannot be used: `EX_USAGE` of
/// sysexits, distinct from the 1 of failures at run time.
pub const EXIT_USAGE: u8 = 64;

/// The command that runs when the command line begins with a flag, or is empty.
const DEFAULT_COMMAND: &str = "serve";

/// A PostgreSQL proxy that runs literal SQL as server-side prepared statements.
#[derive(Debug, Parser)]
#[command(
    name = "pgautoprep",
    version,
    max_term_width = 100,
    override_usage = "pgautoprep [serve] --upstream HOST:PORT [OPTIONS]\n       \
                      pgautoprep <COMMAND> [OPTIONS]"
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What the program can be told to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run the proxy (the default).
    Serve(serve::Serve),
    /// Observe what an application sends to a server, and print what conversion would change.
    Advise(Box<advise::Advise>),
    /// Measure what conversion gains, on a scratch server of its own.
    Demo(demo::DemoOptions),
    /// Measure workloads by several ways to one server, and write a report.
    Bench(Box<bench::BenchOptions>),
    /// Print what becomes of a statement and why, without running it.
    Explain(explain::Explain),
    /// Print every setting, where it comes from, whether it can be used, and what RELOAD would do.
    Check(Box<check::Check>),
    /// Print the configuration that says what a pgbouncer.ini says, and what it cannot say.
    Import(import::Import),
}

impl Arguments {
    /// Reads a command line that begins with the program's name.
    ///
    /// # Errors
    /// What clap found wrong, or the help or version it was asked for, ready to be printed.
    pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = <Self as CommandFactory>::command().after_help(usage::table());
        let line = with_default_command(line.into_iter().collect());
        Self::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    /// Does what was asked.
    ///
    /// # Errors
    /// Why it could not be done; a [`crate::config::Error`] when the configuration is to blame.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(serve) => serve.run(),
            Command::Advise(advise) => advise.run(),
            Command::Demo(options) => demo::run(&options, &mut io::stdout().lock()),
            Command::Bench(options) => bench::run(&options, &mut io::stdout().lock()),
            Command::Explain(explain) => explain.run(),
            Command::Check(check) => check.run(),
            Command::Import(import) => import.run(),
        }
    }
}

/// Writes `text` to standard output. A reader that has gone away, such as `head`, is no error.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// `line` with the default command put in when its first argument is a flag or missing.
fn with_default_command(mut line: Vec<OsString>) -> Vec<OsString> {
    let about_the_program = ["-h", "--help", "-V", "--version"];
    let names_no_command = line.get(1).is_none_or(|first| {
        let first = first.to_string_lossy();
        first.starts_with('-') && !about_the_program.contains(&first.as_ref())
    });
    if names_no_command {
        line.insert(line.len().min(1), DEFAULT_COMMAND.into());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_is_the_default() {
        for (given, meant) in [
            ("p", "p serve"),
            ("p --upstream db:1", "p serve --upstream db:1"),
            ("p check --config f", "p check --config f"),
            ("p serv", "p serv"),
            ("p --help", "p --help"),
            ("p -V", "p -V"),
        ] {
            let line = given.split(' ').map(OsString::from).collect();
            let meant: Vec<_> = meant.split(' ').map(OsString::from).collect();
            assert_eq!(with_default_command(line), meant);
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_shows_every_setting_and_an_unknown_flag_is_named() {
        let parse = |line: &[&str]| Arguments::parse(line.iter().map(OsString::from));
        let help = parse(&["p", "--help"]).expect_err("help is an early exit");
        assert!(!help.use_stderr());
        assert!(help.to_string().ends_with(&usage::table()), "{help}");
        let error = parse(&["p", "check", "--max-client", "1"]).expect_err("a typing error");
        assert!(error.use_stderr());
        assert!(error.to_string().contains("'--max-clients'"), "{error}");
    }
}
