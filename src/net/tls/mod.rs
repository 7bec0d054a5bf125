//! TLS: the files it takes, and connections without their sockets. The only place that names
//! rustls.

mod binding;
mod clients;
mod der;
mod files;
mod servers;
mod tunnel;
mod verify;

#[cfg(test)]
mod tunnel_tests;

pub use files::Error;

use crate::config::Config;

pub(super) use clients::{ClientSide, PROTOCOL};
pub(super) use servers::ServerSide;
pub(super) use tunnel::{Transport, Tunnel};

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

    /// Reads the files again, for connections to come. If one cannot be used, what was read before
    /// stays in force, all of it.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn reload(&self) -> Result<(), Error> {
        let (clients, servers) = (self.clients.read()?, self.servers.read()?);
        self.clients.install(clients);
        self.servers.install(servers);
        Ok(())
    }

    /// Whether there is TLS on either side.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.clients.is_offered() || self.servers.is_used()
    }
}
