//! TLS with clients: whoever asks for it gets it, and nothing else is different.

use crate::bulk::{carry, stream};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, query, startup, tags};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use crate::harness::tls::{self, Certificates, Trusting, pairs, process, psql, ssl_request};
use crate::harness::upstream::Upstream;
use pgautoprep::lab::postgres::Auth;
use pgautoprep::metrics::Counter;
use rustls::HandshakeKind;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

/// A proxy that offers TLS, and a client that trusts it.
fn offering(mode: &str, upstream: &str) -> (Certificates, Proxy, Trusting) {
    let certificates = Certificates::new();
    let settings = certificates.settings(mode);
    let proxy = Proxy::with(upstream, &pairs(&settings));
    let trusting = certificates.trusting();
    (certificates, proxy, trusting)
}

#[test]
fn a_client_that_asks_for_tls_gets_it_and_is_served_as_without() {
    let (_files, proxy, trusting) = offering("prefer", &server::address());
    let mut plain = Client::login(proxy.address(), "postgres");
    for trusting in [trusting.clone(), trusting.old()] {
        let before = proxy.converted();
        let mut client = trusting.login(proxy.address(), "postgres");
        for name in ["pg_class", "pg_type", "pg_proc"] {
            let sql = format!("SELECT relname FROM pg_class WHERE relname = '{name}' LIMIT 1");
            assert_eq!(client.query(&sql), plain.query(&sql));
            assert_eq!(client.value(&sql), name);
        }
        assert!(proxy.converted() > before);
    }
    assert_eq!(proxy.summary().count(Counter::TlsHandshakes), 2);
}

#[test]
fn nothing_is_given_by_which_a_session_could_be_resumed() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    for trusting in [trusting.clone(), trusting.old()] {
        let config = Arc::new(trusting.config());
        for _ in 0..3 {
            let mut client = tls::connect(&config, proxy.address()).unwrap();
            client.send(&startup(&ME));
            client.logged_in();
            assert_eq!(client.value("SELECT 1 + 1"), "2");
            let session = &client.socket.conn;
            assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
            assert_eq!(session.tls13_tickets_received(), 0);
        }
    }
}

#[test]
fn what_comes_together_with_the_login_is_not_forgotten() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    for length in [10, 5_000, 40_000] {
        let mut client = trusting.connect(proxy.address()).unwrap();
        let text = "x".repeat(length);
        let two = [query("SELECT 1"), query(&format!("SELECT '{text}'"))].concat();
        client.send(&[startup(&ME), two].concat());
        client.logged_in();
        assert_eq!(tags(&client.until_ready()), "TDCZ");
        let answer = client.until_ready();
        assert_eq!(answer[1].columns()[0].as_deref(), Some(&*text));
    }
}

#[test]
fn tls_begins_at_once_if_the_protocol_is_named() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    let named = trusting.clone().naming(b"postgresql");
    let mut client = named.at_once(proxy.address()).unwrap();
    client.send(&startup(&ME));
    client.logged_in();
    assert_eq!(client.value("SELECT 1 + 1"), "2");
    // Inside there is nothing to ask for.
    let mut client = named.at_once(proxy.address()).unwrap();
    client.send(&ssl_request());
    assert_eq!(client.byte(), b'N');
    client.send(&startup(&ME));
    client.logged_in();
    // Whoever asks first may name it.
    assert_eq!(
        named.login(proxy.address(), "postgres").value("SELECT 2"),
        "2"
    );

    let mut unnamed = trusting.at_once(proxy.address()).unwrap();
    // It may be told before it has sent anything.
    let _ = unnamed.socket.write_all(&startup(&ME));
    assert_eq!(unnamed.socket.read(&mut [0; 9]).unwrap_or(0), 0);
    let other = trusting.naming(b"h2");
    assert!(other.at_once(proxy.address()).is_err());
    assert!(other.connect(proxy.address()).is_err());
    // The alert is sent before it is counted.
    let failures = || proxy.summary().count(Counter::TlsFailures);
    let deadline = Instant::now() + PATIENCE;
    while failures() < 3 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(failures(), 3);
}

#[test]
fn who_must_encrypt_and_does_not_is_told_so_and_nothing_else() {
    let upstream = Upstream::listen();
    let (_files, proxy, trusting) = offering("require", &upstream.address());
    let mut client = Client::connect(proxy.address());
    client.send(&[startup(&ME), query("SELECT 1")].concat());
    let answers = client.rest();
    assert_eq!(tags(&answers), "E");
    assert_eq!(answers[0].sqlstate(), "28000");
    // Nothing of it has reached the server.
    upstream.nobody_waits();
    // A request to cancel may come in the clear: libpq before 17 sends it so.
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(1, b"none"));
    assert_eq!(request.rest(), []);
    assert_eq!(proxy.summary().count(Counter::Cancels), 1);
    drop(trusting);
}

#[test]
fn a_unix_socket_needs_no_encryption_and_has_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".s.PGSQL.6432");
    let path = path.to_str().unwrap();
    let certificates = Certificates::new();
    let settings = certificates.settings("require");
    let settings = [&pairs(&settings)[..], &[("listen", path)]].concat();
    let proxy = Proxy::with(&server::address(), &settings);
    let mut client = Client::connect(proxy.address());
    client.send(&ssl_request());
    assert_eq!(client.byte(), b'N');
    client.send(&startup(&ME));
    client.logged_in();
    let named = certificates.trusting().naming(b"postgresql");
    assert!(named.at_once(proxy.address()).is_err());
}

#[test]
fn what_comes_behind_the_request_in_the_clear_is_never_used() {
    let upstream = Upstream::listen();
    let (_files, proxy, trusting) = offering("prefer", &upstream.address());
    let gssenc = frames::untagged(&80_877_104_u32.to_be_bytes());
    let login = [startup(&ME), query("SELECT 1")].concat();
    for first in [
        [ssl_request(), login.clone()].concat(),
        [ssl_request(), b"\0".to_vec()].concat(),
        [gssenc.clone(), login.clone()].concat(),
        [gssenc.clone(), ssl_request(), login.clone()].concat(),
    ] {
        let mut client = Client::connect(proxy.address());
        client.send(&first);
        if first.starts_with(&gssenc) {
            assert_eq!(client.byte(), b'N');
        }
        let answers = client.rest();
        assert_eq!(tags(&answers), "E");
        assert_eq!(answers[0].sqlstate(), "08P01");
    }
    // Also where the request was refused, and where what follows comes a moment later.
    let mut client = Client::connect(proxy.address());
    client.send(&gssenc);
    assert_eq!(client.byte(), b'N');
    client.send(&ssl_request());
    client.send(&login);
    let mut answer = Vec::new();
    let _ = client.socket.read_to_end(&mut answer);
    assert!(
        matches!(answer[0], b'S' | b'E'),
        "{}",
        answer.escape_ascii()
    );
    upstream.nobody_waits();
    drop(trusting);
}

#[test]
fn a_cancel_request_may_come_encrypted() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    let mut client = trusting.login(proxy.address(), "postgres");
    client.send(&query("SELECT pg_sleep(10)"));
    std::thread::sleep(Duration::from_millis(200));
    let mut request = trusting.connect(proxy.address()).unwrap();
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "57014");
}

#[test]
fn large_results_and_copy_arrive_whole_however_slowly_they_are_read() {
    let upstream = Upstream::listen();
    let (_files, proxy, trusting) = offering("require", &upstream.address());
    for trusting in [trusting.clone(), trusting.old()] {
        let (mut client, mut peer) = trusting.meet(proxy.address(), &upstream);
        let end = [frames::complete("SHOW"), frames::ready(b'I')].concat();
        client.send(&query("SHOW rows"));
        peer.expect(&query("SHOW rows"));
        let all = [frames::description(&["a"]), stream(b'D'), end.clone()].concat();
        carry(&peer.stream, &mut client.socket, &all);
        client.send(&query("COPY t FROM STDIN"));
        peer.expect(&query("COPY t FROM STDIN"));
        peer.send(&frames::frame(b'G', b"\0\0\0"));
        client.until(b'G');
        let all = [stream(b'd'), frames::frame(b'c', b"")].concat();
        carry(&mut client.socket, &peer.stream, &all);
        peer.send(&end);
        client.expect(&end);
    }
}

#[test]
fn results_pipelines_and_copies_of_a_real_server_are_those_without_tls() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    let database = server::database("CREATE TABLE c (id int, t text)");
    let mut client = trusting.login(proxy.address(), &database);
    let mut direct = Client::login(&server::address(), &database);
    let large = "SELECT i, md5(i::text), repeat(md5(i::text), i % 200) FROM \
                 generate_series(1, 1500) i";
    assert_eq!(client.query(large), direct.query(large));
    let batch = |number: u32| {
        let sql = format!("SELECT {number}, repeat('x', {number})");
        let rest = [
            frames::describe(b'P', ""),
            frames::execute("", 0),
            frames::sync(),
        ];
        let begin = [frames::parse("", &sql, &[]), frames::bind("", "", &[])];
        [begin.concat(), rest.concat()].concat()
    };
    let all: Vec<u8> = (0..500).flat_map(batch).collect();
    client.send(&all);
    direct.send(&all);
    for _ in 0..500 {
        assert_eq!(client.until_ready(), direct.until_ready());
    }
    client.send(&query("COPY c FROM STDIN"));
    client.until(b'G');
    for part in 0..50 {
        let rows = (0..1000).map(|row| format!("{row}\t{part}-{}\n", "y".repeat(row % 90)));
        client.send(&frames::frame(b'd', rows.collect::<String>().as_bytes()));
    }
    client.send(&frames::frame(b'c', b""));
    assert_eq!(tags(&client.until_ready()), "CZ");
    let out = query("COPY (SELECT * FROM c ORDER BY t, id) TO STDOUT");
    client.send(&out);
    direct.send(&out);
    let (seen, expected) = (client.until_ready(), direct.until_ready());
    assert!(seen == expected && seen.len() > 50_000);
}

#[test]
fn a_client_that_does_not_read_costs_a_buffer() {
    const MEMORY_KIB: u64 = 8 * 1024;
    let (_files, proxy, trusting, before) = process();
    let sql = "SELECT repeat('x', 1000) FROM generate_series(1, 100000) i";
    let mut client = trusting.login(&proxy.address, "postgres");
    client.send(&query(sql));
    std::thread::sleep(Duration::from_millis(700));
    let answer = client.until_ready();
    assert_eq!(answer.len(), 100_003);
    let grown = proxy.peak_kib() - before;
    assert!(grown < MEMORY_KIB, "{grown} KiB");
}

#[test]
fn the_last_word_is_encrypted_too() {
    let (_files, proxy, trusting) = offering("require", &server::address());
    let mut client = trusting.login(proxy.address(), "postgres");
    client.run("SELECT 1");
    drop(proxy);
    let last = client.rest();
    assert_eq!((tags(&last).as_str(), &*last[0].sqlstate()), ("E", "57P01"));
}

#[test]
fn a_farewell_without_an_end_is_an_end() {
    let upstream = Upstream::listen();
    let (_files, proxy, trusting) = offering("require", &upstream.address());
    for says_farewell in [true, false] {
        let (mut client, mut peer) = trusting.meet(proxy.address(), &upstream);
        if says_farewell {
            client.socket.conn.send_close_notify();
            client.socket.flush().unwrap();
        } else {
            client
                .socket
                .sock
                .shutdown(std::net::Shutdown::Write)
                .unwrap();
        }
        // The server is told, and what it says is passed on.
        assert!(peer.is_closed());
        drop(peer);
        assert_eq!(client.rest(), []);
    }
}

#[test]
fn a_certificate_of_the_right_authority_is_asked_for_where_clients_are_verified() {
    let upstream = Upstream::listen();
    for mode in ["verify-ca", "verify-full"] {
        let (files, proxy, trusting) = offering(mode, &upstream.address());
        let stranger = Certificates::new();
        let show = |of: &Certificates, name: &str| {
            let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
            trusting
                .clone()
                .showing(&of.path(&certificate), &of.path(&key))
        };
        // None, one of another authority, and one that is not meant for clients.
        for bad in [
            trusting.clone(),
            show(&stranger, "client"),
            show(&files, "proxy"),
        ] {
            for bad in [bad.clone(), bad.old()] {
                let Ok(mut client) = bad.connect(proxy.address()) else {
                    continue;
                };
                // In 1.3 a client is done before the server has looked.
                let _ = client.socket.write_all(&startup(&ME));
                assert_eq!(client.socket.read(&mut [0; 9]).unwrap_or(0), 0);
            }
        }
        upstream.nobody_waits();
    }
    let (files, proxy, trusting) = offering("verify-full", &server::address());
    let good = trusting.showing(&files.path("client.crt"), &files.path("client.key"));
    for good in [good.clone(), good.old()] {
        assert_eq!(
            good.login(proxy.address(), "postgres").value("SELECT 2"),
            "2"
        );
    }
    let (certificate, key) = (files.text("client.crt"), files.text("client.key"));
    let shown = format!("sslmode=require sslcert={certificate} sslkey={key}");
    if let Some(seen) = psql(proxy.address(), &shown, "SELECT 3") {
        assert_eq!(seen, (true, "3".to_owned()));
        let (content, text) = psql(proxy.address(), "sslmode=require", "SELECT 3").unwrap();
        assert!(!content && text.contains("certificate required"), "{text}");
    }
}

#[test]
fn a_clients_certificate_that_is_its_own_authority_is_good_if_it_is_listed() {
    let files = Certificates::new();
    files.sign_itself("own", "me", &[]);
    files.sign_itself("other", "me", &[]);
    let mut settings = files.settings("verify-full");
    let list = files.path("list.crt");
    let all = ["ca.crt", "own.crt"].map(|file| std::fs::read_to_string(files.path(file)).unwrap());
    std::fs::write(&list, all.concat()).unwrap();
    settings.retain(|(key, _)| *key != "client_tls_ca_file");
    settings.push(("client_tls_ca_file", files.text("list.crt")));
    let proxy = Proxy::with(&server::address(), &pairs(&settings));
    let show = |name: &str| {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let trusting = files.trusting();
        trusting.showing(&files.path(&certificate), &files.path(&key))
    };
    for name in ["own", "client"] {
        for good in [show(name), show(name).old()] {
            let mut client = good.login(proxy.address(), "postgres");
            assert_eq!(client.value("SELECT 2"), "2");
        }
    }
    for bad in [show("other"), show("other").old()] {
        let Ok(mut client) = bad.connect(proxy.address()) else {
            continue;
        };
        // In 1.3 a client is done before the server has looked.
        let _ = client.socket.write_all(&startup(&ME));
        assert_eq!(client.socket.read(&mut [0; 9]).unwrap_or(0), 0);
    }
}

#[test]
fn files_are_read_again_when_the_proxy_is_told_to() {
    let certificates = Certificates::new();
    let settings = certificates.settings("require");
    let mut proxy = Process::start(&server::address(), &pairs(&settings));
    let mut log = BufReader::new(proxy.stderr()).lines();
    let mut told = |text: &str| {
        proxy.signal(rustix::process::Signal::HUP);
        let line = log.find(|line| line.as_ref().unwrap().contains("SIGHUP"));
        let line = line.unwrap().unwrap();
        assert!(line.contains(text), "{line}");
    };
    let shown = || {
        let client = certificates.trusting().connect(&proxy.address).unwrap();
        client.socket.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let old = shown();
    let mut logged_in = certificates.trusting().login(&proxy.address, "postgres");
    certificates.sign("proxy", &["localhost"]);
    assert_eq!(shown(), old, "nobody has told the proxy");
    told("have been read again");
    let new = shown();
    assert_ne!(new, old);
    // A key that does not belong to the certificate, half a file, and none.
    let (key, certificate) = (
        certificates.path("proxy.key"),
        certificates.path("proxy.crt"),
    );
    let good = std::fs::read(&certificate).unwrap();
    std::fs::copy(certificates.path("client.key"), &key).unwrap();
    told("cannot use the key of");
    std::fs::write(&certificate, &good[..good.len() / 2]).unwrap();
    told("cannot read a certificate from");
    std::fs::remove_file(&certificate).unwrap();
    told("cannot read a certificate from");
    assert_eq!(shown(), new);
    assert_eq!(logged_in.value("SELECT 1 + 1"), "2");
}

#[test]
fn libpq_logs_in_with_scram_in_every_mode() {
    let server = server::letting_in(Auth::ScramSha256("secret".to_owned()));
    let (files, proxy, _) = offering("require", &server.host_port());
    let try_with = |parameters: &str| {
        let root = files.text("ca.crt");
        let all = format!("password=secret sslrootcert={root} {parameters}");
        psql(proxy.address(), &all, "SELECT 40 + 2")
    };
    for mode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
        let Some(seen) = try_with(&format!("sslmode={mode}")) else {
            println!("there is no psql here");
            return;
        };
        assert_eq!(seen, (true, "42".to_owned()), "{mode}");
    }
    let (content, text) = try_with("sslmode=disable").unwrap();
    assert!(!content && text.contains("no encryption"), "{text}");
    let (content, text) = try_with("sslmode=require channel_binding=require").unwrap();
    assert!(!content && text.contains("channel binding"), "{text}");
    let wrong = "sslmode=verify-full host=other.example";
    let (content, text) = try_with(wrong).unwrap();
    assert!(!content && text.contains("other.example"), "{text}");
}

/// The bar is far above what is measured.
#[test]
fn an_encrypted_client_that_waits_costs_little() {
    const CLIENTS: u64 = 200;
    const COST: u64 = 40 * 1024;
    let upstream = Upstream::listen();
    let certificates = Certificates::new();
    let settings = certificates.settings("require");
    let large = "x".repeat(1 << 20);
    for (name, trusting) in [
        ("1.3", certificates.trusting()),
        ("1.2", certificates.trusting().old()),
    ] {
        for sends_much in [false, true] {
            let proxy = Process::start(&upstream.address(), &pairs(&settings));
            let login = || {
                let (mut client, mut peer) = trusting.meet(&proxy.address, &upstream);
                if sends_much {
                    let sql = query(&format!("SHOW '{large}'"));
                    std::thread::scope(|scope| {
                        scope.spawn(|| client.send(&sql));
                        peer.expect(&sql);
                    });
                    let row = frames::row(&[&large]);
                    let answer = [row, frames::complete("SHOW"), frames::ready(b'I')].concat();
                    std::thread::scope(|scope| {
                        scope.spawn(|| peer.send(&answer));
                        client.expect(&answer);
                    });
                }
                (client, peer)
            };
            // The first has what all share made ready, and does not count.
            let first = login();
            let before = proxy.resident_kib();
            let clients: Vec<_> = (0..CLIENTS).map(|_| login()).collect();
            let cost = proxy.resident_kib().saturating_sub(before) * 1024 / CLIENTS;
            println!("TLS {name}, large messages {sends_much}: {cost} bytes a client");
            assert!(cost <= COST, "{cost} bytes a client");
            drop((first, clients));
        }
    }
}
