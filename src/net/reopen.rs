//! A server connection for a client that is logged in and has none: opened as the client would open
//! it, but nobody is greeted.

use super::environment::Environment;
use super::news::Place;
use super::orders::{Mailbox, Opened, Order, Reached};
use super::reach::{Caller, Means, reach_again, says_not_now};
use super::session::Session;
use super::stream::{Stream, read};
use crate::error::ConnectionError;
use crate::hub;
use crate::ids::ClientId;
use crate::wire::frame::{self, HEADER};
use crate::wire::{backend, fields};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The longest answer to a login that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// The time after which a server that cannot take a session is tried again, at first, and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// A client that needs a server connection.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) client: ClientId,
    /// With which it has waited.
    pub(super) ticket: u64,
    pub(super) place: Place,
    pub(super) session: Session,
    /// Since when it waits for that.
    pub(super) since: std::time::Instant,
}

/// Opens a connection, and tells the client's worker.
pub(super) async fn reopen(wanted: Wanted, environment: Arc<Environment>, mailbox: Mailbox) {
    let (began, logins) = (std::time::Instant::now(), environment.shapes.logins());
    let outcome = wanted.open(&environment).await;
    if outcome.is_ok() {
        is_let_in(&wanted.session, &environment, began);
    }
    let Wanted {
        client,
        ticket,
        place,
        session,
        ..
    } = wanted;
    mailbox.put(Order::Opened(Box::new(Opened {
        client,
        ticket,
        place,
        startup: session.startup,
        database: session.database,
        way: session.way,
        logins,
        outcome,
    })));
}

impl Wanted {
    /// Tries until a session has begun, it is refused, or the time is over.
    async fn open(&self, environment: &Environment) -> Result<Reached, ConnectionError> {
        let [mut pause, longest] = AGAIN;
        loop {
            let error = match begin(&self.session, environment).await {
                Ok(reached) => return Ok(reached),
                Err(error) => error,
            };
            let next = Instant::now() + pause;
            let limit = environment.config().query_wait_timeout;
            let is_over = !limit.is_zero() && next >= (self.since + limit).into();
            if !is_passing(&error) || is_over {
                return Err(error);
            }
            if self.session.way.has_left(&self.session.endpoint) {
                return Err(error);
            }
            tracing::debug!(%error, "a server connection could not be opened");
            if is_crowded(&error) {
                // Those that nobody has may make room.
                environment.warm.drop_all();
            }
            tokio::time::sleep_until(next).await;
            pause = (pause * 2).min(longest);
        }
    }
}

/// The server has let this session in when it was begun at this time: the next clients need not
/// find out again that they would be.
pub(super) fn is_let_in(session: &Session, environment: &Environment, began: std::time::Instant) {
    let credential = session.credential.as_ref();
    let number = credential.map_or(0, |credential| credential.number());
    let identity = session.identity();
    environment.warm.accepted((&identity, number), began);
}

/// Begins a session.
///
/// # Errors
/// The server does not let it in, or not without asking for something, or cannot be reached.
pub(super) async fn begin(
    session: &Session,
    environment: &Environment,
) -> Result<Reached, ConnectionError> {
    let deadline = Instant::now() + environment.config().connect_timeout;
    let caller = Caller {
        packet: &session.startup,
        credential: session.credential.as_deref(),
        deadline,
    };
    let door = environment.doors.open();
    let means = Means::of(environment, &door);
    let mut arrived = reach_again(&session.way, &session.endpoint, caller, means).await?;
    let welcomed = welcome(&mut arrived.stream, &mut arrived.said);
    let late = |_| Err(ConnectionError::Unreachable(io::ErrorKind::TimedOut.into()));
    timeout_at(deadline, welcomed).await.unwrap_or_else(late)?;
    let upstream = arrived.stream.hand_over();
    Ok(Reached {
        upstream: upstream.map_err(ConnectionError::System)?,
        said: arrived.said,
        endpoint: arrived.endpoint,
    })
}

/// Reads what the server says to a login to its end.
async fn welcome(stream: &mut Stream, said: &mut Vec<u8>) -> Result<(), ConnectionError> {
    loop {
        match hub::is_welcomed(said) {
            Some(true) => return Ok(()),
            Some(false) => return Err(refusal(said)),
            None => {}
        }
        let mut bytes = [0; 1024];
        let count = read(stream, &mut bytes).await;
        let count = count.map_err(ConnectionError::UpstreamIo)?;
        if count == 0 || said.len() > MAX_ANSWER {
            let end = io::ErrorKind::UnexpectedEof;
            return Err(ConnectionError::UpstreamIo(end.into()));
        }
        said.extend_from_slice(bytes.get(..count).unwrap_or_default());
    }
}

/// Why a login was not answered by a welcome: in the server's words if it has any.
fn refusal(said: &[u8]) -> ConnectionError {
    let mut rest = said;
    while let Ok(Some(header)) = frame::header(rest) {
        let Some((frame, tail)) = rest.split_at_checked(header.size) else {
            break;
        };
        if header.tag == backend::ERROR {
            return ConnectionError::ServerRefused(frame.to_vec());
        }
        rest = tail;
    }
    // It asks for something that only the client could answer.
    ConnectionError::SessionChanged
}

/// Whether it is worth to try again: the server is away, starts, or has no room.
pub(super) fn is_passing(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::Unreachable(_) | ConnectionError::UpstreamIo(_) => true,
        ConnectionError::ServerRefused(message) => says_not_now(message) || is_crowded(error),
        _ => false,
    }
}

/// Whether the server has no room for one more session.
fn is_crowded(error: &ConnectionError) -> bool {
    const TOO_MANY_CONNECTIONS: &[u8] = b"53300";
    let ConnectionError::ServerRefused(message) = error else {
        return false;
    };
    let body = message.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(TOO_MANY_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_asks_for_something_has_refused() {
        let challenge = b"R\0\0\0\x0c\0\0\0\x05salt";
        assert!(matches!(
            refusal(challenge),
            ConnectionError::SessionChanged
        ));
        let mut error = b"R\0\0\0\x08\0\0\0\0".to_vec();
        backend::error_response(&mut error, "FATAL", "53300", "full");
        let refused = refusal(&error);
        assert!(is_crowded(&refused) && is_passing(&refused));
        let mut error = Vec::new();
        backend::error_response(&mut error, "FATAL", "28000", "no");
        assert!(!is_passing(&refusal(&error)));
    }
}
