//! Opens the connections that pools lack of their minimum (`min_pool_size`), for nobody yet.

use super::environment::Environment;
use super::orders::{Opened, Order};
use super::phase::Phase;
use super::pools::{Errand, Pool};
use super::reopen::{begin, is_let_in, is_passing};
use super::session::Session;
use crate::ids::ClientId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time after which a server that cannot take a session is tried again, at first, and at most.
const AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Sees to pools as long as the proxy serves.
pub(super) async fn keep(environment: Arc<Environment>) {
    let Some(mut errands) = environment.pools.errands() else {
        return;
    };
    while let Some(pool) = errands.recv().await {
        tokio::spawn(fill(Errand(pool), Arc::clone(&environment)));
    }
}

/// Opens connections one after the other until a pool has enough.
async fn fill(errand: Errand, environment: Arc<Environment>) {
    let (pool, mut draining) = (&errand.0, environment.draining.clone());
    tokio::select! {
        () = open_all(pool, &environment) => {}
        // Whoever is left needs no others.
        _ = draining.wait_for(|phase| *phase != Phase::Serving) => pool.gives_up(),
    }
}

async fn open_all(pool: &Arc<Pool>, environment: &Environment) {
    let [mut pause, longest] = AGAIN;
    while let Some((session, place)) = pool.missing() {
        let named = session.way.name.as_deref();
        let database = named.unwrap_or(&session.database);
        let Ok(_pass) = environment.halts.pass(database).await else {
            return pool.gives_up();
        };
        // Only who was let in since the last time that somebody was not.
        if !environment.warm.knows(&session.identity()) {
            return pool.gives_up();
        }
        let (began, logins) = (Instant::now(), environment.shapes.logins());
        match begin(&session, environment).await {
            Ok(reached) => {
                is_let_in(&session, environment, began);
                let Session {
                    startup,
                    database,
                    way,
                    ..
                } = session;
                let order = Order::Opened(Box::new(Opened {
                    client: ClientId::NONE,
                    ticket: 0,
                    place,
                    startup,
                    database,
                    way,
                    logins,
                    outcome: Ok(reached),
                }));
                if let Some(mailbox) = environment.any_mailbox() {
                    mailbox.put(order);
                }
            }
            Err(error) if is_passing(&error) => {
                drop(place);
                tracing::debug!(%error, "a server connection could not be opened");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(longest);
            }
            Err(error) => {
                environment.warm.refused(&session.identity());
                tracing::info!(%error, "the server lets nobody in for min_pool_size");
                return pool.gives_up();
            }
        }
    }
}
