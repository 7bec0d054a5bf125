//! Who comes in to the console.
//!
//! With an `auth_type` of the proxy's own, clients prove who they are as everybody does. Where that
//! is left to the server there is no server to ask for a database of the proxy's: then whoever runs
//! as the proxy's own user on this machine comes in by a Unix socket, as `PgBouncer` lets in its
//! own user, and others by a password of `auth_file`.

use super::Console;
use crate::admin::console::{NAMES, Peer, PeerState, Rank, Totals, is_console};
use crate::auth::MAX_NAME;
use crate::client::Login;
use crate::error::ConnectionError;
use crate::net::door::lower;
use crate::net::files::GUESTS;
use crate::net::stream::Stream;
use crate::net::tls::Tunnel;
use crate::wire::startup::{Packet, packet};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::{Notify, oneshot};

/// Places that are kept for who may do everything.
const OF_ADMINS: usize = 8;

/// What is told to whoever could not be let in however it came.
const NO_DOOR: &str = "the console lets in nobody like this: connect by a Unix socket as the user \
                       that runs the proxy, or set auth_file, or another auth_type than relay";

/// What a client can cancel its command by: a number of its own, and a secret.
pub(super) type Key = (u32, [u8; 4]);

/// Somebody at the console, and how to end it.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) peer: Peer,
    pub(super) key: Key,
    /// Somebody with that key wants what it waits for to be cancelled.
    pub(super) cancelled: Arc<Notify>,
    end: Option<oneshot::Sender<()>>,
}

/// A client that may come in. Its place is given up when this is dropped.
#[derive(Debug)]
pub(in crate::net) struct Guest {
    console: Arc<Console>,
    pub(super) number: u64,
    pub(super) rank: Rank,
    pub(super) key: Key,
    pub(super) cancelled: Arc<Notify>,
    /// What it is to be sent first.
    pub(super) prelude: Vec<u8>,
    /// Resolves when somebody ends it.
    pub(super) ended: oneshot::Receiver<()>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.console.seats().remove(&self.number);
    }
}

impl Console {
    /// Whether this login is for the console.
    pub(in crate::net) fn is_meant(&self, login: &Login) -> bool {
        !login.replication && is_console(&login.database) && self.steward.has_console()
    }

    /// Has a client prove who it is; `None` if it leaves instead.
    pub(in crate::net) async fn meet(
        self: &Arc<Self>,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        mut login: Login,
        number: u64,
    ) -> Result<Option<Guest>, ConnectionError> {
        let user = login.user.clone();
        let entered = self.enter(client, pending, &mut login).await;
        let shown = String::from_utf8_lossy(&user);
        let user_shown: String = shown.chars().take(MAX_NAME).collect();
        let outcome = match entered {
            Ok(Some(prelude)) => match self.steward.rank(&user) {
                Some(rank) => self.seat(client, &login, number, (rank, prelude)).map(Some),
                None => {
                    let message = "permission denied: neither admin_users nor stats_users names \
                                   this user";
                    Err(ConnectionError::ConsoleRefused("42501", message.to_owned()))
                }
            },
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match &outcome {
            Ok(Some(guest)) => {
                tracing::info!(
                    client = number,
                    user = user_shown,
                    rank = guest.rank.label(),
                    "console"
                );
            }
            Ok(None) => {}
            Err(error) => {
                let address = client.peer();
                let address = address.map_or_else(|| "local".to_owned(), |it| it.to_string());
                tracing::info!(client = number, user = user_shown, address, %error, "no console");
            }
        }
        outcome
    }

    /// Lets a client in that is whom it says; returns what it is to be sent first.
    async fn enter(
        &self,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        login: &mut Login,
    ) -> Result<Option<Vec<u8>>, ConnectionError> {
        let environment = &self.environment;
        let (mut door, own) = (environment.doors.open(), self.steward.own_door());
        if !door.asks() {
            door = match own {
                _ if client.is_by_own_user() => return Ok(Some(lower(login))),
                Some(own) => own,
                None => {
                    return Err(ConnectionError::ConsoleRefused("28000", NO_DOOR.to_owned()));
                }
            };
        }
        // The console is in no database, whatever "*" says of names that have no table.
        let by = (&door.settings().asker, environment.shapes.logins());
        // Who is kept out under one of its names is not let in under another.
        let aliases = NAMES.map(str::as_bytes);
        let entered = door.enter(client, pending, (login, &aliases), by).await?;
        Ok(entered.map(|entered| entered.prelude))
    }

    fn seat(
        self: &Arc<Self>,
        client: &Stream,
        login: &Login,
        number: u64,
        (rank, prelude): (Rank, Vec<u8>),
    ) -> Result<Guest, ConnectionError> {
        let mut seats = self.seats();
        // Programs that watch take up none of the last, so that somebody can act.
        let most = match rank {
            Rank::Admin => GUESTS,
            Rank::Stats => GUESTS - OF_ADMINS,
        };
        if seats.len() >= most {
            return Err(ConnectionError::TooManyClients);
        }
        let startup = match packet(&login.packet) {
            Ok(Some((Packet::Startup(startup), _))) => Some(startup),
            _ => None,
        };
        let application = startup.and_then(|startup| startup.parameter(b"application_name"));
        let text = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            text.chars().take(MAX_NAME).collect::<String>()
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let peer = Peer {
            id: number,
            standing: PeerState::Active,
            user: text(&login.user),
            database: NAMES[0].to_owned(),
            application: text(application.unwrap_or_default()),
            replicates: false,
            peer: client.peer(),
            local: client.local(),
            since: now,
            heard: now,
            tls: client.tls().map(Tunnel::describe),
            name: format!("console.{number}"),
            link: None,
            process: None,
            closes: false,
            statements: 0,
            statement_bytes: 0,
            waits_for: "client",
            waiting: 0,
            totals: Totals::default(),
        };
        let mut secret = [0; 4];
        getrandom::fill(&mut secret).map_err(|error| ConnectionError::System(error.into()))?;
        // Drivers take the number for that of a process, so it is positive and not zero.
        let key = (number as u32 & 0x7fff_ffff | 1, secret);
        let cancelled = Arc::new(Notify::new());
        let (end, ended) = oneshot::channel();
        let seat = Seat {
            peer,
            key,
            cancelled: Arc::clone(&cancelled),
            end: Some(end),
        };
        seats.insert(number, seat);
        Ok(Guest {
            console: Arc::clone(self),
            number,
            rank,
            key,
            cancelled,
            prelude,
            ended,
        })
    }

    /// Ends somebody at the console; false if there is nobody of this number.
    pub(super) fn end_guest(&self, number: u64) -> bool {
        let mut seats = self.seats();
        let end = seats.get_mut(&number).and_then(|seat| seat.end.take());
        end.is_some_and(|end| end.send(()).is_ok())
    }
}
