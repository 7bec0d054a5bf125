//! What the settings of `PgBouncer` are here.

/// Settings that have the same name and the same values here.
pub(super) const SAME: [&str; 29] = [
    "admin_users",
    "auth_dbname",
    "auth_file",
    "auth_hba_file",
    "auth_ident_file",
    "auth_query",
    "auth_type",
    "auth_user",
    "client_tls_ca_file",
    "client_tls_cert_file",
    "client_tls_key_file",
    "client_tls_sslmode",
    "default_pool_size",
    "log_connections",
    "log_disconnections",
    "max_db_client_connections",
    "max_db_connections",
    "max_user_client_connections",
    "max_user_connections",
    "min_pool_size",
    "reserve_pool_size",
    "server_fast_close",
    "server_tls_ca_file",
    "server_tls_cert_file",
    "server_tls_key_file",
    "server_tls_sslmode",
    "so_reuseport",
    "stats_users",
    "unix_socket_mode",
];

/// Settings that are not here, and what is done in their stead.
pub(super) const OTHERWISE: [(&str, &str); 13] = [
    ("server_reset_query", RESET),
    ("server_reset_query_always", RESET),
    ("server_check_query", LISTENED),
    ("server_check_delay", LISTENED),
    (
        "ignore_startup_parameters",
        "is not needed: all parameters go to the server, which knows them",
    ),
    (
        "server_login_retry",
        "is not needed: a server that could not be reached is tried for each login, and for who \
         waits for a connection after a second at most",
    ),
    (
        "max_prepared_statements",
        "is not needed: a client that prepares statements itself keeps its server connection",
    ),
    (
        "peer_id",
        "is not needed: cancel requests that nobody here knows go to all of peers, which may name \
         this instance, too",
    ),
    ("logfile", STARTED),
    ("pidfile", STARTED),
    ("syslog", STARTED),
    ("user", STARTED),
    ("job_name", STARTED),
];

const RESET: &str = "is not needed: what a client leaves is known, and taken back; what cannot be \
                     taken back ends with the connection";
const LISTENED: &str = "is not needed: connections without a client are listened to, and go as \
                        soon as the server says anything";
const STARTED: &str = "is for whoever starts the program: the log is on standard error";

/// What a database may have there and not here, and what is done in its stead.
pub(super) const OF_DATABASES: [(&str, &str); 4] = [
    ("connect_query", SESSIONS),
    ("client_encoding", SESSIONS),
    ("datestyle", SESSIONS),
    ("timezone", SESSIONS),
];

const SESSIONS: &str = "has no equivalent: a session begins as it does directly; ALTER DATABASE or \
                        ALTER ROLE … SET has it begin otherwise";

/// Who asks for users: what a database may have, there as here.
pub(super) const ASKERS: [&str; 3] = ["auth_user", "auth_query", "auth_dbname"];

/// Settings that have another name here.
pub(super) const RENAMED: [(&str, &str); 11] = [
    ("client_idle_timeout", "client_idle_timeout_s"),
    ("idle_transaction_timeout", "idle_transaction_timeout_s"),
    ("query_timeout", "query_timeout_s"),
    ("transaction_timeout", "transaction_timeout_s"),
    ("reserve_pool_timeout", "reserve_pool_timeout_s"),
    ("query_wait_timeout", "query_wait_timeout_s"),
    ("server_idle_timeout", "server_idle_timeout_s"),
    ("server_lifetime", "server_lifetime_s"),
    ("max_client_conn", "max_clients"),
    ("client_login_timeout", "login_timeout_s"),
    ("server_connect_timeout", "connect_timeout_s"),
];

/// Defaults that are others here: what is said of them, and our name of the setting.
pub(super) const DEFAULTS: [(&str, &str); 6] = [
    ("max_client_conn = 100", "max_clients"),
    ("server_idle_timeout = 600", "server_idle_timeout_s"),
    ("client_login_timeout = 60", "login_timeout_s"),
    ("server_connect_timeout = 15", "connect_timeout_s"),
    ("log_connections = 1", "log_connections"),
    ("log_disconnections = 1", "log_disconnections"),
];
