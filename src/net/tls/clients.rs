//! TLS with clients: the proxy's key and certificate, read when it starts and whenever it is told
//! to.

use super::binding::end_point;
use super::files::{self, Error};
use super::listed::Clients;
use super::tunnel::Tunnel;
use super::{expiry, old};
use crate::config::{ClientTls, ClientTlsMode, TlsVersions};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{Connection, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::sync::{Arc, PoisonError, RwLock};

/// The name of PostgreSQL's protocol in ALPN. Who begins with TLS at once must name it; who has
/// asked for TLS first may.
pub(in crate::net) const PROTOCOL: &[u8] = b"postgresql";

/// What clients are shown.
#[derive(Debug)]
struct Shown {
    config: Arc<ServerConfig>,
    /// To what a login can be bound; it changes with the certificate.
    hash: Option<Arc<[u8]>>,
    /// When the certificate ends, in seconds since 1970, if that can be read.
    ends: Option<u64>,
}

/// What TLS with clients takes.
#[derive(Debug)]
pub(in crate::net) struct ClientSide {
    /// What new connections get.
    current: RwLock<Arc<ClientTerms>>,
}

/// What one connection gets, from its first byte on.
#[derive(Debug)]
pub(in crate::net) struct ClientTerms {
    mode: ClientTlsMode,
    /// None if TLS is refused.
    shown: Option<Shown>,
}

impl ClientSide {
    /// Reads the files.
    pub(super) fn load(settings: &ClientTls) -> Result<Self, Error> {
        let terms = ClientTerms::read(settings)?;
        let current = RwLock::new(Arc::new(terms));
        Ok(Self { current })
    }

    /// Has new connections get what was read.
    pub(super) fn install(&self, read: ClientTerms) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read);
    }

    /// What a connection gets that comes now.
    pub(in crate::net) fn terms(&self) -> Arc<ClientTerms> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientTerms {
    /// Reads the files that the settings name. Clients are offered what PostgreSQL offers: neither
    /// tickets nor resumption, which save little beside a login and would be one more secret to
    /// keep.
    pub(super) fn read(settings: &ClientTls) -> Result<Self, Error> {
        let mode = settings.mode;
        if mode == ClientTlsMode::Disable {
            return Ok(Self { mode, shown: None });
        }
        let setup = |error: &dyn std::error::Error| Error::Setup(error.to_string());
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(settings.versions))
            .map_err(|error| setup(&error))?;
        let builder = if mode == ClientTlsMode::Verified {
            let (roots, listed) = files::authorities(&settings.ca_file)?;
            let known = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            builder.with_client_cert_verifier(Arc::new(Clients {
                provider: provider(),
                authorities: known.build().map_err(|error| setup(&error))?,
                listed,
            }))
        } else {
            builder.with_no_client_auth()
        };
        let chain = files::certificates(&settings.cert_file)?;
        let hash = chain
            .first()
            .and_then(|leaf| end_point(leaf))
            .map(Arc::from);
        let ends = chain.first().and_then(|leaf| expiry::end(leaf));
        let key = files::private_key(&settings.key_file)?;
        let pair = old::pair(&provider(), chain, key).map_err(|source| Error::Pair {
            key: settings.key_file.clone(),
            certificate: settings.cert_file.clone(),
            source,
        })?;
        let mut config = builder.with_cert_resolver(pair);
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let config = Arc::new(config);
        let shown = Some(Shown { config, hash, ends });
        Ok(Self { mode, shown })
    }

    /// Whether clients may use TLS.
    pub(in crate::net) fn is_offered(&self) -> bool {
        self.mode != ClientTlsMode::Disable
    }

    /// Whether clients that come over a network must use TLS.
    pub(in crate::net) fn is_required(&self) -> bool {
        self.mode >= ClientTlsMode::Required
    }

    /// When the certificate ends that clients are shown, in seconds since 1970; `None` if none is
    /// shown, or that cannot be read.
    pub(in crate::net) fn certificate_ends(&self) -> Option<u64> {
        self.shown.as_ref()?.ends
    }

    /// The beginning of a connection with a client; none if TLS is refused.
    pub(in crate::net) fn tunnel(&self) -> Option<Result<Tunnel, rustls::Error>> {
        let Shown { config, hash, .. } = self.shown.as_ref()?;
        let connection = ServerConnection::new(Arc::clone(config)).map(Connection::Server);
        Some(connection.map(|connection| Tunnel::new(connection).showing(hash.clone())))
    }
}

/// The cryptography, named instead of found, so that no other can be in force.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn versions(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    static SECURE: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    static ONLY_12: [&SupportedProtocolVersion; 1] = [&TLS12];
    static ONLY_13: [&SupportedProtocolVersion; 1] = [&TLS13];
    match versions {
        TlsVersions::Secure => &SECURE,
        TlsVersions::Only12 => &ONLY_12,
        TlsVersions::Only13 => &ONLY_13,
    }
}
