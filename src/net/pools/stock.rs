//! What a pool has open before anybody needs it: as many connections as its minimum says.
//!
//! Invariants:
//! - whoever is logged in for nobody is who was there last, and the server has let that one in;
//! - nothing is opened, and nothing stays, for a pool that no client has used for the lifetime of a
//!   server connection;
//! - between two clients no more is opened than [`ROUNDS`] times the minimum: what ends at once is
//!   not opened for ever.

use super::Pool;
use crate::config::Destination;
use crate::net::current::Current;
use crate::net::news::Place;
use crate::net::session::Session;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;

/// How many times all of a minimum may be opened while no client comes.
const ROUNDS: usize = 4;

/// The minimum of a pool, and what it takes to keep it.
#[derive(Debug)]
pub(super) struct Stock {
    /// Says how long after its last client a pool is kept.
    current: Current,
    /// Where it is said that the pool has fewer connections.
    short: UnboundedSender<Arc<Pool>>,
    /// It was said, and is seen to.
    is_told: AtomicBool,
    last: Mutex<Option<LastClient>>,
}

/// The last client.
#[derive(Debug)]
struct LastClient {
    session: Session,
    seen: Instant,
    /// How many connections may be opened until another comes.
    left: usize,
}

impl Stock {
    pub(super) fn new(current: Current, short: UnboundedSender<Arc<Pool>>) -> Self {
        Self {
            current,
            short,
            is_told: AtomicBool::new(false),
            last: Mutex::default(),
        }
    }

    /// A client that has come before needs a connection of a pool with this minimum.
    pub(super) fn is_used(&self, least: usize) {
        if least > 0
            && let Some(last) = &mut *self.last()
        {
            last.seen = Instant::now();
            last.left = ROUNDS * least;
        }
    }

    /// The pool has this minimum from now on.
    pub(super) fn has_least(&self, least: usize) {
        let mut last = self.last();
        match &mut *last {
            Some(last) if least > 0 => last.left = ROUNDS * least,
            _ => *last = None,
        }
    }

    /// The pool leads there. Who was led elsewhere would not come there next.
    pub(super) fn follows(&self, to: &Destination) {
        let mut last = self.last();
        let is_led = |last: &LastClient| last.session.way.destination.leads_like(to);
        if !last.as_ref().is_some_and(is_led) {
            *last = None;
        }
    }

    /// Whether no more than the minimum are open, with `taken`, and somebody may want them.
    pub(super) fn keeps(&self, taken: usize, least: usize) -> bool {
        let is_least = least > 0 && taken <= least;
        is_least
            && self
                .last()
                .as_ref()
                .is_some_and(|last| self.is_recent(last))
    }

    fn is_recent(&self, last: &LastClient) -> bool {
        let lifetime = self.current.get().server_lifetime;
        // A connection that never dies has no lifetime to go by.
        lifetime.is_zero() || last.seen.elapsed() <= lifetime
    }

    /// Whether one more is to be opened, beside the `taken`.
    fn is_short(&self, taken: usize, least: usize) -> bool {
        let is_due = |last: &LastClient| last.left > 0 && self.is_recent(last);
        taken < least && self.last().as_ref().is_some_and(is_due)
    }

    fn last(&self) -> MutexGuard<'_, Option<LastClient>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task to open what a pool lacks, until this is dropped.
#[derive(Debug)]
pub(in crate::net) struct Errand(pub(in crate::net) Arc<Pool>);

impl Drop for Errand {
    fn drop(&mut self) {
        self.0.stock.is_told.store(false, Ordering::SeqCst);
        // It may have become short behind the last look.
        self.0.restock();
    }
}

impl Pool {
    /// Who begins this session is who would come next.
    pub(super) fn remember(&self, session: impl FnOnce() -> Session) {
        let least = self.numbers.least();
        // Without a minimum nobody's secret is to be known for longer than it is here.
        if least > 0 {
            *self.stock.last() = Some(LastClient {
                session: session(),
                seen: Instant::now(),
                left: ROUNDS * least,
            });
        }
    }

    /// Has connections opened if there are fewer than there should be.
    pub(super) fn restock(self: &Arc<Self>) {
        let (stock, least) = (&self.stock, self.numbers.least());
        if least == 0 || self.has_queue() || !stock.is_short(self.taken_now(), least) {
            return;
        }
        if !stock.is_told.swap(true, Ordering::SeqCst) {
            // Nobody hears it any more when the proxy ends.
            let _ = stock.short.send(Arc::clone(self));
        }
    }

    /// What to begin, in which place, if one more connection is to be opened.
    pub(in crate::net) fn missing(self: &Arc<Self>) -> Option<(Session, Place)> {
        let inner = self.lock();
        // Whoever waits is given places first.
        let least = self.numbers.least();
        if !inner.queue.is_empty() || !self.stock.is_short(self.taken_now(), least) {
            return None;
        }
        if !self.takes_place(Instant::now()) {
            drop(inner);
            // Others have what there may be. Whoever comes next finds out whether they still do.
            self.gives_up();
            return None;
        }
        drop(inner);
        let place = Place::new(Arc::clone(self) as Arc<_>);
        let mut last = self.stock.last();
        let last = last.as_mut()?;
        last.left = last.left.saturating_sub(1);
        Some((last.session.clone(), place))
    }

    /// Nothing is opened any more until another client comes.
    pub(in crate::net) fn gives_up(&self) {
        if let Some(last) = &mut *self.stock.last() {
            last.left = 0;
        }
    }
}
