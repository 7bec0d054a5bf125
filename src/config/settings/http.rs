//! The settings about the port for operators.

use super::{Setting, ValueForm};

/// `http_listen`: where operators' programs ask.
pub const HTTP_LISTEN: Setting = Setting {
    key: "http_listen",
    kind: ValueForm::Addresses,
    default: Some(""),
    what: "Where the page for people, /metrics, /status, /healthz and /readyz are answered by \
           HTTP, without TLS and without a password: host:port, or the path of a Unix socket; \
           several may be given. RELOAD changes them as it does those of listen.",
    because: "a port that nobody has asked for is one more to guard.",
};

/// `http_page`: who is shown the page.
pub const HTTP_PAGE: Setting = Setting {
    key: "http_page",
    kind: ValueForm::Choice(&["local", "on", "off"]),
    default: Some("local"),
    what: "Who is shown the page of http_listen, with statements without their values and the \
           names of users and databases: local shows it to who comes from this machine, on to \
           everybody who reaches the port, off to nobody.",
    because: "nobody is asked for a password there, and statements tell more than the counters do \
              that a monitoring system may read from elsewhere.",
};
