//! The statements that the console's table and the page tell of: shapes that are remembered, each
//! with what was noted of its texts that were passed through, and then others that were.

use crate::metrics::Passed;
use crate::reason::Reason;
use crate::sql::outline::outline;
use crate::statement::shapes::{ShapeFacts, ShapeStage};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeRow<'f> {
    /// What is known of it; nothing if it is not remembered.
    pub facts: Option<&'f ShapeFacts>,
    /// How often its texts were passed through, as far as was noted.
    pub passed: Option<u64>,
    /// Why it, or some of its statements, are passed through.
    pub reason: Option<Reason>,
    /// Its text without a value.
    pub outline: String,
    /// How often it was met in all, as far as is known: what was passed through is an estimate.
    pub calls: u64,
    /// Its part in what was met of all of them, if anything was.
    pub share: Option<Share>,
}

/// How often a shape was met of which so much was noted.
fn calls(shape: &ShapeFacts, passed: Option<u64>) -> u64 {
    let passed = passed.unwrap_or_default().max(shape.sightings);
    shape.executions.saturating_add(passed)
}

/// The first `most` of these shapes, and what was passed through that is none of them. What is not
/// remembered has no number, because nothing is known of it but how often it was noted.
#[must_use]
pub fn shape_rows<'f>(
    shapes: &'f [ShapeFacts],
    passed: &[Passed],
    most: usize,
) -> Vec<ShapeRow<'f>> {
    let mut noted = HashMap::<&str, (u64, Reason)>::new();
    for passed in passed {
        let (count, _) = noted
            .entry(plain(&passed.shape))
            .or_insert_with(|| (0, passed.reason));
        *count += passed.count;
    }
    let mut met = HashSet::new();
    let mut rows = Vec::new();
    for shape in shapes.iter().take(most) {
        let outline = outline(shape.sample.as_bytes(), String::new());
        let passed = noted.get(plain(&outline)).copied();
        let reason = shape.reason.or_else(|| passed.map(|(_, reason)| reason));
        let passed = passed.map(|(count, _)| count);
        // Two shapes may look alike; what was noted is shown with one of them.
        let is_first = met.insert(plain(&outline).to_owned());
        let passed = passed.filter(|_| is_first);
        let is_prepared = shape.stage == ShapeStage::Prepared;
        rows.push(ShapeRow {
            facts: Some(shape),
            passed,
            reason: reason.filter(|_| !is_prepared || shape.slower > 0),
            outline,
            calls: calls(shape, passed),
            share: None,
        });
    }
    let others = passed
        .iter()
        .filter(|passed| !met.contains(plain(&passed.shape)));
    rows.extend(others.map(|passed| ShapeRow {
        facts: None,
        passed: Some(passed.count),
        reason: Some(passed.reason),
        outline: passed.shape.clone(),
        calls: passed.count,
        share: None,
    }));
    let shown: u64 = rows.iter().map(|row| row.calls).sum();
    let hidden = shapes.iter().skip(most).map(|shape| calls(shape, None));
    let all = shown.saturating_add(hidden.sum());
    for row in &mut rows {
        row.share = Share::of(row.calls, all);
    }
    rows
}

/// That of the shape of this number, if it is remembered.
#[must_use]
pub fn shape_row<'f>(shapes: &'f [ShapeFacts], passed: &[Passed], id: u64) -> Option<ShapeRow<'f>> {
    let at = shapes.iter().position(|shape| shape.id == id)?;
    // They stand in the order of the shapes.
    shape_rows(shapes, passed, at + 1).into_iter().nth(at)
}

/// A part of the whole, in tenths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// Which part of so many these are, if there are any.
    fn of(part: u64, all: u64) -> Option<Self> {
        let tenths =
            (2000 * u128::from(part) + u128::from(all)).checked_div(2 * u128::from(all))?;
        u64::try_from(tenths).ok().map(Self)
    }

    /// In percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.0 as f64 / 10.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 10, self.0 % 10)
    }
}

/// A text without what ends it, which is no part of a shape.
fn plain(text: &str) -> &str {
    text.trim_end_matches([';', ' '])
}

/// Why a shape stands where it stands, in a sentence for people. Of one that was met often and is
/// still to be asked about, it is why its statements were passed through meanwhile.
#[must_use]
pub fn why(row: &ShapeRow<'_>, shape: &ShapeFacts) -> &'static str {
    match (shape.reason, shape.stage) {
        (Some(reason), _) => reason.explain(),
        (None, ShapeStage::Prepared) => "The server has confirmed that it means the same.",
        (None, _) => row.reason.unwrap_or(Reason::Threshold).explain(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::console::sample;

    #[test]
    fn a_statement_that_was_passed_and_is_remembered_is_one_row() {
        let rows = |count: usize| vec!["(-7, 'b', NULL, true)"; count].join(", ");
        let moments = |count: usize| vec!["(7, CURRENT_TIMESTAMP)"; count].join(", ");
        let times = vec!["(1, '2020-01-01'::timestamptz)"; 40].join(",");
        for (remembered, passed) in [
            (
                "SELECT a FROM t WHERE b IN (1, 2, 3) AND c = 'x'",
                "SELECT a FROM t WHERE b IN (4,5) AND c = 'y';",
            ),
            (
                "SELECT a FROM t WHERE b NOT IN ('p', 'q') AND c = -1 -- one",
                "SELECT a FROM t WHERE b NOT IN ('r', 's', 't', 'u') AND c = 5",
            ),
            (
                "INSERT INTO t VALUES (1, 'a', NULL, 2.5)",
                "INSERT INTO t VALUES (2, 'b', NULL, 1)",
            ),
            (
                "UPDATE t SET a = CURRENT_TIMESTAMP, b = 5, c = 'x'",
                "UPDATE t SET a = CURRENT_TIMESTAMP, b = 6, c = ''",
            ),
            (
                &format!("INSERT INTO t VALUES {} RETURNING id", rows(100)),
                &format!("INSERT INTO t VALUES {} RETURNING id", rows(3)),
            ),
            (
                &format!("INSERT INTO t VALUES {}", moments(20)),
                &format!("INSERT INTO t VALUES {}", moments(3)),
            ),
            (
                &format!("INSERT INTO t (a, b) VALUES {times}"),
                &format!("INSERT INTO t (a, b) VALUES {times}, (2, 'x'::timestamptz)"),
            ),
        ] {
            let shapes = [sample::met(remembered)];
            let passed = [Passed {
                reason: Reason::Threshold,
                shape: outline(passed.as_bytes(), String::new()),
                count: 3,
            }];
            let rows = shape_rows(&shapes, &passed, 10);
            assert_eq!(rows.len(), 1, "{rows:?}");
            assert_eq!(rows[0].passed, Some(3), "{rows:?}");
        }
    }
}
