//! What the proxy is measured and tried with: scratch servers, clients of this program's own, and
//! the load that `bench` and `demo` put on a server.
//!
//! Nothing here is part of the proxy, which knows nothing of it; what is measured runs as a process
//! of its own. The commands `bench` and `demo` are here with their arguments, and the command line
//! only hands over to them.

pub mod bench;
pub mod demo;
mod load;
pub(crate) mod login;
pub(crate) mod markup;
pub mod postgres;
