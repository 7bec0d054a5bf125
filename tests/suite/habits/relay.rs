//! A relay between proxy and server that counts what the server is asked to do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{JoinHandle, spawn};

/// A relay to one server. It lives as long as the test program.
pub(super) struct Relay {
    pub(super) address: String,
    requests: Arc<AtomicU64>,
}

impl Relay {
    /// Starts a relay to the server at `upstream`.
    pub(super) fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(AtomicU64::new(0));
        let (count, upstream) = (Arc::clone(&requests), upstream.to_owned());
        spawn(move || {
            for client in listener.incoming() {
                let server = TcpStream::connect(&upstream).unwrap();
                carry(client.unwrap(), server, &count);
            }
        });
        Self { address, requests }
    }

    /// What the server had to answer with ReadyForQuery so far, logins not counted.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }
}

/// Carries one connection in both directions, each in a thread of its own.
fn carry(client: TcpStream, server: TcpStream, requests: &Arc<AtomicU64>) {
    let ends = [&client, &server].map(|stream| {
        stream.set_nodelay(true).unwrap();
        stream.try_clone().unwrap()
    });
    let [client_too, server_too] = ends;
    let (count, mut cutter) = (Arc::clone(requests), Cutter::default());
    let up = move |bytes: &[u8]| {
        count.fetch_add(cutter.requests(bytes), Relaxed);
    };
    copy(client, server, up);
    copy(server_too, client_too, |_| ());
}

/// Copies until one of the two has ended, and shows what it copies.
fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    mut shown: impl FnMut(&[u8]) + Send + 'static,
) -> JoinHandle<()> {
    spawn(move || {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            shown(&bytes[..count]);
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The other end may have closed it already.
        let _ = to.shutdown(std::net::Shutdown::Both);
    })
}

/// Finds where messages begin.
#[derive(Default)]
struct Cutter {
    /// The StartupMessage, which alone has no type byte, has begun.
    greeted: bool,
    header: Vec<u8>,
    /// Bytes of the body still to come.
    body: usize,
}

impl Cutter {
    /// How many Query and Sync messages begin in these bytes.
    fn requests(&mut self, mut bytes: &[u8]) -> u64 {
        let mut found = 0;
        loop {
            let skipped = self.body.min(bytes.len());
            self.body -= skipped;
            let Some((first, rest)) = bytes[skipped..].split_first() else {
                return found;
            };
            if self.header.is_empty() && !self.greeted {
                self.greeted = true;
                self.header.push(0);
            }
            self.header.push(*first);
            bytes = rest;
            if let [tag, length @ ..] = &self.header[..]
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                found += u64::from(matches!(tag, b'Q' | b'S'));
                self.body = u32::from_be_bytes(length) as usize - 4;
                self.header.clear();
            }
        }
    }
}
