//! Who may be cancelled: from the keys given to clients to the server processes that work for them.
//!
//! A cancel request comes to the acceptor, on a connection of its own, while any worker may serve
//! the client. So this is shared. It is touched when a client logs in, leaves or cancels, never by
//! a query.

use super::endpoint::Endpoint;
use super::orders::{Mailbox, Order};
use crate::client::Cancels;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a client was given: the server's process id and a secret of ours.
type GivenKey = (u32, Vec<u8>);

/// What cancels it on the server.
#[derive(Debug, Clone)]
struct Target {
    secret: Vec<u8>,
    /// Where.
    endpoint: Arc<Endpoint>,
    cancels: Arc<Cancels>,
    /// That of the client's worker.
    mailbox: Mailbox,
}

/// A cancel request on its way to the server, until it is dropped: then whoever waits for it need
/// not wait any longer, whether it got there or not.
#[derive(Debug)]
pub(super) struct Request(Target);

impl Request {
    /// The server's secret.
    pub(super) fn secret(&self) -> &[u8] {
        &self.0.secret
    }

    /// The server.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.cancels.deliver();
        self.0.mailbox.put(Order::Delivered);
    }
}

/// The keys of all clients that are logged in.
#[derive(Debug, Default)]
pub(super) struct Registry {
    targets: Mutex<HashMap<GivenKey, Target>>,
}

impl Registry {
    /// Remembers a client's key until the guard is dropped.
    pub(super) fn register(
        self: &Arc<Self>,
        given: GivenKey,
        (secret, endpoint): (Vec<u8>, Arc<Endpoint>),
        cancels: Arc<Cancels>,
        mailbox: Mailbox,
    ) -> Registration {
        let target = Target {
            secret,
            endpoint,
            cancels,
            mailbox,
        };
        self.lock().insert(given.clone(), target);
        Registration {
            registry: Arc::clone(self),
            given,
        }
    }

    /// Begins a cancel request with a key that a client was given. The client's hub learns of it.
    pub(super) fn cancel(&self, pid: u32, secret: &[u8]) -> Option<Request> {
        let targets = self.lock();
        let target = targets.get(&(pid, secret.to_vec()))?;
        // Under the lock: whoever has dropped the key sees all requests that have found it.
        target.cancels.request();
        Some(Request(target.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GivenKey, Target>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a client's key valid while it is connected.
#[derive(Debug)]
pub(super) struct Registration {
    registry: Arc<Registry>,
    given: GivenKey,
}

impl Registration {
    /// The process that works for the client, the server's own secret, and the server.
    pub(super) fn server_key(&self) -> Option<(u32, Vec<u8>, Arc<Endpoint>)> {
        let targets = self.registry.lock();
        let target = targets.get(&self.given)?;
        let endpoint = Arc::clone(&target.endpoint);
        Some((self.given.0, target.secret.clone(), endpoint))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Address, SessionAttrs};
    use crate::net::endpoint::Endpoints;

    #[test]
    fn only_the_exact_key_of_a_connected_client_cancels() {
        let registry = Arc::new(Registry::default());
        let poll = mio::Poll::new().unwrap();
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
        let (mailbox, orders) = Mailbox::new(waker);
        let key = (7, b"ours".to_vec());
        let socket = Address::Unix("/s".into());
        let endpoint = Endpoints::default().get(&socket, None, SessionAttrs::Any);
        let theirs = (b"theirs".to_vec(), endpoint);
        let guard = registry.register(key, theirs, Arc::default(), mailbox);
        assert!(registry.cancel(7, b"theirs").is_none());
        assert!(registry.cancel(8, b"ours").is_none());
        let request = registry.cancel(7, b"ours").unwrap();
        assert_eq!(request.secret(), b"theirs");
        assert_eq!(request.endpoint().address, socket);
        drop((guard, request));
        assert!(matches!(orders.try_recv(), Ok(Order::Delivered)));
        assert!(registry.cancel(7, b"ours").is_none());
    }
}
