//! What the proxy tells its operators: one snapshot, and its views.
//!
//! Pure: whoever has sockets and clocks takes the snapshot and sends the view. The views for
//! programs that watch hold no query text, no user's name, no address and no value, and all labels
//! come from enums, so their number is bounded whatever clients send. The [`console`], which asks
//! who somebody is, shows names, addresses and texts without their values. The [`page`] shows names
//! of users and databases, and outlines of texts.

pub mod console;
pub mod date;
pub mod exposition;
mod headline;
mod literals;
pub mod page;
pub mod shape_rows;
pub mod status;

use crate::metrics::Summary;

/// What there is to know of the proxy at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The proxy's version.
    pub version: &'static str,
    /// How many workers there are.
    pub workers: usize,
    /// It takes no new clients, because it is ending.
    pub is_draining: bool,
    /// Seconds since it was started.
    pub uptime: f64,
    /// The sums of all counters.
    pub summary: Summary,
    /// What the system knows of the process.
    pub process: Process,
    /// What came of reading the configuration again.
    pub reloads: Reloads,
    /// When the certificate ends that clients are shown, in seconds since 1970; `None` if none is
    /// shown, or that cannot be read.
    pub certificate_ends: Option<u64>,
    /// What is held back or turned away by order of the console.
    pub halts: HaltCounts,
    /// Clients that wait in the queue of a pool.
    pub queued: usize,
    /// The server connections, if all workers have told.
    pub servers: Option<ServerCounts>,
}

/// What came of reading the configuration again, and the files that it names.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Reloads {
    /// How often all was put in force.
    pub succeeded: u64,
    /// How often something could not be used, so that nothing changed.
    pub failed: u64,
    /// The last one failed.
    pub is_refused: bool,
    /// When what is in force was read, in seconds since 1970: at the start, if never since.
    pub read: f64,
}

/// How many databases are halted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HaltCounts {
    /// All are paused.
    pub is_all: bool,
    /// Those that are paused by their names.
    pub paused: usize,
    /// Those that are disabled.
    pub disabled: usize,
}

/// How many server connections there are, by what the console calls their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// A client is logged in on them.
    pub active: u64,
    /// They are warm, and wait for a client.
    pub idle: u64,
    /// A client logs in on them.
    pub login: u64,
    /// No client has them, and the proxy is looking at what is left on them.
    pub tested: u64,
}

impl ServerCounts {
    /// Counts those of another worker, too.
    pub const fn add(&mut self, other: &Self) {
        self.active += other.active;
        self.idle += other.idle;
        self.login += other.login;
        self.tested += other.tested;
    }
}

/// What the system knows of the process. What it does not tell is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Process {
    /// Seconds of CPU time, of all threads.
    pub cpu: Option<f64>,
    /// Bytes of memory that are its own or shared, and not swapped out.
    pub resident: Option<u64>,
    /// Files and sockets that are open.
    pub open_files: Option<u64>,
    /// How many may be.
    pub most_files: Option<u64>,
    /// When it was started, in seconds since 1970.
    pub started: Option<f64>,
}

#[cfg(test)]
pub(crate) fn sample() -> Snapshot {
    use crate::metrics::{Counter, Metrics, TimedRoute};
    use crate::reason::{LoginRefused, Reason};
    use crate::sql::tag::Command;
    let metrics = Metrics::new(2);
    metrics.worker(0).add(Counter::Queries, 5);
    metrics.worker(1).add(Counter::Converted, 3);
    metrics.worker(1).add(Counter::QuestionsMillis, 1_250);
    metrics.worker(1).passed(Reason::Threshold);
    metrics.worker(1).passed(Reason::Threshold);
    for micros in [100, 100, 300] {
        metrics.worker(0).took(TimedRoute::Prepared, micros);
    }
    for gain in [10, 5, -2] {
        metrics.worker(1).gained(gain);
    }
    metrics.worker(1).refused(LoginRefused::ServerPassword);
    metrics.worker(0).outdated(Command::of(b"CREATE TABLE"));
    metrics.acceptor().add(Counter::ConnectionsOpened, 4);
    metrics.worker(0).add(Counter::ConnectionsClosed, 1);
    Snapshot {
        version: "1.2.3",
        workers: 2,
        is_draining: false,
        uptime: 12.5,
        summary: metrics.summary(),
        process: Process {
            cpu: Some(1.25),
            resident: Some(4096),
            open_files: Some(7),
            most_files: None,
            started: Some(1_700_000_000.5),
        },
        reloads: Reloads {
            succeeded: 2,
            failed: 1,
            is_refused: true,
            read: 1_700_000_100.5,
        },
        certificate_ends: Some(1_800_000_000),
        halts: HaltCounts {
            is_all: false,
            paused: 1,
            disabled: 2,
        },
        queued: 3,
        servers: Some(ServerCounts {
            active: 4,
            idle: 3,
            login: 2,
            tested: 1,
        }),
    }
}
