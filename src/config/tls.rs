//! What was written about encryption, checked: which modes, which versions, which files.

use std::path::PathBuf;

use super::settings::{self, Setting};
use super::{Effective, Error, refuse};

/// Whether clients may or must use TLS, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// Whether they may or must.
    pub mode: ClientTlsMode,
    /// The private key; there is one unless TLS is refused.
    pub key_file: PathBuf,
    /// The certificate; there is one unless TLS is refused.
    pub cert_file: PathBuf,
    /// Who signs the certificates of clients; there is one if they are verified.
    pub ca_file: PathBuf,
    /// The versions of TLS that may be spoken.
    pub versions: TlsVersions,
}

/// Whether clients may or must use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientTlsMode {
    /// They are told that there is none.
    Disable,
    /// They may.
    Optional,
    /// They must, unless they come over a Unix socket.
    Required,
    /// They must, and show a certificate.
    Verified,
}

/// Versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    Secure,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

impl Effective {
    /// What was written about TLS with clients.
    pub(super) fn client_tls(&self) -> Result<ClientTls, Error> {
        let mode = match self.text(&settings::CLIENT_TLS_SSLMODE)? {
            "disable" => ClientTlsMode::Disable,
            "allow" | "prefer" => ClientTlsMode::Optional,
            "require" => ClientTlsMode::Required,
            _ => ClientTlsMode::Verified,
        };
        let asks = |least: ClientTlsMode| match mode >= least {
            true => Some(&settings::CLIENT_TLS_SSLMODE),
            false => None,
        };
        let shown = asks(ClientTlsMode::Optional);
        Ok(ClientTls {
            mode,
            key_file: self.file(&settings::CLIENT_TLS_KEY_FILE, shown)?,
            cert_file: self.file(&settings::CLIENT_TLS_CERT_FILE, shown)?,
            ca_file: self.file(&settings::CLIENT_TLS_CA_FILE, asks(ClientTlsMode::Verified))?,
            versions: match self.text(&settings::CLIENT_TLS_PROTOCOLS)? {
                "tlsv1.2" => TlsVersions::Only12,
                "tlsv1.3" => TlsVersions::Only13,
                _ => TlsVersions::Secure,
            },
        })
    }

    /// The path that was written, which must be there if another setting asks for it.
    fn file(&self, setting: &Setting, asked_by: Option<&Setting>) -> Result<PathBuf, Error> {
        let text = self.text(setting)?;
        match asked_by {
            Some(other) if text.is_empty() => {
                let expected = format!("a file, because of {}", other.key);
                Err(refuse(setting, self.written(setting)?, expected, text))
            }
            _ => Ok(PathBuf::from(text)),
        }
    }
}
