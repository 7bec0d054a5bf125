//! Bugs that other poolers had before anybody had come in, played to this one at every byte.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame, frame, query, startup, tags};
use crate::harness::login::{DATABASE, Users, asking, login};
use crate::harness::proxy::Proxy;
use crate::harness::script::greeting;
use crate::harness::tls::{self, Certificates, pairs, ssl_request};
use crate::harness::upstream::Upstream;
use crate::tls_hostile::rest;
use pgautoprep::metrics::Counter;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

const VISITOR: [(&str, &str); 2] = [("user", "visitor"), ("database", DATABASE)];

const SETUP: &str = "SET password_encryption = 'scram-sha-256';\
    CREATE ROLE keeper SUPERUSER LOGIN PASSWORD 'kept';\
    CREATE ROLE visitor LOGIN PASSWORD 'right';\
    CREATE ROLE other LOGIN PASSWORD 'else'";

/// As long as a piece takes to be read by itself, on a machine that is not busy.
const MOMENT: Duration = Duration::from_micros(500);

fn gssenc_request() -> Vec<u8> {
    frames::untagged(&80_877_104_u32.to_be_bytes())
}

/// Waits until as many clients were ended for what they have sent.
fn await_errors(proxy: &Proxy, count: u64) {
    let started = Instant::now();
    loop {
        let errors = proxy.summary().count(Counter::ErrorsClient);
        if errors == count {
            return;
        }
        let waited = started.elapsed();
        assert!(waited < Duration::from_secs(60), "{errors} and not {count}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// CVE-2021-23214, CVE-2021-3935 and CVE-2021-43766: bytes in the clear behind a request for
/// encryption were read later as if they had come encrypted. A login and a query stand behind each
/// kind of request, in two pieces that are cut at every byte, and none of it is ever a session.
#[test]
fn what_stands_in_the_clear_behind_a_request_is_no_login_wherever_it_is_cut() {
    let certificates = Certificates::new();
    let offers = certificates.settings("prefer");
    let login = [startup(&VISITOR), query("SELECT 1")].concat();
    for (settings, before, request) in [
        (pairs(&offers), None, ssl_request()),
        (pairs(&offers), Some(gssenc_request()), ssl_request()),
        (pairs(&offers), None, gssenc_request()),
        (Vec::new(), None, ssl_request()),
        (Vec::new(), Some(gssenc_request()), ssl_request()),
    ] {
        let upstream = Upstream::listen();
        let proxy = Proxy::with(&upstream.address(), &settings);
        let encrypts = !settings.is_empty() && request == ssl_request();
        let bytes = [&request[..], &login].concat();
        // Who is told no goes on in the clear, and nobody sees whether it has waited for that.
        let cuts = (1..=bytes.len()).filter(|cut| encrypts || *cut != request.len());
        let mut count = 0;
        for cut in cuts {
            let mut client = Client::connect(proxy.address());
            if let Some(before) = &before {
                client.send(before);
                assert_eq!(client.byte(), b'N');
            }
            client.send(&bytes[..cut]);
            std::thread::sleep(MOMENT);
            // It may have been hung up on.
            let _ = client.socket.write_all(&bytes[cut..]);
            let _ = client.socket.shutdown(std::net::Shutdown::Write);
            let said = rest(&mut client);
            count += 1;
            let said = match encrypts {
                true => &said[..],
                // What was said may be lost with the connection, if it was still talked to.
                false => said.strip_prefix(b"N").unwrap_or(&[]),
            };
            match said {
                [] => assert!(cut < bytes.len(), "nothing was said"),
                // A handshake that fails may be told of by an alert.
                [b'S', alert @ ..] => assert!(encrypts && matches!(alert, [] | [0x15, ..])),
                said => {
                    let (frames, half) = frames::cut(said);
                    let shown = said.escape_ascii();
                    assert_eq!((tags(&frames).as_str(), half.len()), ("E", 0), "{shown}");
                    assert_eq!(frames[0].sqlstate(), "08P01", "{shown}");
                }
            }
        }
        await_errors(&proxy, count);
        upstream.nobody_waits();
    }
}

/// The same where somebody slips bytes in between an honest client's request and its handshake:
/// there is no session that begins with them.
#[test]
fn bytes_that_somebody_slips_in_before_a_handshake_end_it() {
    let upstream = Upstream::listen();
    let certificates = Certificates::new();
    let proxy = Proxy::with(
        &upstream.address(),
        &pairs(&certificates.settings("prefer")),
    );
    let mut count = 0;
    for slipped in [
        b"\0".to_vec(),
        b"\x16".to_vec(),
        startup(&VISITOR),
        [startup(&VISITOR), query("SELECT 1")].concat(),
        query("SELECT 1"),
        b"\x17\x03\x03\0\x04abcd".to_vec(),
    ] {
        // In one piece with the request, behind it, and behind the answer.
        for way in 0..3 {
            let mut client = Client::connect(proxy.address());
            let answer = match way {
                0 => {
                    client.send(&[ssl_request(), slipped.clone()].concat());
                    client.byte()
                }
                1 => {
                    client.send(&ssl_request());
                    client.send(&slipped);
                    client.byte()
                }
                _ => {
                    client.send(&ssl_request());
                    let answer = client.byte();
                    client.send(&slipped);
                    answer
                }
            };
            count += 1;
            if answer == b'S' {
                let outcome = tls::over(client, certificates.trusting().connection());
                let shown = slipped.escape_ascii();
                assert!(outcome.is_err(), "a session behind {shown}");
            } else {
                assert!(answer == b'E' && way < 2, "{answer}");
            }
        }
    }
    await_errors(&proxy, count);
    upstream.nobody_waits();
    assert_eq!(proxy.summary().count(Counter::TlsHandshakes), 0);
}

/// CVE-2021-23222 and CVE-2021-43767: a proxy that asks a server for TLS, and hears in the clear
/// that it is logged in when the handshake has begun.
#[test]
fn what_a_server_says_instead_of_shaking_hands_is_not_believed() {
    let certificates = Certificates::new();
    for mode in ["prefer", "require", "verify-full"] {
        let settings = [
            ("server_tls_sslmode", mode.to_owned()),
            ("server_tls_ca_file", certificates.text("ca.crt")),
        ];
        let error = frames::error("99999", "believe me");
        for said in [greeting(), error, greeting()[..1].to_vec()] {
            let upstream = Upstream::listen();
            let proxy = Proxy::with(&upstream.address(), &pairs(&settings));
            let mut client = Client::connect(proxy.address());
            client.send(&startup(&VISITOR));
            let mut peer = upstream.accept();
            peer.expect(&ssl_request());
            peer.send(b"S");
            let mut header = [0; 5];
            peer.stream.read_exact(&mut header).unwrap();
            assert_eq!(header[0], 0x16, "no handshake");
            let mut hello = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
            peer.stream.read_exact(&mut hello).unwrap();
            peer.send(&said);
            drop(peer);
            // Where TLS is only preferred, another connection begins without, and from nothing.
            if mode == "prefer" {
                upstream.accept().expect(&startup(&VISITOR));
            }
            let answers = client.rest();
            assert_eq!(tags(&answers), "E", "{mode}: {answers:?}");
            assert_eq!(answers[0].sqlstate(), "08006", "{mode}");
            let message = answers[0].field(b'M').unwrap();
            assert!(!message.contains("believe"), "{message}");
            upstream.nobody_waits();
        }
    }
}

/// A proxy that asks the server about users, and about each anew after so many seconds.
fn querying(upstream: &str, kind: &str, users: &Users, after: &str) -> Proxy {
    let settings = [
        ("auth_type", kind),
        ("auth_file", users.path()),
        ("auth_user", "keeper"),
        ("auth_cache_s", after),
    ];
    Proxy::with(upstream, &settings)
}

/// What the first message of SCRAM is answered with that comes in these pieces: the SQLSTATE, or
/// the type of the message if it is no error.
fn told(address: &str, pieces: [&[u8]; 2]) -> String {
    let mut client = Client::connect(address);
    client.send(&startup(&VISITOR));
    assert_eq!(client.next().unwrap().body[3], 10);
    client.send(pieces[0]);
    if !pieces[1].is_empty() {
        std::thread::sleep(MOMENT);
        client.send(pieces[1]);
    }
    let said = client.next();
    let told = |said: Frame| match said.tag {
        b'E' => said.sqlstate(),
        tag => char::from(tag).to_string(),
    };
    said.map(told).unwrap_or_default()
}

/// CVE-2026-6664: the length in a SASLInitialResponse overflowed a check, and whoever sent one
/// crashed the proxy. Whatever it says, and wherever the message is cut, it is answered as the
/// server answers it, and the next client comes in.
#[test]
fn a_first_message_whose_length_lies_is_answered_as_by_the_server() {
    let server = asking("scram-sha-256", SETUP);
    let users = Users::new(&[("keeper", "kept")]);
    let proxy = querying(&server.host_port(), "scram-sha-256", &users, "60");
    let data = b"n,,n=,r=abc";
    let own = u32::try_from(data.len()).unwrap();
    let lying = |length: u32| {
        let body = [b"SCRAM-SHA-256\0", &length.to_be_bytes()[..], data];
        frame(b'p', &body.concat())
    };
    let lengths = [
        0,
        1,
        own - 1,
        own,
        own + 1,
        0xff,
        0x1_0000,
        i32::MAX.unsigned_abs(),
        1 << 31,
        u32::MAX - 1,
        u32::MAX,
    ];
    let bodies: [&[u8]; 9] = [
        b"",
        b"\0",
        b"SCRAM-SHA-256",
        b"SCRAM-SHA-256n,,n=,r=abc",
        b"SCRAM-SHA-256\0",
        b"SCRAM-SHA-256\0\0",
        b"SCRAM-SHA-256\0\0\0\0",
        b"SCRAM-SHA-256\0\0\0\0\0",
        b"SCRAM-SHA-256\0\xff\xff\xff\xff",
    ];
    let all = lengths.map(lying).into_iter();
    for message in all.chain(bodies.map(|body| frame(b'p', body))) {
        let shown = message.escape_ascii().to_string();
        let expected = told(&server.host_port(), [&message, b""]);
        assert!(["R", "08P01"].contains(&&*expected), "{shown}: {expected}");
        assert_eq!(told(proxy.address(), [&message, b""]), expected, "{shown}");
    }
    for message in [
        lying(0),
        lying(i32::MAX.unsigned_abs()),
        lying(u32::MAX - 1),
        frame(b'p', b"SCRAM-SHA-256n,,n=,r=abc"),
    ] {
        for cut in 1..message.len() {
            let (first, second) = message.split_at(cut);
            let ours = told(proxy.address(), [first, second]);
            assert_eq!(ours, "08P01", "{} cut at {cut}", message.escape_ascii());
        }
    }
    login(proxy.address(), "visitor", "right").entered();
}

/// The last message of a login, which is not sent, and the client that would send it. If it
/// `proves` nothing it has the form of one that does.
fn on_the_brink(address: &str, proves: bool) -> (Client, Vec<u8>) {
    let mut client = Client::connect(address);
    client.send(&startup(&VISITOR));
    let asked = client.next().unwrap();
    let text = |text: &str| frame(b'p', &[text.as_bytes(), b"\0"].concat());
    let last = match asked.body[..] {
        [0, 0, 0, 3] => text("right"),
        [0, 0, 0, 5, ref salt @ ..] => {
            let salt = salt.try_into().unwrap();
            text(&md5_hash(b"visitor", b"right", salt))
        }
        _ => {
            let mut scram = ScramSha256::new(b"right", ChannelBinding::unsupported());
            let first = scram.message();
            let length = u32::try_from(first.len()).unwrap().to_be_bytes();
            let body = [b"SCRAM-SHA-256\0", &length[..], first].concat();
            client.send(&frame(b'p', &body));
            let challenge = client.next().unwrap().body;
            let challenge = String::from_utf8(challenge[4..].to_vec()).unwrap();
            if proves {
                scram.update(challenge.as_bytes()).unwrap();
                frame(b'p', scram.message())
            } else {
                let nonce = challenge.split(',').next().unwrap();
                let form = format!("c=biws,{nonce},p={}=", "A".repeat(43));
                frame(b'p', form.as_bytes())
            }
        }
    };
    (client, last)
}

/// PgBouncer #1034: a client that left while it was asked about had its answer given to whoever
/// came next. It leaves behind every byte of its last message, and behind all of it.
#[test]
fn who_leaves_at_any_byte_of_its_proof_leaves_its_place_to_nobody() {
    let server = asking("scram-sha-256", SETUP);
    // Who has the password itself can show the server whatever it asks for.
    let listed = Users::new(&[("visitor", "right"), ("other", "else")]);
    let keeper = Users::new(&[("keeper", "kept")]);
    for kind in ["plain", "md5", "scram-sha-256"] {
        let proxy = match kind {
            "md5" => {
                let settings = [("auth_type", kind), ("auth_file", listed.path())];
                Proxy::with(&server.host_port(), &settings)
            }
            _ => querying(&server.host_port(), kind, &keeper, "0"),
        };
        let whole = on_the_brink(proxy.address(), true).1.len();
        for end in 0..=whole {
            let (mut client, last) = on_the_brink(proxy.address(), end == whole);
            assert_eq!(last.len(), whole);
            client.send(&last[..end]);
            drop(client);
            if end % 32 == 0 || end == whole {
                let refusal = login(proxy.address(), "other", "right").refusal();
                assert_eq!(refusal.0, "28P01", "{kind} {end}");
                let mut other = login(proxy.address(), "other", "else").entered();
                let who = other.value("SELECT session_user");
                assert_eq!(who, "other", "{kind} {end}");
            }
        }
        proxy.await_connections(0);
    }
}

/// CVE-2025-12819: a setting in a client's packet was set on the connection that asks about users.
/// Whatever a client sets, that connection is asked the same bytes, and was logged in by the
/// proxy's own packet.
#[test]
fn no_setting_of_a_client_is_one_of_the_connection_that_asks() {
    let mut direct = Client::login(&crate::harness::server::address(), "postgres");
    let names = direct.value("SELECT string_agg(name, ' ') FROM pg_settings");
    let names: Vec<_> = names.split(' ').collect();
    let upstream = Upstream::listen();
    let users = Users::new(&[("keeper", "kept")]);
    let proxy = querying(&upstream.address(), "scram-sha-256", &users, "0");
    let ask = |more: &[(&str, &str)]| {
        let mut client = Client::connect(proxy.address());
        client.send(&startup(&[&VISITOR, more].concat()));
        client
    };
    let asked = |peer: &mut crate::harness::upstream::Peer| {
        let mut seen = Vec::new();
        while !seen.ends_with(b"S\0\0\0\x04") {
            let mut bytes = [0; 4096];
            let count = peer.stream.read(&mut bytes).unwrap();
            assert!(count > 0, "it asks nothing");
            seen.extend_from_slice(&bytes[..count]);
        }
        let begun = [frame(b'1', b""), frame(b'2', b"")].concat();
        let end = [frames::complete("SELECT 0"), frames::ready(b'I')].concat();
        peer.send(&[begun, end].concat());
        seen
    };
    let mut client = ask(&[]);
    let mut peer = upstream.accept();
    let mut packet = vec![0; 4096];
    let count = peer.stream.read(&mut packet).unwrap();
    packet.truncate(count);
    assert!(!packet.windows(7).any(|part| part == b"visitor"));
    peer.send(&greeting());
    let question = asked(&mut peer);
    assert_eq!(client.next().unwrap().body[3], 10);
    let optional = [
        ("options", "-c search_path=evil -c role=keeper"),
        ("_pq_.search_path", "evil"),
        ("replication", "database"),
        ("is_superuser", "on"),
        ("search_path", "evil, pg_catalog"),
    ];
    let hostile: Vec<_> = names.iter().map(|name| (*name, "evil")).collect();
    for more in hostile.chunks(100).chain([&optional[..]]) {
        let mut client = ask(more);
        assert_eq!(asked(&mut peer), question, "{more:?}");
        assert_eq!(
            tags(&[client.next().unwrap()]).as_str(),
            match more {
                more if more.contains(&optional[1]) => "v",
                _ => "R",
            }
        );
    }
    upstream.nobody_waits();
}
