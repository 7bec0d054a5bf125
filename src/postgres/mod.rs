//! Finds or fetches PostgreSQL server binaries and runs a scratch server with them.
//!
//! The demo and the tests need a real server that they may use up. [`Scratch::start`] gives one:
//! [`find`] looks for installed binaries, [`fetch`] downloads a pinned build when there are none,
//! [`Scratch`] initialises a data directory of its own and starts the server on a free port.
//!
//! What it keeps: when the [`Scratch`] is dropped, when its owner panics, and when the owning
//! process is killed by a signal it cannot catch, the server stops and its directory is deleted.
//! [`child`] says how.

pub mod account;
mod archive;
pub mod child;
pub mod cpu;
pub mod fetch;
pub mod find;
mod scratch;

use std::io;
use std::path::{Path, PathBuf};

pub use find::{Binaries, Wanted};
pub use scratch::{Auth, Options, SUPERUSER, Scratch};

/// The environment variable that names the directory of the server binaries to use.
pub const BIN_VARIABLE: &str = "PGAUTOPREP_PG_BIN";
/// The environment variable that names the major version of the server the tests run on.
pub const MAJOR_VARIABLE: &str = "PGAUTOPREP_PG_MAJOR";
/// The environment variable that names another Maven repository to download servers from.
pub const MAVEN_VARIABLE: &str = "PGAUTOPREP_MAVEN_URL";

/// Why there is no scratch server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable binaries on this machine.
    #[error(
        "no PostgreSQL server{wanted} found\n  tried: {}\n  install one, for example: \
         apt-get install postgresql\n  or name its directory in {BIN_VARIABLE}",
        tried.join("\n  tried: ")
    )]
    NotFound {
        /// What was asked for, as it reads in the message.
        wanted: Wanted,
        /// Every place looked at, and what was there.
        tried: Vec<String>,
    },
    /// There is no pinned build of this version for this platform.
    #[error("no PostgreSQL {major} to download for {os} on {arch}")]
    NoBuild {
        /// The major version asked for.
        major: u32,
        /// `std::env::consts::OS`.
        os: &'static str,
        /// `std::env::consts::ARCH`.
        arch: &'static str,
    },
    /// The download failed.
    #[error("cannot download {url}: {why}")]
    Download {
        /// What was being downloaded.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// The downloaded archive is not what its checksum file says.
    #[error("{url} has SHA-256 {actual}, its checksum file says {expected}")]
    Checksum {
        /// What was downloaded.
        url: String,
        /// The checksum file's content.
        expected: String,
        /// The checksum of what arrived.
        actual: String,
    },
    /// The archive holds something that is not unpacked.
    #[error("refusing to unpack {entry:?}: {why}")]
    Archive {
        /// The entry's name.
        entry: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file system or process operation failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// `initdb` failed.
    #[error("initdb failed ({status}):\n{output}")]
    Initdb {
        /// Its exit status.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// The server ended or was not ready in time.
    #[error("the PostgreSQL server did not start: {why}; the end of its log:\n{log}")]
    NotReady {
        /// Ended, or took too long.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// An option that cannot be carried out.
    #[error("{0}")]
    Option(String),
}

impl Error {
    /// For `map_err`: names the operation and the path beside the system's answer.
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
