//! What the application or the operator could change, as far as the counters know.
//!
//! Nothing is promised: each line says what was counted, and what could be done about it.

use super::facts::Facts;
use super::value::{Cell, TableColumn, int8, text};
use super::view::{Needs, View};
use crate::admin::shape_rows::shape_rows;
use crate::metrics::Counter;
use crate::reason::Reason;
use std::borrow::Cow;
use std::cmp::Reverse;

/// The share of all queries, as a divisor, from which on a reason is worth a line.
const SHARE: u64 = 100;

/// The queries from which on anything is worth one: of fewer, chance makes too much.
const ENOUGH: u64 = 100;

/// The most shapes that are named, of those that were met most.
const SHAPES: usize = 20;
const LOOKED_AT: usize = 1000;

/// The table.
pub(super) static VIEW: View = View {
    name: "advice",
    needs: Needs::Shapes,
    columns: COLUMNS,
    rows: advice,
};

const COLUMNS: &[TableColumn] = &[
    text("about"),
    int8("queries"),
    text("reason"),
    text("advice"),
    int8("shape"),
    text("text"),
];

/// What concerns all comes first, then the reasons that are frequent, then single shapes.
fn advice(facts: &Facts) -> Vec<Vec<Cell>> {
    let mut rows: Vec<_> = facts
        .warnings
        .iter()
        .map(|sentence| general("settings", None, sentence))
        .collect();
    rows.extend(counted(facts));
    rows.extend(reasons(facts));
    rows.extend(shapes(facts));
    rows
}

fn general(about: &'static str, queries: Option<u64>, advice: &'static str) -> Vec<Cell> {
    let none = || Cell::Null;
    vec![
        about.into(),
        queries.into(),
        none(),
        advice.into(),
        none(),
        none(),
    ]
}

/// What single counters say.
fn counted(facts: &Facts) -> Vec<Vec<Cell>> {
    let count = |counter| facts.snapshot.summary.count(counter);
    let mut rows = Vec::new();
    let is_tried = facts
        .settings
        .iter()
        .all(|setting| setting.key != "trials" || setting.value == "on");
    if !is_tried {
        let advice = "Nothing is measured while `trials` is off, so a statement that takes longer \
                      when it is prepared is not found out.";
        rows.push(general("settings", None, advice));
    }
    let evicted = count(Counter::StatementsEvicted);
    if evicted >= ENOUGH && evicted.saturating_mul(10) >= count(Counter::StatementsPrepared) {
        let advice = "A tenth of the prepared statements had to make room for others: raise \
                      `max_statements` or `statement_memory`.";
        rows.push(general("statements", Some(evicted), advice));
    }
    if count(Counter::MicrosLost) > count(Counter::MicrosSaved) {
        let advice = "As far as was measured, conversions have lost more time than they have \
                      saved: SHOW SHAPES says by its saved_us which.";
        rows.push(general(
            "conversions",
            Some(count(Counter::Converted)),
            advice,
        ));
    }
    rows
}

/// What could be done about a reason, or why nothing is known that could: who reads that it is
/// frequent wants to know either.
fn told(reason: Reason) -> Cow<'static, str> {
    match reason.advice() {
        Some(advice) => advice.into(),
        None => format!(
            "Nothing is known that could be changed. {}",
            reason.explain()
        )
        .into(),
    }
}

fn reasons(facts: &Facts) -> Vec<Vec<Cell>> {
    let summary = &facts.snapshot.summary;
    let least = (summary.count(Counter::Queries) / SHARE).max(ENOUGH);
    let mut met: Vec<_> = Reason::ALL
        .into_iter()
        .filter(|reason| summary.passed(*reason) >= least)
        .map(|reason| (reason, told(reason)))
        .collect();
    met.sort_by_key(|(reason, _)| Reverse(summary.passed(*reason)));
    let row = |(reason, advice): (Reason, Cow<'static, str>)| {
        vec![
            "queries".into(),
            summary.passed(reason).into(),
            reason.label().into(),
            advice.into(),
            Cell::Null,
            Cell::Null,
        ]
    };
    met.into_iter().map(row).collect()
}

/// The shapes that are passed through most, of which something is known to be done.
fn shapes(facts: &Facts) -> Vec<Vec<Cell>> {
    let mut rows: Vec<_> = shape_rows(&facts.shapes, &facts.passed, LOOKED_AT)
        .into_iter()
        .filter_map(|row| {
            let reason = row.reason?;
            // What has only begun to be met may be converted soon.
            let advice = reason.advice().filter(|_| reason != Reason::Threshold)?;
            let sighted = row.facts.map_or(0, |facts| facts.sightings);
            let queries = row.passed.unwrap_or_default().max(sighted);
            (queries >= ENOUGH).then_some((queries, reason, advice, row))
        })
        .collect();
    rows.sort_by_key(|(queries, ..)| Reverse(*queries));
    let shown = rows.into_iter().take(SHAPES);
    shown
        .map(|(queries, reason, advice, row)| {
            vec![
                "statement".into(),
                queries.into(),
                reason.label().into(),
                advice.into(),
                row.facts.map(|facts| facts.id).into(),
                row.outline.into(),
            ]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::metrics::{Metrics, Passed};

    fn texts(rows: &[Vec<Cell>], column: usize) -> Vec<String> {
        let shown = rows.iter().map(|row| match &row[column] {
            Cell::Text(text) => text.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Null => String::new(),
        });
        shown.collect()
    }

    #[test]
    fn little_is_no_reason_for_advice() {
        let rows = advice(&sample::facts());
        assert_eq!(texts(&rows, 3), ["This is a warning."]);
    }

    #[test]
    fn what_is_frequent_and_can_be_changed_is_told_with_its_count() {
        let mut facts = sample::facts();
        let metrics = Metrics::new(1);
        let counters = metrics.worker(0);
        counters.add(Counter::Queries, 20_000);
        for (reason, count) in [
            (Reason::MultipleStatements, 300),
            (Reason::NotPreparable, 900),
            (Reason::TooLong, 150),
        ] {
            (0..count).for_each(|_| counters.passed(reason));
        }
        counters.add(Counter::StatementsPrepared, 1_000);
        counters.add(Counter::StatementsEvicted, 100);
        counters.gained(5);
        counters.gained(-6);
        facts.snapshot.summary = metrics.summary();
        facts.warnings.clear();
        facts.passed = [
            (Reason::VolatileLiteral, 500),
            (Reason::Copy, 900),
            (Reason::Mode, 99),
        ]
        .map(|(reason, count)| Passed {
            reason,
            shape: format!("SELECT {}", reason.label()),
            count,
        })
        .to_vec();
        let rows = advice(&facts);
        assert_eq!(
            texts(&rows, 0),
            [
                "statements",
                "conversions",
                "queries",
                "queries",
                "statement"
            ]
        );
        assert_eq!(texts(&rows, 1), ["100", "0", "900", "300", "500"]);
        assert_eq!(
            texts(&rows, 2),
            [
                "",
                "",
                "not_preparable",
                "multiple_statements",
                "volatile_literal"
            ]
        );
        assert_eq!(
            texts(&rows, 3)[2],
            "Nothing is known that could be changed. It is not one SELECT, INSERT, UPDATE, \
             DELETE, MERGE, VALUES or WITH statement."
        );
        assert_eq!(texts(&rows, 5)[4], "SELECT volatile_literal");
    }

    #[test]
    fn without_trials_nothing_is_known_and_that_is_told() {
        let mut facts = sample::facts();
        facts.warnings.clear();
        facts.settings[0].key = "trials";
        facts.settings[0].value = "off".to_owned();
        let rows = advice(&facts);
        assert_eq!(rows.len(), 1);
        assert!(texts(&rows, 3)[0].contains("`trials`"));
    }
}
