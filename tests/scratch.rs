//! Starts real servers through `pgautoprep::lab::postgres` and looks at what they leave behind.
//!
//! On a machine without PostgreSQL and without a network these tests fail, and say what to
//! install.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pgautoprep::lab::postgres::{Auth, Error, Options, Scratch, Wanted};

fn start(options: &Options) -> Scratch {
    Scratch::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// Logs in without a password and returns once the server says it is ready for a query.
fn log_in(stream: &mut (impl Read + Write)) {
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(8 + parameters.len()).unwrap();
    let mut packet = length.to_be_bytes().to_vec();
    packet.extend(196_608_u32.to_be_bytes());
    packet.extend(parameters);
    stream.write_all(&packet).unwrap();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        stream.read_exact(&mut body).unwrap();
        match header[0] {
            b'E' => panic!("{}", String::from_utf8_lossy(&body)),
            b'Z' => return,
            _ => {}
        }
    }
}

fn await_true(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 20 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn starts_lets_clients_in_and_leaves_nothing() {
    let parent = shared_directory();
    let options = Options {
        parent: Some(parent.path().to_path_buf()),
        settings: vec![("max_connections".to_owned(), "7".to_owned())],
        ..Options::default()
    };
    let server = start(&options);
    assert!(server.version_major() >= 10);
    assert!(server.data_dir().join("PG_VERSION").is_file());

    log_in(&mut TcpStream::connect(server.host_port()).unwrap());
    let socket = server
        .socket_dir()
        .join(format!(".s.PGSQL.{}", server.port()));
    log_in(&mut UnixStream::connect(&socket).unwrap());
    let address = server.host_port();
    drop(server);
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    assert!(TcpStream::connect(address).is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn cpu_time_counts_connections_that_live_and_that_have_ended() {
    let server = start(&Options::default());
    let mut config = tokio_postgres::Config::new();
    config
        .host("127.0.0.1")
        .port(server.port())
        .user("postgres");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    let driver = tokio::spawn(connection);
    let idle = server.cpu_time().unwrap();
    let work = "SELECT count(*) FROM generate_series(1, 2000000)";
    client.simple_query(work).await.unwrap();
    let busy = server.cpu_time().unwrap();
    assert!(busy > idle + Duration::from_millis(50), "{idle:?} {busy:?}");
    drop(client);
    driver.await.unwrap().unwrap();
    // At some point in this loop the server notices that the process has ended. Of that it is told
    // the time in the program and the time in the kernel, each in whole ticks of the clock.
    let ticks = Duration::from_millis(20);
    for _ in 0..200 {
        let after = server.cpu_time().unwrap();
        assert!(after + ticks >= busy, "{after:?} after {busy:?}");
    }
}

#[tokio::test]
async fn settings_and_every_kind_of_password() {
    let secret = || "it's a secret".to_owned();
    for auth in [
        Auth::Password(secret()),
        Auth::Md5(secret()),
        Auth::ScramSha256(secret()),
    ] {
        let settings = vec![("max_connections".to_owned(), "7".to_owned())];
        let server = start(&Options {
            settings,
            auth: auth.clone(),
            ..Options::default()
        });
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(server.port())
            .user("postgres");
        config.password("wrong");
        assert!(
            config.connect(tokio_postgres::NoTls).await.is_err(),
            "{auth:?}"
        );
        config.password(auth.password().unwrap());
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let row = client.query_one("SHOW max_connections", &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "7");
        drop(client);
        driver.await.unwrap().unwrap();
    }
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_nothing() {
    let parent = shared_directory();
    let options = Options {
        parent: Some(parent.path().to_path_buf()),
        settings: vec![("no_such_setting".to_owned(), "1".to_owned())],
        ..Options::default()
    };
    let error = Scratch::start(&options).map(drop).unwrap_err();
    assert!(matches!(error, Error::NotReady { .. }), "{error}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_panic_stops_the_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let server = start(&Options::default());
        sender
            .send((server.host_port(), server.socket_dir().to_path_buf()))
            .unwrap();
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    let (address, directory) = receiver.recv().unwrap();
    assert!(TcpStream::connect(address).is_err());
    assert!(!directory.exists());
}

#[test]
#[ignore = "downloads a server of every major version that is not installed, 90 MB"]
fn every_pinned_version_starts() {
    for major in 13..=18 {
        let wanted = Wanted::Major(major);
        let mut server = start(&Options {
            wanted,
            ..Options::default()
        });
        assert_eq!(server.version_major(), major);
        log_in(&mut TcpStream::connect(server.host_port()).unwrap());
        assert!(server.is_running().unwrap());
    }
}

/// Not a test: the process that the next test kills.
#[test]
#[ignore = "only for a_killed_owner_leaves_nothing, which starts it"]
fn owner_that_waits() {
    let server = start(&Options::default());
    println!(
        "\nowner {} {} {}",
        server.pid(),
        server.host_port(),
        server.socket_dir().display()
    );
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "owner_that_waits"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let line = lines
        .into_iter()
        .find(|line| line.starts_with("owner "))
        .unwrap();
    let mut words = line.splitn(4, ' ').skip(1);
    let pid = words.next().unwrap().to_owned();
    let address = words.next().unwrap().to_owned();
    let directory = PathBuf::from(words.next().unwrap());
    assert!(directory.join("data").exists());

    owner.kill().unwrap(); // SIGKILL
    owner.wait().unwrap();
    await_true("the directory goes", || !directory.exists());
    await_true("the port closes", || TcpStream::connect(&address).is_err());
    if cfg!(target_os = "linux") {
        await_true("the process goes", || {
            !Path::new("/proc").join(&pid).exists()
        });
    }
}

/// A directory that the server's user can reach and write to, unlike `tempfile`'s own default.
fn shared_directory() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o1777))
        .tempdir()
        .unwrap()
}
