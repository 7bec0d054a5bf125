//! The names under which server processes hold the proxy's statements.

use std::hash::BuildHasher as _;

/// How the names of the proxy's statements begin, before the [`Tag`]. Names of clients do not begin
/// so.
pub const NAME_PREFIX: &str = "_pgautoprep_";

/// The part of the names that is different in each process. So two proxies in a chain, or a client
/// that has seen such names, do not use the same ones by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag([u8; 4]);

impl Tag {
    /// Chooses a tag. It is no secret.
    #[must_use]
    pub(super) fn random() -> Self {
        let random = foldhash::quality::RandomState::default().hash_one(());
        let mut rest = random;
        Self(std::array::from_fn(|_| digit(&mut rest)))
    }
}

/// Takes the last digit off `rest`, written in base 36.
fn digit(rest: &mut u64) -> u8 {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let last = (*rest % 36) as usize;
    *rest /= 36;
    DIGITS[last]
}

/// A server-side statement name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Name {
    bytes: [u8; 24],
    length: u8,
}

impl Name {
    /// Prefix, tag, and a number of at most seven digits behind a line: 24 bytes.
    pub(super) fn new(tag: Tag, number: u32) -> Self {
        let mut name = Self::default();
        NAME_PREFIX.bytes().for_each(|byte| name.push(byte));
        tag.0.into_iter().for_each(|byte| name.push(byte));
        name.push(b'_');
        let mut rest = u64::from(number);
        name.push(digit(&mut rest));
        while rest > 0 {
            name.push(digit(&mut rest));
        }
        name
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(usize::from(self.length)) {
            *place = byte;
            self.length += 1;
        }
    }

    /// The name without a terminator.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }
}
