//! Listening sockets that a service manager gives: they are used, and outlive the process.

use crate::harness::client::Client;
use crate::harness::proxy::Process;
use crate::harness::server;
use rustix::process::Signal;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

/// Gives descriptors 0 and 2 as the first two, as systemd gives them.
const GIVES: &str = "exec 3<&0 4<&2 2>&1; export LISTEN_PID=$$ LISTEN_FDS=2";

/// Starts the program with these sockets.
fn start(listen: &str, sockets: [OwnedFd; 2]) -> std::process::Child {
    let mut command = Command::new("sh");
    let script = format!("{GIVES}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_pgautoprep"), "serve"]);
    command.args(["--listen", listen, "--upstream", &server::address()]);
    let [first, second] = sockets;
    command.stdin(first).stderr(second).stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn clients_that_come_while_it_is_restarted_wait_for_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let (tcp, unix) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        UnixListener::bind(&path).unwrap(),
    );
    let address = tcp.local_addr().unwrap().to_string();
    let listen = format!("{address},{}", path.display());
    let sockets = || {
        [
            tcp.try_clone().unwrap().into(),
            unix.try_clone().unwrap().into(),
        ]
    };
    for _ in 0..3 {
        // They come first.
        let waits = [address.clone(), path.display().to_string()]
            .map(|at| std::thread::spawn(move || Client::login(&at, "postgres").value("SELECT 7")));
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut process = start(&listen, sockets());
        for client in waits {
            assert_eq!(client.join().unwrap(), "7");
        }
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        assert!(process.wait().unwrap().success());
        assert!(path.exists(), "the file is the service manager's");
    }
}

#[test]
fn a_socket_that_the_configuration_does_not_name_is_an_error() {
    let (one, other) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let listen = one.local_addr().unwrap().to_string();
    let unnamed = other.local_addr().unwrap().to_string();
    let process = start(&listen, [one.into(), other.into()]);
    let output = process.wait_with_output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("LISTEN_FDS") && said.contains(&unnamed),
        "{said}"
    );
    // Variables that were meant for another process mean nothing.
    let shell = "export LISTEN_PID=1 LISTEN_FDS=2";
    let process = Process::start_under(shell, &server::address(), &[]);
    Client::login(&process.address, "postgres").run("SELECT 1");
}
