//! Peers that do not read: the proxy holds a bounded number of bytes for them, and nobody waits for
//! ever.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Process;
use crate::harness::server;
use crate::harness::upstream::Upstream;
use std::io::{Read, Write};
use std::time::Duration;

/// What a proxy may need beyond its start, in KiB: buffers of a connection, and room for the
/// allocator.
const MEMORY_KIB: u64 = 8 * 1024;

#[test]
fn a_client_that_does_not_read_costs_a_buffer() {
    let proxy = Process::start(&server::address(), &[]);
    let mut client = Client::login(&proxy.address, "postgres");
    client.run("SELECT 1");
    let before = proxy.peak_kib();
    let series = "SELECT repeat('x', 1000) FROM generate_series(1, 100000) i";
    for sql in [format!("{series} WHERE i > 5"), series.to_owned()] {
        let mut client = Client::login(&proxy.address, "postgres");
        client.send(&frames::query(&sql));
        std::thread::sleep(Duration::from_millis(700));
        let grown = proxy.peak_kib() - before;
        assert!(
            grown < MEMORY_KIB,
            "{grown} KiB for a client that does not read"
        );
        // Read after all: everything is there.
        let rows = client
            .until_ready()
            .iter()
            .filter(|frame| frame.tag == b'D')
            .count();
        assert!(rows >= 99_995, "{rows}");
    }
    let grown = proxy.peak_kib() - before;
    assert!(grown < MEMORY_KIB, "{grown} KiB");
}

#[test]
fn a_server_that_does_not_read_costs_a_buffer() {
    let upstream = Upstream::listen();
    let proxy = Process::start(&upstream.address(), &[]);
    let (mut client, peer) = upstream.login_at(&proxy.address);
    let before = proxy.peak_kib();
    client
        .socket
        .set_write_timeout(Some(Duration::from_millis(400)))
        .unwrap();
    let data = frames::frame(b'd', &[b'x'; 8000]);
    let mut sent = 0;
    while client
        .socket
        .write(&data)
        .is_ok_and(|count| count == data.len())
    {
        sent += data.len();
        assert!(sent < 256 << 20, "a quarter of a gigabyte went somewhere");
    }
    let grown = proxy.peak_kib() - before;
    assert!(
        grown < MEMORY_KIB,
        "{grown} KiB for a server that does not read"
    );
    drop(peer);
}

#[test]
fn both_sides_may_talk_at_once() {
    const FRAMES: usize = 4000;
    let upstream = Upstream::listen();
    let proxy = Process::start(&upstream.address(), &[]);
    let (client, peer) = upstream.login_at(&proxy.address);
    let data = frames::frame(b'd', &[b'x'; 8000]);
    let total = data.len() * FRAMES;
    let flood = |mut to: Box<dyn Write + Send>| {
        let data = data.clone();
        std::thread::spawn(move || (0..FRAMES).for_each(|_| to.write_all(&data).unwrap()))
    };
    let writers = [
        flood(Box::new(client.socket.try_clone().unwrap())),
        flood(Box::new(peer.stream.try_clone().unwrap())),
    ];
    // Nobody reads until both are stuck.
    std::thread::sleep(Duration::from_millis(300));
    let drain = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 * 1024];
            let mut count = 0;
            while count < total {
                count += from.read(&mut bytes).unwrap();
            }
        })
    };
    let readers = [
        drain(Box::new(client.socket.try_clone().unwrap())),
        drain(Box::new(peer.stream.try_clone().unwrap())),
    ];
    for thread in writers.into_iter().chain(readers) {
        thread.join().unwrap();
    }
}
