//! A process that takes over from another one: nobody is refused, nobody is cut off.

use crate::console::{cell, enter, found};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames::{self, tags};
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Where processes meet, and a Unix socket that clients connect to.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a process that takes over from the one before, if there is one, and waits until it
    /// has.
    fn start(&self, listen: &str) -> Process {
        let takeover = self.path("takeover");
        let number = |path: &Path| std::fs::metadata(path).map(|it| it.ino()).ok();
        let before = number(&takeover);
        let socket = self.path(".s.PGSQL.1");
        let listen = format!("{listen},{}", socket.display());
        let settings = [
            ("listen", &*listen),
            ("takeover_socket", takeover.to_str().unwrap()),
            ("drain_timeout_s", "60"),
            ("admin_users", "boss"),
        ];
        let process = Process::start(&server::address(), &settings);
        let deadline = Instant::now() + PATIENCE;
        while number(&takeover).is_none() || number(&takeover) == before {
            assert!(Instant::now() < deadline, "it does not take over");
            std::thread::sleep(Duration::from_millis(2));
        }
        process
    }

    /// How many processes before the one that serves are told of at its console.
    fn told_before(&self) -> usize {
        let mut console = enter(self.path(".s.PGSQL.1").to_str().unwrap(), "boss");
        let all = found(&mut console, "MODE", "key", "before");
        let told = |row: &Vec<_>| cell(row, "value").starts_with("process ");
        assert!(all.iter().all(told), "{all:?}");
        all.len()
    }
}

/// Has all threads stop, also when a test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a process says that was to end, and does.
fn farewell(process: &mut Process) -> String {
    let (status, _, text) = process.ended();
    assert!(status.success(), "{status}\n{text}");
    text
}

#[test]
fn those_who_are_there_stay_with_their_process_and_can_be_cancelled() {
    let place = Place::new();
    let mut first = place.start("127.0.0.1:0");
    let mut old = Client::login(&first.address, "postgres");
    old.run("BEGIN");
    let mut second = place.start("127.0.0.1:0");
    assert_eq!(
        second.address, first.address,
        "it has been given the socket"
    );
    // Those who come now are the second's, whose counters know nothing of the others.
    let mut new = Client::login(&second.address, "postgres");
    let mut third = place.start("127.0.0.1:0");
    let mut newest = Client::login(&third.address, "postgres");
    for client in [&mut old, &mut new, &mut newest] {
        cancel_by(&third, client);
    }
    // Nobody's key.
    let mut request = Client::connect(&third.address);
    request.send(&frames::cancel(1, b"nobody's"));
    assert_eq!(request.rest(), []);
    assert_eq!(place.told_before(), 2);
    old.run("ROLLBACK");
    drop(old);
    let text = farewell(&mut first);
    assert_eq!(place.told_before(), 1);
    assert!(text.contains("another process has taken over"), "{text}");
    assert!(
        text.contains("clients=1"),
        "who is still here is counted: {text}"
    );
    // Told to stop, the second does not wait any longer.
    second.signal(Signal::TERM);
    assert_eq!(tags(&new.rest()), "E");
    farewell(&mut second);
    assert_eq!(place.told_before(), 0);
    newest.run("SELECT 1");
    Client::login(&third.address, "postgres").run("SELECT 1");
    drop(newest);
    third.signal(Signal::TERM);
    farewell(&mut third);
    assert!(!place.path("takeover").exists());
    assert!(!place.path(".s.PGSQL.1").exists());
}

/// Has a client's statement cancelled by who comes to this process.
fn cancel_by(process: &Process, client: &mut Client) {
    client.send(&frames::query("SELECT pg_sleep(60)"));
    // It may come before the query has begun.
    std::thread::sleep(Duration::from_millis(200));
    let mut request = Client::connect(&process.address);
    request.send(&frames::cancel(client.key.0, &client.key.1));
    assert_eq!(request.rest(), []);
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E').unwrap();
    assert_eq!(error.sqlstate(), "57014");
}

#[test]
fn cancel_requests_come_to_those_whose_next_processes_have_ended() {
    let place = Place::new();
    let mut first = place.start("127.0.0.1:0");
    let mut old = Client::login(&first.address, "postgres");
    // Those between have nobody, so they end when they are taken over from; all but one, whom
    // somebody is with.
    let mut second = place.start("127.0.0.1:0");
    let mut third = place.start("127.0.0.1:0");
    farewell(&mut second);
    cancel_by(&third, &mut old);
    let mut middle = Client::login(&third.address, "postgres");
    let mut fourth = place.start("127.0.0.1:0");
    let mut fifth = place.start("127.0.0.1:0");
    farewell(&mut fourth);
    cancel_by(&fifth, &mut old);
    cancel_by(&fifth, &mut middle);
    drop(middle);
    farewell(&mut third);
    cancel_by(&fifth, &mut old);
    drop(old);
    farewell(&mut first);
    // Nobody is left who would know it.
    let mut newest = Client::login(&fifth.address, "postgres");
    let mut request = Client::connect(&fifth.address);
    request.send(&frames::cancel(1, b"nobody's"));
    assert_eq!(request.rest(), []);
    cancel_by(&fifth, &mut newest);
    drop(newest);
    let last = place.start("127.0.0.1:0");
    farewell(&mut fifth);
    Client::login(&last.address, "postgres").run("SELECT 1");
}

#[test]
fn clients_that_reconnect_all_the_time_do_not_notice() {
    let place = Place::new();
    let (stop, count) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut process = place.start("127.0.0.1:0");
    let addresses = [process.address.clone(), process.address.clone()];
    let socket = place.path(".s.PGSQL.1");
    let mut ended = Vec::new();
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        for address in &addresses {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut client = Client::login(address, "postgres");
                    client.run("SELECT oid FROM pg_class WHERE relname = 'x'");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let stream = UnixStream::connect(&socket).unwrap();
                let mut client = Client::over(stream);
                client.send(&frames::startup(&[
                    ("user", "postgres"),
                    ("database", "postgres"),
                ]));
                client.logged_in();
                client.run("SELECT 1");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..8 {
            let before = count.load(Ordering::Relaxed);
            let next = place.start("127.0.0.1:0");
            ended.push(std::mem::replace(&mut process, next));
            let deadline = Instant::now() + PATIENCE;
            while count.load(Ordering::Relaxed) < before + 20 {
                assert!(Instant::now() < deadline, "nobody is served");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    for process in &mut ended {
        farewell(process);
    }
}

#[test]
fn who_does_not_get_ready_takes_nothing_over() {
    let place = Place::new();
    let mut process = place.start("127.0.0.1:0");
    let path = place.path("takeover");
    let mode = std::fs::metadata(&path).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let say = |text: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text).unwrap();
        stream
    };
    let mut answer = Vec::new();
    // None of these is answered.
    for text in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"pgautoprep takeover 2\n",
        b"pgautoprep takeover 1\nready\n",
        b"\n",
        b"\0\xff\n",
    ] {
        say(text).read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"", "{}", String::from_utf8_lossy(text));
    }
    // This is, and then breaks off, or says something else.
    for text in [&b""[..], b"rea", b"steady\n"] {
        let mut stream = say(b"pgautoprep takeover 1\n");
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).unwrap();
        }
        stream.write_all(text).unwrap();
    }
    // So does one that cannot listen where it is to.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = place.path(".s.PGSQL.1");
    let listen = [
        "127.0.0.1:0",
        socket.to_str().unwrap(),
        &taken.local_addr().unwrap().to_string(),
    ];
    let mode = || std::fs::metadata(&socket).unwrap().mode() & 0o777;
    let before = mode();
    let settings = [
        "--unix-socket-mode",
        "0600",
        "--listen",
        &listen.join(","),
        "--takeover-socket",
        path.to_str().unwrap(),
    ];
    let mut failing = std::process::Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
    let failing = failing.args(["serve", "--upstream", &server::address()]);
    let output = failing.args(settings).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("cannot listen on"), "{text}");
    Client::login(&process.address, "postgres").run("SELECT 1");
    // Its file is there, and as it was.
    drop(UnixStream::connect(&socket).unwrap());
    assert!(before != 0o600 && mode() == before, "{before:o}");
    let mut next = place.start("127.0.0.1:0");
    farewell(&mut process);
    Client::login(&next.address, "postgres").run("SELECT 1");
    next.signal(Signal::TERM);
    farewell(&mut next);
}

#[test]
fn a_process_that_ends_listens_to_nobody_and_leaves_its_place() {
    let place = Place::new();
    let mut process = place.start("127.0.0.1:0");
    let mut client = Client::login(&process.address, "postgres");
    client.run("BEGIN");
    process.signal(Signal::TERM);
    let deadline = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(&process.address).is_ok() {
        assert!(Instant::now() < deadline, "it still listens");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Whoever comes next need not ask it.
    let next = place.start(&process.address);
    Client::login(&next.address, "postgres").run("SELECT 1");
    client.run("COMMIT");
    farewell(&mut process);
}
