//! TLS: the files it takes, and connections without their sockets. The only place that names
//! rustls.

mod binding;
mod clients;
mod der;
mod expiry;
mod fields;
mod files;
mod listed;
mod names;
mod old;
mod servers;
mod tunnel;
mod verify;
mod waiting;

#[cfg(test)]
mod tunnel_tests;

pub use files::Error;
pub use waiting::{Conversation, encrypt};

use crate::config::Config;

pub(super) use clients::{ClientSide, ClientTerms, PROTOCOL};
pub(super) use servers::ServerSide;
use servers::ServerTerms;
pub(super) use tunnel::{Transport, Tunnel};

/// What was read of the files, and is not in force yet.
#[derive(Debug)]
pub(super) struct ReadAgain {
    clients: ClientTerms,
    servers: ServerTerms,
}

/// What TLS takes on both sides of the proxy.
#[derive(Debug)]
pub struct Encryption {
    pub(super) clients: ClientSide,
    pub(super) servers: ServerSide,
}

impl Encryption {
    /// Reads the files that the configuration names.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn load(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            clients: ClientSide::load(&config.client_tls)?,
            servers: ServerSide::load(config)?,
        })
    }

    /// Reads the files that this configuration names, for connections to come. What was read before
    /// stays in force until this is installed.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub(super) fn read(config: &Config) -> Result<ReadAgain, Error> {
        Ok(ReadAgain {
            clients: ClientTerms::read(&config.client_tls)?,
            servers: ServerTerms::read(config)?,
        })
    }

    /// Has connections to come use what was read.
    pub(super) fn install(&self, read: ReadAgain) {
        self.clients.install(read.clients);
        self.servers.install(read.servers);
    }

    /// Whether there is TLS on either side.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.clients.terms().is_offered() || self.servers.terms().is_used()
    }
}
