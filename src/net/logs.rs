//! The lines of the log that are written only because somebody wants them, and may be wanted or not
//! while the proxy runs.

use crate::config::Config;
use crate::metrics::Metrics;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which of these lines are wanted.
#[derive(Debug)]
pub(super) struct Logs {
    connections: AtomicBool,
    disconnections: AtomicBool,
    /// Knows from how long on a statement is told of, because it knows how long each has taken.
    metrics: Arc<Metrics>,
}

impl Logs {
    pub(super) fn new(config: &Config, metrics: Arc<Metrics>) -> Self {
        let logs = Self {
            connections: AtomicBool::default(),
            disconnections: AtomicBool::default(),
            metrics,
        };
        logs.follow(config);
        logs
    }

    /// From now on the lines are written that this configuration wants.
    pub(super) fn follow(&self, config: &Config) {
        self.connections.store(config.log_connections, Relaxed);
        self.disconnections
            .store(config.log_disconnections, Relaxed);
        self.metrics.tell_of_slow(config.log_slow);
        self.metrics.tell_of_taints(config.log_taints);
    }

    /// Whether each login is logged.
    pub(super) fn connections(&self) -> bool {
        self.connections.load(Relaxed)
    }

    /// Whether each end of a client is logged.
    pub(super) fn disconnections(&self) -> bool {
        self.disconnections.load(Relaxed)
    }
}
