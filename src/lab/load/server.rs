//! The server that is measured on, and the program that is measured: what `demo` and `bench` share.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::progress::Progress;
use crate::lab::postgres::{Binaries, Options, Scratch, Wanted, fetch, find};

/// Which server to start, and which proxy to put before it.
#[derive(Debug, Clone, Args)]
pub struct ServerFlags {
    /// The major version of the server; the one that is found first when not given
    #[arg(long, value_name = "MAJOR")]
    pub pg_version: Option<u32>,

    /// The directory of the server's programs; searched for when not given
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "pg_version")]
    pub pg_bin: Option<PathBuf>,

    /// Do not download a server when none is installed
    #[arg(long)]
    pub no_download: bool,

    /// Measure another build of this program instead of the running one
    #[arg(long, value_name = "PROGRAM")]
    pub proxy: Option<PathBuf>,
}

impl ServerFlags {
    /// Finds a server, or downloads one and says so.
    ///
    /// # Errors
    /// There is none to be had.
    pub(crate) fn binaries(&self, progress: &mut Progress<'_>) -> anyhow::Result<Binaries> {
        if let Some(directory) = &self.pg_bin {
            return Binaries::at(directory).map_err(anyhow::Error::msg);
        }
        let wanted = self.pg_version.map_or(Wanted::Any, Wanted::Major);
        if find::find(wanted).is_err() {
            match fetch::pending(wanted) {
                Ok(Some(url)) if !self.no_download => {
                    progress.step(&format!(
                        "no PostgreSQL server{wanted} here; downloading {url}"
                    ))?;
                }
                _ => {}
            }
        }
        Ok(Binaries::obtain(wanted, !self.no_download)?)
    }

    /// Starts a scratch server for this many connections of the load.
    ///
    /// # Errors
    /// There is none to be had, or it does not start.
    pub(crate) fn start(
        &self,
        connections: usize,
        progress: &mut Progress<'_>,
    ) -> anyhow::Result<Scratch> {
        let binaries = self.binaries(progress)?;
        progress.step(&format!(
            "starting a scratch PostgreSQL {} server",
            binaries.version
        ))?;
        let settings = [
            ("max_connections", (connections + SPARE).to_string()),
            ("shared_buffers", "256MB".to_owned()),
            ("autovacuum", "off".to_owned()), // it would run in one measurement and not the next
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        Ok(Scratch::start(&Options {
            binaries: Some(binaries),
            settings: settings.to_vec(),
            ..Options::default()
        })?)
    }

    /// Whether what is measured is this program.
    pub(crate) const fn is_own_program(&self) -> bool {
        self.proxy.is_none()
    }

    /// The program whose `serve` is measured.
    ///
    /// # Errors
    /// It cannot be found.
    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        match &self.proxy {
            Some(program) => program
                .canonicalize()
                .context("cannot find the proxy to measure"),
            None => std::env::current_exe().context("cannot find this program's own file"),
        }
    }
}

/// Connections beside those of the load: loading data, the proxies' own, superuser's reserve.
const SPARE: usize = 20;

/// A runtime for what is done before and after the load.
///
/// # Errors
/// The operating system gives no resources.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
