//! How many server connections there may be.

use std::time::Duration;

/// How many server connections to a database there may be, counted where clients have one name for
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The most of one user; `None` for any number, which there cannot be if clients give theirs
    /// back.
    pub pool: Option<usize>,
    /// Whether clients give theirs back while they are idle (`pool_mode = "auto"`).
    pub gives_back: bool,
    /// How many there are also when nobody needs them, in each mode.
    pub least: usize,
    /// How many more there may be once somebody has waited for [`Bounds::reserve_after`].
    pub reserve: usize,
    /// The most of all users together, in each mode; zero means any.
    pub most: usize,
    /// The most clients of all users together; zero means any.
    pub clients: usize,
}

/// Bounds that are the same for all databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most server connections of one user to all databases together; zero means any.
    pub of_user: usize,
    /// The most clients of one user, whatever databases they are at; zero means any.
    pub clients_of_user: usize,
    /// How long somebody waits before a pool may have its reserve.
    pub reserve_after: Duration,
}
