//! Who may be cancelled: from the keys given to clients to the server processes that work for them.
//!
//! A cancel request comes to the acceptor, on a connection of its own, while any worker may serve
//! the client. So this is shared. It is touched when a client logs in, leaves or cancels, never by
//! a query.
//!
//! Invariant: what a client has sent before its request came goes to the server before the request,
//! unless its worker takes very long: a server that has not been sent the statement yet would have
//! nothing to cancel, and nobody asks twice.

use super::endpoint::Endpoint;
use super::news::{News, Tells};
use crate::client::Cancels;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a client was given: the server's process id and a secret of ours.
type GivenKey = (u32, Vec<u8>);

/// What cancels it on the server: the process, its secret, and where.
pub(super) type Theirs = (u32, Vec<u8>, Arc<Endpoint>);

/// Who is meant by a key.
#[derive(Debug, Clone)]
struct Target {
    /// The server process that works for the client; none if there is nothing to cancel.
    theirs: Option<Theirs>,
    cancels: Arc<Cancels>,
    /// By which the client's worker hears.
    by: Arc<dyn Tells>,
}

/// A cancel request on its way to the server, until it is dropped: then whoever waits for it need
/// not wait any longer, whether it got there or not.
#[derive(Debug)]
pub(super) struct Request(Target);

impl Request {
    /// What cancels the client's query; `None` if no server works for it.
    pub(super) fn theirs(&self) -> Option<(u32, &[u8], &Endpoint)> {
        let (pid, secret, endpoint) = self.0.theirs.as_ref()?;
        Some((*pid, secret, endpoint))
    }

    /// By which the worker of the client hears.
    pub(super) fn worker(&self) -> &dyn Tells {
        &*self.0.by
    }

    /// Those of the client.
    pub(super) fn cancels(&self) -> &Arc<Cancels> {
        &self.0.cancels
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.cancels.deliver();
        self.0.by.tell(News::Delivered);
    }
}

/// The keys of all clients that are logged in.
#[derive(Debug, Default)]
pub(super) struct Registry {
    targets: Mutex<HashMap<GivenKey, Target>>,
}

impl Registry {
    /// Remembers a client's key until the guard is dropped; `None` if another client has the same,
    /// which may be when the server's keys are short and many were given that of one process.
    pub(super) fn register(
        self: &Arc<Self>,
        given: GivenKey,
        theirs: Option<Theirs>,
        cancels: Arc<Cancels>,
        by: Arc<dyn Tells>,
    ) -> Option<Registration> {
        let mut targets = self.lock();
        let Entry::Vacant(place) = targets.entry(given.clone()) else {
            return None;
        };
        place.insert(Target {
            theirs,
            cancels,
            by,
        });
        Some(Registration {
            registry: Arc::clone(self),
            given,
        })
    }

    /// By which the worker hears of the client that was given this key.
    pub(super) fn worker(&self, pid: u32, secret: &[u8]) -> Option<Arc<dyn Tells>> {
        let targets = self.lock();
        let target = targets.get(&(pid, secret.to_vec()))?;
        Some(Arc::clone(&target.by))
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
    pub(super) fn server_key(&self) -> Option<Theirs> {
        let targets = self.registry.lock();
        targets.get(&self.given)?.theirs.clone()
    }

    /// No server works for the client any more: no request that comes from here on reaches one.
    /// Whoever calls this sees all that have come before.
    pub(super) fn suspend(&self) {
        if let Some(target) = self.registry.lock().get_mut(&self.given) {
            target.theirs = None;
        }
    }

    /// From here on this is what the key means, at the worker that hears by this.
    pub(super) fn resume(&self, theirs: Option<Theirs>, by: Arc<dyn Tells>) {
        if let Some(target) = self.registry.lock().get_mut(&self.given) {
            target.theirs = theirs;
            target.by = by;
        }
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

    #[derive(Debug, Default)]
    struct Ear(Mutex<Vec<News>>);

    impl Ear {
        fn last(&self) -> Option<News> {
            self.0.lock().unwrap().pop()
        }
    }

    impl Tells for Ear {
        fn tell(&self, news: News) {
            self.0.lock().unwrap().push(news);
        }
    }

    #[test]
    fn only_the_exact_key_of_a_connected_client_cancels() {
        let registry = Arc::new(Registry::default());
        let worker = Arc::new(Ear::default());
        let by = || -> Arc<dyn Tells> { worker.clone() };
        let key = (7, b"ours".to_vec());
        let socket = Address::Unix("/s".into());
        let endpoint = Endpoints::default().get(&socket, None, SessionAttrs::Any);
        let theirs = (9, b"theirs".to_vec(), endpoint);
        let theirs = Some(theirs);
        let register = || registry.register(key.clone(), theirs.clone(), Arc::default(), by());
        let guard = register().unwrap();
        assert!(register().is_none(), "the key is another's");
        assert!(registry.cancel(7, b"theirs").is_none());
        assert!(registry.cancel(8, b"ours").is_none());
        assert!(registry.worker(8, b"ours").is_none() && registry.worker(7, b"ours").is_some());
        let request = registry.cancel(7, b"ours").unwrap();
        let (pid, secret, endpoint) = request.theirs().unwrap();
        assert_eq!(
            (pid, secret, &endpoint.address),
            (9, &b"theirs"[..], &socket)
        );
        drop(request);
        assert!(matches!(worker.last(), Some(News::Delivered)));
        guard.suspend();
        let request = registry.cancel(7, b"ours").unwrap();
        assert!(request.theirs().is_none(), "no server works for it");
        guard.resume(theirs.clone(), by());
        assert!(registry.cancel(7, b"ours").unwrap().theirs().is_some());
        drop((guard, request));
        assert!(registry.cancel(7, b"ours").is_none() && registry.worker(7, b"ours").is_none());
    }
}
