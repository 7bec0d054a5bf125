//! Where the databases are that clients ask for: the tables `[databases.NAME]`, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::password::Password;
use super::settings::{
    DATABASE_DBNAME, DATABASE_MAX_CLIENTS, DATABASE_MAX_CONNECTIONS, DATABASE_MIN_POOL_SIZE,
    DATABASE_PASSWORD, DATABASE_POOL_MODE, DATABASE_POOL_SIZE, DATABASE_RESERVE_POOL_SIZE,
    DATABASE_UPSTREAM, DATABASE_USER, LOAD_BALANCE_HOSTS, TARGET_SESSION_ATTRS,
};
use super::sizes::Sizes;
use super::tables::{FALLBACK, SOMETHING_ELSE, TableKind, WrittenTable};
use super::{Address, AddressError, AuthType, Config, Effective, Error};

/// Which sessions fit, with libpq's meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionAttrs {
    /// All.
    Any,
    /// Those that may write.
    ReadWrite,
    /// Those that may not.
    ReadOnly,
    /// Those of a server that is no standby.
    Primary,
    /// Those of a standby.
    Standby,
    /// Those of a standby; any if there is none.
    PreferStandby,
}

/// Where a database leads that clients ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The addresses of its servers: at least one, and no two equal.
    pub addresses: Vec<Address>,
    /// What it is called there, unless that is what the client calls it.
    pub dbname: Option<String>,
    /// As whom the proxy logs in, unless that is the user that the client is.
    pub user: Option<String>,
    /// By what, if that is not for the file of users to say. Only where there is a user.
    pub password: Option<Password>,
    /// Which sessions fit.
    pub attrs: SessionAttrs,
    /// Whether the servers are tried in another order for each session.
    pub is_balanced: bool,
    /// How many server connections it may have.
    pub sizes: Sizes,
}

impl Destination {
    /// Whether a server connection to this is as good as one to the other, however many there may
    /// be.
    #[must_use]
    pub fn leads_like(&self, other: &Self) -> bool {
        let this = Self {
            sizes: other.sizes,
            ..self.clone()
        };
        this == *other
    }

    /// Whether its server connections belong to pools, as far as that is its own to say.
    #[must_use]
    pub const fn is_pooled(&self) -> bool {
        let Sizes {
            pool, least, most, ..
        } = self.sizes;
        pool.is_some() || least > 0 || most > 0
    }
}

/// Where each database leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseMap {
    named: BTreeMap<String, Arc<Destination>>,
    fallback: Option<Arc<Destination>>,
}

impl DatabaseMap {
    /// All databases are on this server.
    pub(super) fn of(upstream: Address, sizes: Sizes) -> Self {
        let destination = Destination {
            addresses: vec![upstream],
            dbname: None,
            user: None,
            password: None,
            attrs: SessionAttrs::Any,
            is_balanced: false,
            sizes,
        };
        Self {
            named: BTreeMap::new(),
            fallback: Some(Arc::new(destination)),
        }
    }

    /// Where the database of this name leads; `None` if there is none.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Destination>> {
        let name = std::str::from_utf8(name).ok();
        let named = name.and_then(|name| self.named.get(name));
        named.or(self.fallback.as_ref())
    }

    /// Those that have a name of their own.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Arc<Destination>)> {
        self.named.iter().map(|(name, it)| (name.as_str(), it))
    }

    /// Where all others lead, if they lead somewhere.
    #[must_use]
    pub const fn fallback(&self) -> Option<&Arc<Destination>> {
        self.fallback.as_ref()
    }

    /// All that somebody can be led to, those that have a name first.
    pub fn destinations(&self) -> impl Iterator<Item = &Arc<Destination>> {
        self.named.values().chain(&self.fallback)
    }

    /// The size of the largest pool of clients that give their connections back, if there are any.
    #[must_use]
    pub fn largest_pool(&self) -> Option<usize> {
        let sizes = self.destinations().map(|it| it.sizes);
        let sizes = sizes.filter(|sizes| sizes.gives_back);
        sizes.filter_map(|sizes| sizes.pool).max()
    }

    /// The addresses of all servers, each once.
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        let mut all: Vec<Address> = Vec::new();
        for address in self.destinations().flat_map(|it| &it.addresses) {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        all
    }
}

/// The table of a database.
struct DatabaseTable<'t>(&'t WrittenTable);

impl DatabaseTable<'_> {
    /// By what the proxy logs in. No error shows it.
    fn password(&self) -> Result<Option<Password>, Error> {
        let Some(text) = self.0.text(&DATABASE_PASSWORD) else {
            return Ok(None);
        };
        let refuse = |expected| self.0.refuse(&DATABASE_PASSWORD, expected, SOMETHING_ELSE);
        if self.0.written(&DATABASE_USER).is_none() {
            return Err(refuse("a user beside it, whose password it is"));
        }
        let password = Password::read(text);
        let expected = "a password or its MD5 hash; by a SCRAM secret nobody can log in";
        password.map(Some).ok_or_else(|| refuse(expected))
    }

    fn addresses(&self, usual: Option<&Address>) -> Result<Vec<Address>, Error> {
        let key = &DATABASE_UPSTREAM;
        let Some(written) = self.0.written(key) else {
            let usual = usual.cloned().map(|usual| vec![usual]);
            let expected = "an upstream here, or one for all databases";
            return usual.ok_or_else(|| self.0.refuse(key, expected, "none"));
        };
        let mut addresses = Vec::new();
        for text in &written.items {
            let refused = |expected: &str| self.0.refuse(key, expected, &format!("{text:?}"));
            let address = server_address(text).map_err(|expected| refused(&expected))?;
            if addresses.contains(&address) {
                return Err(refused("each address once"));
            }
            addresses.push(address);
        }
        match addresses.is_empty() {
            true => Err(self.0.refuse(key, "at least one address", "none")),
            false => Ok(addresses),
        }
    }

    /// How many server connections it may have, where it does not say so what is `usual`, or
    /// `default_size` for clients that give them back.
    fn sizes(&self, usual: Sizes, default_size: usize) -> Result<Sizes, Error> {
        let gives_back = match self.0.written(&DATABASE_POOL_MODE) {
            Some(_) => self.0.choice(&DATABASE_POOL_MODE)? == super::pools::AUTO,
            None => usual.gives_back,
        };
        // A program that keeps its connections does not wait for one because of a default.
        let default_size = gives_back.then_some(default_size);
        let pool = self.0.count(&DATABASE_POOL_SIZE)?.or(default_size);
        let least = self.0.count(&DATABASE_MIN_POOL_SIZE)?;
        let reserve = self.0.count(&DATABASE_RESERVE_POOL_SIZE)?;
        let most = self.0.count(&DATABASE_MAX_CONNECTIONS)?;
        let clients = self.0.count(&DATABASE_MAX_CLIENTS)?;
        Ok(Sizes {
            pool,
            gives_back,
            least: least.unwrap_or(usual.least),
            reserve: reserve.unwrap_or(usual.reserve),
            most: most.unwrap_or(usual.most),
            clients: clients.unwrap_or(usual.clients),
        })
    }

    /// Where it leads; `usual` is where it does if it does not say.
    fn destination(&self, usual: Option<&Address>, sizes: Sizes) -> Result<Destination, Error> {
        Ok(Destination {
            addresses: self.addresses(usual)?,
            dbname: self.0.name_of(&DATABASE_DBNAME)?,
            user: self.0.name_of(&DATABASE_USER)?,
            password: self.password()?,
            attrs: match self.0.choice(&TARGET_SESSION_ATTRS)? {
                "read-write" => SessionAttrs::ReadWrite,
                "read-only" => SessionAttrs::ReadOnly,
                "primary" => SessionAttrs::Primary,
                "standby" => SessionAttrs::Standby,
                "prefer-standby" => SessionAttrs::PreferStandby,
                _ => SessionAttrs::Any,
            },
            is_balanced: self.0.choice(&LOAD_BALANCE_HOSTS)? == "random",
            sizes,
        })
    }

    /// Refuses what logins that are relayed cannot have.
    fn check_relay(&self, destination: &Destination) -> Result<(), Error> {
        if destination.user.is_some() {
            let expected = "no user with auth_type = relay, where the client itself logs in to \
                            the server";
            let found = format!("{:?}", self.0.text(&DATABASE_USER).unwrap_or_default());
            return Err(self.0.refuse(&DATABASE_USER, expected, &found));
        }
        if destination.attrs != SessionAttrs::Any {
            let expected = "any with auth_type = relay, where a client that has logged in cannot \
                            be sent to another server";
            let found = format!(
                "{:?}",
                self.0.text(&TARGET_SESSION_ATTRS).unwrap_or_default()
            );
            return Err(self.0.refuse(&TARGET_SESSION_ATTRS, expected, &found));
        }
        Ok(())
    }
}

/// The address of a server; a directory stands for the server's usual socket in it.
///
/// # Errors
/// What was expected instead.
pub(super) fn server_address(text: &str) -> Result<Address, String> {
    const PORT: &str = "a port from 1 to 65535";
    let address = text.parse().map_err(|error| match error {
        // Only one to listen at is chosen by the system.
        AddressError::Port => PORT.to_owned(),
        error => error.to_string(),
    })?;
    match address {
        Address::Tcp { port: 0, .. } => Err(PORT.to_owned()),
        Address::Unix(path) if text.ends_with('/') || path.is_dir() => {
            Ok(Address::Unix(path.join(".s.PGSQL.5432")))
        }
        address => Ok(address),
    }
}

impl Config {
    /// The servers, for people.
    #[must_use]
    pub fn shown_servers(&self) -> String {
        let servers = self.databases.addresses();
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        servers.join(", ")
    }
}

impl Effective {
    /// The tables of databases as they were written, in the order of their names.
    pub(super) fn databases(&self) -> Vec<&WrittenTable> {
        let tables = self.tables().iter();
        tables.filter(|it| it.kind == TableKind::Database).collect()
    }

    /// Where each database leads: to `upstream`, unless there are tables.
    pub(super) fn database_map(&self, config: &Config) -> Result<DatabaseMap, Error> {
        let (upstream, kind) = (config.upstream.as_ref(), config.auth.kind);
        let written = self.databases();
        let sizes = self.usual_sizes(config)?;
        if let (true, Some(upstream)) = (written.is_empty(), upstream) {
            return Ok(DatabaseMap::of(upstream.clone(), sizes));
        }
        let mut map = DatabaseMap::default();
        for table in written {
            let database = DatabaseTable(table);
            let sizes = database.sizes(sizes, config.default_pool_size)?;
            let destination = database.destination(upstream, sizes)?;
            if kind == AuthType::Relay {
                database.check_relay(&destination)?;
            }
            let destination = Arc::new(destination);
            match table.name == FALLBACK {
                true => map.fallback = Some(destination),
                false => drop(map.named.insert(table.name.clone(), destination)),
            }
        }
        Ok(map)
    }
}

#[cfg(test)]
#[path = "databases_tests.rs"]
mod tests;
