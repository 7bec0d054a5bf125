//! Servers that are stopped, started again and promoted while a proxy leads to them.

use super::client::Client;
use super::server;
use pgautoprep::lab::postgres::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that can be stopped and started.
pub(crate) struct Server {
    scratch: Scratch,
    program: PathBuf,
    arguments: Vec<String>,
    /// The process that was started last, if it is not the first.
    child: Option<Child>,
}

impl Server {
    /// A server in whose database `postgres` these texts have run.
    pub(crate) fn start(setup: &str) -> Self {
        let scratch = server::own();
        let process = format!("/proc/{}", scratch.pid());
        let program = std::fs::read_link(format!("{process}/exe")).unwrap();
        let line = std::fs::read_to_string(format!("{process}/cmdline")).unwrap();
        let words = line.split_terminator('\0').skip(1);
        let server = Self {
            arguments: words.map(str::to_owned).collect(),
            scratch,
            program,
            child: None,
        };
        let mut admin = Client::login(&server.address(), "postgres");
        // Tests crash it, and a server of tests says that it has committed before it has written.
        admin.run("SET synchronous_commit = on");
        for text in setup.split(';').filter(|text| !text.trim().is_empty()) {
            admin.run(text);
        }
        server
    }

    pub(crate) fn address(&self) -> String {
        self.scratch.host_port()
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Stops it, as an administrator who waits for nobody.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.as_ref();
        let pid = pid.map_or_else(|| self.scratch.pid(), Child::id);
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let started = Instant::now();
        loop {
            let is_running = match &mut self.child {
                Some(child) => child.try_wait().unwrap().is_none(),
                None => self.scratch.is_running().unwrap(),
            };
            if !is_running {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "it does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again, at the same address.
    pub(crate) fn start_again(&mut self) {
        let owner = std::fs::metadata(self.scratch.data_dir()).unwrap();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir("/");
        command.env_clear().env("LC_ALL", "C");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if owner.uid() != rustix::process::getuid().as_raw() {
            command.uid(owner.uid()).gid(owner.gid());
        }
        self.child = Some(command.spawn().unwrap());
        let started = Instant::now();
        let pid_file = self.scratch.data_dir().join("postmaster.pid");
        while !is_ready(&pid_file) {
            assert!(started.elapsed() < PATIENCE, "it does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it has recovered from a crash of one of its processes.
    pub(crate) fn comes_back(&self) {
        let started = Instant::now();
        loop {
            let mut client = Client::connect(&self.address());
            let parameters = [("user", "postgres"), ("database", "postgres")];
            client.send(&super::frames::startup(&parameters));
            if client.next().is_some_and(|first| first.tag == b'R') {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "it does not come back");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Has it come back as a standby, of a primary that has nothing to say.
    pub(crate) fn demote(&mut self) {
        self.stop();
        let signal = self.scratch.data_dir().join("standby.signal");
        std::fs::write(signal, "").unwrap();
        self.start_again();
    }

    /// Has the standby become a primary. Its sessions stay.
    pub(crate) fn promote(&self) {
        let mut admin = Client::login(&self.address(), "postgres");
        assert_eq!(admin.value("SELECT pg_promote()"), "t");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let pid = Pid::from_child(child);
            let _ = kill_process(pid, Signal::QUIT);
            let _ = child.wait();
        }
    }
}

/// Whether this file says that the server takes sessions.
fn is_ready(pid_file: &Path) -> bool {
    let text = std::fs::read_to_string(pid_file).unwrap_or_default();
    let line = text.lines().nth(7).unwrap_or_default();
    matches!(line.trim(), "ready" | "standby")
}
