//! The settings about the log: how its lines look, and which there are. Those about clients have
//! `PgBouncer`'s names.

use super::{Setting, ValueForm};

/// `log_format`: how log lines look.
pub const LOG_FORMAT: Setting = Setting {
    key: "log_format",
    kind: ValueForm::Choice(&["text", "json"]),
    default: Some("text"),
    what: "How log lines on standard error look: text or json.",
    because: "people read it first; collectors can be told.",
};

/// `log_level`: which log lines are written.
pub const LOG_LEVEL: Setting = Setting {
    key: "log_level",
    kind: ValueForm::Text("FILTER"),
    default: Some("info"),
    what: "What is logged: off, error, warn, info, debug or trace, or a filter such as \
           info,pgautoprep::net=debug.",
    because: "it says when the proxy starts, stops or meets trouble, and nothing per query.",
};

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

/// `log_taints`: a line for each session that is tainted.
pub const LOG_TAINTS: Setting = Setting {
    key: "log_taints",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Log a line when a session comes to hold what nothing takes away, so that its server \
           connection can serve no other client: by which statement, as a shape without values.",
    because: "an application that leaves something each time would have a line for each session.",
};

/// `log_slow_ms`: a line for each statement that takes long.
pub const LOG_SLOW_MS: Setting = Setting {
    key: "log_slow_ms",
    kind: ValueForm::Integer {
        min: 0,
        max: 86_400_000,
    },
    default: Some("0"),
    what: "Log a line for each simple query that takes at least so many milliseconds, with its \
           shape, which has no values; 0 logs none.",
    because: "what is slow is for whoever knows the application to say.",
};
