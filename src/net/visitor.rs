//! A client that wants to log in: it proves who it is, if that is not left to the server, and gets
//! a server connection.

mod adrift;
mod pooled;
mod proving;
mod redial;
mod waiting;

use super::admission::Admission;
use super::attendance::Attendee;
use super::door::{Door, Entered};
use super::endpoint::Endpoint;
use super::environment::Environment;
use super::halts::Pass;
use super::news::{Berth, Place};
use super::orders::{Joined, Reached, Via, Welcomed};
use super::phase::Phase;
use super::pools::Pool;
use super::reach::{Caller, Failure, Means, reach};
use super::stream::{Stream, write_all};
use super::warm::Answer;
use super::ways::{Path, Way};
use crate::auth::{Credential, MAX_NAME, Refusal};
use crate::client::{CancelKey, Login};
use crate::error::ConnectionError;
use crate::ids::UpstreamId;
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use crate::wire::frame::HEADER;
use crate::wire::{authentication, fields};
use pooled::Given;
pub(super) use redial::redial;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use waiting::Waits;

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
    way: Arc<Way>,
    via: Via,
    worker: Option<usize>,
    began: std::time::Instant,
    is_spare: bool,
    pool: Option<Arc<Pool>>,
    gives_back: bool,
    place: Option<Place>,
    berth: Option<Berth>,
    pass: Pass,
    attendee: Attendee,
    /// None if the server is to ask it.
    entered: Option<Entered>,
    /// Its place, if that is so: it may have to make room.
    admission: Option<Admission>,
}

/// What is done with a login.
enum Chosen {
    /// It gets this connection of this worker.
    Warm(usize, UpstreamId),
    /// It is welcomed, and gets none before it sends something.
    Adrift(Box<Welcomed>),
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
        admission: Admission,
        environment: &Environment,
        load: impl Fn(usize) -> usize,
    ) -> Result<Option<Met>, ConnectionError> {
        let door = environment.doors.open();
        let entering = self.may_enter(&door, client, pending, admission, environment);
        let Some((mut entered, admission)) = entering.await? else {
            return Ok(None);
        };
        let way = self.way(client, &mut entered, environment).await?;
        let attends = self.attends(client, &mut entered, &way, environment);
        let attendee = attends.await?;
        let mut waits = Waits::new(pending, admission);
        let passed = self.pass(client, &mut entered, &way, environment, &mut waits);
        if passed.await?.is_none() {
            return Ok(None);
        }
        // While it was held back, the database may have been led elsewhere.
        let way = &self.way(client, &mut entered, environment).await?;
        let database = self.login.database.clone();
        self.translate(way, &mut entered, &door)?;
        let began = std::time::Instant::now();
        let credential = entered.as_ref().map(|it| Arc::clone(&it.credential));
        let credential = credential.as_deref();
        let order = way.order()?;
        let path = Path { way, order };
        let named = (!self.login.replication).then_some(&*database);
        let pool = named.and_then(|name| environment.pools.find(way, name, &self.login.user));
        let gives_back = pool.is_some() && self.gives_back(way, environment);
        let (given, pass) = loop {
            let given = match &pool {
                Some(pool) => {
                    let waits = (&*client, &mut waits);
                    let it = self.wait(&path, credential, environment, (pool, gives_back), waits);
                    it.await?
                }
                None => {
                    let chosen = self.choose(&path, credential, began, environment, &load);
                    Some(self.counted(chosen.await, environment, named))
                }
            };
            let Some(given) = given else {
                return Ok(None);
            };
            let passed = self.pass(client, &mut entered, way, environment, &mut waits);
            match passed.await? {
                None => return Ok(None),
                Some(pass) if given.is_fresh() => break (given, pass),
                // It was held back for too long.
                Some(_) => {}
            }
        };
        let (chosen, place, berth) = given.parts();
        let reaching = self.reached(chosen, &path, credential, environment);
        let (via, worker, is_spare) = reaching.await?;
        if matches!(via, Via::Connection(_)) {
            tell_prelude(client, &mut entered).await?;
        }
        Ok(Some(Met {
            visitor: self,
            way: Arc::clone(way),
            via,
            worker,
            began,
            is_spare,
            pool,
            gives_back,
            place,
            berth,
            pass,
            attendee,
            entered,
            admission: waits.admission,
        }))
    }

    /// Has the login say what its way does, and what there is to show be that user's.
    fn translate(
        &mut self,
        way: &Way,
        entered: &mut Option<Entered>,
        door: &Door,
    ) -> Result<(), ConnectionError> {
        way.translate(&mut self.login)?;
        if let (Some(entered), Some(user)) = (entered, &way.destination.user) {
            let password = way.destination.password.as_ref();
            entered.credential = Arc::new(door.forced(user.as_bytes(), password));
        }
        Ok(())
    }

    /// What is chosen for a client of no pool: a connection that will be opened is counted in the
    /// database of this name, if it is one of a database.
    fn counted(&self, chosen: Chosen, environment: &Environment, database: Option<&[u8]>) -> Given {
        let opens = matches!(chosen, Chosen::Cold { .. });
        let place = |database| environment.pools.unpooled(database, &self.login.user);
        Given::Any(chosen, database.filter(|_| opens).map(place))
    }

    /// Who the client is, if it is for the proxy to ask, and otherwise its place: who is let in
    /// keeps that, whatever it waits for from here on; who is for the server to let in does not
    /// yet.
    async fn may_enter(
        &mut self,
        door: &Door,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        admission: Admission,
        environment: &Environment,
    ) -> Result<Option<(Option<Entered>, Option<Admission>)>, ConnectionError> {
        if !door.asks() {
            return Ok(Some((None, Some(admission))));
        }
        let entered = self.enter(door, client, pending, admission, environment);
        Ok(entered.await?.map(|entered| (Some(entered), None)))
    }

    /// The way to the servers of the database that the client asks for.
    async fn way(
        &self,
        client: &mut Stream,
        entered: &mut Option<Entered>,
        environment: &Environment,
    ) -> Result<Arc<Way>, ConnectionError> {
        match environment.ways.find(&self.login.database) {
            Some(way) => Ok(way),
            None => {
                let refusal = Refusal::no_database(&self.login.database);
                Err(self.turn_away(client, entered.take(), refusal).await?)
            }
        }
    }

    /// Counts it among the clients of its database and its user, as it calls them.
    async fn attends(
        &self,
        client: &mut Stream,
        entered: &mut Option<Entered>,
        way: &Way,
        environment: &Environment,
    ) -> Result<Attendee, ConnectionError> {
        let Login { database, user, .. } = &self.login;
        let most = [
            way.destination.sizes.clients,
            environment.config().bounds_of(user).clients_of_user,
        ];
        match environment.attendance.take([database, user], most) {
            Ok(attendee) => Ok(attendee),
            Err(bound) => {
                let refusal = Refusal::too_many(bound);
                Err(self.turn_away(client, entered.take(), refusal).await?)
            }
        }
    }

    /// Whether it gives its connection back to its pool while it can do without.
    fn gives_back(&self, way: &Way, environment: &Environment) -> bool {
        let sizes = way.destination.sizes;
        let sizes = environment.config().sizes_of(sizes, &self.login.user);
        sizes.gives_back
    }

    /// The connection that was chosen, with its worker, and whether there are warm ones.
    async fn reached(
        &self,
        chosen: Chosen,
        path: &Path<'_>,
        credential: Option<&Credential>,
        environment: &Environment,
    ) -> Result<(Via, Option<usize>, bool), ConnectionError> {
        Ok(match chosen {
            Chosen::Warm(worker, id) => (Via::Warm(id), Some(worker), false),
            Chosen::Adrift(welcomed) => (Via::Adrift(welcomed), None, false),
            Chosen::Cold { is_spare } => {
                let caller = self.caller(credential);
                let reached = connect(path, caller, environment).await?;
                (Via::Connection(reached), None, is_spare)
            }
        })
    }

    fn caller<'c>(&'c self, credential: Option<&'c Credential>) -> Caller<'c> {
        Caller {
            packet: &self.login.packet,
            credential,
            deadline: self.deadline,
        }
    }

    /// A client is told why it does not come in as the server would tell it: once it is let in, if
    /// it was asked who it is.
    async fn turn_away(
        &self,
        client: &mut Stream,
        entered: Option<Entered>,
        refusal: Refusal,
    ) -> Result<ConnectionError, ConnectionError> {
        if let Some(Entered { mut prelude, .. }) = entered {
            authentication::put_ok(&mut prelude);
            let written = write_all(client, &prelude).await;
            written.map_err(ConnectionError::ClientIo)?;
        }
        let (client, reason) = (self.number, refusal.reason());
        tracing::info!(client, reason, "login refused");
        Ok(ConnectionError::ClientRefused(refusal))
    }

    /// Has the client prove who it is, in the time of a login.
    async fn enter(
        &mut self,
        door: &Door,
        client: &mut Stream,
        pending: &mut Vec<u8>,
        mut admission: Admission,
        environment: &Environment,
    ) -> Result<Option<Entered>, ConnectionError> {
        let mut draining = environment.draining.clone();
        let address = client.peer();
        let user = String::from_utf8_lossy(&self.login.user);
        let user: String = user.chars().take(MAX_NAME).collect();
        let asker = door.settings().asker_for(&self.login.database);
        let by = (asker, environment.shapes.logins());
        let entering = door.enter(client, pending, (&mut self.login, &[]), by);
        let entered = tokio::select! {
            entered = timeout_at(self.deadline, entering) => {
                entered.unwrap_or(Err(ConnectionError::LoginTimeout))
            }
            _ = draining.wait_for(Phase::is_ending) => {
                Err(ConnectionError::ShuttingDown)
            }
            why = admission.is_over() => Err(why),
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
        path: &Path<'_>,
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
        // Nobody has been there, so nobody has left a connection.
        let Some(identity) = self.identity(path.likely().as_deref()) else {
            return Chosen::Cold { is_spare: false };
        };
        let mut answer = warm.answer((&identity, number), began, &load);
        if answer == Answer::Prove {
            // A name may lead to several servers in turn, so that of the last time may be the next.
            let known = (&*identity, began);
            let led = self.prove(path, credential, environment, known).await;
            let identity = led.unwrap_or(identity);
            let now = std::time::Instant::now();
            answer = warm.answer((&identity, number), now, &load);
        }
        match answer {
            Answer::Warm(worker, id) => Chosen::Warm(worker, id),
            Answer::Cold { is_spare } => Chosen::Cold { is_spare },
            // The server takes its time.
            Answer::Prove => Chosen::Cold { is_spare: true },
        }
    }

    /// Which connections a login like this one to a server may have.
    fn identity(&self, endpoint: Option<&Endpoint>) -> Option<Vec<u8>> {
        let number = endpoint?.number;
        Some(Origin::identity_of(number, &canonical(&self.login.packet)))
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
            way: self.way,
            credential,
            prelude,
            pending,
            key: new_key()?,
            deadline: self.visitor.deadline.into_std(),
            began: self.began,
            is_spare: self.is_spare,
            is_second: false,
            pool: self.pool,
            gives_back: self.gives_back,
            place: self.place,
            berth: self.berth,
            pass: self.pass,
            attendee: Some(self.attendee),
            admission: self.admission,
        };
        Ok((joined, self.worker))
    }
}

/// Sends a client that no worker has had yet what it is to be sent before AuthenticationOk.
async fn tell_prelude(
    client: &mut Stream,
    entered: &mut Option<Entered>,
) -> Result<(), ConnectionError> {
    let Some(entered) = entered else {
        return Ok(());
    };
    let prelude = std::mem::take(&mut entered.prelude);
    let written = write_all(client, &prelude).await;
    written.map_err(ConnectionError::ClientIo)
}

/// Connects to a server and sends the startup packet; if there is something to show the server,
/// logs in. A server without room is asked once more when connections without a client have gone.
async fn connect(
    path: &Path<'_>,
    caller: Caller<'_>,
    environment: &Environment,
) -> Result<Reached, ConnectionError> {
    let door = environment.doors.open();
    let try_it = || async {
        let means = Means::of(environment, &door);
        let arrived = reach(path.way, &path.order, caller, means).await?;
        let upstream = arrived.stream.hand_over();
        Ok::<_, Failure>(Reached {
            upstream: upstream.map_err(ConnectionError::System)?,
            said: arrived.said,
            endpoint: arrived.endpoint,
        })
    };
    let Failure { error, endpoint } = match try_it().await {
        Ok(reached) => return Ok(reached),
        Err(failure) => failure,
    };
    let ConnectionError::ServerRefused(message) = &error else {
        return Err(error);
    };
    if is_crowded(message) {
        if !environment.warm.drop_all() {
            return Err(error);
        }
        tokio::time::sleep(ROOM).await;
        return try_it().await.map_err(|failure| failure.error);
    }
    if let Some(endpoint) = endpoint {
        let identity = Origin::identity_of(endpoint.number, &canonical(caller.packet));
        environment.warm.refused(&identity);
    }
    if let Some(credential) = caller.credential {
        door.forget(credential);
    }
    Err(error)
}

/// Whether a server has refused a login because it has no room.
fn is_crowded(message: &[u8]) -> bool {
    const TOO_MANY_CONNECTIONS: &[u8] = b"53300";
    let body = message.get(HEADER..).unwrap_or_default();
    fields::field(body, fields::SQLSTATE) == Some(TOO_MANY_CONNECTIONS)
}

fn new_key() -> Result<CancelKey, ConnectionError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| ConnectionError::System(error.into()))?;
    Ok(CancelKey {
        secret,
        cancelled: Arc::default(),
    })
}
