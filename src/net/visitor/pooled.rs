//! A login of a pool: it waits until there is a connection for it, or a place for one.

use super::waiting::Waits;
use super::{Chosen, Path, Visitor};
use crate::auth::Credential;
use crate::error::ConnectionError;
use crate::metrics::Counter;
use crate::net::Phase;
use crate::net::environment::Environment;
use crate::net::news::{Berth, Grant, Place};
use crate::net::pools::{Pool, To};
use crate::net::stream::Stream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// As long as somebody waits who is to wait without an end.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// What a login is given.
pub(super) enum Given {
    /// This connection of a pool.
    Warm(Berth),
    /// It is sent to the server, in this place of a pool.
    Cold(Place),
    /// It is of no pool.
    Any(Chosen),
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
            Self::Any(chosen) => (chosen, None, None),
        }
    }
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
        pool: &Arc<Pool>,
        (client, waits): (&Stream, &mut Waits),
    ) -> Result<Option<Given>, ConnectionError> {
        let started = Instant::now();
        let limit = match environment.config().query_wait_timeout {
            Duration::ZERO => FOR_EVER,
            limit => limit,
        };
        let number = credential.map_or(0, Credential::number);
        loop {
            let identity = self.identity(path.likely().as_deref());
            let left = limit.saturating_sub(started.elapsed());
            let granted = turn(
                pool,
                identity.clone(),
                left,
                environment,
                waits.are_over(client),
            )
            .await?;
            let berth = match granted {
                None => return Ok(None),
                Some(Grant::Warm(berth)) => berth,
                Some(Grant::Open(place)) => {
                    // To wait is no part of logging in.
                    self.deadline += started.elapsed();
                    return Ok(Some(Given::Cold(place)));
                }
            };
            let now = Instant::now();
            let warm = &environment.warm;
            let identity = identity.unwrap_or_default();
            if warm.is_proven((&identity, number), now) {
                self.deadline += started.elapsed();
                return Ok(Some(Given::Warm(berth)));
            }
            let led = self.prove(path, credential, environment).await;
            let led = self.identity(led.as_deref());
            match &led {
                Some(led) => warm.accepted((led, number), now),
                None => warm.refused(&identity),
            }
            if led.is_some_and(|led| led == identity) {
                self.deadline += started.elapsed();
                return Ok(Some(Given::Warm(berth)));
            }
            // It is offered to others, or closed if nobody is let in; then there is a place.
            drop(berth);
        }
    }
}

/// Waits for what comes of it.
async fn turn(
    pool: &Arc<Pool>,
    identity: Option<Vec<u8>>,
    limit: Duration,
    environment: &Environment,
    gone: impl Future<Output = Option<ConnectionError>>,
) -> Result<Option<Grant>, ConnectionError> {
    let (told, mut hears) = oneshot::channel();
    let ticket = pool.wait(identity, To::Login(told));
    let mut draining = environment.draining.clone();
    let outcome = tokio::select! {
        granted = timeout(limit, &mut hears) => match granted {
            Ok(Ok(grant)) => Ok(Some(grant)),
            _ => Err(ConnectionError::WaitTimeout),
        },
        _ = draining.wait_for(Phase::is_ending) => {
            Err(ConnectionError::ShuttingDown)
        }
        why = gone => why.map_or(Ok(None), Err),
    };
    if !matches!(outcome, Ok(Some(_))) {
        pool.forget(ticket);
    }
    if matches!(outcome, Err(ConnectionError::WaitTimeout)) {
        environment.metrics.acceptor().add(Counter::WaitTimeouts, 1);
    }
    outcome
}
