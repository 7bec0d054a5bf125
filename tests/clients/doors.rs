//! Real drivers at doors with TLS: each logs in by SCRAM with `sslmode=verify-full`, bound to the
//! certificate where it can be told to insist on that, and once more with TLS from the first byte
//! where it can do that.

use super::{Program, in_go, node_path, programs};
use crate::certificates::{Certificates, encrypting, pairs};
use pgautoprep::config::Config;
use pgautoprep::lab::postgres::{Auth, Binaries, Options, Scratch, Wanted};
use pgautoprep::metrics::{Counter, Metrics};
use pgautoprep::net::Proxy;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

const PASSWORD: &str = "secret";

/// The first version of libpq that can begin with TLS at once is 17.
const DIRECT: u32 = 18;

/// What a driver can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// The words of libpq, which it uses.
    Libpq,
    /// Only those that all know.
    Plain,
}

/// A proxy, and what it counts.
struct Door {
    port: u16,
    metrics: Arc<Metrics>,
}

impl Door {
    fn open(server: &Scratch, settings: &[(&'static str, String)]) -> Self {
        let settings = pairs(settings);
        let address = server.host_port();
        let own = [
            ("upstream", &*address),
            ("listen", "127.0.0.1:0"),
            ("prepare_threshold", "1"),
            ("workers", "1"),
        ];
        let config = Config::from_pairs(&[&own[..], &settings].concat()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let proxy = runtime.block_on(Proxy::bind(config)).unwrap();
        let (address, metrics) = (proxy.addresses().remove(0), proxy.metrics());
        // For all tests of this program.
        std::thread::spawn(move || runtime.block_on(proxy.serve(std::future::pending())));
        let (_, port) = address.rsplit_once(':').unwrap();
        let port = port.parse().unwrap();
        Self { port, metrics }
    }
}

/// A server that asks for a password over TLS, and proxies before it with TLS on both sides.
struct Street {
    _server: Scratch,
    certificates: Certificates,
    stranger: Certificates,
    relay: Door,
    own: Door,
    /// The libraries of a libpq that begins with TLS at once.
    newest: tempfile::TempDir,
}

fn street() -> &'static Street {
    static STREET: OnceLock<Street> = OnceLock::new();
    STREET.get_or_init(|| {
        let options = Options {
            wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
            auth: Auth::ScramSha256(PASSWORD.to_owned()),
            ..Options::default()
        };
        let server = Scratch::start(&options).unwrap_or_else(|error| panic!("{error}"));
        let certificates = Certificates::new();
        certificates.sign("front", &["localhost", "127.0.0.1"]);
        encrypting(&server, &certificates, "proxy");
        let mut relay = certificates.settings("require");
        relay.push(("server_tls_sslmode", "verify-full".to_owned()));
        relay.push(("server_tls_ca_file", certificates.text("ca.crt")));
        let mut own = relay.clone();
        for (name, value) in &mut own {
            match *name {
                "client_tls_key_file" => *value = certificates.text("front.key"),
                "client_tls_cert_file" => *value = certificates.text("front.crt"),
                _ => {}
            }
        }
        let users = certificates.path("users.txt");
        std::fs::write(&users, format!("\"postgres\" \"{PASSWORD}\"\n")).unwrap();
        own.push(("auth_type", "scram-sha-256".to_owned()));
        own.push(("auth_file", certificates.text("users.txt")));
        Street {
            // A relayed login is bound to a certificate that both show.
            relay: Door::open(&server, &relay),
            own: Door::open(&server, &own),
            _server: server,
            certificates,
            stranger: Certificates::new(),
            newest: newest(),
        }
    })
}

/// A directory with that libpq, which comes with a downloaded server, and what it needs.
fn newest() -> tempfile::TempDir {
    let wanted = Wanted::Major(DIRECT);
    let found = Binaries::obtain(wanted, true).unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().unwrap();
    for place in ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"] {
        let Ok(files) = std::fs::read_dir(found.directory.join("..").join(place)) else {
            continue;
        };
        for file in files.map(Result::unwrap) {
            let name = file.file_name();
            let text = name.to_string_lossy();
            let needed = ["libpq.so", "libssl.so", "libcrypto.so"];
            if needed.iter().any(|needed| text.starts_with(needed)) {
                let there = file.path().canonicalize().unwrap();
                let _ = std::os::unix::fs::symlink(there, directory.path().join(name));
            }
        }
    }
    directory
}

/// Has a program visit these places; it prints a line for each.
fn visit(
    command: &Path,
    before: &[&str],
    libraries: Option<&Path>,
    places: &[String],
) -> Vec<String> {
    let mut command = Command::new(command);
    command
        .args(before)
        .args(places)
        .env("NODE_PATH", node_path());
    for name in ["PGSSLMODE", "PGOPTIONS", "PGPASSWORD", "PGSSLROOTCERT"] {
        command.env_remove(name);
    }
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (printed, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{printed}{said}");
    printed.lines().map(str::to_owned).collect()
}

/// Sends a driver through all doors.
fn try_doors(command: &Path, before: &[&str], speaks: Speaks) {
    let street = street();
    let authority = |of: &Certificates| of.text("ca.crt");
    let (known, unknown) = (authority(&street.certificates), authority(&street.stranger));
    let place = |door: &Door, authority: &str, more: &str| {
        let port = door.port;
        let who = format!("user=postgres password={PASSWORD} dbname=postgres");
        let whom = format!("sslmode=verify-full sslrootcert={authority}");
        format!("host=localhost port={port} {who} {whom}{more}")
    };
    let bound = match speaks {
        Speaks::Libpq => " channel_binding=require",
        Speaks::Plain => "",
    };
    for door in [&street.relay, &street.own] {
        let places = [place(door, &known, bound), place(door, &unknown, bound)];
        let seen = visit(command, before, None, &places);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert_eq!(seen[0], "pg_type 42", "{}", places[0]);
        assert!(
            seen[1].starts_with("refused "),
            "{}: {}",
            places[1],
            seen[1]
        );
        if speaks == Speaks::Libpq {
            let direct = format!("{bound} sslnegotiation=direct");
            let direct = [place(door, &known, &direct)];
            let libraries = Some(street.newest.path());
            assert_eq!(visit(command, before, libraries, &direct), ["pg_type 42"]);
        }
        let summary = door.metrics.summary();
        assert!(summary.count(Counter::TlsHandshakes) > 0, "{summary}");
    }
}

/// Runs a program in a file with its interpreter.
fn try_file(program: &Program, before: &[&str], source: &str, speaks: Speaks) {
    let Some(command) = program.find() else {
        return;
    };
    let source: PathBuf = programs().join("tls").join(source);
    let arguments = [before, &[source.to_str().unwrap()]].concat();
    try_doors(&command, &arguments, speaks);
}

#[test]
fn psycopg2_at_doors_with_tls() {
    try_file(&super::PSYCOPG2, &[], "psycopg2_login.py", Speaks::Libpq);
}

#[test]
fn psycopg3_at_doors_with_tls() {
    try_file(&super::PSYCOPG3, &[], "psycopg3_login.py", Speaks::Libpq);
}

#[test]
fn asyncpg_at_doors_with_tls() {
    try_file(&super::ASYNCPG, &[], "asyncpg_login.py", Speaks::Plain);
}

#[test]
fn pdo_at_doors_with_tls() {
    try_file(&super::PDO, &[], "pdo_login.php", Speaks::Libpq);
}

#[test]
fn dbd_pg_at_doors_with_tls() {
    try_file(&super::DBD_PG, &[], "dbd_login.pl", Speaks::Libpq);
}

#[test]
fn ruby_pg_at_doors_with_tls() {
    try_file(&super::RUBY_PG, &[], "pg_login.rb", Speaks::Libpq);
}

#[test]
fn node_pg_at_doors_with_tls() {
    try_file(&super::NODE_PG, &[], "pg_login.js", Speaks::Plain);
}

#[test]
fn jdbc_at_doors_with_tls() {
    super::has_jdbc();
    try_file(
        &super::JDBC,
        &["-cp", super::JAR],
        "Login.java",
        Speaks::Plain,
    );
}

#[test]
fn pgx_and_lib_pq_at_doors_with_tls() {
    let Some(go) = in_go("pgx").find() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let built = super::build_go(&go, "./tls", directory.path());
    for driver in ["pgx", "pq"] {
        try_doors(&built, &[driver], Speaks::Plain);
    }
}

#[test]
fn psql_at_doors_with_tls() {
    let Some(psql) = super::PSQL.find() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("visit.sh");
    // It prints nothing on its output where it is refused.
    let text = format!(
        "for place in \"$@\"; do\n  {} -X -A -t -F ' ' -c \"SELECT relname, 40 + 2 FROM pg_class \
         WHERE relname = 'pg_type'\" \"$place\" || echo refused by psql\ndone\n",
        psql.display()
    );
    std::fs::write(&script, text).unwrap();
    try_doors(Path::new("sh"), &[script.to_str().unwrap()], Speaks::Libpq);
}
