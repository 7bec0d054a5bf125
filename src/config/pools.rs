//! What fewer server connections than clients need of the other settings.

use super::settings;
use super::sizes::{Bounds, Sizes};
use super::{AuthType, Config, Effective, Error, refuse};

/// The value of `pool_mode` with which clients give their server connections back.
pub(super) const AUTO: &str = "auto";

impl Config {
    /// The size of the largest pool of clients that give their connections back, if there are any.
    #[must_use]
    pub fn largest_pool(&self) -> Option<usize> {
        let of_users = self.users.largest_pool(self.default_pool_size);
        self.databases.largest_pool().max(of_users)
    }

    /// How many server connections this user may have to a database of these sizes, and whether it
    /// gives them back. The name is the one that it has at the server.
    #[must_use]
    pub fn sizes_of(&self, sizes: Sizes, user: &[u8]) -> Sizes {
        let Some(limits) = self.users.find(user) else {
            return sizes;
        };
        let gives_back = limits.gives_back.unwrap_or(sizes.gives_back);
        let usual = gives_back.then_some(self.default_pool_size);
        Sizes {
            pool: limits.pool.or(sizes.pool).or(usual),
            gives_back,
            reserve: limits.reserve.unwrap_or(sizes.reserve),
            ..sizes
        }
    }

    /// The bounds for this user.
    #[must_use]
    pub fn bounds_of(&self, user: &[u8]) -> Bounds {
        let limits = self.users.find(user).copied().unwrap_or_default();
        Bounds {
            of_user: limits.most.unwrap_or(self.bounds.of_user),
            clients_of_user: limits.clients.unwrap_or(self.bounds.clients_of_user),
            ..self.bounds
        }
    }

    /// What keeps clients from giving their server connections back, where a server asks for
    /// passwords.
    #[must_use]
    pub fn pool_hint(&self) -> Option<&'static str> {
        let is_pooled = self.largest_pool().is_some();
        (is_pooled && self.auth.kind == AuthType::Relay).then_some(
            "pool_mode = auto, but where the server asks for passwords each client keeps its \
             server connection, because logins are relayed: set auth_type with auth_user or \
             auth_file",
        )
    }
}

impl Effective {
    /// The bounds of all databases' connections.
    pub(super) fn bounds(&self) -> Result<Bounds, Error> {
        Ok(Bounds {
            of_user: self.number(&settings::MAX_USER_CONNECTIONS)?,
            clients_of_user: self.number(&settings::MAX_USER_CLIENT_CONNECTIONS)?,
            reserve_after: self.seconds(&settings::RESERVE_POOL_TIMEOUT_S)?,
        })
    }

    /// How many a database may have that does not say so itself.
    pub(super) fn usual_sizes(&self, config: &Config) -> Result<Sizes, Error> {
        let gives_back = self.text(&settings::POOL_MODE)? == AUTO;
        Ok(Sizes {
            pool: gives_back.then_some(config.default_pool_size),
            gives_back,
            least: self.number(&settings::MIN_POOL_SIZE)?,
            reserve: self.number(&settings::RESERVE_POOL_SIZE)?,
            most: self.number(&settings::MAX_DB_CONNECTIONS)?,
            clients: self.number(&settings::MAX_DB_CLIENT_CONNECTIONS)?,
        })
    }

    /// Pools need to know what a session has left, and who may be given its connection.
    pub(super) fn check_pools(&self, config: &Config) -> Result<(), Error> {
        let Some((setting, expected)) = config.pool_contradiction() else {
            return Ok(());
        };
        let written = self.written(setting)?;
        Err(refuse(
            setting,
            written,
            expected,
            &written.items.join(", "),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_database_has_a_pool_of_its_own_size_or_none() {
        let text = "upstream = 'h:1'\npool_mode = 'auto'\ndefault_pool_size = 7\n\
                    [databases.a]\npool_size = 3\n[databases.b]\npool_mode = 'session'\n\
                    [databases.s]\npool_mode = 'session'\npool_size = 900\n\
                    [databases.'*']\n";
        let config = Config::from_text(text).unwrap();
        let pool = |name: &[u8]| config.databases.find(name).unwrap().sizes.pool;
        assert_eq!(
            [pool(b"a"), pool(b"b"), pool(b"c")],
            [Some(3), None, Some(7)]
        );
        // Who keeps its connection is bounded by a size of the database's own alone.
        assert_eq!(pool(b"s"), Some(900));
        let gives_back = |name: &[u8]| config.databases.find(name).unwrap().sizes.gives_back;
        assert_eq!(
            [b"a", b"b", b"s"].map(|it| gives_back(it)),
            [true, false, false]
        );
        assert_eq!(config.databases.largest_pool(), Some(7));
        assert!(config.pool_hint().is_some(), "logins are relayed");
        let config = Config::from_text("upstream = 'h:1'").unwrap();
        assert_eq!(config.databases.find(b"a").unwrap().sizes.pool, None);
        assert!(config.pool_hint().is_none());
        for wrong in [
            "pool_size = 0",
            "pool_size = 'x'",
            "reserve_pool_size = -1",
            "max_db_connections = 100001",
            "pool_mode = 'statement'",
        ] {
            let text = format!("upstream = 'h:1'\n[databases.a]\n{wrong}\n");
            assert!(Config::from_text(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_hold_in_each_mode_and_databases_have_their_own() {
        let text = "upstream = 'h:1'\nmin_pool_size = 4\n\
                    max_db_connections = 9\nreserve_pool_size = 2\n\
                    max_user_connections = 8\nmax_user_client_connections = 5\n\
                    max_db_client_connections = 27\nreserve_pool_timeout_s = 3\n\
                    [databases.a]\nmax_db_connections = 0\nreserve_pool_size = 1\n\
                    max_db_client_connections = 0\n\
                    [databases.'*']\n";
        let config = Config::from_text(text).unwrap();
        let sizes = |name: &[u8]| config.databases.find(name).unwrap().sizes;
        let all = |reserve, most| Sizes {
            pool: None,
            gives_back: false,
            least: 4,
            reserve,
            most,
            clients: 3 * most,
        };
        assert_eq!([sizes(b"a"), sizes(b"b")], [all(1, 0), all(2, 9)]);
        let expected = Bounds {
            of_user: 8,
            clients_of_user: 5,
            reserve_after: Duration::from_secs(3),
        };
        assert_eq!(config.bounds, expected);
    }

    #[test]
    fn a_pool_needs_to_know_what_sessions_leave() {
        for wrong in [
            "warm_connections = false",
            "catalog_watch_ms = 0",
            "mode = 'observe'",
        ] {
            let text = format!("upstream = 'h:1'\npool_mode = 'auto'\n{wrong}\n");
            let error = Config::from_text(&text).unwrap_err().to_string();
            assert!(error.contains("because of pool_mode = auto"), "{error}");
            let text = format!("upstream = 'h:1'\n{wrong}\n");
            assert!(Config::from_text(&text).is_ok(), "{wrong}");
        }
    }
}
