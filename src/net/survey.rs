//! What the console asks of workers: a few ports at a time, so that none of them is kept from its
//! clients for longer than a turn of its loop may take.

use crate::admin::console::{Counted, Peer};
use tokio::sync::oneshot;

/// Places that a worker looks at for one order. Measured, an order about 30 ports takes 47 µs of a
/// worker's processor time, its waking up included.
pub(super) const PLACES: usize = 32;

/// Which ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// Those of clients, and what was counted of those that have left.
    Clients,
    /// Those of servers.
    Servers,
}

/// A question about some of a worker's ports.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) ends: Ends,
    /// The first place that is looked at.
    pub(super) from: usize,
    pub(super) answer: oneshot::Sender<Slice>,
}

/// What a worker answers.
#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) peers: Vec<Peer>,
    /// Where to go on, if there are more.
    pub(super) next: Option<usize>,
    /// What the clients that have left had counted; only with the first ports of clients.
    pub(super) counted: Counted,
}

/// A client is to be ended.
#[derive(Debug)]
pub(super) struct EndClient {
    /// Its number.
    pub(super) number: u64,
    /// Learns whether it was there.
    pub(super) answer: oneshot::Sender<bool>,
}

/// The longest name that is shown, in characters.
const MAX_NAME: usize = 63;

/// A name that a client has chosen, for people.
pub(super) fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_NAME)
        .collect()
}
