//! What of that which was found out before the last changes of the catalog still holds.

use super::Standing;
use crate::sql::hazard::Hazards;
use crate::sql::survey;
use crate::sql::tag::Command;
use crate::sql::touched::Touched;
use crate::statement::Statement;
use crate::statement::database::Database;
use crate::statement::journal::Cause;
use crate::statement::names::Names;
use crate::statement::story::Episode;

impl Standing {
    /// The present epoch. Statements that the server holds are brought up to it if nothing has
    /// changed since they were parsed that concerns them, and are closed if something has.
    #[inline]
    pub fn present_epoch(&mut self) -> u64 {
        let epoch = self.database.epoch();
        if epoch != self.followed {
            self.catch_up(epoch);
        }
        epoch
    }

    #[cold]
    fn catch_up(&mut self, epoch: u64) {
        // It takes the names to tell, and none of the statements is of use before they are known.
        if !self.knows_names() {
            return;
        }
        let (database, names) = (&self.database, &self.names);
        self.mirror.follow(|statement, at| match at == epoch {
            true => Some(at),
            false => {
                let held = still_holds((database, names), (statement, false), at).ok()?;
                // What was refused may be known to hold otherwise.
                if statement.settled_against(at).is_none() {
                    outlives(database, statement, (at, held));
                }
                Some(held)
            }
        });
        self.followed = epoch;
    }

    /// Brings the verdict of a statement up to the present epoch, or drops it if something has
    /// changed that may concern the statement; returns the command tag of what has.
    #[must_use]
    pub fn follow_verdict(&self, statement: &Statement) -> Option<Command> {
        let at = statement.known_at()?;
        let is_known = self.naming == Some(self.database.naming());
        if at == self.database.epoch() || !is_known {
            return None;
        }
        let is_refused = statement.settled_against(at).is_some();
        let about = (statement, is_refused);
        match still_holds((&self.database, &self.names), about, at) {
            Ok(epoch) => {
                outlives(&self.database, statement, (at, epoch));
                None
            }
            Err(cause) => statement.outdate(at).then(|| {
                cause.count();
                let decided = Episode::Outdated(cause.tag);
                statement.recipe().story().note(decided);
                cause.tag
            }),
        }
    }
}

/// Takes the verdict of the epoch `at` for one of the epoch `held`, up to which it holds, and
/// counts that unless another session has.
fn outlives(database: &Database, statement: &Statement, (at, held): (u64, u64)) {
    if statement.renew(at, held) {
        database.outlived(at, held);
    }
}

/// Up to which epoch what was known of a statement at the epoch `at` holds; it may have been
/// refused for want of a right.
///
/// A function in SQL may be read again with each plan, and then what its body names may be
/// something else, whatever the statement itself names.
///
/// # Errors
/// What has changed.
fn still_holds(
    (database, names): (&Database, &Names),
    (statement, is_refused): (&Statement, bool),
    at: u64,
) -> Result<u64, Cause> {
    let text = statement.text();
    let is_reread = survey::survey(text, names).hazards.has(Hazards::REREADS);
    database.holds(at, |touched| match touched {
        Touched::Refused => is_refused,
        touched => is_reread && !touched.is_nothing() || touched.concerns(text),
    })
}
