//! Rules about who may come from where: `auth_type = hba`.

use crate::harness::client::Client;
use crate::harness::frames::startup;
use crate::harness::login::{Attempt, DATABASE, Users, asking, login, login_as};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use crate::harness::tls::{Certificates, pairs};
use rcgen::SanType;
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long something that is asked for may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Files of rules and maps beside a socket.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new(rules: &str, maps: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("hba"), rules).unwrap();
        fs::write(directory.path().join("ident"), maps).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("auth_type", "hba".to_owned()),
            ("auth_hba_file", self.path("hba")),
            ("auth_ident_file", self.path("ident")),
            ("admin_users", "c".to_owned()),
            ("listen", format!("127.0.0.1:0,{}", self.path("s"))),
        ]
    }

    fn proxy(&self, upstream: &str, users: &Users) -> Process {
        let mut settings = self.settings();
        settings.push(("auth_file", users.path().to_owned()));
        Process::start(upstream, &pairs(&settings))
    }
}

fn me() -> String {
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    String::from_utf8(me).unwrap().trim().to_owned()
}

/// Logs in over the socket.
fn locally(path: &str, user: &str, database: &str) -> Attempt {
    let parameters = [("user", user), ("database", database)];
    login_as(Client::connect(path), &parameters, "wrong")
}

#[test]
fn the_first_rule_that_fits_says_how_a_client_is_asked() {
    let server = asking(
        "trust",
        "CREATE ROLE a LOGIN;CREATE ROLE b LOGIN;CREATE ROLE c LOGIN",
    );
    let files = Files::new(
        "local all app peer map=m\nlocal postgres b trust\n\
         host all postgres 10.0.0.0/8 trust\nhost postgres a 127.0.0.0/8 scram-sha-256\n\
         host all @names all password\nhost all c all reject\nhostssl all all all trust\n",
        &format!("m {} app\n", me()),
    );
    fs::write(files.path("names"), "b\n").unwrap();
    let known = [
        ("a", "secret"),
        ("b", "secret"),
        ("c", "secret"),
        ("app", ""),
    ];
    let mut proxy = files.proxy(&server.host_port(), &Users::new(&known));
    let address = &proxy.address.clone();
    let attempt = login(address, "a", "secret");
    assert!(
        attempt.order().starts_with("10 11 12 0 "),
        "{}",
        attempt.order()
    );
    assert_eq!(attempt.entered().value("SELECT session_user"), "a");
    assert_eq!(login(address, "a", "wrong").refusal().0, "28P01");
    let attempt = login(address, "b", "secret");
    assert!(attempt.order().starts_with("3 0 "), "{}", attempt.order());
    attempt.entered();
    // The words of the server for whom no rule lets in, whether there is such a user or not.
    let at = format!("host \"127.0.0.1\", user \"c\", database \"{DATABASE}\", no encryption");
    let expected = format!("pg_hba.conf rejects connection for {at}");
    assert_eq!(
        login(address, "c", "secret").refusal(),
        ("28000".to_owned(), expected)
    );
    let expected = format!(
        "no pg_hba.conf entry for {}",
        at.replace("\"c\"", "\"nobody\"")
    );
    assert_eq!(
        login(address, "nobody", "").refusal(),
        ("28000".to_owned(), expected)
    );
    assert_eq!(login(address, "postgres", "").refusal().0, "28000");
    // At the console, too.
    let console = [("user", "c"), ("database", "pgautoprep")];
    let (state, message) = login_as(Client::connect(address), &console, "secret").refusal();
    assert_eq!(state, "28000");
    assert!(message.contains("rejects connection for host"), "{message}");
    let socket = files.path("s");
    let mut client = locally(&socket, "b", DATABASE).entered();
    assert_eq!(client.value("SELECT session_user"), "b");
    let other = locally(&socket, "b", "template1").refusal();
    let expected = "no pg_hba.conf entry for host \"[local]\", user \"b\", database \"template1\", \
                    no encryption";
    assert_eq!(other, ("28000".to_owned(), expected.to_owned()));
    // The proxy has let in who is mapped; the server has no such role.
    let app = locally(&socket, "app", DATABASE).refusal();
    assert_eq!(
        app,
        ("28000".to_owned(), "role \"app\" does not exist".to_owned())
    );
    proxy.signal(Signal::INT);
    let (_, _, log) = proxy.ended();
    assert!(
        log.contains("no rule fits") && log.contains("a rule rejects it"),
        "{log}"
    );
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn refusals_are_in_the_words_of_the_server() {
    let server = asking("trust", "CREATE ROLE a LOGIN;CREATE ROLE b LOGIN");
    let rules = "host all rules_trust all reject\nhost replication a all reject\n\
                 host postgres postgres all trust\n";
    fs::write(server.data_dir().join("pg_hba.conf"), rules).unwrap();
    let mut client = Client::login(&server.host_port(), DATABASE);
    client.run("SELECT pg_reload_conf()");
    let version: u32 = client.value("SHOW server_version_num").parse().unwrap();
    let files = Files::new(rules, "");
    let users = Users::new(&[("a", ""), ("b", ""), ("postgres", "")]);
    let proxy = files.proxy(&server.host_port(), &users);
    let started = Instant::now();
    for (user, more, words) in [
        (
            "a",
            ("replication", "true"),
            "rejects replication connection for host",
        ),
        (
            "b",
            ("replication", "true"),
            "no pg_hba.conf entry for replication connection",
        ),
        (
            "rules_trust",
            ("database", DATABASE),
            "rejects connection for host",
        ),
        (
            "rules_trust",
            ("replication", "database"),
            "rejects connection for host",
        ),
        (
            "a",
            ("replication", "database"),
            "no pg_hba.conf entry for host",
        ),
        (
            "b",
            ("database", &"x".repeat(64)),
            "no pg_hba.conf entry for host",
        ),
    ] {
        // Before 14, the words of logical replication were those of physical replication.
        if version < 140_000 && more == ("replication", "database") {
            continue;
        }
        let refusal = |address: &str| {
            let parameters = [("user", user), more];
            let mut client = Client::connect(address);
            client.send(&startup(&parameters));
            let said = client.next().unwrap();
            // Servers before 14 name the encryption by the name of its protocol.
            let message = said.field(b'M').unwrap_or_default();
            let message = message.replace("SSL off", "no encryption");
            (said.tag, message, said.field(b'C'), said.field(b'S'))
        };
        let directly = loop {
            let said = refusal(&server.host_port());
            if said.1.contains(words) {
                break said;
            }
            assert!(started.elapsed() < PATIENCE, "{said:?}");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(refusal(&proxy.address), directly, "{user} {more:?}");
    }
}

#[test]
fn a_map_says_whom_a_certificate_and_a_user_of_the_machine_stand_for() {
    let certificates = Certificates::new();
    certificates.sign_as("someone", "someone");
    let files = Files::new(
        "hostssl all postgres all cert map=m\nhostssl all all all cert\n\
         local all postgres peer map=m\nlocal all all peer\n",
        &format!("m someone postgres\nm {} all\nother someone else\n", me()),
    );
    let users = Users::new(&[("postgres", ""), ("else", "")]);
    let mut settings = certificates.settings("verify-full");
    settings.extend(files.settings());
    settings.push(("auth_file", users.path().to_owned()));
    let proxy = Proxy::with(&server::address(), &pairs(&settings));
    let [certificate, key] =
        ["crt", "key"].map(|kind| certificates.path(&format!("someone.{kind}")));
    let showing = |user: &str| {
        let trusting = certificates.trusting().showing(&certificate, &key);
        let mut client = trusting.connect(proxy.address()).unwrap();
        let parameters = [("user", user), ("database", DATABASE)];
        client.send(&startup(&parameters));
        client.until_ready().pop().unwrap()
    };
    assert_eq!(showing("postgres").tag, b'Z');
    let refused = showing("else");
    assert_eq!(refused.sqlstate(), "28000");
    let expected = "certificate authentication failed for user \"else\"";
    assert_eq!(refused.field(b'M').unwrap(), expected);
    let socket = files.path("s");
    let mut client = locally(&socket, "postgres", DATABASE).entered();
    assert_eq!(client.value("SELECT session_user"), "postgres");
    let (_, message) = locally(&socket, "else", DATABASE).refusal();
    assert_eq!(message, "Peer authentication failed for user \"else\"");
}

/// A name beside the common one is its owner's only where that is said: it may be a host's.
#[test]
fn alternative_names_of_certificates_are_read_where_that_is_asked_for() {
    let certificates = Certificates::new();
    let beside = vec![
        SanType::DnsName("postgres".try_into().unwrap()),
        SanType::DnsName("someone.example".try_into().unwrap()),
        SanType::Rfc822Name("jo@example.org".try_into().unwrap()),
        SanType::URI("spiffe://example.org/jo".try_into().unwrap()),
    ];
    certificates.sign_beside("jo", "jo", beside);
    let files = Files::new(
        "hostssl all postgres all cert map=m\nhostssl all all all cert\n",
        "m spiffe://example.org/jo postgres\nm jo@example.org postgres\n",
    );
    let users = Users::new(&[("postgres", ""), ("jo", ""), ("jo@example.org", "")]);
    let showing = |kind: &str, name: &str, user: &str| {
        let mut settings = certificates.settings("verify-full");
        settings.extend(files.settings());
        settings.push(("auth_file", users.path().to_owned()));
        if kind == "cert" {
            settings.retain(|(key, _)| !key.starts_with("auth_h") && !key.starts_with("auth_i"));
            settings.retain(|(key, _)| *key != "auth_type");
            settings.push(("auth_type", kind.to_owned()));
        }
        settings.extend((!name.is_empty()).then(|| ("auth_cert_name", name.to_owned())));
        let proxy = Proxy::with(&server::address(), &pairs(&settings));
        let [certificate, key] = ["crt", "key"].map(|it| certificates.path(&format!("jo.{it}")));
        let trusting = certificates.trusting().showing(&certificate, &key);
        let mut client = trusting.connect(proxy.address()).unwrap();
        client.send(&startup(&[("user", user), ("database", DATABASE)]));
        let last = client.until_ready().pop().unwrap();
        last.field(b'M').unwrap_or_default()
    };
    let refused = |user: &str| format!("certificate authentication failed for user \"{user}\"");
    let unknown = |user: &str| format!("role \"{user}\" does not exist");
    for (kind, name, user, said) in [
        // The server has no such role, but the proxy has let it in.
        ("cert", "", "jo", unknown("jo")),
        ("cert", "", "postgres", refused("postgres")),
        ("cert", "dns", "postgres", String::new()),
        ("cert", "dns", "jo", refused("jo")),
        ("cert", "email", "jo@example.org", unknown("jo@example.org")),
        ("cert", "email", "postgres", refused("postgres")),
        ("cert", "uri", "postgres", refused("postgres")),
        ("hba", "uri", "postgres", String::new()),
        ("hba", "email", "postgres", String::new()),
        ("hba", "email", "jo@example.org", unknown("jo@example.org")),
        ("hba", "dns", "postgres", refused("postgres")),
        ("hba", "", "postgres", refused("postgres")),
    ] {
        assert_eq!(showing(kind, name, user), said, "{kind} {name} {user}");
    }
}

#[test]
fn rules_are_read_again_and_bad_ones_change_nothing() {
    let server = asking("trust", "CREATE ROLE a LOGIN");
    let files = Files::new("host all all all trust\n", "");
    let users = Users::new(&[("a", "")]);
    let mut proxy = files.proxy(&server.host_port(), &users);
    let (said, lines) = mpsc::channel();
    let stderr = BufReader::new(proxy.stderr());
    std::thread::spawn(move || {
        stderr
            .lines()
            .map_while(Result::ok)
            .try_for_each(|it| said.send(it))
    });
    let is_in = || login(&proxy.address, "a", "").client.is_some();
    assert!(is_in());
    let write = |text: &str| fs::write(files.path("hba"), text).unwrap();
    write("host all all all reject\nhost all +staff all trust\n");
    proxy.signal(Signal::HUP);
    let wrong = "line 2: expected names or keywords";
    while !lines.recv_timeout(PATIENCE).unwrap().contains(wrong) {}
    assert!(is_in());
    write("host all all all reject\n");
    proxy.signal(Signal::HUP);
    let started = Instant::now();
    while is_in() {
        assert!(
            started.elapsed() < PATIENCE,
            "the rules were not read again"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn rules_that_cannot_be_used_are_told_at_the_start() {
    for (rules, expected) in [
        ("host all all all ldap\n", "line 1: expected trust, reject"),
        (
            "\nhostssl all all all cert\n",
            "line 2: expected client_tls_sslmode = verify-full",
        ),
        (
            "local all all peer map=none\n",
            "line 1: expected a map that auth_ident_file has",
        ),
    ] {
        let files = Files::new(rules, "m a b\n");
        let users = Users::new(&[("a", "")]);
        let mut settings = files.settings();
        settings.push(("auth_file", users.path().to_owned()));
        settings.push(("upstream", "127.0.0.1:1".to_owned()));
        let message = refused(&settings);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains(&files.path("hba")), "{message}");
        fs::remove_file(Path::new(&files.path("hba"))).unwrap();
        let message = refused(&settings);
        assert!(
            message.contains(&format!("cannot read {}", files.path("hba"))),
            "{message}"
        );
    }
}

/// What a proxy with these settings says instead of starting.
fn refused(settings: &[(&'static str, String)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
    command.arg("serve");
    for (key, value) in settings {
        command.arg(format!("--{}={value}", key.replace('_', "-")));
    }
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}
