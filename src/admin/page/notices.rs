//! What is worth a look while the proxy runs, as the counters tell it.
//!
//! Each notice has a bound below which nobody need look, so a proxy that does well has none.

use crate::admin::console::{Facts, WAITS_FOR_POOL};
use crate::metrics::{Counter, Summary};
use crate::reason::Taint;
use serde_json::{Value, json};

/// The fewest of what is counted of which a share says anything.
const FEW: u64 = 20;

/// Microseconds that a statement may lose in all.
const LOSS: i64 = 10_000;

/// A sentence, and the number of the shape that it is about.
type Notice = (String, Option<u64>);

/// All of them, the most urgent first.
pub(super) fn notices(facts: &Facts) -> Vec<Value> {
    let summary = &facts.snapshot.summary;
    let all = [
        waiting(facts),
        in_vain(summary),
        own_errors(summary),
        loss(facts),
        audits(summary),
        tainted(summary),
        evicted(summary),
        extended(summary),
    ];
    let told = |(text, shape): Notice| json!({"text": text, "shape": shape});
    all.into_iter().flatten().map(told).collect()
}

fn percent(part: u64, whole: u64) -> u64 {
    100_u64.saturating_mul(part) / whole.max(1)
}

/// Clients wait for a server connection of their pool.
fn waiting(facts: &Facts) -> Option<Notice> {
    let waits = facts
        .clients
        .iter()
        .filter(|it| it.waits_for == WAITS_FOR_POOL);
    let logins: usize = facts.logins.iter().map(|login| login.count).sum();
    let told = match waits.count() + logins {
        0 => return None,
        1 => "1 client waits".to_owned(),
        count => format!("{count} clients wait"),
    };
    Some((
        format!("{told} for a server connection: a pool is used up."),
        None,
    ))
}

fn in_vain(summary: &Summary) -> Option<Notice> {
    let count = summary.count(Counter::WaitTimeouts);
    let text = format!(
        "{count} clients have waited in vain for a server connection, for query_wait_timeout_s."
    );
    (count > 0).then_some((text, None))
}

fn own_errors(summary: &Summary) -> Option<Notice> {
    let count = summary.count(Counter::ErrorsProxy);
    let text =
        format!("{count} connections have ended by the proxy's own fault: the log has more.");
    (count > 0).then_some((text, None))
}

/// Much is sent by the extended protocol, of which nothing else is told here.
fn extended(summary: &Summary) -> Option<Notice> {
    let count = summary.count(Counter::Executes);
    let share = percent(count, count + summary.count(Counter::Queries));
    let text = format!(
        "{share} % of what clients have sent came by the extended protocol, which is passed on \
         as it comes: nothing here tells of it."
    );
    (count >= FEW && share >= 10).then_some((text, None))
}

/// The statement that loses most.
fn loss(facts: &Facts) -> Option<Notice> {
    let losing = facts
        .shapes
        .iter()
        .filter_map(|it| Some((it.saved?, it.id)));
    let (saved, id) = losing.min()?;
    let millis = saved.unsigned_abs() / 1000;
    let text = format!(
        "Statement {id} does not pay: prepared, it has taken {millis} ms more in all than its \
         text would have."
    );
    (saved <= -LOSS).then_some((text, Some(id)))
}

fn audits(summary: &Summary) -> Option<Notice> {
    let failed = summary.count(Counter::AuditsFailed);
    let all = failed + summary.count(Counter::AuditsPassed);
    let share = percent(failed, all);
    let text = format!(
        "{share} % of {all} audits have failed: tables change so much that plans do not hold."
    );
    (all >= FEW && share >= 10).then_some((text, None))
}

/// Most sessions end with something in them that nothing takes away.
fn tainted(summary: &Summary) -> Option<Notice> {
    let all: u64 = Taint::ALL.iter().map(|taint| summary.taints(*taint)).sum();
    let opened = summary.count(Counter::ConnectionsOpened);
    let most = Taint::ALL
        .into_iter()
        .max_by_key(|taint| summary.taints(*taint))?;
    let share = percent(all, opened).min(100);
    let text = format!(
        "{share} % of {opened} sessions were tainted, so their server connections serve nobody \
         else. The usual reason: {}",
        most.explain()
    );
    (opened >= FEW && share >= 50).then_some((text, None))
}

fn evicted(summary: &Summary) -> Option<Notice> {
    let evicted = summary.count(Counter::StatementsEvicted);
    let share = percent(evicted, summary.count(Counter::StatementsPrepared));
    let text = format!(
        "{share} % of the prepared statements were closed for want of room: more of it \
         (max_statements, statement_memory) may pay."
    );
    (evicted >= FEW && share >= 25).then_some((text, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::console::sample;
    use crate::metrics::{Counters, Metrics};

    fn told(facts: &Facts) -> Vec<String> {
        let all = notices(facts).into_iter();
        all.map(|notice| notice["text"].as_str().unwrap().to_owned())
            .collect()
    }

    fn counted(count: impl Fn(&Counters)) -> Vec<String> {
        let metrics = Metrics::new(1);
        count(metrics.worker(0));
        let mut facts = sample::facts();
        facts.snapshot.summary = metrics.summary();
        told(&facts)
    }

    #[test]
    fn who_does_well_is_told_nothing() {
        assert_eq!(counted(|_| {}), Vec::<String>::new());
        let few = counted(|worker| {
            worker.add(Counter::AuditsFailed, 9);
            worker.add(Counter::AuditsPassed, 91);
            worker.add(Counter::ConnectionsOpened, 100);
            (0..49).for_each(|_| worker.tainted(Taint::Text));
            worker.add(Counter::StatementsPrepared, 100);
            worker.add(Counter::StatementsEvicted, 24);
            worker.add(Counter::Executes, 99);
            worker.add(Counter::Queries, 901);
        });
        assert_eq!(few, Vec::<String>::new());
    }

    #[test]
    fn each_notice_comes_alone_from_its_bound_on() {
        let one = |count: &dyn Fn(&Counters)| {
            let mut told = counted(count);
            assert_eq!(told.len(), 1, "{told:?}");
            told.remove(0)
        };
        let text = one(&|worker| {
            worker.add(Counter::AuditsFailed, 10);
            worker.add(Counter::AuditsPassed, 90);
        });
        assert!(text.starts_with("10 % of 100 audits have failed"), "{text}");
        let text = one(&|worker| {
            worker.add(Counter::ConnectionsOpened, 100);
            (0..30).for_each(|_| worker.tainted(Taint::Protocol));
            (0..20).for_each(|_| worker.tainted(Taint::Text));
        });
        assert!(
            text.starts_with("50 % of 100 sessions were tainted"),
            "{text}"
        );
        assert!(text.ends_with(Taint::Protocol.explain()), "{text}");
        let text = one(&|worker| {
            worker.add(Counter::StatementsPrepared, 100);
            worker.add(Counter::StatementsEvicted, 25);
        });
        assert!(text.starts_with("25 % of the prepared"), "{text}");
        let text = one(&|worker| {
            worker.add(Counter::Executes, 90);
            worker.add(Counter::Queries, 10);
        });
        assert!(text.starts_with("90 % of what clients"), "{text}");
        let text = one(&|worker| worker.add(Counter::WaitTimeouts, 3));
        assert!(text.starts_with("3 clients have waited in vain"), "{text}");
        let text = one(&|worker| worker.add(Counter::ErrorsProxy, 1));
        assert!(text.starts_with("1 connections have ended"), "{text}");
    }

    #[test]
    fn clients_that_wait_and_statements_that_lose_are_told_of() {
        let mut facts = sample::facts();
        facts.snapshot.summary = Metrics::new(1).summary();
        facts.clients[0].waits_for = WAITS_FOR_POOL;
        facts.shapes[0].saved = Some(-LOSS);
        facts.shapes[1].saved = Some(-LOSS - 2_000);
        let told = notices(&facts);
        assert_eq!(told.len(), 2, "{told:?}");
        let waits = "1 client waits for a server connection: a pool is used up.";
        assert_eq!(
            (&told[0]["text"], &told[0]["shape"]),
            (&waits.into(), &Value::Null)
        );
        assert_eq!(told[1]["shape"], facts.shapes[1].id);
        assert!(
            told[1]["text"].as_str().unwrap().contains("12 ms more"),
            "{told:?}"
        );
        facts.shapes[0].saved = Some(1 - LOSS);
        facts.shapes[1].saved = None;
        assert_eq!(notices(&facts).len(), 1);
    }
}
