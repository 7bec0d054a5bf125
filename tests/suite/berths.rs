//! Idle connections that were promised to a client which is still on its way: the server has to
//! say first that it lets it in.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::Proxy;
use crate::harness::server;
use std::io::copy;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// A way to the test server on which new connections may be held for a while.
struct Gate {
    address: String,
    /// For how many milliseconds.
    holds: Arc<AtomicU64>,
}

impl Gate {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let holds = Arc::new(AtomicU64::new(0));
        let held = Arc::clone(&holds);
        spawn(move || {
            for near in listener.incoming() {
                let (near, held) = (near.unwrap(), Arc::clone(&held));
                spawn(move || {
                    sleep(Duration::from_millis(held.load(Ordering::SeqCst)));
                    relay(near, TcpStream::connect(server::address()).unwrap());
                });
            }
        });
        Self { address, holds }
    }

    fn hold(&self, millis: u64) {
        self.holds.store(millis, Ordering::SeqCst);
    }
}

/// Copies what either says to the other. Ends both as soon as one has.
fn relay(near: TcpStream, far: TcpStream) {
    let ways = [
        (near.try_clone().unwrap(), far.try_clone().unwrap()),
        (far, near),
    ];
    for (mut from, mut to) in ways {
        spawn(move || {
            // Either may be gone already.
            let _ = copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}

/// A pool that keeps one connection, behind a gate.
struct Scene {
    gate: Gate,
    proxy: Proxy,
    database: String,
    watcher: Client,
    /// Which process serves the connection.
    kept: String,
}

impl Scene {
    /// A client has come and gone, long enough ago for the server to be asked again whether it lets
    /// one in.
    fn new(changes: &[(&str, &str)]) -> Self {
        let gate = Gate::new();
        let usual = [("min_pool_size", "1"), ("catalog_watch_ms", "60000")];
        let settings: Vec<_> = usual.iter().chain(changes).copied().collect();
        let proxy = Proxy::with(&gate.address, &settings);
        let database = server::database("CREATE TABLE t (id int)");
        let mut client = Client::login(proxy.address(), &database);
        client.run("SELECT count(*) FROM t");
        leave(client);
        sleep(Duration::from_millis(700));
        let mut watcher = Client::login(&server::address(), "postgres");
        let kept = await_one(&mut watcher, &database);
        Self {
            gate,
            proxy,
            database,
            watcher,
            kept,
        }
    }
}

/// Waits until one process serves the database. Returns which.
fn await_one(watcher: &mut Client, database: &str) -> String {
    let text = format!("SELECT pid FROM pg_stat_activity WHERE datname = '{database}'");
    let started = Instant::now();
    loop {
        let frames = watcher.query(&text);
        let rows = frames.iter().filter(|frame| frame.tag == b'D').count();
        if rows == 1 {
            return watcher.value(&text);
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{rows} are kept"
        );
        sleep(Duration::from_millis(20));
    }
}

fn leave(mut client: Client) {
    client.send(&frames::frame(b'X', b""));
    assert!(client.rest().is_empty());
}

#[test]
fn what_was_promised_is_not_closed_for_being_idle() {
    for mode in ["session", "auto"] {
        let scene = Scene::new(&[("server_idle_timeout_s", "1"), ("pool_mode", mode)]);
        scene.gate.hold(1500);
        let mut client = Client::login(scene.proxy.address(), &scene.database);
        assert_eq!(
            client.value("SELECT pg_backend_pid()"),
            scene.kept,
            "{mode}"
        );
    }
}

#[test]
fn who_loses_what_was_promised_waits_for_a_place() {
    let mut scene = Scene::new(&[("pool_mode", "auto"), ("default_pool_size", "1")]);
    scene.gate.hold(1500);
    let (address, name) = (scene.proxy.address().to_owned(), scene.database.clone());
    let late = spawn(move || {
        let mut late = Client::login(&address, &name);
        late.value("SELECT pg_backend_pid()");
        late
    });
    sleep(Duration::from_millis(300));
    // It is promised the connection, and the proxy asks the server whether it may have it.
    scene.gate.hold(0);
    let watcher = &mut scene.watcher;
    watcher.run(&format!("SELECT pg_terminate_backend({})", scene.kept));
    let mut other = Client::login(scene.proxy.address(), &scene.database);
    other.run("BEGIN");
    other.value("SELECT pg_backend_pid()");
    // What the proxy asks by takes no place, and is gone by then.
    sleep(Duration::from_millis(1500));
    let database = &scene.database;
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    assert_eq!(watcher.value(&count), "1");
    assert!(!late.is_finished());
    other.run("COMMIT");
    leave(other);
    let begun = Instant::now();
    leave(late.join().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(5));
}
