//! Databases whose clients are held back or turned away by order of the console.
//!
//! Invariant: a login that is on its way to a server of a database when that is paused is counted
//! until a worker has it, because the count and the look at the halts are made under one lock. So
//! nobody is overlooked who is between the two.

use crate::admin::console::Halted;
use crate::wire::answers::Told;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The halts in force, and the logins on their way.
#[derive(Debug, Default)]
pub(super) struct Halts {
    halted: watch::Sender<Arc<Halted>>,
    /// How many there are, by database.
    logins: Mutex<HashMap<Box<[u8]>, usize>>,
}

/// A login that is on its way to a server.
#[derive(Debug)]
pub(super) struct Pass {
    halts: Arc<Halts>,
    database: Box<[u8]>,
}

/// New clients of the database are turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disabled;

/// What a worker answers who is told that the halts have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Clients that are in the middle of something, and server connections that are about to close.
    pub(super) busy: usize,
    /// Clients that are held back, and keep their server connections.
    pub(super) kept: usize,
}

impl Halts {
    /// The halts in force.
    pub(super) fn current(&self) -> Arc<Halted> {
        Arc::clone(&self.halted.borrow())
    }

    /// Changes them.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Halted) -> Result<(), Told>,
    ) -> Result<(), Told> {
        let mut outcome = Ok(());
        self.halted.send_modify(|halted| {
            let mut changed = Halted::clone(halted);
            outcome = change(&mut changed);
            if outcome.is_ok() {
                *halted = Arc::new(changed);
            }
        });
        outcome
    }

    /// Waits as long as the database is paused.
    ///
    /// # Errors
    /// It is disabled.
    pub(super) async fn pass(self: &Arc<Self>, database: &[u8]) -> Result<Pass, Disabled> {
        let mut changes = self.halted.subscribe();
        loop {
            {
                let mut logins = self.logins();
                let halted = changes.borrow_and_update();
                if halted.is_disabled(database) {
                    return Err(Disabled);
                }
                if !halted.is_paused(database) {
                    *logins.entry(database.into()).or_default() += 1;
                    return Ok(self.counted(database));
                }
            }
            // The sender is there as long as this is.
            let _ = changes.changed().await;
        }
    }

    /// A login that goes to a server once more, however it stands.
    pub(super) fn again(self: &Arc<Self>, database: &[u8]) -> Pass {
        *self.logins().entry(database.into()).or_default() += 1;
        self.counted(database)
    }

    fn counted(self: &Arc<Self>, database: &[u8]) -> Pass {
        Pass {
            halts: Arc::clone(self),
            database: database.into(),
        }
    }

    /// How many logins to a database, or all, are on their way.
    pub(super) fn logins_to(&self, database: Option<&str>) -> usize {
        let logins = self.logins();
        match database {
            Some(name) => logins.get(name.as_bytes()).copied().unwrap_or_default(),
            None => logins.values().sum(),
        }
    }

    fn logins(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, usize>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut logins = self.halts.logins();
        if let Some(count) = logins.get_mut(&*self.database) {
            *count -= 1;
            if *count == 0 {
                logins.remove(&*self.database);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn logins_wait_while_their_database_is_paused_and_are_counted() {
        let halts = Arc::new(Halts::default());
        let first = halts.pass(b"a").await.unwrap();
        halts.change(|it| it.pause(Some("a"))).unwrap();
        assert_eq!((halts.logins_to(Some("a")), halts.logins_to(None)), (1, 1));
        drop(first);
        assert_eq!(halts.logins_to(Some("a")), 0);
        let other = halts.pass(b"b").await.unwrap();
        assert_eq!((halts.logins_to(Some("a")), halts.logins_to(None)), (0, 1));
        let waiting = halts.pass(b"a");
        let mut waiting = std::pin::pin!(waiting);
        assert!(
            timeout(Duration::from_millis(20), &mut waiting)
                .await
                .is_err()
        );
        halts.change(|it| it.resume(Some("a"))).unwrap();
        assert!(
            timeout(Duration::from_secs(5), waiting)
                .await
                .unwrap()
                .is_ok()
        );
        halts.change(|it| it.disable("b")).unwrap();
        assert_eq!(halts.pass(b"b").await.unwrap_err(), Disabled);
        drop(other);
        assert!(halts.logins().is_empty());
    }
}
