//! What the catalog has said of the rights of roles, so that it need not be asked of each session.
//!
//! Invariant: what is said is what the server would say, as long as no change of schemas, rights or
//! settings is known of ([`Database::contexts`]) since before it was asked.

use super::Database;
use crate::statement::lock;
use std::sync::Mutex;

/// Roles of which it is remembered. A database has few that log in, or one for each tenant.
const MOST: usize = 64;

/// Whether a role may use schemas only because of what it is or a member of.
#[derive(Debug)]
struct Said {
    role: Box<str>,
    /// The number of the changes of contexts when it was asked.
    as_of: u64,
    has_any: bool,
}

/// What was said of which roles, the latest last.
#[derive(Debug, Default)]
pub(super) struct Rights(Mutex<Vec<Said>>);

impl Database {
    /// Whether it is known of any role, so most likely of the next one that is met.
    #[must_use]
    pub fn knows_rights(&self) -> bool {
        let now = self.contexts();
        lock(&self.rights.0).iter().any(|said| said.as_of == now)
    }

    /// Whether this role may use schemas only because of what it is or a member of, if that is
    /// known `as_of` this number of changes of contexts.
    #[must_use]
    pub fn rights_of(&self, role: &str, as_of: u64) -> Option<bool> {
        let known = lock(&self.rights.0);
        let said = known.iter().find(|said| *said.role == *role)?;
        (said.as_of == as_of && !role.is_empty()).then_some(said.has_any)
    }

    /// Notes it.
    pub fn notes_rights(&self, role: &str, as_of: u64, has_any: bool) {
        if role.is_empty() {
            return;
        }
        let mut known = lock(&self.rights.0);
        known.retain(|said| *said.role != *role);
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push(Said {
            role: role.into(),
            as_of,
            has_any,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_role_holds_until_contexts_change() {
        let database = Database::default();
        let now = database.contexts();
        assert!(!database.knows_rights());
        database.notes_rights("6161", now, true);
        database.notes_rights("6262", now, false);
        assert!(database.knows_rights());
        assert_eq!(database.rights_of("6161", now), Some(true));
        assert_eq!(database.rights_of("6262", now), Some(false));
        assert_eq!(database.rights_of("6363", now), None);
        assert_eq!(database.rights_of("6161", now + 1), None);
        database.advance_cluster();
        assert!(!database.knows_rights());
        database.notes_rights("6161", now + 1, false);
        assert_eq!(database.rights_of("6161", now + 1), Some(false));
    }

    #[test]
    fn of_nobody_nothing_is_said_and_of_few_roles_something() {
        let database = Database::default();
        database.notes_rights("", 0, true);
        assert_eq!(database.rights_of("", 0), None);
        (0..10 * MOST).for_each(|role| database.notes_rights(&role.to_string(), 0, true));
        assert_eq!(lock(&database.rights.0).len(), MOST);
        let last = (10 * MOST - 1).to_string();
        assert_eq!(database.rights_of(&last, 0), Some(true));
    }
}
