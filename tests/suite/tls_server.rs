//! TLS with the server: whom the proxy believes to be it, and what becomes of logins by SCRAM.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, query, startup, tags};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use crate::harness::tls::{Certificates, encrypting, pairs, psql, ssl_request};
use crate::harness::upstream::{Peer, Upstream};
use pgautoprep::lab::postgres::{Auth, Scratch};
use pgautoprep::metrics::Counter;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

/// The settings of a proxy that speaks to its server in this mode.
fn mode(certificates: &Certificates, mode: &str) -> Vec<(&'static str, String)> {
    vec![
        ("server_tls_sslmode", mode.to_owned()),
        ("server_tls_ca_file", certificates.text("ca.crt")),
    ]
}

fn server(auth: Auth, certificates: &Certificates, name: &str) -> Scratch {
    let server = server::letting_in(auth);
    encrypting(&server, certificates, name);
    server
}

#[test]
fn the_server_is_spoken_to_by_tls_if_it_is_who_it_should_be() {
    let certificates = Certificates::new();
    certificates.sign("server", &["127.0.0.1"]);
    certificates.sign("other", &["other.example"]);
    let stranger = Certificates::new();
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    for (name, outcomes) in [
        (
            "server",
            [Some("f"), Some("t"), Some("t"), Some("t"), Some("t")],
        ),
        ("other", [Some("f"), Some("t"), Some("t"), Some("t"), None]),
        ("stranger", [Some("f"), Some("t"), Some("t"), None, None]),
    ] {
        let server = if name == "stranger" {
            server(Auth::Trust, &stranger, "proxy")
        } else {
            server(Auth::Trust, &certificates, name)
        };
        let preferring = if name == "other" { "allow" } else { "prefer" };
        let modes = ["disable", preferring, "require", "verify-ca", "verify-full"];
        for (word, expected) in modes.into_iter().zip(outcomes) {
            let settings = mode(&certificates, word);
            let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
            let mut client = Client::connect(proxy.address());
            client.send(&startup(&ME));
            let Some(expected) = expected else {
                let answers = client.rest();
                let seen = (tags(&answers), answers[0].sqlstate());
                assert_eq!(seen, ("E".to_owned(), "08006".to_owned()), "{name} {word}");
                continue;
            };
            client.logged_in();
            for _ in 0..3 {
                assert_eq!(client.value(encrypted), expected, "{name} {word}");
            }
        }
    }
}

/// As PostgreSQL's manual has it, and as libpq takes it.
#[test]
fn a_certificate_that_is_its_own_authority_is_the_servers_if_it_is_listed() {
    let certificates = Certificates::new();
    certificates.sign_itself("own", "db", &["127.0.0.1"]);
    certificates.sign_itself("common", "127.0.0.1", &[]);
    certificates.sign_itself("other", "127.0.0.1", &["db.example"]);
    certificates.sign_named("signed", "127.0.0.1");
    for (name, listed, by_authority, by_name) in [
        ("own", "own", true, true),
        ("own", "common", false, false),
        ("common", "common", true, true),
        ("other", "other", true, false),
        ("signed", "ca", true, true),
        ("signed", "own", false, false),
    ] {
        let server = server(Auth::Trust, &certificates, name);
        for (word, is_believed) in [("verify-ca", by_authority), ("verify-full", by_name)] {
            let mut settings = mode(&certificates, word);
            settings[1].1 = certificates.text(&format!("{listed}.crt"));
            let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
            let mut client = Client::connect(proxy.address());
            client.send(&startup(&ME));
            if is_believed {
                client.logged_in();
                continue;
            }
            let answers = client.rest();
            let seen = (tags(&answers), answers[0].sqlstate());
            assert_eq!(seen, ("E".to_owned(), "08006".to_owned()), "{name} {word}");
        }
    }
}

#[test]
fn queries_copies_and_cancels_go_by_tls_as_without() {
    let certificates = Certificates::new();
    let server = server(Auth::Trust, &certificates, "proxy");
    let settings = mode(&certificates, "verify-full");
    let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
    let mut client = Client::login(proxy.address(), "postgres");
    let mut direct = Client::login(&server.host_port(), "postgres");
    direct.run("CREATE TABLE c (id int, t text)");
    for number in 0..5 {
        let sql = format!("SELECT relname FROM pg_class WHERE oid = {}", 1247 + number);
        assert_eq!(client.query(&sql), direct.query(&sql));
    }
    assert!(proxy.converted() > 0);
    let large = "SELECT i, repeat(md5(i::text), i % 200) FROM generate_series(1, 1500) i";
    assert_eq!(client.query(large), direct.query(large));
    client.send(&query("COPY c FROM STDIN"));
    client.until(b'G');
    let rows: String = (0..100_000)
        .map(|row| format!("{row}\t{row:050}\n"))
        .collect();
    for piece in rows.as_bytes().chunks(70_001) {
        client.send(&frames::frame(b'd', piece));
    }
    client.send(&frames::frame(b'c', b""));
    assert_eq!(tags(&client.until_ready()), "CZ");
    let sum = "SELECT count(*), sum(id), sum(t::int) FROM c";
    assert_eq!(client.query(sum), direct.query(sum));
    client.send(&query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(200));
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "57014");
    // A server that goes says so.
    let end = client.query("SELECT pg_terminate_backend(pg_backend_pid())");
    assert_eq!(end.last().unwrap().sqlstate(), "57P01");
}

/// A proxy that asks this server for TLS, for a client that logs in.
fn asked(settings: &[(&'static str, String)], upstream: &Upstream) -> (Proxy, Client, Peer) {
    let proxy = Proxy::with(&upstream.address(), &pairs(settings));
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&ME));
    let mut peer = upstream.accept();
    peer.expect(&ssl_request());
    (proxy, client, peer)
}

#[test]
fn a_server_without_tls_is_spoken_to_in_the_clear_only_if_that_is_allowed() {
    let certificates = Certificates::new();
    for (word, goes_on) in [
        ("allow", true),
        ("prefer", true),
        ("require", false),
        ("verify-full", false),
    ] {
        let upstream = Upstream::listen();
        let (proxy, mut client, mut peer) = asked(&mode(&certificates, word), &upstream);
        peer.send(b"N");
        if goes_on {
            peer.expect(&startup(&ME));
            peer.send(&crate::harness::script::greeting());
            client.logged_in();
            assert_eq!(proxy.summary().count(Counter::TlsRefused), 1);
        } else {
            assert!(peer.is_closed());
            let answers = client.rest();
            assert_eq!(
                (tags(&answers).as_str(), &*answers[0].sqlstate()),
                ("E", "08006")
            );
        }
    }
}

/// As libpq does: it may be that they know no cipher in common.
#[test]
fn who_prefers_tls_does_without_where_it_fails() {
    let certificates = Certificates::new();
    for word in ["allow", "prefer"] {
        let upstream = Upstream::listen();
        let (proxy, mut client, mut peer) = asked(&mode(&certificates, word), &upstream);
        // An alert: handshake_failure.
        peer.send(b"S\x15\x03\x03\0\x02\x02\x28");
        let mut second = upstream.accept();
        second.expect(&startup(&ME));
        second.send(&crate::harness::script::greeting());
        client.logged_in();
        assert_eq!(proxy.summary().count(Counter::TlsRefused), 1);
        upstream.nobody_waits();
    }
}

#[test]
fn nothing_that_a_server_says_before_it_has_proven_who_it_is_is_used() {
    let certificates = Certificates::new();
    let error = frames::error("99999", "believe me");
    let ok = frames::frame(b'R', &[0; 4]);
    for word in ["prefer", "require"] {
        for answer in [
            error.clone(),
            [b"S", &ok[..], &error[..]].concat(),
            [b"S", &error[..]].concat(),
            b"S\x15\x03\x03\0\x02\x02\x28".to_vec(),
            [&b"S"[..], &[0xff; 70_000]].concat(),
            b"X".to_vec(),
            b"S".to_vec(),
            Vec::new(),
        ] {
            let upstream = Upstream::listen();
            let (_proxy, mut client, mut peer) = asked(&mode(&certificates, word), &upstream);
            // It may be hung up on while it still talks.
            let _ = std::io::Write::write_all(&mut peer.stream, &answer);
            drop(peer);
            // It is tried again in the clear only if that is as good, and the server has said that
            // it knows TLS.
            if word == "prefer" && answer.first() == Some(&b'S') {
                upstream.accept().expect(&startup(&ME));
            }
            let answers = client.rest();
            assert_eq!(
                (tags(&answers).as_str(), &*answers[0].sqlstate()),
                ("E", "08006")
            );
            let message = answers[0].field(b'M').unwrap();
            assert!(!message.contains("believe"), "{message}");
            upstream.nobody_waits();
        }
    }
}

/// CVE-2024-10977 of libpq: nor does whoever reads the log believe it.
#[test]
fn the_log_repeats_nothing_that_a_server_says_in_the_clear() {
    let certificates = Certificates::new();
    let upstream = Upstream::listen();
    let mut settings = mode(&certificates, "require");
    settings.push(("log_level", "trace".to_owned()));
    let mut proxy = Process::start(&upstream.address(), &pairs(&settings));
    let error = frames::error("99999", "believe me\n2026 INFO all is well");
    for answer in [error.clone(), [b"S", &error[..]].concat()] {
        let mut client = Client::connect(&proxy.address);
        client.send(&startup(&ME));
        let mut peer = upstream.accept();
        peer.expect(&ssl_request());
        let _ = std::io::Write::write_all(&mut peer.stream, &answer);
        drop(peer);
        assert_eq!(client.rest()[0].sqlstate(), "08006");
    }
    proxy.signal(Signal::TERM);
    let (_, _, log) = proxy.ended();
    let failed = log
        .lines()
        .filter(|line| line.contains("no TLS with the server"));
    let failed: Vec<_> = failed.collect();
    let server = format!("server={}", upstream.address());
    let says_where = |line: &&str| line.contains(&server) && line.contains("error=");
    assert!(!failed.is_empty() && failed.iter().all(says_where), "{log}");
    assert!(!log.contains("believe") && !log.contains("99999"), "{log}");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_longer_than_for_a_connection() {
    let certificates = Certificates::new();
    for answer in [&b""[..], b"S"] {
        let upstream = Upstream::listen();
        let mut settings = mode(&certificates, "require");
        settings.push(("connect_timeout_s", "1".to_owned()));
        let proxy = Proxy::with(&upstream.address(), &pairs(&settings));
        let started = Instant::now();
        let mut client = Client::connect(proxy.address());
        client.send(&startup(&ME));
        let mut peer = upstream.accept();
        peer.expect(&ssl_request());
        peer.send(answer);
        let answers = client.rest();
        assert_eq!(
            (tags(&answers).as_str(), &*answers[0].sqlstate()),
            ("E", "08006")
        );
        let waited = started.elapsed();
        assert!(waited > Duration::from_millis(900) && waited < Duration::from_secs(8));
    }
}

#[test]
fn a_login_by_scram_works_where_it_can() {
    let certificates = Certificates::new();
    let server = server(
        Auth::ScramSha256("secret".to_owned()),
        &certificates,
        "proxy",
    );
    certificates.sign("front", &["localhost", "127.0.0.1"]);
    let both = |name: &str| {
        let mut settings = certificates.settings("prefer");
        settings.retain(|(key, _)| !key.ends_with("key_file") && !key.ends_with("cert_file"));
        settings.push((
            "client_tls_key_file",
            certificates.text(&format!("{name}.key")),
        ));
        settings.push((
            "client_tls_cert_file",
            certificates.text(&format!("{name}.crt")),
        ));
        settings.extend(mode(&certificates, "verify-full"));
        Proxy::with(&server.host_port(), &pairs(&settings))
    };
    let try_with = |proxy: &Proxy, parameters: &str| {
        let all = format!("password=secret {parameters}");
        psql(proxy.address(), &all, "SELECT 40 + 2")
    };
    let good = (true, "42".to_owned());
    let settings = mode(&certificates, "require");
    let plain = Proxy::with(&server.host_port(), &pairs(&settings));
    let Some(seen) = try_with(&plain, "sslmode=disable") else {
        println!("there is no psql here");
        return;
    };
    // The server's offer to bind the login is not passed on to who cannot.
    assert_eq!(seen, good);
    let proxy = both("front");
    assert_eq!(try_with(&proxy, "sslmode=disable").unwrap(), good);
    // Bound to the wrong certificate, by who can: this cannot work, and `check` says so.
    assert!(!try_with(&proxy, "sslmode=require").unwrap().0);
    let unbound = "sslmode=require channel_binding=disable";
    assert_eq!(try_with(&proxy, unbound).unwrap(), good);
    // With the server's own certificate it works, bound.
    let proxy = both("proxy");
    let bound = "sslmode=require channel_binding=require";
    assert_eq!(try_with(&proxy, bound).unwrap(), good);
}

#[test]
fn the_proxy_shows_the_server_its_own_certificate() {
    let certificates = Certificates::new();
    certificates.sign("postgres", &[]);
    let server = server(Auth::Trust, &certificates, "proxy");
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 cert\n";
    std::fs::write(server.data_dir().join("pg_hba.conf"), hba).unwrap();
    Client::login(&server.host_port(), "postgres").run("SELECT pg_reload_conf()");
    let mut settings = mode(&certificates, "require");
    let refused = Proxy::with(&server.host_port(), &pairs(&settings));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = Client::connect(refused.address());
        client.send(&startup(&ME));
        let answers = client.until_ready();
        if answers.iter().any(|frame| frame.tag == b'E') {
            assert_eq!(answers[0].sqlstate(), "28000");
            break;
        }
        assert!(
            Instant::now() < deadline,
            "the server's rules do not change"
        );
    }
    settings.push(("server_tls_key_file", certificates.text("postgres.key")));
    settings.push(("server_tls_cert_file", certificates.text("postgres.crt")));
    let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
    let mut client = Client::login(proxy.address(), "postgres");
    let sql = "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(client.value(sql), "/CN=postgres");
}

#[test]
fn both_sides_encrypted_every_byte_arrives() {
    let certificates = Certificates::new();
    let server = server(Auth::Trust, &certificates, "proxy");
    let mut settings = certificates.settings("require");
    settings.extend(mode(&certificates, "verify-full"));
    let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
    let mut client = certificates.trusting().login(proxy.address(), "postgres");
    client.run("CREATE TABLE c (t text)");
    client.send(&query("COPY c FROM STDIN"));
    client.until(b'G');
    let rows: String = (0..50_000).map(|row| format!("{row:0100}\n")).collect();
    let data: Vec<u8> = rows
        .as_bytes()
        .chunks(9_973)
        .flat_map(|piece| frames::frame(b'd', piece))
        .collect();
    client.send(&[data, frames::frame(b'c', b"")].concat());
    assert_eq!(tags(&client.until_ready()), "CZ");
    client.send(&query("COPY c TO STDOUT"));
    let out = client.until_ready();
    let seen: Vec<u8> = out
        .into_iter()
        .filter(|it| it.tag == b'd')
        .flat_map(|it| it.body)
        .collect();
    assert!(seen == rows.as_bytes());
    assert_eq!(client.value("SELECT 1 + 1"), "2");
}

#[test]
fn tls_begins_at_once_with_servers_that_know_that() {
    let certificates = Certificates::new();
    let server = server(Auth::Trust, &certificates, "proxy");
    let mut settings = mode(&certificates, "verify-full");
    settings.push(("server_tls_negotiation", "direct".to_owned()));
    let proxy = Proxy::with(&server.host_port(), &pairs(&settings));
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&ME));
    if server.version_major() < 17 {
        let answers = client.rest();
        let seen = (tags(&answers), answers[0].sqlstate());
        assert_eq!(seen, ("E".to_owned(), "08006".to_owned()));
        return;
    }
    client.logged_in();
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(client.value(encrypted), "t");
    // A request to cancel goes the same way.
    client.send(&query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(200));
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "57014");
}

/// The server of PostgreSQL 17 is another proxy here, so that any server will do.
#[test]
fn tls_with_the_server_may_begin_at_once() {
    let certificates = Certificates::new();
    let behind = certificates.settings("require");
    let behind = Proxy::with(&server::address(), &pairs(&behind));
    let mut settings = mode(&certificates, "verify-full");
    settings.push(("server_tls_negotiation", "direct".to_owned()));
    let proxy = Proxy::with(behind.address(), &pairs(&settings));
    let mut client = Client::login(proxy.address(), "postgres");
    assert_eq!(client.value("SELECT 1 + 1"), "2");
    assert_eq!(behind.summary().count(Counter::TlsHandshakes), 1);
    // A server that knows only requests hangs up, or says something else.
    for answer in [&b""[..], b"E\0\0\0\x08abcd", b"S", b"N"] {
        let upstream = Upstream::listen();
        let proxy = Proxy::with(&upstream.address(), &pairs(&settings));
        let mut client = Client::connect(proxy.address());
        client.send(&startup(&ME));
        let mut peer = upstream.accept();
        peer.send(answer);
        drop(peer);
        let answers = client.rest();
        assert_eq!(
            (tags(&answers).as_str(), &*answers[0].sqlstate()),
            ("E", "08006")
        );
        upstream.nobody_waits();
    }
}
