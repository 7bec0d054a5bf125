//! Random numbers that are the same for the same seed.

/// A xorshift generator.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True so many times in a thousand.
    pub(crate) fn chance(&mut self, permille: usize) -> bool {
        self.below(1000) < permille
    }

    /// How many of `len` bytes go at once: all, few, or some.
    pub(crate) fn piece(&mut self, len: usize) -> usize {
        match self.below(4) {
            0 | 1 => len,
            2 => len.min(1 + self.below(16)),
            _ => len.min(1 + self.below(len.max(1))),
        }
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
