//! A login that waits: for a paused database, or for a place in a pool.

use super::Visitor;
use crate::auth::Refusal;
use crate::error::ConnectionError;
use crate::net::admission::Admission;
use crate::net::door::Entered;
use crate::net::environment::Environment;
use crate::net::halts::{Disabled, Pass};
use crate::net::phase::Phase;
use crate::net::stream::Stream;
use crate::net::ways::Way;
use tokio::time::Instant;

/// What may end that sooner.
pub(super) struct Waits {
    /// The client has sent nothing behind its login, so there is nothing to be done if it leaves.
    is_silent: bool,
    /// Others may need the place of a client that nobody has let in yet.
    pub(super) admission: Option<Admission>,
}

impl Waits {
    /// For a client that has sent these bytes behind its login.
    pub(super) fn new(pending: &[u8], admission: Option<Admission>) -> Self {
        Self {
            is_silent: pending.is_empty(),
            admission,
        }
    }

    /// Returns when nobody is to wait any longer: others need the place, or the client has left
    /// (`None`).
    pub(super) async fn are_over(&mut self, client: &Stream) -> Option<ConnectionError> {
        let over = async {
            match &mut self.admission {
                Some(admission) => admission.is_over().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = client.is_left(), if self.is_silent => None,
            why = over => Some(why),
        }
    }
}

impl Visitor {
    /// Waits as long as the database is paused; what to tell the client if it is disabled. `None`
    /// if it leaves meanwhile.
    pub(super) async fn pass(
        &mut self,
        client: &mut Stream,
        entered: &mut Option<Entered>,
        way: &Way,
        environment: &Environment,
        waits: &mut Waits,
    ) -> Result<Option<Pass>, ConnectionError> {
        let database = way.name.as_deref().unwrap_or(&self.login.database);
        let began = Instant::now();
        let mut draining = environment.draining.clone();
        let passed = tokio::select! {
            passed = environment.halts.pass(database) => passed,
            _ = draining.wait_for(Phase::is_ending) => {
                return Err(ConnectionError::ShuttingDown);
            }
            why = waits.are_over(client) => return why.map_or(Ok(None), Err),
        };
        match passed {
            Ok(pass) => {
                // To wait is no part of logging in.
                self.deadline += began.elapsed();
                Ok(Some(pass))
            }
            Err(Disabled) => {
                let refusal = Refusal::disabled(database);
                Err(self.turn_away(client, entered.take(), refusal).await?)
            }
        }
    }
}
