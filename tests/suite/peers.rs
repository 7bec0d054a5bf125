//! Several instances behind one address: a cancel request comes to any of them.

use crate::console;
use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Computes for much longer than any test.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 2000000000)";

/// The code of a cancel request that an instance passes on.
const PASSED_ON: u32 = 1234 << 16 | 0x7067;

/// Instances that have each other, themselves among them, and these.
struct Instances {
    directory: TempDir,
    all: Vec<Proxy>,
}

impl Instances {
    fn start(count: usize, others: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..count).map(|at| path(&directory, at)).collect();
        let mut peers: Vec<_> = paths.iter().map(String::as_str).collect();
        peers.extend(others);
        let peers = peers.join(",");
        let start = |own: &String| {
            let listen = format!("127.0.0.1:0,{own}");
            let settings = [
                ("listen", &*listen),
                ("peers", &peers),
                ("connect_timeout_s", "1"),
                ("admin_users", "postgres"),
            ];
            Proxy::with(&server::address(), &settings)
        };
        let all = paths.iter().map(start).collect();
        Self { directory, all }
    }

    /// How many cancel requests have come to each.
    fn cancels(&self) -> Vec<u64> {
        let all = self.all.iter();
        all.map(|proxy| proxy.summary().count(Counter::Cancels))
            .collect()
    }

    /// Sends bytes to one of them and waits until it hangs up.
    fn tell(&self, at: usize, bytes: &[u8]) {
        let mut stream = UnixStream::connect(path(&self.directory, at)).unwrap();
        let limit = Some(Duration::from_secs(10));
        stream.set_read_timeout(limit).unwrap();
        stream.write_all(bytes).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    }
}

fn path(directory: &TempDir, at: usize) -> String {
    let path = directory.path().join(format!("instance-{at}"));
    path.to_str().unwrap().to_owned()
}

fn passed_on(pid: u32, key: &[u8]) -> Vec<u8> {
    let body = [&PASSED_ON.to_be_bytes()[..], &pid.to_be_bytes(), key].concat();
    frames::untagged(&body)
}

/// Has a client of this instance ask for something long.
fn begins(proxy: &Proxy) -> Client {
    let mut client = Client::login(proxy.address(), "postgres");
    client.run("SELECT 1");
    asks(&mut client);
    client
}

/// Asks for something long, and waits until the server has met it: a request that comes before may
/// end nothing, as directly; but from then on each does.
fn asks(client: &mut Client) {
    client.send(&frames::query(LONG));
    let mut direct = Client::login(&server::address(), "postgres");
    let met = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND state = 'active' \
         AND query LIKE 'SELECT count(*) FROM generate_series%'",
        client.key.0
    );
    let started = Instant::now();
    while direct.value(&met) != "1" {
        assert!(started.elapsed() < Duration::from_secs(20), "never met");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_cancelled(client: &mut Client) {
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E');
    assert_eq!(error.unwrap().sqlstate(), "57014");
}

#[test]
fn a_cancel_request_reaches_the_instance_that_has_the_client() {
    let instances = Instances::start(3, &[]);
    let mut client = begins(&instances.all[0]);
    let (pid, key) = client.key.clone();
    instances.tell(2, &frames::cancel(pid, &key));
    is_cancelled(&mut client);
    // All are told once, also the one that was asked.
    assert_eq!(instances.cancels(), [1, 1, 2]);
    // Its own are no one else's business.
    asks(&mut client);
    instances.tell(0, &frames::cancel(pid, &key));
    is_cancelled(&mut client);
    assert_eq!(instances.cancels(), [2, 1, 2]);
}

#[test]
fn the_console_shows_who_is_told() {
    let instances = Instances::start(2, &["localhost:6432", "[::1]:6433"]);
    let own = |at| path(&instances.directory, at);
    let mut console = console::enter(&own(0), "postgres");
    let shown = console::rows(&console.query("SHOW PEERS"));
    let shown: Vec<_> = shown
        .iter()
        .map(|row| ["peer_id", "host", "port"].map(|column| console::cell(row, column)))
        .collect();
    let expected = [
        ["1", &own(0), ""],
        ["2", &own(1), ""],
        ["3", "localhost", "6432"],
        ["4", "::1", "6433"],
    ];
    assert_eq!(shown, expected);
}

#[test]
fn nobodys_cancel_request_goes_round_once() {
    let instances = Instances::start(3, &[]);
    instances.tell(0, &frames::cancel(7, b"none"));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(instances.cancels(), [2, 1, 1]);
    // Whoever says that it was passed on has it passed on to nobody, and cancels what it has the
    // key of.
    instances.tell(1, &passed_on(7, b"none"));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(instances.cancels(), [2, 2, 1]);
    let mut client = begins(&instances.all[1]);
    let (pid, key) = client.key.clone();
    instances.tell(1, &passed_on(pid, &key));
    is_cancelled(&mut client);
}

#[test]
fn a_cancel_request_that_is_passed_on_lets_nobody_in_beyond_the_bound() {
    let directory = tempfile::tempdir().unwrap();
    let silent = path(&directory, 0);
    // Accepts nobody.
    let _listener = UnixListener::bind(&silent).unwrap();
    let settings = [
        ("peers", &*silent),
        ("connect_timeout_s", "3"),
        ("max_clients", "2"),
    ];
    let proxy = Proxy::with(&server::address(), &settings);
    let mut client = Client::login(proxy.address(), "postgres");
    let mut request = Client::connect(proxy.address());
    request.send(&frames::cancel(7, b"none"));
    std::thread::sleep(Duration::from_millis(200));
    let mut more = Client::connect(proxy.address());
    more.send(&frames::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert_eq!(more.next().unwrap().sqlstate(), "53300");
    assert!(request.rest().is_empty());
    client.run("SELECT 1");
}

#[test]
fn peers_that_are_not_there_or_do_not_answer_keep_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (gone, silent) = (path(&directory, 0), path(&directory, 1));
    // Accepts nobody.
    let _listener = UnixListener::bind(&silent).unwrap();
    let instances = Instances::start(2, &[&gone, &silent, "nobody.invalid:1", "127.0.0.1:1"]);
    let mut client = begins(&instances.all[0]);
    let (pid, key) = client.key.clone();
    let started = Instant::now();
    instances.tell(1, &frames::cancel(pid, &key));
    is_cancelled(&mut client);
    assert!(started.elapsed() < Duration::from_secs(5));
    // Many at once wait for each other, and not for ever.
    std::thread::scope(|scope| {
        for number in 0..40 {
            let instances = &instances;
            scope.spawn(move || instances.tell(1, &frames::cancel(number, b"none")));
        }
    });
    assert!(started.elapsed() < Duration::from_secs(10));
    client.run("SELECT 1");
}

/// Two processes on one port, each with a socket of its own by which the other finds it.
fn on_one_port(directory: &TempDir, port: &str, at: usize) -> Process {
    let own = path(directory, at);
    let peers = [path(directory, 0), path(directory, 1)].join(",");
    let listen = format!("127.0.0.1:{port},{own}");
    let settings = [
        ("listen", &*listen),
        ("peers", &peers),
        ("so_reuseport", "on"),
        ("admin_users", "postgres"),
        ("drain_timeout_s", "60"),
    ];
    Process::start(&server::address(), &settings)
}

#[test]
fn two_processes_share_a_port_and_cancel_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = on_one_port(&directory, "0", 0);
    let (_, port) = first.address.rsplit_once(':').unwrap();
    let mut second = on_one_port(&directory, port, 1);
    assert_eq!(first.address, second.address);
    let mut clients: Vec<_> = (0..24)
        .map(|_| Client::login(&first.address, "postgres"))
        .collect();
    clients.iter_mut().for_each(|client| client.run("SELECT 1"));
    // The system spreads them; that all come to one has a chance of 2 to the power of -23.
    let served = |at| {
        let mut console = console::enter(&path(&directory, at), "postgres");
        console::found(&mut console, "CLIENTS", "addr", "127.0.0.1").len()
    };
    let counts = [served(0), served(1)];
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), 24);
    // Each request comes to whichever the system chooses.
    for client in &mut clients[..8] {
        client.send(&frames::query(LONG));
        // One that comes before the server has begun cancels nothing.
        let mut tries = 0;
        while !client.hears_within(Duration::from_millis(500)) {
            tries += 1;
            assert!(tries < 20, "no request reaches it");
            let mut request = Client::connect(&first.address);
            request.send(&frames::cancel(client.key.0, &client.key.1));
            assert!(request.rest().is_empty());
        }
        is_cancelled(client);
    }
    // One that ends leaves the port to the other at once: nobody is turned away.
    let mut kept = Client::login(&path(&directory, 0), "postgres");
    kept.run("BEGIN");
    first.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..20 {
        Client::login(&second.address, "postgres").run("SELECT 1");
    }
    kept.run("COMMIT");
    assert!(first.ended().0.success());
    drop(clients);
    second.signal(Signal::TERM);
    assert!(second.ended().0.success());
}

#[test]
fn a_port_is_shared_only_if_both_want_it() {
    let directory = tempfile::tempdir().unwrap();
    let first = on_one_port(&directory, "0", 0);
    let mut second = std::process::Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
    second.args(["--upstream", &server::address(), "--listen", &first.address]);
    let output = second.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(said.contains("cannot listen on"), "{said}");
}
