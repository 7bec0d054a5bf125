//! The keys of a table `[databases.NAME]`. Their names are those of `PgBouncer` and of libpq.

use super::{DATABASE_MAX_CLIENTS, Setting, ValueForm};

/// What the tables are for, for people.
pub const TABLES: &str = "Several servers, only in a file: a table [databases.NAME] for each \
    database that clients may ask for, and [databases.\"*\"] for all others. Without any table all \
    databases are on the server of the setting upstream; with one, a database that no table is for \
    does not exist. All keys of a table may be left out.";

/// `upstream`: where the database is.
pub const DATABASE_UPSTREAM: Setting = Setting {
    key: "upstream",
    kind: ValueForm::Addresses,
    default: None,
    what: "The PostgreSQL server of this database, as the setting of that name has it, or several: \
           a new session takes the first that can be reached and fits target_session_attrs.",
    because: "most have one server for all databases; without it the setting of that name holds.",
};

/// `dbname`: what the database is called there.
pub const DATABASE_DBNAME: Setting = Setting {
    key: "dbname",
    kind: ValueForm::Text("NAME"),
    default: None,
    what: "What the database is called on the server.",
    because: "a name that means something else on the server would surprise; without it the \
              database is called there what the client calls it.",
};

/// `user`: as whom the proxy logs in.
pub const DATABASE_USER: Setting = Setting {
    key: "user",
    kind: ValueForm::Text("NAME"),
    default: None,
    what: "The user as whom the proxy logs in for all clients of this database, whose password or \
           MD5 hash is the table's password or stands in auth_file, unless the server asks for \
           none; not with auth_type = relay.",
    because: "who somebody is should not change on the way; without it the proxy logs in as the \
              user that the client is.",
};

/// `password`: by what the proxy logs in.
pub const DATABASE_PASSWORD: Setting = Setting {
    key: "password",
    kind: ValueForm::Text("PASSWORD"),
    default: None,
    what: "The password of that user, or its MD5 hash, on this database's server. Neither check \
           nor the console shows it.",
    because: "secrets are better kept in one file that only the proxy may read; without it what \
              auth_file has of the user holds. Two servers whose user has two passwords need it.",
};

/// `auth_user`: who asks for the secrets of those who come to this database.
pub const DATABASE_AUTH_USER: Setting = Setting {
    key: "auth_user",
    kind: ValueForm::Text("NAME"),
    default: None,
    what: "The user that runs auth_query for clients of this database whom auth_file does not \
           name.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `auth_query`: how they are asked for.
pub const DATABASE_AUTH_QUERY: Setting = Setting {
    key: "auth_query",
    kind: ValueForm::Text("SQL"),
    default: None,
    what: "What is asked for the secret of such a client, whose name is $1.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `auth_dbname`: where they are asked for.
pub const DATABASE_AUTH_DBNAME: Setting = Setting {
    key: "auth_dbname",
    kind: ValueForm::Text("NAME"),
    default: None,
    what: "The database in which that is asked, as clients call it: this one, or another.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `target_session_attrs`: which servers fit.
pub const TARGET_SESSION_ATTRS: Setting = Setting {
    key: "target_session_attrs",
    kind: ValueForm::Choice(&[
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ]),
    default: Some("any"),
    what: "Which of the servers fit, as libpq has it: any, those where a session may write \
           (read-write) or may not (read-only), those that are no standby (primary) or are one \
           (standby), or a standby if there is one (prefer-standby); not with auth_type = relay, \
           except for any.",
    because: "it is libpq's default, and with one server there is nothing to choose.",
};

/// `load_balance_hosts`: in which order they are tried.
pub const LOAD_BALANCE_HOSTS: Setting = Setting {
    key: "load_balance_hosts",
    kind: ValueForm::Choice(&["disable", "random"]),
    default: Some("disable"),
    what: "disable tries the servers in the order in which they stand; random tries them, and the \
           addresses of each name, in another order for each session.",
    because: "it is libpq's default.",
};

/// `pool_mode`: for how long a client of this database keeps its server connection.
pub const DATABASE_POOL_MODE: Setting = Setting {
    key: "pool_mode",
    kind: ValueForm::Choice(&["session", "auto"]),
    default: None,
    what: "For how long a client keeps its server connection, as the setting of that name has it.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `pool_size`: the size of a pool of this database.
pub const DATABASE_POOL_SIZE: Setting = Setting {
    key: "pool_size",
    kind: ValueForm::Integer { min: 1, max: 1_000 },
    default: None,
    what: "The most server connections of one user to this database, in each pool_mode; whoever \
           comes when there are as many waits until one has gone, or with auto until a client is \
           idle, for query_wait_timeout_s at most.",
    because: "most have one for all databases; without it default_pool_size holds with auto, and \
              with session there may be any number: a program that keeps its connections should \
              not wait for one unless somebody has said so.",
};

/// `min_pool_size`: how many server connections a pool of this database has in any case.
pub const DATABASE_MIN_POOL_SIZE: Setting = Setting {
    key: "min_pool_size",
    kind: ValueForm::Integer { min: 0, max: 1_000 },
    default: None,
    what: "How many server connections of one user to this database stay open in any case.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `reserve_pool_size`: what a pool of this database may have beyond its size.
pub const DATABASE_RESERVE_POOL_SIZE: Setting = Setting {
    key: "reserve_pool_size",
    kind: ValueForm::Integer { min: 0, max: 1_000 },
    default: None,
    what: "How many more one may have once somebody has waited for long.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// `max_db_connections`: the most server connections to this database.
pub const DATABASE_MAX_CONNECTIONS: Setting = Setting {
    key: "max_db_connections",
    kind: ValueForm::Integer {
        min: 0,
        max: 100_000,
    },
    default: None,
    what: "The most server connections of all users together to this database; 0 for any number.",
    because: "most have one for all databases; without it the setting of that name holds.",
};

/// All keys of a table, in the order in which they are shown.
pub const DATABASE_KEYS: &[Setting] = &[
    DATABASE_UPSTREAM,
    DATABASE_DBNAME,
    DATABASE_USER,
    DATABASE_PASSWORD,
    DATABASE_AUTH_USER,
    DATABASE_AUTH_QUERY,
    DATABASE_AUTH_DBNAME,
    TARGET_SESSION_ATTRS,
    LOAD_BALANCE_HOSTS,
    DATABASE_POOL_MODE,
    DATABASE_POOL_SIZE,
    DATABASE_MIN_POOL_SIZE,
    DATABASE_RESERVE_POOL_SIZE,
    DATABASE_MAX_CONNECTIONS,
    DATABASE_MAX_CLIENTS,
];
