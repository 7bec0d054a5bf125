//! The configuration: what the user wrote, and what the program may rely on.
//!
//! There are two stages. [`Effective`] holds what was written: for each setting the text that wins
//! among flag, variable, file and default, and where it stood. [`Config`] holds what follows from
//! it: checked, typed, and valid by construction. Nothing else reads the environment or such files.

mod address;
mod addresses;
mod auth;
mod choices;
mod console;
mod databases;
mod error;
mod live;
mod logging;
mod near;
mod password;
mod pools;
mod raw;
pub mod settings;
mod sizes;
mod sources;
mod tables;
mod time_limits;
mod tls;
pub mod usage;
mod users;
mod warnings;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use address::{Address, AddressError};
pub use auth::{AuthQuery, AuthSettings, AuthType, CertName};
pub use choices::{HttpPage, LogFormat, Mode, PlanChoice, SharedReads};
pub use console::ConsoleUsers;
pub use databases::{DatabaseMap, Destination, SessionAttrs};
pub use error::Error;
pub use live::ChangedBy;
pub use near::nearest;
pub use password::Password;
pub use raw::{Source, Written};
pub use settings::{SETTINGS, Setting, ValueForm};
pub use sizes::{Bounds, Sizes};
pub use sources::Sources;
pub use tables::{FALLBACK, TableKind, WrittenTable, show as show_tables};
pub use time_limits::TimeLimits;
pub use tls::{ClientTls, ClientTlsMode, ServerTls, ServerTlsMode, TlsVersions};
pub use users::{UserLimits, UserMap};

/// Everything the program may rely on about how it was set up.
///
/// [`settings`] says what each field does and why its default is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The addresses that clients connect to: at least one, and no two equal. A path is the socket
    /// file itself.
    pub listen: Vec<Address>,
    /// Where operators' programs are answered by HTTP; nowhere if there is none.
    pub http_listen: Vec<Address>,
    /// Who is shown the page there.
    pub http_page: HttpPage,
    /// The address of the server of all databases that no table has another for, if there is one. A
    /// path is the socket file itself, never its directory.
    pub upstream: Option<Address>,
    /// Where each database leads.
    pub databases: DatabaseMap,
    /// What holds for some users.
    pub users: UserMap,
    /// How much the proxy may do.
    pub mode: Mode,
    /// Which plans may stand for those of the literals.
    pub plans: PlanChoice,
    /// How often a connection must send a shape before it is prepared, at least 1.
    pub prepare_threshold: u32,
    /// How many threads relay, at least 1.
    pub workers: usize,
    /// The most clients that may be connected at once.
    pub max_clients: usize,
    /// The most prepared statements that a server connection may hold.
    pub max_statements: usize,
    /// The most server memory, in bytes, that those of a server connection may be estimated to
    /// take.
    pub statement_memory: usize,
    /// The age at which a statement is prepared anew.
    pub statement_max_age: Duration,
    /// The most shapes that the proxy remembers.
    pub max_shapes: usize,
    /// The longest query text that is scanned, in bytes.
    pub max_query_bytes: usize,
    /// The most literals a converted query may have, at most 65535.
    pub max_literals: usize,
    /// The fewest rows of VALUES whose columns are arrays.
    pub min_array_rows: usize,
    /// How many bytes may wait for one side of a connection before the other side is no longer
    /// read.
    pub buffer_bytes: usize,
    /// The longest time from accepting a client to its being logged in.
    pub login_timeout: Duration,
    /// The longest time from dialling the server to being connected.
    pub connect_timeout: Duration,
    /// The longest time from being told to stop to stopping.
    pub drain_timeout: Duration,
    /// Whether a server connection may serve another client when its own has left.
    pub warm_connections: bool,
    /// The most of them that wait for clients of one identity, and the usual size of a pool.
    pub default_pool_size: usize,
    /// The bounds of all databases' connections.
    pub bounds: Bounds,
    /// The longest time that a client waits for a server connection; zero means any.
    pub query_wait_timeout: Duration,
    /// The longest time that one waits.
    pub server_idle_timeout: Duration,
    /// The age at which one is no longer kept; zero means any.
    pub server_lifetime: Duration,
    /// Clients that keep connections which are to be closed are ended.
    pub server_fast_close: bool,
    /// How long clients may do what they do.
    pub time_limits: TimeLimits,
    /// How many new shapes the server may be asked about per second.
    pub oracle_per_second: u32,
    /// The time between two looks at a database's catalog; zero means that there are none.
    pub catalog_watch: Duration,
    /// Whether sessions listen for announcements of catalog changes.
    pub ddl_notices: bool,
    /// Whether generic plans are used only while repeated proofs confirm them.
    pub audit: bool,
    /// Whether the times of the routes are compared.
    pub trials: bool,
    /// Whether BEGIN rides with what follows it.
    pub deferred_begin: bool,
    /// Whether reads run on other sessions' server connections.
    pub shared_reads: SharedReads,
    /// Whether the server is not told of transactions that only read.
    pub unlocked_reads: bool,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Whether each login is logged.
    pub log_connections: bool,
    /// Whether each end of a client is logged.
    pub log_disconnections: bool,
    /// Whether each session that is tainted is logged.
    pub log_taints: bool,
    /// From how long on a statement is logged; zero means that none is.
    pub log_slow: Duration,
    /// What is logged, in the syntax of tracing-subscriber's `EnvFilter`.
    pub log_level: String,
    /// Permission bits of the sockets listened on, at most `0o777`.
    pub unix_socket_mode: u32,
    /// Whether other processes may listen on the same ports.
    pub so_reuseport: bool,
    /// Where the next process asks for the sockets listened on, if it may.
    pub takeover_socket: Option<PathBuf>,
    /// Other instances, to which cancel requests are passed on.
    pub peers: Vec<Address>,
    /// TLS with clients.
    pub client_tls: ClientTls,
    /// TLS with the server.
    pub server_tls: ServerTls,
    /// How clients prove who they are.
    pub auth: AuthSettings,
    /// Where switches are kept, if they are.
    pub switches_file: Option<PathBuf>,
    /// Who may use the console; nobody if there is none.
    pub console: ConsoleUsers,
    /// The settings as they were written or by default, by key.
    pub written: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads the file, if any, lets the sources override each other, and checks the outcome.
    ///
    /// # Errors
    /// The first thing that is wrong; see [`Error`].
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        Effective::load(sources)?.config()
    }

    /// Makes a configuration of what a file with this text would say, and of the defaults for all
    /// else. It reads neither the environment nor a file.
    ///
    /// # Errors
    /// As for [`Config::load`].
    pub fn from_text(text: &str) -> Result<Self, Error> {
        Effective::read(&Sources::default(), Path::new("configuration"), text)?.config()
    }

    /// Makes a configuration of the named settings, checked as if they were flags, and of the
    /// defaults for all others. It reads neither the environment nor a file.
    ///
    /// # Errors
    /// A name is no key of a setting, or as for [`Config::load`].
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Result<Self, Error> {
        let mut sources = Sources::default();
        for &(key, text) in pairs {
            let setting = SETTINGS.iter().find(|setting| setting.key == key);
            let setting = setting.ok_or_else(|| Error::UnknownKey(key.to_owned()))?;
            sources.flags.push((*setting, vec![text.to_owned()]));
        }
        Self::load(&sources)
    }
}

/// The winning text of every setting that was written or has a default, and where it stood.
#[derive(Debug, Clone)]
pub struct Effective {
    values: Vec<(Setting, Written)>,
    tables: Vec<WrittenTable>,
    strangers: Vec<String>,
}

impl Effective {
    /// Reads the file, if any, and lets flags win over variables, variables over the file, and
    /// the file over the defaults. A list is replaced as a whole.
    ///
    /// # Errors
    /// The file cannot be read or understood, or a variable is not Unicode.
    pub fn load(sources: &Sources) -> Result<Self, Error> {
        let text = match &sources.file {
            Some(path) => {
                let bytes = std::fs::read(path).map_err(|source| Error::Read {
                    path: path.clone(),
                    source,
                })?;
                raw::text_of(path, bytes)?
            }
            None => String::new(),
        };
        let path = sources.file.as_deref().unwrap_or_else(|| Path::new(""));
        Self::read(sources, path, &text)
    }

    /// The same with the text that the file at this path holds, or would.
    fn read(sources: &Sources, path: &Path, text: &str) -> Result<Self, Error> {
        let (file, tables) = raw::read_file(path, text)?;
        let mut written = Vec::new();
        for (kind, tables) in TableKind::ALL.into_iter().zip(tables) {
            if let Some(tables) = tables {
                written.extend(tables::read(path, text, (kind, &tables))?);
            }
        }

        let mut values = Vec::new();
        for &setting in SETTINGS {
            let written = match from_process(&setting, sources)? {
                Some(written) => Some(written),
                None => lookup(&file, &setting)
                    .cloned()
                    .or_else(|| Written::from_default(&setting)),
            };
            values.extend(written.map(|written| (setting, written)));
        }
        Ok(Self {
            values,
            tables: written,
            strangers: strangers(&sources.variables),
        })
    }

    /// The tables as they were written, those of databases first, in the order of their names.
    #[must_use]
    pub fn tables(&self) -> &[WrittenTable] {
        &self.tables
    }

    /// Every setting that has a value, in the order of [`SETTINGS`].
    #[must_use]
    pub fn values(&self) -> &[(Setting, Written)] {
        &self.values
    }

    /// The variables with the proxy's prefix that name no setting. They are ignored, not refused,
    /// because Kubernetes sets such variables for a service that is called pgautoprep; but those
    /// that are nearly the name of a setting are refused, because that one is meant.
    #[must_use]
    pub fn strangers(&self) -> &[String] {
        &self.strangers
    }

    fn workers(&self) -> Result<usize, Error> {
        Ok(match self.number(&settings::WORKERS)? {
            0 => automatic_workers(),
            workers => workers,
        })
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first value that is not what its setting expects, or two that contradict each other.
    pub fn config(&self) -> Result<Config, Error> {
        if let Some(misspelt) = self.strangers.iter().find_map(|name| near::misspelt(name)) {
            return Err(misspelt);
        }
        let mut config = Config {
            listen: self.listen()?,
            http_listen: self.http_listen()?,
            http_page: self.http_page()?,
            upstream: self.upstream()?,
            databases: DatabaseMap::default(),
            users: self.user_map()?,
            mode: self.mode()?,
            plans: self.plans()?,
            prepare_threshold: self.number(&settings::PREPARE_THRESHOLD)?,
            workers: self.workers()?,
            max_clients: self.number(&settings::MAX_CLIENTS)?,
            max_statements: self.number(&settings::MAX_STATEMENTS)?,
            statement_memory: self.number(&settings::STATEMENT_MEMORY)?,
            statement_max_age: self.seconds(&settings::STATEMENT_MAX_AGE_S)?,
            max_shapes: self.number(&settings::MAX_SHAPES)?,
            max_query_bytes: self.number(&settings::MAX_QUERY_BYTES)?,
            max_literals: self.number(&settings::MAX_LITERALS)?,
            min_array_rows: self.number(&settings::MIN_ARRAY_ROWS)?,
            buffer_bytes: self.number(&settings::BUFFER_BYTES)?,
            login_timeout: self.seconds(&settings::LOGIN_TIMEOUT_S)?,
            connect_timeout: self.seconds(&settings::CONNECT_TIMEOUT_S)?,
            drain_timeout: self.seconds(&settings::DRAIN_TIMEOUT_S)?,
            warm_connections: self.switch(&settings::WARM_CONNECTIONS)?,
            default_pool_size: self.number(&settings::DEFAULT_POOL_SIZE)?,
            bounds: self.bounds()?,
            query_wait_timeout: self.seconds(&settings::QUERY_WAIT_TIMEOUT_S)?,
            server_idle_timeout: self.seconds(&settings::SERVER_IDLE_TIMEOUT_S)?,
            server_lifetime: self.seconds(&settings::SERVER_LIFETIME_S)?,
            server_fast_close: self.switch(&settings::SERVER_FAST_CLOSE)?,
            time_limits: self.time_limits()?,
            oracle_per_second: self.number(&settings::ORACLE_PER_SECOND)?,
            catalog_watch: Duration::from_millis(self.number(&settings::CATALOG_WATCH_MS)?),
            ddl_notices: self.switch(&settings::DDL_NOTICES)?,
            audit: self.switch(&settings::AUDIT)?,
            trials: self.switch(&settings::TRIALS)?,
            deferred_begin: self.switch(&settings::DEFERRED_BEGIN)?,
            shared_reads: self.shared_reads()?,
            unlocked_reads: self.switch(&settings::UNLOCKED_READS)?,
            log_format: self.log_format()?,
            log_connections: self.switch(&settings::LOG_CONNECTIONS)?,
            log_disconnections: self.switch(&settings::LOG_DISCONNECTIONS)?,
            log_taints: self.switch(&settings::LOG_TAINTS)?,
            log_slow: Duration::from_millis(self.number(&settings::LOG_SLOW_MS)?),
            log_level: self.log_level()?,
            unix_socket_mode: self.unix_socket_mode()?,
            so_reuseport: self.switch(&settings::SO_REUSEPORT)?,
            takeover_socket: self.takeover_socket()?,
            peers: self.peers()?,
            client_tls: self.client_tls()?,
            server_tls: self.server_tls()?,
            auth: self.auth()?,
            switches_file: self.switches_file()?,
            console: self.console()?,
            written: self.shown(),
        };
        config.databases = self.database_map(&config)?;
        let servers = config.databases.addresses();
        let own = servers.into_iter().find(|it| config.listen.contains(it));
        if let Some(own) = own {
            return Err(Error::Loop(own));
        }
        self.check_auth_database(&config)?;
        self.check_pools(&config)?;
        Ok(config)
    }

    /// What was written for `setting`.
    fn written(&self, setting: &Setting) -> Result<&Written, Error> {
        lookup(&self.values, setting).ok_or(Error::Required(*setting))
    }

    /// The one text written for `setting`, one of the allowed words where there are such.
    fn text(&self, setting: &Setting) -> Result<&str, Error> {
        let written = self.written(setting)?;
        let [text] = written.items.as_slice() else {
            return Err(refuse(
                setting,
                written,
                "one value",
                &written.items.join(", "),
            ));
        };
        let expected = match setting.kind {
            ValueForm::Choice(words) if !words.contains(&text.as_str()) => words.join(" or "),
            ValueForm::Switch if !["on", "off", "true", "false"].contains(&text.as_str()) => {
                String::from("on or off")
            }
            _ => return Ok(text),
        };
        Err(refuse(setting, written, expected, text))
    }

    /// Whether `setting` is switched on.
    fn switch(&self, setting: &Setting) -> Result<bool, Error> {
        Ok(matches!(self.text(setting)?, "on" | "true"))
    }

    /// The number written for `setting`, within its bounds.
    fn number<T: TryFrom<u64>>(&self, setting: &Setting) -> Result<T, Error> {
        let written = self.written(setting)?;
        let text = self.text(setting)?;
        let (min, max) = match setting.kind {
            ValueForm::Integer { min, max } => (min, max),
            _ => (0, u64::MAX),
        };
        let number = text
            .parse()
            .ok()
            .filter(|number| (min..=max).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let expected = format!("a whole number from {min} to {max}");
                refuse(setting, written, expected, text)
            })
    }

    /// The number of seconds written for `setting`.
    fn seconds(&self, setting: &Setting) -> Result<Duration, Error> {
        self.number(setting).map(Duration::from_secs)
    }

    /// The permissions of the sockets: three octal digits, with or without a leading zero.
    fn unix_socket_mode(&self) -> Result<u32, Error> {
        let setting = &settings::UNIX_SOCKET_MODE;
        let text = self.text(setting)?;
        let written = self.written(setting)?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let mode = u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| digits && *mode <= 0o777);
        mode.ok_or_else(|| refuse(setting, written, "octal permissions up to 0777", text))
    }
}

/// The value that `list` has for `setting`.
fn lookup<'a, T>(list: &'a [(Setting, T)], setting: &Setting) -> Option<&'a T> {
    list.iter()
        .find(|(other, _)| other.key == setting.key)
        .map(|(_, value)| value)
}

/// What a flag says about `setting`; if none does, what a variable says.
fn from_process(setting: &Setting, sources: &Sources) -> Result<Option<Written>, Error> {
    if let Some(texts) = lookup(&sources.flags, setting) {
        let items = texts.iter().flat_map(|text| setting.items(text)).collect();
        return Ok(Some(Written {
            items,
            origin: Source::Flag(format!("--{}", setting.flag())),
        }));
    }
    let variable = setting.variable();
    let Some((_, text)) = sources.variables.iter().find(|(name, _)| *name == variable) else {
        return Ok(None);
    };
    let text = text
        .to_str()
        .ok_or_else(|| Error::NotUnicode(variable.clone()))?;
    Ok(Some(Written {
        items: setting.items(text),
        origin: Source::Variable(variable),
    }))
}

/// The error for `found`, a part of what was `written` for `setting`.
fn refuse(setting: &Setting, written: &Written, expected: impl Into<String>, found: &str) -> Error {
    Error::value(setting, &written.origin, expected, &format!("{found:?}"))
}

/// The number of workers for `workers = 0`: one per core that this process may use, up to the cap.
fn automatic_workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(settings::MAX_AUTOMATIC_WORKERS)
}

/// The names among `variables` that are neither a setting's nor the configuration file's, sorted.
fn strangers(variables: &[(String, OsString)]) -> Vec<String> {
    let ours = |name: &String| {
        name == settings::CONFIG_VARIABLE
            || SETTINGS.iter().any(|setting| setting.variable() == *name)
    };
    let mut names: Vec<_> = variables
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| !ours(name))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
