//! One server connection: what is known of its session, and the replies it owes ([`ledger`]).

pub mod ledger;

use crate::standing::Standing;
use ledger::Ledger;

/// One server connection.
#[derive(Debug)]
pub struct Upstream {
    /// The replies owed.
    pub ledger: Ledger,
    /// What is known of its session.
    pub standing: Standing,
}

impl Upstream {
    /// A connection with this session, which owes nothing yet.
    #[must_use]
    pub fn new(standing: Standing) -> Self {
        Self {
            ledger: Ledger::default(),
            standing,
        }
    }

    /// Notes the status of a ReadyForQuery.
    #[inline]
    pub fn ready(&mut self, status: crate::wire::backend::Status) {
        self.standing.ready(status, self.ledger.is_idle());
    }
}
