//! Certificates made on the fly, and servers that show them.

use pgautoprep::lab::postgres::Scratch;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to begin to encrypt.
const PATIENCE: Duration = Duration::from_secs(60);

/// What asks a server for TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

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

    /// The same for a host that only the subject names.
    pub(crate) fn sign_named(&self, file: &str, host: &str) {
        let usage = ExtendedKeyUsagePurpose::ServerAuth;
        self.sign_all(file, host, (CertificateParams::default(), usage));
    }

    /// The same, with these names beside.
    pub(crate) fn sign_beside(&self, file: &str, name: &str, beside: Vec<SanType>) {
        let mut params = CertificateParams::default();
        params.subject_alt_names = beside;
        self.sign_all(file, name, (params, ExtendedKeyUsagePurpose::ClientAuth));
    }

    fn sign_for(&self, file: &str, name: &str, hosts: &[&str]) {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let usage = match hosts.is_empty() {
            true => ExtendedKeyUsagePurpose::ClientAuth,
            false => ExtendedKeyUsagePurpose::ServerAuth,
        };
        let params = CertificateParams::new(hosts).unwrap();
        self.sign_all(file, name, (params, usage));
    }

    /// Makes a key and a certificate that is its own authority, as `openssl req -x509` does.
    pub(crate) fn sign_itself(&self, file: &str, name: &str, hosts: &[&str]) {
        let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        self.write(file, &certificate.pem(), &key);
    }

    fn sign_all(
        &self,
        file: &str,
        name: &str,
        (mut params, usage): (CertificateParams, ExtendedKeyUsagePurpose),
    ) {
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(file, &certificate.pem(), &key);
    }

    fn write(&self, file: &str, certificate: &str, key: &KeyPair) {
        std::fs::write(self.path(&format!("{file}.crt")), certificate).unwrap();
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
}

/// Settings as the proxy's harness takes them.
pub(crate) fn pairs<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    settings
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect()
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
        let mut stream = TcpStream::connect(server.host_port()).unwrap();
        stream.write_all(&SSL_REQUEST).unwrap();
        let mut answer = [0];
        if stream.read_exact(&mut answer).is_ok() && answer == *b"S" {
            return;
        }
        assert!(Instant::now() < deadline, "{}", server.log_tail());
        std::thread::sleep(Duration::from_millis(10));
    }
}
