//! What clients are called: a name is given once.

/// Names a client; no other has the same name at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    /// The name of no client.
    pub const NONE: Self = Self(u64::MAX);
}
