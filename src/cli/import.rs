//! `import`: print the configuration that says what a pgbouncer.ini says, and what it cannot say.

mod connection;
mod keys;
mod lines;
mod protocols;
mod table;
mod users;
mod values;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::config::settings::{
    CLIENT_TLS_PROTOCOLS, DATABASE_AUTH_DBNAME, DATABASE_AUTH_USER, DATABASE_MAX_CLIENTS,
    DATABASE_MAX_CONNECTIONS, DATABASE_MIN_POOL_SIZE, DATABASE_POOL_SIZE,
    DATABASE_RESERVE_POOL_SIZE, DATABASE_UPSTREAM, PEERS,
};
use crate::config::{Config, FALLBACK, SETTINGS, Setting, TableKind, ValueForm};
use crate::config::{WrittenTable, show_tables};
use keys::{ASKERS, DEFAULTS, OF_DATABASES, OTHERWISE, RENAMED, SAME};
use lines::{Entry, entries};
use protocols::{of_clients, of_servers};
use table::{Table, add, address, are_paired, is_unbounded, said, servers};
use values::{is_accepted, items};

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The configuration file of PgBouncer.
    file: PathBuf,
}

impl Import {
    /// Prints a configuration for the file, and in comments what has no equivalent.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(&self.file);
        let text = text.with_context(|| format!("cannot read {}", self.file.display()))?;
        super::print(&translate(&text, &self.file))?;
        Ok(())
    }
}

/// What a database may have of server connections and clients, by the same names.
const SIZES: [Setting; 5] = [
    DATABASE_MIN_POOL_SIZE,
    DATABASE_POOL_SIZE,
    DATABASE_RESERVE_POOL_SIZE,
    DATABASE_MAX_CONNECTIONS,
    DATABASE_MAX_CLIENTS,
];

/// Names that these have had, and have.
const OLD_SIZES: [(&str, &str); 1] = [("reserve_pool", "reserve_pool_size")];

/// Modes of PgBouncer's pools.
const SESSION: &str = "session";
const TRANSACTION: &str = "transaction";

/// Where users are asked for who come to a database of which nothing is said.
const USUAL: &str = "postgres";
const IN_POSTGRES: &str = "[pgbouncer] auth_query runs in the database postgres for clients of \
    databases that have no table, and not in theirs: what it calls has to be there, or in \
    auth_dbname";

/// What is said of a password.
const HAS_PASSWORD: &str = "has a password, which is not shown: write it in the table, password = \
    \"…\", or in auth_file, in a line for the user";
const HAS_LOST_PASSWORD: &str = "has a password and no user: write it in auth_file, in a line for \
    each user";

/// Where the server listens if nothing else is said.
const SERVER_PORT: &str = "5432";

/// Where PgBouncer listens if nothing else is said.
const PORT: &str = "6432";
const SOCKETS: &str = "/tmp";

/// What becomes of a file.
#[derive(Default)]
struct Translation {
    settings: Vec<(&'static str, String)>,
    /// What has no equivalent, and why. No value is shown, because it may be a password.
    notes: Vec<String>,
    databases: Vec<WrittenTable>,
    users: Vec<WrittenTable>,
    addresses: Vec<String>,
    port: Option<String>,
    /// Databases that do not say otherwise give their connections back.
    is_pooled: bool,
    socket_directory: Option<String>,
}

/// The configuration that says what `text` says.
fn translate(text: &str, file: &Path) -> String {
    let all = entries(text, file);
    // The databases come before what holds for them.
    let said = |key: &str| {
        let is_it = |entry: &&Entry| entry.section == "pgbouncer" && entry.key == key;
        all.iter().rfind(is_it).map(|entry| entry.value.as_str())
    };
    let mut to = Translation {
        is_pooled: said("pool_mode") == Some(TRANSACTION),
        socket_directory: said("unix_socket_dir").map(str::to_owned),
        ..Translation::default()
    };
    for entry in &all {
        match entry.section.as_str() {
            "databases" => to.database(entry),
            "pgbouncer" => to.setting(entry),
            "peers" => to.peer(entry),
            "users" => to.user(entry),
            _ => to.note(entry, "has no equivalent"),
        }
    }
    to.addresses();
    to.pools();
    to.server();
    to.defaults();
    to.authentication();
    to.render()
}

impl Translation {
    fn note(&mut self, entry: &Entry, why: &str) {
        let Entry {
            place,
            section,
            key,
            ..
        } = entry;
        self.notes.push(match section.is_empty() {
            true => format!("{place}: {key} {why}"),
            false => format!("{place}: [{section}] {key} {why}"),
        });
    }

    fn set(&mut self, key: &'static str, value: &str) {
        self.settings.retain(|(known, _)| *known != key);
        self.settings.push((key, value.to_owned()));
    }

    fn setting(&mut self, entry: &Entry) {
        match entry.key.as_str() {
            "listen_addr" => {
                let all = entry.value.split(',').map(str::trim);
                self.addresses = all
                    .filter(|one| !one.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            "listen_port" => match entry.value.parse::<u16>() {
                Ok(1..) => self.port = Some(entry.value.clone()),
                _ => self.note(entry, "is not a port"),
            },
            "client_tls_protocols" => self.protocols(entry),
            "server_tls_protocols" => {
                if let Some(why) = of_servers(&entry.value) {
                    self.note(entry, why);
                }
            }
            "unix_socket_dir" => {}
            "pool_mode" => {
                if let Some(mode) = self.pool_mode(entry, &entry.value)
                    && mode != SESSION
                {
                    self.set("pool_mode", mode);
                }
            }
            key => self.usual(entry, key),
        }
    }

    /// The versions of TLS that clients may speak.
    fn protocols(&mut self, entry: &Entry) {
        let (ours, why) = of_clients(&entry.value);
        if let Some(ours) = ours {
            self.set(CLIENT_TLS_PROTOCOLS.key, ours);
        }
        if let Some(why) = why {
            self.note(entry, why);
        }
    }

    /// A line of `[peers]`: another instance.
    fn peer(&mut self, entry: &Entry) {
        let pairs = connection::pairs(&entry.value);
        let value = |name: &str| connection::value(&pairs, name);
        let Some(host) = value("host").filter(|host| !host.is_empty()) else {
            return self.note(entry, "has no host");
        };
        let peer = address(host, value("port").unwrap_or(PORT));
        let before = self.settings.iter().find(|(key, _)| *key == PEERS.key);
        let all = before.map_or_else(|| peer.clone(), |(_, all)| format!("{all},{peer}"));
        self.set(PEERS.key, &all);
    }

    /// Where PgBouncer has its socket.
    fn directory(&self) -> &str {
        let said = self.socket_directory.as_deref();
        said.filter(|it| !it.is_empty()).unwrap_or(SOCKETS)
    }

    /// What PgBouncer's mode is here, if it is anything.
    fn pool_mode(&mut self, entry: &Entry, theirs: &str) -> Option<&'static str> {
        match theirs {
            SESSION => Some(SESSION),
            TRANSACTION => {
                let why = "transaction is auto here: a client that has left something in its \
                           session keeps its server connection, so that a pool may have to be \
                           larger";
                self.note(entry, why);
                Some("auto")
            }
            _ => {
                self.note(entry, "has a mode that has no equivalent");
                None
            }
        }
    }

    /// A setting that is here, too, maybe by another name.
    fn usual(&mut self, entry: &Entry, key: &str) {
        let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == key);
        let name = match renamed {
            Some((_, ours)) => ours,
            None if SAME.contains(&key) => key,
            None => {
                let known = OTHERWISE.iter().find(|(theirs, _)| *theirs == key);
                let why = known.map_or("has no equivalent", |(_, why)| why);
                return self.note(entry, why);
            }
        };
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == name) else {
            return self.note(entry, "has no equivalent");
        };
        let value = match (setting.kind, entry.value.as_str()) {
            (ValueForm::Switch, "0") => "off",
            (ValueForm::Switch, "1") => "on",
            (_, value) => value,
        };
        // There it means that a connection is used once, and here that it may be of any age.
        let is_opposite = key == "server_lifetime" && value == "0";
        if is_accepted(setting, value) && !is_opposite {
            self.set(setting.key, value);
        } else {
            self.note(entry, "has a value that has no equivalent");
        }
    }

    /// A line of `[databases]`.
    fn database(&mut self, entry: &Entry) {
        let pairs = connection::pairs(&entry.value);
        let value = |name: &str| connection::value(&pairs, name);
        let name = entry.key.as_str();
        // PgBouncer looks for the server's socket where it has its own.
        let host = value("host").unwrap_or_else(|| self.directory());
        let port = value("port").unwrap_or(SERVER_PORT);
        let (servers, are_paired) = (servers(host, port), are_paired(host, port));
        let has_choice = servers.len() > 1;
        let mut database = Table::new(TableKind::Database, name);
        database.set("upstream", servers);
        let one = |text: &str| vec![text.to_owned()];
        if let Some(dbname) = value("dbname").filter(|dbname| *dbname != name) {
            database.set("dbname", one(dbname));
        }
        if let Some(user) = value("user") {
            database.set("user", one(user));
        }
        for key in ASKERS {
            if let Some(text) = value(key).filter(|text| !text.is_empty()) {
                database.set(key, one(text));
            }
        }
        let mode = value("pool_mode").and_then(|mode| self.pool_mode(entry, mode));
        if let Some(mode) = mode {
            database.set("pool_mode", one(mode));
        }
        let sizes = SIZES.iter().filter_map(|setting| {
            let old = OLD_SIZES.iter().find(|(_, new)| *new == setting.key);
            let size = value(setting.key).or_else(|| value(old?.0));
            let size = size.filter(|size| is_accepted(setting, size))?;
            Some((setting.key, size))
        });
        let sizes: Vec<_> = sizes.collect();
        for (key, size) in &sizes {
            database.set(key, one(size));
        }
        let is_balanced = value("load_balance_hosts") != Some("disable");
        if has_choice && is_balanced {
            database.set("load_balance_hosts", one("random"));
        }
        self.databases.retain(|known| known.name != name);
        self.databases.push(database.0);
        if value("password").is_some() {
            let why = value("user").map_or(HAS_LOST_PASSWORD, |_| HAS_PASSWORD);
            self.note(entry, why);
        }
        let known = ["host", "port", "dbname", "user", "password", "pool_mode"];
        for (key, why) in OF_DATABASES {
            if value(key).is_some() {
                self.note(entry, &format!("{key} {why}"));
            }
        }
        let is_other = |key: &&str| {
            let is_said = ASKERS.contains(key) || OF_DATABASES.iter().any(|(said, _)| said == key);
            let is_said = is_said || *key == "load_balance_hosts" && (!has_choice || !is_balanced);
            let is_size = |said: &&str| OLD_SIZES.contains(&(key, said)) || said == key;
            let is_said = is_said || sizes.iter().any(|(said, _)| is_size(said));
            !known.contains(key) && !is_said
        };
        let others = pairs.iter().map(|(key, _)| key.as_str());
        let others: Vec<_> = others.filter(is_other).collect();
        if !others.is_empty() {
            let why = format!("has what has no equivalent: {}", others.join(", "));
            self.note(entry, &why);
        }
        if !are_paired {
            self.note(entry, "has neither one port nor one for each host");
        }
        if has_choice && is_balanced {
            self.note(entry, "takes its hosts at random, and not in turn");
        }
    }

    fn addresses(&mut self) {
        let port = self.port.as_deref().unwrap_or(PORT);
        let listened = |host: &String| match host.as_str() {
            "*" => address("0.0.0.0", port),
            host => address(host, port),
        };
        let mut all: Vec<_> = self.addresses.iter().map(listened).collect();
        if self.addresses.iter().any(|host| host == "*") {
            let note = format!(
                "[pgbouncer] listen_addr * is IPv4 alone here: with [::]:{port} in its place \
                 listen takes IPv6, too"
            );
            self.notes.push(note);
        }
        // PgBouncer's socket is there also where nothing is said of it, and then alone.
        if self.socket_directory.as_deref() != Some("") {
            all.push(format!("{}/.s.PGSQL.{port}", self.directory()));
        }
        if !all.is_empty() {
            self.set("listen", &all.join(","));
        }
    }

    /// There the usual size of pools is for those of sessions, too.
    fn pools(&mut self) {
        let usual = self.settings.iter();
        let usual = usual.filter(|(key, _)| *key == "default_pool_size");
        for (_, usual) in usual {
            for table in &mut self.databases {
                if is_unbounded(table, self.is_pooled) {
                    add(table, DATABASE_POOL_SIZE, usual);
                }
            }
        }
    }

    /// What PgBouncer does that is said nowhere.
    fn defaults(&mut self) {
        let mut tables = self.databases.iter();
        if tables.any(|table| is_unbounded(table, self.is_pooled))
            || self.databases.is_empty() && !self.is_pooled
        {
            let note = "[pgbouncer] pool_mode session (its default): there a user has no more than \
                        default_pool_size (20 by default) server connections to a database, and \
                        further clients wait; here each client has one, unless the table of its \
                        database has a pool_size";
            self.notes.push(note.to_owned());
        }
        let others = DEFAULTS.iter().filter(|(_, ours)| !self.has(ours));
        let others: Vec<_> = others.map(|(said, _)| *said).collect();
        if !others.is_empty() {
            let note = format!(
                "[pgbouncer] has defaults that are others here: {}",
                others.join(", ")
            );
            self.notes.push(note);
        }
    }

    /// A table for all databases that says nothing but where they are is a setting here.
    fn server(&mut self) {
        if let [only] = &self.databases[..]
            && only.name == FALLBACK
            && let [(key, written)] = &only.keys[..]
            && let [server] = &written.items[..]
            && key.key == DATABASE_UPSTREAM.key
        {
            let server = server.clone();
            self.databases.clear();
            self.set("upstream", &server);
        }
        let tables = self.databases.iter().flat_map(|database| &database.keys);
        let of_tables = tables.filter(|(key, _)| key.key == DATABASE_UPSTREAM.key);
        let mut servers = of_tables.flat_map(|(_, written)| &written.items);
        let upstream = self.settings.iter().find(|(key, _)| *key == "upstream");
        let is_remote = servers.any(|server| !server.starts_with('/'))
            || upstream.is_some_and(|(_, server)| !server.starts_with('/'));
        if !self.has("server_tls_sslmode") && is_remote {
            // PgBouncer's default, which is not ours.
            self.set("server_tls_sslmode", "prefer");
        }
    }

    fn has(&self, key: &str) -> bool {
        self.settings.iter().any(|(known, _)| *known == key)
    }

    fn authentication(&mut self) {
        let mut tables = self.databases.iter();
        let is_asked = |table: &WrittenTable| said(table, &DATABASE_AUTH_USER).is_some();
        let has_asker = self.has("auth_user") || tables.any(is_asked);
        let is_by_rules = self.settings.contains(&("auth_type", "hba".to_owned()));
        for key in ["auth_hba_file", "auth_ident_file"] {
            if self.has(key) && !is_by_rules {
                self.settings.retain(|(known, _)| *known != key);
                self.notes.push(format!(
                    "[pgbouncer] {key} is left out: PgBouncer reads it for auth_type = hba only"
                ));
            }
        }
        if !self.has("auth_type") && (self.has("auth_file") || has_asker) {
            // PgBouncer's default, which is not ours.
            self.set("auth_type", "md5");
        }
        if self.has("auth_dbname") {
            return;
        }
        let is_usual = self.has("auth_user");
        let mut notes = Vec::new();
        // There each database is asked about its own clients.
        for table in &mut self.databases {
            let is_silent = said(table, &DATABASE_AUTH_DBNAME).is_none();
            match is_silent && (is_usual || is_asked(table)) {
                true if table.name == FALLBACK => notes.push(IN_POSTGRES.to_owned()),
                true => add(table, DATABASE_AUTH_DBNAME, &table.name.clone()),
                false => {}
            }
        }
        if is_usual {
            match self.databases.first() {
                None => notes.push(IN_POSTGRES.to_owned()),
                // The console's users are asked for somewhere, too.
                Some(first) => {
                    let is_there = |it: &WrittenTable| [FALLBACK, USUAL].contains(&&*it.name);
                    let first = first.name.clone();
                    if !self.databases.iter().any(is_there) {
                        self.set("auth_dbname", &first);
                    }
                }
            }
        }
        self.notes.extend(notes);
    }

    fn render(self) -> String {
        let mut out = String::new();
        for setting in SETTINGS {
            let value = self.settings.iter().find(|(key, _)| *key == setting.key);
            if let Some((_, value)) = value {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    out,
                    "{} = {}",
                    setting.key,
                    setting.toml(&items(setting, value))
                );
            }
        }
        out += &show_tables(&self.databases, |_| String::new());
        out += &show_tables(&self.users, |_| String::new());
        if let Err(error) = Config::from_text(&out) {
            let _ = writeln!(out, "# to be completed: {error}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "# {note}");
        }
        out
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
