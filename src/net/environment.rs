//! What greeting a client takes, for all of them.

use super::attendance::Attendance;
use super::cancel::Registry;
use super::current::Current;
use super::door::Doors;
use super::halts::Halts;
use super::logs::Logs;
use super::news::Tells;
use super::orders::{Halting, Mailbox, Order};
use super::peers::Peers;
use super::phase::Phase;
use super::places::Places;
use super::pools::Pools;
use super::takeover::Predecessor;
use super::tls::Encryption;
use super::warm::Warm;
use super::ways::Ways;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::statement::shapes::Shapes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// What greeting a client takes.
#[derive(Debug)]
pub(super) struct Environment {
    /// What the clocks of the workers count from.
    pub(super) started: Instant,
    pub(super) current: Current,
    pub(super) registry: Arc<Registry>,
    /// Knows the keys of those who are still with the process before.
    pub(super) predecessor: Option<Arc<Predecessor>>,
    /// Know the keys of those who are with other instances.
    pub(super) peers: Peers,
    pub(super) metrics: Arc<Metrics>,
    pub(super) warm: Arc<Warm>,
    pub(super) pools: Pools,
    /// How many clients there are of each database and each user.
    pub(super) attendance: Attendance,
    /// Where the workers read their orders.
    pub(super) workers: Mutex<Vec<Mailbox>>,
    /// Which of them comes next for what any may have.
    pub(super) turn: AtomicUsize,
    /// Who is held back, or turned away.
    pub(super) halts: Arc<Halts>,
    /// To the servers.
    pub(super) ways: Arc<Ways>,
    /// Says when the proxy is ending.
    pub(super) draining: watch::Receiver<Phase>,
    /// Which lines of the log are wanted.
    pub(super) logs: Arc<Logs>,
    pub(super) tls: Arc<Encryption>,
    pub(super) doors: Arc<Doors>,
    pub(super) shapes: Arc<Shapes>,
    /// Those who are in the middle of a handshake of TLS.
    pub(super) handshakes: Mutex<Places>,
}

impl Environment {
    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        self.current.get()
    }

    /// Tells every worker the same.
    pub(super) fn order_all(&self, order: impl Fn() -> Order) {
        let workers = self.workers.lock();
        for mailbox in &*workers.unwrap_or_else(PoisonError::into_inner) {
            mailbox.put(order());
        }
    }

    /// Lets go on whoever is held back: nobody could order that any more.
    pub(super) fn resume_all(&self) {
        if self.halts.current().runs() {
            return;
        }
        // It is nothing that could be refused.
        let _ = self.halts.change(|halted| {
            halted.resume_all();
            Ok(())
        });
        self.order_all(|| Order::Halt(Halting::default()));
    }

    /// Where the worker with this number reads its orders.
    pub(super) fn mailbox(&self, worker: usize) -> Option<Mailbox> {
        let workers = self.workers.lock();
        let workers = workers.unwrap_or_else(PoisonError::into_inner);
        workers.get(worker).cloned()
    }

    /// Where some worker reads its orders, not always the same; `None` if there is none yet.
    pub(super) fn any_mailbox(&self) -> Option<Mailbox> {
        let workers = self.workers.lock();
        let workers = workers.unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        workers.get(turn.checked_rem(workers.len())?).cloned()
    }

    /// A worker has come, which has the next number.
    pub(super) fn add_worker(&self, mailbox: Mailbox, by: Arc<dyn Tells>) {
        let workers = self.workers.lock();
        workers
            .unwrap_or_else(PoisonError::into_inner)
            .push(mailbox);
        self.warm.add_worker(by);
    }
}
