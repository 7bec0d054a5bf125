//! Which settings can be changed while the proxy runs.
//!
//! Invariant: what is not in [`LIVE`] is as it was at the start, in every configuration that is in
//! force, so whoever has read it once need not read it again.

use super::settings::{self, Setting};
use super::{Config, Mode};

/// Takes over from the second configuration what one setting is there.
type Follow = fn(&mut Config, &Config);

/// The settings that can be changed while the proxy runs, each with what it changes.
const LIVE: [(&Setting, Follow); 23] = [
    (&settings::MODE, |to, from| to.mode = from.mode),
    (&settings::PREPARE_THRESHOLD, |to, from| {
        to.prepare_threshold = from.prepare_threshold;
    }),
    (&settings::STATEMENT_MAX_AGE_S, |to, from| {
        to.statement_max_age = from.statement_max_age;
    }),
    (&settings::AUDIT, |to, from| to.audit = from.audit),
    (&settings::TRIALS, |to, from| to.trials = from.trials),
    (&settings::SHARED_READS, |to, from| {
        to.shared_reads = from.shared_reads;
    }),
    (&settings::ORACLE_PER_SECOND, |to, from| {
        to.oracle_per_second = from.oracle_per_second;
    }),
    (&settings::LOGIN_TIMEOUT_S, |to, from| {
        to.login_timeout = from.login_timeout;
    }),
    (&settings::CONNECT_TIMEOUT_S, |to, from| {
        to.connect_timeout = from.connect_timeout;
    }),
    (&settings::DRAIN_TIMEOUT_S, |to, from| {
        to.drain_timeout = from.drain_timeout;
    }),
    (&settings::QUERY_WAIT_TIMEOUT_S, |to, from| {
        to.query_wait_timeout = from.query_wait_timeout;
    }),
    (&settings::SERVER_IDLE_TIMEOUT_S, |to, from| {
        to.server_idle_timeout = from.server_idle_timeout;
    }),
    (&settings::SERVER_LIFETIME_S, |to, from| {
        to.server_lifetime = from.server_lifetime;
    }),
    (&settings::CLIENT_IDLE_TIMEOUT_S, |to, from| {
        to.time_limits.client_idle = from.time_limits.client_idle;
    }),
    (&settings::IDLE_TRANSACTION_TIMEOUT_S, |to, from| {
        to.time_limits.idle_transaction = from.time_limits.idle_transaction;
    }),
    (&settings::QUERY_TIMEOUT_S, |to, from| {
        to.time_limits.query = from.time_limits.query;
    }),
    (&settings::TRANSACTION_TIMEOUT_S, |to, from| {
        to.time_limits.transaction = from.time_limits.transaction;
    }),
    (&settings::LOG_LEVEL, |to, from| {
        to.log_level.clone_from(&from.log_level);
    }),
    (&settings::LOG_CONNECTIONS, |to, from| {
        to.log_connections = from.log_connections;
    }),
    (&settings::LOG_DISCONNECTIONS, |to, from| {
        to.log_disconnections = from.log_disconnections;
    }),
    (&settings::LOG_SLOW_MS, |to, from| {
        to.log_slow = from.log_slow;
    }),
    (&settings::ADMIN_USERS, |to, from| {
        to.console.admins.clone_from(&from.console.admins);
    }),
    (&settings::STATS_USERS, |to, from| {
        to.console.stats.clone_from(&from.console.stats);
    }),
];

impl Config {
    /// Whether the setting of this key can be changed while the proxy runs.
    #[must_use]
    pub fn is_live(key: &str) -> bool {
        LIVE.iter().any(|(setting, _)| setting.key == key)
    }

    /// This configuration with all that can be changed while the proxy runs as it is in `new`; with
    /// a `key`, only the setting that is called so.
    #[must_use]
    pub fn following(&self, new: &Self, key: Option<&str>) -> Self {
        let mut followed = self.clone();
        for (setting, follow) in &LIVE {
            if key.is_some_and(|key| key != setting.key) {
                continue;
            }
            follow(&mut followed, new);
            followed.shows_as(new, setting.key);
        }
        followed
    }

    /// Has the setting of this key shown as `new` shows it.
    pub fn shows_as(&mut self, new: &Self, key: &str) {
        let written = new.written.iter().find(|(other, _)| *other == key);
        let mut shown = self.written.iter_mut();
        if let Some((_, text)) = written
            && let Some((_, shown)) = shown.find(|(other, _)| *other == key)
        {
            shown.clone_from(text);
        }
    }

    /// What else a setting would have to be where clients give their server connections back: a
    /// pool needs to know what a session has left, and who may be given its connection.
    #[must_use]
    pub fn pool_contradiction(&self) -> Option<(&'static Setting, &'static str)> {
        self.databases.largest_pool()?;
        let wrong: [(bool, &'static Setting, &'static str); 3] = [
            (
                !self.warm_connections,
                &settings::WARM_CONNECTIONS,
                "on, because of pool_mode = auto",
            ),
            (
                self.catalog_watch.is_zero(),
                &settings::CATALOG_WATCH_MS,
                "more than 0, because of pool_mode = auto",
            ),
            (
                self.mode != Mode::Convert,
                &settings::MODE,
                "convert, because of pool_mode = auto",
            ),
        ];
        let found = wrong.into_iter().find(|(is_wrong, ..)| *is_wrong)?;
        Some((found.1, found.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SETTINGS, ValueForm};

    fn config(pairs: &[(&str, &str)]) -> Config {
        let pairs = [&[("upstream", "h:1")], pairs].concat();
        Config::from_pairs(&pairs).unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
    }

    /// A value of the setting that is not its default.
    fn other(setting: &Setting) -> &'static str {
        match setting.kind {
            ValueForm::Switch if setting.default == Some("true") => "false",
            ValueForm::Switch => "true",
            ValueForm::Integer { .. } => "17",
            ValueForm::Choice(_) => "off",
            ValueForm::Text(_) if setting.key == settings::LOG_LEVEL.key => "warn",
            ValueForm::Text(_) | ValueForm::Addresses => "somebody",
        }
    }

    #[test]
    fn each_row_follows_its_own_setting_and_no_other() {
        let usual = config(&[]);
        for (setting, _) in &LIVE {
            let new = config(&[(setting.key, other(setting))]);
            assert_ne!(new, usual, "{}", setting.key);
            assert_eq!(usual.following(&new, None), new, "{}", setting.key);
            assert_eq!(usual.following(&new, Some(setting.key)), new);
            assert_eq!(usual.following(&new, Some("listen")), usual);
            assert!(Config::is_live(setting.key));
        }
    }

    #[test]
    fn nothing_else_is_followed() {
        let usual = config(&[]);
        for setting in SETTINGS.iter().filter(|one| !Config::is_live(one.key)) {
            let value = match setting.kind {
                ValueForm::Choice(words) => words.last().copied().unwrap_or_default(),
                _ => other(setting),
            };
            let pairs = [("upstream", "h:1"), (setting.key, value)];
            let Ok(new) = Config::from_pairs(&pairs) else {
                continue;
            };
            assert_eq!(usual.following(&new, None), usual, "{}", setting.key);
        }
    }

    #[test]
    fn what_pools_need_cannot_be_taken_from_them() {
        let pooled = config(&[("pool_mode", "auto")]);
        assert!(pooled.pool_contradiction().is_none());
        let off = pooled.following(&config(&[("mode", "off")]), None);
        let found = off.pool_contradiction();
        assert_eq!(
            found.map(|(setting, expected)| (setting.key, expected)),
            Some(("mode", "convert, because of pool_mode = auto"))
        );
        assert!(config(&[("mode", "off")]).pool_contradiction().is_none());
    }
}
