//! What somebody may do at the console.

/// Who somebody is to the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// May look.
    Stats,
    /// May do everything.
    Admin,
}

impl Rank {
    /// The setting that names those who are.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Stats => "stats_users",
            Self::Admin => "admin_users",
        }
    }
}
