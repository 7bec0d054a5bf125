//! A client that encrypts by a library of its own accord.

pub(crate) use super::certificates::{Certificates, encrypting, pairs};
use super::client::Client;
use super::frames;
use super::proxy::Process;
use super::script::greeting;
use super::server;
use super::upstream::{Peer, Upstream};
use pgautoprep::lab::postgres::{Binaries, Wanted};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::Socket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A socket with TLS on it.
pub(crate) type Encrypted = StreamOwned<ClientConnection, Socket>;

impl Certificates {
    /// A client that trusts the authority.
    pub(crate) fn trusting(&self) -> Trusting {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(self.path("ca.crt")).unwrap();
        roots.add(authority).unwrap();
        Trusting {
            roots: Arc::new(roots),
            names: None,
            is_old: false,
            shows: None,
        }
    }
}

/// How a client encrypts.
#[derive(Clone)]
pub(crate) struct Trusting {
    roots: Arc<RootCertStore>,
    names: Option<&'static [u8]>,
    is_old: bool,
    shows: Option<(PathBuf, PathBuf)>,
}

impl Trusting {
    /// Names a protocol in ALPN.
    pub(crate) fn naming(mut self, protocol: &'static [u8]) -> Self {
        self.names = Some(protocol);
        self
    }

    /// Speaks TLS 1.2 only.
    pub(crate) fn old(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// Shows a certificate.
    pub(crate) fn showing(mut self, certificate: &Path, key: &Path) -> Self {
        self.shows = Some((certificate.to_owned(), key.to_owned()));
        self
    }

    /// Logs in through the proxy at this address to a server that asks for nothing.
    pub(crate) fn meet(&self, address: &str, upstream: &Upstream) -> (Client<Encrypted>, Peer) {
        let packet = frames::startup(&[("user", "postgres"), ("database", "postgres")]);
        let mut client = self.connect(address).unwrap();
        client.send(&packet);
        let mut peer = upstream.accept();
        peer.expect(&packet);
        peer.send(&greeting());
        client.logged_in();
        (client, peer)
    }

    /// A connection on which nothing was said.
    pub(crate) fn connection(&self) -> ClientConnection {
        connection(&Arc::new(self.config()))
    }

    /// How it encrypts; what a server gives for another time is remembered in it.
    pub(crate) fn config(&self) -> ClientConfig {
        let versions = if self.is_old { [&TLS12] } else { [&TLS13] };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots));
        let mut config = match &self.shows {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = self.names.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// Shakes hands at once.
    pub(crate) fn at_once(&self, address: &str) -> std::io::Result<Client<Encrypted>> {
        over(Client::connect(address), self.connection())
    }

    /// Asks for TLS and shakes hands.
    pub(crate) fn connect(&self, address: &str) -> std::io::Result<Client<Encrypted>> {
        connect(&Arc::new(self.config()), address)
    }

    /// Connects and logs in as the superuser.
    pub(crate) fn login(&self, address: &str, database: &str) -> Client<Encrypted> {
        let mut client = self.connect(address).unwrap();
        client.send(&frames::startup(&[
            ("user", "postgres"),
            ("database", database),
        ]));
        client.logged_in();
        client
    }
}

fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::clone(config), name).unwrap()
}

/// Asks for TLS and shakes hands, with what is remembered.
pub(crate) fn connect(
    config: &Arc<ClientConfig>,
    address: &str,
) -> std::io::Result<Client<Encrypted>> {
    let mut client = Client::connect(address);
    client.send(&ssl_request());
    assert_eq!(client.byte(), b'S');
    over(client, connection(config))
}

/// Shakes hands over a connection whose client has asked for that.
pub(crate) fn over(
    client: Client,
    mut connection: ClientConnection,
) -> std::io::Result<Client<Encrypted>> {
    let mut socket = client.socket;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(Client::over(StreamOwned::new(connection, socket)))
}

pub(crate) fn ssl_request() -> Vec<u8> {
    frames::untagged(&80_877_103_u32.to_be_bytes())
}

/// What psql prints, and whether it was content; none if there is no psql.
pub(crate) fn psql(address: &str, parameters: &str, sql: &str) -> Option<(bool, String)> {
    let binaries = Binaries::obtain(Wanted::Any, false).unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    // libpq before 15 knows certificates of hosts only, not of addresses.
    let place = format!("host=localhost hostaddr={host} port={port}");
    let connection = format!("{place} user=postgres dbname=postgres {parameters}");
    let mut command = Command::new(binaries.directory.join("psql"));
    command.args(["-X", "-A", "-t", "-c", sql, &connection]);
    for name in ["PGSSLMODE", "PGOPTIONS", "PGPASSWORD", "PGSSLROOTCERT"] {
        command.env_remove(name);
    }
    let output = command.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    Some((output.status.success(), text))
}

/// A proxy in a process of its own that asks for TLS, a client that trusts it, and the memory in
/// KiB that the proxy has taken at most after a first login.
pub(crate) fn process() -> (Certificates, Process, Trusting, u64) {
    let certificates = Certificates::new();
    let settings = certificates.settings("require");
    let proxy = Process::start(&server::address(), &pairs(&settings));
    let trusting = certificates.trusting();
    trusting.login(&proxy.address, "postgres").run("SELECT 1");
    let before = proxy.peak_kib();
    (certificates, proxy, trusting, before)
}
