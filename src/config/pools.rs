//! What fewer server connections than clients need of the other settings.

use super::settings::{self, Setting};
use super::{AuthType, Config, Effective, Error, Mode, refuse};

impl Config {
    /// What keeps clients from giving their server connections back, where a server asks for
    /// passwords.
    #[must_use]
    pub fn pool_hint(&self) -> Option<&'static str> {
        let is_pooled = self.databases.largest_pool().is_some();
        (is_pooled && self.auth.kind == AuthType::Relay).then_some(
            "pool_mode = auto, but where the server asks for passwords each client keeps its \
             server connection, because logins are relayed: set auth_type with auth_user or \
             auth_file",
        )
    }
}

impl Effective {
    /// Pools need to know what a session has left, and who may be given its connection.
    pub(super) fn check_pools(&self, config: &Config) -> Result<(), Error> {
        if config.databases.largest_pool().is_none() {
            return Ok(());
        }
        let wrong: [(bool, &Setting, &str); 3] = [
            (
                !config.warm_connections,
                &settings::WARM_CONNECTIONS,
                "on, because of pool_mode = auto",
            ),
            (
                config.catalog_watch.is_zero(),
                &settings::CATALOG_WATCH_MS,
                "more than 0, because of pool_mode = auto",
            ),
            (
                config.mode != Mode::Convert,
                &settings::MODE,
                "convert, because of pool_mode = auto",
            ),
        ];
        let Some((_, setting, expected)) = wrong.into_iter().find(|(is_wrong, ..)| *is_wrong)
        else {
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

    #[test]
    fn each_database_has_a_pool_of_its_own_size_or_none() {
        let text = "upstream = 'h:1'\npool_mode = 'auto'\ndefault_pool_size = 7\n\
                    [databases.a]\npool_size = 3\n[databases.b]\npool_mode = 'session'\n\
                    [databases.'*']\n";
        let config = Config::from_text(text).unwrap();
        let pool = |name: &[u8]| config.databases.find(name).unwrap().pool;
        assert_eq!(
            [pool(b"a"), pool(b"b"), pool(b"c")],
            [Some(3), None, Some(7)]
        );
        assert_eq!(config.databases.largest_pool(), Some(7));
        assert!(config.pool_hint().is_some(), "logins are relayed");
        let config = Config::from_text("upstream = 'h:1'").unwrap();
        assert_eq!(config.databases.find(b"a").unwrap().pool, None);
        assert!(config.pool_hint().is_none());
        for wrong in [
            "pool_size = 0",
            "pool_size = 'x'",
            "pool_mode = 'statement'",
        ] {
            let text = format!("upstream = 'h:1'\n[databases.a]\n{wrong}\n");
            assert!(Config::from_text(&text).is_err(), "{wrong}");
        }
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
