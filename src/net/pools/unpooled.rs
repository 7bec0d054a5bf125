//! Server connections of no pool, which are counted all the same: the configuration may say at any
//! time that they are to be few.

use super::Pools;
use super::bounds::Known;
use super::numbers::{Groups, groups};
use crate::net::news::{Frees, Place};
use crate::net::session::Session;
use std::sync::Arc;

/// Whom such a connection is counted with.
#[derive(Debug)]
struct Unpooled {
    groups: Groups,
    known: Arc<Known>,
}

impl Pools {
    /// The place of a server connection of this user to this database, of which there may be any
    /// number.
    pub(in crate::net) fn unpooled(&self, database: &[u8], user: &[u8]) -> Place {
        let groups = groups(database, user).map(|group| (group, 0));
        // Without a bound there always is one.
        self.known.take(&groups);
        Place::new(Arc::new(Unpooled {
            groups,
            known: Arc::clone(&self.known),
        }))
    }
}

impl Frees for Unpooled {
    fn free(self: Arc<Self>) {
        self.known.give(&self.groups);
        self.serve();
    }

    /// Others may have waited since there is a bound.
    fn serve(self: Arc<Self>) {
        for pool in self.known.counted_with(&self.groups) {
            pool.serve();
        }
    }

    fn keeps(&self) -> bool {
        false
    }

    fn is_entered(self: Arc<Self>, _session: &dyn Fn() -> Session) {}

    /// That of no pool.
    fn number(&self) -> u64 {
        0
    }
}
