//! The settings about which lines are logged. Their names are `PgBouncer`'s.

use super::{Setting, ValueForm};

/// `log_connections`: a line for each login.
pub const LOG_CONNECTIONS: Setting = Setting {
    key: "log_connections",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Log a line for each client that asks to log in: which user to which database, from \
           where, and how it is encrypted.",
    because: "PostgreSQL's is off, too, and an application that connects for each request would \
              have most of the log to itself.",
};

/// `log_disconnections`: a line for each end.
pub const LOG_DISCONNECTIONS: Setting = Setting {
    key: "log_disconnections",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Log a line for each client that ends: why, after how many seconds, and how many \
           queries it has sent.",
    because: "as for log_connections.",
};
