//! Who may be cancelled: from the keys given to clients to the server processes that work for them.
//!
//! A cancel request comes on a connection of its own, to any worker, so this is shared. It is
//! touched when a client logs in, leaves or cancels, never by a query.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a client was given: the server's process id and a secret of ours.
type GivenKey = (u32, Vec<u8>);

/// What cancels it on the server.
#[derive(Debug, Clone)]
struct Target {
    secret: Vec<u8>,
    cancelled: Arc<AtomicBool>,
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
        secret: Vec<u8>,
        cancelled: Arc<AtomicBool>,
    ) -> Registration {
        let target = Target { secret, cancelled };
        self.lock().insert(given.clone(), target);
        Registration {
            registry: Arc::clone(self),
            given,
        }
    }

    /// The server's secret for a key a client was given; notes that it was used.
    pub(super) fn cancel(&self, pid: u32, secret: &[u8]) -> Option<Vec<u8>> {
        let target = self.lock().get(&(pid, secret.to_vec())).cloned()?;
        target.cancelled.store(true, Ordering::Relaxed);
        Some(target.secret)
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

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_key_of_a_connected_client_cancels() {
        let registry = Arc::new(Registry::default());
        let used = Arc::new(AtomicBool::new(false));
        let key = (7, b"ours".to_vec());
        let guard = registry.register(key, b"theirs".to_vec(), Arc::clone(&used));
        assert_eq!(registry.cancel(7, b"theirs"), None);
        assert_eq!(registry.cancel(8, b"ours"), None);
        assert!(!used.load(Ordering::Relaxed));
        assert_eq!(registry.cancel(7, b"ours"), Some(b"theirs".to_vec()));
        assert!(used.load(Ordering::Relaxed));
        drop(guard);
        assert_eq!(registry.cancel(7, b"ours"), None);
    }
}
