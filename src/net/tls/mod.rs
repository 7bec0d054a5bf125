//! TLS: the files it takes, and connections without their sockets. The only place that names
//! rustls.

mod clients;
mod files;
mod session;

pub use clients::ClientSide;
pub use files::Error;

pub(super) use clients::PROTOCOL;
pub(super) use session::{Session, Transport};
