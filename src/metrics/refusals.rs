//! How many logins were refused, and why.

use super::{Counters, Summary, bump};
use crate::reason::LoginRefused;

impl Counters {
    /// Counts a login that was refused. Only the thread that these counters belong to may call
    /// this.
    pub fn refused(&self, why: LoginRefused) {
        bump(&self.refusals[why as usize], 1);
    }
}

impl Summary {
    /// Logins that were refused for this reason.
    #[must_use]
    pub fn refusals(&self, why: LoginRefused) -> u64 {
        self.refusals[why as usize]
    }
}
