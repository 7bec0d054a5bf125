//! The summary of what the proxy has done, as it is printed on SIGUSR1 and at the end.
//!
//! Each says what was added since the one before, so that a phase lies between two signals.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::admin::date;
use crate::metrics::{Growth, Metrics, Passed, Summary};
use crate::net::Proxy;
use crate::sql::tag::Command;
use crate::statement::journal::{Event, Journal};

/// Shapes that are printed.
const SHAPES: usize = 10;

/// Changes of the catalog that are printed.
const CHANGES: usize = 10;

/// What is needed to print summaries.
#[derive(Debug)]
pub(super) struct Summaries {
    metrics: Arc<Metrics>,
    journal: Arc<Journal>,
    started: Instant,
    last: Mutex<Last>,
}

/// What the last one has said.
#[derive(Debug)]
struct Last {
    printed: Instant,
    summary: Summary,
    outlived: Vec<u64>,
}

/// A moment by both clocks.
#[derive(Debug, Clone, Copy)]
struct Moment {
    steady: Instant,
    wall: SystemTime,
}

impl Moment {
    /// Another moment by the clock on the wall, as that goes now.
    fn wall_at(&self, other: Instant) -> Utc {
        let ago = self.steady.saturating_duration_since(other);
        Utc(self.wall.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH))
    }
}

impl Summaries {
    /// Those of this proxy; the first counts from its start.
    pub(super) fn of(proxy: &Proxy) -> Self {
        let started = proxy.started();
        Self::new(proxy.metrics(), proxy.journal(), started)
    }

    fn new(metrics: Arc<Metrics>, journal: Arc<Journal>, started: Instant) -> Self {
        let last = Last {
            printed: started,
            summary: Metrics::new(0).summary(),
            outlived: Vec::new(),
        };
        Self {
            metrics,
            journal,
            started,
            last: Mutex::new(last),
        }
    }

    /// The next one.
    pub(super) fn next(&self) -> String {
        self.at(Moment {
            steady: Instant::now(),
            wall: SystemTime::now(),
        })
    }

    fn at(&self, now: Moment) -> String {
        let next = Last {
            printed: now.steady,
            summary: self.metrics.summary(),
            outlived: self.journal.outlived(),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (label, moment) in [
            ("printed at", now.steady),
            ("running since", self.started),
            ("added since", last.printed),
        ] {
            let seconds = now.steady.saturating_duration_since(moment).as_secs();
            // Writing to a string does not fail.
            let _ = write!(out, "{label:<24}{}", now.wall_at(moment));
            let _ = match label {
                "printed at" => writeln!(out),
                _ => writeln!(out, "{seconds:>24} s"),
            };
        }
        let growth = Growth {
            now: &next.summary,
            before: &last.summary,
        };
        let _ = write!(out, "{growth}");
        let _ = writeln!(out, "kept after");
        for (tag, count) in next
            .outlived
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let grown = count - last.outlived.get(tag).copied().unwrap_or_default();
            let label = Command::label(tag);
            let _ = writeln!(out, "  {label:<26}{count:>16}{grown:>+26}");
        }
        *last = next;
        let _ = writeln!(out, "passed through most since then");
        for passed in self.metrics.take_most_passed(SHAPES) {
            let Passed {
                reason,
                shape,
                count,
            } = passed;
            let _ = writeln!(out, "  {:<26}{count:>16}  {shape}", reason.label());
        }
        let _ = writeln!(out, "last changes: learned again, kept");
        for event in self.journal.last(CHANGES) {
            let at = self.started + Duration::from_millis(event.at().0);
            let (outdated, outlived) = (event.outdated(), event.outlived());
            let (at, what) = (now.wall_at(at), What(&event));
            let _ = writeln!(out, "  {at:<26}{outdated:>16}{outlived:>10}  {what}");
        }
        out
    }
}

/// What a change was, for people.
struct What<'e>(&'e Event);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Command::label(self.0.tag.index()))?;
        let mut separator = " ";
        for name in &self.0.names {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        if self.0.more > 0 {
            write!(f, " and {} more", self.0.more)?;
        }
        if self.0.times() > 1 {
            write!(f, " ({} times)", self.0.times())?;
        }
        Ok(())
    }
}

/// A summary as one line of a log whose lines are JSON.
pub(super) fn line(summary: &str) -> String {
    let line = serde_json::json!({
        "timestamp": Utc(SystemTime::now()).to_string(),
        "level": "INFO",
        "message": "summary",
        "summary": summary,
    });
    format!("{line}\n")
}

/// A time in RFC 3339, in UTC.
struct Utc(SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.unwrap_or_default().as_secs();
        let [year, month, day, hour, minute, second] = date::parts(seconds);
        f.pad(&format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counter;
    use crate::reason::Reason;
    use crate::sql::define::Definitions;
    use crate::sql::touched::Touched;
    use crate::statement::Millis;
    use crate::statement::shapes::Shapes;

    /// The summary without the table, which `metrics` sees to.
    fn around_the_table(summary: &str) -> String {
        let lines = summary.lines().enumerate();
        let table = |line: &str| line.starts_with("kept after");
        let end = summary.lines().position(table).expect("it is there");
        let around = lines.filter(|(at, _)| *at < 4 || *at >= end);
        around.map(|(_, line)| format!("{line}\n")).collect()
    }

    #[test]
    fn each_says_when_it_was_printed_and_what_came_since_the_last() {
        let metrics = Arc::new(Metrics::new(2));
        let shapes = Shapes::new(16, 1, 1);
        let journal = Arc::clone(shapes.journal());
        let started = Instant::now();
        let summaries = Summaries::new(Arc::clone(&metrics), Arc::clone(&journal), started);
        let after = |seconds| Moment {
            steady: started + Duration::from_secs(seconds),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds),
        };
        let query = |worker: usize, reason, text: &str| {
            let counters = metrics.worker(worker);
            counters.add(Counter::Queries, 1);
            counters.passed(reason);
            counters.passed_text(reason, text.as_bytes(), b"d");
        };
        query(0, Reason::Threshold, "SELECT a FROM t WHERE id = 5");
        query(1, Reason::Threshold, "SELECT a FROM t WHERE id = 6");
        query(0, Reason::NotPreparable, "BEGIN");
        let database = shapes.database(1, b"db");
        let change = |tag: &[u8], names: Option<&[&str]>| {
            let names = names.map(|it| it.iter().map(|it| it.as_bytes().into()).collect());
            let since = database.epoch();
            database.defined(&Definitions {
                touched: names.map_or(Touched::Everything, Touched::names),
                tag: Command::of(tag),
                ..Definitions::default()
            });
            since
        };
        journal.tick(Millis(100_000));
        let since = change(b"ALTER TABLE", None);
        (0..7).for_each(|_| database.holds(since, |_| true).expect_err("all").count());
        journal.tick(Millis(101_000));
        let since = change(b"DROP TABLE", Some(&["a", "b", "c", "d"]));
        change(b"DROP TABLE", Some(&["a", "b", "c", "d"]));
        database.holds(since, |_| true).expect_err("it").count();
        (0..30).for_each(|_| database.outlived(since, database.epoch()));
        change(b"CREATE TABLE", Some(&["harmless"]));
        let expected = "\
printed at              2023-11-14T22:16:20Z
running since           2023-11-14T22:13:20Z                     180 s
added since             2023-11-14T22:13:20Z                     180 s
queries                                    3   100.0 %              +3
kept after
  DROP TABLE                              30                       +30
passed through most since then
  threshold                                2  SELECT a FROM t WHERE id = ?
  not_preparable                           1  BEGIN
last changes: learned again, kept
  2023-11-14T22:15:01Z                     1        30  DROP TABLE a, b, c and 1 more (2 times)
  2023-11-14T22:15:00Z                     7         0  ALTER TABLE
";
        assert_eq!(around_the_table(&summaries.at(after(180))), expected);
        query(0, Reason::NotPreparable, "COMMIT");
        let expected = "\
printed at              2023-11-14T22:17:00Z
running since           2023-11-14T22:13:20Z                     220 s
added since             2023-11-14T22:16:20Z                      40 s
queries                                    4   100.0 %              +1
kept after
  DROP TABLE                              30                        +0
passed through most since then
  not_preparable                           1  COMMIT
last changes: learned again, kept
  2023-11-14T22:15:01Z                     1        30  DROP TABLE a, b, c and 1 more (2 times)
  2023-11-14T22:15:00Z                     7         0  ALTER TABLE
";
        assert_eq!(around_the_table(&summaries.at(after(220))), expected);
    }
}
