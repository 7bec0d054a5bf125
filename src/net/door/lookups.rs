//! What the server knows of users: asked by a user of the configuration's own, on a connection on
//! which nothing else is done.
//!
//! Invariants:
//! - nothing of a client reaches that connection but the name it has given, as a parameter;
//! - one question is under way at once, and its answer is read to its end, whoever waits for it;
//! - what was answered is used again for a short time only, and only as long as nothing that may
//!   change who may log in has gone through the proxy; and it may only let in: who is not let in by
//!   it is asked about anew.

use super::Door;
use super::enter::{Conversation, unexpected};
use crate::auth::{Credential, Found, Role, RoleLookup};
use crate::config::{AuthSettings, Config};
use crate::error::ConnectionError;
use crate::metrics::Metrics;
use crate::net::Phase;
use crate::net::dial::dial;
use crate::net::tls::Encryption;
use crate::statement::shapes::Shapes;
use crate::wire::startup::startup_message;
use crate::wire::{backend, fields, frame, frontend};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// Users about whom something is remembered.
const MAX_KNOWN: usize = 4096;

/// Those who may wait to be asked about.
const WAITING: usize = 1024;

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it is remembered at most that there is no such user.
const NOBODY: Duration = Duration::from_secs(1);

/// The time between two lines in the log that say that nobody can be asked about.
const WARNED: Duration = Duration::from_secs(10);

/// What was answered, and the means to ask.
#[derive(Debug)]
pub(super) struct Lookups {
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
struct Request {
    user: Vec<u8>,
    /// The answer may not be older.
    since: Instant,
    reply: oneshot::Sender<Result<Arc<Role>, ConnectionError>>,
}

impl Lookups {
    pub(super) fn new(settings: &AuthSettings, numbers: Arc<AtomicU64>) -> Self {
        let (requests, incoming) = mpsc::channel(WAITING);
        Self {
            cache: settings.cache,
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

    fn learned(&self, user: &[u8], since: Instant) -> Option<Arc<Role>> {
        let answers = self.answers();
        let known = answers.get(user).filter(|known| known.asked >= since);
        known.map(|known| Arc::clone(&known.role))
    }

    /// Remembers what was found of a user. Whose secret is the same keeps the number.
    fn learn(&self, user: Vec<u8>, found: Found, asked: Instant, logins: u64) -> Arc<Role> {
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

    fn take_requests(&self) -> Option<mpsc::Receiver<Request>> {
        let mut incoming = self.incoming.lock();
        let incoming = incoming.as_mut().unwrap_or_else(PoisonError::get_mut);
        incoming.take()
    }
}

/// The next number of a secret.
pub(super) fn next(numbers: &AtomicU64) -> u64 {
    numbers.fetch_add(1, Ordering::Relaxed)
}

/// What asking takes.
#[derive(Debug)]
pub(in crate::net) struct Means {
    pub(in crate::net) config: Arc<Config>,
    pub(in crate::net) tls: Arc<Encryption>,
    pub(in crate::net) metrics: Arc<Metrics>,
    pub(in crate::net) shapes: Arc<Shapes>,
    pub(in crate::net) door: Arc<Door>,
    /// Says when the proxy is ending.
    pub(in crate::net) draining: watch::Receiver<Phase>,
}

/// Answers those who wait to be asked about, until the proxy is ending.
pub(in crate::net) async fn ask_for_others(means: Means) {
    let Some(lookups) = means.door.known.lookups() else {
        return;
    };
    let Some(mut requests) = lookups.take_requests() else {
        return;
    };
    let mut draining = means.draining.clone();
    let mut asker = Asker {
        means: &means,
        conversation: None,
        warned: None,
    };
    let idle = means.config.server_idle_timeout;
    loop {
        let request = tokio::select! {
            request = timeout(idle, requests.recv()) => request,
            _ = draining.wait_for(|phase| *phase != Phase::Serving) => Ok(None),
        };
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return asker.hang_up().await,
            Err(_) => {
                asker.hang_up().await;
                continue;
            }
        };
        if request.reply.is_closed() {
            continue;
        }
        let role = match lookups.learned(&request.user, request.since) {
            Some(role) => Ok(role),
            None => {
                let (asked, logins) = (Instant::now(), means.shapes.logins());
                let found = asker.ask(&request.user).await;
                found.map(|found| lookups.learn(request.user, found, asked, logins))
            }
        };
        // Who does not wait any longer does not mind.
        let _ = request.reply.send(role);
    }
}

/// The connection on which is asked.
struct Asker<'m> {
    means: &'m Means,
    conversation: Option<Conversation>,
    /// When it was said last that nobody can be asked about.
    warned: Option<Instant>,
}

impl Asker<'_> {
    /// Asks about a user.
    async fn ask(&mut self, user: &[u8]) -> Result<Found, ConnectionError> {
        // A connection that has been there may have ended meanwhile.
        let tries = 1 + usize::from(self.conversation.is_some());
        let mut last = ConnectionError::NoSecrets;
        for _ in 0..tries {
            match timeout(PATIENCE, self.try_ask(user)).await {
                Ok(Ok(Found::Unclear(why))) => {
                    self.warn(&why);
                    return Err(ConnectionError::NoSecrets);
                }
                Ok(Ok(found)) => return Ok(found),
                Ok(Err(error)) => last = error,
                Err(_) => last = ConnectionError::UpstreamIo(io::ErrorKind::TimedOut.into()),
            }
            self.conversation = None;
        }
        match &last {
            ConnectionError::ServerRefused(message) => {
                let body = message.get(frame::HEADER..).unwrap_or_default();
                let text = fields::field(body, fields::MESSAGE).unwrap_or_default();
                self.warn(&String::from_utf8_lossy(text));
            }
            error => self.warn(&error.to_string()),
        }
        Err(match last {
            error @ ConnectionError::Unreachable(_) => error,
            _ => ConnectionError::NoSecrets,
        })
    }

    async fn try_ask(&mut self, user: &[u8]) -> Result<Found, ConnectionError> {
        let mut conversation = match self.conversation.take() {
            Some(conversation) => conversation,
            None => self.connect().await?,
        };
        let mut out = Vec::new();
        let mut lookup = RoleLookup::ask(&self.means.config.auth.query, user, &mut out);
        conversation.say(&out).await?;
        loop {
            let (tag, message) = conversation.next().await?;
            let message = zeroize::Zeroizing::new(message);
            if let Some(found) = lookup.take(tag, &message) {
                self.conversation = Some(conversation);
                return Ok(found);
            }
        }
    }

    /// Logs in as the user that asks.
    async fn connect(&self) -> Result<Conversation, ConnectionError> {
        let config = &self.means.config;
        let (user, database) = (config.auth.user.as_bytes(), config.auth.database.as_bytes());
        let counters = self.means.metrics.acceptor();
        let tls = &self.means.tls.servers;
        let dialled = timeout(
            config.connect_timeout,
            dial(&config.upstream, tls, counters),
        )
        .await;
        let late = |_| Err(ConnectionError::Unreachable(io::ErrorKind::TimedOut.into()));
        let mut conversation = Conversation::new(dialled.unwrap_or_else(late)?);
        let mut packet = Vec::new();
        let parameters: [(&[u8], &[u8]); 6] = [
            (b"user", user),
            (b"database", database),
            (b"application_name", b"pgautoprep-auth"),
            // Names come as they are in the catalog.
            (b"client_encoding", b"SQL_ASCII"),
            (b"search_path", b"pg_catalog"),
            (b"statement_timeout", b"5s"),
        ];
        startup_message(&mut packet, parameters);
        let door = &self.means.door;
        let credential = Credential::new(user, door.known.asker());
        conversation.log_in(&packet, &credential, door).await?;
        loop {
            match conversation.next().await? {
                (backend::READY_FOR_QUERY, _) => return Ok(conversation),
                (backend::ERROR, message) => return Err(ConnectionError::ServerRefused(message)),
                (
                    backend::AUTHENTICATION
                    | backend::BACKEND_KEY_DATA
                    | backend::PARAMETER_STATUS
                    | backend::NOTICE,
                    _,
                ) => {}
                (other, _) => return Err(unexpected(other)),
            }
        }
    }

    /// Says in the log why nobody can be asked about, now and then.
    fn warn(&mut self, why: &str) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARNED) {
            self.warned = Some(Instant::now());
            let user = &self.means.config.auth.user;
            tracing::warn!(auth_user = user, why, "auth_query cannot be used");
        }
    }

    async fn hang_up(&mut self) {
        if let Some(mut conversation) = self.conversation.take() {
            // What it does not hear, it sees.
            let _ = conversation.say(frontend::TERMINATE_FRAME).await;
        }
    }
}
