//! A client that was to have a warm connection which is no longer fit for it: it is connected to
//! the server after all.

use super::{ROOM, connect, pooled};
use crate::error::ConnectionError;
use crate::net::environment::Environment;
use crate::net::farewell::{count_end, dismiss};
use crate::net::orders::{Arrival, Joined, Mailbox, Order, Reached, Via};
use crate::net::reach::Caller;
use crate::net::stream::{Stream, write_all};
use crate::net::ways::Path;
use std::io;
use std::sync::Arc;
use tokio::time::Instant;

/// Connects to the server for a client that was to have a warm connection, and hands it to its
/// worker once more.
pub(in crate::net) async fn redial(
    arrival: Arrival,
    environment: Arc<Environment>,
    mailbox: Mailbox,
) {
    let Arrival {
        mut joined,
        number,
        open,
    } = arrival;
    if joined.is_second {
        tokio::time::sleep(ROOM).await;
    }
    let reached = match finds_place(&mut joined, &environment).await {
        Ok(()) => connect_again(&joined, &environment).await,
        Err(error) => Err(error),
    };
    match reached {
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

/// Sends a client that comes from a worker what it is to be sent before AuthenticationOk.
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

/// Waits for a place in its pool, if the connection that was promised had one and has gone with it.
async fn finds_place(
    joined: &mut Joined,
    environment: &Environment,
) -> Result<(), ConnectionError> {
    let Some(pool) = joined.pool.as_ref().filter(|_| joined.place.is_none()) else {
        return Ok(());
    };
    let started = std::time::Instant::now();
    joined.place = pooled::place(pool, environment).await?;
    joined.deadline += started.elapsed();
    Ok(())
}

async fn connect_again(
    joined: &Joined,
    environment: &Environment,
) -> Result<Reached, ConnectionError> {
    let way = &*joined.way;
    let order = way.order()?;
    let caller = Caller {
        packet: &joined.login.packet,
        credential: joined.credential.as_deref(),
        deadline: Instant::from_std(joined.deadline),
    };
    connect(&Path { way, order }, caller, environment).await
}
