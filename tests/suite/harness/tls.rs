//! Certificates made on the fly, and a client that encrypts by a library of its own accord.

use super::client::{Client, PATIENCE};
use super::frames;
use super::proxy::Process;
use super::script::greeting;
use super::server;
use super::upstream::{Peer, Upstream};
use pgautoprep::lab::postgres::{Binaries, Scratch, Wanted};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustix::process::{Pid, Signal, kill_process};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::Socket;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A socket with TLS on it.
pub(crate) type Encrypted = StreamOwned<ClientConnection, Socket>;

/// A directory with an authority, and what it has signed: each name is a `.crt` and a `.key`.
pub(crate) struct Certificates {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// An authority `ca`, and certificates for the host `proxy` and the client `client`.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.crt"), authority.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        let made = Self { directory, issuer };
        made.sign("proxy", &["localhost", "127.0.0.1"]);
        made.sign("client", &[]);
        made
    }

    /// Makes, or makes anew, a key and a certificate for a host with these names, or for a client.
    pub(crate) fn sign(&self, name: &str, hosts: &[&str]) {
        self.sign_for(name, name, hosts);
    }

    /// The same for a client, in files of another name.
    pub(crate) fn sign_as(&self, file: &str, name: &str) {
        self.sign_for(file, name, &[]);
    }

    fn sign_for(&self, file: &str, name: &str, hosts: &[&str]) {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let usage = match hosts.is_empty() {
            true => ExtendedKeyUsagePurpose::ClientAuth,
            false => ExtendedKeyUsagePurpose::ServerAuth,
        };
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.crt")), certificate.pem()).unwrap();
        let path = self.path(&format!("{file}.key"));
        std::fs::write(&path, key.serialize_pem()).unwrap();
        // libpq refuses a key that others may read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, mode).unwrap();
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    pub(crate) fn text(&self, file: &str) -> String {
        self.path(file).to_str().unwrap().to_owned()
    }

    /// The settings of a proxy that shows `proxy` to its clients.
    pub(crate) fn settings(&self, mode: &str) -> Vec<(&'static str, String)> {
        vec![
            ("client_tls_sslmode", mode.to_owned()),
            ("client_tls_key_file", self.text("proxy.key")),
            ("client_tls_cert_file", self.text("proxy.crt")),
            ("client_tls_ca_file", self.text("ca.crt")),
        ]
    }

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

/// Settings as the proxy's harness takes them.
pub(crate) fn pairs<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    settings
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect()
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
        let name = ServerName::try_from("localhost").unwrap();
        ClientConnection::new(Arc::new(config), name).unwrap()
    }

    /// Shakes hands at once.
    pub(crate) fn at_once(&self, address: &str) -> std::io::Result<Client<Encrypted>> {
        over(Client::connect(address), self.connection())
    }

    /// Asks for TLS and shakes hands.
    pub(crate) fn connect(&self, address: &str) -> std::io::Result<Client<Encrypted>> {
        let mut client = Client::connect(address);
        client.send(&ssl_request());
        assert_eq!(client.byte(), b'S');
        over(client, self.connection())
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

fn over(client: Client, mut connection: ClientConnection) -> std::io::Result<Client<Encrypted>> {
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

/// Has the server encrypt with the key and certificate of this name.
pub(crate) fn encrypting(server: &Scratch, certificates: &Certificates, name: &str) {
    let data = server.data_dir();
    let owner = std::fs::metadata(&data).unwrap();
    for (kind, file) in [
        ("crt", "server.crt"),
        ("key", "server.key"),
        ("", "root.crt"),
    ] {
        let from = match kind {
            "" => certificates.path("ca.crt"),
            _ => certificates.path(&format!("{name}.{kind}")),
        };
        let to = data.join(file);
        std::fs::copy(from, &to).unwrap();
        std::os::unix::fs::chown(to, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let conf = data.join("postgresql.conf");
    let mut text = std::fs::read_to_string(&conf).unwrap();
    text.push_str("\nssl = on\nssl_ca_file = 'root.crt'\n");
    std::fs::write(&conf, text).unwrap();
    // Whoever may log in: the server rereads its files on this signal.
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = Client::connect(&server.host_port());
        client.send(&ssl_request());
        if client.byte() == b'S' {
            return;
        }
        assert!(Instant::now() < deadline, "{}", server.log_tail());
        std::thread::sleep(Duration::from_millis(10));
    }
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
