//! Clients that the proxy lets in by itself over TLS, and logs in for over TLS.

use crate::harness::client::Client;
use crate::harness::frames::{frame, startup, tags};
use crate::harness::login::{DATABASE, Users, answer};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use crate::harness::tls::{Certificates, encrypting, pairs, psql};
use pgautoprep::lab::postgres::{Auth, Scratch};
use pgautoprep::metrics::Counter;
use postgres_protocol::password::scram_sha_256;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

/// A server that asks for "secret" over TLS, and the certificates of all.
fn server() -> (Scratch, Certificates) {
    let certificates = Certificates::new();
    certificates.sign("server", &["127.0.0.1"]);
    let server = server::letting_in(Auth::ScramSha256("secret".to_owned()));
    encrypting(&server, &certificates, "server");
    (server, certificates)
}

/// How TLS with this server may begin: at once since PostgreSQL 17.
fn negotiations(server: &Scratch) -> &'static [&'static str] {
    match server.version_major() {
        ..17 => &["postgres"],
        17.. => &["postgres", "direct"],
    }
}

/// A proxy with TLS on both sides, whose certificate is not the server's, and with this mode of
/// its pools.
fn proxy(server: &Scratch, certificates: &Certificates, mode: &str, users: &Users) -> Proxy {
    negotiating(server, certificates, mode, users, "postgres")
}

/// The same, where TLS with the server begins so.
fn negotiating(
    server: &Scratch,
    certificates: &Certificates,
    mode: &str,
    users: &Users,
    negotiation: &str,
) -> Proxy {
    let mut settings = certificates.settings("prefer");
    settings.push(("server_tls_sslmode", "verify-full".to_owned()));
    settings.push(("server_tls_ca_file", certificates.text("ca.crt")));
    settings.push(("server_tls_negotiation", negotiation.to_owned()));
    settings.push(("auth_type", "scram-sha-256".to_owned()));
    settings.push(("auth_file", users.path().to_owned()));
    settings.push(("catalog_watch_ms", "200".to_owned()));
    settings.push(("pool_mode", mode.to_owned()));
    settings.push(("default_pool_size", "2".to_owned()));
    Proxy::with(&server.host_port(), &pairs(&settings))
}

/// The verifier that the server has.
fn verifier(server: &Scratch) -> String {
    // Over the Unix socket there is no password either, so it is written instead of read.
    let verifier = scram_sha_256(b"secret");
    let users = Users::new(&[("postgres", "secret")]);
    let settings = [("auth_type", "trust"), ("auth_file", users.path())];
    let proxy = Proxy::with(&server.host_port(), &settings);
    let mut client = Client::login(proxy.address(), DATABASE);
    client.run(&format!("ALTER ROLE postgres PASSWORD '{verifier}'"));
    verifier
}

#[test]
fn with_tls_on_both_sides_logins_are_bound_on_each() {
    let (server, certificates) = server();
    let secrets = ["secret".to_owned(), verifier(&server)];
    let cases = secrets.iter().flat_map(|secret| {
        let all = negotiations(&server).iter();
        all.map(move |negotiation| (secret, *negotiation))
    });
    for (secret, negotiation) in cases {
        let users = Users::new(&[("postgres", secret)]);
        let proxy = negotiating(&server, &certificates, "session", &users, negotiation);
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        for (mode, bound) in [
            ("disable", "prefer"),
            ("require", "require"),
            ("require", "prefer"),
            ("require", "disable"),
        ] {
            for (password, good) in [("secret", true), ("wrong", false)] {
                let how = format!("password={password} sslmode={mode} channel_binding={bound}");
                let Some((done, text)) = psql(proxy.address(), &how, sql) else {
                    println!("there is no psql here");
                    return;
                };
                assert_eq!(done, good, "{how}: {text}");
                assert!(!good || text == "t", "{how}: {text}");
            }
        }
    }
}

#[test]
fn a_login_is_bound_to_the_certificate_that_was_shown() {
    let (server, certificates) = server();
    let users = Users::new(&[("postgres", "secret")]);
    let proxy = proxy(&server, &certificates, "session", &users);
    let shown = CertificateDer::from_pem_file(certificates.path("proxy.crt")).unwrap();
    let (right, wrong) = (Sha256::digest(&shown), Sha256::digest(b"another"));
    let connect = || {
        let mut client = certificates.trusting().connect(proxy.address()).unwrap();
        client.send(&startup(&[("user", "postgres"), ("database", DATABASE)]));
        client
    };
    let try_with = |hash: Option<&[u8]>, password: &str| {
        let said = answer(&mut connect(), "postgres", password, hash);
        let last = said.last().unwrap();
        match last.tag {
            b'E' => last.sqlstate(),
            tag => char::from(tag).to_string(),
        }
    };
    for _ in 0..3 {
        assert_eq!(try_with(Some(&right), "secret"), "Z");
    }
    assert_eq!(try_with(Some(&wrong), "secret"), "28000");
    assert_eq!(try_with(Some(&right), "wrong"), "28P01");
    assert_eq!(try_with(None, "secret"), "Z");
    // Who has not seen the offer that was made has been kept from it.
    let mut client = connect();
    assert_eq!(tags(&[client.next().unwrap()]), "R");
    client.send(&frame(b'p', b"SCRAM-SHA-256\0\0\0\0\x0by,,n=,r=abc"));
    assert_eq!(client.rest()[0].sqlstate(), "28000");
    // In the clear nothing is offered, and choosing it is a mistake.
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&[("user", "postgres"), ("database", DATABASE)]));
    assert_eq!(client.next().unwrap().body, b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    client.send(&frame(
        b'p',
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x20p=tls-server-end-point,,n=,r=abc",
    ));
    assert_eq!(client.rest()[0].sqlstate(), "08P01");
}

#[test]
fn clients_of_a_pool_prove_themselves_and_are_encrypted_as_others_are() {
    let (server, certificates) = server();
    let users = Users::new(&[("postgres", &verifier(&server))]);
    let proxy = proxy(&server, &certificates, "auto", &users);
    let shown = CertificateDer::from_pem_file(certificates.path("proxy.crt")).unwrap();
    let hash = Sha256::digest(&shown);
    let login = |password: &str| {
        let mut client = certificates.trusting().connect(proxy.address()).unwrap();
        client.send(&startup(&[("user", "postgres"), ("database", DATABASE)]));
        let said = answer(&mut client, "postgres", password, Some(&hash));
        let last = said.last().unwrap();
        match last.tag {
            b'E' => Err(last.sqlstate()),
            _ => Ok(client),
        }
    };
    let clients: Vec<_> = (0..6).map(|_| login("secret").unwrap()).collect();
    std::thread::scope(|scope| {
        for (id, mut client) in clients.into_iter().enumerate() {
            scope.spawn(move || {
                for round in 0..50 {
                    let sum = client.value(&format!("SELECT {id} * 100 + {round}"));
                    assert_eq!(sum, (id * 100 + round).to_string());
                }
                let ssl = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
                assert_eq!(client.value(ssl), "t");
            });
        }
        // Who does not know the password gets nothing of what the others have left.
        for _ in 0..5 {
            assert_eq!(login("wrong").err().as_deref(), Some("28P01"));
        }
    });
    assert!(proxy.summary().count(Counter::HomesLeft) > 0);
}
