//! Log lines: to standard error, as text or JSON, filtered as configured.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Sends the log lines of the whole process to standard error. Call it once.
///
/// # Errors
/// It was called before.
pub fn start(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log_level).context("log_level")?;
    let builder = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let outcome = match config.log_format {
        LogFormat::Text => builder.with_env_filter(filter).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_env_filter(filter)
            .try_init(),
    };
    outcome.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_once() {
        let pairs = [("upstream", "db:1"), ("log_level", "off,pgautoprep=warn")];
        let config = Config::from_pairs(&pairs).expect("valid");
        assert!(start(&config).is_ok());
        assert!(start(&config).is_err());
    }
}
