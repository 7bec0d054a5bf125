//! Pools: how many server connections one user may have to one database, and who waits for one.
//!
//! Each connection of a pool holds a *place* as long as it is open. A client that needs one waits
//! in the pool's queue until a connection of its identity becomes idle, or there is a place to open
//! one. Idle connections stand on the list of warm ones; nothing here knows what is on them.
//!
//! Invariants:
//! - a pool has no more places than its size, and once somebody has waited for long its reserve;
//! - of those with the same identity who came first is served first, and none of another is served
//!   before somebody who has waited for [`PATIENCE`];
//! - nobody waits while there is a place, or an idle connection of the identity: whoever changes
//!   one of these has the queue served (`serve`), under the pool's lock;
//! - nobody waits while a client could leave its home: either it finds that somebody waits, or the
//!   one who begins to wait finds that it is there (`has_idle`) and has it woken;
//! - there is one pool of a name, whatever its numbers become.

mod bounds;
mod free;
mod numbers;
mod resize;
mod stock;
mod unpooled;

use super::current::Current;
use super::news::{Frees, Grant, News, Place, Tells};
use super::session::Session;
use super::warm::Warm;
use super::ways::Way;
use crate::ids::ClientId;
use bounds::Known;
use numbers::{Figures, Numbers, groups};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub(super) use stock::Errand;
use stock::Stock;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// How long a client waits before a connection of another identity is closed for it, if that is one
/// that others use. To close one and open another takes milliseconds of the server's time, so the
/// identities of a pool are not to do that to each other for each statement.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time after which workers are asked again for homes that could be left, while somebody waits:
/// what kept a client at home may have ended without a sign.
const NUDGE: Duration = Duration::from_millis(200);

/// All pools.
#[derive(Debug)]
pub(super) struct Pools {
    known: Arc<Known>,
    current: Current,
    warm: Arc<Warm>,
    given: AtomicU64,
    runtime: Handle,
    /// Where pools are put that have fewer connections than they should, and where they are found.
    short: UnboundedSender<Arc<Pool>>,
    errands: Mutex<Option<UnboundedReceiver<Arc<Pool>>>>,
}

impl Pools {
    /// Pools whose idle connections are on this list, and which are woken by the runtime that this
    /// is called in.
    pub(super) fn new(current: Current, warm: Arc<Warm>) -> Self {
        let (short, errands) = unbounded_channel();
        Self {
            short,
            errands: Mutex::new(Some(errands)),
            known: Arc::default(),
            current,
            warm,
            runtime: Handle::current(),
            given: AtomicU64::new(1),
        }
    }

    /// The pool of a user and a database, to which this is the way; `None` if there may be any
    /// number of server connections, and there need not be any.
    pub(super) fn find(&self, way: &Way, database: &[u8], user: &[u8]) -> Option<Arc<Pool>> {
        let figures = self.figures(way, user);
        if figures.are_any() {
            return None;
        }
        let name = (database.into(), user.into());
        let pool = self.known.find(name, || Pool {
            number: self.given.fetch_add(1, Ordering::Relaxed),
            numbers: Numbers::new(figures, groups(database, user)),
            known: Arc::clone(&self.known),
            warm: Arc::clone(&self.warm),
            runtime: self.runtime.clone(),
            taken: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            debt: Mutex::default(),
            has_debt: AtomicBool::new(false),
            has_idle: AtomicBool::new(false),
            stock: Stock::new(self.current.clone(), self.short.clone()),
            proving: tokio::sync::Mutex::default(),
            inner: Mutex::default(),
        });
        // The configuration may have changed since it was known last.
        if pool.numbers.get() != figures {
            pool.changes(figures);
        }
        Some(pool)
    }

    /// The numbers of a user's pool to which this is the way.
    fn figures(&self, way: &Way, user: &[u8]) -> Figures {
        let config = self.current.get();
        let sizes = config.sizes_of(way.destination.sizes, user);
        Figures::of(sizes, config.bounds_of(user), self.warm.most())
    }

    /// Where pools are found that have fewer connections than they should; once.
    pub(super) fn errands(&self) -> Option<UnboundedReceiver<Arc<Pool>>> {
        let mut errands = self.errands.lock().unwrap_or_else(PoisonError::into_inner);
        errands.take()
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        // Each of them knows all others.
        self.known.forget_all();
    }
}

/// The server connections of one user to one database.
#[derive(Debug)]
pub(super) struct Pool {
    number: u64,
    numbers: Numbers,
    known: Arc<Known>,
    warm: Arc<Warm>,
    runtime: Handle,
    /// Places that are taken; changed under the lock.
    taken: AtomicUsize,
    /// Clients that wait.
    waiting: AtomicUsize,
    /// Since when somebody waits in another pool for whom one connection is to go.
    debt: Mutex<Option<Instant>>,
    /// Whether there is one; changed under its lock.
    has_debt: AtomicBool,
    /// There may be clients that could leave their homes, and have not because nobody waited.
    has_idle: AtomicBool,
    /// What there is also when nobody needs it.
    stock: Stock,
    /// Held by who sees whether the server still lets its clients in, so that not all do at once.
    pub(super) proving: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
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
    /// When another pool was asked last to let one go for it.
    asked: Option<Instant>,
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
        let inner = self.lock();
        self.taken.fetch_sub(1, Ordering::Relaxed);
        drop(inner);
        self.known.give(&self.numbers.groups());
        self.serve();
    }

    fn serve(self: Arc<Self>) {
        match self.numbers.are_bounded() {
            true => self.serve_all_of_groups(),
            false => self.serve_all(),
        }
        self.restock();
    }

    fn is_entered(self: Arc<Self>, session: &dyn Fn() -> Session) {
        self.remember(session);
        self.restock();
    }

    fn keeps(&self) -> bool {
        self.stock.keeps(self.taken_now(), self.numbers.least())
    }

    fn number(&self) -> u64 {
        self.number
    }
}

impl Pool {
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

    /// Whether somebody waits, here or for a connection that is to go from here.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.has_queue() || self.has_debt.load(Ordering::SeqCst)
    }

    /// Whether somebody waits here.
    fn has_queue(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Whether it has any place.
    fn has_taken(&self) -> bool {
        self.taken_now() > 0
    }

    fn taken_now(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Begins to wait. What comes of it is told, maybe before this returns; until then
    /// [`Self::forget`] takes the ticket back that is returned.
    pub(super) fn wait(self: &Arc<Self>, identity: Option<Vec<u8>>, to: To) -> u64 {
        self.stock.is_used(self.numbers.least());
        let mut inner = self.lock();
        inner.tickets += 1;
        let ticket = inner.tickets;
        inner.queue.push_back(Waiter {
            ticket,
            identity,
            to,
            since: Instant::now(),
            evicts: false,
            asked: None,
        });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(inner);
        self.serve_all();
        if self.is_wanted() && self.has_idle.swap(false, Ordering::SeqCst) {
            self.warm.wake_workers(self.number);
        }
        if self.has_queue() {
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
        drop(inner);
        self.release_others();
        is_forgotten
    }

    /// Gives what there is to those who wait here, or in pools that are counted together with this
    /// one: who has waited longest comes first.
    fn serve_all_of_groups(self: &Arc<Self>) {
        self.pay();
        let waiting = self.known.waiting(&self.numbers);
        let mut waiting: Vec<_> = waiting
            .into_iter()
            .filter_map(|pool| {
                let since = pool.lock().queue.front()?.since;
                Some((since, pool))
            })
            .collect();
        waiting.sort_by_key(|(since, _)| *since);
        for (_, pool) in waiting {
            pool.serve_all();
        }
    }

    /// Has a connection closed for somebody in another pool, if nobody here has waited longer and
    /// one is idle.
    fn pay(&self) {
        if !self.has_debt.load(Ordering::SeqCst) {
            return;
        }
        let inner = self.lock();
        let mut debt = self.debt.lock().unwrap_or_else(PoisonError::into_inner);
        let first = inner.queue.front().map(|first| first.since);
        let is_due = debt.is_some_and(|since| {
            let is_first = first.is_none_or(|first| first > since);
            is_first && (since.elapsed() >= PATIENCE || self.rests() >= Some(PATIENCE))
        });
        if is_due && self.warm.evict(self.number) {
            *debt = None;
            self.has_debt.store(false, Ordering::SeqCst);
        }
    }

    /// Nobody waits here any more, so maybe nobody does for whom another pool was to close one.
    fn release_others(&self) {
        if !self.numbers.are_bounded() || self.has_queue() {
            return;
        }
        for pool in self.known.in_debt(&self.numbers) {
            let waiting = self.known.waiting(&pool.numbers);
            if waiting.iter().all(|other| other.number == pool.number) {
                let mut debt = pool.debt.lock().unwrap_or_else(PoisonError::into_inner);
                *debt = None;
                pool.has_debt.store(false, Ordering::SeqCst);
            }
        }
    }

    /// For how long the idle connection has been so that was used last of its identity; of several
    /// identities, for which that is longest.
    fn rests(&self) -> Option<Duration> {
        let idle = self.warm.idle(self.number);
        idle.iter().map(|(_, since)| since.elapsed()).max()
    }

    /// Nobody here can have more because of others: of the pools that are counted together with
    /// this one, that which has most connections and has not been told yet is to close one.
    fn ask_others(&self, first: &mut Waiter) {
        let is_asked = first.asked.is_some_and(|asked| asked.elapsed() < PATIENCE);
        if is_asked || !self.numbers.are_bounded() {
            return;
        }
        first.asked = Some(Instant::now());
        let others = self.known.in_the_way(self);
        let free = others
            .iter()
            .filter(|pool| !pool.has_debt.load(Ordering::SeqCst));
        let most = free.max_by_key(|pool| {
            let taken = pool.taken.load(Ordering::Relaxed);
            (taken, Reverse(pool.number))
        });
        if let Some(pool) = most {
            let mut debt = pool.debt.lock().unwrap_or_else(PoisonError::into_inner);
            *debt = Some(first.since);
            pool.has_debt.store(true, Ordering::SeqCst);
            drop(debt);
            pool.warm.wake_workers(pool.number);
        }
        for pool in others {
            // Its own lock is not to be taken under another's.
            self.runtime.spawn(async move { pool.pay() });
        }
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
        self.release_others();
        drop(refused);
    }

    /// The first in the queue for whom there is something.
    fn next(self: &Arc<Self>, inner: &mut Inner) -> Option<(Waiter, Grant)> {
        let first = inner.queue.front_mut()?;
        let identity = first.identity.as_deref();
        let berth = identity.and_then(|identity| self.warm.take(identity, self.number));
        let (at, grant) = match berth {
            Some(berth) => (0, Grant::Warm(berth)),
            None if self.takes_place(first.since) => {
                let pool: Arc<Self> = Arc::clone(self);
                (0, Grant::Open(Place::new(pool)))
            }
            None => self.among_others(inner)?,
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Some((inner.queue.remove(at)?, grant))
    }

    /// Takes a place, if there is one for somebody who waits since then; under the lock.
    fn takes_place(&self, since: Instant) -> bool {
        let most = self.numbers.most(|| since.elapsed());
        let is_taken = self.taken_now() < most && self.known.take(&self.numbers.groups());
        if is_taken {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// There is no place, and at most connections of other identities than the first in the queue
    /// has. Who has one of these is served, unless the first has waited for long; else one of them
    /// makes room for it, as soon as one is not used or it has.
    fn among_others(self: &Arc<Self>, inner: &mut Inner) -> Option<(usize, Grant)> {
        let first = inner.queue.front_mut()?;
        let Some(rests) = self.rests() else {
            self.ask_others(first);
            return None;
        };
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
        let idle = self.warm.idle(self.number);
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
