//! Who asks the server about users: each on a connection of its own, one question after the other.

use super::current::Current;
use super::door::{Conversation, Door, Doors, Lookups, unexpected};
use super::phase::Phase;
use super::reach::{self, Arrived, Caller, reach};
use super::tls::Encryption;
use super::ways::Ways;
use crate::auth::{Found, RoleLookup};
use crate::client::Login;
use crate::config::AuthQuery;
use crate::error::ConnectionError;
use crate::metrics::Metrics;
use crate::statement::shapes::Shapes;
use crate::wire::startup::startup_message;
use crate::wire::{backend, fields, frame, frontend};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two lines in the log that say that nobody can be asked about.
const WARNED: Duration = Duration::from_secs(10);

/// What asking takes.
#[derive(Debug)]
pub(super) struct Means {
    pub(super) current: Current,
    pub(super) tls: Arc<Encryption>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) shapes: Arc<Shapes>,
    pub(super) doors: Arc<Doors>,
    pub(super) ways: Arc<Ways>,
    /// Says when the proxy is ending.
    pub(super) draining: watch::Receiver<Phase>,
}

/// Answers those who wait to be asked about, at each door that is opened, until the proxy is
/// ending.
pub(super) async fn ask_for_others(means: Means) {
    let means = Arc::new(means);
    let mut doors = means.doors.all();
    loop {
        let door = Arc::clone(&doors.borrow_and_update());
        for asker in door.askers() {
            tokio::spawn(ask_at(Arc::clone(&door), asker.clone(), Arc::clone(&means)));
        }
        drop(door);
        if doors.changed().await.is_err() {
            return;
        }
    }
}

/// The same by one who asks at one door, as long as somebody is there: logins that have begun at it
/// end at it.
async fn ask_at(door: Arc<Door>, query: AuthQuery, means: Arc<Means>) {
    let requests = door.lookups(&query).and_then(Lookups::take_requests);
    let Some(mut requests) = requests else {
        return;
    };
    // Whoever waits holds the door. When nobody does any more, nobody can come, which ends this.
    let held = Arc::downgrade(&door);
    drop(door);
    let mut draining = means.draining.clone();
    let mut asker = Asker {
        means: &means,
        query: &query,
        conversation: None,
        warned: None,
    };
    loop {
        let idle = means.current.get().server_idle_timeout;
        let request = tokio::select! {
            request = timeout(idle, requests.recv()) => request,
            _ = draining.wait_for(Phase::is_ending) => Ok(None),
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
        let Some(door) = held.upgrade() else {
            return asker.hang_up().await;
        };
        let Some(lookups) = door.lookups(&query) else {
            return asker.hang_up().await;
        };
        let role = match lookups.learned(&request.user, request.since) {
            Some(role) => Ok(role),
            None => {
                let (asked, logins) = (Instant::now(), means.shapes.logins());
                let found = asker.ask(&request.user, &door).await;
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
    /// Who asks what, and where.
    query: &'m AuthQuery,
    conversation: Option<Conversation>,
    /// When it was said last that nobody can be asked about.
    warned: Option<Instant>,
}

impl Asker<'_> {
    /// Asks about a user.
    async fn ask(&mut self, user: &[u8], door: &Door) -> Result<Found, ConnectionError> {
        // A connection that has been there may have ended meanwhile.
        let tries = 1 + usize::from(self.conversation.is_some());
        let mut last = ConnectionError::NoSecrets;
        for _ in 0..tries {
            match timeout(PATIENCE, self.try_ask(user, door)).await {
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

    async fn try_ask(&mut self, user: &[u8], door: &Door) -> Result<Found, ConnectionError> {
        let mut conversation = match self.conversation.take() {
            Some(conversation) => conversation,
            None => self.connect(door).await?,
        };
        let mut out = Vec::new();
        let mut lookup = RoleLookup::ask(&self.query.text, user, &mut out);
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
    async fn connect(&self, door: &Door) -> Result<Conversation, ConnectionError> {
        let (means, query) = (self.means, self.query);
        let (user, database) = (query.user.as_bytes(), query.database.as_bytes());
        let way = means
            .ways
            .find(database)
            .ok_or(ConnectionError::NoSecrets)?;
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
        let mut login = Login {
            packet,
            database: database.to_vec(),
            user: user.to_vec(),
            replication: false,
        };
        way.translate_database(&mut login)?;
        let credential = door.forced(user, None);
        let caller = Caller {
            packet: &login.packet,
            credential: Some(&credential),
            deadline: tokio::time::Instant::now() + PATIENCE,
        };
        let reached = reach::Means {
            ways: &means.ways,
            tls: &means.tls.servers,
            counters: means.metrics.acceptor(),
            door,
            limit: means.current.get().connect_timeout,
        };
        let arrived = reach(&way, &way.order()?, caller, reached).await;
        let Arrived { stream, said, .. } = arrived.map_err(|failure| failure.error)?;
        let mut conversation = Conversation::resumed(stream, said);
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
            let (auth_user, auth_dbname) = (&self.query.user, &self.query.database);
            tracing::warn!(auth_user, auth_dbname, why, "auth_query cannot be used");
        }
    }

    async fn hang_up(&mut self) {
        if let Some(mut conversation) = self.conversation.take() {
            // What it does not hear, it sees.
            let _ = conversation.say(frontend::TERMINATE_FRAME).await;
        }
    }
}
