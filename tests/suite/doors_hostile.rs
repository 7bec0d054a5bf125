//! Servers that mean harm to a proxy that logs in to them, or are not themselves.

use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, frame, startup};
use crate::harness::login::{DATABASE, Users, answer};
use crate::harness::proxy::Proxy;
use crate::harness::upstream::{Peer, Upstream};
use std::time::Instant;

const ME: [(&str, &str); 2] = [("user", "visitor"), ("database", DATABASE)];

/// A client that has proven who it is and waits for the server, which has read its packet.
fn waiting(proxy: &Proxy, upstream: &Upstream) -> (std::thread::JoinHandle<Vec<String>>, Peer) {
    let mut client = Client::connect(proxy.address());
    let client = std::thread::spawn(move || {
        client.send(&startup(&ME));
        let said = answer(&mut client, "visitor", "right", None);
        let told = |frame: &frames::Frame| match frame.tag {
            b'E' => frame.field(b'C').unwrap_or_default(),
            tag => char::from(tag).to_string(),
        };
        said.iter().map(told).collect()
    });
    let mut peer = upstream.accept();
    peer.expect(&startup(&ME));
    (client, peer)
}

#[test]
fn a_server_that_talks_nonsense_ends_one_login_and_no_more() {
    let upstream = Upstream::listen();
    let users = Users::new(&[("visitor", "right")]);
    let settings = [("auth_type", "scram-sha-256"), ("auth_file", users.path())];
    let proxy = Proxy::with(&upstream.address(), &settings);
    let asked = |code: u32, data: &[u8]| frame(b'R', &[&code.to_be_bytes(), data].concat());
    let sasl = asked(10, b"SCRAM-SHA-256\0\0");
    let large = [&b"E\0\x10\0\0"[..], &[b'x'; 70_000]].concat();
    for (said, expected) in [
        (Vec::new(), "08006"),
        (b"R\0\0".to_vec(), "08006"),
        (b"R\0\0\0\x03".to_vec(), "08P01"),
        (b"R\xff\xff\xff\xff".to_vec(), "08P01"),
        (large, "08P01"),
        // It never comes to an end.
        (frame(b'N', &[b'x'; 200_000]).repeat(2), "08P01"),
        (frame(b'Z', b"I"), "08P01"),
        (frame(b'D', b"\0\0"), "08P01"),
        (frame(b'R', b""), "08006"),
        (asked(7, b""), "08006"),
        (asked(9, b"x"), "08006"),
        (asked(12, b"v=x"), "08006"),
        (asked(11, b"r=x,s=x,i=1"), "08006"),
        (asked(10, b"OAUTHBEARER\0\0"), "08006"),
        (asked(10, b""), "08006"),
        // Not proven.
        ([sasl.clone(), asked(0, b"")].concat(), "08006"),
        ([sasl.clone(), asked(12, b"v=x")].concat(), "08006"),
        (
            [sasl.clone(), asked(11, b"r=x,s=c2FsdA==,i=1")].concat(),
            "08006",
        ),
        ([sasl, asked(11, b"")].concat(), "08006"),
        // The server's own words, as far as there are any.
        (frames::error("57P03", "not yet"), "57P03"),
        (frame(b'E', b""), ""),
        (frame(b'E', b"\0"), ""),
        (frame(b'E', b"Mno state\0\0"), ""),
        (frame(b'E', b"C53300"), "53300"),
    ] {
        let started = Instant::now();
        let (client, mut peer) = waiting(&proxy, &upstream);
        // It may be hung up on while it still talks.
        let _ = std::io::Write::write_all(&mut peer.stream, &said);
        drop(peer);
        let told = client.join().unwrap();
        let shown = said[..said.len().min(60)].escape_ascii().to_string();
        assert_eq!(told[..2], ["R", "R"], "{shown}: {told:?}");
        assert_eq!(told[2..], [expected], "{shown}");
        assert!(started.elapsed() < PATIENCE / 2, "{shown}");
    }
    // What comes behind the acceptance, in one piece with it or byte by byte, is passed on.
    let greeting = crate::harness::script::greeting();
    let notice = frames::notice("before");
    for pieces in [1, greeting.len()] {
        let (client, mut peer) = waiting(&proxy, &upstream);
        peer.send(&notice);
        for piece in greeting.chunks(greeting.len() / pieces) {
            peer.send(piece);
        }
        let told = client.join().unwrap();
        assert_eq!(told[..5], ["R", "R", "R", "N", "R"], "{told:?}");
        assert_eq!(told.last().unwrap(), "Z");
    }
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_longer_than_for_a_login() {
    let upstream = Upstream::listen();
    let users = Users::new(&[("visitor", "right")]);
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_file", users.path()),
        ("login_timeout_s", "2"),
    ];
    let proxy = Proxy::with(&upstream.address(), &settings);
    let (client, peer) = waiting(&proxy, &upstream);
    assert_eq!(client.join().unwrap(), ["R", "R", "08000"]);
    drop(peer);
}

#[test]
fn a_server_that_does_not_answer_about_users_keeps_nobody_for_ever() {
    let upstream = Upstream::listen();
    let settings = [
        ("auth_type", "scram-sha-256"),
        ("auth_user", "keeper"),
        ("login_timeout_s", "2"),
    ];
    let proxy = Proxy::with(&upstream.address(), &settings);
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&ME));
    let mut peer = upstream.accept();
    let mut bytes = [0; 512];
    let count = std::io::Read::read(&mut peer.stream, &mut bytes).unwrap();
    let packet = String::from_utf8_lossy(&bytes[..count]).replace('\0', "|");
    let expected = "user|keeper|database|postgres|application_name|pgautoprep-auth|\
                    client_encoding|SQL_ASCII|search_path|pg_catalog|statement_timeout|5s||";
    assert!(packet.ends_with(expected), "{packet}");
    assert!(!packet.contains("visitor"));
    let said = client.rest();
    assert_eq!(said[0].sqlstate(), "08000", "{said:?}");
    // Nor does an answer that is late, or wrong, or cut, let anybody in.
    drop(peer);
    for answer in [
        crate::harness::script::greeting(),
        frame(b'R', &[0; 4]),
        frames::error("28000", "no"),
    ] {
        let mut client = Client::connect(proxy.address());
        client.send(&startup(&ME));
        let mut peer = upstream.accept();
        peer.send(&answer);
        drop(peer);
        let said = client.rest();
        assert_eq!(said[0].sqlstate(), "08006", "{said:?}");
    }
}

#[test]
fn what_the_server_says_of_users_instead_of_a_secret_lets_nobody_in() {
    let upstream = Upstream::listen();
    let settings = [("auth_type", "scram-sha-256"), ("auth_user", "keeper")];
    let proxy = Proxy::with(&upstream.address(), &settings);
    let end = frames::ready(b'I');
    let begin = [frame(b'1', b""), frame(b'2', b"")].concat();
    let secret = frames::row(&["visitor", "right"]);
    for said in [
        // Errors without a state, without any field, without an end.
        [frames::report(b'E', &["Mno state"]), end.clone()].concat(),
        [frame(b'E', b""), end.clone()].concat(),
        [frame(b'E', b"\0"), end.clone()].concat(),
        [frame(b'E', b"C57014"), end.clone()].concat(),
        // A secret in front of an error, twice, of a kind that nobody asked for, or cut.
        [&begin[..], &secret, &frames::error("22012", "no"), &end].concat(),
        [
            &begin[..],
            &secret,
            &secret,
            &frames::complete("SELECT 2"),
            &end,
        ]
        .concat(),
        [&begin[..], &frame(b'D', b"\0\x02\0\0\0\x07visitor"), &end].concat(),
        [&begin[..], &frame(b'D', b"\0\x02\xff\xff\xff\xfe"), &end].concat(),
        [&begin[..], &frame(b'D', b""), &end].concat(),
        [&begin[..], &frame(b'D', b"\xff\xff"), &end].concat(),
        b"D\x7f\xff\xff\xff\0\x02".to_vec(),
        frame(b'G', b"\0\0\0"),
        begin.clone(),
    ] {
        let started = Instant::now();
        let shown = said.escape_ascii().to_string();
        let mut client = Client::connect(proxy.address());
        let attempt = std::thread::spawn(move || {
            client.send(&startup(&ME));
            answer(&mut client, "visitor", "right", None)
        });
        let mut peer = upstream.accept();
        peer.send(&crate::harness::script::greeting());
        // The packet, and the question behind it.
        let mut seen = Vec::new();
        while !seen.ends_with(b"S\0\0\0\x04") {
            let mut bytes = [0; 4096];
            let count = std::io::Read::read(&mut peer.stream, &mut bytes).unwrap();
            assert!(count > 0, "it asks nothing");
            seen.extend_from_slice(&bytes[..count]);
        }
        peer.send(&said);
        drop(peer);
        let told = attempt.join().unwrap();
        let last = told.last().unwrap();
        assert_eq!(last.tag, b'E', "{shown}: {told:?}");
        assert!(
            ["08006", "28P01"].contains(&&*last.sqlstate()),
            "{shown}: {told:?}"
        );
        assert!(started.elapsed() < PATIENCE / 2, "{shown}");
    }
}
