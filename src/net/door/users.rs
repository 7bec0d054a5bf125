//! The file of users.

use crate::auth::Mistake;
use crate::auth::userlist::{self, Users};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The largest file of users that is read.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Others may read the file.
const READ_BY_OTHERS: u32 = 0o004;

/// Why clients could not be let in.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file as configured.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of users, rules or maps is none, or asks for what is not there.
    #[error("{}, {mistake}", path.display())]
    Form {
        /// The file as configured.
        path: PathBuf,
        /// What is wrong with it.
        mistake: Mistake,
    },
    /// `auth_user` cannot log in.
    #[error(
        "auth_file has a SCRAM secret for auth_user {0}, by which nobody can log in: write its \
         password there, or have the server ask it for none"
    )]
    Asker(String),
    /// A user of a table of databases cannot log in.
    #[error(
        "auth_file has a SCRAM secret for the user {0} of [databases], by which nobody can log in: \
         write its password there, or have the server ask it for none"
    )]
    Forced(String),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Chance(#[source] io::Error),
}

/// Reads the users that a file names.
pub(super) fn read(path: &Path) -> Result<Users, Error> {
    let text = contents_of(path, |metadata| {
        if metadata.permissions().mode() & READ_BY_OTHERS != 0 {
            let path = path.display();
            tracing::warn!(%path, "everybody on this machine can read the secrets in this file");
        }
    })?;
    userlist::read(&text).map_err(|mistake| Error::Form {
        path: path.to_owned(),
        mistake,
    })
}

/// The text of a file without secrets.
pub(super) fn contents(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    contents_of(path, |_| {})
}

/// The text of a file, whose metadata is seen before.
fn contents_of(path: &Path, see: impl FnOnce(&Metadata)) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    see(&metadata);
    let mut text = Zeroizing::new(Vec::with_capacity(
        usize::try_from(metadata.len()).unwrap_or(0),
    ));
    let count = file.take(MAX_FILE + 1).read_to_end(&mut text);
    if count.map_err(failed)? as u64 > MAX_FILE {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(text)
}
