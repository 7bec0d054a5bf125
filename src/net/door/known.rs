//! The users that are known: those of the file, and those that the server was asked about lately.

use super::lookups::{Lookups, next};
use super::users::{self, Error};
use crate::auth::{MAX_NAME, Role, Secret};
use crate::config::{AuthQuery, AuthType, Config, DatabaseMap};
use crate::error::ConnectionError;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// The users of the file.
pub(super) type Listed = HashMap<Vec<u8>, Arc<Role>>;

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
        if !self.has_file() {
            return Ok(Arc::default());
        }
        let users = users::read(&self.path)?;
        let is_scram = |user: &&str| {
            let secret = users.get(user.as_bytes());
            matches!(secret, Some(Some(Secret::Scram(_))))
        };
        let mut askers = self.lookups.keys().map(|asker| asker.user.as_str());
        if let Some(user) = askers.find(is_scram) {
            return Err(Error::Asker(user.to_owned()));
        }
        let forced = || databases.destinations().filter_map(|it| it.user.as_deref());
        if let Some(user) = forced().find(is_scram) {
            return Err(Error::Forced(user.to_owned()));
        }
        for user in forced().filter(|user| !users.contains_key(user.as_bytes())) {
            tracing::warn!(
                user,
                "a database's user has no line in auth_file: the server has to let it in without \
                 a password"
            );
        }
        let before = self.listed();
        let keep = |(user, secret): (Vec<u8>, Option<Secret>)| {
            let same = before.get(&user).filter(|role| role.is_as(secret.as_ref()));
            let role = same.map_or_else(
                || Arc::new(Role::new(next(&self.numbers), secret.clone())),
                Arc::clone,
            );
            (user, role)
        };
        Ok(Arc::new(users.into_iter().map(keep).collect()))
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
        if let Some(role) = self.listed().get(user) {
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
        if self.listed().contains_key(user) || !is_name(user) {
            return Ok(None);
        }
        let other = lookups.role_since(user, since).await?;
        Ok(Some(other).filter(|other| other.number() != role.number()))
    }

    /// A user of the file, as whom the proxy itself logs in. Of one that is not there nothing is
    /// known, which is enough for a server that asks for nothing.
    pub(super) fn own(&self, user: &[u8]) -> Arc<Role> {
        let role = self.listed().get(user).map(Arc::clone);
        role.unwrap_or_else(|| Arc::new(Role::unknown()))
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
