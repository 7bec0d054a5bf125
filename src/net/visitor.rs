//! A client that wants to log in: it proves who it is, if that is not left to the server, and gets
//! a server connection.

use super::Phase;
use super::dial::dial;
use super::door::{Entered, log_in};
use super::environment::Environment;
use super::farewell::{count_end, dismiss};
use super::orders::{Arrival, Joined, Mailbox, Order, Reached, Via};
use super::proof::is_let_in;
use super::stream::{Stream, write_all};
use super::warm::Answer;
use crate::auth::{Credential, MAX_NAME};
use crate::client::{CancelKey, Login};
use crate::error::ConnectionError;
use crate::ids::UpstreamId;
use crate::wire::fields;
use crate::wire::frame::HEADER;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long server processes that were told to go may take, before one more is asked for.
const ROOM: Duration = Duration::from_millis(50);

/// A client that wants to log in.
pub(super) struct Visitor {
    pub(super) login: Login,
    pub(super) number: u64,
    /// When the login must be over.
    pub(super) deadline: Instant,
}

/// A client that may come in, and where it is to go.
pub(super) struct Met {
    visitor: Visitor,
    via: Via,
    worker: Option<usize>,
    began: std::time::Instant,
    is_spare: bool,
    /// None if the server is to ask it.
    entered: Option<Entered>,
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

impl Visitor {
    /// Has the client prove who it is, if that is not left to the server, and finds it a server
    /// connection; `None` if it leaves instead.
    pub(super) async fn join(
        mut self,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        environment: &Environment,
        load: impl Fn(usize) -> usize,
    ) -> Result<Option<Met>, ConnectionError> {
        let mut entered = None;
        if environment.door.asks() {
            let Some(let_in) = self.enter(client, pending, environment).await? else {
                return Ok(None);
            };
            entered = Some(let_in);
        }
        let began = std::time::Instant::now();
        let credential = entered.as_ref().map(|entered| &*entered.credential);
        let chosen = self.choose(credential, began, environment, load).await;
        let (via, worker, is_spare) = match chosen {
            Chosen::Warm(worker, id) => (Via::Warm(id), Some(worker), false),
            Chosen::Cold { is_spare } => {
                let deadline = self.deadline;
                let reached = connect(&self.login, credential, deadline, environment).await?;
                if let Some(entered) = &mut entered {
                    let prelude = std::mem::take(&mut entered.prelude);
                    let written = write_all(client, &prelude).await;
                    written.map_err(ConnectionError::ClientIo)?;
                }
                (Via::Connection(reached), None, is_spare)
            }
        };
        Ok(Some(Met {
            visitor: self,
            via,
            worker,
            began,
            is_spare,
            entered,
        }))
    }

    /// Has the client prove who it is, in the time of a login.
    async fn enter(
        &mut self,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        environment: &Environment,
    ) -> Result<Option<Entered>, ConnectionError> {
        let mut draining = environment.draining.clone();
        let door = &environment.door;
        let address = client.peer();
        let user = String::from_utf8_lossy(&self.login.user);
        let user: String = user.chars().take(MAX_NAME).collect();
        let entering = door.enter(
            client,
            pending,
            &mut self.login,
            environment.shapes.logins(),
        );
        let entered = tokio::select! {
            entered = timeout_at(self.deadline, entering) => {
                entered.unwrap_or(Err(ConnectionError::LoginTimeout))
            }
            _ = draining.wait_for(|phase| *phase != Phase::Serving) => {
                Err(ConnectionError::ShuttingDown)
            }
        };
        if let Err(ConnectionError::ClientRefused(refusal)) = &entered {
            let (client, reason) = (self.number, refusal.reason());
            let address = address.map_or_else(|| "local".to_owned(), |address| address.to_string());
            tracing::info!(client, user, address, reason, "login refused");
        }
        entered
    }

    /// What to do with this login, which began at this time. If it is time to see whether the
    /// server still lets such clients in, the proxy logs in first, and the client gets a warm
    /// connection, too: its own would be closed behind it, because there are others that hold
    /// statements.
    async fn choose(
        &self,
        credential: Option<&Credential>,
        began: std::time::Instant,
        environment: &Environment,
        load: impl Fn(usize) -> usize,
    ) -> Chosen {
        let warm = &environment.warm;
        if !warm.is_on() || self.login.replication {
            return Chosen::Cold { is_spare: false };
        }
        let number = credential.map_or(0, Credential::number);
        let who = (&*self.login.packet, number);
        let mut answer = warm.answer(who, began, &load);
        if answer == Answer::Prove {
            let deadline = self.deadline;
            let is_let_in = match try_connect(&self.login, credential, deadline, environment).await
            {
                Ok((upstream, said)) => {
                    is_let_in(upstream, said, environment.config.connect_timeout).await
                }
                Err(_) => false,
            };
            match is_let_in {
                true => warm.accepted(who, began),
                false => warm.refused(&self.login.packet),
            }
            answer = warm.answer(who, std::time::Instant::now(), &load);
        }
        match answer {
            Answer::Warm(worker, id) => Chosen::Warm(worker, id),
            Answer::Cold { is_spare } => Chosen::Cold { is_spare },
            // The server takes its time.
            Answer::Prove => Chosen::Cold { is_spare: true },
        }
    }
}

impl Met {
    /// Gives the client to whoever serves it, and says which worker if that has to be one.
    pub(super) fn hand_over(
        self,
        client: Stream,
        pending: Vec<u8>,
    ) -> Result<(Joined, Option<usize>), ConnectionError> {
        let (credential, prelude) = match self.entered {
            Some(entered) => (Some(entered.credential), entered.prelude),
            None => (None, Vec::new()),
        };
        let joined = Joined {
            client: client.hand_over().map_err(ConnectionError::System)?,
            via: self.via,
            login: self.visitor.login,
            credential,
            prelude,
            pending,
            key: new_key()?,
            deadline: self.visitor.deadline.into_std(),
            began: self.began,
            is_spare: self.is_spare,
            is_second: false,
        };
        Ok((joined, self.worker))
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
    let credential = joined.credential.as_deref();
    let deadline = Instant::from_std(joined.deadline);
    match connect(&joined.login, credential, deadline, &environment).await {
        Ok(reached) => {
            joined.via = Via::Connection(reached);
            joined = match tell(joined).await {
                Ok(joined) => joined,
                Err(error) => {
                    let outcome = Err(ConnectionError::ClientIo(error));
                    return count_end(number, environment.metrics.acceptor(), &outcome);
                }
            };
            mailbox.put(Order::Serve(Box::new(Arrival {
                joined,
                number,
                open,
            })));
        }
        Err(error) => {
            // What the client was to be told is void if the server refuses it.
            let unsent = Vec::new();
            let (client, outcome) = (joined.client, Err(error));
            count_end(number, environment.metrics.acceptor(), &outcome);
            if let Err(error) = outcome {
                dismiss(client, unsent, error).await;
            }
        }
    }
}

/// Sends a client what it is to be sent before AuthenticationOk.
async fn tell(joined: Joined) -> io::Result<Joined> {
    if joined.prelude.is_empty() {
        return Ok(joined);
    }
    let mut client = Stream::adopt(joined.client)?;
    write_all(&mut client, &joined.prelude).await?;
    Ok(Joined {
        client: client.hand_over()?,
        prelude: Vec::new(),
        ..joined
    })
}

/// Connects to the server and sends the startup packet; if there is something to show the server,
/// logs in. A server without room is asked once more when connections without a client have gone.
async fn connect(
    login: &Login,
    credential: Option<&Credential>,
    deadline: Instant,
    environment: &Environment,
) -> Result<Reached, ConnectionError> {
    let outcome = reach(login, credential, deadline, environment).await;
    let Err(ConnectionError::ServerRefused(message)) = &outcome else {
        return outcome;
    };
    if is_crowded(message) {
        if !environment.warm.drop_all() {
            return outcome;
        }
        tokio::time::sleep(ROOM).await;
        return reach(login, credential, deadline, environment).await;
    }
    environment.warm.refused(&login.packet);
    if let Some(credential) = credential {
        environment.door.forget(credential);
    }
    outcome
}

/// Whether a server has refused a login because it has no room.
fn is_crowded(message: &[u8]) -> bool {
    const TOO_MANY_CONNECTIONS: &[u8] = b"53300";
    let body = message.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(TOO_MANY_CONNECTIONS)
}

async fn reach(
    login: &Login,
    credential: Option<&Credential>,
    deadline: Instant,
    environment: &Environment,
) -> Result<Reached, ConnectionError> {
    let (upstream, said) = try_connect(login, credential, deadline, environment).await?;
    let upstream = upstream.hand_over().map_err(ConnectionError::System)?;
    Ok(Reached { upstream, said })
}

/// Returns what the server has said already, too.
async fn try_connect(
    login: &Login,
    credential: Option<&Credential>,
    deadline: Instant,
    environment: &Environment,
) -> Result<(Stream, Vec<u8>), ConnectionError> {
    let config = &environment.config;
    let counters = environment.metrics.acceptor();
    let dialled = dial(&config.upstream, &environment.tls.servers, counters);
    let connected = tokio::time::timeout(config.connect_timeout, dialled).await;
    let late = |_| Err(ConnectionError::Unreachable(io::ErrorKind::TimedOut.into()));
    let mut upstream = connected.unwrap_or_else(late)?;
    let mut said = Vec::new();
    match credential {
        None => write_all(&mut upstream, &login.packet)
            .await
            .map_err(ConnectionError::UpstreamIo)?,
        Some(credential) => {
            let entering = log_in(upstream, &login.packet, credential, &environment.door);
            let entered = timeout_at(deadline, entering).await;
            let entered = entered.unwrap_or(Err(ConnectionError::LoginTimeout));
            if let Err(ConnectionError::UpstreamLogin(error)) = &entered {
                let user = String::from_utf8_lossy(credential.user());
                tracing::warn!(%user, %error, "login to the server failed");
            }
            (upstream, said) = entered?;
        }
    }
    Ok((upstream, said))
}

fn new_key() -> Result<CancelKey, ConnectionError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| ConnectionError::System(error.into()))?;
    Ok(CancelKey {
        secret,
        cancelled: Arc::default(),
    })
}
