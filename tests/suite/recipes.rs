//! The set-ups that the manual has a recipe for, done as it says and with nothing else.
//!
//! What stands in it for a server and for the place of a file is where they are here.

use crate::harness::client::Client;
use crate::harness::login::{asking, login};
use crate::harness::proxy::Process;
use pgautoprep::lab::postgres::Scratch;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const MANUAL: &str = include_str!("../../src/manual/authentication.md");

/// How long a recipe may be, in lines of what has to be typed.
const LINES: usize = 10;

/// An application's user, and what it has to do with.
const ROLES: &str = "SET password_encryption = 'scram-sha-256';\
    CREATE ROLE app LOGIN PASSWORD 'right'";

/// The part of the manual under this heading.
fn recipe(heading: &str) -> &'static str {
    let (_, rest) = MANUAL
        .split_once(&format!("\n### {heading}\n"))
        .expect(heading);
    rest.split("\n##").next().expect("a part")
}

/// What is to be typed in this language there: at most [`LINES`].
fn typed(part: &'static str, language: &str) -> &'static str {
    let (_, rest) = part
        .split_once(&format!("\n```{language}\n"))
        .expect(language);
    let (text, _) = rest.split_once("```").expect("an end");
    assert!(text.lines().count() <= LINES, "{text}");
    text
}

/// A place for files that only the proxy may read.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a writable directory");
        let readable = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, readable).expect("a file");
        path
    }
}

/// The proxy with this setting, at a port that is free.
fn serve(setting: &str, value: &str) -> Process {
    Process::start_as("true", &[(setting, value), ("listen", "127.0.0.1:0")])
}

/// Runs the program with these words, and returns what it prints.
fn run(words: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_pgautoprep");
    let output = Command::new(program)
        .args(words)
        .output()
        .expect("a program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Asserts that the application's user comes in by its password alone, several times in a row, is
/// answered right, and is refused as by the server.
fn works(server: &Scratch, proxy: &Process) {
    for address in [&server.host_port(), &proxy.address] {
        let refused = login(address, "app", "wrong").refusal();
        assert_eq!(refused.0, "28P01", "{address}");
    }
    for round in 0..5 {
        let mut client = login(&proxy.address, "app", "right").entered();
        for id in 1..20 {
            let text = format!("SELECT session_user || {id}");
            assert_eq!(client.value(&text), format!("app{id}"), "{round}");
        }
        client.send(&crate::harness::frames::frame(b'X', b""));
        assert_eq!(client.rest(), []);
    }
    let wrong = login(&proxy.address, "app", "wrong").refusal();
    assert_eq!(wrong, login(&server.host_port(), "app", "wrong").refusal());
}

#[test]
fn logins_are_relayed_without_anything_being_set() {
    let server = asking("scram-sha-256", ROLES);
    assert!(recipe("Relay").contains("`pgautoprep serve --upstream db:5432`"));
    let proxy = serve("upstream", &server.host_port());
    works(&server, &proxy);
}

/// The users of the server are those of the proxy, by one function and one line in a file.
#[test]
fn the_server_knows_all_users() {
    let server = asking("scram-sha-256", ROLES);
    let part = recipe("SCRAM, with the server knowing all users");
    let mut superuser = Client::login(&server.host_port(), "postgres");
    superuser.run("SET password_encryption = 'scram-sha-256'");
    superuser.run(typed(part, "sql"));
    let line = part
        .split('`')
        .find(|piece| piece.starts_with("\"keeper\""));
    let files = Files::new();
    let users = files.write("userlist.txt", &format!("{}\n", line.expect("a line")));
    let text = typed(part, "toml")
        .replace("/etc/pgautoprep/userlist.txt", users.to_str().unwrap())
        .replace("db:5432", &server.host_port());
    let config = files.write("pgautoprep.toml", &text);
    let config = config.to_str().unwrap();
    let checked = run(&["check", "--config", config]);
    assert!(checked.contains("# good: "), "{checked}");
    let proxy = serve("config", config);
    works(&server, &proxy);
    // Who is let in no more by the server is let in no more by the proxy.
    login(&proxy.address, "app", "right").entered();
    superuser.run("ALTER ROLE app VALID UNTIL '2001-01-01'");
    let refused = login(&server.host_port(), "app", "right").refusal();
    let began = std::time::Instant::now();
    while login(&proxy.address, "app", "right").client.is_some() {
        assert!(
            began.elapsed() < std::time::Duration::from_secs(3),
            "{refused:?}"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(login(&proxy.address, "app", "right").refusal(), refused);
}

/// What PgBouncer has been told is what the proxy does, with its own files.
#[test]
fn pgbouncer_makes_way() {
    let server = asking("scram-sha-256", ROLES);
    let files = Files::new();
    let users = files.write("userlist.txt", "\"app\" \"right\"\n");
    let address = server.host_port();
    let (host, port) = address.split_once(':').unwrap();
    let mut ini = String::from("[databases]\n");
    writeln!(ini, "postgres = host={host} port={port}\n[pgbouncer]").unwrap();
    writeln!(
        ini,
        "listen_addr = 127.0.0.1\nlisten_port = 16432\nunix_socket_dir ="
    )
    .unwrap();
    writeln!(
        ini,
        "auth_type = scram-sha-256\nauth_file = {}",
        users.display()
    )
    .unwrap();
    let ini = files.write("pgbouncer.ini", &ini);
    let made = files.path("pgautoprep.toml");
    let part = typed(recipe("In the place of PgBouncer"), "sh");
    let mut steps = part.lines();
    let step = steps.next().unwrap();
    let words = step.replace("/etc/pgbouncer/pgbouncer.ini", ini.to_str().unwrap());
    let (words, to) = words.split_once(" > ").unwrap();
    assert_eq!(to, "pgautoprep.toml");
    let words: Vec<_> = words.split(' ').skip(1).collect();
    files.write("pgautoprep.toml", &run(&words));
    let step = steps
        .next()
        .unwrap()
        .replace("pgautoprep.toml", made.to_str().unwrap());
    let words: Vec<_> = step.split(' ').skip(1).collect();
    let checked = run(&words);
    assert!(checked.contains("# good: "), "{checked}");
    assert!(
        checked.contains("listen = [\"127.0.0.1:16432\"]"),
        "{checked}"
    );
    assert_eq!(steps.next(), Some("systemctl stop pgbouncer"));
    assert_eq!(
        steps.next(),
        Some("pgautoprep serve --config pgautoprep.toml")
    );
    works(&server, &serve("config", made.to_str().unwrap()));
}
