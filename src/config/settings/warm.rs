//! The settings about warm connections and pools. Their names are `PgBouncer`'s where it has such a
//! one.

use super::{Setting, ValueForm};

/// `warm_connections`: whether server connections outlive their clients.
pub const WARM_CONNECTIONS: Setting = Setting {
    key: "warm_connections",
    kind: ValueForm::Switch,
    default: Some("on"),
    what: "A server connection in which nothing is left of its client serves the next client that \
           logs in with the same startup packet, with the statements prepared in it.",
    because: "an application that connects for each request would else pay for a login and for a \
              Parse of each statement every time; it is done only where the server lets everybody \
              in who claims the identity, which is seen from its answers.",
};

/// `pool_mode`: for how long a client keeps its server connection.
pub const POOL_MODE: Setting = Setting {
    key: "pool_mode",
    kind: ValueForm::Choice(&["session", "auto"]),
    default: Some("session"),
    what: "session leaves a client its server connection until it leaves; auto gives it to whoever \
           waits for one while the client is idle outside a transaction and has left nothing in \
           its session that it could miss.",
    because: "with auto a few things can be noticed that the manual lists (a session's process, \
              a server that restarts), so it is for whoever needs fewer server connections than \
              clients.",
};

/// `query_wait_timeout_s`: how long a client waits for a server connection.
pub const QUERY_WAIT_TIMEOUT_S: Setting = Setting {
    key: "query_wait_timeout_s",
    kind: ValueForm::Integer {
        min: 0,
        max: 86_400,
    },
    default: Some("120"),
    what: "Seconds that a client waits for a server connection with pool_mode = auto before it is \
           disconnected; 0 for as long as it takes.",
    because: "it is PgBouncer's.",
};

/// `default_pool_size`: warm connections of one identity, or the size of a pool.
pub const DEFAULT_POOL_SIZE: Setting = Setting {
    key: "default_pool_size",
    kind: ValueForm::Integer { min: 1, max: 1_000 },
    default: Some("20"),
    what: "With pool_mode = auto the most server connections of one user to one database; else \
           the most that wait for a client of one identity, and of all identities together twice \
           as many do.",
    because: "it is PgBouncer's, and leaves more than half of the server's usual 100 to others.",
};

/// `min_pool_size`: how many server connections a pool has also when nobody needs them.
pub const MIN_POOL_SIZE: Setting = Setting {
    key: "min_pool_size",
    kind: ValueForm::Integer { min: 0, max: 1_000 },
    default: Some("0"),
    what: "So many server connections of one user to one database stay open when nobody needs \
           them, and are opened anew when they end, as long as a client of them has been there \
           within server_lifetime_s; the last of these is who is logged in.",
    because: "it is PgBouncer's: clients that come while others do wait for no login although the \
              sessions before theirs could not be kept; it costs the server's memory meanwhile.",
};

/// `server_fast_close`: whether RECONNECT waits for clients that keep their connections.
pub const SERVER_FAST_CLOSE: Setting = Setting {
    key: "server_fast_close",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Whether RECONNECT, and a RELOAD that leads a database elsewhere, end a client that \
           keeps its server connection as soon as it is outside a transaction, and not only its \
           connection once it has left.",
    because: "it is PgBouncer's: who is ended has to log in again, and not all programs do.",
};

/// `reserve_pool_size`: what a pool may have beyond its size.
pub const RESERVE_POOL_SIZE: Setting = Setting {
    key: "reserve_pool_size",
    kind: ValueForm::Integer { min: 0, max: 1_000 },
    default: Some("0"),
    what: "The server connections that a pool with a size may have beyond it once somebody \
           has waited for reserve_pool_timeout_s.",
    because: "it is PgBouncer's.",
};

/// `reserve_pool_timeout_s`: when a pool may have more.
pub const RESERVE_POOL_TIMEOUT_S: Setting = Setting {
    key: "reserve_pool_timeout_s",
    kind: ValueForm::Integer {
        min: 0,
        max: 86_400,
    },
    default: Some("5"),
    what: "Seconds that somebody has waited for a server connection before reserve_pool_size \
           counts.",
    because: "it is PgBouncer's.",
};

/// `max_db_connections`: the most server connections to a database.
pub const MAX_DB_CONNECTIONS: Setting = Setting {
    key: "max_db_connections",
    kind: ValueForm::Integer {
        min: 0,
        max: 100_000,
    },
    default: Some("0"),
    what: "The most server connections of all users together to one database, as clients call it, \
           in each pool_mode; whoever comes when there are as many waits until one has gone, for \
           query_wait_timeout_s at most. 0 for any number.",
    because: "it is PgBouncer's: the server itself refuses what is too much.",
};

/// `max_user_connections`: the most server connections of a user.
pub const MAX_USER_CONNECTIONS: Setting = Setting {
    key: "max_user_connections",
    kind: ValueForm::Integer {
        min: 0,
        max: 100_000,
    },
    default: Some("0"),
    what: "The same of one user to all databases together, by the name it has at the server.",
    because: "it is PgBouncer's.",
};

/// `server_idle_timeout_s`: how long a server connection waits for a client.
pub const SERVER_IDLE_TIMEOUT_S: Setting = Setting {
    key: "server_idle_timeout_s",
    kind: ValueForm::Integer {
        min: 1,
        max: 86_400,
    },
    default: Some("60"),
    what: "Seconds that a server connection waits for another client before it is closed.",
    because: "whoever reconnects for each request does so sooner; one that waits takes the \
              server's memory, and a place among its max_connections.",
};

/// `server_lifetime_s`: how old a server connection may become.
pub const SERVER_LIFETIME_S: Setting = Setting {
    key: "server_lifetime_s",
    kind: ValueForm::Integer {
        min: 0,
        max: 604_800,
    },
    default: Some("3600"),
    what: "Seconds after its login from which a server connection is closed when its client \
           leaves, less a tenth at most that differs from one to another; 0 for never.",
    because: "the memory of a server process only grows, and an hour makes the login that follows \
              cost nothing; it is PgBouncer's default.",
};
