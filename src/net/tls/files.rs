//! Keys and certificates, read from files in PEM.

use super::listed::Listed;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

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
    /// A private key that takes a passphrase.
    #[error(
        "the private key in {} is encrypted: expected one without a passphrase, as openssl pkey \
         -in FILE -out NEWFILE writes it",
        _0.display()
    )]
    Encrypted(PathBuf),
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
    if std::fs::metadata(path).is_ok_and(|metadata| is_readable_by_others(&metadata)) {
        let path = path.display();
        tracing::warn!(%path, "others on this machine can read the private key in this file");
    }
    PrivateKeyDer::from_pem_file(path).map_err(|source| match is_encrypted(path) {
        true => Error::Encrypted(path.to_owned()),
        false => Error::File {
            what: "a private key",
            path: path.to_owned(),
            source,
        },
    })
}

/// Whether others than its owner can read a file; but a group may read what is root's, as
/// PostgreSQL has it.
fn is_readable_by_others(metadata: &Metadata) -> bool {
    let others = if metadata.uid() == 0 { 0o007 } else { 0o077 };
    metadata.mode() & others != 0
}

/// Whether what stands in a file takes a passphrase.
fn is_encrypted(path: &Path) -> bool {
    let text = std::fs::read(path).map(Zeroizing::new).unwrap_or_default();
    let has = |sign: &[u8]| memchr::memmem::find(&text, sign).is_some();
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_that_takes_a_passphrase_is_said_to() {
        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = directory.path().join("a.key");
            std::fs::write(&path, text).unwrap();
            private_key(&path)
                .map(drop)
                .map_err(|error| error.to_string())
        };
        // As OpenSSL 3 writes them, and as older ones do.
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIH0MF8G\n\
             -----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n\
             MIH0MF8G\n-----END RSA PRIVATE KEY-----\n",
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.contains("a.key is encrypted: expected one without"),
                "{error}"
            );
        }
        let error = read("nothing").unwrap_err();
        assert!(error.contains("cannot read a private key from "), "{error}");
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        assert_eq!(read(&key), Ok(()));
    }

    #[test]
    fn a_key_is_for_its_owner_and_for_a_group_if_that_is_root() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_root = file.as_file().metadata().unwrap().uid() == 0;
        for (mode, is_told) in [
            (0o600, false),
            (0o400, false),
            (0o640, !is_root),
            (0o644, true),
            (0o604, true),
        ] {
            let wanted = std::fs::Permissions::from_mode(mode);
            file.as_file().set_permissions(wanted).unwrap();
            let metadata = file.as_file().metadata().unwrap();
            assert_eq!(is_readable_by_others(&metadata), is_told, "{mode:o}");
        }
    }
}
