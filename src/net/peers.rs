//! Other instances that clients reach by the same address: a cancel request comes to any of them,
//! so one with a key that nobody here was given is passed on to all others.
//!
//! Invariants:
//! - what was passed on is not passed on again, so no request goes round;
//! - no more than [`AT_ONCE`] requests are being passed on, each to no more than [`MOST`] addresses
//!   of a name, and for no longer than `connect_timeout_s`. What is beyond that is not: whoever
//!   asks for that many means harm, or would not be helped.

use super::current::Current;
use super::stream::{Stream, read, write_all};
use crate::config::Address;
use crate::wire::startup::passed_on_cancel;
use std::io;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Requests that are being passed on at once.
const AT_ONCE: usize = 16;

/// Addresses of one name that a request is passed on to.
const MOST: usize = 64;

/// The other instances.
#[derive(Debug)]
pub(super) struct Peers {
    current: Current,
    turns: Semaphore,
}

impl Peers {
    /// Those of the configuration in force.
    pub(super) fn new(current: Current) -> Self {
        Self {
            current,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Passes on a cancel request with a key that nobody here was given. Returns when all who can
    /// be told have done what they could within `limit`, so that the client's own wait means
    /// something.
    pub(super) async fn pass_on(&self, (pid, key): (u32, &[u8]), limit: Duration) {
        let config = self.current.get();
        if config.peers.is_empty() {
            return;
        }
        let mut request = Vec::new();
        passed_on_cancel(&mut request, pid, key);
        let passing = async {
            let _turn = self.turns.acquire().await;
            // Each by itself: a name that nobody knows is looked for longer than others take.
            let mut all = JoinSet::new();
            for address in &config.peers {
                all.spawn(tell_all(address.clone(), request.clone()));
            }
            while all.join_next().await.is_some() {}
        };
        if timeout(limit, passing).await.is_err() {
            tracing::debug!("cancel request not passed on in time");
        }
    }
}

/// Sends the request to all that are meant by an address.
async fn tell_all(address: Address, request: Vec<u8>) {
    let mut all = JoinSet::new();
    for one in resolved(address).await.into_iter().take(MOST) {
        let request = request.clone();
        all.spawn(async move {
            if let Err(error) = tell(&one, &request).await {
                tracing::debug!(address = %one, %error, "cancel request not passed on");
            }
        });
    }
    while all.join_next().await.is_some() {}
}

/// The address itself, or those that it is the name of.
async fn resolved(address: Address) -> Vec<Address> {
    let Address::Tcp { host, port } = &address else {
        return vec![address];
    };
    match lookup_host((host.as_str(), *port)).await {
        Ok(found) => found
            .map(|found| Address::Tcp {
                host: found.ip().to_string(),
                port: found.port(),
            })
            .collect(),
        Err(error) => {
            tracing::debug!(host, %error, "a peer was not found");
            Vec::new()
        }
    }
}

/// Sends one instance the request, and waits until it hangs up.
async fn tell(address: &Address, request: &[u8]) -> io::Result<()> {
    let mut stream = Stream::connect(address).await?;
    write_all(&mut stream, request).await?;
    read(&mut stream, &mut [0; 64]).await.map(drop)
}
