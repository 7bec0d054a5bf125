//! What a service manager is told while the program runs.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::login::Users;
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::Signal;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The next message, whatever it is.
fn next(socket: &UnixDatagram) -> io::Result<String> {
    let mut bytes = [0; 512];
    let count = socket.recv(&mut bytes)?;
    Ok(String::from_utf8(bytes[..count].to_vec()).unwrap())
}

/// The next message that does not only say how many clients there are.
fn heard(socket: &UnixDatagram) -> io::Result<String> {
    loop {
        let message = next(socket)?;
        if !message.starts_with("STATUS=") {
            return Ok(message);
        }
    }
}

#[test]
fn a_service_manager_is_told_how_many_clients_there_are() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let wait = Some(Duration::from_secs(15));
    socket.set_read_timeout(wait).unwrap();
    let shell = format!("export NOTIFY_SOCKET={}", path.display());
    let process = Process::start_under(&shell, &server::address(), &[]);
    assert_eq!(next(&socket).unwrap(), "READY=1\nSTATUS=serving");
    let client = Client::login(&process.address, "postgres");
    assert_eq!(next(&socket).unwrap(), "STATUS=serving (1 client)");
    drop(client);
    assert_eq!(next(&socket).unwrap(), "STATUS=serving (0 clients)");
}

#[test]
fn a_service_manager_is_told_what_the_program_does() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(15)))
        .unwrap();
    let heard = || heard(&socket).unwrap();
    let users = place.path().join("users");
    std::fs::write(&users, "\"postgres\" \"\"\n").unwrap();
    let settings = [
        ("auth_type", "trust"),
        ("auth_file", users.to_str().unwrap()),
    ];
    let shell = format!("export NOTIFY_SOCKET={}", path.display());
    let mut process = Process::start_under(&shell, &server::address(), &settings);
    assert_eq!(heard(), "READY=1\nSTATUS=serving");
    assert_eq!(
        Client::login(&process.address, "postgres").value("SELECT 1"),
        "1"
    );
    for (written, status) in [
        ("\"postgres\" \"\"\n", "STATUS=serving"),
        ("nonsense", "cannot be used"),
    ] {
        std::fs::write(&users, written).unwrap();
        process.signal(Signal::HUP);
        let reloading = heard();
        assert!(
            reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
            "{reloading}"
        );
        let ready = heard();
        assert!(
            ready.starts_with("READY=1\n") && ready.contains(status),
            "{ready}"
        );
    }
    process.signal(Signal::TERM);
    assert_eq!(heard(), "STOPPING=1\nSTATUS=ending");
    assert!(process.ended().0.success());
}

#[test]
fn a_service_manager_is_told_at_once_what_was_ordered_at_the_console() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let heard = || heard(&socket);
    let wait = |time| socket.set_read_timeout(Some(time)).unwrap();
    let users = Users::new(&[("postgres", "")]);
    let settings = [
        ("auth_type", "trust"),
        ("auth_file", users.path()),
        ("admin_users", "postgres"),
        ("drain_timeout_s", "60"),
    ];
    let shell = format!("export NOTIFY_SOCKET={}", path.display());
    let mut process = Process::start_under(&shell, &server::address(), &settings);
    wait(Duration::from_secs(15));
    assert_eq!(heard().unwrap(), "READY=1\nSTATUS=serving");
    let mut client = Client::login(&process.address, "postgres");
    client.run("BEGIN");
    let mut console = Client::login(&process.address, "pgautoprep");
    console.send(&frames::query("SHUTDOWN WAIT_FOR_CLIENTS"));
    wait(Duration::from_millis(500));
    assert!(heard().is_err(), "that may take days");
    console.send(&frames::query("SHUTDOWN DRAIN"));
    wait(Duration::from_secs(15));
    assert_eq!(heard().unwrap(), "STOPPING=1\nSTATUS=ending");
    client.run("COMMIT");
    drop(client);
    assert!(process.ended().0.success());
}
