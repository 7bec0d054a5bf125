//! Which server process answers: that of the session's login, or any, because the proxy's server
//! is a pooler ([`Database::is_pooled`](crate::statement::database::Database::is_pooled)).

use super::Standing;
use crate::sql::residue::Residue;
use crate::statement::Millis;

impl Standing {
    /// The process that has just answered says to be this one; `None` if it has not said it.
    /// Returns whether the session is its own. If not, the session is only relayed from now on, and
    /// no other client is given its connection.
    pub fn is_answered_by(&mut self, process: Option<u32>, now: Millis) -> bool {
        let is_own = process.is_some() && process == self.process;
        if is_own {
            self.database.finds_direct();
            return true;
        }
        if self.database.finds_pooled(now) {
            tracing::warn!(
                database = %self.origin.database().escape_ascii(),
                "not the server process of the login answers, so a pooler stands before the \
                 server: its sessions are only relayed"
            );
        }
        self.is_relayed_only();
        false
    }

    /// The login is over. If others have shown lately that a pooler stands before the server, this
    /// session is taken for one of its own without being asked.
    pub fn may_be_pooled(&mut self, now: Millis) {
        if self.database.is_pooled(now) {
            self.is_relayed_only();
        }
    }

    #[cold]
    fn is_relayed_only(&mut self) {
        self.is_unfollowed = true;
        self.leaves(Residue::ANYTHING);
    }
}
