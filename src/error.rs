//! Why a connection ended: who is to blame, and what the client may be told.

use crate::auth::{LoginError, Refusal};
use crate::reason::LoginRefused;
use crate::wire;
use crate::wire::frame::HEADER;
use crate::wire::{backend, fields};
use std::io;

/// Who is to blame for the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The client is to blame: it sent what it may not, or went away.
    Client,
    /// The server is to blame: it sent what it may not, went away, or cannot be reached.
    Upstream,
    /// Nobody is to blame: an operator has ended it at the console, or shuts the proxy down.
    Operator,
    /// The proxy is to blame: it met a limit, or has a defect.
    Proxy,
}

impl Fault {
    /// What it is called in logs and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Upstream => "server",
            Self::Operator => "operator",
            Self::Proxy => "proxy",
        }
    }
}

/// What a client has done for longer than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// Nothing, outside a transaction.
    ClientIdle,
    /// Nothing, inside one.
    IdleTransaction,
    /// One query.
    Query,
    /// One transaction.
    Transaction,
}

impl TimeLimit {
    /// The SQLSTATE of the server's own limit of that kind, and a message that begins with
    /// `PgBouncer`'s name of it, which people look for.
    const fn response(self) -> (&'static str, &'static str) {
        match self {
            Self::ClientIdle => (
                "57P05",
                "client_idle_timeout: the session was idle for too long",
            ),
            Self::IdleTransaction => (
                "25P03",
                "idle_transaction_timeout: the transaction was idle for too long",
            ),
            Self::Query => ("57014", "query_timeout: the query took too long"),
            Self::Transaction => (
                "25P04",
                "transaction_timeout: the transaction took too long",
            ),
        }
    }
}

/// Why a connection ended before both sides were done.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The client's bytes do not follow the protocol.
    #[error("the client sent malformed bytes: {0}")]
    ClientProtocol(wire::Error),
    /// The server's bytes do not follow the protocol, or cannot follow what came before.
    #[error("the server sent malformed bytes: {0}")]
    UpstreamProtocol(wire::Error),
    /// Reading from or writing to the client failed.
    #[error("connection to the client lost: {0}")]
    ClientIo(io::Error),
    /// Reading from or writing to the server failed.
    #[error("connection to the server lost: {0}")]
    UpstreamIo(io::Error),
    /// The server could not be reached.
    #[error("could not connect to the server: {0}")]
    Unreachable(io::Error),
    /// Encryption with the client failed.
    #[error("TLS with the client failed: {0}")]
    ClientTls(io::Error),
    /// The client does not encrypt, and must.
    #[error("the client does not use TLS")]
    NotEncrypted,
    /// The client has not proven who it is.
    #[error("login refused: {}", .0.reason())]
    ClientRefused(Refusal),
    /// The server has refused the proxy's login for the client, with this ErrorResponse.
    #[error("login refused by the server")]
    ServerRefused(Vec<u8>),
    /// The proxy cannot log in to the server for the client.
    #[error("login to the server failed: {0}")]
    UpstreamLogin(LoginError),
    /// It cannot be found out who may log in.
    #[error("the server could not be asked for the user's secret")]
    NoSecrets,
    /// The server's sessions do not fit `target_session_attrs`, for this reason.
    #[error("could not connect to the server: {0}")]
    Unfit(&'static str),
    /// Encryption with the server failed.
    #[error("TLS with the server failed: {0}")]
    UpstreamTls(io::Error),
    /// The client took too long to log in.
    #[error("login took longer than the login timeout")]
    LoginTimeout,
    /// No further client may connect, because `max_clients` are connected.
    #[error("too many clients")]
    TooManyClients,
    /// No server connection became free for it in time.
    #[error("no server connection became free within the query wait timeout")]
    WaitTimeout,
    /// It has done something for longer than it may.
    #[error("{}", .0.response().1)]
    TimedOut(TimeLimit),
    /// It had no server connection, and sessions begin otherwise now than its own did.
    #[error("sessions begin otherwise now than the client's did")]
    SessionChanged,
    /// The proxy is shutting down.
    #[error("the proxy is shutting down")]
    ShuttingDown,
    /// The proxy was shutting down already when the client came.
    #[error("the proxy is shutting down, and takes no new clients")]
    CameLate,
    /// Somebody at the console has ended it.
    #[error("ended at the console")]
    Terminated,
    /// The console lets nobody in like this: the SQLSTATE, and why.
    #[error("refused at the console: {1}")]
    ConsoleRefused(&'static str, String),
    /// The proxy could not get what it needs from the operating system.
    #[error("operating system: {0}")]
    System(io::Error),
}

impl ConnectionError {
    /// Who is to blame.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::ClientProtocol(_)
            | Self::ClientIo(_)
            | Self::ClientTls(_)
            | Self::NotEncrypted
            | Self::ClientRefused(_)
            | Self::ConsoleRefused(..)
            | Self::ServerRefused(_)
            | Self::TimedOut(_)
            | Self::LoginTimeout => Fault::Client,
            Self::UpstreamProtocol(_)
            | Self::UpstreamIo(_)
            | Self::UpstreamTls(_)
            | Self::UpstreamLogin(_)
            | Self::NoSecrets
            | Self::Unfit(_)
            | Self::SessionChanged
            | Self::Unreachable(_) => Fault::Upstream,
            Self::ShuttingDown | Self::CameLate | Self::Terminated => Fault::Operator,
            Self::TooManyClients | Self::WaitTimeout | Self::System(_) => Fault::Proxy,
        }
    }

    /// Whether somebody should know of it who looks after the proxy, and reads of it nowhere else
    /// in the log. Where a server cannot be reached, or not be logged in to, more is said of it.
    #[must_use]
    pub const fn is_trouble(&self) -> bool {
        matches!(
            self,
            Self::UpstreamProtocol(_)
                | Self::UpstreamIo(_)
                | Self::NoSecrets
                | Self::Unfit(_)
                | Self::SessionChanged
                | Self::TooManyClients
                | Self::WaitTimeout
                | Self::System(_)
        )
    }

    /// Why a login was refused, if this is how that ended.
    #[must_use]
    pub fn refused(&self) -> Option<LoginRefused> {
        Some(match self {
            Self::ClientRefused(refusal) => refusal.counted(),
            Self::NotEncrypted => LoginRefused::Encryption,
            Self::ConsoleRefused(..) => LoginRefused::Console,
            Self::LoginTimeout => LoginRefused::Timeout,
            Self::ServerRefused(message) => {
                let fields = message.get(HEADER..).unwrap_or_default();
                LoginRefused::by_server(fields::field(fields, fields::SQLSTATE))
            }
            _ => return None,
        })
    }

    /// Appends the ErrorResponse that the client gets. False, and nothing is appended, if it is
    /// gone.
    #[must_use]
    pub fn put_last_word(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::ClientRefused(refusal) => refusal.put(out),
            Self::ServerRefused(message) => out.extend_from_slice(message),
            other => match other.client_response() {
                Some((sqlstate, message)) => {
                    backend::error_response(out, "FATAL", sqlstate, message);
                }
                None => return false,
            },
        }
        true
    }

    /// The SQLSTATE and the message of the FATAL error that the client gets; `None` if the client
    /// is gone, or told in other words. No message holds an address, a secret or any SQL.
    #[must_use]
    pub fn client_response(&self) -> Option<(&'static str, String)> {
        Some(match self {
            // An alert of TLS has said it, if anything can.
            Self::ClientIo(_) | Self::ClientTls(_) => return None,
            Self::ClientRefused(_) | Self::ServerRefused(_) => return None,
            Self::ClientProtocol(error) if error.is_noise() => return None,
            Self::NotEncrypted => (
                "28000",
                "no encryption: the proxy takes connections with TLS only".to_owned(),
            ),
            Self::ClientProtocol(error @ wire::Error::Version { .. }) => {
                ("0A000", error.to_string())
            }
            Self::ClientProtocol(error) => ("08P01", error.to_string()),
            Self::UpstreamProtocol(error) => ("08P01", format!("server protocol error: {error}")),
            Self::UpstreamIo(error) => ("08006", format!("connection to the server lost: {error}")),
            Self::Unreachable(error) => {
                ("08006", format!("could not connect to the server: {error}"))
            }
            Self::Unfit(why) => ("08006", format!("could not connect to the server: {why}")),
            // The reason names the server's certificate; it is for the log.
            Self::UpstreamTls(_) => (
                "08006",
                "could not connect to the server: TLS with it failed".to_owned(),
            ),
            // How is for the log.
            Self::UpstreamLogin(_) => (
                "08006",
                "the proxy could not log in to the server".to_owned(),
            ),
            Self::NoSecrets => (
                "08006",
                "the proxy could not find out who may log in".to_owned(),
            ),
            Self::LoginTimeout => ("08000", "login timed out".to_owned()),
            // PgBouncer's word, which people look for, and the server's SQLSTATE.
            Self::WaitTimeout => (
                "53300",
                "query_wait_timeout: no server connection became free in time".to_owned(),
            ),
            Self::TimedOut(limit) => {
                let (sqlstate, message) = limit.response();
                (sqlstate, message.to_owned())
            }
            Self::SessionChanged => (
                "57P01",
                "terminating connection because the settings of new sessions have changed"
                    .to_owned(),
            ),
            Self::TooManyClients => ("53300", "sorry, too many clients already".to_owned()),
            Self::ConsoleRefused(sqlstate, message) => (*sqlstate, message.clone()),
            Self::ShuttingDown | Self::Terminated => (
                "57P01",
                "terminating connection due to administrator command".to_owned(),
            ),
            // As who comes while the server shuts down: drivers try the next host then.
            Self::CameLate => ("57P03", "the proxy is shutting down".to_owned()),
            Self::System(_) => ("58000", "the proxy is out of resources".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_gone_is_told_nothing() {
        let gone = ConnectionError::ClientIo(io::ErrorKind::BrokenPipe.into());
        assert_eq!(gone.client_response(), None);
        assert_eq!(gone.fault(), Fault::Client);
    }

    #[test]
    fn who_may_speak_another_protocol_is_told_nothing() {
        let told = |error| ConnectionError::ClientProtocol(error).client_response();
        let (length, limit, tag) = (0, 9, 'Q');
        assert_eq!(told(wire::Error::StartupLength { length, limit }), None);
        assert_eq!(told(wire::Error::Length { tag, length, limit }), None);
        assert_eq!(told(wire::Error::StartupCut), None);
        assert_eq!(told(wire::Error::CancelLength), None);
        assert!(told(wire::Error::StartupLayout).is_some());
    }

    #[test]
    fn what_a_server_says_to_a_login_is_told_apart() {
        let mut message = Vec::new();
        backend::error_response(&mut message, "FATAL", "28P01", b"no");
        let refused = |message: &[u8]| ConnectionError::ServerRefused(message.to_vec()).refused();
        assert_eq!(refused(&message), Some(LoginRefused::ServerPassword));
        assert_eq!(refused(b"E"), Some(LoginRefused::ServerOther));
        assert_eq!(ConnectionError::TooManyClients.refused(), None);
    }

    #[test]
    fn an_unreachable_server_is_a_connection_failure() {
        let error = ConnectionError::Unreachable(io::ErrorKind::ConnectionRefused.into());
        let (state, message) = error.client_response().expect("the client is there");
        assert_eq!((state, error.fault()), ("08006", Fault::Upstream));
        assert_eq!(
            message,
            "could not connect to the server: connection refused"
        );
    }
}
