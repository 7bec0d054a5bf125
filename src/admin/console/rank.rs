//! What somebody may do at the console.

/// Who somebody is to the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// May look.
    Stats,
    /// May do everything.
    Admin,
}
