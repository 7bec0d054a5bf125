//! The port for operators: what it tells, and that nobody can put it out of order.

use crate::console::enter;
use crate::harness::client::Client;
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::{Resource, Rlimit, Signal};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A proxy whose port for operators is a Unix socket.
pub(crate) struct Room {
    pub(crate) proxy: Process,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Room {
    fn new(upstream: &str) -> Self {
        Self::with(upstream, &[])
    }

    pub(crate) fn with(upstream: &str, more: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("http");
        let path_text = path.to_str().unwrap();
        let changes = [("http_listen", path_text), ("drain_timeout_s", "60")];
        let changes = [&changes[..], more].concat();
        Self {
            proxy: Process::start(upstream, &changes),
            path,
            _directory: directory,
        }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        stream.set_write_timeout(limit).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(&mut self.connect(), path, "")
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

/// Sends a request and reads to the end of the connection.
fn ask(stream: &mut (impl Read + Write), path: &str, headers: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read(stream)
}

fn read(stream: &mut impl Read) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

#[test]
fn what_was_counted_is_told_in_the_format_that_is_asked_for() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let proxy = Process::start(&server::address(), &[("http_listen", &address)]);
    let mut client = Client::login(&proxy.address, "postgres");
    for id in 0..7 {
        client.run(&format!(
            "SELECT relname FROM pg_class WHERE relname = 'x{id}'"
        ));
    }
    let get = |headers| {
        ask(
            &mut TcpStream::connect(&address).unwrap(),
            "/metrics",
            headers,
        )
    };
    let text = get("");
    assert_eq!(text.status, 200);
    assert!(
        text.head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        text.head
    );
    assert!(
        text.body.contains("\npgautoprep_queries_total 7\n"),
        "{}",
        text.body
    );
    assert!(text.body.contains("\npgautoprep_clients 1\n"));
    let timed: u64 = text
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("pgautoprep_statement_seconds_count"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum();
    assert_eq!(timed, 7, "{}", text.body);
    assert!(!text.body.contains("pg_class"), "no texts");
    let open = get("Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(
        open.head
            .contains("content-type: application/openmetrics-text; version=1.0.0")
    );
    assert!(open.body.ends_with("\n# EOF\n"));
    let status = ask(&mut TcpStream::connect(&address).unwrap(), "/status", "");
    assert!(status.body.contains("\"received\": 7"), "{}", status.body);
    assert!(status.head.contains("content-type: application/json"));
}

#[test]
fn a_proxy_without_its_server_is_alive_and_not_ready() {
    let room = Room::new(&server::address());
    assert_eq!(
        (room.get("/healthz").status, room.get("/readyz").status),
        (200, 200)
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = free.local_addr().unwrap().to_string();
    drop(free);
    let room = Room::new(&nowhere);
    assert_eq!(room.get("/healthz").status, 200);
    let ready = room.get("/readyz");
    assert_eq!(ready.status, 503);
    assert!(
        ready.body.starts_with("the server cannot be reached: "),
        "{}",
        ready.body
    );
}

#[test]
fn one_of_several_servers_is_enough_to_be_ready() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = free.local_addr().unwrap().to_string();
    drop(free);
    for (second, status) in [(server::address(), 200), ("127.0.0.1:1".to_owned(), 503)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p.toml");
        let tables =
            format!("[databases.a]\nupstream = '{nowhere}'\n[databases.b]\nupstream = '{second}'");
        std::fs::write(&path, tables).unwrap();
        let room = Room::with(&nowhere, &[("config", path.to_str().unwrap())]);
        assert_eq!(room.get("/readyz").status, status);
    }
}

#[test]
fn a_proxy_that_drains_says_so_until_its_end() {
    let room = Room::new(&server::address());
    let mut client = Client::login(&room.proxy.address, "postgres");
    client.send(&crate::harness::frames::query("SELECT pg_sleep(20)"));
    while !room
        .get("/metrics")
        .body
        .contains("\npgautoprep_queries_total 1\n")
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(room.get("/readyz").status, 200);
    room.proxy.signal(Signal::TERM);
    let started = Instant::now();
    let ready = loop {
        let ready = room.get("/readyz");
        if ready.status != 200 || started.elapsed() > Duration::from_secs(2) {
            break ready;
        }
    };
    assert_eq!(
        (ready.status, &*ready.body),
        (503, "draining: no new clients are taken\n")
    );
    assert!(
        room.get("/metrics")
            .body
            .contains("\npgautoprep_draining 1\n")
    );
    assert_eq!(room.get("/healthz").status, 200);
}

#[test]
fn a_proxy_that_is_paused_is_not_ready_until_it_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let listen = directory.path().join("socket");
    let settings = [
        ("admin_users", "boss"),
        ("listen", listen.to_str().unwrap()),
    ];
    let room = Room::with(&server::address(), &settings);
    let mut console = enter(&room.proxy.address, "boss");
    assert_eq!(room.get("/readyz").status, 200);
    console.run("PAUSE");
    let ready = room.get("/readyz");
    let told = "paused: clients are held back until RESUME\n";
    assert_eq!((ready.status, &*ready.body), (503, told));
    assert_eq!(room.get("/healthz").status, 200);
    console.run("RESUME");
    assert_eq!(room.get("/readyz").status, 200);
}

#[test]
fn what_is_no_request_is_refused() {
    let room = Room::new(&server::address());
    assert_eq!(room.get("/").status, 200);
    assert_eq!(room.get("/nothing").status, 404);
    let send = |bytes: &[u8]| {
        let mut stream = room.connect();
        // The proxy may have hung up before it has read all.
        let _ = stream.write_all(bytes);
        read(&mut stream)
    };
    let post = send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(post.status, 405);
    assert!(post.head.contains("allow: get, head"), "{}", post.head);
    assert_eq!(send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").status, 400);
    let mut stream = room.connect();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
        .unwrap();
    let mut sent = 0;
    let megabyte = loop {
        match stream.write_all(&[b'a'; 4096]) {
            Ok(()) if sent < 1 << 20 => sent += 4096,
            outcome => break outcome,
        }
    };
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    assert!(
        megabyte.is_err() || read.is_ok(),
        "nobody reads a megabyte of head"
    );
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    assert!(sent < 1 << 20 || !answer.is_empty());
}

#[test]
fn who_says_nothing_keeps_nobody_out() {
    let room = Room::new(&server::address());
    let mut client = Client::login(&room.proxy.address, "postgres");
    let idle: Vec<_> = (0..90)
        .map(|number| {
            let mut stream = room.connect();
            if number % 2 == 0 {
                stream.write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
            }
            stream
        })
        .collect();
    let started = Instant::now();
    assert_eq!(room.get("/healthz").status, 200);
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "it has waited for others"
    );
    client.run("SELECT 1");
    // Each of them is cut off, long before its connection would have ended otherwise.
    for mut stream in idle {
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_thousand_connections_and_those_who_are_slow_keep_nobody_waiting() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    rustix::process::setrlimit(Resource::Nofile, raised).unwrap();
    let room = Room::new(&server::address());
    let mut client = Client::login(&room.proxy.address, "postgres");
    // Who never reads what it has asked for, as often as is taken.
    let mut deaf = room.connect();
    deaf.set_nonblocking(true).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    while deaf.write_all(&request).is_ok() {}
    // Who takes for ever to ask.
    let mut slow = room.connect();
    let mut letters = b"GET /metrics HTTP/1.1\r\nHost: ".iter().cycle();
    let idle: Vec<_> = (0..1000).map(|_| room.connect()).collect();
    let started = Instant::now();
    let mut cut_off = false;
    while started.elapsed() < Duration::from_secs(7) && !cut_off {
        let letter = [*letters.next().unwrap()];
        cut_off = slow.write_all(&letter).is_err();
        let asked = Instant::now();
        assert_eq!(room.get("/healthz").status, 200);
        assert_eq!(room.get("/metrics").status, 200);
        client.run("SELECT 1");
        assert!(
            asked.elapsed() < Duration::from_secs(3),
            "{:?}",
            asked.elapsed()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(cut_off, "one who takes for ever to ask is listened to");
    drop(idle);
    assert_eq!(room.get("/readyz").status, 200);
}

/// A proxy whose port for operators is at an address, and that.
fn by_address(more: &[(&str, &str)]) -> (Process, String) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let settings = [&[("http_listen", &*address)][..], more].concat();
    (Process::start(&server::address(), &settings), address)
}

fn ask_at(address: &str, path: &str, host: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    read(&mut stream)
}

#[test]
fn the_page_and_what_it_asks_for_are_shown_with_a_policy_that_lets_nothing_else_in() {
    let (proxy, address) = by_address(&[("prepare_threshold", "1")]);
    let mut client = Client::login(&proxy.address, "postgres");
    for id in 0..40 {
        client.run(&format!(
            "SELECT relname FROM pg_class WHERE oid = {id} AND relname = 'secret{id}'"
        ));
        client.run("SHOW work_mem");
    }
    let page = ask_at(&address, "/", &address);
    assert_eq!(page.status, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert!(page.body.starts_with("<!DOCTYPE html>") && page.body.ends_with("</html>\n"));
    let told = ask_at(&address, "/page.json", "localhost");
    assert!(told.head.contains("content-type: application/json"));
    let json: serde_json::Value = serde_json::from_str(&told.body).unwrap();
    assert_eq!(json["totals"]["queries"], 80, "{}", told.body);
    assert_eq!(json["peers"][0]["database"], "postgres");
    let shapes = json["shapes"].as_array().unwrap();
    let select = shapes.iter().find(|shape| {
        shape["text"] == "SELECT relname FROM pg_class WHERE oid = ? AND relname = ?"
    });
    let select = select.unwrap_or_else(|| panic!("{}", told.body));
    assert!(
        shapes
            .iter()
            .any(|shape| shape["text"] == "SHOW work_mem" && shape["reason"] == "not_preparable")
    );
    assert!(!told.body.contains("secret"));
    let path = format!("/page.json?shape={}", select["shape"]);
    let story = ask_at(&address, &path, "[::1]:80");
    let story: serde_json::Value = serde_json::from_str(&story.body).unwrap();
    assert_eq!(
        (&story["shape"], &story["text"]),
        (&select["shape"], &select["text"])
    );
    assert_eq!(story["literals"], 2);
    for path in [
        "/page.json?shape=999999",
        "/page.json?shape=x",
        "/page.json?x",
    ] {
        assert_eq!(ask_at(&address, path, &address).status, 404, "{path}");
    }
}

#[test]
fn the_page_is_for_whom_the_setting_names() {
    let (_proxy, address) = by_address(&[]);
    for path in ["/", "/page.json", "/page.json?shape=1"] {
        let refused = ask_at(&address, path, "evil.example");
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.body.contains("http_page"), "{}", refused.body);
    }
    assert_eq!(ask_at(&address, "/metrics", "evil.example").status, 200);
    let (_proxy, address) = by_address(&[("http_page", "on")]);
    assert_eq!(ask_at(&address, "/page.json", "a.name").status, 200);
    let (_proxy, address) = by_address(&[("http_page", "off")]);
    assert_eq!(ask_at(&address, "/page.json", "localhost").status, 403);
    let room = Room::with(&server::address(), &[("http_page", "off")]);
    assert_eq!(room.get("/").status, 403);
}
