//! Which warm server connections there are, at which workers, and who may have one.
//!
//! A warm connection belongs to its worker; here is only written down that it is there. The
//! acceptor takes it off the list for a client, and hands the client to that worker.
//!
//! Invariants:
//! - a connection is given to one client: whoever takes it off the list;
//! - one that was promised ([`Berth`]) is not let go for being idle or old, or unlisted, until its
//!   worker says that the promise was kept or returned;
//! - an identity has warm connections only while the server lets everybody in who claims it: it has
//!   accepted a login without asking for anything, no longer than [`PROVEN`] ago, and no login has
//!   been refused or challenged since;
//! - there are no more than the bounds for one identity and for all;
//! - one that holds statements does not go for one that holds none.

mod greetings;

use super::news::{Berth, News, Tells};
use crate::config::Config;
use crate::hub::{MAX_LOOK, Precedent};
use crate::ids::UpstreamId;
use foldhash::quality::RandomState;
pub(super) use greetings::Greeted;
use greetings::Greeting;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a login that the server has accepted shows that it would accept others.
pub(super) const PROVEN: Duration = Duration::from_secs(1);

/// After this time one login is sent to the server to see whether it still does, while others are
/// answered.
const RENEWED: Duration = Duration::from_millis(500);

/// Warm connections of all identities together, as a multiple of those of one.
const IDENTITIES: usize = 2;

/// Identities that are remembered although they have no warm connection.
const MAX_KNOWN: usize = 1024;

/// How long after the proxy has given up a connection of its own the server may not have noticed.
const LATELY: Duration = Duration::from_secs(1);

/// The list of warm connections.
#[derive(Debug)]
pub(super) struct Warm {
    /// The most of one identity; none if that is zero.
    most: AtomicUsize,
    /// How long after its client has left a connection may be given away without another look at
    /// the catalog.
    watched: AtomicU64,
    listed: Mutex<Listed>,
}

#[derive(Debug, Default)]
struct Listed {
    /// By server and startup packet.
    identities: HashMap<Box<[u8]>, Identity, RandomState>,
    count: usize,
    /// What was taken off for somebody who has not come to the worker yet: worker and connection.
    promised: Vec<(usize, UpstreamId)>,
    /// By which each worker hears.
    workers: Vec<Arc<dyn Tells>>,
    is_closed: bool,
    /// Somebody has read in the log why there are none.
    has_told: bool,
    /// When a connection of the proxy's own was given up last, or began that is given up soon.
    freed: Option<Instant>,
}

#[derive(Debug, Default)]
struct Identity {
    /// Those that were used last come last.
    idle: Vec<Idle>,
    /// When the last login began that the server has accepted, and the number of the secret that
    /// it was shown something of, or 0.
    accepted: Option<(Instant, u64)>,
    /// When the last login began by which that is found out again.
    tried: Option<Instant>,
    /// What the server has told the last of these that it has accepted.
    greeting: Option<Greeting>,
    /// How the session of its last connection began.
    precedent: Option<Precedent>,
}

#[derive(Debug, Clone, Copy)]
struct Idle {
    worker: usize,
    connection: UpstreamId,
    /// The number of the pool that it is of; 0 if it is of none.
    pool: u64,
    /// It has what the next client would otherwise have to prepare again.
    holds: bool,
    since: Instant,
}

/// What is offered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offer {
    /// It was only needed to see what the server says.
    pub(super) is_spare: bool,
    /// It holds statements of ours.
    pub(super) holds: bool,
    /// The number of the pool that it is of; 0 if it is of none.
    pub(super) pool: u64,
}

/// What to do with a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Give the client this connection of this worker.
    Warm(usize, UpstreamId),
    /// First see whether the server still lets such a client in.
    Prove,
    /// Send it to the server.
    Cold {
        /// There are warm connections, so this one is needed only to see what the server says.
        is_spare: bool,
    },
}

/// The most connections of one identity that this configuration keeps.
fn most(config: &Config) -> usize {
    let pool = config.largest_pool().unwrap_or_default();
    match super::settings(config).warm {
        true => config.default_pool_size.max(pool),
        false => 0,
    }
}

fn watched(config: &Config) -> Duration {
    config.catalog_watch * MAX_LOOK
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Warm {
    /// A list of at most as many of each identity as `config` says.
    pub(super) fn new(config: &Config) -> Self {
        Self::of(most(config), watched(config))
    }

    fn of(most: usize, watched: Duration) -> Self {
        Self {
            most: AtomicUsize::new(most),
            watched: AtomicU64::new(millis(watched)),
            listed: Mutex::default(),
        }
    }

    /// The most connections that there are.
    pub(super) fn bound(&self) -> usize {
        self.most().saturating_mul(IDENTITIES)
    }

    /// The most of one identity.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// From now on there are as many of each identity as `config` says. Those that wait stay until
    /// they have waited for long enough, unless there are to be none.
    pub(super) fn follow(&self, config: &Config) {
        let most = most(config);
        self.most.store(most, Ordering::Relaxed);
        self.watched
            .store(millis(watched(config)), Ordering::Relaxed);
        if most == 0 {
            self.drop_all();
        }
    }

    /// The worker with the next number hears by this.
    pub(super) fn add_worker(&self, by: Arc<dyn Tells>) {
        self.lock().workers.push(by);
    }

    /// Whether there is any use in asking.
    pub(super) fn is_on(&self) -> bool {
        self.most() > 0
    }

    /// What to do with a login that begins now with this identity, of a client that has proven to
    /// know the secret of this number, or was not asked. `load` tells how many clients a worker
    /// has.
    pub(super) fn answer(
        &self,
        (identity, number): (&[u8], u64),
        now: Instant,
        load: impl Fn(usize) -> usize,
    ) -> Answer {
        let cold = |is_spare| Answer::Cold { is_spare };
        let mut listed = self.lock();
        let listed = &mut *listed;
        let Some(identity) = listed.identities.get_mut(identity) else {
            return cold(false);
        };
        // Of those that are as good, the one that was used last.
        let places = (0..identity.idle.len()).rev();
        let places = places.filter(|at| identity.idle[*at].pool == 0);
        let worth = |at: &usize| (load(identity.idle[*at].worker), !identity.idle[*at].holds);
        let Some(best) = places.min_by_key(worth) else {
            return cold(false);
        };
        let age = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        // The server may have been shown another secret, which says nothing of this one.
        let accepted = identity.accepted.filter(|(_, secret)| *secret == number);
        let accepted = accepted.map(|(began, _)| began);
        let is_proven = age(accepted).is_some_and(|age| age <= PROVEN);
        let is_due = age(accepted).is_none_or(|age| age > RENEWED)
            && age(identity.tried).is_none_or(|age| age > RENEWED);
        let rests = now.saturating_duration_since(identity.idle[best].since);
        if is_due && millis(rests) > self.watched.load(Ordering::Relaxed) {
            // It would take two questions, that to the server and that about the catalog; its own
            // login is sooner done, and answers the first for those who come next.
            return cold(true);
        }
        if is_due {
            identity.tried = Some(now);
            return Answer::Prove;
        }
        if !is_proven {
            return cold(true);
        }
        let idle = identity.idle.remove(best);
        listed.count -= 1;
        Answer::Warm(idle.worker, idle.connection)
    }

    /// Takes an idle connection of a pool off the list, the one that was used last of those that
    /// are as good.
    pub(super) fn take(&self, identity: &[u8], pool: u64) -> Option<Berth> {
        let mut listed = self.lock();
        let listed = &mut *listed;
        let idle = &mut listed.identities.get_mut(identity)?.idle;
        let mut places = (0..idle.len()).rev();
        let at = places.find(|at| idle[*at].pool == pool)?;
        let taken = idle.remove(at);
        listed.count -= 1;
        listed.promised.push((taken.worker, taken.connection));
        let by = listed.workers.get(taken.worker).cloned();
        Some(Berth::new(taken.worker, taken.connection, by))
    }

    /// The identities of which a pool has idle connections, and when the last of each became so.
    pub(super) fn idle(&self, pool: u64) -> Vec<(Box<[u8]>, Instant)> {
        let listed = self.lock();
        let all = listed.identities.iter();
        let of_pool = all.filter_map(|(identity, known)| {
            let idle = known.idle.iter().rfind(|idle| idle.pool == pool)?;
            Some((identity.clone(), idle.since))
        });
        of_pool.collect()
    }

    /// Has an idle connection of a pool closed, the one that was used longest ago. False if there
    /// is none.
    pub(super) fn evict(&self, pool: u64) -> bool {
        let mut listed = self.lock();
        let all = listed.identities.values_mut();
        let of_pool = all.filter_map(|identity| {
            let at = identity.idle.iter().position(|idle| idle.pool == pool)?;
            Some((identity.idle[at].since, identity, at))
        });
        let Some((_, identity, at)) = of_pool.min_by_key(|(since, ..)| *since) else {
            return false;
        };
        let evicted = identity.idle.remove(at);
        listed.count -= 1;
        if let Some(worker) = listed.workers.get(evicted.worker) {
            worker.tell(News::Close(evicted.connection));
        }
        true
    }

    /// What a login of this identity, with the secret of this number, has to do before it is given
    /// a connection of a pool at this time: nothing, or to see whether the server lets it in.
    pub(super) fn is_proven(&self, (identity, number): (&[u8], u64), now: Instant) -> bool {
        let mut listed = self.lock();
        let Some(identity) = listed.identities.get_mut(identity) else {
            return false;
        };
        let age = |at: Option<Instant>| at.map(|at| now.saturating_duration_since(at));
        let accepted = identity.accepted.filter(|(_, secret)| *secret == number);
        let age_of_proof = age(accepted.map(|(began, _)| began));
        let is_due = age_of_proof.is_none_or(|age| age > RENEWED)
            && age(identity.tried).is_none_or(|age| age > RENEWED);
        if is_due {
            identity.tried = Some(now);
        }
        !is_due && age_of_proof.is_some_and(|age| age <= PROVEN)
    }

    /// Has all workers see whether a client of this pool could leave its home.
    pub(super) fn wake_workers(&self, pool: u64) {
        for worker in &self.lock().workers {
            worker.tell(News::Yield(pool));
        }
    }

    /// The server has accepted a login, which began at this time, without asking for anything, or
    /// with what it was shown of the secret of this number.
    pub(super) fn accepted(&self, (identity, number): (&[u8], u64), began: Instant) {
        let mut listed = self.lock();
        if let Some(identity) = listed.identities.get_mut(identity) {
            identity.accepted = identity.accepted.max(Some((began, number)));
            return;
        }
        if listed.identities.len() >= MAX_KNOWN {
            listed.identities.retain(|_, known| !known.idle.is_empty());
        }
        if listed.identities.len() < MAX_KNOWN {
            let made = Identity {
                accepted: Some((began, number)),
                ..Identity::default()
            };
            listed.identities.insert(identity.into(), made);
        }
    }

    /// Whether the server has accepted a login of this identity, and none otherwise since.
    pub(super) fn knows(&self, identity: &[u8]) -> bool {
        let listed = self.lock();
        let known = listed.identities.get(identity);
        known.is_some_and(|known| known.accepted.is_some())
    }

    /// The server has not accepted a login at once: it would not accept others.
    pub(super) fn refused(&self, identity: &[u8]) {
        let mut listed = self.lock();
        if let Some(identity) = listed.identities.remove(identity) {
            if !identity.idle.is_empty() {
                listed.freed = Some(Instant::now());
            }
            listed.count -= identity.idle.len();
            listed.sweep();
        }
    }

    /// The proxy logs in for itself, and leaves at once.
    pub(super) fn visits(&self) {
        self.lock().freed = Some(Instant::now());
    }

    /// Whether it has not been told yet why there are no warm connections.
    pub(super) fn is_to_tell(&self) -> bool {
        !std::mem::replace(&mut self.lock().has_told, true)
    }

    /// A connection of this worker is warm. Returns whether it is listed; if not, it is of no use.
    pub(super) fn offer(
        &self,
        identity: &[u8],
        (worker, connection): (usize, UpstreamId),
        offer: Offer,
    ) -> bool {
        let mut listed = self.lock();
        let listed = &mut *listed;
        let is_full = listed.count >= self.bound();
        let Some(identity) = listed.identities.get_mut(identity) else {
            return false;
        };
        let holds = offer.holds;
        if listed.is_closed || offer.is_spare && !identity.idle.is_empty() {
            return false;
        }
        let one = Idle {
            worker,
            connection,
            pool: offer.pool,
            holds,
            since: Instant::now(),
        };
        if identity.idle.len() < self.most() {
            identity.idle.push(one);
            listed.count += 1;
            if is_full {
                listed.drop_oldest();
            }
            return true;
        }
        // Among many that come and go, few may have had the time to learn something.
        let empty = identity.idle.iter().position(|idle| !idle.holds);
        let Some(empty) = empty.filter(|_| holds) else {
            return false;
        };
        identity.idle.remove(empty);
        identity.idle.push(one);
        listed.sweep();
        true
    }

    /// A connection is no longer there.
    pub(super) fn withdraw(&self, identity: &[u8], worker: usize, connection: UpstreamId) {
        let mut listed = self.lock();
        listed.redeem((worker, connection));
        listed.withdraw(identity, (worker, connection));
    }

    /// What was promised has come to its worker, or will not any more.
    pub(super) fn redeems(&self, worker: usize, connection: UpstreamId) {
        self.lock().redeem((worker, connection));
    }

    /// Takes a connection off the list that is to be closed. False if it must not be, because it
    /// was promised to somebody.
    pub(super) fn lets_go(&self, identity: &[u8], worker: usize, connection: UpstreamId) -> bool {
        let mut listed = self.lock();
        let is_promised = listed.promised.contains(&(worker, connection));
        if !is_promised {
            listed.withdraw(identity, (worker, connection));
        }
        !is_promised
    }

    /// Whether a connection is on the list.
    pub(super) fn has(&self, identity: &[u8], worker: usize, connection: UpstreamId) -> bool {
        let listed = self.lock();
        let is_it = |idle: &Idle| idle.worker == worker && idle.connection == connection;
        let identity = listed.identities.get(identity);
        identity.is_some_and(|identity| identity.idle.iter().any(is_it))
    }

    /// What a login would find may have changed: all connections go.
    /// Returns whether there were any, or have been lately: where somebody was refused for want of
    /// room, there is some soon.
    pub(super) fn drop_all(&self) -> bool {
        let mut listed = self.lock();
        listed.clear() || listed.freed.is_some_and(|freed| freed.elapsed() < LATELY)
    }

    /// The proxy is ending.
    pub(super) fn close(&self) {
        let mut listed = self.lock();
        listed.is_closed = true;
        listed.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    fn clear(&mut self) -> bool {
        let had_any = self.count > 0;
        self.identities.clear();
        self.count = 0;
        if had_any {
            self.sweep();
        }
        had_any
    }

    fn redeem(&mut self, promised: (usize, UpstreamId)) {
        self.promised.retain(|other| *other != promised);
    }

    fn withdraw(&mut self, identity: &[u8], (worker, connection): (usize, UpstreamId)) {
        if let Some(identity) = self.identities.get_mut(identity) {
            let before = identity.idle.len();
            let is_it = |idle: &Idle| idle.worker == worker && idle.connection == connection;
            identity.idle.retain(|idle| !is_it(idle));
            self.count -= before - identity.idle.len();
        }
    }

    /// Has all workers close what is not listed.
    fn sweep(&self) {
        for worker in &self.workers {
            worker.tell(News::Sweep);
        }
    }

    fn drop_oldest(&mut self) {
        let identities = self.identities.values_mut();
        let oldest = identities.min_by_key(|identity| {
            let since = identity.idle.first().map(|idle| idle.since);
            (since.is_none(), since)
        });
        if let Some(identity) = oldest
            && !identity.idle.is_empty()
        {
            identity.idle.remove(0);
            self.count -= 1;
            self.sweep();
        }
    }
}

#[cfg(test)]
#[path = "warm_tests.rs"]
mod tests;
