//! A PostgreSQL server of our own, with its own data, that leaves nothing behind.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use super::account::{Account, traversable};
use super::child::{Directory, Process};
use super::{Binaries, Error, Wanted, cpu};

/// The superuser of every scratch server; its password is the one in [`Auth`].
pub const SUPERUSER: &str = "postgres";

/// `initdb` takes 1 to 2 s; much longer on a slow disk.
const INITDB_PATIENCE: Duration = Duration::from_secs(120);
/// A start takes 60 ms.
const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// Starts in case somebody else takes the port that was free a moment ago.
const START_ATTEMPTS: usize = 4;
/// How much of a log an error carries.
const LOG_TAIL: u64 = 2000;
/// `sun_path` holds 104 bytes on macOS and 108 on Linux, with a terminating zero.
const SOCKET_PATH_LIMIT: usize = 103;

/// Fast rather than durable, and quiet: the data are thrown away, and nothing but the clients
/// should use CPU while something is measured.
const SETTINGS: [(&str, &str); 7] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "64MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "1h"),
    ("logging_collector", "off"),
];

/// How the server lets its clients in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Auth {
    /// Everybody, without a password.
    #[default]
    Trust,
    /// With this password in clear text.
    Password(String),
    /// With the MD5 challenge and this password.
    Md5(String),
    /// With SCRAM-SHA-256 and this password.
    ScramSha256(String),
}

impl Auth {
    fn method(&self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Password(_) => "password",
            Self::Md5(_) => "md5",
            Self::ScramSha256(_) => "scram-sha-256",
        }
    }

    /// The superuser's password.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        match self {
            Self::Trust => None,
            Self::Password(password) | Self::Md5(password) | Self::ScramSha256(password) => {
                Some(password)
            }
        }
    }
}

/// What kind of scratch server to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binaries to use; searched for, and if need be downloaded, when absent.
    pub binaries: Option<Binaries>,
    /// Which version to search for.
    pub wanted: Wanted,
    /// Whether a server may be downloaded when none is installed.
    pub download: bool,
    /// Settings beside, or instead of, those that every scratch server has.
    pub settings: Vec<(String, String)>,
    /// How clients log in.
    pub auth: Auth,
    /// Where its directory is created; below the system's temporary directory when absent. When
    /// root starts the server, `postgres` or `nobody` must be able to reach it.
    pub parent: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            binaries: None,
            wanted: Wanted::Any,
            download: true,
            settings: Vec::new(),
            auth: Auth::Trust,
            parent: None,
        }
    }
}

/// A running server. Dropping it stops the server at once and deletes its data.
#[derive(Debug)]
pub struct Scratch {
    // Fields are dropped in this order: first the server goes, then its directory.
    process: Process,
    directory: Directory,
    pid: u32,
    port: u16,
    major: u32,
}

impl Scratch {
    /// Initialises and starts a server, and waits until it lets clients in. Takes 1 to 3 s.
    ///
    /// # Errors
    /// When there are no binaries, or initialising or starting fails.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let binaries = match &options.binaries {
            Some(binaries) => binaries.clone(),
            None => Binaries::obtain(options.wanted, options.download)?,
        };
        let account = Account::for_server()?;
        let parent = parent_directory(options.parent.as_deref(), account)?;
        let directory = Directory::create(&parent, account)
            .map_err(Error::io("create a directory in", &parent))?;
        let site = Site {
            binaries: &binaries,
            account,
            directory: directory.path(),
        };
        site.initdb(&options.auth)?;
        let mut attempt = 1;
        let (process, pid, port) = loop {
            match site.launch(&options.settings) {
                Err(Error::NotReady { log, .. })
                    if log.contains("Address already in use") && attempt < START_ATTEMPTS =>
                {
                    attempt += 1;
                }
                launched => break launched?,
            }
        };
        Ok(Self {
            process,
            directory,
            pid,
            port,
            major: binaries.major,
        })
    }

    /// The TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn host_port(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The directory of the Unix-domain socket, `.s.PGSQL.PORT`. Only root and the server's own
    /// user can reach it.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.directory.path()
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The process number of the server's first process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The server's major version.
    #[must_use]
    pub fn version_major(&self) -> u32 {
        self.major
    }

    /// CPU time used so far by the server and all its processes, those that have ended included,
    /// which is known in ticks of the clock only; `None` where there is no `/proc`.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        cpu::tree_time(self.pid)
    }

    /// The end of the server's log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        tail(&self.directory.path().join("log"))
    }

    /// Whether the server still runs.
    ///
    /// # Errors
    /// When the operating system will not say.
    pub fn is_running(&mut self) -> io::Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }
}

/// Everything the two programs have in common.
struct Site<'a> {
    binaries: &'a Binaries,
    account: Option<Account>,
    directory: &'a Path,
}

impl Site<'_> {
    fn initdb(&self, auth: &Auth) -> Result<(), Error> {
        let data = self.directory.join("data");
        let mut arguments = vec![
            format!("--pgdata={}", data.display()),
            format!("--username={SUPERUSER}"),
            format!("--auth={}", auth.method()),
            "--no-sync".to_owned(),
            "--no-locale".to_owned(),
            "--encoding=UTF8".to_owned(),
        ];
        let password_file = self.directory.join("password");
        if let Some(password) = auth.password() {
            self.write_private(&password_file, password)
                .map_err(Error::io("write", &password_file))?;
            arguments.push(format!("--pwfile={}", password_file.display()));
        }
        let log = self.directory.join("initdb.log");
        let mut process = self.spawn("initdb", &arguments, "TERM", &log)?;
        let status = process
            .wait(INITDB_PATIENCE)
            .map_err(Error::io("wait for", &log))?;
        if status.is_some_and(|status| status.success()) {
            let _ = fs::remove_file(&password_file);
            return Ok(());
        }
        process.stop();
        Err(Error::Initdb {
            status: describe(status, INITDB_PATIENCE),
            output: tail(&log),
        })
    }

    /// Starts the server on a port that is free now, and waits until it is ready.
    fn launch(&self, settings: &[(String, String)]) -> Result<(Process, u32, u16), Error> {
        let port = free_port().map_err(Error::io("find a free port on", Path::new("127.0.0.1")))?;
        let sockets = self.directory.to_string_lossy();
        let longest = sockets.len() + "/.s.PGSQL.65535".len();
        if longest > SOCKET_PATH_LIMIT || sockets.contains('"') {
            let sentence = format!("{sockets} is no path for a Unix-domain socket; set TMPDIR");
            return Err(Error::Option(sentence));
        }
        let data = self.directory.join("data");
        let mut arguments = vec!["-D".to_owned(), data.display().to_string()];
        let mut set = |name: &str, value: &str| {
            arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        };
        set("port", &port.to_string());
        set("listen_addresses", "127.0.0.1");
        set("unix_socket_directories", &format!("\"{sockets}\""));
        SETTINGS.iter().for_each(|(name, value)| set(name, value));
        settings.iter().for_each(|(name, value)| set(name, value)); // the last one wins
        let log = self.directory.join("log");
        let mut process = self.spawn("postgres", &arguments, "QUIT", &log)?;
        let pid = await_ready(&mut process, &data, &log)?;
        Ok((process, pid, port))
    }

    /// Runs one of the server's programs with its output in `log`.
    fn spawn(
        &self,
        program: &str,
        arguments: &[String],
        signal: &str,
        log: &Path,
    ) -> Result<Process, Error> {
        let path = self.binaries.directory.join(program);
        let output = fs::File::create(log).map_err(Error::io("create", log))?;
        let errors = output.try_clone().map_err(Error::io("open", log))?;
        let account = self.account;
        let configure = |command: &mut Command| {
            // PGDATA, PGOPTIONS and the like belong to the caller's own server.
            let inherited = std::env::vars_os().map(|(name, _)| name);
            for name in inherited.filter(|name| name.to_string_lossy().starts_with("PG")) {
                command.env_remove(name);
            }
            command.env("LC_ALL", "C").stdout(output).stderr(errors);
            if let Some(account) = account {
                account.apply(command);
            }
        };
        Process::spawn(&path, arguments, signal, configure).map_err(Error::io("run", &path))
    }

    /// Writes a file that only the server's user can read.
    fn write_private(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        if let Some(account) = self.account {
            std::os::unix::fs::fchown(&file, Some(account.uid), Some(account.gid))?;
        }
        file.write_all(text.as_bytes())
    }
}

/// Waits until `postmaster.pid` says `ready` in its eighth line; returns its first line.
fn await_ready(process: &mut Process, data: &Path, log: &Path) -> Result<u32, Error> {
    let pid_file = data.join("postmaster.pid");
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let status = process.try_wait().map_err(Error::io("wait for", log))?;
        if status.is_some() || Instant::now() >= deadline {
            let why = describe(status, START_PATIENCE);
            return Err(Error::NotReady {
                why,
                log: tail(log),
            });
        }
        if let Some(pid) = fs::read_to_string(&pid_file)
            .ok()
            .as_deref()
            .and_then(ready_pid)
        {
            return Ok(pid);
        }
        thread::sleep(POLL);
    }
}

/// The process number in the text of a `postmaster.pid` of a server that is ready.
fn ready_pid(text: &str) -> Option<u32> {
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    (lines.nth(6)?.trim() == "ready").then_some(pid)
}

fn describe(status: Option<ExitStatus>, patience: Duration) -> String {
    match status {
        Some(status) => status.to_string(),
        None => format!("not done after {} s", patience.as_secs()),
    }
}

/// Where a server's directory can be: the server's user must be able to reach it.
fn parent_directory(asked: Option<&Path>, account: Option<Account>) -> Result<PathBuf, Error> {
    let reachable = |path: &Path| account.is_none() || traversable(path);
    if let Some(parent) = asked {
        if reachable(parent) {
            return parent.canonicalize().map_err(Error::io("find", parent));
        }
        let sentence = "the user that the server runs as cannot reach";
        return Err(Error::Option(format!("{sentence} {}", parent.display())));
    }
    let temporary = std::env::temp_dir();
    let chosen = if reachable(&temporary) {
        temporary
    } else {
        PathBuf::from("/tmp")
    };
    chosen.canonicalize().map_err(Error::io("find", &chosen))
}

/// A TCP port on 127.0.0.1 that nobody listens on at this moment.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// The end of a file, as far as it can be read.
fn tail(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        Err(error) => format!("({}: {error})", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_read_from_the_eighth_line() {
        let text = "4711\n/data\n1700000000\n5432\n/sockets\n127.0.0.1\n  1 2\nready   \n";
        assert_eq!(ready_pid(text), Some(4711));
        assert_eq!(ready_pid(&text.replace("ready   ", "starting")), None);
        assert_eq!(ready_pid("4711\n/data\n"), None);
        assert_eq!(ready_pid(""), None);
    }

    #[test]
    fn a_free_port_can_be_bound() {
        // Somebody else may take one meanwhile, but not all of them.
        let is_free = || TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap())).is_ok();
        assert!((0..20).any(|_| is_free()));
    }

    #[test]
    fn a_tail_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, format!("{}\nlast line\n", "x".repeat(10_000))).unwrap();
        let text = tail(&path);
        assert!(
            text.ends_with("last line") && text.len() <= 2000,
            "{}",
            text.len()
        );
        assert!(tail(&directory.path().join("missing")).contains("missing"));
    }
}
