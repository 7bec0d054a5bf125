//! A pooler stands before the server and hands each transaction to another of its connections, as
//! PgBouncer does with `pool_mode = transaction`.

use crate::harness::client::Client;
use crate::harness::frames::{self, Frame};
use crate::harness::proxy::Proxy;
use crate::harness::server;
use pgautoprep::metrics::Counter;
use socket2::Socket;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v int); \
    INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i; ANALYZE;";

/// A pooler with two connections. It lives as long as the test program.
struct Pooler {
    address: String,
    shared: Arc<Shared>,
}

/// What its clients have in common.
struct Shared {
    servers: [Mutex<Client>; 2],
    turn: AtomicU32,
    /// All texts that were sent as a Query.
    texts: Mutex<Vec<String>>,
}

impl Pooler {
    fn start(database: &str) -> Self {
        let servers = [(); 2].map(|()| Mutex::new(Client::login(&server::address(), database)));
        let shared = Arc::new(Shared {
            servers,
            turn: AtomicU32::new(0),
            texts: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || own.serve(client.unwrap()));
            }
        });
        Self { address, shared }
    }

    fn was_told(&self, word: &str) -> bool {
        let texts = self.shared.texts.lock().unwrap();
        texts.iter().any(|text| text.contains(word))
    }
}

impl Shared {
    fn serve(&self, mut socket: TcpStream) {
        let mut length = [0; 4];
        if socket.read_exact(&mut length).is_err() {
            return;
        }
        let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
        socket.read_exact(&mut startup).unwrap();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut welcome = frames::frame(b'R', &[0; 4]);
        for (name, value) in &self.servers[0].lock().unwrap().parameters {
            welcome.extend(frames::parameter(name, value));
        }
        let key = [&(turn << 20 | 0xabcd).to_be_bytes()[..], b"none"].concat();
        welcome.extend(frames::frame(b'K', &key));
        welcome.extend(frames::ready(b'I'));
        socket.write_all(&welcome).unwrap();
        let mut client = Client::over(Socket::from(socket));
        let mut held: Option<MutexGuard<'_, Client>> = None;
        while let Some(batch) = batch(&mut client) {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
            let mut server = held
                .take()
                .unwrap_or_else(|| self.servers[turn % 2].lock().unwrap());
            for frame in &batch {
                if frame.tag == b'Q' {
                    let text = String::from_utf8_lossy(&frame.body).into_owned();
                    self.texts.lock().unwrap().push(text);
                }
                server.send(&frame.bytes());
            }
            let answer = server.until_ready();
            client.send(&answer.iter().flat_map(Frame::bytes).collect::<Vec<_>>());
            held = (answer.last().unwrap().body != b"I").then_some(server);
        }
    }
}

/// What a client sends up to the next point at which it is answered; `None` when it leaves.
fn batch(client: &mut Client) -> Option<Vec<Frame>> {
    let mut batch = Vec::new();
    loop {
        let frame = client.next().filter(|frame| frame.tag != b'X')?;
        let is_last = matches!(frame.tag, b'Q' | b'S');
        batch.push(frame);
        if is_last {
            return Some(batch);
        }
    }
}

/// Reads and writes, alone and in transactions.
fn work(client: &mut Client, id: usize) {
    assert_eq!(
        client.value(&format!("SELECT {id} + 1")),
        (id + 1).to_string()
    );
    let read = format!("SELECT id FROM t WHERE id = {id}");
    assert_eq!(client.value(&read), id.to_string());
    client.queries(&["BEGIN", &format!("UPDATE t SET v = v + 1 WHERE id = {id}")]);
    let read = format!("SELECT id, v FROM t WHERE v > 0 AND id = {id}");
    assert_eq!(client.value(&read), id.to_string());
    client.run("COMMIT");
}

#[test]
fn behind_a_pooler_nothing_is_converted_and_nothing_goes_wrong() {
    let database = server::database(SETUP);
    let pooler = Pooler::start(&database);
    let proxy = Proxy::with(&pooler.address, &[("prepare_threshold", "1")]);
    let mut clients = [(); 3].map(|()| Client::login(proxy.address(), &database));
    for id in 1..=20 {
        clients.iter_mut().for_each(|client| work(client, id));
    }
    drop(clients);
    work(&mut Client::login(proxy.address(), &database), 21);
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::Converted), 0, "{summary}");
    assert_eq!(summary.count(Counter::StatementsPrepared), 0, "{summary}");
}

#[test]
fn behind_a_pooler_nothing_is_taken_back() {
    let database = server::database(SETUP);
    let pooler = Pooler::start(&database);
    let changes = [("prepare_threshold", "1"), ("catalog_watch_ms", "1000")];
    let proxy = Proxy::with(&pooler.address, &changes);
    for _ in 0..4 {
        let mut client = Client::login(proxy.address(), &database);
        client.run("SET work_mem = '5MB'");
        client.send(&frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
    }
    proxy.await_connections(0);
    assert!(pooler.was_told("SET work_mem"));
    assert!(!pooler.was_told("RESET"));
}
