//! What was counted of each database since the start, and in each second of the last whole period.

use super::columns::STATS;
use crate::admin::console::facts::{Counted, Facts, Totals};
use crate::admin::console::value::Cell;

/// The twelve figures that `PgBouncer` has of a database, in its order, and how many queries were
/// converted. A client has one server connection, which it is assigned at login. What is converted
/// is bound, as what clients bind.
fn figures(totals: &Totals) -> [u64; 13] {
    let Totals {
        clients,
        queries,
        converted,
        executes,
        transactions,
        micros,
        xact_micros,
        waited,
        parses,
        prepared,
        binds,
        received,
        sent,
    } = *totals;
    [
        clients,
        transactions,
        queries + executes,
        received,
        sent,
        xact_micros,
        micros,
        waited,
        parses,
        prepared,
        binds + converted,
        clients,
        converted,
    ]
}

/// What was counted in each second of the last whole period.
fn rates(facts: &Facts) -> Counted {
    let (before, after, seconds) = &facts.period;
    let rate = |(name, now): (&String, &Totals)| {
        let earlier = before.get(name).copied().unwrap_or_default();
        (name.clone(), now.rate(&earlier, *seconds))
    };
    after.iter().map(rate).collect()
}

/// A row for each database of `counted`, and one for the console, which counts nothing.
fn by_database(counted: &Counted, figures: impl Fn(&str, &Totals) -> Vec<u64>) -> Vec<Vec<Cell>> {
    let row = |name: &str, totals: &Totals| {
        let figures = figures(name, totals).into_iter().map(Cell::from);
        std::iter::once(name.to_owned().into())
            .chain(figures)
            .collect()
    };
    let console = std::iter::once((crate::admin::console::NAMES[0], Totals::default()));
    let known = counted
        .iter()
        .map(|(name, totals)| (name.as_str(), *totals));
    let rows = known.chain(console);
    rows.map(|(name, totals)| row(name, &totals)).collect()
}

pub(super) fn stats(facts: &Facts) -> Vec<Vec<Cell>> {
    let rates = rates(facts);
    by_database(&facts.counted, |name, totals| {
        let rate = rates.get(name).copied().unwrap_or_default();
        let (totals, rate) = (figures(totals), figures(&rate));
        let ([totals @ .., converted], [rate @ .., rate_converted]) = (totals, rate);
        [&totals[..], &rate, &[converted, rate_converted]].concat()
    })
}

pub(super) fn stats_totals(facts: &Facts) -> Vec<Vec<Cell>> {
    by_database(&facts.counted, |_, totals| figures(totals).to_vec())
}

pub(super) fn stats_averages(facts: &Facts) -> Vec<Vec<Cell>> {
    by_database(&rates(facts), |_, rate| figures(rate).to_vec())
}

/// The sums over all databases, under the names that they have in `stats`.
pub(super) fn totals(facts: &Facts) -> Vec<Vec<Cell>> {
    let mut sums = vec![0_i64; STATS.len()];
    for row in stats(facts) {
        for (sum, cell) in sums.iter_mut().zip(row) {
            if let Cell::Number(number) = cell {
                *sum = sum.saturating_add(number);
            }
        }
    }
    let named = STATS.iter().zip(sums).skip(1);
    named
        .map(|(column, sum)| vec![column.name.into(), Cell::Number(sum)])
        .collect()
}
