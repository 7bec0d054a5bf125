//! The settings about how long clients may do what they do. Their names are `PgBouncer`'s.

use super::{Setting, ValueForm};

/// Any number of seconds up to a day, or none.
const SECONDS: ValueForm = ValueForm::Integer {
    min: 0,
    max: 86_400,
};

/// `client_idle_timeout_s`: how long a client may be idle.
pub const CLIENT_IDLE_TIMEOUT_S: Setting = Setting {
    key: "client_idle_timeout_s",
    kind: SECONDS,
    default: Some("0"),
    what: "Seconds after which a client is disconnected that sends nothing and is in no \
           transaction, in each pool_mode; 0 for never.",
    because: "applications keep idle connections on purpose, and the server's idle_session_timeout \
              says the same; it is PgBouncer's.",
};

/// `idle_transaction_timeout_s`: how long a transaction may be idle.
pub const IDLE_TRANSACTION_TIMEOUT_S: Setting = Setting {
    key: "idle_transaction_timeout_s",
    kind: SECONDS,
    default: Some("0"),
    what: "Seconds after which a client is disconnected that sends nothing in an open transaction; \
           0 for never.",
    because: "what a transaction may wait for is the application's business, and the server's \
              idle_in_transaction_session_timeout says the same; it is PgBouncer's.",
};

/// `query_timeout_s`: how long a query may take.
pub const QUERY_TIMEOUT_S: Setting = Setting {
    key: "query_timeout_s",
    kind: SECONDS,
    default: Some("0"),
    what: "Seconds after which a client is disconnected whose query the server has not answered, \
           or whose answer it has not taken; the query is cancelled; 0 for never. What a query \
           waits for a server connection is for query_wait_timeout_s.",
    because: "reports and migrations take their time, and the server's statement_timeout fails the \
              query alone; it is PgBouncer's.",
};

/// `transaction_timeout_s`: how long a transaction may take.
pub const TRANSACTION_TIMEOUT_S: Setting = Setting {
    key: "transaction_timeout_s",
    kind: SECONDS,
    default: Some("0"),
    what: "Seconds after which a client is disconnected whose transaction is still open; its query \
           is cancelled; 0 for never.",
    because: "it is PgBouncer's; servers before 17 have nothing like it.",
};
