//! A client before a worker has it and after: greeting, server connection, last word.
//!
//! All of this waits for others more than it works, so it is tasks of the acceptor's runtime. What
//! happens between login and the end is a worker's.

use super::Phase;
use super::cancel::Registry;
use super::dial::dial;
use super::orders::{Arrival, Joined, Mailbox, Order, Via};
use super::places::Places;
use super::proof::is_let_in;
use super::stream::{Handover, Stream, read, write_all};
use super::tls::{Encryption, PROTOCOL, Tunnel};
use super::warm::{Answer, Warm};
use crate::client::{Asks, CancelKey, Greeting, Login};
use crate::config::Config;
use crate::error::{ConnectionError, Fault};
use crate::ids::UpstreamId;
use crate::metrics::{Counter, Counters, Metrics};
use crate::wire::startup::{MAX_STARTUP, cancel_request};
use crate::wire::{self, backend};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// How long a last word to a client that does not read may take.
pub(super) const LAST_WORD: Duration = Duration::from_secs(1);

/// How long a client that was turned away may take to send its startup packet: it must have been
/// read before the answer, or closing the socket would destroy the answer on its way.
const REFUSAL: Duration = Duration::from_secs(2);

/// Clients that may be in the middle of a handshake of TLS at once. Each takes some 10 KiB, and for
/// a fraction of a second if nobody means harm, so these are thousands of logins a second.
pub(super) const HANDSHAKES: usize = 1024;
/// How long server processes that were told to go may take, before one more is asked for.
const ROOM: Duration = Duration::from_millis(50);

/// What greeting a client takes.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) warm: Arc<Warm>,
    /// Says when the proxy is ending.
    pub(super) draining: watch::Receiver<Phase>,
    pub(super) tls: Arc<Encryption>,
    /// Those who are in the middle of a handshake of TLS.
    pub(super) handshakes: Mutex<Places>,
}

/// Whether there is room for a client.
#[derive(Debug)]
pub(super) enum Admission {
    Admitted,
    /// There is none, so it may only cancel; resolves when others need its place.
    Refused(oneshot::Receiver<()>),
}

impl Admission {
    const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Waits until the client has to be refused without having been heard.
    async fn is_over(&mut self) {
        match self {
            Self::Admitted => std::future::pending().await,
            // The acceptor keeps the sender until it is used.
            Self::Refused(over) => drop(over.await),
        }
    }
}

/// Greets one accepted client. Returns what is to be handed to a worker, if there will be a
/// session, and to which if that has to be one. `load` tells how many clients a worker has.
pub(super) async fn greet(
    client: Stream,
    number: u64,
    admission: Admission,
    environment: &Environment,
    load: impl Fn(usize) -> usize,
) -> Option<(Joined, Option<usize>)> {
    let outcome = match converse(client, number, admission, environment, load).await {
        Ok(Some(joined)) => return Some(joined),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    count_end(number, environment.metrics.acceptor(), &outcome);
    None
}

/// Counts the end of a connection, and says in the log how it ended.
pub(super) fn count_end(number: u64, counters: &Counters, outcome: &Result<(), ConnectionError>) {
    counters.add(Counter::ConnectionsClosed, 1);
    let Err(error) = outcome else {
        tracing::debug!(client = number, "connection closed");
        return;
    };
    let fault = error.fault();
    let counter = match fault {
        Fault::Client => Counter::ErrorsClient,
        Fault::Upstream => Counter::ErrorsUpstream,
        Fault::Proxy => Counter::ErrorsProxy,
    };
    counters.add(counter, 1);
    tracing::debug!(client = number, %error, ?fault, "connection ended");
}

async fn converse(
    mut client: Stream,
    number: u64,
    mut admission: Admission,
    environment: &Environment,
    load: impl Fn(usize) -> usize,
) -> Result<Option<(Joined, Option<usize>)>, ConnectionError> {
    let limit = if admission.is_refusal() {
        REFUSAL
    } else {
        environment.config.login_timeout
    };
    let deadline = Instant::now() + limit;
    let mut greeted = Greeted::default();
    let mut draining = environment.draining.clone();
    let greeting = tokio::select! {
        greeting = timeout_at(deadline, greeted.greet(&mut client, environment)) => {
            greeting.unwrap_or(Err(ConnectionError::LoginTimeout))
        }
        _ = draining.wait_for(|phase| *phase != Phase::Serving) => {
            Err(ConnectionError::ShuttingDown)
        }
        () = admission.is_over() => Err(ConnectionError::TooManyClients),
    };
    let error = match greeting {
        Ok(None) => return Ok(None),
        Ok(Some(Wish::Cancel { pid, key })) => {
            cancel(pid, &key, environment).await;
            farewell(&mut client).await;
            return Ok(None);
        }
        Ok(Some(Wish::Login(_))) if admission.is_refusal() => ConnectionError::TooManyClients,
        Ok(Some(Wish::Login(login))) => {
            let tls = client.tls().map(Tunnel::describe);
            tracing::debug!(
                client = number,
                replication = login.replication,
                tls,
                "login"
            );
            let began = std::time::Instant::now();
            let (via, worker, is_spare) = match choose(&login, began, environment, load).await {
                Chosen::Warm(worker, id) => (Ok(Via::Warm(id)), Some(worker), false),
                Chosen::Cold { is_spare } => {
                    let upstream = connect(&login, environment).await;
                    (upstream.map(Via::Connection), None, is_spare)
                }
            };
            match via {
                Ok(via) => {
                    let joined = Joined {
                        client: client.hand_over().map_err(ConnectionError::System)?,
                        via,
                        login,
                        pending: greeted.pending,
                        key: new_key()?,
                        deadline: deadline.into_std(),
                        began,
                        is_spare,
                        is_second: false,
                    };
                    return Ok(Some((joined, worker)));
                }
                Err(error) => error,
            }
        }
        // It has been slow to send what it is refused for.
        Err(ConnectionError::LoginTimeout) if admission.is_refusal() => {
            ConnectionError::TooManyClients
        }
        Err(error) => error,
    };
    last_word(&mut client, Vec::new(), &error).await;
    Err(error)
}

/// What is done with a login.
enum Chosen {
    /// It gets this connection of this worker.
    Warm(usize, UpstreamId),
    /// It is sent to the server.
    Cold {
        /// There are warm connections.
        is_spare: bool,
    },
}

/// What to do with this login, which began at this time. If it is time to see whether the server
/// still lets such clients in, the proxy logs in first, and the client gets a warm connection, too:
/// its own would be closed behind it, because there are others that hold statements.
async fn choose(
    login: &Login,
    began: std::time::Instant,
    environment: &Environment,
    load: impl Fn(usize) -> usize,
) -> Chosen {
    if !environment.warm.is_on() || login.replication {
        return Chosen::Cold { is_spare: false };
    }
    let warm = &environment.warm;
    let mut answer = warm.answer(&login.packet, began, &load);
    if answer == Answer::Prove {
        let is_let_in = match reach(login, environment).await {
            Ok(upstream) => is_let_in(upstream, environment.config.connect_timeout).await,
            Err(_) => false,
        };
        match is_let_in {
            true => warm.accepted(&login.packet, began),
            false => warm.refused(&login.packet),
        }
        answer = warm.answer(&login.packet, std::time::Instant::now(), &load);
    }
    match answer {
        Answer::Warm(worker, id) => Chosen::Warm(worker, id),
        Answer::Cold { is_spare } => Chosen::Cold { is_spare },
        // The server takes its time.
        Answer::Prove => Chosen::Cold { is_spare: true },
    }
}

/// Connects to the server for a client that was to have a warm connection, and hands it to its
/// worker once more.
pub(super) async fn redial(arrival: Arrival, environment: Arc<Environment>, mailbox: Mailbox) {
    let Arrival {
        mut joined,
        number,
        open,
    } = arrival;
    if joined.is_second {
        tokio::time::sleep(ROOM).await;
    }
    match connect(&joined.login, &environment).await {
        Ok(upstream) => {
            joined.via = Via::Connection(upstream);
            mailbox.put(Order::Serve(Box::new(Arrival {
                joined,
                number,
                open,
            })));
        }
        Err(error) => {
            let unsent = Vec::new();
            let (client, outcome) = (joined.client, Err(error));
            count_end(number, environment.metrics.acceptor(), &outcome);
            if let Err(error) = outcome {
                dismiss(client, unsent, error).await;
            }
        }
    }
}

/// Connects to the server for a client, and sends its startup packet.
async fn connect(login: &Login, environment: &Environment) -> Result<Handover, ConnectionError> {
    let upstream = reach(login, environment).await?;
    upstream.hand_over().map_err(ConnectionError::System)
}

/// Connects to the server and sends the startup packet.
async fn reach(login: &Login, environment: &Environment) -> Result<Stream, ConnectionError> {
    let config = &environment.config;
    let counters = environment.metrics.acceptor();
    let dialled = dial(&config.upstream, &environment.tls.servers, counters);
    let connected = tokio::time::timeout(config.connect_timeout, dialled).await;
    let late = |_| Err(ConnectionError::Unreachable(io::ErrorKind::TimedOut.into()));
    let mut upstream = connected.unwrap_or_else(late)?;
    write_all(&mut upstream, &login.packet)
        .await
        .map_err(ConnectionError::UpstreamIo)?;
    Ok(upstream)
}

fn new_key() -> Result<CancelKey, ConnectionError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| ConnectionError::System(error.into()))?;
    Ok(CancelKey {
        secret,
        cancelled: Arc::default(),
    })
}

/// What a client has come for.
enum Wish {
    Login(Login),
    Cancel { pid: u32, key: Vec<u8> },
}

/// What a client has sent before a worker has it.
#[derive(Debug, Default)]
struct Greeted {
    pending: Vec<u8>,
}

impl Greeted {
    /// Reads until the client wants to log in or cancel; `None` if it leaves without.
    async fn greet(
        &mut self,
        client: &mut Stream,
        environment: &Environment,
    ) -> Result<Option<Wish>, ConnectionError> {
        let tls = &environment.tls.clients;
        let mut greeting = Greeting::new(tls.is_offered() && !client.is_local());
        loop {
            let (step, used) = greeting
                .step(&self.pending)
                .map_err(ConnectionError::ClientProtocol)?;
            self.pending.drain(..used);
            match step {
                Asks::Wait => {}
                Asks::Refuse(answer) => {
                    write_all(client, &[answer])
                        .await
                        .map_err(ConnectionError::ClientIo)?;
                    continue;
                }
                Asks::Encrypt => {
                    write_all(client, b"S")
                        .await
                        .map_err(ConnectionError::ClientIo)?;
                    self.encrypt(client, environment, false).await?;
                    continue;
                }
                Asks::EncryptAtOnce => {
                    self.encrypt(client, environment, true).await?;
                    continue;
                }
                // A cancel request may come in the clear: libpq before 17 knows no other way.
                Asks::Cancel { pid, key } => return Ok(Some(Wish::Cancel { pid, key })),
                Asks::Login(login) => {
                    let is_safe = client.is_local() || client.tls().is_some();
                    if tls.is_required() && !is_safe {
                        return Err(ConnectionError::NotEncrypted);
                    }
                    return Ok(Some(Wish::Login(login)));
                }
            }
            let mut bytes = [0; 1024];
            let count = read(client, &mut bytes)
                .await
                .map_err(ConnectionError::ClientIo)?;
            if count == 0 {
                // Port scanners and health checks: no error, unless something had begun.
                return match self.pending.is_empty() {
                    true => Ok(None),
                    false => Err(ConnectionError::ClientProtocol(wire::Error::StartupLayout)),
                };
            }
            self.pending
                .extend_from_slice(bytes.get(..count).unwrap_or_default());
            // A whole packet is taken at once, so this cannot grow past one and a read.
            debug_assert!(self.pending.len() <= MAX_STARTUP + bytes.len());
        }
    }

    /// Shakes hands, unless others need the place first. Whoever begins `at_once` has to name the
    /// protocol, because it may believe that it speaks to a web server.
    async fn encrypt(
        &mut self,
        client: &mut Stream,
        environment: &Environment,
        at_once: bool,
    ) -> Result<(), ConnectionError> {
        let counters = environment.metrics.acceptor();
        let failed = |error: io::Error| {
            counters.add(Counter::TlsFailures, 1);
            ConnectionError::ClientTls(error)
        };
        let tunnel = match environment.tls.clients.tunnel() {
            Some(Ok(tunnel)) => tunnel,
            Some(Err(error)) => return Err(failed(io::Error::other(error))),
            None => return Err(failed(io::ErrorKind::Unsupported.into())),
        };
        let place = {
            let handshakes = environment.handshakes.lock();
            handshakes.unwrap_or_else(PoisonError::into_inner).take()
        };
        let outcome = tokio::select! {
            outcome = client.encrypt(tunnel, &mut self.pending) => outcome,
            _ = place => Err(io::Error::other("too many handshakes at once")),
        };
        outcome.map_err(failed)?;
        if at_once && client.tls().and_then(Tunnel::protocol) != Some(PROTOCOL) {
            return Err(failed(io::Error::other("no protocol was named in ALPN")));
        }
        counters.add(Counter::TlsHandshakes, 1);
        Ok(())
    }
}

/// Relays a cancel request; whether it was one of ours is nobody's business.
async fn cancel(pid: u32, key: &[u8], environment: &Environment) {
    let counters = environment.metrics.acceptor();
    counters.add(Counter::Cancels, 1);
    let Some(target) = environment.registry.cancel(pid, key) else {
        return;
    };
    let mut request = Vec::new();
    cancel_request(&mut request, pid, target.secret());
    let send = async {
        let (config, tls) = (&environment.config, &environment.tls);
        let dialled = dial(&config.upstream, &tls.servers, counters);
        let mut upstream = dialled.await?;
        let sent = write_all(&mut upstream, &request).await;
        sent.map_err(ConnectionError::UpstreamIo)?;
        // The server closes when it has signalled; libpq waits for that, and so do we, so that the
        // client's own wait means something.
        let ended = read(&mut upstream, &mut [0; 64]).await;
        ended.map_err(ConnectionError::UpstreamIo)
    };
    let limit = environment.config.connect_timeout;
    match tokio::time::timeout(limit, send).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "cancel request not delivered"),
        Err(_) => tracing::debug!("cancel request not delivered in time"),
    }
}

/// Tells a client that a worker has ended why, behind what it has not been sent yet.
pub(super) async fn dismiss(client: Handover, unsent: Vec<u8>, error: ConnectionError) {
    match Stream::adopt(client) {
        Ok(mut client) => last_word(&mut client, unsent, &error).await,
        Err(error) => tracing::debug!(%error, "a last word could not be said"),
    }
}

/// Tells the client why its connection ends, if it is there to hear it.
async fn last_word(client: &mut Stream, mut unsent: Vec<u8>, error: &ConnectionError) {
    let Some((sqlstate, message)) = error.client_response() else {
        return;
    };
    if client.tls().is_some_and(Tunnel::is_handshaking) {
        return;
    }
    backend::error_response(&mut unsent, "FATAL", sqlstate, &message);
    let speak = async {
        write_all(client, &unsent).await?;
        poll_fn(|context| client.poll_shutdown(context)).await
    };
    // Whether it was heard changes nothing.
    let _ = tokio::time::timeout(LAST_WORD, speak).await;
}

/// Ends an encrypted connection as it should be. Who does not listen any more misses nothing.
async fn farewell(client: &mut Stream) {
    if client.tls().is_some() {
        let speak = poll_fn(|context| client.poll_shutdown(context));
        let _ = tokio::time::timeout(LAST_WORD, speak).await;
    }
}
