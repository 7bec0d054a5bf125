//! The proxy under measurement: a child process of the program that measures.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::lab::postgres::child::Process;
use crate::lab::postgres::cpu;

/// What `serve` prints on standard output for each address once it accepts connections.
const LISTENING: &str = "listening on ";
const START_PATIENCE: Duration = Duration::from_secs(20);
/// A port of this machine that the system chooses.
pub(crate) const ANY: &str = "127.0.0.1:0";
/// Lines of the proxy's standard error that are kept for an error message.
const KEPT_LINES: usize = 15;

/// A running proxy; dropping it sends SIGTERM and waits.
#[derive(Debug)]
pub(crate) struct Proxy {
    process: Process,
    address: String,
    errors: Lines,
}

type Lines = Arc<Mutex<VecDeque<String>>>;

impl Proxy {
    /// Starts `program serve` at `listen` before the server at `upstream`, with the flags `more`,
    /// and waits until it listens.
    pub(crate) fn start(
        program: &Path,
        listen: &str,
        upstream: &str,
        mode: &str,
        more: &[String],
    ) -> anyhow::Result<Self> {
        let own = [
            "serve",
            "--listen",
            listen,
            "--upstream",
            upstream,
            "--mode",
            mode,
        ];
        let arguments: Vec<_> = own
            .iter()
            .map(|argument| (*argument).to_owned())
            .chain(more.iter().cloned())
            .collect();
        let mut process = Process::spawn(program, &arguments, "TERM", |command: &mut Command| {
            // The defaults are measured, not what this shell happens to configure.
            let inherited = std::env::vars_os().map(|(name, _)| name);
            for name in inherited.filter(|n| n.to_string_lossy().starts_with("PGAUTOPREP_")) {
                command.env_remove(name);
            }
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        })
        .with_context(|| format!("cannot run {}", program.display()))?;
        let errors = Lines::default();
        let stderr = process
            .take_stderr()
            .context("the proxy has no standard error")?;
        let keep = Arc::clone(&errors);
        let reader = for_each_line(stderr, move |line| {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(line);
            if kept.len() > KEPT_LINES {
                kept.pop_front();
            }
        });
        let stdout = process
            .take_stdout()
            .context("the proxy has no standard output")?;
        let (sender, receiver) = mpsc::channel();
        for_each_line(stdout, move |line| {
            if let Some(address) = line.strip_prefix(LISTENING) {
                // Nobody receives the second listener's address.
                let _ = sender.send(address.trim().to_owned());
            }
        });
        let why = match receiver.recv_timeout(START_PATIENCE) {
            Ok(address) => {
                return Ok(Self {
                    process,
                    address,
                    errors,
                });
            }
            Err(RecvTimeoutError::Timeout) => "said no address",
            Err(RecvTimeoutError::Disconnected) => "ended",
        };
        process.stop();
        // Its last words are in the pipe; the reader ends when it has them all.
        let _ = reader.join();
        let program = program.display();
        bail!(
            "{program} serve --mode {mode} {why} before it listened\n{}",
            text(&errors)
        );
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// CPU time used so far; `None` where there is no `/proc`.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        cpu::tree_time(self.process.id())
    }

    /// The end of what it wrote to standard error.
    pub(crate) fn errors(&self) -> String {
        text(&self.errors)
    }
}

fn text(lines: &Lines) -> String {
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().map(|line| format!("  | {line}\n")).collect()
}

/// Reads to the end in a thread of its own, so that the proxy never blocks on a full pipe.
fn for_each_line(
    source: impl Read + Send + 'static,
    mut act: impl FnMut(String) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            act(line);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(script: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file.path(), mode).unwrap();
        file.into_temp_path()
    }

    #[test]
    fn reads_the_first_address() {
        let program = program(
            "echo note; echo listening on 127.0.0.1:1234; echo listening on /tmp/socket; \
             echo \"$*\" >&2; while :; do sleep 0.05; done",
        );
        let proxy = Proxy::start(&program, ANY, "127.0.0.1:5432", "off", &[]).unwrap();
        assert_eq!(proxy.address(), "127.0.0.1:1234");
    }

    #[test]
    fn a_proxy_that_ends_shows_its_errors() {
        let program = program("echo 'bad flag' \"$2\" >&2; exit 64");
        let error = Proxy::start(&program, ANY, "127.0.0.1:5432", "off", &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("ended before it listened"), "{error}");
        assert!(error.contains("bad flag --listen"), "{error}");
    }
}
