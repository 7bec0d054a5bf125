//! The addresses that are listened on as a file has them that is read again: others from then on,
//! all of them or none, and nobody who is there loses anything.

use crate::console::{cell, enter, found};
use crate::harness::client::{Client, PATIENCE};
use crate::harness::frames;
use crate::harness::proxy::Process;
use crate::harness::server;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A port that nobody listens on.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The program with a file of its own, which says where it listens.
struct Program {
    child: Child,
    directory: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts it; besides these it listens on a socket for the console.
    fn start(listen: &[&str], more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        let child = Command::new("true").spawn().unwrap();
        let mut program = Self { child, directory };
        program.child.wait().unwrap();
        program.write(listen, more);
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_string_lossy().starts_with("PGAUTOPREP_")) {
            command.env_remove(name);
        }
        command.arg("serve").arg("--config").arg(file);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        program.child = command.spawn().unwrap();
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(program.socket("socket")).is_err() {
            assert!(started.elapsed() < PATIENCE, "it does not start");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        program
    }

    fn socket(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn write(&self, listen: &[&str], more: &str) {
        let own = self.socket("socket");
        let all = [listen, &[&*own]].concat();
        let text = format!(
            "upstream = '{}'\nadmin_users = 'boss'\nlisten = {all:?}\n{more}\n",
            server::address()
        );
        std::fs::write(self.directory.path().join("config.toml"), text).unwrap();
    }

    fn console(&self) -> Client {
        enter(&self.socket("socket"), "boss")
    }
}

fn works(client: &mut Client) {
    assert_eq!(client.value("SELECT 1 + 1"), "2");
}

/// Nobody listens there, or soon nobody does.
fn is_closed(address: &str) {
    let started = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(started.elapsed() < PATIENCE, "{address}");
    }
}

fn answers_http(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
}

#[test]
fn other_addresses_are_listened_on_from_then_on() {
    let [one, two, http, next] = [port(), port(), port(), port()];
    let [first, second] = [one, two].map(|port| format!("127.0.0.1:{port}"));
    let [http, next] = [http, next].map(|port| format!("127.0.0.1:{port}"));
    let program = Program::start(&[&first], "");
    let mut console = program.console();
    let mut before = Client::login(&first, "postgres");
    // One more, by a path, too, and a port for operators.
    let path = program.socket("other");
    program.write(
        &[&first, &second, &path],
        &format!("http_listen = '{http}'"),
    );
    console.run("RELOAD");
    let shown = found(&mut console, "CONFIG", "key", "listen");
    let expected = [&*first, &second, &path, &program.socket("socket")].join(", ");
    assert_eq!(cell(&shown[0], "value"), expected);
    assert_eq!(cell(&shown[0], "changeable"), "yes");
    let mut by_second = Client::login(&second, "postgres");
    works(&mut by_second);
    works(&mut Client::login(&path, "postgres"));
    answers_http(&http);
    // What cannot be had changes nothing, and neither does anything beside it.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let new = program.socket("new");
    for bad in [&*taken, "192.0.2.1:1", "/none/socket", "nosuch.invalid:1"] {
        program.write(&[&new, bad], "max_clients = 77");
        let answer = console.query("RELOAD");
        assert_eq!(frames::tags(&answer), "EZ", "{answer:?}");
        let told = answer[0].field(b'M').unwrap();
        assert!(
            told.starts_with(&format!("cannot listen on {bad}: ")),
            "{told}"
        );
        assert!(!std::path::Path::new(&new).exists(), "{bad}");
        let shown = found(&mut console, "CONFIG", "key", "listen");
        assert_eq!(cell(&shown[0], "value"), expected);
        let shown = found(&mut console, "CONFIG", "key", "max_clients");
        assert_ne!(cell(&shown[0], "value"), "77");
        works(&mut Client::login(&second, "postgres"));
        answers_http(&http);
    }
    // Some go: who came by them stays, and the file of a socket goes as well.
    program.write(&[&first], &format!("http_listen = '{next}'"));
    console.run("RELOAD");
    is_closed(&second);
    is_closed(&http);
    answers_http(&next);
    let started = Instant::now();
    while std::path::Path::new(&path).exists() {
        assert!(started.elapsed() < PATIENCE);
    }
    works(&mut by_second);
    works(&mut before);
    works(&mut Client::login(&first, "postgres"));
    // All interfaces in the place of one, with the same port, and back.
    for listen in [format!("0.0.0.0:{one}"), first.clone()] {
        program.write(&[&listen], "");
        console.run("RELOAD");
        let shown = found(&mut console, "CONFIG", "key", "listen");
        assert!(cell(&shown[0], "value").starts_with(&listen));
        // Which of the two has it does not matter, but one is always there.
        for _ in 0..20 {
            drop(TcpStream::connect(&first).unwrap());
        }
        works(&mut Client::login(&first, "postgres"));
        // Nobody else has the port who does not ask to share it.
        let other = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let other = other.unwrap();
        other.set_reuse_address(true).unwrap();
        let address: std::net::SocketAddr = first.parse().unwrap();
        assert!(other.bind(&address.into()).is_err(), "{listen}");
    }
    works(&mut before);
    console.run("SHUTDOWN");
}

/// The next process has what its configuration says.
#[test]
fn addresses_that_are_to_be_taken_over_change_with_the_next_process_only() {
    let [one, two] = [port(), port()].map(|port| format!("127.0.0.1:{port}"));
    let directory = tempfile::tempdir().unwrap();
    let takeover = directory.path().join("takeover");
    let more = format!("takeover_socket = '{}'", takeover.display());
    let program = Program::start(&[&one], &more);
    let mut console = program.console();
    program.write(&[&two], &more);
    let answer = console.query("RELOAD");
    assert_eq!(frames::tags(&answer), "NCZ", "{answer:?}");
    assert!(
        answer[0].field(b'M').unwrap().ends_with(" listen"),
        "{answer:?}"
    );
    works(&mut Client::login(&one, "postgres"));
    is_closed(&two);
    // So it would lead to itself.
    program.write(
        &[&two],
        &format!("{more}\n[databases.own]\nupstream = '{one}'"),
    );
    let answer = console.query("RELOAD");
    let told = answer[0].field(b'M').unwrap();
    assert!(told.contains("would connect to itself"), "{told}");
}

#[test]
fn addresses_that_only_a_restart_changes_are_shown_so() {
    let place = tempfile::tempdir().unwrap();
    let listen = place.path().join("socket");
    let takeover = place.path().join("takeover");
    for (takeover, changeable) in [(None, "yes"), (Some(takeover.to_str().unwrap()), "no")] {
        let own = [
            ("listen", listen.to_str().unwrap()),
            ("admin_users", "boss"),
        ];
        let takeover = takeover.map(|path| ("takeover_socket", path));
        let settings: Vec<_> = own.into_iter().chain(takeover).collect();
        let _process = Process::start(&server::address(), &settings);
        let mut console = enter(listen.to_str().unwrap(), "boss");
        for key in ["listen", "http_listen"] {
            let row = found(&mut console, "CONFIG", "key", key).remove(0);
            assert_eq!(cell(&row, "changeable"), changeable, "{key}");
        }
        let answer = console.query("SET listen = 'localhost:1'");
        let said = format!("{answer:?}");
        assert_eq!(said.contains("by a restart"), changeable == "no", "{said}");
    }
}
