//! Settings that change while the proxy runs: each does what it says from then on, and what cannot
//! be is refused and changes nothing.

use crate::console::{Place, cell, found};
use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::proxy::{Process, Proxy};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::reason::Reason;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the console shows of a setting.
fn in_force(console: &mut Client, key: &str) -> String {
    let rows = found(console, "CONFIG", "key", key);
    assert_eq!(cell(&rows[0], "changeable"), "yes", "{key}");
    cell(&rows[0], "value").to_owned()
}

/// What the console answers to an order that it refuses.
fn refused(console: &mut Client, order: &str) -> String {
    let answer = console.query(order);
    assert_eq!(frames::tags(&answer), "EZ", "{order}: {answer:?}");
    answer[0].field(b'M').unwrap()
}

/// What a login is told first.
fn attempt(address: &str) -> Client {
    let mut client = Client::connect(address);
    let startup = [("user", "postgres"), ("database", "postgres")];
    client.send(&frames::startup(&startup));
    client
}

#[test]
fn max_clients_says_how_many_there_may_be() {
    let place = Place::new();
    let proxy = place.proxy();
    let mut console = place.enter("boss");
    console.run("SET max_clients = 1");
    assert_eq!(in_force(&mut console, "max_clients"), "1");
    let mut first = Client::login(proxy.address(), "postgres");
    let said = attempt(proxy.address()).rest();
    assert_eq!(
        (said[0].tag, said[0].sqlstate()),
        (b'E', "53300".to_owned())
    );
    console.run("SET max_clients = 2");
    Client::login(proxy.address(), "postgres").run("SELECT 1");
    first.run("SELECT 1");
}

#[test]
fn max_clients_goes_no_further_than_the_limit_of_open_files() {
    let place = Place::new();
    let settings = place.settings(&[("max_clients", "20")]);
    let limit = "ulimit -n 400";
    let _proxy = Process::start_under(limit, &server::address(), &settings);
    let mut console = place.enter("boss");
    let said = refused(&mut console, "SET max_clients = 5000");
    assert!(said.starts_with("max_clients: expected at most "), "{said}");
    assert!(said.ends_with(", for so many files may be open"), "{said}");
    assert_eq!(in_force(&mut console, "max_clients"), "20");
    let most = said.split(' ').nth(4).unwrap().trim_end_matches(',');
    console.run(&format!("SET max_clients = {most}"));
    assert_eq!(in_force(&mut console, "max_clients"), most);
}

/// A file that is good at the start is good later: where nobody says how many, they are fewer.
#[test]
fn max_clients_by_default_is_lowered_by_the_limit_of_open_files_later_as_at_the_start() {
    let place = Place::new();
    let file = place.file("config.toml");
    let write = |text: &str| {
        let text = format!("admin_users = 'boss'\n{text}");
        std::fs::write(&file, text).unwrap();
    };
    write("max_clients = 20");
    let settings = [("listen", &*place.path), ("config", file.to_str().unwrap())];
    let _proxy = Process::start_under("ulimit -n 400", &server::address(), &settings);
    let mut console = place.enter("boss");
    assert_eq!(in_force(&mut console, "max_clients"), "20");
    write("max_clients = 5000");
    assert!(refused(&mut console, "RELOAD").ends_with(", for so many files may be open"));
    write("");
    console.run("RELOAD");
    let free = found(&mut console, "LISTS", "list", "free_clients").remove(0);
    let free: u32 = cell(&free, "items").parse().unwrap();
    assert!((21..400).contains(&free), "{free}");
}

#[test]
fn peers_are_told_of_cancel_requests_from_then_on() {
    let (place, other) = (Place::new(), Place::new());
    let address = server::address();
    let (_asked, has) = (
        Proxy::with(&address, &place.settings(&[])),
        Proxy::with(&address, &other.settings(&[])),
    );
    let mut client = Client::login(has.address(), "postgres");
    client.run("SELECT 1");
    client.send(&frames::query("SELECT pg_sleep(30)"));
    let (pid, key) = client.key.clone();
    let cancel = || {
        let mut request = Client::connect(&place.path);
        request.send(&frames::cancel(pid, &key));
        assert!(request.rest().is_empty());
    };
    cancel();
    assert!(
        !client.hears_within(Duration::from_millis(200)),
        "nobody knows"
    );
    let mut console = place.enter("boss");
    console.run(&format!("SET peers = '{}'", other.path));
    assert_eq!(found(&mut console, "PEERS", "host", &other.path).len(), 1);
    cancel();
    let answer = client.until_ready();
    let error = answer.iter().find(|frame| frame.tag == b'E');
    assert_eq!(error.unwrap().sqlstate(), "57014");
}

#[test]
fn log_format_is_that_of_the_lines_that_follow() {
    let place = Place::new();
    let settings = place.settings(&[("log_connections", "on")]);
    let mut process = Process::start(&server::address(), &settings);
    let mut console = place.enter("boss");
    let login = || Client::login(&place.path, "postgres").run("SELECT 1");
    login();
    console.run("SET log_format = json");
    login();
    console.run("SET log_format = text");
    login();
    let said = refused(&mut console, "SET log_format = xml");
    assert!(said.contains("expected text or json"), "{said}");
    assert_eq!(in_force(&mut console, "log_format"), "text");
    drop(console);
    process.signal(Signal::TERM);
    let (_, _, text) = process.ended();
    let logins: Vec<_> = text
        .lines()
        .filter(|line| line.contains("login attempt"))
        .collect();
    let is_json = |line: &&str| line.starts_with("{\"timestamp\"");
    let looks: Vec<bool> = logins.iter().map(is_json).collect();
    assert_eq!(looks, [false, true, false], "{logins:?}");
    let line: serde_json::Value = serde_json::from_str(logins[1]).unwrap();
    assert_eq!(line["database"], "postgres");
    assert!(logins[2].contains("database=\"postgres\""), "{}", logins[2]);
}

/// Whoever reads lines of JSON finds nothing else among them, at the end neither.
#[test]
fn summaries_are_lines_of_json_among_such() {
    let place = Place::new();
    let settings = place.settings(&[("log_format", "json"), ("log_level", "info")]);
    let mut process = Process::start(&server::address(), &settings);
    Client::login(&place.path, "postgres").run("SELECT 1");
    process.signal(Signal::USR1);
    std::thread::sleep(Duration::from_millis(200));
    process.signal(Signal::TERM);
    let (_, _, text) = process.ended();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let summaries = lines.iter().filter(|line| line["message"] == "summary");
    let summaries: Vec<_> = summaries.collect();
    assert_eq!(summaries.len(), 2, "{text}");
    let said = summaries[0]["summary"].as_str().unwrap();
    assert!(said.contains("passed through"), "{said}");
}

#[test]
fn http_page_is_shown_to_whom_it_says_then() {
    let place = Place::new();
    let http = place.file("http");
    let settings = place.settings(&[("http_listen", http.to_str().unwrap())]);
    let _proxy = Proxy::with(&server::address(), &settings);
    let status = || {
        let mut stream = UnixStream::connect(&http).unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    let mut console = place.enter("boss");
    assert_eq!(status(), "200");
    console.run("SET http_page = off");
    assert_eq!(status(), "403");
    console.run("SET http_page = on");
    assert_eq!(status(), "200");
}

/// Has statements of two shapes run on one new server connection, and returns how often there was
/// no room for one of them, or only by closing the other.
fn evicted(proxy: &Proxy) -> u64 {
    let crowded = || {
        let summary = proxy.summary();
        summary.count(Counter::StatementsEvicted) + summary.passed(Reason::CacheFull)
    };
    let before = crowded();
    let mut client = Client::login(proxy.address(), "postgres");
    for id in 0..20 {
        client.run(&format!("SELECT relname FROM pg_class WHERE oid = {id}"));
        client.run(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = {id}"
        ));
    }
    crowded() - before
}

#[test]
fn what_a_server_connection_may_hold_is_that_of_when_it_is_opened() {
    for (key, few) in [("max_statements", "1"), ("statement_memory", "65536")] {
        let place = Place::new();
        let settings = place.settings(&[("prepare_threshold", "1"), ("trials", "off")]);
        let proxy = Proxy::with(&server::address(), &settings);
        assert_eq!(evicted(&proxy), 0, "{key}");
        let mut console = place.enter("boss");
        let usual = in_force(&mut console, key);
        console.run(&format!("SET {key} = {few}"));
        let without = evicted(&proxy);
        match key {
            "max_statements" => assert!(without > 5, "{key}: {without}"),
            // Room for no more than it takes is kept to by whatever is there.
            _ => assert_eq!(in_force(&mut console, key), few),
        }
        console.run(&format!("SET {key} = {usual}"));
        assert_eq!(evicted(&proxy), 0, "{key}");
    }
}

#[test]
fn buffer_bytes_bound_what_is_held_of_a_client_that_does_not_read() {
    let place = Place::new();
    let proxy = Proxy::with(&server::address(), &place.settings(&[]));
    const SENT: u64 = 14 << 20;
    // What the proxy takes from the server though its client reads nothing.
    let taken = || {
        let before = proxy.summary().count(Counter::BytesFromUpstream);
        let mut client = Client::login(&place.path, "postgres");
        client.send(&frames::query(&format!(
            "SELECT repeat('x', 1024) FROM generate_series(1, {})",
            SENT / 1024
        )));
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut last = u64::MAX;
        loop {
            let now = proxy.summary().count(Counter::BytesFromUpstream) - before;
            if now >= SENT || now == last && now > 10_000 || Instant::now() > deadline {
                return now;
            }
            last = now;
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    let usual = taken();
    assert!(usual < SENT / 2, "{usual}");
    let mut console = place.enter("boss");
    console.run("SET buffer_bytes = 16777216");
    let more = taken();
    assert!(more >= SENT, "{more}, and {usual} before");
    let said = refused(&mut console, "SET buffer_bytes = 5");
    assert!(
        said.contains("expected a whole number from 16384"),
        "{said}"
    );
    assert_eq!(in_force(&mut console, "buffer_bytes"), "16777216");
}

/// The program, with a file that may be written anew.
struct Running {
    child: std::process::Child,
    place: Place,
}

impl Running {
    fn start() -> Self {
        let place = Place::new();
        write(&place, "");
        let mut child = Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
            .args(["serve", "--config"])
            .arg(place.file("config.toml"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Self { child, place }
    }

    /// What `check --against` says of the file, asked as this user: behind the settings, or on
    /// standard error if it fails.
    fn check(&self, user: &str) -> Result<Vec<String>, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_pgautoprep"))
            .args(["check", "--against", &self.place.path, "--config"])
            .arg(self.place.file("config.toml"))
            .env("PGUSER", user)
            .env_remove("PGPASSWORD")
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        let told = String::from_utf8(output.stdout).unwrap();
        let is_meant = |line: &&str| {
            ["# RELOAD", "# only", "# the proxy that"]
                .iter()
                .any(|it| line.starts_with(it))
        };
        Ok(told.lines().filter(is_meant).map(str::to_owned).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Writes the file, with these settings behind those that each has.
fn write(place: &Place, more: &str) {
    let upstream = server::address();
    let text = format!(
        "listen = [\"127.0.0.1:0\", \"{}\"]\nupstream = \"{upstream}\"\n\
         admin_users = \"boss\"\nworkers = 1\n{more}",
        place.path
    );
    std::fs::write(place.file("config.toml"), text).unwrap();
}

/// Settings of the file that RELOAD changes, and what each is then.
const CHANGED: [(&str, &str, &str); 8] = [
    ("max_clients", "77", "77"),
    ("peers", "[\"localhost:7\"]", "localhost:7"),
    ("log_format", "\"json\"", "json"),
    ("http_page", "\"off\"", "off"),
    ("buffer_bytes", "65536", "65536"),
    ("max_statements", "9", "9"),
    ("statement_memory", "7000000", "7000000"),
    ("log_taints", "true", "on"),
];

#[test]
fn a_file_changes_all_of_them_or_none() {
    let running = Running::start();
    let mut console = running.place.enter("boss");
    let lines = CHANGED.map(|(key, text, _)| format!("{key} = {text}\n"));
    let changes = lines.concat();
    let shown = |console: &mut Client| CHANGED.map(|(key, ..)| in_force(console, key));
    let before = shown(&mut console);
    write(
        &running.place,
        &format!("{changes}login_timeout_s = \"soon\"\n"),
    );
    let file = running.place.file("config.toml");
    let said = refused(&mut console, "RELOAD");
    let expected = "13:19: login_timeout_s: expected a whole number, found \"soon\"";
    assert_eq!(said, format!("{}:{expected}", file.display()));
    assert_eq!(shown(&mut console), before, "half of it is in force");
    // It would lead to itself.
    let path = &running.place.path;
    let own = format!("listen = \"{path}\"\nupstream = \"{path}\"\n");
    std::fs::write(&file, format!("{own}admin_users = \"boss\"\n")).unwrap();
    let said = refused(&mut console, "RELOAD");
    assert!(said.contains(&running.place.path), "{said}");
    assert_eq!(shown(&mut console), before, "half of it is in force");
    write(&running.place, &changes);
    let answer = console.query("RELOAD");
    assert_eq!(frames::tags(&answer), "CZ", "{answer:?}");
    assert_eq!(
        shown(&mut console),
        CHANGED.map(|(_, _, value)| value.to_owned())
    );
    write(
        &running.place,
        &format!("{changes}unix_socket_mode = \"0700\"\n"),
    );
    let answer = console.query("RELOAD");
    let notice = answer.iter().find(|frame| frame.tag == b'N').unwrap();
    assert!(
        notice.field(b'M').unwrap().ends_with(" unix_socket_mode"),
        "{notice:?}"
    );
}

#[test]
fn check_tells_what_a_reload_would_change_in_the_proxy_that_runs() {
    let running = Running::start();
    let same = "# the proxy that runs has the same settings";
    assert_eq!(running.check("boss").unwrap(), [same]);
    write(
        &running.place,
        "max_clients = 77\nunix_socket_mode = \"0700\"\n",
    );
    let expected = [
        "# RELOAD changes max_clients: \"10000\" becomes \"77\"",
        "# only a restart changes unix_socket_mode: \"0777\" becomes \"0700\"",
    ];
    assert_eq!(running.check("boss").unwrap(), expected);
    running.place.enter("boss").query("RELOAD");
    assert_eq!(running.check("boss").unwrap(), expected[1..]);
    let said = running.check("nobody").unwrap_err();
    let proxy = format!("the proxy at {}", running.place.path);
    assert!(
        said.contains(&proxy) && said.contains("42501: permission denied: neither"),
        "{said}"
    );
    write(&running.place, "max_clients = \"none\"\n");
    let said = running.check("boss").unwrap_err();
    let expected = "5:15: max_clients: expected a whole number, found \"none\"";
    let file = running.place.file("config.toml");
    assert!(
        said.contains(&format!("{}:{expected}", file.display())),
        "{said}"
    );
}
