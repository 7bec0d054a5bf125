//! TLS with the server: whom the proxy believes to be it, and what it shows itself.

use super::clients::{PROTOCOL, provider};
use super::files::{self, Error};
use super::tunnel::Tunnel;
use super::verify::Lenient;
use crate::config::{Address, Config, ServerTls, ServerTlsMode};
use rustls::client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection};
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, PoisonError, RwLock};

/// What a connection to the server begins with.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// What TLS with the server takes.
#[derive(Debug)]
pub(in crate::net) struct ServerSide {
    settings: ServerTls,
    upstream: Address,
    /// What new connections begin with; none if there is no TLS.
    current: RwLock<Option<Beginning>>,
}

impl ServerSide {
    /// Reads the files.
    pub(super) fn load(config: &Config) -> Result<Self, Error> {
        let (settings, upstream) = (config.server_tls.clone(), config.upstream.clone());
        let side = Self {
            settings,
            upstream,
            current: RwLock::new(None),
        };
        let read = side.read()?;
        side.install(read);
        Ok(side)
    }

    /// Has new connections begin with what was read.
    pub(super) fn install(&self, read: Option<Beginning>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = read;
    }

    /// Reads the files.
    pub(super) fn read(&self) -> Result<Option<Beginning>, Error> {
        let settings = &self.settings;
        let host = match &self.upstream {
            Address::Tcp { host, .. } if settings.mode != ServerTlsMode::Disable => host,
            // Nobody can listen to a Unix socket: as in libpq.
            _ => return Ok(None),
        };
        // The zone is only for this machine to know.
        let (host, _zone) = host.split_once('%').unwrap_or((host, ""));
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| Error::Setup(format!("no certificate can name {host:?}")))?;
        let setup = |error: &dyn std::error::Error| Error::Setup(error.to_string());
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier(settings)?);
        let mut config = if settings.cert_file.as_os_str().is_empty() {
            builder.with_no_client_auth()
        } else {
            let chain = files::certificates(&settings.cert_file)?;
            let key = files::private_key(&settings.key_file)?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|source| Error::Pair {
                key: settings.key_file.clone(),
                certificate: settings.cert_file.clone(),
                source,
            })?
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // PostgreSQL resumes nothing.
        config.resumption = Resumption::disabled();
        let config = Arc::new(config);
        Ok(Some(Beginning { config, name }))
    }

    /// The beginning of a connection to the server; none if there is no TLS.
    pub(in crate::net) fn tunnel(&self) -> Option<Result<Tunnel, rustls::Error>> {
        let current = self.current.read();
        let Beginning { config, name } = current.unwrap_or_else(PoisonError::into_inner).clone()?;
        let connection = ClientConnection::new(config, name).map(Connection::Client);
        Some(connection.map(Tunnel::new))
    }

    /// Whether TLS begins without having been asked for.
    pub(in crate::net) const fn begins_at_once(&self) -> bool {
        self.settings.at_once
    }

    /// Whether a server that does not know TLS is spoken to in the clear.
    pub(in crate::net) fn is_optional(&self) -> bool {
        self.settings.mode == ServerTlsMode::Prefer
    }
}

/// Who decides whether a certificate is the server's.
fn verifier(settings: &ServerTls) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let setup = |error: &dyn std::error::Error| Error::Setup(error.to_string());
    if settings.mode < ServerTlsMode::VerifyCa {
        return Ok(Arc::new(Lenient::any_certificate(provider())));
    }
    if settings.ca_file.as_os_str().is_empty() {
        let verifier = Verifier::new(provider()).map_err(|error| setup(&error))?;
        return Ok(Arc::new(verifier));
    }
    let roots = Arc::new(files::authorities(&settings.ca_file)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
    let verifier = verifier.map_err(|error| setup(&error))?;
    Ok(match settings.mode {
        ServerTlsMode::VerifyCa => Arc::new(Lenient::any_name(provider(), verifier)),
        _ => verifier,
    })
}
