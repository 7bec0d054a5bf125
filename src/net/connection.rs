//! One client connection from its first byte to its last: greeting, server connection, session.

use super::driver::{Driver, Shared};
use super::registry::Registry;
use super::stream::{Accepted, Stream};
use crate::client::{Greeting, Login, Step};
use crate::config::Config;
use crate::error::{Fault, SessionError};
use crate::metrics::Counter;
use crate::session::{Key, Session};
use crate::upstream::ledger::ClientId;
use crate::wire::startup::{MAX_STARTUP, cancel_request};
use crate::wire::{self, backend};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long a last word to a client that does not read may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How long a client that was turned away may take to send its startup packet: it must have been
/// read before the answer, or closing the socket would destroy the answer on its way.
const REFUSAL: Duration = Duration::from_secs(2);

/// What every connection of a worker is given.
#[derive(Debug, Clone)]
pub(super) struct Environment {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) shared: Rc<RefCell<Shared>>,
    /// Becomes true when the proxy is ending.
    pub(super) draining: watch::Receiver<bool>,
}

impl Environment {
    fn count(&self, counter: Counter) {
        self.shared.borrow().worker.counters().add(counter, 1);
    }
}

/// Serves one accepted socket to its end; `admitted` is false beyond the limit of clients.
pub(super) async fn serve(
    socket: Accepted,
    id: ClientId,
    admitted: bool,
    environment: Environment,
) {
    let outcome = match Stream::adopt(socket) {
        Ok(stream) => converse(stream, id, admitted, &environment).await,
        Err(error) => Err(SessionError::System(error)),
    };
    environment.count(Counter::ConnectionsClosed);
    match outcome {
        Ok(()) => tracing::debug!(client = id.0, "connection closed"),
        Err(error) => {
            environment.count(match error.fault() {
                Fault::Client => Counter::ErrorsClient,
                Fault::Upstream => Counter::ErrorsUpstream,
                Fault::Proxy => Counter::ErrorsProxy,
            });
            tracing::debug!(client = id.0, %error, fault = ?error.fault(), "connection ended");
        }
    }
}

async fn converse(
    mut client: Stream,
    id: ClientId,
    admitted: bool,
    environment: &Environment,
) -> Result<(), SessionError> {
    let limit = if admitted {
        environment.config.login_timeout
    } else {
        REFUSAL
    };
    let deadline = Instant::now() + limit;
    let mut greeted = Greeted::default();
    let mut draining = environment.draining.clone();
    let greeting = tokio::select! {
        greeting = timeout_at(deadline, greeted.greet(&mut client)) => {
            greeting.unwrap_or(Err(SessionError::LoginTimeout))
        }
        _ = draining.wait_for(|draining| *draining) => Err(SessionError::ShuttingDown),
    };
    let outcome = match greeting {
        Ok(None) => return Ok(()),
        Ok(Some(Step::Cancel { pid, key })) => {
            cancel(pid, &key, environment).await;
            return Ok(());
        }
        Ok(Some(Step::Login(_))) if !admitted => Err(SessionError::TooManyClients),
        Ok(Some(Step::Login(login))) => {
            tracing::debug!(client = id.0, replication = login.replication, "login");
            return session(client, login, greeted.pending, id, deadline, environment).await;
        }
        Ok(Some(Step::Wait | Step::Refuse(_))) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        last_word(&mut client, Vec::new(), error).await;
    }
    outcome
}

/// What a client has sent before its session.
#[derive(Debug, Default)]
struct Greeted {
    pending: Vec<u8>,
}

impl Greeted {
    /// Reads until the client wants to log in or cancel; `None` if it leaves without.
    async fn greet(&mut self, client: &mut Stream) -> Result<Option<Step>, SessionError> {
        let mut greeting = Greeting::default();
        loop {
            let (step, used) = greeting
                .step(&self.pending)
                .map_err(SessionError::ClientProtocol)?;
            self.pending.drain(..used);
            match step {
                Step::Wait => {}
                Step::Refuse(answer) => {
                    write_all(client, &[answer])
                        .await
                        .map_err(SessionError::ClientIo)?;
                    continue;
                }
                step => return Ok(Some(step)),
            }
            let mut bytes = [0; 1024];
            let count = read(client, &mut bytes)
                .await
                .map_err(SessionError::ClientIo)?;
            if count == 0 {
                // Port scanners and health checks: no error, unless something had begun.
                return match self.pending.is_empty() {
                    true => Ok(None),
                    false => Err(SessionError::ClientProtocol(wire::Error::StartupLayout)),
                };
            }
            self.pending
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
            // A whole packet is taken at once, so this cannot grow past one and a read.
            debug_assert!(self.pending.len() <= MAX_STARTUP + bytes.len());
        }
    }
}

/// Relays a cancel request; whether it was one of ours is nobody's business.
async fn cancel(pid: u32, key: &[u8], environment: &Environment) {
    environment.count(Counter::Cancels);
    let Some(secret) = environment.registry.cancel(pid, key) else {
        return;
    };
    let mut request = Vec::new();
    cancel_request(&mut request, pid, &secret);
    let send = async {
        let mut upstream = Stream::connect(&environment.config.upstream).await?;
        write_all(&mut upstream, &request).await?;
        // The server closes when it has signalled; libpq waits for that, and so do we, so that the
        // client's own wait means something.
        read(&mut upstream, &mut [0; 8]).await
    };
    let limit = environment.config.connect_timeout;
    match tokio::time::timeout(limit, send).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "cancel request not delivered"),
        Err(_) => tracing::debug!("cancel request not delivered in time"),
    }
}

async fn session(
    mut client: Stream,
    login: Login,
    pending: Vec<u8>,
    id: ClientId,
    deadline: Instant,
    environment: &Environment,
) -> Result<(), SessionError> {
    let config = &environment.config;
    let connecting = Stream::connect(&config.upstream);
    let connected = tokio::time::timeout(config.connect_timeout, connecting).await;
    let mut upstream = match connected.unwrap_or(Err(io::ErrorKind::TimedOut.into())) {
        Ok(upstream) => upstream,
        Err(error) => {
            let error = SessionError::Unreachable(error);
            last_word(&mut client, Vec::new(), &error).await;
            return Err(error);
        }
    };
    write_all(&mut upstream, &login.packet)
        .await
        .map_err(SessionError::UpstreamIo)?;
    let (driver, cancelled) = join(client, upstream, login, pending, id, environment)?;
    drive(driver, cancelled, deadline, environment).await
}

/// Joins a client to its server connection.
///
/// The driver is boxed because a future holds what it is given as well as what it works on, and
/// this is held for as long as the client is there.
fn join(
    client: Stream,
    upstream: Stream,
    login: Login,
    pending: Vec<u8>,
    id: ClientId,
    environment: &Environment,
) -> Result<(Box<Driver>, Arc<AtomicBool>), SessionError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| SessionError::System(error.into()))?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let key = Key {
        secret,
        cancelled: Arc::clone(&cancelled),
    };
    let worker = &environment.shared.borrow().worker;
    let database = worker.table.database(&login.database);
    // Startup options set the session's settings, so they belong to its identity.
    let identity = &login.packet;
    let session = Session::new(id, key, database, identity, login.replication, worker);
    let bound = environment.config.buffer_bytes;
    let driver = Driver::new(client, pending, upstream, session, bound);
    Ok((Box::new(driver), cancelled))
}

/// Runs the driver to its end, within the time allowed for login while that is not over.
async fn drive(
    mut driver: Box<Driver>,
    cancelled: Arc<AtomicBool>,
    deadline: Instant,
    environment: &Environment,
) -> Result<(), SessionError> {
    let mut registration = None;
    let mut on_key = |key: crate::session::ServerKey| {
        let given = (key.pid, key.ours);
        let registry = &environment.registry;
        registration = Some(registry.register(given, key.secret, Arc::clone(&cancelled)));
    };
    let mut login = Some(Box::pin(tokio::time::sleep_until(deadline)));
    let mut draining = environment.draining.clone();
    let mut drained = Box::pin(async move {
        // An error means that the sender is gone, which happens only after a drain.
        let _ = draining.wait_for(|draining| *draining).await;
    });
    let (mut is_watched, mut is_draining) = (false, false);
    let outcome = poll_fn(|context| {
        // Once polled it wakes this task when it is time; to poll it for every query costs as much
        // as to read one.
        let may_drain = !is_watched || !matches!(environment.draining.has_changed(), Ok(false));
        if !is_draining && may_drain {
            is_watched = true;
            if drained.as_mut().poll(context).is_ready() {
                is_draining = true;
                driver.drain();
            }
        }
        let shared = &mut *environment.shared.borrow_mut();
        if let Poll::Ready(outcome) = driver.poll(context, shared, &mut on_key) {
            return Poll::Ready(outcome);
        }
        if driver.is_logged_in() {
            login = None;
        }
        if let Some(deadline) = &mut login
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(SessionError::LoginTimeout));
        }
        Poll::Pending
    })
    .await;
    drop(registration);
    if let Err(error) = &outcome {
        let (mut client, unsent) = driver.into_client();
        last_word(&mut client, unsent, error).await;
    }
    outcome
}

/// Tells the client why its connection ends, if it is there to hear it.
async fn last_word(client: &mut Stream, mut unsent: Vec<u8>, error: &SessionError) {
    let Some((sqlstate, message)) = error.client_response() else {
        return;
    };
    backend::error_response(&mut unsent, "FATAL", sqlstate, &message);
    let speak = async {
        write_all(client, &unsent).await?;
        poll_fn(|context| client.poll_shutdown(context)).await
    };
    // Whether it was heard changes nothing.
    let _ = tokio::time::timeout(LAST_WORD, speak).await;
}

async fn read(stream: &mut Stream, bytes: &mut [u8]) -> io::Result<usize> {
    let mut buffer = ReadBuf::new(bytes);
    poll_fn(|context| stream.poll_read(context, &mut buffer)).await?;
    Ok(buffer.filled().len())
}

async fn write_all(stream: &mut Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|context| stream.poll_write(context, bytes)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or_default();
    }
    Ok(())
}
