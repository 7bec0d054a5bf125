//! What follows from the configuration for those who serve clients.

use crate::config::{Config, Mode, PlanChoice, SharedReads};
use crate::convert::{self, Limits, Settings, Strictness};
use crate::statement::mirror::Capacity;

/// What a hub needs to know of the configuration.
#[must_use]
pub fn settings(config: &Config) -> Settings {
    Settings {
        mode: match config.mode {
            Mode::Convert => convert::Policy::Convert,
            Mode::Observe => convert::Policy::Observe,
            Mode::Off => convert::Policy::Off,
        },
        strictness: match config.plans {
            PlanChoice::Proven => Strictness::Proven,
            PlanChoice::Server => Strictness::Server,
        },
        prepare_threshold: config.prepare_threshold,
        statement_max_age: u64::try_from(config.statement_max_age.as_millis()).unwrap_or(u64::MAX),
        catalog_watch: u64::try_from(config.catalog_watch.as_millis()).unwrap_or(u64::MAX),
        ddl_notices: config.ddl_notices,
        audit: config.audit,
        trials: config.trials,
        deferred_begin: config.deferred_begin,
        proves_reads: config.shared_reads != SharedReads::Off,
        // What is not looked at may have changed.
        shares: config.shared_reads == SharedReads::On && !config.catalog_watch.is_zero(),
        looses: config.unlocked_reads
            && config.deferred_begin
            && config.shared_reads == SharedReads::On
            && !config.catalog_watch.is_zero(),
        // What is not looked at may have changed.
        warm: config.warm_connections && !config.catalog_watch.is_zero(),
        limits: Limits {
            max_query: config.max_query_bytes,
            max_literals: config.max_literals,
            min_array_rows: config.min_array_rows,
            statements: Capacity {
                statements: config.max_statements,
                bytes: config.statement_memory,
            },
        },
    }
}
