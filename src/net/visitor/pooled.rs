//! A login of a pool: it waits until there is a connection for it, or a place for one, unless it
//! can be welcomed without.

use super::waiting::Waits;
use super::{Chosen, Path, Visitor};
use crate::auth::Credential;
use crate::error::ConnectionError;
use crate::metrics::Counter;
use crate::net::Phase;
use crate::net::environment::Environment;
use crate::net::news::{Berth, Grant, Place};
use crate::net::orders::Welcomed;
use crate::net::pools::{Pool, To};
use crate::net::stream::Stream;
use crate::net::warm::PROVEN;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// As long as somebody waits who is to wait without an end.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// What a login is given.
pub(super) enum Given {
    /// This connection of a pool.
    Warm(Berth),
    /// It is sent to the server, in this place of a pool.
    Cold(Place),
    /// It is welcomed so, and has nothing of the pool yet.
    Adrift(Box<Welcomed>),
    /// It is of no pool. If a connection is opened for it, that is counted so.
    Any(Chosen, Option<Place>),
}

impl Given {
    /// What is done with the login, and what it has of a pool.
    pub(super) fn parts(self) -> (Chosen, Option<Place>, Option<Berth>) {
        match self {
            Self::Warm(berth) => {
                let chosen = Chosen::Warm(berth.worker, berth.id());
                (chosen, None, Some(berth))
            }
            Self::Cold(place) => (Chosen::Cold { is_spare: false }, Some(place), None),
            Self::Adrift(welcomed) => (Chosen::Adrift(welcomed), None, None),
            Self::Any(chosen, place) => (chosen, place, None),
        }
    }

    /// Whether it is still what the login is to be given, if something has held that up.
    pub(super) fn is_fresh(&self) -> bool {
        match self {
            Self::Adrift(welcomed) => welcomed.known.elapsed() <= PROVEN,
            Self::Warm(_) | Self::Cold(_) | Self::Any(..) => true,
        }
    }
}

/// What there is for a login.
enum Found {
    /// The pool has this.
    Granted(Grant),
    /// It needs nothing yet.
    Welcomed(Box<Welcomed>),
}

impl Visitor {
    /// Waits for a connection or a place; `None` if the client leaves meanwhile. Who is given a
    /// connection must be one that the server would let in: the proxy sees to that as for warm
    /// connections.
    pub(super) async fn wait(
        &mut self,
        path: &Path<'_>,
        credential: Option<&Credential>,
        environment: &Environment,
        (pool, gives_back): (&Arc<Pool>, bool),
        (client, waits): (&Stream, &mut Waits),
    ) -> Result<Option<Given>, ConnectionError> {
        let started = Instant::now();
        let number = credential.map_or(0, Credential::number);
        loop {
            let identity = self.identity(path.likely().as_deref());
            let pool = (pool, identity.as_deref(), started);
            let waits = (client, &mut *waits);
            // Who keeps its connection comes in with one.
            let guest = credential.filter(|_| gives_back);
            let found = self.find(path, guest, environment, pool, waits);
            let berth = match found.await? {
                None => return Ok(None),
                Some(Found::Welcomed(welcomed)) => return Ok(Some(Given::Adrift(welcomed))),
                Some(Found::Granted(Grant::Warm(berth))) => berth,
                Some(Found::Granted(Grant::Open(place))) => {
                    // To wait is no part of logging in.
                    self.deadline += started.elapsed();
                    return Ok(Some(Given::Cold(place)));
                }
            };
            let now = Instant::now();
            let identity = identity.unwrap_or_default();
            if environment.warm.is_proven((&identity, number), now) {
                self.deadline += started.elapsed();
                return Ok(Some(Given::Warm(berth)));
            }
            let known = (&*identity, now);
            let led = self.prove(path, credential, environment, known).await;
            if led.is_some_and(|led| led == identity) {
                self.deadline += started.elapsed();
                return Ok(Some(Given::Warm(berth)));
            }
            // It is offered to others, or closed if nobody is let in; then there is a place.
            drop(berth);
        }
    }

    /// What there is at once, or comes of waiting since then. A `guest`, who is let in by the proxy
    /// and gives its connection back while it is idle, is welcomed without one if it can be.
    async fn find(
        &self,
        path: &Path<'_>,
        guest: Option<&Credential>,
        environment: &Environment,
        (pool, identity, started): (&Arc<Pool>, Option<&[u8]>, Instant),
        (client, waits): (&Stream, &mut Waits),
    ) -> Result<Option<Found>, ConnectionError> {
        if let Some(credential) = guest {
            if let Some(grant) = pool.at_once(identity) {
                return Ok(Some(Found::Granted(grant)));
            }
            let welcomed = self.welcomed(path, credential, environment, pool);
            match unless_over(welcomed, environment, waits.are_over(client)).await? {
                None => return Ok(None),
                Some(Some(welcomed)) => return Ok(Some(Found::Welcomed(welcomed))),
                Some(None) => {}
            }
        }
        let (identity, gone) = (identity.map(<[u8]>::to_vec), waits.are_over(client));
        let granted = turn(pool, identity, started, environment, gone).await?;
        Ok(granted.map(Found::Granted))
    }
}

/// Returns when somebody has waited for too long who does since then, by what the configuration
/// says, whenever it says so.
async fn is_over(started: Instant, environment: &Environment) {
    let mut current = environment.current.clone();
    loop {
        let limit = match current.get().query_wait_timeout {
            Duration::ZERO => FOR_EVER,
            limit => limit,
        };
        let rest = tokio::time::sleep(limit.saturating_sub(started.elapsed()));
        tokio::pin!(rest);
        tokio::select! {
            () = &mut rest => return,
            changed = current.next() => if changed.is_none() {
                // Nobody can change it any more.
                return rest.await;
            },
        }
    }
}

/// Waits for a place to open a connection in, for a client that nobody listens to meanwhile.
pub(super) async fn place(
    pool: &Arc<Pool>,
    environment: &Environment,
) -> Result<Option<Place>, ConnectionError> {
    let (started, never) = (Instant::now(), std::future::pending());
    let granted = turn(pool, None, started, environment, never).await?;
    Ok(granted.and_then(|granted| match granted {
        Grant::Open(place) => Some(place),
        // Only a connection of its identity would be, and none was named.
        Grant::Warm(_) => None,
    }))
}

/// Waits for what comes of it, since then.
async fn turn(
    pool: &Arc<Pool>,
    identity: Option<Vec<u8>>,
    started: Instant,
    environment: &Environment,
    gone: impl Future<Output = Option<ConnectionError>>,
) -> Result<Option<Grant>, ConnectionError> {
    let (told, mut hears) = oneshot::channel();
    let ticket = pool.wait(identity, To::Login(told));
    let granted = async {
        tokio::select! {
            biased;
            granted = &mut hears => granted.ok(),
            () = is_over(started, environment) => None,
        }
    };
    let outcome = match unless_over(granted, environment, gone).await {
        Ok(Some(Some(grant))) => return Ok(Some(grant)),
        Ok(Some(_)) => Err(ConnectionError::WaitTimeout),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    pool.forget(ticket);
    if matches!(outcome, Err(ConnectionError::WaitTimeout)) {
        environment.metrics.acceptor().add(Counter::WaitTimeouts, 1);
    }
    outcome
}

/// Waits for something unless the proxy ends, or there is no use any more: `gone` says why, or that
/// the client has left (`None`).
async fn unless_over<T>(
    what: impl Future<Output = T>,
    environment: &Environment,
    gone: impl Future<Output = Option<ConnectionError>>,
) -> Result<Option<T>, ConnectionError> {
    let mut draining = environment.draining.clone();
    tokio::select! {
        outcome = what => Ok(Some(outcome)),
        _ = draining.wait_for(Phase::is_ending) => Err(ConnectionError::ShuttingDown),
        why = gone => why.map_or(Ok(None), Err),
    }
}
