//! How long clients may do what they do.

use super::settings;
use super::{Effective, Error};
use std::time::Duration;

/// How long clients may do what they do before they are disconnected. Zero means any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeLimits {
    /// Nothing, outside a transaction.
    pub client_idle: Duration,
    /// Nothing, inside one.
    pub idle_transaction: Duration,
    /// One query, until its answer has been taken.
    pub query: Duration,
    /// One transaction.
    pub transaction: Duration,
}

impl TimeLimits {
    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Effective {
    /// The limits of what clients do.
    pub(super) fn time_limits(&self) -> Result<TimeLimits, Error> {
        Ok(TimeLimits {
            client_idle: self.seconds(&settings::CLIENT_IDLE_TIMEOUT_S)?,
            idle_transaction: self.seconds(&settings::IDLE_TRANSACTION_TIMEOUT_S)?,
            query: self.seconds(&settings::QUERY_TIMEOUT_S)?,
            transaction: self.seconds(&settings::TRANSACTION_TIMEOUT_S)?,
        })
    }
}
