//! A client before a worker has it: what it has come for, and whether it may stay.
//!
//! All of this waits for others more than it works, so it is tasks of the acceptor's runtime. What
//! happens between login and the end is a worker's.

use super::admission::{Admission, REFUSAL};
use super::console::{Console, Guest};
use super::environment::Environment;
use super::farewell::{CONNECTIONS, count_end, farewell, last_word};
use super::hasten::hasten;
use super::news::{News, Tells};
use super::orders::Joined;
use super::phase::Phase;
use super::stream::{Stream, read, write_all};
use super::survey::shown;
use super::tls::{ClientTerms, PROTOCOL, Tunnel};
use super::visitor::Visitor;
use crate::client::{Asks, Cancels, Greeting, Insister, Login};
use crate::error::ConnectionError;
use crate::hub::Unheard;
use crate::metrics::Counter;
use crate::wire;
use crate::wire::startup::{MAX_STARTUP, Packet, packet};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Clients that may be in the middle of a handshake of TLS at once. Each takes some 10 KiB, and for
/// a fraction of a second if nobody means harm, so these are thousands of logins a second.
pub(super) const HANDSHAKES: usize = 1024;

/// How long a cancel request waits at most until the client's worker has read what the client has
/// sent: much longer than a turn of the worker takes.
const TAKEN: Duration = Duration::from_secs(1);

/// After how long each time it is seen whether what was to be cancelled runs all the same. A server
/// that heard has mostly answered by the first.
const INSISTED: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(250),
];

/// The same for one of several statements of a query. Short ones take no longer than what is
/// between them, in which a server ignores it.
const INSISTED_ON_SERIES: [Duration; 9] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
    Duration::from_millis(32),
    Duration::from_millis(64),
    Duration::from_millis(128),
];

/// After how long it is seen which of the two it is.
const MOMENT: Duration = Duration::from_millis(1);

/// Where a client goes that was greeted.
pub(super) enum Bound {
    /// To a worker, and to which if that has to be one.
    Worker(Box<Joined>, Option<usize>),
    /// To the console, with what it has sent already.
    Console(Stream, Vec<u8>, Guest),
}

/// Greets one accepted client. Returns where it goes, if it stays. `load` tells how many clients a
/// worker has.
pub(super) async fn greet(
    client: Stream,
    number: u64,
    admission: Admission,
    (environment, console): (&Environment, &Arc<Console>),
    load: impl Fn(usize) -> usize,
) -> Option<Bound> {
    let all = (environment, console);
    let outcome = match converse(client, number, admission, all, load).await {
        Ok(Some(bound)) => return Some(bound),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome
        && environment.logs.disconnections()
    {
        let fault = error.fault();
        tracing::info!(
            target: CONNECTIONS,
            client = number,
            reason = %error,
            ?fault,
            "disconnected before its login was over"
        );
    }
    count_end(number, environment.metrics.acceptor(), &outcome);
    None
}

/// Tells one that has come when nobody is let in any more, once it has said what it wants: it may
/// cancel. It has to leave early when others need its `place`.
pub(super) async fn come_late(
    mut client: Stream,
    place: oneshot::Receiver<()>,
    (environment, console): (Arc<Environment>, Arc<Console>),
) {
    let counters = environment.metrics.acceptor();
    counters.add(Counter::ConnectionsOpened, 1);
    let mut greeted = Greeted::default();
    let greeting = tokio::select! {
        greeting = timeout(REFUSAL, greeted.greet(&mut client, &environment)) => greeting,
        Ok(()) = place => Ok(Err(ConnectionError::CameLate)),
    };
    let error = match greeting {
        Ok(Ok(None)) => return count_end(0, counters, &Ok(())),
        Ok(Ok(Some(Wish::Cancel(pid, key, is_passed_on)))) => {
            console.cancel(pid, &key);
            let asked = cancel(pid, &key, is_passed_on, &environment).await;
            let insisting = insist(asked, (pid, &key), &environment);
            tokio::join!(leave(client), insisting);
            return count_end(0, counters, &Ok(()));
        }
        Ok(Ok(Some(Wish::Login(_)))) | Err(_) => ConnectionError::CameLate,
        Ok(Err(error)) => error,
    };
    counters.add(Counter::ConnectionsRefused, 1);
    last_word(&mut client, Vec::new(), &error).await;
    count_end(0, counters, &Err(error));
}

async fn converse(
    mut client: Stream,
    number: u64,
    mut admission: Admission,
    (environment, console): (&Environment, &Arc<Console>),
    load: impl Fn(usize) -> usize,
) -> Result<Option<Bound>, ConnectionError> {
    let deadline = Instant::now() + admission.limit(environment.config().login_timeout);
    let mut greeted = Greeted::default();
    let mut draining = environment.draining.clone();
    let greeting = tokio::select! {
        greeting = timeout_at(deadline, greeted.greet(&mut client, environment)) => {
            greeting.unwrap_or(Err(ConnectionError::LoginTimeout))
        }
        error = is_over(&mut draining, &mut admission) => Err(error),
    };
    let error = match greeting {
        Ok(None) => return Ok(None),
        Ok(Some(Wish::Cancel(pid, key, is_passed_on))) => {
            // It does not leave before it is done, so it has no place to give.
            drop(admission);
            console.cancel(pid, &key);
            let asked = cancel(pid, &key, is_passed_on, environment).await;
            let insisting = insist(asked, (pid, &key), environment);
            tokio::join!(leave(client), insisting);
            return Ok(None);
        }
        Ok(Some(Wish::Login(login))) if console.is_meant(&login) => {
            let pending = &mut greeted.pending;
            let meeting = console.meet(&mut client, pending, login, number);
            let met = tokio::select! {
                met = timeout_at(deadline, meeting) => {
                    met.unwrap_or(Err(ConnectionError::LoginTimeout))
                }
                error = is_over(&mut draining, &mut admission) => Err(error),
            };
            match met {
                Ok(guest) => {
                    let pending = greeted.pending;
                    return Ok(guest.map(|guest| Bound::Console(client, pending, guest)));
                }
                Err(error) => error,
            }
        }
        Ok(Some(Wish::Login(_))) if admission.is_refusal() => ConnectionError::TooManyClients,
        Ok(Some(Wish::Login(login))) => {
            log_login(&login, number, &client, environment.logs.connections());
            let visitor = Visitor {
                login,
                number,
                deadline,
            };
            let pending = &mut greeted.pending;
            match visitor
                .join(&mut client, pending, admission, environment, load)
                .await
            {
                Ok(Some(met)) => {
                    let (joined, worker) = met.hand_over(client, greeted.pending)?;
                    return Ok(Some(Bound::Worker(Box::new(joined), worker)));
                }
                Ok(None) => return Ok(None),
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

/// A client asks to log in; whether that `is_told` to whoever has asked for it.
fn log_login(login: &Login, number: u64, client: &Stream, is_told: bool) {
    let tls = client.tls().map(Tunnel::describe);
    let replication = login.replication;
    tracing::debug!(client = number, replication, tls, "login");
    if !is_told {
        return;
    }
    let startup = match packet(&login.packet) {
        Ok(Some((Packet::Startup(startup), _))) => Some(startup),
        _ => None,
    };
    let application = startup.and_then(|startup| startup.parameter(b"application_name"));
    let address = client.peer();
    tracing::info!(
        target: CONNECTIONS,
        client = number,
        user = shown(&login.user),
        database = shown(&login.database),
        address = address.map_or_else(|| "local".to_owned(), |it| it.to_string()),
        tls,
        application = application.map(shown),
        replication,
        "login attempt"
    );
}

/// Waits until a client that is greeted has to go, and says why. There is a place for whoever sees
/// to a proxy that is full, but not for ever.
async fn is_over(
    draining: &mut watch::Receiver<Phase>,
    admission: &mut Admission,
) -> ConnectionError {
    tokio::select! {
        _ = draining.wait_for(Phase::is_ending) => ConnectionError::ShuttingDown,
        why = admission.is_over() => why,
    }
}

/// What a client has come for.
enum Wish {
    Login(Login),
    /// With this key; whether another instance has passed it on.
    Cancel(u32, Vec<u8>, bool),
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
        let tls = environment.tls.clients.terms();
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
                    self.encrypt(client, environment, (&tls, false)).await?;
                    continue;
                }
                Asks::EncryptAtOnce => {
                    self.encrypt(client, environment, (&tls, true)).await?;
                    continue;
                }
                // A cancel request may come in the clear: libpq before 17 knows no other way.
                Asks::Cancel {
                    pid,
                    key,
                    is_passed_on,
                } => return Ok(Some(Wish::Cancel(pid, key, is_passed_on))),
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
                    false => Err(ConnectionError::ClientProtocol(wire::Error::StartupCut)),
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
        (tls, at_once): (&ClientTerms, bool),
    ) -> Result<(), ConnectionError> {
        let counters = environment.metrics.acceptor();
        let address = client.peer().map(tracing::field::display);
        let failed = |error: io::Error| {
            counters.add(Counter::TlsFailures, 1);
            // Who only looks whether somebody is there ends it without a word.
            if error.kind() != io::ErrorKind::UnexpectedEof {
                tracing::info!(address, %error, "no TLS with a client");
            }
            ConnectionError::ClientTls(error)
        };
        let tunnel = match tls.tunnel() {
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

/// Ends the connection of who has asked, who waits for that.
async fn leave(mut client: Stream) {
    farewell(&mut client).await;
}

/// A worker that may hold a client's next query back, because the server is told once more to
/// cancel the one in hand. However this ends, the client goes on.
struct Holding(Arc<dyn Tells>, Insister);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.tell(News::Relents(self.1.clone()));
    }
}

/// Has the server told once more where it may not have heard. A statement of ours is several
/// messages, and between two of them a server ignores what it is told, as when it is idle. Whoever
/// has asked does not wait for that, as nobody does of whom the server has heard.
async fn insist(asked: Option<Arc<Cancels>>, whose: (u32, &[u8]), environment: &Environment) {
    let Some(cancels) = asked else { return };
    sleep(MOMENT).await;
    let pauses = match unheard(&cancels, whose, environment).await {
        Some((Unheard::Series, _)) => &INSISTED_ON_SERIES[..],
        Some(_) | None => &INSISTED[..],
    };
    for pause in pauses {
        sleep(*pause).await;
        let found = unheard(&cancels, whose, environment).await;
        // What comes of it is told when that is dropped.
        let Some((Unheard::Statement | Unheard::Series, _holding)) = found else {
            return;
        };
        let (pid, key) = whose;
        if let Some(request) = environment.registry.cancel(pid, key)
            && let Some((server, secret, endpoint)) = request.theirs()
        {
            hasten(server, secret, endpoint, environment).await;
        }
        // The query may be over because of this, and requests that have come for it meanwhile are
        // still under way: they would hit the next.
        let _ = timeout(TAKEN, delivered(&cancels)).await;
    }
}

/// Waits until all requests that have come have reached the server, or cannot.
async fn delivered(cancels: &Cancels) {
    while !cancels.all_delivered() {
        sleep(MOMENT).await;
    }
}

/// Whether the server may not have heard of these requests, and who holds the client back
/// meanwhile; `None` if nobody can tell.
async fn unheard(
    cancels: &Arc<Cancels>,
    (pid, key): (u32, &[u8]),
    environment: &Environment,
) -> Option<(Unheard, Holding)> {
    let worker = environment.registry.worker(pid, key)?;
    let (answer, answered) = oneshot::channel();
    let insister = Insister::new(cancels);
    worker.tell(News::Insists(insister.clone(), answer));
    let holding = Holding(worker, insister);
    let unheard = timeout(TAKEN, answered).await.ok()?.ok()?;
    Some((unheard, holding))
}

/// Waits until a worker has done what was to be done when it is told.
async fn settled(worker: &dyn Tells) {
    let (answer, answered) = oneshot::channel();
    worker.tell(News::Answer(answer));
    // If it has ended, or takes so long, nothing is made better by waiting.
    let _ = timeout(TAKEN, answered).await;
}

/// Relays a cancel request; whether it was one of ours is nobody's business. One that is not may be
/// for a client of the process before, or of another instance unless that has passed it on. Returns
/// the requests of our client if its server was told.
pub(super) async fn cancel(
    pid: u32,
    key: &[u8],
    is_passed_on: bool,
    environment: &Environment,
) -> Option<Arc<Cancels>> {
    environment.metrics.acceptor().add(Counter::Cancels, 1);
    if let Some(worker) = environment.registry.worker(pid, key) {
        // The client means what it has sent before, which its worker may not have read yet.
        settled(&*worker).await;
    }
    if let Some(request) = environment.registry.cancel(pid, key) {
        // What has gone to the server is there; the worker sends nothing more without a look at
        // the requests that have come.
        settled(request.worker()).await;
        if let Some((server, secret, endpoint)) = request.theirs() {
            hasten(server, secret, endpoint, environment).await;
            return Some(Arc::clone(request.cancels()));
        }
        return None;
    }
    let before = async {
        if let Some(predecessor) = &environment.predecessor {
            predecessor.cancel(pid, key).await;
        }
    };
    let beside = async {
        if !is_passed_on {
            let limit = environment.config().connect_timeout;
            environment.peers.pass_on((pid, key), limit).await;
        }
    };
    tokio::join!(before, beside);
    None
}
