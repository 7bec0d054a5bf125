//! A login for which its pool has no server connection: a client that is let in all the same costs
//! none before it sends something.
//!
//! It is let in so only if the proxy itself has found out who it is, and what the server would tell
//! it is known: the server has said it to another login of its identity, with the same secret, a
//! moment ago, and its session would begin as another has. Otherwise it waits for a connection.

use super::Visitor;
use crate::auth::Credential;
use crate::hub::{MAX_LOOK, Welcome};
use crate::net::environment::Environment;
use crate::net::orders::Welcomed;
use crate::net::pools::Pool;
use crate::net::warm::Greeted;
use crate::net::ways::Path;
use crate::statement::Millis;
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use std::sync::Arc;
use std::time::Instant;

impl Visitor {
    /// How the client can be welcomed before there is a server connection for it, if it can.
    pub(super) async fn welcomed(
        &self,
        path: &Path<'_>,
        credential: &Credential,
        environment: &Environment,
        pool: &Pool,
    ) -> Option<Box<Welcomed>> {
        let (endpoint, form) = (path.likely()?, canonical(&self.login.packet));
        let named = (&*self.login.packet, &*form);
        let origin = Origin::formed(endpoint.number, &self.login.database, named);
        let warm = &environment.warm;
        // Without one nobody has to be asked.
        warm.precedent(origin.identity())?;
        let known = Instant::now();
        let welcome = self
            .greeting(path, credential, environment, (pool, &origin))
            .await?;
        let interval = environment.config().catalog_watch * MAX_LOOK;
        let oldest = environment.started.elapsed().checked_sub(interval);
        let oldest = oldest.and_then(|oldest| u64::try_from(oldest.as_millis()).ok());
        let precedent = warm.precedent(origin.identity())?;
        let asks = (&*environment.shapes, &origin);
        let holds = !interval.is_zero()
            && precedent.holds(&welcome, asks, Millis(oldest.unwrap_or_default()));
        holds.then(|| {
            Box::new(Welcomed {
                endpoint,
                welcome,
                precedent,
                known,
            })
        })
    }

    /// What the server would tell the client now.
    async fn greeting(
        &self,
        path: &Path<'_>,
        credential: &Credential,
        environment: &Environment,
        (pool, origin): (&Pool, &Origin),
    ) -> Option<Arc<Welcome>> {
        let greeting = || {
            let number = credential.number();
            let warm = &environment.warm;
            warm.greeting((origin.identity(), number), Instant::now())
        };
        // Of those who need to know one asks; who has nothing to go by waits for that.
        let turn = match greeting() {
            Greeted::Lately(welcome) => return Some(welcome),
            Greeted::Before(welcome) => match pool.proving.try_lock() {
                Ok(turn) => turn,
                Err(_) => return Some(welcome),
            },
            Greeted::Never => pool.proving.lock().await,
        };
        if let Greeted::Lately(welcome) = greeting() {
            return Some(welcome);
        }
        // Who has asked meanwhile may have been refused.
        environment.warm.precedent(origin.identity())?;
        let asked = (origin.identity(), Instant::now());
        let led = self.prove(path, Some(credential), environment, asked).await;
        drop(turn);
        // A login elsewhere says nothing of this one.
        led.filter(|led| *led == *origin.identity())?;
        match greeting() {
            Greeted::Lately(welcome) | Greeted::Before(welcome) => Some(welcome),
            Greeted::Never => None,
        }
    }
}
