//! Which settings can be changed while the proxy runs.
//!
//! Invariant: what is neither in [`LIVE`] nor in [`TOGETHER`] is as it was at the start, in every
//! configuration that is in force, so whoever has read it once need not read it again.

use super::settings::{self, Setting};
use super::{Config, Mode, SETTINGS};

/// Takes over from the second configuration what one setting is there.
type Follow = fn(&mut Config, &Config);

/// The settings that can be changed while the proxy runs, each with what it changes.
const LIVE: [(&Setting, Follow); 42] = [
    (&settings::MODE, |to, from| to.mode = from.mode),
    (&settings::PLANS, |to, from| to.plans = from.plans),
    (&settings::PREPARE_THRESHOLD, |to, from| {
        to.prepare_threshold = from.prepare_threshold;
    }),
    (&settings::MAX_CLIENTS, |to, from| {
        to.max_clients = from.max_clients;
    }),
    (&settings::MAX_STATEMENTS, |to, from| {
        to.max_statements = from.max_statements;
    }),
    (&settings::STATEMENT_MEMORY, |to, from| {
        to.statement_memory = from.statement_memory;
    }),
    (&settings::MAX_SHAPES, |to, from| {
        to.max_shapes = from.max_shapes;
    }),
    (&settings::MAX_QUERY_BYTES, |to, from| {
        to.max_query_bytes = from.max_query_bytes;
    }),
    (&settings::MAX_LITERALS, |to, from| {
        to.max_literals = from.max_literals;
    }),
    (&settings::MIN_ARRAY_ROWS, |to, from| {
        to.min_array_rows = from.min_array_rows;
    }),
    (&settings::WARM_CONNECTIONS, |to, from| {
        to.warm_connections = from.warm_connections;
    }),
    (&settings::CATALOG_WATCH_MS, |to, from| {
        to.catalog_watch = from.catalog_watch;
    }),
    (&settings::DDL_NOTICES, |to, from| {
        to.ddl_notices = from.ddl_notices;
    }),
    (&settings::DEFERRED_BEGIN, |to, from| {
        to.deferred_begin = from.deferred_begin;
    }),
    (&settings::BUFFER_BYTES, |to, from| {
        to.buffer_bytes = from.buffer_bytes;
    }),
    (&settings::STATEMENT_MAX_AGE_S, |to, from| {
        to.statement_max_age = from.statement_max_age;
    }),
    (&settings::AUDIT, |to, from| to.audit = from.audit),
    (&settings::TRIALS, |to, from| to.trials = from.trials),
    (&settings::SHARED_READS, |to, from| {
        to.shared_reads = from.shared_reads;
    }),
    (&settings::UNLOCKED_READS, |to, from| {
        to.unlocked_reads = from.unlocked_reads;
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
    (&settings::SERVER_FAST_CLOSE, |to, from| {
        to.server_fast_close = from.server_fast_close;
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
    (&settings::PEERS, |to, from| {
        to.peers.clone_from(&from.peers);
    }),
    (&settings::HTTP_PAGE, |to, from| {
        to.http_page = from.http_page;
    }),
    (&settings::LOG_FORMAT, |to, from| {
        to.log_format = from.log_format;
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
    (&settings::LOG_TAINTS, |to, from| {
        to.log_taints = from.log_taints;
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

/// The settings that can be changed by reading all again, and not each by itself: they are checked
/// together, and with the files that they name or the tables of databases.
const TOGETHER: [&Setting; 32] = [
    &settings::LISTEN,
    &settings::HTTP_LISTEN,
    &settings::UPSTREAM,
    &settings::POOL_MODE,
    &settings::DEFAULT_POOL_SIZE,
    &settings::MIN_POOL_SIZE,
    &settings::RESERVE_POOL_SIZE,
    &settings::MAX_DB_CONNECTIONS,
    &settings::MAX_USER_CONNECTIONS,
    &settings::MAX_DB_CLIENT_CONNECTIONS,
    &settings::MAX_USER_CLIENT_CONNECTIONS,
    &settings::RESERVE_POOL_TIMEOUT_S,
    &settings::CLIENT_TLS_SSLMODE,
    &settings::CLIENT_TLS_KEY_FILE,
    &settings::CLIENT_TLS_CERT_FILE,
    &settings::CLIENT_TLS_CA_FILE,
    &settings::CLIENT_TLS_PROTOCOLS,
    &settings::SERVER_TLS_SSLMODE,
    &settings::SERVER_TLS_CA_FILE,
    &settings::SERVER_TLS_KEY_FILE,
    &settings::SERVER_TLS_CERT_FILE,
    &settings::SERVER_TLS_NEGOTIATION,
    &settings::AUTH_TYPE,
    &settings::AUTH_FILE,
    &settings::AUTH_HBA_FILE,
    &settings::AUTH_IDENT_FILE,
    &settings::AUTH_CERT_NAME,
    &settings::AUTH_USER,
    &settings::AUTH_QUERY,
    &settings::AUTH_DBNAME,
    &settings::AUTH_CACHE_S,
    &settings::SWITCHES_FILE,
];

/// By what a setting is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedBy {
    /// At any time, by itself.
    Set,
    /// By reading the configuration again.
    Reload,
    /// At the start only.
    Restart,
}

impl Config {
    /// By what the setting of this key is changed.
    #[must_use]
    pub fn changed_by(key: &str) -> ChangedBy {
        if LIVE.iter().any(|(setting, _)| setting.key == key) {
            ChangedBy::Set
        } else if TOGETHER.iter().any(|setting| setting.key == key) {
            ChangedBy::Reload
        } else {
            ChangedBy::Restart
        }
    }

    /// This configuration with all that can be changed while the proxy runs as it is in `new`.
    #[must_use]
    pub fn following(&self, new: &Self) -> Self {
        let mut followed = self.clone();
        for (_, follow) in &LIVE {
            follow(&mut followed, new);
        }
        followed.listen.clone_from(&new.listen);
        followed.http_listen.clone_from(&new.http_listen);
        followed.databases.clone_from(&new.databases);
        followed.users.clone_from(&new.users);
        followed.upstream.clone_from(&new.upstream);
        followed.default_pool_size = new.default_pool_size;
        followed.bounds = new.bounds;
        followed.client_tls.clone_from(&new.client_tls);
        followed.server_tls.clone_from(&new.server_tls);
        followed.auth.clone_from(&new.auth);
        followed.switches_file.clone_from(&new.switches_file);
        followed.shows_as(new, |key| Self::changed_by(key) != ChangedBy::Restart);
        followed
    }

    /// This configuration with the setting of this key as it is in `new`, if it can be changed
    /// alone.
    #[must_use]
    pub fn following_one(&self, new: &Self, key: &str) -> Self {
        let mut followed = self.clone();
        if let Some((_, follow)) = LIVE.iter().find(|(setting, _)| setting.key == key) {
            follow(&mut followed, new);
            followed.shows_as(new, |other| other == key);
        }
        followed
    }

    /// Has the settings whose keys are meant shown as `new` shows them.
    pub fn shows_as(&mut self, new: &Self, is_meant: impl Fn(&str) -> bool) {
        let shown = SETTINGS.iter().filter_map(|setting| {
            let of = if is_meant(setting.key) { new } else { &*self };
            of.written.iter().find(|(key, _)| *key == setting.key)
        });
        self.written = shown.cloned().collect();
    }

    /// What else a setting would have to be where clients give their server connections back: a
    /// pool needs to know what a session has left, and who may be given its connection.
    #[must_use]
    pub fn pool_contradiction(&self) -> Option<(&'static Setting, &'static str)> {
        self.largest_pool()?;
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
    use crate::config::ValueForm;

    fn config(pairs: &[(&str, &str)]) -> Config {
        let pairs = [&[("upstream", "h:1")], pairs].concat();
        Config::from_pairs(&pairs).unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
    }

    /// A value of the setting that is not its default.
    fn other(setting: &Setting) -> &'static str {
        match setting.kind {
            ValueForm::Switch if setting.default == Some("on") => "off",
            ValueForm::Switch => "on",
            ValueForm::Choice(words) if !words.contains(&"off") => words[words.len() - 1],
            ValueForm::Choice(_) => "off",
            ValueForm::Integer { min, .. } if min > 17 => "123457",
            ValueForm::Integer { .. } => "17",
            ValueForm::Addresses => "somebody:1",
            ValueForm::Text(_) if setting.key == settings::LOG_LEVEL.key => "warn",
            ValueForm::Text(_) | ValueForm::Names => "somebody",
        }
    }

    #[test]
    fn each_row_follows_its_own_setting_and_no_other() {
        let usual = config(&[]);
        for (setting, _) in &LIVE {
            let new = config(&[(setting.key, other(setting))]);
            assert_ne!(new, usual, "{}", setting.key);
            assert_eq!(usual.following(&new), new, "{}", setting.key);
            assert_eq!(usual.following_one(&new, setting.key), new);
            assert_eq!(usual.following_one(&new, "listen"), usual);
            assert_eq!(Config::changed_by(setting.key), ChangedBy::Set);
        }
    }

    /// What a setting of those that are read together asks for beside it.
    fn beside(setting: &Setting) -> &'static [(&'static str, &'static str)] {
        match setting.key {
            "upstream" => &[],
            "client_tls_sslmode" => &[
                ("upstream", "h:1"),
                ("client_tls_key_file", "/k"),
                ("client_tls_cert_file", "/c"),
            ],
            "server_tls_negotiation" => &[("upstream", "h:1"), ("server_tls_sslmode", "require")],
            "server_tls_key_file" => &[("upstream", "h:1"), ("server_tls_cert_file", "/c")],
            "server_tls_cert_file" => &[("upstream", "h:1"), ("server_tls_key_file", "/k")],
            "auth_type" => &[("upstream", "h:1"), ("auth_file", "/f")],
            "auth_hba_file" => &[
                ("upstream", "h:1"),
                ("auth_type", "hba"),
                ("auth_file", "/f"),
            ],
            "auth_ident_file" => &[
                ("upstream", "h:1"),
                ("auth_type", "hba"),
                ("auth_file", "/f"),
                ("auth_hba_file", "/h"),
            ],
            _ => &[("upstream", "h:1")],
        }
    }

    #[test]
    fn what_is_read_together_is_followed_together() {
        let usual = config(&[]);
        for setting in TOGETHER {
            let value = match (setting.key, setting.kind) {
                ("pool_mode", _) => "auto",
                ("client_tls_sslmode" | "server_tls_sslmode", _) => "require",
                ("auth_type", _) => "scram-sha-256",
                (_, ValueForm::Addresses | ValueForm::Names | ValueForm::Text(_)) => "h:2",
                _ => other(setting),
            };
            let pairs = [beside(setting), &[(setting.key, value)]].concat();
            let new = Config::from_pairs(&pairs).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(new, usual, "{}", setting.key);
            assert_eq!(usual.following(&new), new, "{}", setting.key);
            assert_eq!(usual.following_one(&new, setting.key), usual);
            assert_eq!(Config::changed_by(setting.key), ChangedBy::Reload);
        }
        let tables = "[databases.a]\nupstream = 'h:2'\n";
        let new = Config::from_text(tables).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(usual.following(&new), new);
    }

    #[test]
    fn what_a_process_is_made_of_is_not_followed() {
        let usual = config(&[]);
        let fixed = SETTINGS.iter().map(|setting| setting.key);
        let fixed: Vec<_> = fixed
            .filter(|key| Config::changed_by(key) == ChangedBy::Restart)
            .collect();
        let expected = [
            "workers",
            "unix_socket_mode",
            "so_reuseport",
            "takeover_socket",
        ];
        assert_eq!(fixed, expected);
        for setting in SETTINGS
            .iter()
            .filter(|one| Config::changed_by(one.key) == ChangedBy::Restart)
        {
            let value = match setting.kind {
                ValueForm::Choice(words) => words.last().copied().unwrap_or_default(),
                _ => other(setting),
            };
            let pairs = [("upstream", "h:1"), (setting.key, value)];
            let Ok(new) = Config::from_pairs(&pairs) else {
                continue;
            };
            assert!(usual.following(&new) == usual, "{}", setting.key);
        }
    }

    #[test]
    fn what_pools_need_cannot_be_taken_from_them() {
        let pooled = config(&[("pool_mode", "auto")]);
        assert!(pooled.pool_contradiction().is_none());
        let off = pooled.following_one(&config(&[("mode", "off")]), "mode");
        let found = off.pool_contradiction();
        assert_eq!(
            found.map(|(setting, expected)| (setting.key, expected)),
            Some(("mode", "convert, because of pool_mode = auto"))
        );
        assert!(config(&[("mode", "off")]).pool_contradiction().is_none());
    }
}
