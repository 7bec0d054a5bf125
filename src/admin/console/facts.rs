//! What the console's tables are made of: what is known of the proxy at one moment.

use super::halted::Halted;
use crate::admin::Snapshot;
use crate::metrics::Passed;
use crate::statement::shapes::ShapeFacts;
use crate::statement::switches::Switches;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What was counted for one database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Clients that have come.
    pub clients: u64,
    /// Simple queries received.
    pub queries: u64,
    /// Those of them that were run as prepared statements.
    pub converted: u64,
    /// What they have executed by the extended protocol.
    pub executes: u64,
    /// Transactions that they have begun.
    pub transactions: u64,
    /// Microseconds that those queries took which were timed, and batches of the extended protocol.
    pub micros: u64,
    /// Microseconds that their transactions took, those of which each is a query included.
    pub xact_micros: u64,
    /// Microseconds that they have waited for server connections of pools.
    pub waited: u64,
    /// Statements that they have prepared.
    pub parses: u64,
    /// Statements that the proxy has prepared for them.
    pub prepared: u64,
    /// Portals that they have bound.
    pub binds: u64,
    /// Bytes received from clients.
    pub received: u64,
    /// Bytes received from servers for them.
    pub sent: u64,
}

impl Totals {
    /// Adds what others have counted.
    pub const fn add(&mut self, other: &Self) {
        self.clients += other.clients;
        self.queries += other.queries;
        self.converted += other.converted;
        self.executes += other.executes;
        self.transactions += other.transactions;
        self.micros += other.micros;
        self.xact_micros += other.xact_micros;
        self.waited += other.waited;
        self.parses += other.parses;
        self.prepared += other.prepared;
        self.binds += other.binds;
        self.received += other.received;
        self.sent += other.sent;
    }

    /// What was counted since `earlier`, for each second of so many; of the microseconds, those of
    /// each query or transaction.
    #[must_use]
    pub const fn rate(&self, earlier: &Self, seconds: u64) -> Self {
        const fn rate(now: u64, before: u64, seconds: u64) -> u64 {
            match now.saturating_sub(before).checked_div(seconds) {
                Some(rate) => rate,
                None => 0,
            }
        }
        let executes = self.executes.saturating_sub(earlier.executes);
        let timed = self.queries.saturating_sub(earlier.queries) + executes;
        let transactions = self.transactions.saturating_sub(earlier.transactions);
        Self {
            clients: rate(self.clients, earlier.clients, seconds),
            queries: rate(self.queries, earlier.queries, seconds),
            converted: rate(self.converted, earlier.converted, seconds),
            executes: rate(self.executes, earlier.executes, seconds),
            transactions: rate(self.transactions, earlier.transactions, seconds),
            micros: rate(self.micros, earlier.micros, timed),
            xact_micros: rate(self.xact_micros, earlier.xact_micros, transactions),
            waited: rate(self.waited, earlier.waited, seconds),
            parses: rate(self.parses, earlier.parses, seconds),
            prepared: rate(self.prepared, earlier.prepared, seconds),
            binds: rate(self.binds, earlier.binds, seconds),
            received: rate(self.received, earlier.received, seconds),
            sent: rate(self.sent, earlier.sent, seconds),
        }
    }
}

/// What was counted, by database.
pub type Counted = BTreeMap<String, Totals>;

/// What a client or a server connection is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerState {
    /// Of a client: the server has not let it in yet.
    LoggingIn,
    /// Of a client: it is logged in. Of a server connection: it belongs to a client.
    Active,
    /// Of a server connection: it waits for a client.
    Idle,
    /// Of a server connection: what a client has left is taken away.
    Tested,
}

/// What a client [waits for](Peer::waits_for) that has no server connection and wants one.
pub const WAITS_FOR_POOL: &str = "pool";

/// One client, or one server connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// A client's number, in the log and for `KILL_CLIENT`; zero for a server connection.
    pub id: u64,
    /// What it is at the moment.
    pub standing: PeerState,
    /// The user that its startup packet names.
    pub user: String,
    /// The database that it names.
    pub database: String,
    /// The name of the application in it.
    pub application: String,
    /// It wants to replicate.
    pub replicates: bool,
    /// Whom it is to, unless it is a Unix socket.
    pub peer: Option<SocketAddr>,
    /// By which address of this machine.
    pub local: Option<SocketAddr>,
    /// When it was opened, in seconds since 1970.
    pub since: u64,
    /// When it, or the client of a server connection, last sent something, in the same way; when it
    /// was opened if nobody has.
    pub heard: u64,
    /// What it is encrypted by.
    pub tls: Option<String>,
    /// How it is called, among those of its kind.
    pub name: String,
    /// How its counterpart is called, if it has one.
    pub link: Option<String>,
    /// The process of the server's.
    pub process: Option<u32>,
    /// It is closed as soon as it has no client.
    pub closes: bool,
    /// The proxy's statements that the server holds on it.
    pub statements: usize,
    /// The server's memory that these are estimated to take, in bytes.
    pub statement_bytes: usize,
    /// How long a client waits by now for a server connection of its pool, in microseconds.
    pub waiting: u64,
    /// What a client waits for.
    pub waits_for: &'static str,
    /// What was counted of a client.
    pub totals: Totals,
}

/// Clients of one user that want to log in to one database and wait for a server connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLogins {
    /// The database that they name.
    pub database: String,
    /// As whom the server knows them.
    pub user: String,
    /// How many there are.
    pub count: usize,
    /// How long the first has waited.
    pub longest: Duration,
}

/// A setting as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFacts {
    /// Its key in a file.
    pub key: &'static str,
    /// Its value, as it would be written.
    pub value: String,
    /// Its default.
    pub default: Option<&'static str>,
    /// It can be changed while the proxy runs.
    pub is_changeable: bool,
}

/// Where a database leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The hosts, or directories, of its servers, with commas between them.
    pub hosts: String,
    /// The port of the first of them.
    pub port: u16,
    /// What it is called there, unless that is what clients call it.
    pub dbname: Option<String>,
    /// As whom the proxy logs in, unless that is the client's user.
    pub user: Option<String>,
    /// The most server connections of one user; `None` for any number.
    pub pool: Option<usize>,
    /// Clients give theirs back while they are idle.
    pub gives_back: bool,
    /// How many of one user there are also when nobody needs them.
    pub least: usize,
    /// How many more there may be once somebody has waited for long.
    pub reserve: usize,
    /// The most of all users together; zero means any.
    pub most: usize,
    /// The most clients; zero means any.
    pub clients: usize,
}

/// What holds for one user and not for all; nothing where that is as for others.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnLimits {
    /// The most server connections to each database.
    pub pool: Option<usize>,
    /// How many more there may be once somebody has waited for long.
    pub reserve: Option<usize>,
    /// Clients give theirs back while they are idle.
    pub gives_back: Option<bool>,
    /// The most to all databases together; zero means any.
    pub most: Option<usize>,
    /// The most clients; zero means any.
    pub clients: Option<usize>,
}

/// What is known of the proxy at one moment. What a table does not need may be missing.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What is counted, and what the system knows.
    pub snapshot: Snapshot,
    /// Where databases lead that have a name of their own, by that.
    pub leads: BTreeMap<String, Lead>,
    /// Where all others lead, if they lead somewhere.
    pub fallback: Option<Lead>,
    /// The most warm connections of one identity.
    pub pool_size: usize,
    /// The most server connections of one user to all databases, and the most clients; zero means
    /// any.
    pub most_of_user: [usize; 2],
    /// The users of whom something else holds, with that.
    pub limits: BTreeMap<String, OwnLimits>,
    /// The age in seconds at which a connection is not kept any more; zero for any.
    pub server_lifetime: u64,
    /// The most clients at once.
    pub max_clients: usize,
    /// The instances that cancel requests are passed on to, this one perhaps among them: the host,
    /// or the path of a socket, and the port, which a path has not.
    pub instances: Vec<(String, Option<u16>)>,
    /// What the settings make advisable to know.
    pub warnings: Vec<&'static str>,
    /// The settings.
    pub settings: Vec<SettingFacts>,
    /// The clients.
    pub clients: Vec<Peer>,
    /// The server connections.
    pub servers: Vec<Peer>,
    /// Who is at the console.
    pub guests: Vec<Peer>,
    /// What was counted since the start, by database.
    pub counted: Counted,
    /// Who waits to be logged in, and is no client yet.
    pub logins: Vec<WaitingLogins>,
    /// What was counted by the begin and by the end of the last whole period, and its seconds.
    pub period: (Counted, Counted, u64),
    /// What is known of each shape.
    pub shapes: Vec<ShapeFacts>,
    /// What is paused or disabled.
    pub halted: Arc<Halted>,
    /// What is switched off.
    pub switches: Arc<Switches>,
    /// The processes that were taken over from, and have clients.
    pub before: Vec<u32>,
    /// What is passed through most, as far as was noted.
    pub passed: Vec<Passed>,
    /// The bytes that shapes and statements take.
    pub shape_bytes: usize,
}
