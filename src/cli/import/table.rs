//! Tables of databases that are made of the lines of a pgbouncer.ini.

use crate::config::settings::DATABASE_KEYS;
use crate::config::{Source, Written, WrittenDatabase};

/// A table that is being made.
pub(super) struct Table(pub(super) WrittenDatabase);

impl Table {
    pub(super) fn new(name: &str) -> Self {
        Self(WrittenDatabase {
            name: name.to_owned(),
            place: Source::Default,
            keys: Vec::new(),
        })
    }

    pub(super) fn set(&mut self, key: &str, items: Vec<String>) {
        if let Some(setting) = DATABASE_KEYS.iter().find(|known| known.key == key) {
            let origin = Source::Default;
            self.0.keys.push((*setting, Written { items, origin }));
        }
    }
}

/// The addresses of the hosts of a line, which are separated by commas.
pub(super) fn servers(hosts: &str, port: &str) -> Vec<String> {
    let hosts = hosts.split(',').map(str::trim);
    let address = |host: &str| match host {
        path if path.starts_with('/') => format!("{path}/.s.PGSQL.{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    };
    let mut servers: Vec<String> = Vec::new();
    for server in hosts.map(address) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}
