//! The settings about sockets and other processes of the proxy: who may open the first, and who has
//! them next or beside it.

use super::{Setting, ValueForm};

/// `takeover_socket`: where the next process asks for the sockets listened on.
pub const TAKEOVER_SOCKET: Setting = Setting {
    key: "takeover_socket",
    kind: ValueForm::Text("PATH"),
    default: Some(""),
    what: "Where a process that is started with the same path asks this one for the sockets it \
           listens on, and takes over: new clients are its own, and this one ends when those it \
           has have left.",
    because: "the path has to be one where nobody else can put a socket.",
};

/// `so_reuseport`: whether several processes listen on one port.
pub const SO_REUSEPORT: Setting = Setting {
    key: "so_reuseport",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Let other processes of the same user listen on the same TCP ports, of listen and of \
           http_listen, if they let this one, too: the system spreads new connections over them. \
           Each needs peers, by which cancel requests reach the process that has the client.",
    because: "two proxies on one port by mistake would otherwise go unnoticed; and one process \
              uses all cores by itself.",
};

/// `peers`: other instances that clients reach by the same address.
pub const PEERS: Setting = Setting {
    key: "peers",
    kind: ValueForm::Addresses,
    default: Some(""),
    what: "Other instances of the proxy that clients reach by the same address, such as those \
           behind one load balancer, each by an address of its own: host:port, or the path of a \
           Unix socket; of a name with several addresses, all. A cancel request with a key that \
           this instance has not given to anybody is passed on to them, and goes no further.",
    because: "a client's cancel request is a connection of its own, which may come to any of \
              them. The instance itself may be among them, so all may have the same \
              configuration.",
};

/// `unix_socket_mode`: permissions of the sockets listened on.
pub const UNIX_SOCKET_MODE: Setting = Setting {
    key: "unix_socket_mode",
    kind: ValueForm::Text("OCTAL"),
    default: Some("0777"),
    what: "Permissions, in octal, of the Unix sockets the proxy creates.",
    because: "it is PostgreSQL's own default: who may log in is decided by logging in.",
};
