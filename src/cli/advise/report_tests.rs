//! Tests of the report.

use super::*;
use crate::cli::advise::statistics::Counted;
use crate::metrics::Metrics;

fn observed() -> Observed {
    let metrics = Metrics::new(1);
    let counters = metrics.worker(0);
    counters.add(Counter::Queries, 10);
    counters.add(Counter::ReadsOpen, 6);
    for (reason, count) in [
        (Reason::Mode, 8),
        (Reason::NotPreparable, 1),
        (Reason::VolatileLiteral, 1),
    ] {
        (0..count).for_each(|_| counters.passed(reason));
    }
    counters.took(TimedRoute::Passed, 10_000);
    Observed {
        time: Duration::from_secs(60),
        server: "db:5432".to_owned(),
        summary: metrics.summary(),
        samples: vec![(passed(Reason::VolatileLiteral, "SELECT ?", 1), None)],
    }
}

fn passed(reason: Reason, shape: &str, count: u64) -> Passed {
    Passed {
        reason,
        shape: shape.to_owned(),
        count,
    }
}

fn row(count: u64, told: Result<Told, String>) -> Row {
    Row {
        passed: passed(Reason::Mode, "SELECT a", count),
        told,
    }
}

fn told(verdict: Result<Plans, Reason>) -> Told {
    Told {
        verdict,
        travels: Some(Ok(())),
        parse: verdict.is_ok().then_some(100.0),
        plan: verdict.is_ok().then_some(300.0),
        memory: verdict.is_ok().then_some(20 * 1024),
        counted: verdict.is_ok().then_some(Counted {
            calls: 7000.0,
            plan: None,
            run: 12.3,
        }),
    }
}

#[test]
fn what_is_saved_is_counted_only_where_it_was_measured() {
    let asked = Asked {
        rows: vec![
            row(4, Ok(told(Ok(Plans::Generic)))),
            row(2, Ok(told(Ok(Plans::Custom)))),
            row(1, Ok(told(Err(Reason::PlannerRuns)))),
            row(1, Err("why".to_owned())),
        ],
        statistics: Ok("yesterday".to_owned()),
        hop: Ok(Hop {
            direct: 40.0,
            through: 65.0,
        }),
    };
    let report = Report::of(&observed(), &asked);
    let [
        converted,
        travelling,
        statements,
        counted,
        saved,
        costs,
        changes,
    ] = &report.tables[..]
    else {
        panic!("{report}");
    };
    assert_eq!(converted.rows[0][..2], ["8", "80.0 %"]);
    assert_eq!(converted.rows.len(), 3);
    assert_eq!(travelling.rows[0][..2], ["6", "100.0 %"]);
    assert_eq!(
        statements.rows[0][1..7],
        ["converted", "once", "yes", "100", "300", "20"]
    );
    assert_eq!(
        statements.rows[2][1..7],
        ["planner_runs", "-", "yes", "-", "-", "-"]
    );
    assert_eq!(statements.rows[3][1], "not asked");
    assert!(statements.rows[3][7].ends_with("(why)"));
    assert_eq!(counted.rows.len(), 2);
    assert_eq!(counted.rows[0][..3], ["7000", "-", "12"]);
    assert!(counted.notes[0].contains("since yesterday"));
    // 6 times 100 us, and 4 times 300 us, of 10 ms.
    assert_eq!(saved.rows[0][..2], ["1", "6.0 %"]);
    assert_eq!(saved.rows[1][..2], ["1", "12.0 %"]);
    assert!(saved.notes[0].contains("for 6 of 8"), "{}", saved.notes[0]);
    assert_eq!(costs.rows[2][0], "25 us");
    assert_eq!(costs.rows[3][0], "40 KiB");
    assert_eq!(changes.rows[0][1], "volatile_literal");
}

#[test]
fn what_was_not_measured_is_not_told_as_nothing() {
    let asked = Asked {
        rows: vec![row(8, Err("no user".to_owned()))],
        statistics: Err("no user".to_owned()),
        hop: Err("no user".to_owned()),
    };
    let report = Report::of(&observed(), &asked);
    assert_eq!(report.tables[4].rows[0][..2], ["-", "-"]);
    let text = report.to_string();
    assert!(
        text.contains("The hop was not measured: no user."),
        "{text}"
    );
    assert!(text.contains("It was not read: no user."), "{text}");
    assert!(
        text.contains("The memory of statements was not measured."),
        "{text}"
    );
}

#[test]
fn estimates_never_come_to_more_than_was_counted() {
    let asked = Asked {
        rows: vec![row(16, Ok(told(Ok(Plans::Generic))))],
        statistics: Ok("yesterday".to_owned()),
        hop: Err("no user".to_owned()),
    };
    let mut observed = observed();
    let estimated = passed(Reason::Mode, "SELECT a", 16);
    observed.samples.push((estimated, None));
    let saved = &Report::of(&observed, &asked).tables[4];
    assert!(saved.notes[0].contains("for 8 of 8"), "{}", saved.notes[0]);
    // 8 times 100 us of 10 ms.
    assert_eq!(saved.rows[0][1], "8.0 %");
}
