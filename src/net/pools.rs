//! Pools: how many server connections one user may have to one database, and who waits for one.
//!
//! Each connection of a pool holds a *place* as long as it is open. A client that needs one waits
//! in the pool's queue until a connection of its identity becomes idle, or there is a place to open
//! one. Idle connections stand on the list of warm ones; nothing here knows what is on them.
//!
//! Invariants:
//! - a pool has no more places than its size;
//! - of those with the same identity who came first is served first, and none of another is served
//!   before somebody who has waited for [`PATIENCE`];
//! - nobody waits while there is a place, or an idle connection of the identity: whoever changes
//!   one of these has the queue served (`serve`), under the pool's lock;
//! - nobody waits while a client could leave its home: either it finds that somebody waits, or the
//!   one who begins to wait finds that it is there (`has_idle`) and has it woken.

use super::news::{Frees, Grant, News, Place, Tells};
use super::warm::Warm;
use super::ways::Way;
use crate::ids::ClientId;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long a client waits before a connection of another identity is closed for it, if that is one
/// that others use. To close one and open another takes milliseconds of the server's time, so the
/// identities of a pool are not to do that to each other for each statement.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time after which workers are asked again for homes that could be left, while somebody waits:
/// what kept a client at home may have ended without a sign.
const NUDGE: Duration = Duration::from_millis(200);

/// Pools that are remembered although they have nothing.
const MAX_KNOWN: usize = 1024;

/// The database as clients call it, and the user as the server knows it.
type Name = (Box<[u8]>, Box<[u8]>);

/// All pools.
#[derive(Debug)]
pub(super) struct Pools {
    known: Mutex<HashMap<Name, Arc<Pool>>>,
    warm: Arc<Warm>,
    given: AtomicU64,
    runtime: Handle,
}

impl Pools {
    /// Pools whose idle connections are on this list, and which are woken by this runtime.
    pub(super) fn new(warm: Arc<Warm>, runtime: Handle) -> Self {
        Self {
            known: Mutex::default(),
            warm,
            runtime,
            given: AtomicU64::new(1),
        }
    }

    /// The pool of a user and a database, to which this is the way; `None` if its clients keep
    /// their server connections.
    pub(super) fn find(&self, way: &Way, database: &[u8], user: &[u8]) -> Option<Arc<Pool>> {
        let most = way.destination.pool?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (database.into(), user.into());
        if let Some(pool) = known.get(&name) {
            return Some(Arc::clone(pool));
        }
        if known.len() >= MAX_KNOWN {
            // Names are anybody's to choose.
            known.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let warm = Arc::clone(&self.warm);
        let made = Arc::new(Pool::new(number, most, warm, self.runtime.clone()));
        known.insert(name, Arc::clone(&made));
        Some(made)
    }
}

/// The server connections of one user to one database.
#[derive(Debug)]
pub(super) struct Pool {
    number: u64,
    most: usize,
    warm: Arc<Warm>,
    runtime: Handle,
    /// Clients that wait.
    waiting: AtomicUsize,
    /// There may be clients that could leave their homes, and have not because nobody waited.
    has_idle: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Places that are taken.
    taken: usize,
    queue: VecDeque<Waiter>,
    tickets: u64,
    /// The queue is to be served again when the first has waited for long enough.
    is_timed: bool,
    /// Workers are asked again as long as somebody waits.
    is_nudging: bool,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    /// What a connection must have been logged in as; `None` if only a new one will do.
    identity: Option<Vec<u8>>,
    to: To,
    since: Instant,
    /// A connection of another identity was told to go for it.
    evicts: bool,
}

/// Who is told.
#[derive(Debug)]
pub(super) enum To {
    /// A login.
    Login(oneshot::Sender<Grant>),
    /// A client of a worker.
    Client(Arc<dyn Tells>, ClientId),
}

impl Frees for Pool {
    fn free(self: Arc<Self>) {
        let mut inner = self.lock();
        inner.taken = inner.taken.saturating_sub(1);
        drop(inner);
        self.serve_all();
    }

    fn serve(self: Arc<Self>) {
        self.serve_all();
    }

    fn number(&self) -> u64 {
        self.number
    }
}

impl Pool {
    fn new(number: u64, most: usize, warm: Arc<Warm>, runtime: Handle) -> Self {
        Self {
            runtime,
            number,
            most,
            warm,
            waiting: AtomicUsize::new(0),
            has_idle: AtomicBool::new(false),
            inner: Mutex::default(),
        }
    }

    /// A client could leave its home. Returns whether somebody waits for that.
    #[inline]
    pub(super) fn could_give(&self) -> bool {
        // One of the two sees the other: either we that somebody waits, or the one who begins to
        // wait that we are here.
        if !self.has_idle.load(Ordering::SeqCst) {
            self.has_idle.store(true, Ordering::SeqCst);
        }
        self.is_wanted()
    }

    /// Whether somebody waits.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Begins to wait. What comes of it is told, maybe before this returns; until then
    /// [`Self::forget`] takes the ticket back that is returned.
    pub(super) fn wait(self: &Arc<Self>, identity: Option<Vec<u8>>, to: To) -> u64 {
        let mut inner = self.lock();
        inner.tickets += 1;
        let ticket = inner.tickets;
        inner.queue.push_back(Waiter {
            ticket,
            identity,
            to,
            since: Instant::now(),
            evicts: false,
        });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(inner);
        self.serve_all();
        if self.is_wanted() && self.has_idle.swap(false, Ordering::SeqCst) {
            self.warm.wake_workers(self.number);
        }
        if self.is_wanted() {
            self.nudge();
        }
        ticket
    }

    /// Has the workers asked again as long as somebody waits.
    fn nudge(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().is_nudging, true) {
            return;
        }
        let pool = Arc::clone(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(NUDGE).await;
                // Under the lock: whoever begins to wait from here on begins this again.
                let mut inner = pool.lock();
                if inner.queue.is_empty() {
                    inner.is_nudging = false;
                    return;
                }
                drop(inner);
                pool.warm.wake_workers(pool.number);
                pool.serve_all();
            }
        });
    }

    /// Does not wait any longer. False if it was served already.
    pub(super) fn forget(&self, ticket: u64) -> bool {
        let mut inner = self.lock();
        let before = inner.queue.len();
        inner.queue.retain(|waiter| waiter.ticket != ticket);
        let is_forgotten = inner.queue.len() < before;
        if is_forgotten {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        is_forgotten
    }

    /// Gives those who wait what there is.
    fn serve_all(self: &Arc<Self>) {
        // Whoever has gone meanwhile gives back what it was given, which serves the next.
        let mut refused = Vec::new();
        let mut inner = self.lock();
        while let Some((waiter, grant)) = self.next(&mut inner) {
            match waiter.to {
                To::Login(told) => refused.extend(told.send(grant).err()),
                To::Client(by, id) => by.tell(News::Granted(id, waiter.ticket, grant)),
            }
        }
        drop(inner);
        drop(refused);
    }

    /// The first in the queue for whom there is something.
    fn next(self: &Arc<Self>, inner: &mut Inner) -> Option<(Waiter, Grant)> {
        let first = inner.queue.front_mut()?;
        let identity = first.identity.as_deref();
        let berth = identity.and_then(|identity| self.warm.take(identity, self.number));
        let (at, grant) = match berth {
            Some(berth) => (0, Grant::Warm(berth)),
            None if inner.taken < self.most => {
                inner.taken += 1;
                let pool: Arc<Self> = Arc::clone(self);
                (0, Grant::Open(Place::new(pool)))
            }
            None => self.among_others(inner)?,
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Some((inner.queue.remove(at)?, grant))
    }

    /// There is no place, and at most connections of other identities than the first in the queue
    /// has. Who has one of these is served, unless the first has waited for long; else one of them
    /// makes room for it, as soon as one is not used or it has.
    fn among_others(self: &Arc<Self>, inner: &mut Inner) -> Option<(usize, Grant)> {
        let idle = self.warm.idle(self.number);
        let ages = idle.iter().map(|(_, since)| since.elapsed());
        let rests = ages.max()?;
        let first = inner.queue.front_mut()?;
        let waited = first.since.elapsed();
        if waited >= PATIENCE || rests >= PATIENCE && !first.evicts {
            first.evicts = first.evicts || self.warm.evict(self.number);
            return None;
        }
        if !std::mem::replace(&mut inner.is_timed, true) {
            let pool = Arc::clone(self);
            self.runtime.spawn(async move {
                tokio::time::sleep(PATIENCE.saturating_sub(waited)).await;
                pool.lock().is_timed = false;
                pool.serve_all();
            });
        }
        inner.queue.iter().enumerate().find_map(|(at, waiter)| {
            let identity = waiter.identity.as_deref()?;
            let is_there = idle.iter().any(|(known, _)| **known == *identity);
            let berth = is_there.then(|| self.warm.take(identity, self.number));
            Some((at, Grant::Warm(berth.flatten()?)))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
