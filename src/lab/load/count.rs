//! What was counted while a workload ran, in bounded memory, and what rounds of it add up to.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Latencies are kept from 1 µs to 60 s with three digits, in about 140 KiB.
const LONGEST_MICROS: u64 = 60_000_000;

/// The latencies of operations.
#[derive(Debug, Clone)]
pub(crate) struct Latency(Histogram<u32>);

impl Latency {
    /// None yet.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, LONGEST_MICROS, 3)?))
    }

    /// Adds one; beyond the bounds it counts as the bound.
    #[inline]
    pub(crate) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros.max(1));
    }

    /// Adds all of `other`.
    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// The latency that the part `quantile` (0 to 1) of all does not exceed, in µs.
    pub(crate) fn at(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The arithmetic mean in µs; 0 of none.
    pub(crate) fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The longest in µs, to three digits.
    pub(crate) fn max(&self) -> u64 {
        self.0.max()
    }
}

/// What was counted while a workload ran.
#[derive(Debug)]
pub(crate) struct Count {
    /// Operations, which may be several statements each, that were answered as they should be.
    pub(crate) operations: u64,
    /// Statements that were answered as they should be.
    pub(crate) statements: u64,
    /// Rows of their answers.
    pub(crate) rows: u64,
    /// Operations given up because the server answered with an error.
    pub(crate) errors: u64,
    /// Operations given up because an answer was not the one expected.
    pub(crate) wrong: u64,
    /// The first of both, in words.
    pub(crate) first_failure: Option<String>,
    /// From the first statement to the last answer.
    pub(crate) elapsed: Duration,
    /// Of the operations.
    pub(crate) latency: Latency,
}

impl Count {
    /// Nothing yet.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            operations: 0,
            statements: 0,
            rows: 0,
            errors: 0,
            wrong: 0,
            first_failure: None,
            elapsed: Duration::ZERO,
            latency: Latency::new()?,
        })
    }

    /// Adds what ran at the same time.
    pub(crate) fn add(&mut self, other: Self) -> anyhow::Result<()> {
        self.operations += other.operations;
        self.statements += other.statements;
        self.rows += other.rows;
        self.errors += other.errors;
        self.wrong += other.wrong;
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency.add(&other.latency)
    }

    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }
}

/// CPU time by whom; `None` where it cannot be read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    /// The server with all its processes.
    pub(crate) server: Option<Duration>,
    /// What stands between client and server.
    pub(crate) proxy: Option<Duration>,
    /// The load generator.
    pub(crate) client: Option<Duration>,
}

impl Cpu {
    /// None used, by anybody.
    pub(crate) const ZERO: Self = Self {
        server: Some(Duration::ZERO),
        proxy: Some(Duration::ZERO),
        client: Some(Duration::ZERO),
    };

    fn both(self, other: Self, join: impl Fn(Duration, Duration) -> Duration) -> Self {
        let join = |a: Option<Duration>, b: Option<Duration>| Some(join(a?, b?));
        Self {
            server: join(self.server, other.server),
            proxy: join(self.proxy, other.proxy),
            client: join(self.client, other.client),
        }
    }

    /// What was used since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        self.both(before, Duration::saturating_sub)
    }
}

/// What one variant has done in the rounds so far.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Operations per second of each round.
    pub(crate) rates: Vec<f64>,
    /// The server's CPU time per statement in µs of each round; NaN where it is not known.
    pub(crate) server: Vec<f64>,
    /// Everything counted, over all rounds.
    pub(crate) total: Count,
    /// CPU time used in all rounds.
    pub(crate) cpu: Cpu,
}

impl Tally {
    /// No rounds yet.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            rates: Vec::new(),
            server: Vec::new(),
            total: Count::new()?,
            cpu: Cpu::ZERO,
        })
    }

    /// Adds a round and the CPU time that it took.
    pub(crate) fn add(&mut self, count: Count, cpu: Cpu) -> anyhow::Result<()> {
        self.rates.push(count.rate());
        let server = cpu
            .server
            .map_or(f64::NAN, |used| micros(used, count.statements));
        self.server.push(server);
        self.total.add(count)?;
        self.cpu = self.cpu.both(cpu, |sum, more| sum + more);
        Ok(())
    }

    /// The median over the rounds of operations per second.
    pub(crate) fn rate(&self) -> f64 {
        median(self.rates.clone())
    }

    /// The rate of each round as a multiple of the other variant's in the same round: whatever
    /// slows the machine for a while slows both.
    pub(crate) fn ratios(&self, base: &Self) -> Vec<f64> {
        of_each(&self.rates, &base.rates)
    }

    /// The same of the server's CPU time per statement; nothing where it is not known.
    pub(crate) fn server_ratios(&self, base: &Self) -> Vec<f64> {
        let mut ratios = of_each(&self.server, &base.server);
        ratios.retain(|ratio| ratio.is_finite());
        ratios
    }

    /// The median of [`Self::ratios`].
    pub(crate) fn ratio(&self, base: &Self) -> f64 {
        median(self.ratios(base))
    }

    /// `cpu` in µs per statement; `None` when it is not known.
    pub(crate) fn per_statement(&self, cpu: Option<Duration>) -> Option<f64> {
        cpu.map(|cpu| micros(cpu, self.total.statements))
    }
}

/// `used` in µs per statement.
fn micros(used: Duration, statements: u64) -> f64 {
    used.as_secs_f64() * 1e6 / statements.max(1) as f64
}

/// Each of `ours` as a multiple of the one of `theirs` in the same place.
fn of_each(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    let rounds = ours.iter().zip(theirs);
    rounds.map(|(ours, theirs)| ours / theirs).collect()
}

/// The middle value, or the mean of the two; NaN of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.get(middle.wrapping_sub(1))) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => {
            f64::midpoint(*upper, *lower)
        }
        (Some(middle), _) => *middle,
        (None, _) => f64::NAN,
    }
}

/// The fewest values of which [`interval`] says anything.
const LEAST_FOR_INTERVAL: usize = 9;

/// Between which of the values the median of all that could have been measured lies, with 95 %
/// confidence; `None` of a few values. It asks nothing of how they are distributed: it is taken
/// from their order, by the normal approximation of how many are below the median.
pub(crate) fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    if values.len() < LEAST_FOR_INTERVAL {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let below = (count / 2.0 - 0.98 * count.sqrt()).floor().max(0.0) as usize;
    let above = values.len() - 1 - below;
    Some((*values.get(below)?, *values.get(above)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits_and_bounded() {
        let mut latency = Latency::new().unwrap();
        for micros in 1..=10_000 {
            latency.record(Duration::from_micros(micros));
        }
        for (quantile, expected) in [(0.5, 5_000.0), (0.9, 9_000.0), (0.99, 9_900.0)] {
            let found = latency.at(quantile) as f64;
            assert!((found / expected - 1.0).abs() < 0.002, "{found}");
        }
        assert!((latency.mean() - 5_000.5).abs() < 5.0);
        latency.record(Duration::from_nanos(1));
        latency.record(Duration::MAX);
        assert!((59_900_000..60_100_000).contains(&latency.max()));
        let mut sum = Latency::new().unwrap();
        sum.add(&latency).unwrap();
        sum.add(&latency).unwrap();
        assert_eq!(sum.at(0.5), latency.at(0.5));
    }

    #[test]
    fn rounds_add_up() {
        let count = |operations, micros| Count {
            operations,
            statements: 2 * operations,
            elapsed: Duration::from_micros(micros),
            ..Count::new().unwrap()
        };
        let (mut base, mut other) = (Tally::new().unwrap(), Tally::new().unwrap());
        for (a, b) in [(100, 50), (10, 10), (100, 80)] {
            base.add(count(a, 1_000_000), Cpu::ZERO).unwrap();
            let cpu = Cpu {
                server: Some(Duration::from_millis(1)),
                proxy: None,
                client: None,
            };
            other.add(count(b, 1_000_000), cpu).unwrap();
        }
        assert_eq!((base.rate(), other.rate()), (100.0, 50.0));
        assert_eq!(other.ratios(&base), [0.5, 1.0, 0.8]);
        assert_eq!(other.ratio(&base), 0.8);
        let server = other.per_statement(other.cpu.server).unwrap();
        assert!((server - 3000.0 / 280.0).abs() < 1e-9);
        assert_eq!(other.per_statement(other.cpu.proxy), None);
        // The base has used none, so nothing is a multiple of that.
        assert!(other.server_ratios(&base).is_empty());
        let rounds: Vec<_> = other.server.iter().map(|cpu| cpu.round()).collect();
        assert_eq!(rounds, [10.0, 50.0, 6.0]);
        assert_eq!(other.server_ratios(&other), [1.0; 3]);
    }

    #[test]
    fn an_interval_around_the_median_needs_nine_values() {
        let counted = |most: u32| interval((1..=most).rev().map(f64::from).collect());
        assert_eq!(counted(8), None);
        assert_eq!(counted(9), Some((2.0, 8.0)));
        assert_eq!(counted(100), Some((41.0, 60.0)));
    }

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
