//! Streams of many frames of all sizes, cut by the network wherever it likes: every byte arrives,
//! in order, in both directions, however slowly it is read.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::upstream::Upstream;
use std::io::{Read, Write};
use std::time::Duration;

/// Bytes of a stream: many reads, more than the proxy and the kernel hold together.
const STREAM: usize = 12 << 20;

/// Bytes written at once: prime, so that frames are cut everywhere, in headers too.
const PIECE: usize = 40_009;

/// Frames of type `tag` with bodies of all sizes, most of them small.
pub(crate) fn stream(tag: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0_usize.. {
        let size = match number % 5000 {
            0 => 300_000,
            1..100 => 700,
            rest => rest % 23,
        };
        out.extend(frames::frame(tag, &vec![number as u8; size]));
        if out.len() > STREAM {
            break;
        }
    }
    out
}

/// Carries `bytes` from one end to the other, in pieces, with pauses at the reader's end.
pub(crate) fn carry(mut from: impl Write + Send, mut to: impl Read, bytes: &[u8]) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for piece in bytes.chunks(PIECE) {
                from.write_all(piece).unwrap();
            }
        });
        let mut seen = vec![0; bytes.len()];
        for (number, part) in seen.chunks_mut(1 << 20).enumerate() {
            if number % 4 == 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            to.read_exact(part).unwrap();
        }
        let same = seen.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        assert_eq!(same, bytes.len(), "the bytes from here on are others");
    });
}

#[test]
fn rows_and_copy_data_reach_the_client_whole() {
    let upstream = Upstream::listen();
    let proxy = Proxy::start(&upstream.address());
    let (mut client, mut peer) = upstream.login(&proxy);
    for (sql, begin, tag) in [
        ("SHOW rows", frames::description(&["a"]), b'D'),
        ("COPY t TO STDOUT", frames::frame(b'H', b"\0\0\0"), b'd'),
    ] {
        client.send(&frames::query(sql));
        peer.expect(&frames::query(sql));
        let end = [frames::complete("SHOW"), frames::ready(b'I')].concat();
        let all = [begin, stream(tag), end].concat();
        carry(&peer.stream, &client.socket, &all);
        // What the proxy knows is still where the server is.
        still_in_step(&mut client, &mut peer.stream);
    }
}

#[test]
fn copy_data_and_long_queries_reach_the_server_whole() {
    let upstream = Upstream::listen();
    let proxy = Proxy::start(&upstream.address());
    let (mut client, mut peer) = upstream.login(&proxy);
    let copy = frames::query("COPY t FROM STDIN");
    client.send(&copy);
    peer.expect(&copy);
    let ready = frames::frame(b'G', b"\0\0\0");
    peer.send(&ready);
    client.expect(&ready);
    let all = [stream(b'd'), frames::frame(b'c', b"")].concat();
    carry(&client.socket, &peer.stream, &all);
    let end = [frames::complete("COPY 1"), frames::ready(b'I')].concat();
    peer.send(&end);
    client.expect(&end);
    still_in_step(&mut client, &mut peer.stream);
    let long = frames::query(&"x".repeat(STREAM));
    carry(&client.socket, &peer.stream, &long);
    peer.send(&end);
    client.expect(&end);
    still_in_step(&mut client, &mut peer.stream);
}

fn still_in_step(client: &mut Client, mut server: impl Read + Write) {
    let query = frames::query("SHOW something");
    client.send(&query);
    let mut seen = vec![0; query.len()];
    server.read_exact(&mut seen).unwrap();
    assert_eq!(seen, query);
    let answer = [frames::complete("SHOW"), frames::ready(b'I')].concat();
    server.write_all(&answer).unwrap();
    client.expect(&answer);
}
