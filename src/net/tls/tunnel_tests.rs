//! Two tunnels that speak to each other over a line that takes and gives as little as it likes.

use super::clients::provider;
use super::tunnel::{Transport, Tunnel};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::Poll;

/// One direction of a line.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

/// What one side has of a line. It takes and gives at most `most` bytes at once, and now and then
/// nothing.
struct End<'a> {
    from: &'a mut Pipe,
    to: &'a mut Pipe,
    most: usize,
    dice: &'a mut u64,
    reads: usize,
}

impl End<'_> {
    /// Whether it does nothing this time.
    fn rests(&mut self) -> bool {
        *self.dice ^= *self.dice << 13;
        *self.dice ^= *self.dice >> 7;
        *self.dice ^= *self.dice << 17;
        self.dice.is_multiple_of(3)
    }
}

impl Transport for End<'_> {
    fn receive(&mut self, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        self.reads += 1;
        if self.from.bytes.is_empty() && self.from.is_closed {
            return Poll::Ready(Ok(0));
        }
        if self.from.bytes.is_empty() || self.rests() {
            return Poll::Pending;
        }
        let count = self.from.bytes.len().min(bytes.len()).min(self.most);
        for (place, byte) in bytes.iter_mut().zip(self.from.bytes.drain(..count)) {
            *place = byte;
        }
        Poll::Ready(Ok(count))
    }

    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        const ROOM: usize = 50_000;
        let count = (ROOM.saturating_sub(self.to.bytes.len())).min(bytes.len());
        let count = count.min(self.most);
        if count == 0 || self.rests() {
            return Poll::Pending;
        }
        self.to.bytes.extend(&bytes[..count]);
        Poll::Ready(Ok(count))
    }
}

/// A client and a server, and the line between them.
struct Both {
    tunnels: [Tunnel; 2],
    pipes: [Pipe; 2],
    most: usize,
    dice: u64,
}

impl Both {
    fn new(version: &'static SupportedProtocolVersion, most: usize) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::new(client), name).unwrap();
        let server = ServerConnection::new(Arc::new(server)).unwrap();
        Self {
            tunnels: [Connection::Client(client), Connection::Server(server)].map(Tunnel::new),
            pipes: [Pipe::default(), Pipe::default()],
            most,
            dice: 7,
        }
    }

    /// One side, and its end of the line.
    fn side(&mut self, index: usize) -> (&mut Tunnel, End<'_>) {
        let [first, second] = &mut self.pipes;
        let (from, to) = if index == 0 {
            (second, first)
        } else {
            (first, second)
        };
        let end = End {
            from,
            to,
            most: self.most,
            dice: &mut self.dice,
            reads: 0,
        };
        (&mut self.tunnels[index], end)
    }

    fn shaken(version: &'static SupportedProtocolVersion, most: usize) -> Self {
        let mut both = Self::new(version, most);
        let mut done = [false; 2];
        for _ in 0..200_000 {
            for (index, done) in done.iter_mut().enumerate() {
                let (tunnel, mut end) = both.side(index);
                if !*done && let Poll::Ready(outcome) = tunnel.handshake(&mut end, &mut vec![]) {
                    outcome.unwrap();
                    *done = true;
                }
            }
            if done == [true; 2] {
                return both;
            }
        }
        panic!("no handshake");
    }

    /// What one side reads, at most once; it looks at its line at most once.
    fn read(&mut self, index: usize, bytes: &mut [u8]) -> Option<usize> {
        let (tunnel, mut end) = self.side(index);
        let outcome = tunnel.read(&mut end, bytes);
        assert!(end.reads <= 1);
        match outcome {
            Poll::Ready(count) => count.unwrap(),
            Poll::Pending => None,
        }
    }
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

#[test]
fn version_and_cipher_have_their_usual_names() {
    for (version, [name, suite]) in [
        (&TLS13, ["TLSv1.3", "TLS_AES_256_GCM_SHA384"]),
        (
            &TLS12,
            ["TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
        ),
    ] {
        let both = Both::shaken(version, usize::MAX);
        for tunnel in &both.tunnels {
            assert_eq!(tunnel.describe(), format!("{name} {suite}"));
        }
    }
    let [client, _] = Both::new(&TLS13, 1).tunnels;
    assert_eq!(client.describe(), "TLS");
}

#[test]
fn both_ways_at_once_every_byte_arrives_in_order() {
    let text: Vec<u8> = (0..400_000_u32)
        .map(|number| (number * 7 / 3) as u8)
        .collect();
    for version in VERSIONS {
        for (most, room) in [
            (usize::MAX, 64 * 1024),
            (1000, 64 * 1024),
            (40_000, 1024),
            (7, 70_000),
        ] {
            let text = if most < 10 { &text[..20_000] } else { &text };
            let mut both = Both::shaken(version, most);
            let mut sent = [0; 2];
            let mut seen: [Vec<u8>; 2] = Default::default();
            let mut bytes = vec![0; room];
            while seen.iter().any(|seen| seen.len() < text.len()) {
                for index in [0, 1] {
                    let (tunnel, mut end) = both.side(index);
                    let rest = &text[sent[index]..];
                    if rest.is_empty() {
                        let _ = tunnel.flush(&mut end);
                    } else if let Poll::Ready(count) = tunnel.write(&mut end, rest) {
                        sent[index] += count.unwrap();
                    }
                    assert!(tunnel.unsent() < 40_000, "a piece and what surrounds it");
                    if let Some(count) = both.read(index, &mut bytes) {
                        seen[index].extend(&bytes[..count]);
                    }
                }
            }
            assert!(seen.iter().all(|seen| seen == text), "{most} {room}");
        }
    }
}

#[test]
fn what_is_decrypted_and_not_taken_is_there_without_the_line() {
    let mut both = Both::shaken(&TLS13, usize::MAX);
    let (tunnel, mut end) = both.side(0);
    assert!(tunnel.write(&mut end, &[7; 10_000]).is_ready());
    while tunnel.flush(&mut end).is_pending() {}
    let mut bytes = [0; 4096];
    let mut seen = 0;
    while seen == 0 {
        seen = both.read(1, &mut bytes).unwrap_or(0);
    }
    while both.tunnels[1].may_read() {
        let (tunnel, mut end) = both.side(1);
        let Poll::Ready(Ok(Some(count))) = tunnel.read(&mut end, &mut bytes) else {
            // The rest of the record is still on the line.
            break;
        };
        assert_eq!(end.reads, 0, "it was there");
        seen += count;
    }
    while seen < 10_000 {
        seen += both.read(1, &mut bytes).unwrap_or(0);
    }
    assert_eq!(seen, 10_000);
    assert!(!both.tunnels[1].may_read());
}

#[test]
fn a_farewell_comes_behind_the_last_bytes_and_is_told_once() {
    for version in VERSIONS {
        let mut both = Both::shaken(version, usize::MAX);
        let (tunnel, mut end) = both.side(0);
        assert!(tunnel.write(&mut end, b"the last").is_ready());
        while tunnel.close(&mut end).is_pending() {}
        let mut bytes = [0; 1000];
        let mut seen: Vec<u8> = Vec::new();
        loop {
            match both.read(1, &mut bytes) {
                Some(0) => break,
                Some(count) => seen.extend(&bytes[..count]),
                None => {}
            }
        }
        assert_eq!(seen, b"the last");
        assert!(both.tunnels[1].is_ending() && !both.tunnels[1].may_read());
        // The other direction still works.
        let (tunnel, mut end) = both.side(1);
        assert!(tunnel.write(&mut end, b"answer").is_ready());
        while tunnel.flush(&mut end).is_pending() {}
        let mut count = 0;
        while count == 0 {
            count = both.read(0, &mut bytes).unwrap_or(0);
        }
        assert_eq!(&bytes[..count], b"answer");
    }
}

#[test]
fn an_end_without_a_farewell_is_an_end() {
    let mut both = Both::shaken(&TLS13, usize::MAX);
    both.pipes[0].is_closed = true;
    let mut bytes = [0; 1000];
    while both.read(1, &mut bytes) != Some(0) {}
    assert!(both.tunnels[1].is_ending());
}

#[test]
fn new_keys_are_answered_though_nobody_writes() {
    let mut both = Both::shaken(&TLS13, usize::MAX);
    let mut bytes = [0; 4096];
    for _ in 0..5 {
        both.tunnels[0].refresh();
        let (tunnel, mut end) = both.side(0);
        assert!(tunnel.write(&mut end, b"with new keys").is_ready());
        while tunnel.flush(&mut end).is_pending() {}
        while both.read(1, &mut bytes) != Some(13) {}
        let (tunnel, mut end) = both.side(1);
        assert!(tunnel.write(&mut end, b"so have I").is_ready());
        while tunnel.flush(&mut end).is_pending() {}
        while both.read(0, &mut bytes) != Some(9) {}
    }
}

#[test]
fn bytes_that_were_changed_are_an_error_and_an_alert_goes_out() {
    for version in VERSIONS {
        let mut both = Both::shaken(version, usize::MAX);
        let (tunnel, mut end) = both.side(0);
        assert!(tunnel.write(&mut end, b"text").is_ready());
        while tunnel.flush(&mut end).is_pending() {}
        *both.pipes[0].bytes.back_mut().unwrap() ^= 1;
        let before = both.pipes[1].bytes.len();
        let mut bytes = [0; 1000];
        let error = loop {
            let (tunnel, mut end) = both.side(1);
            if let Poll::Ready(outcome) = tunnel.read(&mut end, &mut bytes) {
                break outcome.unwrap_err();
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let (tunnel, mut end) = both.side(1);
        while tunnel.flush(&mut end).is_pending() {}
        assert!(both.pipes[1].bytes.len() > before);
    }
}
