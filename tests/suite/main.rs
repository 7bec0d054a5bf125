//! What the proxy does, seen from outside: by clients, by the server, and by its machine.
//!
//! `PGAUTOPREP_PG_MAJOR` chooses the server's version. `PGAUTOPREP_SHARED_READS` is the proxies'
//! setting of that name, and `PGAUTOPREP_POOL_MODE` that of `pool_mode`, where a test does not
//! choose it. With `PGAUTOPREP_SUITE_CROWD=2` two other clients read beside each body that is
//! compared all the while, with shared reads on its connections, and a third repeats its reads.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

mod harness {
    //! What the tests stand on.
    pub(crate) mod certificates;
    pub(crate) mod client;
    pub(crate) mod cluster;
    pub(crate) mod frames;
    pub(crate) mod login;
    pub(crate) mod matrix;
    pub(crate) mod neighbours;
    pub(crate) mod proxy;
    #[expect(dead_code, reason = "shared with the house, which needs more of it")]
    pub(crate) mod scene;
    #[expect(dead_code, reason = "shared with the house, which needs more of it")]
    pub(crate) mod script;
    pub(crate) mod server;
    pub(crate) mod tls;
    pub(crate) mod upstream;
}

// Literal SQL of every kind, compared with what the server says directly.
mod simple_query;
// What a client writes in other encodings than the proxy's.
mod encodings;
// Errors: every field, in and out of transactions.
mod errors;
// Transactions, savepoints, what happens at commit.
mod transactions;
// Settings, roles and definitions that change between two executions.
mod spans;
mod staleness;
mod stays;
// What a change of the catalog costs those it does not concern.
mod changes;
// What is asked about settings, and what must not be shown.
mod settings;
// What statements do to their session without saying so.
mod hidden;
// Several requests sent before the first is answered.
mod bounds;
mod homeless;
mod limits;
mod pipelining;
mod plans;
mod pooling;
// Rows of many values with functions of time in them.
mod moments;
// What applications write beside a key.
mod applications;
// What partial indexes say of columns that are joined.
mod partial;
// Statements whose plans look alike for some values and are not for others.
mod theorems;
// Literals with the name of their type before them.
mod typed;
// What the server's choice of plans may change, and what it may not.
mod chosen;
// What the proxy asks the server on its own behalf.
mod questions;
// What it does not ask, because that would not pay.
mod accounting;
mod asking;
// What a statement does that its text does not show.
mod unseen;
// IN lists of every length, which share statements.
mod lists;
mod live;
mod live_doors;
mod live_entrances;
mod live_routes;
// What the strings of a list are read as, and which of them an error is about.
mod list_types;
// Rows of VALUES in any number, which share statements.
mod rest;
mod restless;
mod rows;
// The client's own prepared statements, and the extended protocol.
mod extended;
// What frameworks do all day, and how much of it is converted.
mod given;
mod glances;
mod growth;
mod guests;
mod habits;
// The proxy's own database.
mod console;
// What the service manager is told.
mod notify;
// What is logged.
mod logins_unseen;
mod logs;
mod loose;
// What is held back by its orders.
mod pausing;
// What is switched off there.
mod switches;
// The port for operators.
mod http;
mod instruments;
// Many shapes of many tenants, most of which come seldom.
mod tenants;
// Bugs that were, so that they stay gone.
mod regression;
// The set-ups of the manual.
mod recipes;
// Several statements in one query.
mod series;
// Conversations that are legal and rare.
mod wire;
// COPY in both directions and by both protocols.
mod contexts;
mod copy;
// Several servers, and where databases lead.
mod databases;
mod discards;
mod hosts;
// Clients that the proxy lets in by itself.
mod doors;
mod doors_console;
mod doors_hostile;
mod doors_known;
mod doors_lasting;
mod doors_lines;
mod doors_matrix;
mod doors_rows;
mod doors_rules;
mod doors_secrets;
mod doors_tls;
// Logging in: encryption requests, versions, passwords, sockets of every kind.
mod startup;
// Cancel requests reach the one query they are meant for.
mod cancel;
// Clients that leave while their query is in flight.
mod families;
mod inside;
mod lasting;
mod late;
mod late_cancel;
mod leaving;
mod led;
// Which reads may run on other sessions' server connections.
mod near;
mod travel;
// Notices and transactions of reads on others' connections.
mod shared;
// What sessions may have done and still read for each other.
mod alike;
// What others do at the server while reads run on others' connections.
mod others;
// Statements beyond the bound are closed, and come back.
mod eviction;
// More clients than there is room for.
mod crowd;
// Being told to stop.
mod short;
mod shutdown;
// Restarts without loss.
mod takeover;
// Several instances behind one address.
mod peers;
// Peers that do not read.
mod backpressure;
mod bare;
mod begin;
mod berths;
mod blamed;
// Large results and COPY, byte by byte.
mod bulk;
// Server connections that outlive their clients.
mod parked;
mod parting;
mod pooled;
mod waiting;
mod warm;
mod warm_logins;
mod warm_statements;
// Random beginnings of sessions, and whoever comes next on their connections.
mod prefixes;
// What a client costs while it waits.
mod made;
mod memory;
// Peers that send nonsense, stop in the middle, or never come.
mod hostile;
// What one client can make the proxy keep, and spoil for others.
mod stock;
mod strangers;
// TLS with clients, and peers that speak it badly.
mod time_limits;
mod tls;
mod tls_hostile;
mod tls_lasting;
// TLS with the server.
mod tls_server;
// The core without sockets, fed with whatever a client and a server can send.
mod following;
mod fuzz;
