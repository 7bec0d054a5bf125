//! The figures as JSON, for scripts and people.

use super::Snapshot;
use super::headline::{COMPARED, saved};
use crate::metrics::Counter;
use crate::reason::{Homing, Reason, Stay, Taint};
use serde_json::{Map, Value, json};

/// The figures, and the reasons for which something was passed through, the most frequent first.
#[must_use]
pub fn status(snapshot: &Snapshot) -> String {
    let summary = &snapshot.summary;
    let count = |counter| summary.count(counter);
    let reasons = met(&Reason::ALL.map(|reason| (reason.label(), summary.passed(reason))));
    let value = json!({
        "version": snapshot.version,
        "state": if snapshot.is_draining { "draining" } else { "serving" },
        "uptime_seconds": snapshot.uptime,
        "workers": snapshot.workers,
        "clients": summary.connections_open(),
        "queries": {
            "received": count(Counter::Queries),
            "converted": count(Counter::Converted),
            "passed_through": summary.passed_through(),
        },
        "time_saved": {
            "seconds": saved(summary) as f64 / 1e6,
            "compared_with": COMPARED,
            "trials": count(Counter::Trials),
        },
        "passed_through_by_reason": reasons,
        "reads_at_home_by_reason": met(&Stay::ALL.map(|it| (it.label(), summary.stays(it)))),
        "reads_run_at_home_by_reason":
            met(&Homing::ALL.map(|it| (it.label(), summary.homings(it)))),
        "tainted_sessions_by_reason": met(&Taint::ALL.map(|it| (it.label(), summary.taints(it)))),
        "statements": {
            "prepared": count(Counter::StatementsPrepared),
            "evicted": count(Counter::StatementsEvicted),
            "server_memory_bytes": summary.statement_memory(),
        },
        "questions": {
            "answered": count(Counter::Questions),
            "milliseconds": count(Counter::QuestionsMillis),
        },
        "connections": {
            "opened": count(Counter::ConnectionsOpened),
            "refused": count(Counter::ConnectionsRefused),
            "given_warm": count(Counter::Woken),
        },
        "errors": {
            "client": count(Counter::ErrorsClient),
            "server": count(Counter::ErrorsUpstream),
            "operator": count(Counter::ErrorsOperator),
            "proxy": count(Counter::ErrorsProxy),
        },
    });
    format!("{value:#}\n")
}

/// Those of which there are any, the most frequent first.
fn met(counts: &[(&'static str, u64)]) -> Map<String, Value> {
    let mut met: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    met.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let told = |(label, count): &(&str, u64)| ((*label).to_owned(), (*count).into());
    met.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn it_is_json_with_what_was_counted() {
        let value: Value = serde_json::from_str(&status(&sample())).unwrap();
        assert_eq!(value["state"], "serving");
        assert_eq!(value["clients"], 3);
        assert_eq!(value["queries"]["converted"], 3);
        assert_eq!(value["time_saved"]["seconds"], 0.000_013);
        assert_eq!(value["time_saved"]["compared_with"], COMPARED);
        assert_eq!(value["passed_through_by_reason"], json!({"threshold": 2}));
        assert_eq!(value["reads_at_home_by_reason"], json!({}));
        let mut snapshot = sample();
        let metrics = crate::metrics::Metrics::new(1);
        metrics.worker(0).stays(Stay::Locks);
        metrics.worker(0).tainted(Taint::Protocol);
        snapshot.summary = metrics.summary();
        let value: Value = serde_json::from_str(&status(&snapshot)).unwrap();
        assert_eq!(value["reads_at_home_by_reason"], json!({"locks": 1}));
        assert_eq!(value["tainted_sessions_by_reason"], json!({"protocol": 1}));
    }
}
