//! Where the databases are that clients ask for: the tables `[databases.NAME]`, checked.

mod reading;

pub(super) use reading::read;

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Value;

use super::password::{NOT_SHOWN, Password};
use super::raw::{DATABASES, Source, Written};
use super::settings::{
    DATABASE_DBNAME, DATABASE_MAX_CONNECTIONS, DATABASE_MIN_POOL_SIZE, DATABASE_PASSWORD,
    DATABASE_POOL_MODE, DATABASE_POOL_SIZE, DATABASE_RESERVE_POOL_SIZE, DATABASE_UPSTREAM,
    DATABASE_USER, LOAD_BALANCE_HOSTS, Setting, TARGET_SESSION_ATTRS,
};
use super::sizes::Sizes;
use super::{Address, AddressError, AuthType, Config, Effective, Error};

/// The name of the table for all databases that no other is for.
pub const FALLBACK: &str = "*";

/// The longest name of the server's, in bytes: it would cut a longer one.
const MAX_NAME: usize = 63;

/// What is said to be found where that may be a secret.
const SOMETHING_ELSE: &str = "something else";

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

/// A table as it was written.
#[derive(Debug, Clone)]
pub struct WrittenDatabase {
    /// The database's name, or [`FALLBACK`].
    pub name: String,
    /// Where its table is.
    pub place: Source,
    /// What it says.
    pub keys: Vec<(Setting, Written)>,
}

impl WrittenDatabase {
    fn written(&self, key: &Setting) -> Option<&Written> {
        let found = self.keys.iter().find(|(known, _)| known.key == key.key);
        found.map(|(_, written)| written)
    }

    /// The text of a key that has one.
    pub(super) fn text(&self, key: &Setting) -> Option<&str> {
        let written = self.written(key)?;
        written.items.first().map(String::as_str)
    }

    pub(super) fn refuse(&self, key: &Setting, expected: impl Into<String>, found: &str) -> Error {
        let place = self
            .written(key)
            .map_or(&self.place, |written| &written.origin);
        Error::Value {
            place: format!("{place}: {}.{}", table(&self.name), key.key),
            expected: expected.into(),
            found: found.to_owned(),
        }
    }

    /// A name of the server's.
    pub(super) fn name_of(&self, key: &Setting) -> Result<Option<String>, Error> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let is_name = !text.is_empty() && text.len() <= MAX_NAME && !text.contains('\0');
        match is_name {
            true => Ok(Some(text.to_owned())),
            false => {
                let expected = format!("a name of 1 to {MAX_NAME} bytes");
                Err(self.refuse(key, expected, &format!("{text:?}")))
            }
        }
    }

    /// By what the proxy logs in. No error shows it.
    fn password(&self) -> Result<Option<Password>, Error> {
        let Some(text) = self.text(&DATABASE_PASSWORD) else {
            return Ok(None);
        };
        let refuse = |expected| self.refuse(&DATABASE_PASSWORD, expected, SOMETHING_ELSE);
        if self.written(&DATABASE_USER).is_none() {
            return Err(refuse("a user beside it, whose password it is"));
        }
        let password = Password::read(text);
        let expected = "a password or its MD5 hash; by a SCRAM secret nobody can log in";
        password.map(Some).ok_or_else(|| refuse(expected))
    }

    /// One of the words of a key.
    fn choice(&self, key: &Setting) -> Result<&str, Error> {
        let text = self.text(key).or(key.default).unwrap_or_default();
        let super::ValueForm::Choice(words) = key.kind else {
            return Ok(text);
        };
        match words.contains(&text) {
            true => Ok(text),
            false => Err(self.refuse(key, words.join(" or "), &format!("{text:?}"))),
        }
    }

    fn addresses(&self, usual: Option<&Address>) -> Result<Vec<Address>, Error> {
        let key = &DATABASE_UPSTREAM;
        let Some(written) = self.written(key) else {
            let usual = usual.cloned().map(|usual| vec![usual]);
            let expected = "an upstream here, or one for all databases";
            return usual.ok_or_else(|| self.refuse(key, expected, "none"));
        };
        let mut addresses = Vec::new();
        for text in &written.items {
            let refused = |expected: &str| self.refuse(key, expected, &format!("{text:?}"));
            let address = server_address(text).map_err(|expected| refused(&expected))?;
            if addresses.contains(&address) {
                return Err(refused("each address once"));
            }
            addresses.push(address);
        }
        match addresses.is_empty() {
            true => Err(self.refuse(key, "at least one address", "none")),
            false => Ok(addresses),
        }
    }

    /// How many server connections it may have, where it does not say so what is `usual`, or
    /// `default_size` for clients that give them back.
    fn sizes(&self, usual: Sizes, default_size: usize) -> Result<Sizes, Error> {
        let gives_back = match self.written(&DATABASE_POOL_MODE) {
            Some(_) => self.choice(&DATABASE_POOL_MODE)? == super::pools::AUTO,
            None => usual.gives_back,
        };
        // A program that keeps its connections does not wait for one because of a default.
        let default_size = gives_back.then_some(default_size);
        let pool = self.count(&DATABASE_POOL_SIZE)?.or(default_size);
        let least = self.count(&DATABASE_MIN_POOL_SIZE)?;
        let reserve = self.count(&DATABASE_RESERVE_POOL_SIZE)?;
        let most = self.count(&DATABASE_MAX_CONNECTIONS)?;
        Ok(Sizes {
            pool,
            gives_back,
            least: least.unwrap_or(usual.least),
            reserve: reserve.unwrap_or(usual.reserve),
            most: most.unwrap_or(usual.most),
        })
    }

    /// A whole number; `None` if it does not say.
    fn count(&self, key: &Setting) -> Result<Option<usize>, Error> {
        let (Some(text), super::ValueForm::Integer { min, max }) = (self.text(key), key.kind)
        else {
            return Ok(None);
        };
        let number = text.parse::<u64>().ok();
        let number = number.filter(|number| (min..=max).contains(number));
        let number = number.and_then(|number| usize::try_from(number).ok());
        let expected = || format!("a whole number from {min} to {max}");
        let number = number.ok_or_else(|| self.refuse(key, expected(), text))?;
        Ok(Some(number))
    }

    /// Where it leads; `usual` is where it does if it does not say.
    fn destination(&self, usual: Option<&Address>, sizes: Sizes) -> Result<Destination, Error> {
        Ok(Destination {
            addresses: self.addresses(usual)?,
            dbname: self.name_of(&DATABASE_DBNAME)?,
            user: self.name_of(&DATABASE_USER)?,
            password: self.password()?,
            attrs: match self.choice(&TARGET_SESSION_ATTRS)? {
                "read-write" => SessionAttrs::ReadWrite,
                "read-only" => SessionAttrs::ReadOnly,
                "primary" => SessionAttrs::Primary,
                "standby" => SessionAttrs::Standby,
                "prefer-standby" => SessionAttrs::PreferStandby,
                _ => SessionAttrs::Any,
            },
            is_balanced: self.choice(&LOAD_BALANCE_HOSTS)? == "random",
            sizes,
        })
    }

    /// Refuses what logins that are relayed cannot have.
    fn check_relay(&self, destination: &Destination) -> Result<(), Error> {
        if destination.user.is_some() {
            let expected = "no user with auth_type = relay, where the client itself logs in to \
                            the server";
            let found = format!("{:?}", self.text(&DATABASE_USER).unwrap_or_default());
            return Err(self.refuse(&DATABASE_USER, expected, &found));
        }
        if destination.attrs != SessionAttrs::Any {
            let expected = "any with auth_type = relay, where a client that has logged in cannot \
                            be sent to another server";
            let found = format!("{:?}", self.text(&TARGET_SESSION_ATTRS).unwrap_or_default());
            return Err(self.refuse(&TARGET_SESSION_ATTRS, expected, &found));
        }
        Ok(())
    }
}

/// How a table is called.
fn table(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => format!("{DATABASES}.{name}"),
        false => format!("{DATABASES}.{}", Value::String(name.to_owned())),
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
    /// The tables as they were written, in the order of their names.
    #[must_use]
    pub fn databases(&self) -> &[WrittenDatabase] {
        &self.databases
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
        for database in written {
            let sizes = database.sizes(sizes, config.default_pool_size)?;
            let destination = database.destination(upstream, sizes)?;
            if kind == AuthType::Relay {
                database.check_relay(&destination)?;
            }
            let destination = Arc::new(destination);
            match database.name == FALLBACK {
                true => map.fallback = Some(destination),
                false => drop(map.named.insert(database.name.clone(), destination)),
            }
        }
        Ok(map)
    }
}

/// Writes tables as they could stand in a file, each key with the comment that `comment` makes of
/// where it was written, and without passwords.
#[must_use]
pub fn show(databases: &[WrittenDatabase], comment: impl Fn(&Source) -> String) -> String {
    let mut out = String::new();
    for database in databases {
        out += &format!(
            "\n[{}]{}\n",
            table(&database.name),
            comment(&database.place)
        );
        for (key, written) in &database.keys {
            let line = match key.key == DATABASE_PASSWORD.key {
                true => NOT_SHOWN.to_owned(),
                false => format!("{} = {}", key.key, key.toml(&written.items)),
            };
            out += &format!("{line}{}\n", comment(&written.origin));
        }
    }
    out
}

#[cfg(test)]
#[path = "databases_tests.rs"]
mod tests;
