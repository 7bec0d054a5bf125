//! What the server knows of users: asked by a user of the configuration's own, on a connection on
//! which nothing else is done.
//!
//! Invariants:
//! - nothing of a client reaches that connection but the name it has given, as a parameter;
//! - one question is under way at once, and its answer is read to its end, whoever waits for it;
//! - what was answered is used again for a short time only, and only as long as nothing that may
//!   change who may log in has gone through the proxy; and it may only let in: who is not let in by
//!   it is asked about anew.

use crate::auth::{Found, Role};
use crate::error::ConnectionError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Users about whom something is remembered.
const MAX_KNOWN: usize = 4096;

/// Those who may wait to be asked about.
const WAITING: usize = 1024;

/// How long it is remembered at most that there is no such user.
const NOBODY: Duration = Duration::from_secs(1);

/// What was answered, and the means to ask.
#[derive(Debug)]
pub(in crate::net) struct Lookups {
    cache: Duration,
    answers: Mutex<HashMap<Vec<u8>, Answered>>,
    requests: mpsc::Sender<Request>,
    /// For who answers.
    incoming: Mutex<Option<mpsc::Receiver<Request>>>,
    numbers: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Answered {
    role: Arc<Role>,
    asked: Instant,
    /// The count of what may have changed logins.
    logins: u64,
}

#[derive(Debug)]
pub(in crate::net) struct Request {
    pub(in crate::net) user: Vec<u8>,
    /// The answer may not be older.
    pub(in crate::net) since: Instant,
    pub(in crate::net) reply: oneshot::Sender<Result<Arc<Role>, ConnectionError>>,
}

impl Lookups {
    pub(super) fn new(cache: Duration, numbers: Arc<AtomicU64>) -> Self {
        let (requests, incoming) = mpsc::channel(WAITING);
        Self {
            cache,
            answers: Mutex::default(),
            requests,
            incoming: Mutex::new(Some(incoming)),
            numbers,
        }
    }

    /// What is known of a user now, when this is the count of what may have changed logins.
    pub(super) async fn role(
        &self,
        user: &[u8],
        logins: u64,
    ) -> Result<Arc<Role>, ConnectionError> {
        if let Some(known) = self.answers().get(user) {
            let most = match known.role.exists() {
                true => self.cache,
                false => self.cache.min(NOBODY),
            };
            if known.asked.elapsed() < most && known.logins == logins {
                return Ok(Arc::clone(&known.role));
            }
        }
        self.role_since(user, Instant::now()).await
    }

    /// What is known of a user by an answer that is not older.
    pub(super) async fn role_since(
        &self,
        user: &[u8],
        since: Instant,
    ) -> Result<Arc<Role>, ConnectionError> {
        if let Some(role) = self.learned(user, since) {
            return Ok(role);
        }
        let (reply, answer) = oneshot::channel();
        let request = Request {
            user: user.to_vec(),
            since,
            reply,
        };
        // Whoever answers is gone only when the proxy is ending.
        let sent = self.requests.send(request).await;
        sent.map_err(|_| ConnectionError::ShuttingDown)?;
        answer.await.map_err(|_| ConnectionError::ShuttingDown)?
    }

    pub(in crate::net) fn learned(&self, user: &[u8], since: Instant) -> Option<Arc<Role>> {
        let answers = self.answers();
        let known = answers.get(user).filter(|known| known.asked >= since);
        known.map(|known| Arc::clone(&known.role))
    }

    /// Remembers what was found of a user. Whose secret is the same keeps the number.
    pub(in crate::net) fn learn(
        &self,
        user: Vec<u8>,
        found: Found,
        asked: Instant,
        logins: u64,
    ) -> Arc<Role> {
        let mut answers = self.answers();
        let before = answers.remove(&user).map(|known| known.role);
        let role = match found {
            Found::Somebody(secret) => {
                let same = before.filter(|role| role.is_as(secret.as_ref()));
                same.unwrap_or_else(|| Arc::new(Role::new(next(&self.numbers), secret)))
            }
            Found::Nobody | Found::Unclear(_) => Arc::new(Role::unknown()),
        };
        if answers.len() >= MAX_KNOWN {
            let cache = self.cache;
            let is_fresh = |known: &Answered| known.asked.elapsed() < cache && known.role.exists();
            answers.retain(|_, known| is_fresh(known));
        }
        if answers.len() < MAX_KNOWN {
            let answered = Answered {
                role: Arc::clone(&role),
                asked,
                logins,
            };
            answers.insert(user, answered);
        }
        role
    }

    pub(super) fn forget(&self, user: &[u8]) {
        self.answers().remove(user);
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Answered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those who ask, for whoever answers them.
    pub(in crate::net) fn take_requests(&self) -> Option<mpsc::Receiver<Request>> {
        let mut incoming = self.incoming.lock();
        let incoming = incoming.as_mut().unwrap_or_else(PoisonError::get_mut);
        incoming.take()
    }
}

/// The next number of a secret.
pub(super) fn next(numbers: &AtomicU64) -> u64 {
    numbers.fetch_add(1, Ordering::Relaxed)
}
