//! How a session gets to a server: the addresses of a way are tried one after the other until one
//! of them leads to a server that lets it in and fits, as libpq tries several hosts.
//!
//! Names are resolved again each time. What is tried next, and what is the end of it, is libpq's: a
//! server that cannot be reached, hangs up, starts up or shuts down (57P03), or does not fit, makes
//! way for the next; one that refuses the login does not.

use super::attrs::{Fit, Reported, answered};
use super::dial::dial;
use super::door::{Conversation, Door, log_in, unexpected};
use super::endpoint::Endpoint;
use super::environment::Environment;
use super::stream::{Stream, read, write_all};
use super::tls::ServerSide;
use super::ways::{Way, Ways, shuffle};
use crate::auth::Credential;
use crate::config::{Address, SessionAttrs};
use crate::error::ConnectionError;
use crate::metrics::Counters;
use crate::wire::frame::{self, HEADER};
use crate::wire::{backend, fields, frontend};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The most addresses of one name that are tried.
const MAX_PEERS: usize = 64;

/// The most bytes that a server may say until it is known whether it fits: its welcome, which takes
/// a thousand.
const MAX_SAID: usize = 64 * 1024;

/// The server is starting up, shutting down, or cannot take sessions yet: `cannot_connect_now`.
const NOT_NOW: &[u8] = b"57P03";

/// What it takes to get there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'e> {
    pub(super) ways: &'e Ways,
    pub(super) tls: &'e ServerSide,
    pub(super) counters: &'e Counters,
    pub(super) door: &'e Door,
    /// How long one server may take.
    pub(super) limit: Duration,
}

impl<'e> Means<'e> {
    /// Those of the proxy, for who has come through this door.
    pub(super) fn of(environment: &'e Environment, door: &'e Door) -> Self {
        Self {
            ways: &environment.ways,
            tls: &environment.tls.servers,
            counters: environment.metrics.acceptor(),
            door,
            limit: environment.config().connect_timeout,
        }
    }
}

/// Who wants to get there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'c> {
    /// The startup packet.
    pub(super) packet: &'c [u8],
    /// What the server can be shown; none if it is to ask the client.
    pub(super) credential: Option<&'c Credential>,
    /// When all of it must be over.
    pub(super) deadline: Instant,
}

impl Caller<'_> {
    /// When something must be over that may take so long.
    fn until(&self, limit: Duration) -> Instant {
        self.deadline.min(Instant::now() + limit)
    }
}

/// A connection on which the startup packet has been sent, or the login is over.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) stream: Stream,
    /// What the server has said already.
    pub(super) said: Vec<u8>,
    pub(super) endpoint: Arc<Endpoint>,
}

/// Why nobody gets there, and from where that came if somebody has said it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ConnectionError,
    pub(super) endpoint: Option<Arc<Endpoint>>,
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        let endpoint = None;
        Self { error, endpoint }
    }
}

impl Failure {
    /// Whether another server may do better.
    fn may_differ(&self) -> bool {
        match &self.error {
            ConnectionError::Unreachable(_)
            | ConnectionError::UpstreamIo(_)
            | ConnectionError::Unfit(_) => true,
            ConnectionError::ServerRefused(message) => says_not_now(message),
            _ => false,
        }
    }

    /// The one of two that says more of why: the first server that was there, or else the last.
    fn or(self, other: Self) -> Self {
        let is_there = |failure: &Self| {
            matches!(
                failure.error,
                ConnectionError::Unfit(_) | ConnectionError::ServerRefused(_)
            )
        };
        match is_there(&self) && !is_there(&other) {
            true => self,
            false => other,
        }
    }
}

/// Whether this ErrorResponse says that the server takes no sessions now.
pub(super) fn says_not_now(message: &[u8]) -> bool {
    let body = message.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(NOT_NOW)
}

/// Tries the addresses of a way in this order.
pub(super) async fn reach(
    way: &Way,
    order: &[usize],
    caller: Caller<'_>,
    means: Means<'_>,
) -> Result<Arrived, Failure> {
    let attrs = way.destination.attrs;
    // First for a standby, then for any.
    let passes = match attrs {
        SessionAttrs::PreferStandby => &[SessionAttrs::PreferStandby, SessionAttrs::Any][..],
        _ => &[attrs][..],
    };
    let nowhere = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut why = Failure::from(ConnectionError::Unreachable(nowhere));
    for attrs in passes {
        for at in order {
            match reach_by(way, *at, *attrs, caller, means).await {
                Ok(arrived) => {
                    way.leads(*at, &arrived.endpoint);
                    return Ok(arrived);
                }
                Err(failure) if failure.may_differ() => {
                    way.fails(*at);
                    why = why.or(failure);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    Err(why)
}

/// Tries one address of a way, which may be several.
async fn reach_by(
    way: &Way,
    at: usize,
    attrs: SessionAttrs,
    caller: Caller<'_>,
    means: Means<'_>,
) -> Result<Arrived, Failure> {
    let nowhere = || Failure::from(unreachable(io::ErrorKind::AddrNotAvailable.into()));
    let destination = &way.destination;
    let address = destination.addresses.get(at).ok_or_else(nowhere)?;
    let mut why = nowhere();
    let mut peers = resolve(address, caller.until(means.limit)).await?;
    if destination.is_balanced {
        shuffle(&mut peers)?;
    }
    for peer in peers {
        let endpoint = means.ways.endpoints.get(address, peer, destination.attrs);
        let tried = match way.has_choice() {
            false => try_one(&endpoint, attrs, caller, means, false).await,
            true => {
                let trying = try_one(&endpoint, attrs, caller, means, true);
                let late = |_| Err(unreachable(io::ErrorKind::TimedOut.into()));
                timeout_at(caller.until(means.limit), trying)
                    .await
                    .unwrap_or_else(late)
            }
        };
        let failure = match tried {
            Ok((stream, said)) => {
                return Ok(Arrived {
                    stream,
                    said,
                    endpoint,
                });
            }
            Err(error) => Failure {
                error,
                endpoint: Some(endpoint),
            },
        };
        if !failure.may_differ() {
            return Err(failure);
        }
        tracing::debug!(server = %address, ?peer, error = %failure.error, "no session there");
        why = why.or(failure);
    }
    Err(why)
}

/// Tries one server only, which was reached before by this way.
pub(super) async fn reach_again(
    way: &Way,
    endpoint: &Arc<Endpoint>,
    caller: Caller<'_>,
    means: Means<'_>,
) -> Result<Arrived, ConnectionError> {
    let attrs = match way.destination.attrs {
        SessionAttrs::PreferStandby => SessionAttrs::Any,
        attrs => attrs,
    };
    let (stream, said) = try_one(endpoint, attrs, caller, means, false).await?;
    Ok(Arrived {
        stream,
        said,
        endpoint: Arc::clone(endpoint),
    })
}

const fn unreachable(error: io::Error) -> ConnectionError {
    ConnectionError::Unreachable(error)
}

/// Where an address leads now.
async fn resolve(
    address: &Address,
    until: Instant,
) -> Result<Vec<Option<SocketAddr>>, ConnectionError> {
    let Address::Tcp { host, port } = address else {
        return Ok(vec![None]);
    };
    let found = timeout_at(until, tokio::net::lookup_host((host.as_str(), *port))).await;
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    let found = found.unwrap_or_else(late);
    if let Err(error) = &found {
        tracing::warn!(server = %address, %error, "the server's name leads nowhere");
    }
    let found = found.map_err(unreachable)?;
    Ok(found.take(MAX_PEERS).map(Some).collect())
}

/// Tries one server. If there is a choice, it is waited for what the server says first, because it
/// may be that it takes no sessions now.
async fn try_one(
    endpoint: &Endpoint,
    attrs: SessionAttrs,
    caller: Caller<'_>,
    means: Means<'_>,
    has_choice: bool,
) -> Result<(Stream, Vec<u8>), ConnectionError> {
    let dialled = dial(endpoint, means.tls, means.counters);
    let connected = timeout_at(caller.until(means.limit), dialled).await;
    let late = |_| Err(unreachable(io::ErrorKind::TimedOut.into()));
    let connected = connected.unwrap_or_else(late);
    if let Err(ConnectionError::Unreachable(error)) = &connected {
        tracing::warn!(server = %endpoint.address, %error, "could not connect to the server");
    }
    let mut upstream = connected?;
    let Some(credential) = caller.credential else {
        let sent = write_all(&mut upstream, caller.packet).await;
        sent.map_err(ConnectionError::UpstreamIo)?;
        let said = match has_choice {
            true => first_words(&mut upstream).await?,
            false => Vec::new(),
        };
        return Ok((upstream, said));
    };
    let entering = log_in(upstream, caller.packet, credential, means.door);
    let entered = timeout_at(caller.deadline, entering).await;
    let entered = entered.unwrap_or(Err(ConnectionError::LoginTimeout));
    if let Err(ConnectionError::UpstreamLogin(error)) = &entered {
        let user = String::from_utf8_lossy(credential.user());
        tracing::warn!(%user, %error, "login to the server failed");
    }
    let (upstream, said) = entered?;
    if attrs == SessionAttrs::Any {
        return Ok((upstream, said));
    }
    let checking = check(upstream, said, attrs);
    let checked = timeout_at(caller.deadline, checking).await;
    checked.unwrap_or(Err(ConnectionError::LoginTimeout))
}

/// What a server says first to a startup packet, unless it is that it takes no sessions now.
async fn first_words(upstream: &mut Stream) -> Result<Vec<u8>, ConnectionError> {
    let mut said = Vec::new();
    loop {
        let header = frame::header(&said).map_err(ConnectionError::UpstreamProtocol)?;
        match header {
            Some(header) if header.tag != backend::ERROR || header.size > MAX_SAID => {
                return Ok(said);
            }
            Some(header) if said.len() >= header.size => {
                return match says_not_now(&said) {
                    true => Err(ConnectionError::ServerRefused(said)),
                    false => Ok(said),
                };
            }
            _ => {}
        }
        let mut bytes = [0; 1024];
        let count = read(upstream, &mut bytes).await;
        let count = count.map_err(ConnectionError::UpstreamIo)?;
        if count == 0 {
            // What it has said is all there is: the client is told that much.
            return match said.is_empty() {
                true => Err(ConnectionError::UpstreamIo(
                    io::ErrorKind::UnexpectedEof.into(),
                )),
                false => Ok(said),
            };
        }
        said.extend_from_slice(bytes.get(..count).unwrap_or_default());
    }
}

/// Reads what a server says to a login that it has accepted, and finds out whether the session
/// fits. An error is for the client.
async fn check(
    upstream: Stream,
    said: Vec<u8>,
    attrs: SessionAttrs,
) -> Result<(Stream, Vec<u8>), ConnectionError> {
    let mut conversation = Conversation::resumed(upstream, said);
    let (mut said, mut reported) = (Vec::new(), Reported::default());
    let mut question = None;
    let mut answer = Vec::new();
    loop {
        let (tag, message) = conversation.next().await?;
        if said.len() + message.len() > MAX_SAID {
            return Err(unexpected(tag));
        }
        let body = message.get(HEADER..).unwrap_or_default();
        let is_for_us = question.is_some()
            && matches!(
                tag,
                backend::ROW_DESCRIPTION | backend::COMMAND_COMPLETE | backend::READY_FOR_QUERY
            );
        match tag {
            backend::PARAMETER_STATUS => reported.note(body),
            backend::DATA_ROW if question.is_some() => {
                answer = backend::columns(body)
                    .next()
                    .flatten()
                    .unwrap_or_default()
                    .to_vec();
                continue;
            }
            backend::ERROR if question.is_some() => {
                return Err(ConnectionError::Unfit("the server cannot be asked"));
            }
            backend::ERROR => {
                said.extend_from_slice(&message);
                return Ok(conversation.ended(said));
            }
            _ => {}
        }
        if !is_for_us {
            said.extend_from_slice(&message);
        }
        if tag != backend::READY_FOR_QUERY {
            continue;
        }
        let fit = match question {
            None => reported.fits(attrs),
            Some(_) => answered(attrs, &answer),
        };
        match fit {
            Fit::Fits => return Ok(conversation.ended(said)),
            Fit::Unfit(why) => {
                // What it does not hear, it sees.
                let _ = conversation.say(frontend::TERMINATE_FRAME).await;
                return Err(ConnectionError::Unfit(why));
            }
            Fit::Ask(text) => {
                let mut query = Vec::new();
                frontend::query(&mut query, text.as_bytes());
                conversation.say(&query).await?;
                question = Some(text);
            }
        }
    }
}
