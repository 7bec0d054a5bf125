//! To see whether the server lets a client in: the proxy logs in as the client would.

use super::Visitor;
use crate::auth::Credential;
use crate::net::environment::Environment;
use crate::net::proof::is_let_in;
use crate::net::reach::{Arrived, Means, reach};
use crate::net::ways::Path;
use std::time::Instant;

impl Visitor {
    /// Logs in as the client would, and leaves again. Returns the identity of who was let in, which
    /// is that of the client unless its way has led to another server.
    pub(super) async fn prove(
        &self,
        path: &Path<'_>,
        credential: Option<&Credential>,
        environment: &Environment,
        (identity, began): (&[u8], Instant),
    ) -> Option<Vec<u8>> {
        let (caller, door) = (self.caller(credential), environment.doors.open());
        let (means, warm) = (Means::of(environment, &door), &environment.warm);
        // It takes up room, of which there may be little.
        warm.visits();
        let arrived = reach(path.way, &path.order, caller, means).await;
        let Ok(Arrived {
            stream,
            said,
            endpoint,
        }) = arrived
        else {
            warm.refused(identity);
            return None;
        };
        let limit = environment.config().connect_timeout;
        let welcome = is_let_in(stream, said, limit).await;
        let Some((welcome, led)) = welcome.zip(self.identity(Some(&endpoint))) else {
            warm.refused(identity);
            return None;
        };
        let number = credential.map_or(0, Credential::number);
        warm.accepted((&led, number), began);
        warm.greeted((&led, number), began, welcome);
        Some(led)
    }
}
