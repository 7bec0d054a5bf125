//! Peers that speak TLS badly, or stop in the middle: they end, and nobody else notices.

use crate::harness::client::Client;
use crate::harness::frames::{query, startup};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use crate::harness::tls::{Certificates, pairs, process, ssl_request};
use pgautoprep::metrics::Counter;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

/// The first record of a handshake.
fn hello(certificates: &Certificates) -> Vec<u8> {
    let trusting = certificates.trusting().naming(b"postgresql");
    let mut bytes = Vec::new();
    trusting.connection().write_tls(&mut bytes).unwrap();
    bytes
}

fn offering(changes: &[(&'static str, &str)]) -> (Certificates, Proxy) {
    let certificates = Certificates::new();
    let mut settings = certificates.settings("require");
    let changes = changes
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    settings.extend(changes);
    let proxy = Proxy::with(&server::address(), &pairs(&settings));
    (certificates, proxy)
}

/// Everything up to the end of the connection.
pub(crate) fn rest(client: &mut Client) -> Vec<u8> {
    let mut answer = Vec::new();
    match client.socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!("the proxy does not hang up: {error}")
        }
        _ => answer,
    }
}

#[test]
fn nonsense_instead_of_a_handshake_is_hung_up_on() {
    let (certificates, proxy) = offering(&[]);
    let mut other = certificates.trusting().login(proxy.address(), "postgres");
    let hello = hello(&certificates);
    let mut longer = hello.clone();
    longer[3..5].copy_from_slice(&[0xff, 0xff]);
    let mut spoiled = hello;
    spoiled[60..].fill(0xff);
    let nonsense = [
        startup(&ME),
        query("SELECT 1"),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100],
        vec![0xff; 70_000],
        longer,
        spoiled,
        // An alert, content before the handshake, and many records without content.
        b"\x15\x03\x03\0\x02\x02\x28".to_vec(),
        b"\x17\x03\x03\0\x04abcd".to_vec(),
        b"\x16\x03\x03\0\0".repeat(200),
        // A message of a handshake that says it is 16 MB long.
        b"\x16\x03\x03\x40\0\x01\xff\xff\xff"
            .iter()
            .copied()
            .chain([0; 16_380])
            .collect(),
    ];
    let count = nonsense.len() as u64;
    for bytes in nonsense {
        for at_once in [false, true] {
            if at_once && bytes.first() != Some(&0x16) {
                continue;
            }
            let mut client = Client::connect(proxy.address());
            if !at_once {
                client.send(&ssl_request());
                assert_eq!(client.byte(), b'S');
            }
            // It may be hung up on while it still talks.
            let _ = client.socket.write_all(&bytes);
            let _ = client.socket.shutdown(std::net::Shutdown::Write);
            let answer = rest(&mut client);
            // At most an alert, never anything of ours in the clear.
            assert!(answer.is_empty() || answer[0] == 0x15 || answer[0] == 0x16);
            assert_eq!(other.value("SELECT 1 + 1"), "2");
        }
    }
    proxy.await_connections(1);
    assert!(proxy.summary().count(Counter::TlsFailures) >= count);
}

#[test]
fn a_handshake_may_stop_after_any_byte() {
    let (certificates, proxy) = offering(&[]);
    let hello = hello(&certificates);
    let cuts = [
        &(1..30).collect::<Vec<_>>()[..],
        &[hello.len() - 1, hello.len()],
    ]
    .concat();
    for cut in cuts {
        let mut client = Client::connect(proxy.address());
        client.send(&hello[..cut]);
        drop(client);
    }
    proxy.await_connections(0);
    let mut client = certificates.trusting().login(proxy.address(), "postgres");
    assert_eq!(client.value("SELECT 1 + 1"), "2");
}

#[test]
fn a_handshake_has_as_much_time_as_a_login() {
    let (certificates, proxy) = offering(&[("login_timeout_s", "1")]);
    let hello = hello(&certificates);
    let started = Instant::now();
    let silent: Vec<_> = [0, 1, 50, hello.len()]
        .into_iter()
        .map(|cut| {
            let mut client = Client::connect(proxy.address());
            client.send(&ssl_request());
            assert_eq!(client.byte(), b'S');
            client.send(&hello[..cut]);
            client
        })
        .collect();
    for mut client in silent {
        let answer = rest(&mut client);
        assert!(answer.is_empty() || answer[0] == 0x16, "said in the clear");
    }
    let waited = started.elapsed();
    assert!(waited > Duration::from_millis(900) && waited < Duration::from_secs(8));
    proxy.await_connections(0);
}

/// As many as the proxy lets in, or as the machine lets this program open.
#[test]
fn ten_thousand_half_open_handshakes_keep_nobody_out() {
    const HALF_OPEN: u64 = 10_000;
    const MEMORY_KIB: u64 = 64 * 1024;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let (certificates, proxy, trusting, before) = process();
    let for_others = 500;
    let mine = limit.maximum.unwrap_or(u64::MAX).min(proxy.file_limit());
    let count = HALF_OPEN.min(mine.saturating_sub(for_others));
    let hello = hello(&certificates);
    let mut half_open = Vec::new();
    for number in 0..count {
        let mut client = Client::connect(&proxy.address);
        // What is whole is answered, which costs more time than anything else here.
        let cut = usize::from(number % 10 > 0);
        client.send(&hello[..hello.len() - cut]);
        half_open.push(client);
        if number % 1000 == 999 {
            let mut client = trusting.login(&proxy.address, "postgres");
            assert_eq!(client.value("SELECT 1 + 1"), "2");
        }
    }
    let grown = proxy.peak_kib() - before;
    println!("{count} half-open handshakes: {grown} KiB");
    assert!(grown < MEMORY_KIB, "{grown} KiB");
}

#[test]
fn records_that_were_changed_or_cut_end_the_session_and_no_other() {
    let (certificates, proxy) = offering(&[]);
    let mut other = certificates.trusting().login(proxy.address(), "postgres");
    for trusting in [certificates.trusting(), certificates.trusting().old()] {
        for spoils in [true, false] {
            let mut client = trusting.login(proxy.address(), "postgres");
            client
                .socket
                .conn
                .writer()
                .write_all(&query("SELECT 1"))
                .unwrap();
            let mut record = Vec::new();
            client.socket.conn.write_tls(&mut record).unwrap();
            let last = record.len() - 1;
            if spoils {
                record[last] ^= 1;
            } else {
                record.truncate(last);
            }
            client.socket.sock.write_all(&record).unwrap();
            client
                .socket
                .sock
                .shutdown(std::net::Shutdown::Write)
                .unwrap();
            let mut rest = Vec::new();
            let _ = client.socket.read_to_end(&mut rest);
            assert_eq!(rest, b"", "nothing was asked");
            assert_eq!(other.value("SELECT 1 + 1"), "2");
        }
    }
    proxy.await_connections(1);
}

#[test]
fn the_log_holds_neither_keys_nor_what_is_inside() {
    let certificates = Certificates::new();
    let mut settings = certificates.settings("require");
    settings.push(("log_level", "trace".to_owned()));
    let mut proxy = Process::start(&server::address(), &pairs(&settings));
    let mut client = certificates.trusting().login(&proxy.address, "postgres");
    client.query("SELECT oid, 'hunter2' FROM pg_class WHERE relname = 'hunter2'");
    drop(client);
    // A handshake that fails, and files that do.
    let mut bad = Client::connect(&proxy.address);
    bad.send(&[&b"\x16"[..], &hello(&certificates)[..40]].concat());
    drop(bad);
    std::fs::copy(
        certificates.path("client.key"),
        certificates.path("proxy.key"),
    )
    .unwrap();
    proxy.signal(rustix::process::Signal::HUP);
    std::thread::sleep(Duration::from_millis(200));
    proxy.signal(rustix::process::Signal::TERM);
    let (_, _, log) = proxy.ended();
    assert!(
        log.contains("login") && log.contains("stays in force"),
        "{log}"
    );
    let keys = std::fs::read_to_string(certificates.path("client.key")).unwrap();
    let lines = keys.lines().filter(|line| !line.starts_with('-'));
    for secret in lines.chain(["hunter2"]) {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}
