//! Tables of databases that are made of the lines of a pgbouncer.ini.

use crate::config::settings::{DATABASE_KEYS, DATABASE_POOL_MODE, DATABASE_POOL_SIZE, Setting};
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

/// Has a table say this, too.
pub(super) fn add(table: &mut WrittenDatabase, key: Setting, text: &str) {
    let origin = Source::Default;
    let items = vec![text.to_owned()];
    table.keys.push((key, Written { items, origin }));
}

/// What a table says of this.
pub(super) fn said<'t>(table: &'t WrittenDatabase, key: &Setting) -> Option<&'t Written> {
    let found = table.keys.iter().find(|(known, _)| known.key == key.key);
    found.map(|(_, written)| written)
}

/// Whether a user has one server connection for each client of this database, in any number, if
/// clients of databases that do not say so give theirs back or not.
pub(super) fn is_unbounded(table: &WrittenDatabase, gives_back: bool) -> bool {
    let mode = said(table, &DATABASE_POOL_MODE);
    let is_session = mode.map_or(!gives_back, |mode| mode.items == ["session"]);
    is_session && said(table, &DATABASE_POOL_SIZE).is_none()
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
