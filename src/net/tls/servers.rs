//! TLS with the server: whom the proxy believes to be it, and what it shows itself.

use super::clients::{PROTOCOL, provider};
use super::files::{self, Error};
use super::old;
use super::tunnel::Tunnel;
use super::verify::{Believed, Judge};
use crate::config::{Address, Config, ServerTls, ServerTlsMode};
use rustls::client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection};
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, PoisonError, RwLock};

/// What TLS with the servers takes.
#[derive(Debug)]
pub(in crate::net) struct ServerSide {
    /// What new connections begin with.
    current: RwLock<Arc<ServerTerms>>,
}

/// What one connection begins with.
#[derive(Debug)]
pub(in crate::net) struct ServerTerms {
    mode: ServerTlsMode,
    at_once: bool,
    /// None if there is no TLS.
    config: Option<Arc<ClientConfig>>,
}

impl ServerSide {
    /// Reads the files.
    pub(super) fn load(config: &Config) -> Result<Self, Error> {
        let terms = ServerTerms::read(config)?;
        let current = RwLock::new(Arc::new(terms));
        Ok(Self { current })
    }

    /// Has new connections begin with what was read.
    pub(super) fn install(&self, read: ServerTerms) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
    }

    /// What a connection begins with that is made now.
    pub(in crate::net) fn terms(&self) -> Arc<ServerTerms> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ServerTerms {
    /// Reads the files that the settings name, for the servers that they name.
    pub(super) fn read(config: &Config) -> Result<Self, Error> {
        let settings = &config.server_tls;
        Ok(Self {
            mode: settings.mode,
            at_once: settings.at_once,
            config: read(settings, &config.databases.addresses())?,
        })
    }

    /// Whether there is TLS with any server.
    pub(super) const fn is_used(&self) -> bool {
        self.config.is_some()
    }

    /// The beginning of a connection to the server at this address; none if there is no TLS.
    pub(in crate::net) fn tunnel(
        &self,
        address: &Address,
    ) -> Option<Result<Tunnel, rustls::Error>> {
        let connection = self.connection(address)?;
        Some(connection.map(|it| Tunnel::new(Connection::Client(it))))
    }

    /// The same, without what carries it.
    pub(super) fn connection(
        &self,
        address: &Address,
    ) -> Option<Result<ClientConnection, rustls::Error>> {
        let config = Arc::clone(self.config.as_ref()?);
        // Nobody can listen to a Unix socket: as in libpq.
        let name = match name(host(address)?) {
            Ok(name) => name,
            Err(error) => return Some(Err(rustls::Error::General(error.to_string()))),
        };
        Some(ClientConnection::new(config, name))
    }

    /// Whether TLS begins without having been asked for.
    pub(in crate::net) const fn begins_at_once(&self) -> bool {
        self.at_once
    }

    /// Whether a server that does not know TLS is spoken to in the clear.
    pub(in crate::net) fn is_optional(&self) -> bool {
        self.mode == ServerTlsMode::Prefer
    }
}

/// Reads the files, for servers at these addresses; none if there is no TLS with any of them.
fn read(settings: &ServerTls, addresses: &[Address]) -> Result<Option<Arc<ClientConfig>>, Error> {
    if settings.mode == ServerTlsMode::Disable {
        return Ok(None);
    }
    let mut is_remote = false;
    for host in addresses.iter().filter_map(host) {
        name(host).map_err(|_| Error::Setup(format!("no certificate can name {host:?}")))?;
        is_remote = true;
    }
    if !is_remote {
        return Ok(None);
    }
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
        let pair = old::pair(&provider(), chain, key).map_err(|source| Error::Pair {
            key: settings.key_file.clone(),
            certificate: settings.cert_file.clone(),
            source,
        })?;
        builder.with_client_cert_resolver(pair)
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // PostgreSQL resumes nothing.
    config.resumption = Resumption::disabled();
    Ok(Some(Arc::new(config)))
}

/// The host of an address; none of a Unix socket.
fn host(address: &Address) -> Option<&str> {
    match address {
        // The zone is only for this machine to know.
        Address::Tcp { host, .. } => Some(host.split_once('%').map_or(host, |(host, _)| host)),
        Address::Unix(_) => None,
    }
}

/// What the certificate of a host has to name.
fn name(host: &str) -> Result<ServerName<'static>, InvalidDnsNameError> {
    ServerName::try_from(host.to_owned())
}

/// Who decides whether a certificate is the server's.
fn verifier(settings: &ServerTls) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let setup = |error: &dyn std::error::Error| Error::Setup(error.to_string());
    if settings.mode < ServerTlsMode::VerifyCa {
        return Ok(Arc::new(Judge::any_certificate(provider())));
    }
    if settings.ca_file.as_os_str().is_empty() {
        let verifier = Verifier::new(provider()).map_err(|error| setup(&error))?;
        return Ok(Arc::new(verifier));
    }
    let (roots, listed) = files::authorities(&settings.ca_file)?;
    let known = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    let believed = Believed {
        authorities: known.build().map_err(|error| setup(&error))?,
        listed,
    };
    let by_name = settings.mode == ServerTlsMode::VerifyFull;
    Ok(Arc::new(Judge::believing(provider(), believed, by_name)))
}
