//! Child processes and directories that do not outlive this process, however it ends.
//!
//! `Drop` covers return, error and panic, but not SIGKILL, and the kernel's own remedy (the
//! parent-death signal) needs code between fork and exec, which is `unsafe`. So each guarded thing
//! has a small shell that reads from a pipe of which this process holds the only other end. When
//! the pipe closes, for whatever reason, the shell stops the process or deletes the directory.
//! The shells are in process groups of their own, so Ctrl-C in a terminal does not reach them.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::account::Account;

/// Runs `$2 …` as a child until it ends, and signals it with `$1` when standard input ends; after
/// ten seconds with KILL. Being its parent, the shell knows that the process number is still its.
const PROCESS_SCRIPT: &str = r#"
signal=$1; shift
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
trap '' HUP INT QUIT TERM
{
  read -r line
  kill -s "$signal" "$child"
  tries=0
  while kill -0 "$child" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -s KILL "$child"
} <&3 >/dev/null 2>&1 &
reader=$!
exec 3<&-
wait "$child"
code=$?
kill -s KILL "$reader" 2>/dev/null
exit $code
"#;

/// Deletes `$1` when standard input ends; again for a while if a process still writes there.
const DIRECTORY_SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
read -r line
tries=0
while ! rm -rf "$1" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
"#;

/// How long a stop waits before it gives up on the shell: longer than the shell's own patience.
const STOP_PATIENCE: Duration = Duration::from_secs(12);
/// How often a wait with a bound looks.
const POLL: Duration = Duration::from_millis(2);

/// A child process that ends when this value is dropped or this process is gone.
#[derive(Debug)]
pub struct Process {
    shell: Child,
}

impl Process {
    /// Starts `program` with `arguments`; `signal` is the name of the signal that ends it.
    ///
    /// `configure` may change the command that is run: its output, environment, user. Standard
    /// input of the program is `/dev/null`. The working directory is `/`.
    ///
    /// # Errors
    /// When the shell cannot be started. A missing program shows as exit status 127.
    pub fn spawn(
        program: &Path,
        arguments: &[String],
        signal: &str,
        configure: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = shell(PROCESS_SCRIPT);
        command.arg(signal).arg(program).args(arguments);
        configure(&mut command);
        Ok(Self {
            shell: command.spawn()?,
        })
    }

    /// The process number of the shell, whose only child of weight is the program: what
    /// [`tree_time`](super::cpu::tree_time) wants.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.shell.id()
    }

    /// The read end of the program's standard output, if it was configured as a pipe; once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.shell.stdout.take()
    }

    /// The read end of the program's standard error, if it was configured as a pipe; once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.shell.stderr.take()
    }

    /// The exit status, if the program has ended. A death by signal n reads as status 128 + n.
    ///
    /// # Errors
    /// When the operating system will not say.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.shell.try_wait()
    }

    /// Waits for the program to end by itself, but not beyond `patience`.
    ///
    /// # Errors
    /// When the operating system will not say.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.shell.try_wait()?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
    }

    /// Signals the program and waits until it has ended; `None` when it would not.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        drop(self.shell.stdin.take());
        if let Ok(Some(status)) = self.wait(STOP_PATIENCE) {
            return Some(status);
        }
        // Only a shell that was stopped or is broken comes here; its reader has done its part.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A fresh directory of mode 0700, deleted when this value is dropped or this process is gone.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    shell: Child,
}

impl Directory {
    /// Creates a directory with an unused name below `parent`, for `owner` if given.
    ///
    /// # Errors
    /// When it cannot be created or given away, or its guard cannot be started.
    pub fn create(parent: &Path, owner: Option<Account>) -> io::Result<Self> {
        let path = make_unused(parent)?;
        let spawned = shell(DIRECTORY_SCRIPT)
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .inspect_err(|_| drop(fs::remove_dir(&path)))?;
        let directory = Self {
            path,
            shell: spawned,
        };
        if let Some(account) = owner {
            std::os::unix::fs::chown(&directory.path, Some(account.uid), Some(account.gid))?;
        }
        Ok(directory)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// A shell that runs `script`, out of reach of the terminal, its standard input a pipe from us.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "pgautoprep-guard"]);
    command
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped());
    command
}

/// Creates `parent/pgautoprep-…` under a name nobody has.
fn make_unused(parent: &Path) -> io::Result<PathBuf> {
    loop {
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = clock.map_or(0, |elapsed| elapsed.subsec_nanos());
        let name = format!("pgautoprep-{}-{nanos:08x}", std::process::id());
        let path = parent.join(name);
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, signal: &str) -> Process {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Process::spawn(Path::new("/bin/sh"), &arguments, signal, |command| {
            command.stdout(Stdio::piped()).stderr(Stdio::null());
        })
        .unwrap()
    }

    #[test]
    fn passes_on_output_and_exit_status() {
        let mut process = sh("echo hello; exit 3", "TERM");
        let mut stdout = process.take_stdout().unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut stdout, &mut text).unwrap();
        assert_eq!(text, "hello\n");
        let status = process.wait(Duration::from_secs(5)).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_missing_program_shows() {
        let missing = Path::new("/nonexistent/program");
        let mut process = Process::spawn(missing, &[], "TERM", |command| {
            command.stderr(Stdio::null());
        })
        .unwrap();
        let status = process.wait(Duration::from_secs(5)).unwrap().unwrap();
        assert_eq!(status.code(), Some(127));
    }

    #[test]
    fn stopping_sends_the_signal_and_waits() {
        let mut process = sh(
            "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done",
            "TERM",
        );
        let mut stdout = process.take_stdout().unwrap();
        io::Read::read_exact(&mut stdout, &mut [0; 3]).unwrap();
        assert_eq!(process.stop().and_then(|status| status.code()), Some(9));
    }

    #[test]
    fn a_directory_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::create(parent.path(), None).unwrap();
        let path = directory.path().to_path_buf();
        fs::create_dir(path.join("sub dir")).unwrap();
        fs::write(path.join("sub dir/file"), "x").unwrap();
        drop(directory);
        assert!(!path.exists());
    }
}
