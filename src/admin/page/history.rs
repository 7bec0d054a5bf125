//! What was counted in the last minutes, for charts.

use crate::admin::headline::saved;
use crate::metrics::{Counter, Summary, TimedRoute};
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Seconds between two looks at the counters.
pub const PERIOD_S: u64 = 2;

/// How many are kept: five minutes, in which a change shows that somebody has just made.
const MOST: usize = 150;

/// What was counted between two looks.
#[derive(Debug, Clone)]
struct Interval {
    /// How many seconds it lasted.
    lasted: f64,
    /// Statements by route, for each second.
    rates: [f64; TimedRoute::ALL.len()],
    /// Microseconds saved for each second; negative if they were lost.
    saved: f64,
    /// Of each route the microseconds that half of the statements did not exceed, and 95 percent.
    times: [Option<(u64, u64)>; TimedRoute::ALL.len()],
}

/// What was counted lately.
#[derive(Debug, Clone, Default)]
pub struct History {
    last: Option<(f64, Summary)>,
    intervals: VecDeque<Interval>,
}

/// Statements by route so far.
pub(super) fn by_route(summary: &Summary) -> [u64; TimedRoute::ALL.len()] {
    let shared = summary.count(Counter::ReadsShared);
    // The sums are not read in one moment.
    let prepared = summary.count(Counter::Converted).saturating_sub(shared);
    TimedRoute::ALL.map(|route| match route {
        TimedRoute::Prepared => prepared,
        TimedRoute::Shared => shared,
        TimedRoute::Passed => summary.passed_through(),
    })
}

impl History {
    /// Notes what is counted now, so many seconds after the start.
    pub fn note(&mut self, now: f64, summary: Summary) {
        let Some((then, before)) = self.last.replace((now, summary.clone())) else {
            return;
        };
        let lasted = now - then;
        if lasted <= 0.0 {
            return;
        }
        let since = summary.since(&before);
        if self.intervals.len() == MOST {
            self.intervals.pop_front();
        }
        self.intervals.push_back(Interval {
            lasted,
            rates: by_route(&since).map(|count| count as f64 / lasted),
            saved: saved(&since) as f64 / lasted,
            times: TimedRoute::ALL.map(|route| {
                let times = since.times(route);
                Some((times.percentile(50)?, times.percentile(95)?))
            }),
        });
    }

    /// The intervals, the oldest first.
    pub(super) fn json(&self) -> Value {
        let rounded = |number: f64| (number * 10.0).round() / 10.0;
        let intervals = self.intervals.iter().map(|interval| {
            json!({
                "seconds": rounded(interval.lasted),
                "rates": interval.rates.map(rounded),
                "saved_us": rounded(interval.saved),
                "median_us": interval.times.map(|times| times.map(|(median, _)| median)),
                "p95_us": interval.times.map(|times| times.map(|(_, most)| most)),
            })
        });
        intervals.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn intervals_have_rates_and_are_bounded() {
        let metrics = Metrics::new(1);
        let counters = metrics.worker(0);
        let mut history = History::default();
        history.note(10.0, metrics.summary());
        assert_eq!(history.json(), json!([]));
        counters.add(Counter::Converted, 30);
        counters.add(Counter::ReadsShared, 10);
        counters.gained(400);
        (0..100).for_each(|_| counters.took(TimedRoute::Prepared, 120));
        history.note(12.0, metrics.summary());
        // Two looks at one moment.
        history.note(12.0, metrics.summary());
        let json = history.json();
        let first = &json[0];
        assert_eq!(first["rates"], json!([10.0, 5.0, 0.0]));
        assert_eq!(first["saved_us"], json!(200.0));
        assert_eq!(first["median_us"], json!([96, null, null]));
        assert_eq!(json.as_array().unwrap().len(), 1);
        for at in 0..1000 {
            history.note(14.0 + f64::from(at), metrics.summary());
        }
        assert_eq!(history.json().as_array().unwrap().len(), MOST);
        assert_eq!(history.json()[0]["rates"], json!([0.0, 0.0, 0.0]));
    }
}
