//! Every setting once: its names, its default and why that is the default.
//!
//! The flags, the variables, the table in `--help`, `config.example.toml` and the manual's chapter
//! on settings all follow from [`SETTINGS`], so they cannot disagree.

mod auth;
mod bounds;
mod console;
mod databases;
mod http;
mod instances;
mod logging;
mod routes;
mod time_limits;
mod tls;
mod users;
mod warm;

pub use auth::{
    AUTH_CACHE_S, AUTH_CERT_NAME, AUTH_DBNAME, AUTH_FILE, AUTH_HBA_FILE, AUTH_IDENT_FILE,
    AUTH_QUERY, AUTH_TYPE, AUTH_USER,
};
pub use bounds::{
    DATABASE_MAX_CLIENTS, MAX_CLIENTS, MAX_DB_CLIENT_CONNECTIONS, MAX_USER_CLIENT_CONNECTIONS,
};
pub use console::{ADMIN_USERS, STATS_USERS, SWITCHES_FILE};
pub use databases::{
    DATABASE_AUTH_DBNAME, DATABASE_AUTH_QUERY, DATABASE_AUTH_USER, DATABASE_DBNAME, DATABASE_KEYS,
    DATABASE_MAX_CONNECTIONS, DATABASE_MIN_POOL_SIZE, DATABASE_PASSWORD, DATABASE_POOL_MODE,
    DATABASE_POOL_SIZE, DATABASE_RESERVE_POOL_SIZE, DATABASE_UPSTREAM, DATABASE_USER,
    LOAD_BALANCE_HOSTS, TABLES, TARGET_SESSION_ATTRS,
};
pub use http::{HTTP_LISTEN, HTTP_PAGE};
pub use instances::{PEERS, SO_REUSEPORT, TAKEOVER_SOCKET, UNIX_SOCKET_MODE};
pub use logging::{
    LOG_CONNECTIONS, LOG_DISCONNECTIONS, LOG_FORMAT, LOG_LEVEL, LOG_SLOW_MS, LOG_TAINTS,
};
pub use routes::{DEFERRED_BEGIN, SHARED_READS, TRIALS, UNLOCKED_READS};
pub use time_limits::{
    CLIENT_IDLE_TIMEOUT_S, IDLE_TRANSACTION_TIMEOUT_S, QUERY_TIMEOUT_S, TRANSACTION_TIMEOUT_S,
};
pub use tls::{
    CLIENT_TLS_CA_FILE, CLIENT_TLS_CERT_FILE, CLIENT_TLS_KEY_FILE, CLIENT_TLS_PROTOCOLS,
    CLIENT_TLS_SSLMODE, SERVER_TLS_CA_FILE, SERVER_TLS_CERT_FILE, SERVER_TLS_KEY_FILE,
    SERVER_TLS_NEGOTIATION, SERVER_TLS_SSLMODE,
};
pub use users::{
    USER_KEYS, USER_MAX_CLIENTS, USER_MAX_CONNECTIONS, USER_POOL_MODE, USER_POOL_SIZE,
    USER_RESERVE_POOL_SIZE, USER_TABLES,
};
pub use warm::{
    DEFAULT_POOL_SIZE, MAX_DB_CONNECTIONS, MAX_USER_CONNECTIONS, MIN_POOL_SIZE, POOL_MODE,
    QUERY_WAIT_TIMEOUT_S, RESERVE_POOL_SIZE, RESERVE_POOL_TIMEOUT_S, SERVER_FAST_CLOSE,
    SERVER_IDLE_TIMEOUT_S, SERVER_LIFETIME_S, WARM_CONNECTIONS,
};

/// The kind of value that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// One or more addresses. In one text they are separated by commas.
    Addresses,
    /// Any number of names. In one text they are separated by commas.
    Names,
    /// One text of the form that this word names. The setting's own parser knows the form.
    Text(&'static str),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number between the two bounds, both included.
    Integer {
        /// The smallest number accepted.
        min: u64,
        /// The largest number accepted.
        max: u64,
    },
    /// A switch: `on` or `off`, in a file `true` or `false`.
    Switch,
}

/// One setting of the proxy.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The key in a configuration file. The names of flag and variable follow from it.
    pub key: &'static str,
    /// The kind of value that the setting takes.
    pub kind: ValueForm,
    /// The default as a user would write it; `None` when the setting is required.
    pub default: Option<&'static str>,
    /// What the setting does, in one sentence.
    pub what: &'static str,
    /// Why the default is what it is, to follow the word "because".
    pub because: &'static str,
}

impl Setting {
    /// The flag without its dashes: `max-clients`.
    #[must_use]
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The environment variable: `PGAUTOPREP_MAX_CLIENTS`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.key.to_uppercase())
    }

    /// The default for people to read.
    #[must_use]
    pub fn shown_default(&self) -> &'static str {
        match self.default {
            Some("") => "(none)",
            Some(default) if default.len() > LONG => "(query)",
            Some(default) => default,
            None => "(required)",
        }
    }

    /// The values in a text: the parts of a list, or the whole text.
    pub(super) fn items(&self, text: &str) -> Vec<String> {
        match self.kind {
            ValueForm::Addresses => text.split(',').map(|part| part.trim().to_owned()).collect(),
            _ => vec![text.trim().to_owned()],
        }
    }

    /// Writes `items` as a user would write them in a file.
    #[must_use]
    pub fn toml(&self, items: &[String]) -> String {
        let quoted = |text: &String| toml::Value::String(text.clone()).to_string();
        let list = || items.iter().map(quoted).collect::<Vec<_>>().join(", ");
        match (self.kind, items) {
            (ValueForm::Integer { .. }, [number]) => number.clone(),
            (ValueForm::Switch, [word]) => (word == "on" || word == "true").to_string(),
            (kind, [text]) if kind != ValueForm::Addresses => quoted(text),
            _ => format!("[{}]", list()),
        }
    }
}

/// The longest default that is shown in tables.
const LONG: usize = 40;

/// The beginning of the names of all environment variables of the proxy.
pub const VARIABLE_PREFIX: &str = "PGAUTOPREP_";

/// The variable that names the configuration file when `--config` is not given.
pub const CONFIG_VARIABLE: &str = "PGAUTOPREP_CONFIG";

/// The most workers that `workers = 0` starts. A worker relays tens of thousands of queries a
/// second; a server that keeps sixteen of them busy needs a larger machine than one that it shares
/// with them.
pub const MAX_AUTOMATIC_WORKERS: usize = 16;

/// `listen`: where clients connect.
pub const LISTEN: Setting = Setting {
    key: "listen",
    kind: ValueForm::Addresses,
    default: Some("127.0.0.1:6432"),
    what: "Where clients connect: host:port, [v6]:port, or the path of a Unix socket to create, \
           such as /run/pgautoprep/.s.PGSQL.6432; several may be given. RELOAD listens on new ones \
           first, or changes nothing, and then closes those that are gone; who came by them stays. \
           With takeover_socket, and with sockets of a service manager, only the next process \
           listens elsewhere.",
    because: "only programs on this machine should reach a proxy that nobody has set up yet, and \
              6432 is where poolers of PostgreSQL are expected.",
};

/// `upstream`: the PostgreSQL server.
pub const UPSTREAM: Setting = Setting {
    key: "upstream",
    kind: ValueForm::Text("ADDRESS"),
    default: None,
    what: "The PostgreSQL server: host:port, [v6]:port, the path of its Unix socket, or the \
           directory that holds .s.PGSQL.5432. Not needed where each table [databases.NAME] has \
           one of its own.",
    because: "a proxy that guesses its server serves the wrong one some day; there is no default.",
};

/// `mode`: how much the proxy may do.
pub const MODE: Setting = Setting {
    key: "mode",
    kind: ValueForm::Choice(&["convert", "observe", "off"]),
    default: Some("convert"),
    what: "convert runs literal SQL as prepared statements; observe only counts what could be; \
           off relays bytes.",
    because: "converting is what the proxy is for, and it converts only what it has proven.",
};

/// `plans`: which plans may stand for those of the literals.
pub const PLANS: Setting = Setting {
    key: "plans",
    kind: ValueForm::Choice(&["proven", "server"]),
    default: Some("proven"),
    what: "proven plans a statement once only where no value could show another plan; server \
           leaves it to the server's plan cache, as drivers that prepare do, so rows without an \
           order come in any.",
    because: "nobody has to read an application for queries that rely on an order they do not ask \
              for; whoever knows that there are none may choose the other.",
};

/// `prepare_threshold`: sightings of a shape before it is asked about and prepared.
pub const PREPARE_THRESHOLD: Setting = Setting {
    key: "prepare_threshold",
    kind: ValueForm::Integer {
        min: 1,
        max: 1_000_000,
    },
    default: Some("3"),
    what: "How often a shape must be sent before the server is asked about it, and by one \
           connection before it is prepared there, unless connections are known to send it more \
           or less often; with 1 everything is asked about at once, whether or not that pays.",
    because: "a query that comes once never earns back what asking about it costs, and the second \
              and third show which of its literals vary.",
};

/// `workers`: threads that relay.
pub const WORKERS: Setting = Setting {
    key: "workers",
    kind: ValueForm::Integer { min: 0, max: 1024 },
    default: Some("0"),
    what: "Threads that relay; 0 means one per core this process may use, at most 16.",
    because: "a worker owns its connections outright, so more workers than cores gain nothing.",
};

/// `max_statements`: prepared statements per server connection.
pub const MAX_STATEMENTS: Setting = Setting {
    key: "max_statements",
    kind: ValueForm::Integer {
        min: 1,
        max: 100_000,
    },
    default: Some("200"),
    what: "How many prepared statements each server connection may hold.",
    because: "few applications have more statements that matter; what they take of the server's \
              memory is bounded by statement_memory.",
};

/// `statement_memory`: bytes of server memory per server connection.
pub const STATEMENT_MEMORY: Setting = Setting {
    key: "statement_memory",
    kind: ValueForm::Integer {
        min: 65_536,
        max: 17_179_869_184,
    },
    default: Some("16777216"),
    what: "How many bytes of server memory the prepared statements of one server connection may \
           take, as the proxy estimates them; the least useful are closed first.",
    because: "most statements take 12 to 80 KiB, so 200 usual ones fit, and a server process, \
              which has some 10 MiB by itself, does not become several times as large.",
};

/// `statement_max_age_s`: seconds until a statement is prepared anew.
pub const STATEMENT_MAX_AGE_S: Setting = Setting {
    key: "statement_max_age_s",
    kind: ValueForm::Integer {
        min: 1,
        max: 86_400,
    },
    default: Some("60"),
    what: "Seconds after which a statement is asked about and prepared anew whose plan was proven \
           from statistics; after ten times that any other.",
    because: "new statistics are then honoured within a minute, and a change of the catalog that \
              the proxy could not see within ten; what is asked about costs as much as tens of \
              executions save.",
};

/// `max_shapes`: shapes remembered by the whole proxy.
pub const MAX_SHAPES: Setting = Setting {
    key: "max_shapes",
    kind: ValueForm::Integer {
        min: 1,
        max: 10_000_000,
    },
    default: Some("10000"),
    what: "How many shapes the proxy remembers; together they take at most 8 KiB each.",
    because: "large applications produce thousands, and usual ones take less than 4 KiB; one that \
              is forgotten only has to be asked about again.",
};

/// `max_query_bytes`: length of the text that is scanned.
pub const MAX_QUERY_BYTES: Setting = Setting {
    key: "max_query_bytes",
    kind: ValueForm::Integer {
        min: 1,
        max: 1_048_576,
    },
    default: Some("65536"),
    what: "Queries longer than this many bytes are passed through without being scanned.",
    because: "longer ones are bulk loads, whose parsing is small beside their work.",
};

/// `max_literals`: literals per statement.
pub const MAX_LITERALS: Setting = Setting {
    key: "max_literals",
    kind: ValueForm::Integer {
        min: 1,
        max: 65_535,
    },
    default: Some("1000"),
    what: "Queries with more literals than this are passed through.",
    because: "IN lists and rows that do not become arrays come in every length, and each length is \
              a shape of its own; the protocol itself ends at 65535.",
};

/// `min_array_rows`: rows from which on their columns are arrays.
pub const MIN_ARRAY_ROWS: Setting = Setting {
    key: "min_array_rows",
    kind: ValueForm::Integer {
        min: 2,
        max: 65_535,
    },
    default: Some("16"),
    what: "INSERT … VALUES of at least so many rows is bound as one array a column, and then any \
           number of rows is one statement; fewer rows are a statement for each number.",
    because: "of few rows a parameter for each value is read faster: arrays reached 0.90 to 0.95 \
              of its throughput at 4 to 10 rows, 0.95 at 16 and 0.97 at 50; but each number of \
              rows has to be learned.",
};

/// `buffer_bytes`: bytes held per connection and direction.
pub const BUFFER_BYTES: Setting = Setting {
    key: "buffer_bytes",
    kind: ValueForm::Integer {
        min: 16_384,
        max: 16_777_216,
    },
    default: Some("262144"),
    what: "Bytes held for one side of a connection before the other side is no longer read.",
    because: "it keeps a link of 10 Gbit/s and 0.2 ms full, and ten thousand clients that all \
              stop reading cannot take more than 5 GiB.",
};

/// `login_timeout_s`: seconds from connecting to being logged in.
pub const LOGIN_TIMEOUT_S: Setting = Setting {
    key: "login_timeout_s",
    kind: ValueForm::Integer { min: 1, max: 3_600 },
    default: Some("30"),
    what: "Seconds a client has to log in before it is disconnected.",
    because: "it is half of what the server itself allows, so a silent client is met here first.",
};

/// `connect_timeout_s`: seconds to reach the server.
pub const CONNECT_TIMEOUT_S: Setting = Setting {
    key: "connect_timeout_s",
    kind: ValueForm::Integer { min: 1, max: 3_600 },
    default: Some("5"),
    what: "Seconds to wait for the server to accept a connection, TLS included.",
    because: "it leaves room for two lost packets, and clients commonly give up after ten.",
};

/// `drain_timeout_s`: seconds from being told to stop to stopping.
pub const DRAIN_TIMEOUT_S: Setting = Setting {
    key: "drain_timeout_s",
    kind: ValueForm::Integer { min: 0, max: 3_600 },
    default: Some("10"),
    what: "Seconds that running transactions have to finish when the proxy is told to stop.",
    because: "an application's transactions are over by then, and Kubernetes waits 30 seconds and \
              systemd 90 before they kill; under Docker, which waits 10, set it lower.",
};

/// `oracle_per_second`: new shapes asked about each second.
pub const ORACLE_PER_SECOND: Setting = Setting {
    key: "oracle_per_second",
    kind: ValueForm::Integer {
        min: 1,
        max: 1_000_000,
    },
    default: Some("200"),
    what: "How many new shapes the server is asked about each second.",
    because: "asking takes 2 to 3 ms of the server, and what a fresh proxy may ask at once is \
              spread over a few seconds so; from then on questions take 2 % of the time at most.",
};

/// `catalog_watch_ms`: how often the catalog is looked at.
pub const CATALOG_WATCH_MS: Setting = Setting {
    key: "catalog_watch_ms",
    kind: ValueForm::Integer {
        min: 0,
        max: 3_600_000,
    },
    default: Some("1000"),
    what: "How often one session per database looks whether the catalog has changed, in \
           milliseconds; 0 never.",
    because: "a table altered past the proxy is noticed within a second, for one small query a \
              second; where that query is slow it is asked less often.",
};

/// `ddl_notices`: whether changes of the catalog are announced.
pub const DDL_NOTICES: Setting = Setting {
    key: "ddl_notices",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Whether each session listens on the channel pgautoprep_ddl, where an event trigger \
           announces every change of the catalog (see the manual).",
    because: "somebody has to create the event trigger first; with it a table altered past the \
              proxy is noticed at once.",
};

/// `audit`: whether generic plans are proven and proven again.
pub const AUDIT: Setting = Setting {
    key: "audit",
    kind: ValueForm::Switch,
    default: Some("on"),
    what: "Whether generic plans run only while they are seen to be the plans the literals get.",
    because: "a generic plan for the wrong shape can be a thousand times slower.",
};

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    LISTEN,
    UPSTREAM,
    MODE,
    PLANS,
    PREPARE_THRESHOLD,
    WORKERS,
    MAX_CLIENTS,
    MAX_STATEMENTS,
    STATEMENT_MEMORY,
    STATEMENT_MAX_AGE_S,
    MAX_SHAPES,
    MAX_QUERY_BYTES,
    MAX_LITERALS,
    MIN_ARRAY_ROWS,
    BUFFER_BYTES,
    LOGIN_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    WARM_CONNECTIONS,
    POOL_MODE,
    DEFAULT_POOL_SIZE,
    MIN_POOL_SIZE,
    RESERVE_POOL_SIZE,
    RESERVE_POOL_TIMEOUT_S,
    MAX_DB_CONNECTIONS,
    MAX_USER_CONNECTIONS,
    MAX_DB_CLIENT_CONNECTIONS,
    MAX_USER_CLIENT_CONNECTIONS,
    QUERY_WAIT_TIMEOUT_S,
    SERVER_IDLE_TIMEOUT_S,
    SERVER_LIFETIME_S,
    SERVER_FAST_CLOSE,
    CLIENT_IDLE_TIMEOUT_S,
    IDLE_TRANSACTION_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    TRANSACTION_TIMEOUT_S,
    DRAIN_TIMEOUT_S,
    ORACLE_PER_SECOND,
    CATALOG_WATCH_MS,
    DDL_NOTICES,
    AUDIT,
    TRIALS,
    DEFERRED_BEGIN,
    SHARED_READS,
    UNLOCKED_READS,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_CONNECTIONS,
    LOG_DISCONNECTIONS,
    LOG_TAINTS,
    LOG_SLOW_MS,
    UNIX_SOCKET_MODE,
    SO_REUSEPORT,
    TAKEOVER_SOCKET,
    PEERS,
    CLIENT_TLS_SSLMODE,
    CLIENT_TLS_KEY_FILE,
    CLIENT_TLS_CERT_FILE,
    CLIENT_TLS_CA_FILE,
    CLIENT_TLS_PROTOCOLS,
    SERVER_TLS_SSLMODE,
    SERVER_TLS_CA_FILE,
    SERVER_TLS_KEY_FILE,
    SERVER_TLS_CERT_FILE,
    SERVER_TLS_NEGOTIATION,
    AUTH_TYPE,
    AUTH_FILE,
    AUTH_HBA_FILE,
    AUTH_IDENT_FILE,
    AUTH_CERT_NAME,
    AUTH_USER,
    AUTH_QUERY,
    AUTH_DBNAME,
    AUTH_CACHE_S,
    ADMIN_USERS,
    STATS_USERS,
    SWITCHES_FILE,
    HTTP_LISTEN,
    HTTP_PAGE,
];

#[cfg(test)]
mod tests;
