//! A login of a pool: it waits until there is a connection for it, or a place for one.

use super::{Path, Visitor};
use crate::auth::Credential;
use crate::error::ConnectionError;
use crate::metrics::Counter;
use crate::net::Phase;
use crate::net::environment::Environment;
use crate::net::news::{Berth, Grant, Place};
use crate::net::pools::{Pool, To};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// As long as somebody waits who is to wait without an end.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// What a login of a pool is given.
pub(super) enum Given {
    /// This connection.
    Warm(Berth),
    /// It is sent to the server.
    Cold(Place),
}

impl Visitor {
    /// Waits for a connection or a place. Who is given a connection must be one that the server
    /// would let in: the proxy sees to that as for warm connections.
    pub(super) async fn wait(
        &mut self,
        path: &Path<'_>,
        credential: Option<&Credential>,
        environment: &Environment,
        pool: &Arc<Pool>,
    ) -> Result<Given, ConnectionError> {
        let started = Instant::now();
        let limit = match environment.config.query_wait_timeout {
            Duration::ZERO => FOR_EVER,
            limit => limit,
        };
        let number = credential.map_or(0, Credential::number);
        loop {
            let identity = self.identity(path.likely().as_deref());
            let left = limit.saturating_sub(started.elapsed());
            let grant = turn(pool, identity.clone(), left, environment).await?;
            let berth = match grant {
                Grant::Warm(berth) => berth,
                Grant::Open(place) => {
                    // To wait is no part of logging in.
                    self.deadline += started.elapsed();
                    return Ok(Given::Cold(place));
                }
            };
            let now = Instant::now();
            let warm = &environment.warm;
            let identity = identity.unwrap_or_default();
            if warm.is_proven((&identity, number), now) {
                self.deadline += started.elapsed();
                return Ok(Given::Warm(berth));
            }
            let led = self.prove(path, credential, environment).await;
            let led = self.identity(led.as_deref());
            match &led {
                Some(led) => warm.accepted((led, number), now),
                None => warm.refused(&identity),
            }
            if led.is_some_and(|led| led == identity) {
                self.deadline += started.elapsed();
                return Ok(Given::Warm(berth));
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
) -> Result<Grant, ConnectionError> {
    let (told, mut hears) = oneshot::channel();
    let ticket = pool.wait(identity, To::Login(told));
    let mut draining = environment.draining.clone();
    let outcome = tokio::select! {
        granted = timeout(limit, &mut hears) => match granted {
            Ok(Ok(grant)) => Ok(grant),
            _ => Err(ConnectionError::WaitTimeout),
        },
        _ = draining.wait_for(Phase::is_ending) => {
            Err(ConnectionError::ShuttingDown)
        }
    };
    if let Err(error) = &outcome {
        pool.forget(ticket);
        if matches!(error, ConnectionError::WaitTimeout) {
            environment.metrics.acceptor().add(Counter::WaitTimeouts, 1);
        }
    }
    outcome
}
