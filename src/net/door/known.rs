//! The users that are known: those of the file, and those that the server was asked about lately.

use super::lookups::{Lookups, next};
use super::users::{self, Error};
use crate::auth::userlist::Users;
use crate::auth::{MAX_NAME, Role, Secret};
use crate::config::{AuthQuery, AuthType, Config, DatabaseMap, Password};
use crate::error::ConnectionError;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// Who is known without anybody being asked.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The users of the file.
    users: HashMap<Vec<u8>, Arc<Role>>,
    /// Those of tables of databases that have a password, each with one of them.
    forced: Vec<(Vec<u8>, Arc<Role>)>,
}

impl Listed {
    /// Whom these tables have the proxy log in as by a password of their own.
    fn forced(&self, user: &[u8], password: &Password) -> Option<&Arc<Role>> {
        let secret = Secret::read(password.bytes());
        let mut found = self.forced.iter();
        let found = found.find(|(name, role)| name == user && role.is_as(secret.as_ref()));
        found.map(|(_, role)| role)
    }
}

/// Everybody who is known, and how to learn of others.
#[derive(Debug)]
pub(super) struct Known {
    path: PathBuf,
    listed: RwLock<Arc<Listed>>,
    /// What was asked, by each who asks: what one has found is not known to another, whose users
    /// are others, as far as anybody knows.
    lookups: HashMap<AuthQuery, Lookups>,
    numbers: Arc<AtomicU64>,
}

impl Known {
    /// Reads the file, if there is one. Whose secret is that which was known before keeps its
    /// number.
    pub(super) fn load_behind(before: Option<&Self>, config: &Config) -> Result<Self, Error> {
        let settings = &config.auth;
        let is_used = settings.kind != AuthType::Relay;
        // A number is that of one secret, whoever knew it.
        let numbers = match before {
            Some(before) => Arc::clone(&before.numbers),
            None => Arc::new(AtomicU64::new(1)),
        };
        let askers = settings.all_askers().filter(|_| is_used);
        let lookups = |asker: &AuthQuery| {
            let lookups = Lookups::new(settings.cache, Arc::clone(&numbers));
            (asker.clone(), lookups)
        };
        let lookups = askers.map(lookups).collect();
        let mut known = Self {
            path: match is_used {
                true => settings.file.clone(),
                false => PathBuf::new(),
            },
            listed: RwLock::new(before.map(Self::listed).unwrap_or_default()),
            lookups,
            numbers,
        };
        known.listed = RwLock::new(known.read(&config.databases)?);
        Ok(known)
    }

    pub(super) fn has_file(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }

    /// Reads the file again. Whose secret is the same keeps the number. What was read before stays
    /// in force until this is installed.
    pub(super) fn read(&self, databases: &DatabaseMap) -> Result<Arc<Listed>, Error> {
        let users = match self.has_file() {
            true => users::read(&self.path)?,
            false => Users::default(),
        };
        self.check(&users, databases)?;
        let before = self.listed();
        let role = |known: Option<&Arc<Role>>, secret: Option<Secret>| {
            let same = known.filter(|role| role.is_as(secret.as_ref()));
            same.map_or_else(
                || Arc::new(Role::new(next(&self.numbers), secret.clone())),
                Arc::clone,
            )
        };
        let keep = |(user, secret): (Vec<u8>, Option<Secret>)| {
            let role = role(before.users.get(&user), secret);
            (user, role)
        };
        let mut listed = Listed {
            users: users.into_iter().map(keep).collect(),
            forced: Vec::new(),
        };
        for table in databases.destinations() {
            if let (Some(user), Some(password)) = (&table.user, &table.password) {
                let user = user.as_bytes();
                let known = listed.forced(user, password).map(Arc::clone);
                let known = known.or_else(|| before.forced(user, password).map(Arc::clone));
                let role = role(known.as_ref(), Secret::read(password.bytes()));
                listed.forced.push((user.to_vec(), role));
            }
        }
        Ok(Arc::new(listed))
    }

    /// Refuses the file if the proxy cannot log in as it has to.
    fn check(&self, users: &Users, databases: &DatabaseMap) -> Result<(), Error> {
        let is_scram = |user: &&str| {
            let secret = users.get(user.as_bytes());
            matches!(secret, Some(Some(Secret::Scram(_))))
        };
        let mut askers = self.lookups.keys().map(|asker| asker.user.as_str());
        if let Some(user) = askers.find(is_scram) {
            return Err(Error::Asker(user.to_owned()));
        }
        let forced = || {
            let tables = databases.destinations();
            let tables = tables.filter(|table| table.password.is_none());
            tables.filter_map(|table| table.user.as_deref())
        };
        if let Some(user) = forced().find(is_scram) {
            return Err(Error::Forced(user.to_owned()));
        }
        for user in forced().filter(|user| !users.contains_key(user.as_bytes())) {
            tracing::warn!(
                user,
                "a database's user has no password in its table and no line in auth_file: the \
                 server has to let it in without one"
            );
        }
        Ok(())
    }

    /// Has logins to come find what was read.
    pub(super) fn install(&self, listed: Arc<Listed>) {
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = listed;
    }

    fn listed(&self) -> Arc<Listed> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of a user, by the file or else by the server that `asker` asks, when this is
    /// the count of what may have changed logins.
    pub(super) async fn role(
        &self,
        user: &[u8],
        asker: &AuthQuery,
        logins: u64,
    ) -> Result<Arc<Role>, ConnectionError> {
        if !is_name(user) {
            return Ok(Arc::new(Role::unknown()));
        }
        if let Some(role) = self.listed().users.get(user) {
            return Ok(Arc::clone(role));
        }
        match self.lookups.get(asker) {
            Some(lookups) => lookups.role(user, logins).await,
            None => Ok(Arc::new(Role::unknown())),
        }
    }

    /// What is known of a user by an answer that is not older than this; `None` if that is what was
    /// known.
    pub(super) async fn role_since(
        &self,
        user: &[u8],
        asker: &AuthQuery,
        role: &Role,
        since: Instant,
    ) -> Result<Option<Arc<Role>>, ConnectionError> {
        let Some(lookups) = self.lookups.get(asker) else {
            return Ok(None);
        };
        if self.listed().users.contains_key(user) || !is_name(user) {
            return Ok(None);
        }
        let other = lookups.role_since(user, since).await?;
        Ok(Some(other).filter(|other| other.number() != role.number()))
    }

    /// A user of the file, or of tables that have this password, as whom the proxy itself logs in.
    /// Of one that is not there nothing is
    /// known, which is enough for a server that asks for nothing.
    pub(super) fn own(&self, user: &[u8], password: Option<&Password>) -> Arc<Role> {
        let listed = self.listed();
        let role = match password {
            Some(password) => listed.forced(user, password),
            None => listed.users.get(user),
        };
        role.map(Arc::clone)
            .unwrap_or_else(|| Arc::new(Role::unknown()))
    }

    pub(super) const fn lookups(&self) -> &HashMap<AuthQuery, Lookups> {
        &self.lookups
    }

    /// What the server was asked about a user is not true any more.
    pub(super) fn forget(&self, user: &[u8]) {
        for lookups in self.lookups.values() {
            lookups.forget(user);
        }
    }
}

/// Whether the server could have a user of this name. It would cut a longer one, and take it for
/// another's.
const fn is_name(user: &[u8]) -> bool {
    user.len() <= MAX_NAME
}
