//! A user as far as its password goes, and what the proxy can show the server for it.

use super::keys::{ITERATIONS, Key, Keys, Verifier, hmac};
use super::secret::{Secret, Wiped};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// From what the salts of users follow that have none of their own, so that nobody who asks can
/// tell a user that there is from one that there is not.
///
/// It is made by chance when the proxy starts. What follows from secrets of the configuration would
/// outlive a restart, but would let those be guessed who are given such a salt.
#[derive(Debug, Clone)]
pub struct Mock(Key);

impl Mock {
    /// With these bytes, which nobody may know.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Key::new(bytes))
    }

    fn salt(&self, user: &[u8]) -> [u8; 16] {
        self.0.sign(user).salt()
    }
}

/// A user as far as its password goes. There may be none of this name.
#[derive(Debug)]
pub struct Role {
    /// Equal numbers mean equal secrets of one user. It is given once and never again.
    number: u64,
    /// Somebody knows of it.
    exists: bool,
    /// What is known of its password; none if no password is right.
    secret: Option<Secret>,
    /// Of a password: what SCRAM takes of it towards clients.
    made: OnceLock<(Verifier, Keys)>,
    /// Of a password: its keys under the server's salt, and how often that is hashed.
    shown: Mutex<Option<(Vec<u8>, u32, Keys)>>,
}

impl Role {
    /// A user with this secret, by which nobody gets in if there is none.
    #[must_use]
    pub const fn new(number: u64, secret: Option<Secret>) -> Self {
        Self {
            number,
            exists: true,
            secret,
            made: OnceLock::new(),
            shown: Mutex::new(None),
        }
    }

    /// A user that is not there.
    #[must_use]
    pub const fn unknown() -> Self {
        let mut role = Self::new(0, None);
        role.exists = false;
        role
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Whether there is such a user.
    #[must_use]
    pub const fn exists(&self) -> bool {
        self.exists
    }

    /// What is known of its password.
    #[must_use]
    pub const fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// Whether both are one user with one secret.
    #[must_use]
    pub fn is_as(&self, secret: Option<&Secret>) -> bool {
        match (&self.secret, secret) {
            (Some(one), Some(two)) => one.is(two),
            (None, None) => self.exists,
            _ => false,
        }
    }

    /// Whether what SCRAM takes of it has still to be made, which takes a millisecond or more.
    #[must_use]
    pub fn is_costly(&self) -> bool {
        matches!(self.secret, Some(Secret::Plain(_))) && self.made.get().is_none()
    }

    /// What a login of `user` by SCRAM is checked with: what nobody can prove, if nothing else.
    pub(super) fn verifier(&self, mock: &Mock, user: &[u8]) -> Verifier {
        let salt = mock.salt(user);
        match &self.secret {
            Some(Secret::Scram(verifier)) => verifier.clone(),
            Some(Secret::Plain(password)) => {
                let make = || {
                    let keys = Keys::derive(password, &salt, ITERATIONS);
                    (Verifier::of(&keys, &salt, ITERATIONS), keys)
                };
                self.made.get_or_init(make).0.clone()
            }
            Some(Secret::Md5(_)) | None => Verifier {
                iterations: ITERATIONS,
                salt: salt.to_vec(),
                // Nothing is known that hashes to this, and it is checked as any other.
                stored: Key::new([0; 32]),
                server: hmac(b"nobody", &[&salt]),
            },
        }
    }

    /// The keys of a password under this salt, which are kept: a server has one salt a user.
    fn keys(&self, password: &[u8], salt: &[u8], iterations: u32) -> Keys {
        let lock = || self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, count, keys)) = &*lock()
            && known == salt
            && *count == iterations
        {
            return keys.clone();
        }
        let keys = Keys::derive(password, salt, iterations);
        *lock() = Some((salt.to_vec(), iterations, keys.clone()));
        keys
    }

    fn has_keys(&self, salt: &[u8], iterations: u32) -> bool {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*shown, Some((known, count, _)) if known == salt && *count == iterations)
    }
}

/// What the proxy can show the server for a user that has proven who it is.
#[derive(Debug, Clone)]
pub struct Credential {
    user: Vec<u8>,
    role: Arc<Role>,
    /// What the client has sent as its password, and was right.
    sent: Option<Wiped>,
    /// What it has proven to have.
    keys: Option<Keys>,
}

impl Credential {
    /// What there is of a user that was asked for nothing.
    #[must_use]
    pub fn new(user: &[u8], role: Arc<Role>) -> Self {
        Self {
            user: user.to_vec(),
            role,
            sent: None,
            keys: None,
        }
    }

    pub(super) fn with_password(mut self, password: &[u8], keys: Option<Keys>) -> Self {
        self.sent = Some(password.to_vec().into());
        self.keys = keys;
        self
    }

    pub(super) fn with_keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The number of the user's secret.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.role.number
    }

    pub(super) fn password(&self) -> Option<&[u8]> {
        match (&self.sent, &self.role.secret) {
            (Some(sent), _) => Some(sent),
            (None, Some(Secret::Plain(password))) => Some(password),
            _ => None,
        }
    }

    /// Whether there is nothing that a server could be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_none() && self.keys.is_none() && self.role.secret.is_none()
    }

    /// The hash that a server keeps that knows MD5.
    pub(super) fn md5_secret(&self) -> Option<Wiped> {
        match (&self.role.secret, self.password()) {
            (Some(Secret::Md5(hash)), _) => Some(hash.clone()),
            (_, Some(password)) => Some(super::secret::md5_secret(&self.user, password)),
            _ => None,
        }
    }

    /// Whether [`Self::keys`] takes a millisecond or more.
    pub(super) fn is_costly(&self, salt: &[u8], iterations: u32) -> bool {
        self.proven(salt, iterations).is_none()
            && self.password().is_some()
            && !self.role.has_keys(salt, iterations)
    }

    /// The keys for a server that has this salt. Those that a client has proven to have are of use
    /// only if its verifier is the server's; where it is not, the server will say so.
    pub(super) fn keys(&self, salt: &[u8], iterations: u32) -> Option<Keys> {
        if let Some(keys) = self.proven(salt, iterations) {
            return Some(keys.clone());
        }
        match self.password() {
            Some(password) => Some(self.role.keys(password, salt, iterations)),
            None => self.keys.clone(),
        }
    }

    fn proven(&self, salt: &[u8], iterations: u32) -> Option<&Keys> {
        let Some(Secret::Scram(verifier)) = &self.role.secret else {
            return None;
        };
        let fits = verifier.salt == salt && verifier.iterations == iterations;
        self.keys.as_ref().filter(|_| fits)
    }
}
