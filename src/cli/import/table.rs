//! Tables of databases and users that are made of the lines of a pgbouncer.ini.

use crate::config::settings::{
    DATABASE_KEYS, DATABASE_POOL_MODE, DATABASE_POOL_SIZE, Setting, USER_KEYS,
};
use crate::config::{Source, TableKind, Written, WrittenTable};

/// A table that is being made.
pub(super) struct Table(pub(super) WrittenTable);

impl Table {
    pub(super) fn new(kind: TableKind, name: &str) -> Self {
        Self(WrittenTable {
            kind,
            name: name.to_owned(),
            place: Source::Default,
            keys: Vec::new(),
        })
    }

    pub(super) fn set(&mut self, key: &str, items: Vec<String>) {
        let known = match self.0.kind {
            TableKind::Database => DATABASE_KEYS,
            TableKind::User => USER_KEYS,
        };
        if let Some(setting) = known.iter().find(|known| known.key == key) {
            let origin = Source::Default;
            self.0.keys.push((*setting, Written { items, origin }));
        }
    }
}

/// Has a table say this, too.
pub(super) fn add(table: &mut WrittenTable, key: Setting, text: &str) {
    let origin = Source::Default;
    let items = vec![text.to_owned()];
    table.keys.push((key, Written { items, origin }));
}

/// What a table says of this.
pub(super) fn said<'t>(table: &'t WrittenTable, key: &Setting) -> Option<&'t Written> {
    let found = table.keys.iter().find(|(known, _)| known.key == key.key);
    found.map(|(_, written)| written)
}

/// Whether a user has one server connection for each client of this database, in any number, if
/// clients of databases that do not say so give theirs back or not.
pub(super) fn is_unbounded(table: &WrittenTable, gives_back: bool) -> bool {
    let mode = said(table, &DATABASE_POOL_MODE);
    let is_session = mode.map_or(!gives_back, |mode| mode.items == ["session"]);
    is_session && said(table, &DATABASE_POOL_SIZE).is_none()
}

/// The addresses of the hosts of a line, which are separated by commas. So are their ports, unless
/// there is one for all.
pub(super) fn servers(hosts: &str, ports: &str) -> Vec<String> {
    let hosts = hosts.split(',').map(str::trim);
    let ports: Vec<_> = ports.split(',').map(str::trim).collect();
    let last = ports.last().copied().unwrap_or_default();
    let ports = ports.iter().copied().chain(std::iter::repeat(last));
    let mut servers: Vec<String> = Vec::new();
    for server in hosts.zip(ports).map(|(host, port)| address(host, port)) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Whether each host of a line has a port, or one is for all.
pub(super) fn are_paired(hosts: &str, ports: &str) -> bool {
    let count = |text: &str| text.split(',').count();
    [1, count(hosts)].contains(&count(ports))
}

/// Where something listens on this port of a host, or in this directory.
pub(super) fn address(host: &str, port: &str) -> String {
    match host {
        path if path.starts_with('/') => format!("{path}/.s.PGSQL.{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}
