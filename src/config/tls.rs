//! What was written about encryption, checked: which modes, which versions, which files.

use std::path::PathBuf;

use super::settings::{self, Setting};
use super::{Address, AuthType, Config, Effective, Error, refuse};

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

/// Whether the server is spoken to by TLS, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// Whether, and what its certificate has to prove.
    pub mode: ServerTlsMode,
    /// Who may have signed its certificate; empty for those that the system trusts.
    pub ca_file: PathBuf,
    /// The private key that the proxy has for the server; empty for none.
    pub key_file: PathBuf,
    /// The certificate of that key; empty for none.
    pub cert_file: PathBuf,
    /// It begins without having been asked for.
    pub at_once: bool,
}

/// What TLS with the server must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerTlsMode {
    /// There is none.
    Disable,
    /// It is used if the server knows it.
    Prefer,
    /// The server must know it.
    Require,
    /// The server must have a certificate of an authority.
    VerifyCa,
    /// Which must name the host that was connected to.
    VerifyFull,
}

impl Config {
    /// What cannot work if both clients and the server use TLS, and what can be done about it.
    ///
    /// A client that encrypts and knows channel binding either binds its login to the certificate
    /// it has seen, which is not the server's, or says that it could have, which the server takes
    /// for a sign that somebody has kept its own offer from the client (RFC 5802, section 6).
    #[must_use]
    pub fn tls_conflict(&self) -> Option<&'static str> {
        let servers = self.databases.addresses();
        let is_remote = servers.iter().any(|it| matches!(it, Address::Tcp { .. }));
        let clients = !matches!(self.client_tls.mode, ClientTlsMode::Disable);
        let server = !matches!(self.server_tls.mode, ServerTlsMode::Disable);
        match clients && server && is_remote && matches!(self.auth.kind, AuthType::Relay) {
            true => Some(
                "clients and the server both use TLS, so a login by SCRAM fails for clients that \
                 know channel binding, as libpq does: have them set channel_binding=disable, or \
                 reach the server without TLS or by its Unix socket, or give the proxy the \
                 server's own key and certificate, or set auth_type",
            ),
            false => None,
        }
    }
}

impl Effective {
    /// What was written about TLS with the server.
    pub(super) fn server_tls(&self) -> Result<ServerTls, Error> {
        let mode = match self.text(&settings::SERVER_TLS_SSLMODE)? {
            "disable" => ServerTlsMode::Disable,
            // PgBouncer's does the same: it asks for TLS, and goes on without.
            "allow" | "prefer" => ServerTlsMode::Prefer,
            "require" => ServerTlsMode::Require,
            "verify-ca" => ServerTlsMode::VerifyCa,
            _ => ServerTlsMode::VerifyFull,
        };
        let verified = mode == ServerTlsMode::VerifyCa;
        let verified = verified.then_some(&settings::SERVER_TLS_SSLMODE);
        let (key, certificate) = (
            &settings::SERVER_TLS_KEY_FILE,
            &settings::SERVER_TLS_CERT_FILE,
        );
        let given = |setting| self.text(setting).is_ok_and(|text| !text.is_empty());
        Ok(ServerTls {
            mode,
            ca_file: self.file(&settings::SERVER_TLS_CA_FILE, verified)?,
            key_file: self.file(key, given(certificate).then_some(certificate))?,
            cert_file: self.file(certificate, given(key).then_some(key))?,
            at_once: self.begins_at_once(mode)?,
        })
    }

    /// Whether TLS with the server begins without having been asked for. A server that does not
    /// know that cannot say so.
    fn begins_at_once(&self, mode: ServerTlsMode) -> Result<bool, Error> {
        let setting = &settings::SERVER_TLS_NEGOTIATION;
        let text = self.text(setting)?;
        if text == "direct" && mode < ServerTlsMode::Require {
            let expected = format!("postgres, because of {}", settings::SERVER_TLS_SSLMODE.key);
            return Err(refuse(setting, self.written(setting)?, expected, text));
        }
        Ok(text == "direct")
    }

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
