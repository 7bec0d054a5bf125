//! How many clients there may be.

use super::{Setting, ValueForm};

/// Any number up to this.
const SOME: ValueForm = ValueForm::Integer {
    min: 0,
    max: 1_000_000,
};

/// `max_clients`: connections at once.
pub const MAX_CLIENTS: Setting = Setting {
    key: "max_clients",
    kind: ValueForm::Integer {
        min: 1,
        max: 1_000_000,
    },
    default: Some("10000"),
    what: "How many clients may be connected at once; who has not said who it is, or has yet to \
           prove that, makes room for the next; if nobody has, that is refused.",
    because: "hardly a server accepts as many, so its own limit speaks first; this one bounds the \
              proxy's memory and its two file descriptors per client.",
};

/// `max_db_client_connections`: the most clients of a database.
pub const MAX_DB_CLIENT_CONNECTIONS: Setting = Setting {
    key: "max_db_client_connections",
    kind: SOME,
    default: Some("0"),
    what: "The most clients at one database, as they call it; who comes when there are as many is \
           refused with SQLSTATE 53300. 0 for any number.",
    because: "it is PgBouncer's.",
};

/// `max_user_client_connections`: the most clients of a user.
pub const MAX_USER_CLIENT_CONNECTIONS: Setting = Setting {
    key: "max_user_client_connections",
    kind: SOME,
    default: Some("0"),
    what: "The same of one user at all databases together, by the name that the client gives.",
    because: "it is PgBouncer's.",
};

/// `max_db_client_connections`: the most clients of this database.
pub const DATABASE_MAX_CLIENTS: Setting = Setting {
    key: "max_db_client_connections",
    kind: SOME,
    default: None,
    what: "The most clients of all users together at this database; 0 for any number.",
    because: "most have one for all databases; without it the setting of that name holds.",
};
