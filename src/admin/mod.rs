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
    use crate::reason::Reason;
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
    }
}
