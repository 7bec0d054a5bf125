//! Keys and certificates, read from files in PEM.

use super::listed::Listed;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};

/// Why TLS cannot be had with these files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, or holds no PEM of the kind that is wanted.
    #[error("cannot read {what} from {}: {source}", path.display())]
    File {
        /// What is looked for in it.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// A certificate of an authority that is none.
    #[error("cannot trust the certificates of {}: {source}", path.display())]
    Authority {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// Key and certificate cannot be used, or not together.
    #[error(
        "cannot use the key of {} with the certificate of {}: {source}",
        key.display(),
        certificate.display()
    )]
    Pair {
        /// The path of the key.
        key: PathBuf,
        /// The path of the certificate.
        certificate: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// The library refuses what the settings ask for.
    #[error("cannot set up TLS: {0}")]
    Setup(String),
}

/// The certificates of a file, in order; at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |source| Error::File {
        what: "a certificate",
        path: path.to_owned(),
        source,
    };
    let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(failed)?;
    match found.is_empty() {
        true => Err(failed(pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

/// The first private key of a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| Error::File {
        what: "a private key",
        path: path.to_owned(),
        source,
    })
}

/// The authorities of a file, and all that stands in it.
pub(super) fn authorities(path: &Path) -> Result<(RootCertStore, Listed), Error> {
    let mut roots = RootCertStore::empty();
    let all = certificates(path)?;
    for certificate in &all {
        let added = roots.add(certificate.clone());
        added.map_err(|source| Error::Authority {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok((roots, Listed::new(all)))
}
