//! What holds for some users and not for all: the tables `[users.NAME]`, checked.

use super::settings::{
    USER_MAX_CLIENTS, USER_MAX_CONNECTIONS, USER_POOL_MODE, USER_POOL_SIZE, USER_RESERVE_POOL_SIZE,
};
use super::tables::{TableKind, WrittenTable};
use super::{Effective, Error};
use std::collections::BTreeMap;

/// What holds for one user; what its table does not say is as for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Whether its clients give their connections back while they are idle.
    pub gives_back: Option<bool>,
    /// The most server connections of it to each database.
    pub pool: Option<usize>,
    /// How many more there may be once somebody has waited.
    pub reserve: Option<usize>,
    /// The most server connections of it to all databases together; zero means any.
    pub most: Option<usize>,
    /// The most clients of it; zero means any.
    pub clients: Option<usize>,
}

/// The users that have tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserMap(BTreeMap<String, UserLimits>);

impl UserMap {
    /// What holds for the user of this name, if it has a table.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<&UserLimits> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(std::str::from_utf8(name).ok()?),
        }
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &UserLimits)> {
        self.0.iter().map(|(name, limits)| (name.as_str(), limits))
    }

    /// The size of the largest pool of a user that gives its connections back, if its table says
    /// so: `usual`, unless that has another.
    pub(super) fn largest_pool(&self, usual: usize) -> Option<usize> {
        let giving = self.0.values().filter(|it| it.gives_back == Some(true));
        giving.map(|it| it.pool.unwrap_or(usual)).max()
    }
}

/// The table of a user.
struct UserTable<'t>(&'t WrittenTable);

impl UserTable<'_> {
    fn limits(&self) -> Result<UserLimits, Error> {
        let mode = match self.0.text(&USER_POOL_MODE) {
            Some(_) => Some(self.0.choice(&USER_POOL_MODE)?),
            None => None,
        };
        Ok(UserLimits {
            gives_back: mode.map(|mode| mode == super::pools::AUTO),
            pool: self.0.count(&USER_POOL_SIZE)?,
            reserve: self.0.count(&USER_RESERVE_POOL_SIZE)?,
            most: self.0.count(&USER_MAX_CONNECTIONS)?,
            clients: self.0.count(&USER_MAX_CLIENTS)?,
        })
    }
}

impl Effective {
    /// What holds for the users that have tables.
    pub(super) fn user_map(&self) -> Result<UserMap, Error> {
        let tables = self.tables().iter();
        let users = tables.filter(|table| table.kind == TableKind::User);
        let limits = users.map(|table| Ok((table.name.clone(), UserTable(table).limits()?)));
        Ok(UserMap(limits.collect::<Result<_, Error>>()?))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn what_a_user_has_of_its_own_goes_before_what_its_database_has() {
        let text = "upstream = 'h:1'\ndefault_pool_size = 7\nmax_user_connections = 9\n\
                    max_user_client_connections = 5\n[databases.a]\npool_size = 3\n\
                    reserve_pool_size = 2\n[databases.b]\npool_mode = 'auto'\n\
                    [databases.'*']\n[users.one]\npool_mode = 'auto'\nmax_user_connections = 0\n\
                    [users.two]\npool_size = 8\npool_mode = 'session'\n\
                    max_user_client_connections = 1\nreserve_pool_size = 0\n";
        let config = Config::from_text(text).unwrap();
        let sizes = |database: &str, user: &[u8]| {
            let sizes = config.databases.find(database.as_bytes()).unwrap().sizes;
            let sizes = config.sizes_of(sizes, user);
            (sizes.pool, sizes.gives_back, sizes.reserve)
        };
        for (database, user, expected) in [
            ("a", "one", (Some(3), true, 2)),
            ("b", "one", (Some(7), true, 0)),
            ("c", "one", (Some(7), true, 0)),
            ("a", "two", (Some(8), false, 0)),
            ("b", "two", (Some(8), false, 0)),
            ("c", "three", (None, false, 0)),
            ("b", "three", (Some(7), true, 0)),
        ] {
            assert_eq!(
                sizes(database, user.as_bytes()),
                expected,
                "{user} {database}"
            );
        }
        let bounds = |user: &[u8]| {
            let bounds = config.bounds_of(user);
            (bounds.of_user, bounds.clients_of_user)
        };
        assert_eq!(bounds(b"one"), (0, 5));
        assert_eq!(bounds(b"two"), (9, 1));
        assert_eq!(bounds(b"\xff"), (9, 5));
        assert_eq!(config.largest_pool(), Some(7));
    }

    #[test]
    fn tables_of_users_are_checked_as_others_are() {
        let told = |more: &str| {
            let text = format!("upstream = 'h:1'\n{more}");
            Config::from_text(&text).unwrap_err().to_string()
        };
        for (more, expected) in [
            ("users = 'x'", "users: expected a table, as in [users.NAME]"),
            (
                "[users]\nx = 1",
                "users.x: expected a table, as in [users.NAME]",
            ),
            ("[users.'']\n", "expected a user's name of 1 to 63 bytes"),
            (
                "[users.x]\npool_sise = 3",
                "unknown key `pool_sise` in users.x, expected `pool_size`",
            ),
            (
                "[users.x]\npool_size = 0",
                "users.x.pool_size: expected a whole number from 1 to 1000, found 0",
            ),
            (
                "[users.x]\npool_mode = 'transaction'",
                "users.x.pool_mode: expected session or auto",
            ),
            (
                "mode = 'observe'\n[users.x]\npool_mode = 'auto'",
                "because of pool_mode = auto",
            ),
        ] {
            let told = told(more);
            assert!(told.contains(expected), "{told}");
        }
    }
}
