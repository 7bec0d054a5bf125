//! One process after the other takes over under the load of real programs, none of which notices.
//!
//! Some of them connect for each transaction, some stay. Meanwhile psql is interrupted in
//! statements of the process that is about to be replaced, and of older ones.

use super::{PATIENCE, Program};
use pgautoprep::lab::postgres::{Options, Scratch, Wanted};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Restarts, unless `PGAUTOPREP_RESTARTS` says otherwise.
const RESTARTS: usize = 8;

/// The time from one restart to the next, if it does not take longer.
const PACE: Duration = Duration::from_millis(400);

/// What pgbench does meanwhile, again and again: connections for each transaction that read and
/// that write, and connections that stay for some restarts.
const LOADS: [&[&str]; 3] = [
    &["-C", "-S", "-c", "4", "-T", "2"],
    &["-C", "-N", "-c", "2", "-T", "2"],
    &["-S", "-c", "4", "-T", "3"],
];

/// The server, what runs before it, and where it is found.
struct Site {
    server: Scratch,
    directory: tempfile::TempDir,
    pgbench: PathBuf,
    psql: PathBuf,
}

/// A process that serves, or did.
struct Process {
    child: Child,
    port: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A statement of psql that takes long.
struct Sleeper {
    child: Child,
}

impl Site {
    /// Starts the next process.
    fn start(&self) -> Process {
        let takeover = self.directory.path().join("takeover");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgautoprep"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--upstream"]);
        command.arg(self.server.host_port());
        command.arg("--takeover-socket").arg(takeover);
        command.args(["--log-level", "warn"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let port = line
            .trim()
            .rsplit_once(':')
            .map(|(_, port)| port.to_owned());
        let port = port.unwrap_or_else(|| panic!("the proxy did not start: {line}"));
        Process { child, port }
    }

    /// Which process is asked for its sockets.
    fn present(&self) -> Option<u64> {
        let path = self.directory.path().join("takeover");
        std::fs::metadata(path).map(|it| it.ino()).ok()
    }

    fn command(&self, program: &Path, port: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PGHOST", "127.0.0.1").env("PGPORT", port);
        command.env("PGUSER", "postgres").env("LC_ALL", "C.UTF-8");
        command.env("PGDATABASE", "postgres");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a load until told to stop, and returns how many transactions it had.
    fn load(&self, port: &str, load: &[&str], stop: &AtomicBool) -> u64 {
        let mut transactions = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut pgbench = self.command(&self.pgbench, port);
            let output = pgbench.args(["-n", "-M", "simple"]).args(load).output();
            let text = whole(&output.unwrap(), 0);
            let processed = text
                .lines()
                .find_map(|line| line.strip_prefix("number of transactions actually processed: "));
            transactions += processed.unwrap().parse::<u64>().unwrap();
            assert!(!text.contains("error"), "{text}");
        }
        transactions
    }

    /// Starts a statement that takes long, and waits until it runs.
    fn sleeper(&self, port: &str, number: usize) -> Sleeper {
        let mut psql = self.command(&self.psql, port);
        let statement = format!("SELECT pg_sleep(600), 'sleeper {number}'");
        psql.args(["-X", "-q", "-c", &statement]);
        psql.stdout(Stdio::piped()).stderr(Stdio::piped());
        let sleeper = Sleeper {
            child: psql.spawn().unwrap(),
        };
        let asked = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE \
             '%sleeper {number}''' AND pid <> pg_backend_pid()"
        );
        let direct = self.server.port().to_string();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut psql = self.command(&self.psql, &direct);
            let output = psql.args(["-X", "-A", "-t", "-c", &asked]).output();
            if whole(&output.unwrap(), 0).trim() == "1" {
                return sleeper;
            }
            assert!(Instant::now() < deadline, "sleeper {number} does not run");
        }
    }
}

impl Sleeper {
    /// Interrupts the statement, as Ctrl-C does.
    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits until its server says that it was cancelled.
    fn ends_cancelled(self) {
        let output = self.child.wait_with_output().unwrap();
        let text = whole(&output, 1);
        assert!(
            text.contains("canceling statement due to user request"),
            "{text}"
        );
    }
}

/// What a program has printed, which ended with this code.
fn whole(output: &Output, code: i32) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Has all loads stop, also when a restart fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets process after process take over, and returns them all.
fn restart(site: &Site, first: Process, restarts: usize) -> Vec<Process> {
    let port = first.port.clone();
    let mut processes = vec![first];
    let mut older = Vec::new();
    for number in 0..restarts {
        let started = Instant::now();
        let [stays, goes] = [2 * number, 2 * number + 1].map(|it| site.sleeper(&port, it));
        let before = site.present();
        // This request is on its way when the sockets change hands.
        let next = std::thread::scope(|scope| {
            let next = scope.spawn(|| site.start());
            goes.interrupt();
            next.join().unwrap()
        });
        assert_eq!(next.port, port, "it has been given the socket");
        processes.push(next);
        let deadline = Instant::now() + PATIENCE;
        while site.present().is_none() || site.present() == before {
            assert!(Instant::now() < deadline, "restart {number} does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
        goes.ends_cancelled();
        older.push(stays);
        if older.len() > 2 {
            let oldest: Sleeper = older.remove(0);
            oldest.interrupt();
            oldest.ends_cancelled();
        }
        std::thread::sleep(PACE.saturating_sub(started.elapsed()));
    }
    for sleeper in older {
        sleeper.interrupt();
        sleeper.ends_cancelled();
    }
    processes
}

#[test]
fn restarts_under_load_are_not_noticed() {
    let program = |name, packages| Program {
        name,
        packages,
        commands: if name == "psql" {
            &["psql"]
        } else {
            &["pgbench"]
        },
        check: &["--version"],
    };
    let pgbench = program("pgbench", "postgresql").find();
    let psql = program("psql", "postgresql-client").find();
    let (Some(pgbench), Some(psql)) = (pgbench, psql) else {
        return;
    };
    let restarts = std::env::var("PGAUTOPREP_RESTARTS");
    let restarts = restarts.map_or(RESTARTS, |text| text.parse().unwrap());
    let options = Options {
        wanted: Wanted::from_environment().unwrap_or_else(|error| panic!("{error}")),
        ..Options::default()
    };
    let site = Site {
        server: Scratch::start(&options).unwrap_or_else(|error| panic!("{error}")),
        directory: tempfile::tempdir().unwrap(),
        pgbench,
        psql,
    };
    let direct = site.server.port().to_string();
    let mut fill = site.command(&site.pgbench, &direct);
    whole(&fill.args(["-i", "-q"]).output().unwrap(), 0);

    let first = site.start();
    let port = first.port.clone();
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let (mut processes, transactions) = std::thread::scope(|scope| {
        let load = |load: &'static [&str]| {
            let (site, stop, port) = (&site, &stop, &port);
            scope.spawn(move || site.load(port, load, stop))
        };
        let loads = LOADS.map(load);
        let processes = {
            let _stops = Stops(&stop);
            restart(&site, first, restarts)
        };
        (processes, loads.map(|load| load.join().unwrap()))
    });
    println!(
        "{restarts} restarts in {:?}: {transactions:?} transactions",
        started.elapsed()
    );
    let last = processes.pop().unwrap();
    // All have left, so every process before the last ends by itself.
    for (number, process) in processes.iter_mut().enumerate() {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = process.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "process {number} does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "process {number}: {status}");
    }
    let mut psql = site.command(&site.psql, &last.port);
    whole(&psql.args(["-X", "-c", "SELECT 1"]).output().unwrap(), 0);
}
