//! Times, as the caller has read them off a clock.

/// Milliseconds of a monotonic clock. The caller reads the clock, the core never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// Later than any other.
    pub const NEVER: Self = Self(u64::MAX);

    /// Milliseconds from `earlier` to `self`; zero if the order is the other way round.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Microseconds of the same clock, for what is compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// Microseconds from `earlier` to `self`; zero if the order is the other way round.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The whole milliseconds.
    #[must_use]
    pub const fn millis(self) -> Millis {
        Millis(self.0 / 1_000)
    }
}

impl From<Millis> for Micros {
    fn from(millis: Millis) -> Self {
        Self(millis.0.saturating_mul(1_000))
    }
}
