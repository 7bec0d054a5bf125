//! Pseudo-random numbers for workloads: the same seed, the same work.
//!
//! The distributions are those of pgbench, by the same methods, so that a script means the same.

use std::f64::consts::TAU;

/// The range of `random_zipfian`'s parameter, as pgbench has it: below, its method takes too long.
pub(crate) const ZIPFIAN: std::ops::RangeInclusive<f64> = 1.001..=1000.0;
/// The least parameter of `random_gaussian`, as pgbench has it.
pub(crate) const GAUSSIAN_LEAST: f64 = 2.0;

/// A small generator (xorshift64*).
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// A generator; nearby seeds give unrelated numbers.
    pub(crate) fn new(seed: u64) -> Self {
        let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 32) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to below 1, in steps of 2^-53.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Every integer from `low` to `high` alike; `low` must not be above `high`.
    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low).cast_unsigned();
        let next = self.next();
        let Some(count) = span.checked_add(1) else {
            return next.cast_signed();
        };
        // Both factors are below 2^64, so the upper half of the product is below `count`.
        let scaled = (u128::from(next) * u128::from(count)) >> 64;
        low.wrapping_add_unsigned(u64::try_from(scaled).unwrap_or(0))
    }

    /// Zipf's distribution over `low` to `high`, `low` being the most frequent. By rejection, after
    /// L. Devroye, "Non-Uniform Random Variate Generation", page 551; `s` must be in [`ZIPFIAN`].
    pub(crate) fn zipfian(&mut self, low: i64, high: i64, s: f64) -> i64 {
        let count = span(low, high);
        let b = (s - 1.0).exp2();
        loop {
            let (u, v) = (self.unit(), self.unit());
            let x = u.powf(-1.0 / (s - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(s - 1.0);
            if x <= count && v * x * (t - 1.0) / (b - 1.0) <= t / b {
                return offset(low, high, x - 1.0);
            }
        }
    }

    /// Falls exponentially from `low` to `high`, the more the larger `parameter` (above 0) is.
    pub(crate) fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.unit();
        let part = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        offset(low, high, span(low, high) * part)
    }

    /// A bell over `low` to `high`; `parameter` standard deviations reach from its middle to its
    /// ends. It must be at least [`GAUSSIAN_LEAST`].
    pub(crate) fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let deviation = loop {
            // Box and Muller's transformation.
            let (u, v) = (1.0 - self.unit(), self.unit());
            let deviation = (-2.0 * u.ln()).sqrt() * (TAU * v).sin();
            if (-parameter..parameter).contains(&deviation) {
                break deviation;
            }
        };
        let part = (deviation + parameter) / (2.0 * parameter);
        offset(low, high, span(low, high) * part)
    }
}

/// How many integers there are from `low` to `high`.
fn span(low: i64, high: i64) -> f64 {
    (i128::from(high) - i128::from(low) + 1) as f64
}

/// `low` and the whole part of `steps`, but not beyond `high`.
fn offset(low: i64, high: i64, steps: f64) -> i64 {
    // The conversion saturates.
    low.saturating_add(steps as i64).min(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mut draw: impl FnMut(&mut Draw) -> i64) -> [u32; 10] {
        let mut generator = Draw::new(7);
        let mut counts = [0; 10];
        for _ in 0..20_000 {
            let value = draw(&mut generator);
            assert!((1..=10).contains(&value), "{value}");
            counts[usize::try_from(value - 1).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn uniform_draws_stay_in_range_and_depend_on_the_seed() {
        assert!(counts(|d| d.uniform(1, 10)).iter().all(|c| *c > 1_800));
        let first = |seed| Draw::new(seed).uniform(i64::MIN, i64::MAX);
        assert_ne!(first(1), first(2));
        assert_eq!(Draw::new(3).uniform(5, 5), 5);
        assert!((-3..=-1).contains(&Draw::new(4).uniform(-3, -1)));
    }

    #[test]
    fn the_skewed_ones_have_their_shapes() {
        let zipfian = counts(|d| d.zipfian(1, 10, 1.5));
        // 2^1.5 = 2.83 times as often.
        let ratio = f64::from(zipfian[0]) / f64::from(zipfian[1]);
        assert!((2.5..3.2).contains(&ratio), "{zipfian:?}");
        let exponential = counts(|d| d.exponential(1, 10, 5.0));
        assert!(exponential.is_sorted_by(|a, b| a > b), "{exponential:?}");
        let gaussian = counts(|d| d.gaussian(1, 10, 3.0));
        assert!(gaussian[4] > 2 * gaussian[2] && gaussian[5] > 2 * gaussian[7]);
        assert_eq!(Draw::new(1).zipfian(3, 3, 1.1), 3);
    }
}
