//! Executions at home of reads that may run elsewhere, by why.

use super::{Counters, Summary, bump};
use crate::reason::Homing;

impl Counters {
    /// Counts an execution at home of a read that may run elsewhere. Only the worker that these
    /// counters belong to may call this.
    pub fn homes(&self, homing: Homing) {
        bump(&self.homings[homing as usize], 1);
    }
}

impl Summary {
    /// Executions at home, for this reason, of reads that may run elsewhere.
    #[must_use]
    pub fn homings(&self, homing: Homing) -> u64 {
        self.homings[homing as usize]
    }
}
