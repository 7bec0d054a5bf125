//! Counters of what the proxy does: each worker has a set of its own, and a summary adds them up.
//!
//! Invariant: only one thread writes a set of counters. So adding needs neither a lock nor an
//! atomic read-modify-write, which would cost more than the warm path can spare. Any thread may
//! read. Labels are enums, so they are few, and no text, user or address becomes one; of texts
//! passed through the most frequent shapes are shown (`most`), without a value.

mod homings;
mod most;
mod refusals;
mod samples;
mod table;
mod taints;
mod times;

use crate::reason::{Homing, LoginRefused, Reason, Stay, Taint};
use crate::sql::tag::{self, Command};
use most::Most;
pub use most::{Passed, Sample};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
pub use table::Growth;
use times::Histogram;
pub use times::{BOUNDS, TimedRoute, Times};

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Counter {
    /// Simple queries received.
    Queries,
    /// Executes of the extended protocol received.
    Executes,
    /// Queries run as prepared statements.
    Converted,
    /// Converted queries whose statement the server connection already held.
    Warm,
    /// Converted queries whose statement had to be prepared first.
    Cold,
    /// Converted queries that failed before BindComplete and were sent again as the client wrote
    /// them (the fidelity rules, H-24 and H-30).
    Replayed,
    /// Statements prepared on a server connection.
    StatementsPrepared,
    /// Statements that were parsed anew so that the server goes on planning them for their values.
    StatementsRenewed,
    /// Statements closed on a server connection, for whatever cause.
    StatementsClosed,
    /// Statements closed to make room for others.
    StatementsEvicted,
    /// Bytes of server memory that statements have been estimated to take.
    MemoryTaken,
    /// Such bytes of statements that were closed, or went with their connection.
    MemoryFreed,
    /// Shapes the server was asked about.
    OracleQuestions,
    /// Lessons that had not paid when their verdict was gone, counted when the next began.
    LessonsUnpaid,
    /// Questions of the proxy's own that were answered.
    Questions,
    /// Milliseconds that the answers to them took to come.
    QuestionsMillis,
    /// Shapes found to mean the same when prepared.
    OracleAccepted,
    /// Shapes that the answers of the server did not confirm.
    OracleDeclined,
    /// Arguments that were made inline because the server did not accept them.
    Demotions,
    /// Audits that found the generic plan to be the plan that the literals get.
    AuditsPassed,
    /// Audits that found another plan.
    AuditsFailed,
    /// Statements found fit to run on other sessions' server connections.
    ReadsTravel,
    /// Reads that were answered by another session's server connection, or by the own one as if it
    /// were another's.
    ReadsShared,
    /// Reads that were sent to such a connection, and were run at home after all.
    ReadsEscaped,
    /// Queries that were only observed and of which the text does not say that they stay at home.
    ReadsOpen,
    /// Times of a statement that were taken by both routes and compared.
    Trials,
    /// Microseconds that prepared executions saved, by what the trials of their statements have
    /// measured.
    MicrosSaved,
    /// Those that prepared executions lost by the same measure.
    MicrosLost,
    /// Transactions that began together with their first statement.
    BeginsCarried,
    /// Transactions of which no server has heard, because they have only read.
    TransactionsSpared,
    /// Transactions that had only read so far, and of which the server was told because of
    /// something else.
    OpenedForMore,
    /// Those for a read that looks at the time.
    OpenedForTime,
    /// Those that had read so much.
    OpenedForMany,
    /// Those that took so long.
    OpenedLate,
    /// Those whose read was not answered elsewhere.
    OpenedAtHome,
    /// Reads that were planned again, for the locks of the transaction they belong to.
    ReadsRepeated,
    /// Transactions in which that has failed.
    RepeatsFailed,
    /// DISCARD ALL for which the server was told less, so that our statements stayed.
    DiscardsSpared,
    /// Statements found to take longer than their texts, so that they are sent as they come.
    RoutesLeft,
    /// Those found to take less time again.
    RoutesTaken,
    /// Server connections kept for another client when their own had left.
    Parked,
    /// Clients that were given such a connection.
    Woken,
    /// Times that a client has left its home to whoever waited for one.
    HomesLeft,
    /// Times that one that had was given another.
    HomesFound,
    /// Clients that were let in without one.
    Homeless,
    /// Clients that have waited for one in vain.
    WaitTimeouts,
    /// Client connections accepted.
    ConnectionsOpened,
    /// Client connections that have ended.
    ConnectionsClosed,
    /// Client connections turned away.
    ConnectionsRefused,
    /// Handshakes of TLS with clients that were completed.
    TlsHandshakes,
    /// Handshakes of TLS with clients that failed.
    TlsFailures,
    /// Server connections that go on in the clear, because the server knows no TLS and need not.
    TlsRefused,
    /// Cancel requests.
    Cancels,
    /// Bytes received from clients.
    BytesFromClients,
    /// Bytes received from the server.
    BytesFromUpstream,
    /// Errors that a client is to blame for.
    ErrorsClient,
    /// Errors that the server is to blame for.
    ErrorsUpstream,
    /// Connections that somebody at the console has ended, or the end of the proxy.
    ErrorsOperator,
    /// Errors that the proxy is to blame for.
    ErrorsProxy,
}

impl Counter {
    /// How many counters there are.
    const COUNT: usize = Self::ErrorsProxy as usize + 1;
}

/// The counters of one worker, on cache lines of their own: 128 bytes, because processors fetch
/// lines of 64 in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    counts: [AtomicU64; Counter::COUNT],
    passed: [AtomicU64; Reason::ALL.len()],
    outdated: [AtomicU64; OUTDATED],
    stays: [AtomicU64; Stay::ALL.len()],
    homings: [AtomicU64; Homing::ALL.len()],
    taints: [AtomicU64; Taint::ALL.len()],
    refusals: [AtomicU64; LoginRefused::ALL.len()],
    /// Whether sessions that are tainted are told of. This anybody may change.
    tells_of_taints: AtomicBool,
    times: [Histogram; TimedRoute::ALL.len()],
    /// Queries passed through until the shape of one is noted, that one included.
    until_noted: AtomicU32,
    most: Mutex<Most>,
}

/// The command tags, and one that is not known.
const OUTDATED: usize = tag::COUNT + 1;

impl Counters {
    /// Adds `n` to `counter`. Only the worker that these counters belong to may call this: calls
    /// from two threads at once lose counts.
    pub fn add(&self, counter: Counter, n: u64) {
        bump(&self.counts[counter as usize], n);
    }

    /// Counts a query that was passed through. Only the worker that these counters belong to may
    /// call this.
    pub fn passed(&self, reason: Reason) {
        bump(&self.passed[reason as usize], 1);
    }

    /// Counts a statement to be learned again after what has this command tag. Only the worker that
    /// these counters belong to may call this.
    pub fn outdated(&self, tag: Command) {
        if let Some(count) = self.outdated.get(tag.index()) {
            bump(count, 1);
        }
    }

    /// Counts a statement that may not run elsewhere, or a query that is only observed. Only the
    /// worker that these counters belong to may call this.
    pub fn stays(&self, stay: Stay) {
        bump(&self.stays[stay as usize], 1);
    }

    /// Counts an answer without an error, so many microseconds after the statement was sent. Only
    /// the worker that these counters belong to may call this.
    #[inline]
    pub fn took(&self, route: TimedRoute, micros: u64) {
        self.times[route as usize].add(micros);
    }

    /// Counts that a prepared execution took so many microseconds less than its text, as trials
    /// have measured. Only the worker that these counters belong to may call this.
    #[inline]
    pub fn gained(&self, micros: i32) {
        let counter = match micros {
            0 => return,
            1.. => Counter::MicrosSaved,
            _ => Counter::MicrosLost,
        };
        self.add(counter, micros.unsigned_abs().into());
    }

    /// Notes the shape of a text that was passed through to a server of this database, if it is the
    /// turn of this one. Only the worker that these counters belong to may call this.
    #[inline]
    pub fn passed_text(&self, reason: Reason, text: &[u8], database: &[u8]) {
        let left = self.until_noted.load(Relaxed);
        if left > 1 {
            self.until_noted.store(left - 1, Relaxed);
        } else {
            self.note(reason, text, database);
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&self, reason: Reason, text: &[u8], database: &[u8]) {
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        let next = most.note(reason, text, database);
        self.until_noted.store(next, Relaxed);
    }

    /// Takes what was noted, so that the next one begins anew. If the worker is passing through
    /// one meanwhile, it may begin at the next that it would have noted.
    fn take_most(&self) -> Most {
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        self.until_noted.store(1, Relaxed);
        most.take()
    }

    /// What was noted since it was last taken. The worker may have to wait while the few shapes are
    /// copied, if it is just about to note another.
    fn copy_most(&self) -> Most {
        let most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        most.copy()
    }

    fn new() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            passed: std::array::from_fn(|_| AtomicU64::new(0)),
            outdated: std::array::from_fn(|_| AtomicU64::new(0)),
            stays: std::array::from_fn(|_| AtomicU64::new(0)),
            homings: std::array::from_fn(|_| AtomicU64::new(0)),
            taints: std::array::from_fn(|_| AtomicU64::new(0)),
            refusals: std::array::from_fn(|_| AtomicU64::new(0)),
            tells_of_taints: AtomicBool::new(false),
            times: Default::default(),
            until_noted: AtomicU32::new(1),
            most: Mutex::default(),
        }
    }
}

/// Adds without a locked instruction. That is correct because each counter has one writer.
fn bump(count: &AtomicU64, n: u64) {
    count.store(count.load(Relaxed).wrapping_add(n), Relaxed);
}

/// The counters of all workers and of the acceptor.
#[derive(Debug)]
pub struct Metrics {
    workers: Box<[Counters]>,
    acceptor: Counters,
    /// Microseconds from which on a statement is told of.
    slow: AtomicU64,
}

impl Metrics {
    /// Counters at zero for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Counters::new()).collect(),
            acceptor: Counters::new(),
            slow: AtomicU64::new(u64::MAX),
        }
    }

    /// Has statements told of in the log that take so long; with zero none is.
    pub fn tell_of_slow(&self, from: Duration) {
        let micros = match from.is_zero() {
            true => u64::MAX,
            false => u64::try_from(from.as_micros()).unwrap_or(u64::MAX),
        };
        self.slow.store(micros, Relaxed);
    }

    /// Microseconds from which on a statement is told of; the greatest number if none is.
    #[inline]
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.slow.load(Relaxed)
    }

    /// The counters that worker `index` writes.
    ///
    /// # Panics
    /// There is no worker with this index.
    #[must_use]
    pub fn worker(&self, index: usize) -> &Counters {
        &self.workers[index]
    }

    /// The counters that the thread which accepts connections writes.
    #[must_use]
    pub fn acceptor(&self) -> &Counters {
        &self.acceptor
    }

    /// Adds up the counters of all threads; of what is counted meanwhile, some may be missing.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            counts: [0; Counter::COUNT],
            passed: [0; Reason::ALL.len()],
            outdated: [0; OUTDATED],
            stays: [0; Stay::ALL.len()],
            homings: [0; Homing::ALL.len()],
            taints: [0; Taint::ALL.len()],
            refusals: [0; LoginRefused::ALL.len()],
            times: Default::default(),
        };
        for counters in self.workers.iter().chain([&self.acceptor]) {
            let counts = summary.counts.iter_mut().zip(&counters.counts);
            let passed = summary.passed.iter_mut().zip(&counters.passed);
            let outdated = summary.outdated.iter_mut().zip(&counters.outdated);
            let taints = summary.taints.iter_mut().zip(&counters.taints);
            let stays = summary.stays.iter_mut().zip(&counters.stays);
            let homings = summary.homings.iter_mut().zip(&counters.homings);
            let refusals = summary.refusals.iter_mut().zip(&counters.refusals);
            let reads = stays.chain(homings);
            let reasons = passed.chain(reads).chain(taints).chain(refusals);
            for (sum, count) in counts.chain(outdated).chain(reasons) {
                *sum += count.load(Relaxed);
            }
            for (sum, histogram) in summary.times.iter_mut().zip(&counters.times) {
                sum.add(histogram);
            }
        }
        summary
    }

    /// The `number` shapes that were passed through most since this was last called.
    #[must_use]
    pub fn take_most_passed(&self, number: usize) -> Vec<Passed> {
        most::merged(self.workers.iter().map(Counters::take_most), number)
    }

    /// The same without taking them: since [`Self::take_most_passed`] was last called.
    #[must_use]
    pub fn most_passed(&self, number: usize) -> Vec<Passed> {
        most::merged(self.workers.iter().map(Counters::copy_most), number)
    }
}

/// The sums of all counters at one moment. `Display` writes a table for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    counts: [u64; Counter::COUNT],
    passed: [u64; Reason::ALL.len()],
    outdated: [u64; OUTDATED],
    stays: [u64; Stay::ALL.len()],
    homings: [u64; Homing::ALL.len()],
    taints: [u64; Taint::ALL.len()],
    refusals: [u64; LoginRefused::ALL.len()],
    times: [Times; TimedRoute::ALL.len()],
}

impl Summary {
    /// How often `counter` was counted.
    #[must_use]
    pub fn count(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Queries passed through for `reason`.
    #[must_use]
    pub fn passed(&self, reason: Reason) -> u64 {
        self.passed[reason as usize]
    }

    /// What was found to stay at home for this reason: statements, or queries that were only
    /// observed.
    #[must_use]
    pub fn stays(&self, stay: Stay) -> u64 {
        self.stays[stay as usize]
    }

    /// Queries passed through for any reason.
    #[must_use]
    pub fn passed_through(&self) -> u64 {
        self.passed.iter().sum()
    }

    /// How long statements took that went by this route.
    #[must_use]
    pub fn times(&self, route: TimedRoute) -> &Times {
        &self.times[route as usize]
    }

    /// Statements that had to be learned again after what has this command tag.
    #[must_use]
    pub fn outdated(&self, tag: Command) -> u64 {
        self.outdated.get(tag.index()).copied().unwrap_or_default()
    }

    /// The same for each command tag of which there are any.
    pub fn outdated_by_label(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = self.outdated.iter().enumerate();
        all.filter(|(_, count)| **count > 0)
            .map(|(index, count)| (Command::label(index), *count))
    }

    /// Client connections open now.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        // The two sums are not read in one moment, so the difference could pass below zero.
        let closed = self.count(Counter::ConnectionsClosed);
        self.count(Counter::ConnectionsOpened)
            .saturating_sub(closed)
    }

    /// The server memory, in bytes, that the statements of all server connections are estimated to
    /// take now.
    #[must_use]
    pub fn statement_memory(&self) -> u64 {
        let freed = self.count(Counter::MemoryFreed);
        self.count(Counter::MemoryTaken).saturating_sub(freed)
    }

    /// What was counted since `earlier`, a summary of the same metrics.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        let less = |after: &mut [u64], before: &[u64]| {
            for (after, before) in after.iter_mut().zip(before) {
                *after = after.saturating_sub(*before);
            }
        };
        less(&mut difference.counts, &earlier.counts);
        less(&mut difference.passed, &earlier.passed);
        less(&mut difference.outdated, &earlier.outdated);
        less(&mut difference.stays, &earlier.stays);
        less(&mut difference.homings, &earlier.homings);
        less(&mut difference.taints, &earlier.taints);
        less(&mut difference.refusals, &earlier.refusals);
        for (after, before) in difference.times.iter_mut().zip(&earlier.times) {
            *after = after.since(before);
        }
        difference
    }
}

#[cfg(test)]
impl Summary {
    /// One of each counter, of which there are so many.
    pub(crate) fn ones() -> (Self, usize) {
        let summary = Self {
            counts: [1; Counter::COUNT],
            passed: [0; Reason::ALL.len()],
            stays: [0; Stay::ALL.len()],
            homings: [0; Homing::ALL.len()],
            taints: [0; Taint::ALL.len()],
            refusals: [0; LoginRefused::ALL.len()],
            outdated: [0; OUTDATED],
            times: Default::default(),
        };
        (summary, Counter::COUNT)
    }
}

#[cfg(test)]
mod tests;
