//! The keys of a table `[users.NAME]`. Their names are those of `PgBouncer`.

use super::{Setting, ValueForm};

/// What the tables are for, for people.
pub const USER_TABLES: &str = "What holds for some users and not for all, only in a file: a table \
    [users.NAME] for each of them. It goes before what their databases say. All keys of a table \
    may be left out.";

/// `pool_mode`: for how long clients of this user keep their server connections.
pub const USER_POOL_MODE: Setting = Setting {
    key: "pool_mode",
    kind: ValueForm::Choice(&["session", "auto"]),
    default: None,
    what: "For how long a client of this user keeps its server connection, as the setting of that \
           name has it.",
    because: "most users are as all others of their database; without it what that says holds.",
};

/// `pool_size`: the size of a pool of this user.
pub const USER_POOL_SIZE: Setting = Setting {
    key: "pool_size",
    kind: ValueForm::Integer { min: 1, max: 1_000 },
    default: None,
    what: "The most server connections of this user to each database, in each pool_mode.",
    because: "most users are as all others of their database; without it its pool_size holds, or \
              default_pool_size with auto.",
};

/// `reserve_pool_size`: what a pool of this user may have beyond its size.
pub const USER_RESERVE_POOL_SIZE: Setting = Setting {
    key: "reserve_pool_size",
    kind: ValueForm::Integer { min: 0, max: 1_000 },
    default: None,
    what: "How many more there may be once somebody has waited for long.",
    because: "most users are as all others of their database; without it what that says holds.",
};

/// `max_user_connections`: the most server connections of this user.
pub const USER_MAX_CONNECTIONS: Setting = Setting {
    key: "max_user_connections",
    kind: ValueForm::Integer {
        min: 0,
        max: 100_000,
    },
    default: None,
    what: "The most server connections of this user to all databases together; 0 for any number.",
    because: "most have one for all users; without it the setting of that name holds.",
};

/// `max_user_client_connections`: the most clients of this user.
pub const USER_MAX_CLIENTS: Setting = Setting {
    key: "max_user_client_connections",
    kind: ValueForm::Integer {
        min: 0,
        max: 1_000_000,
    },
    default: None,
    what: "The most clients of this user at all databases together; 0 for any number.",
    because: "most have one for all users; without it the setting of that name holds.",
};

/// All keys of a table, in the order in which they are shown.
pub const USER_KEYS: &[Setting] = &[
    USER_POOL_MODE,
    USER_POOL_SIZE,
    USER_RESERVE_POOL_SIZE,
    USER_MAX_CONNECTIONS,
    USER_MAX_CLIENTS,
];
