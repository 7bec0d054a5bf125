//! What greeting a client takes, for all of them.

use super::Phase;
use super::cancel::Registry;
use super::door::Door;
use super::places::Places;
use super::tls::Encryption;
use super::warm::Warm;
use super::ways::Ways;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::statement::shapes::Shapes;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What greeting a client takes.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) config: Arc<Config>,
    pub(super) registry: Arc<Registry>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) warm: Arc<Warm>,
    /// To the servers.
    pub(super) ways: Arc<Ways>,
    /// Says when the proxy is ending.
    pub(super) draining: watch::Receiver<Phase>,
    pub(super) tls: Arc<Encryption>,
    pub(super) door: Arc<Door>,
    pub(super) shapes: Arc<Shapes>,
    /// Those who are in the middle of a handshake of TLS.
    pub(super) handshakes: Mutex<Places>,
}
