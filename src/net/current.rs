//! The configuration in force, for those who ask.

use crate::config::Config;
use std::sync::Arc;
use tokio::sync::watch;

/// The configuration in force.
#[derive(Debug, Clone)]
pub(super) struct Current(watch::Receiver<Arc<Config>>);

impl Current {
    pub(super) const fn new(changes: watch::Receiver<Arc<Config>>) -> Self {
        Self(changes)
    }

    /// As it is now.
    pub(super) fn get(&self) -> Arc<Config> {
        Arc::clone(&self.0.borrow())
    }

    /// As it is after its next change; `None` if nobody can change it any more.
    pub(super) async fn next(&mut self) -> Option<Arc<Config>> {
        self.0.changed().await.ok()?;
        Some(Arc::clone(&self.0.borrow_and_update()))
    }
}
