//! The tables that `PgBouncer` has, with its columns first and in its order, because there are
//! programs that read them. What the proxy does not count is zero or NULL.
//!
//! Names, types and order are those of `admin.c` and `stats.c` of `PgBouncer` 1.25.

mod columns;
mod figures;
mod sockets;

use super::facts::{Facts, Lead, Peer, PeerState, WAITS_FOR_POOL, WaitingLogins};
use super::value::{Cell, TableColumn, int4, numeric, text};
use super::view::{Needs, View};
use columns::{
    CLIENTS, CONFIG, DATABASES, DNS_HOSTS, DNS_ZONES, FDS, MEM, PEER_POOLS, PEERS, POOLS, SERVERS,
    SOCKETS, STATS, STATS_AVERAGES, STATS_TOTALS, USERS,
};
use figures::{stats, stats_averages, stats_totals, totals};
use sockets::{active_sockets, clients, servers, sockets};
use std::collections::BTreeMap;

/// Microseconds.
const SECOND: u64 = 1_000_000;

/// How long the clients of a database keep their server connections.
fn pool_mode(lead: Option<&Lead>) -> &'static str {
    mode(lead.is_some_and(|lead| lead.gives_back))
}

/// How `pool_mode` is called, if clients give their connections back or not.
const fn mode(gives_back: bool) -> &'static str {
    match gives_back {
        true => "auto",
        false => "session",
    }
}

/// How long the clients of this user keep those to this database.
fn mode_of(facts: &Facts, lead: Option<&Lead>, user: &str) -> &'static str {
    let of_user = facts.limits.get(user).and_then(|it| it.gives_back);
    of_user.map_or_else(|| pool_mode(lead), mode)
}

/// Where the database of this name leads.
fn lead_of<'f>(facts: &'f Facts, name: &str) -> Option<&'f Lead> {
    facts.leads.get(name).or(facts.fallback.as_ref())
}

/// The tables.
pub(super) static VIEWS: [View; 21] = [
    view("version", Needs::Nothing, &[text("version")], version),
    view("stats", Needs::Sockets, STATS, stats),
    view("stats_totals", Needs::Sockets, STATS_TOTALS, stats_totals),
    view(
        "stats_averages",
        Needs::Sockets,
        STATS_AVERAGES,
        stats_averages,
    ),
    view(
        "totals",
        Needs::Sockets,
        &[text("name"), numeric("value")],
        totals,
    ),
    view("pools", Needs::Sockets, POOLS, pools),
    view("clients", Needs::Sockets, CLIENTS, clients),
    view("servers", Needs::Sockets, SERVERS, servers),
    view("sockets", Needs::Sockets, SOCKETS, sockets),
    view("active_sockets", Needs::Sockets, SOCKETS, active_sockets),
    view("databases", Needs::Sockets, DATABASES, databases),
    view("users", Needs::Sockets, USERS, users),
    view(
        "lists",
        Needs::Sockets,
        &[text("list"), int4("items")],
        lists,
    ),
    view("config", Needs::Nothing, CONFIG, config),
    view(
        "state",
        Needs::Nothing,
        &[text("key"), text("value")],
        state,
    ),
    view("mem", Needs::Shapes, MEM, mem),
    view("fds", Needs::Nothing, FDS, nothing),
    view("dns_hosts", Needs::Nothing, DNS_HOSTS, nothing),
    view("dns_zones", Needs::Nothing, DNS_ZONES, nothing),
    view("peers", Needs::Nothing, PEERS, peers),
    view("peer_pools", Needs::Nothing, PEER_POOLS, nothing),
];

const fn view(
    name: &'static str,
    needs: Needs,
    columns: &'static [TableColumn],
    rows: fn(&Facts) -> Vec<Vec<Cell>>,
) -> View {
    View {
        name,
        needs,
        columns,
        rows,
    }
}

/// Of what there is nothing in this proxy.
fn nothing(_: &Facts) -> Vec<Vec<Cell>> {
    Vec::new()
}

/// The instances that `peers` names, numbered as they stand there. Requests that are passed on
/// have no pool.
fn peers(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |(at, (host, port)): (usize, &(String, Option<u16>))| {
        vec![
            (at + 1).into(),
            host.clone().into(),
            port.map_or(Cell::Null, |port| u32::from(port).into()),
            Cell::Null,
        ]
    };
    facts.instances.iter().enumerate().map(row).collect()
}

fn version(facts: &Facts) -> Vec<Vec<Cell>> {
    vec![vec![
        format!("pgautoprep {}", facts.snapshot.version).into(),
    ]]
}

/// How many clients and server connections there are of one user in one database.
#[derive(Debug, Default, Clone, Copy)]
struct Pool {
    clients: u64,
    /// Clients without a server connection that want one, or are not let in yet.
    waiting: u64,
    logging_in: u64,
    active: u64,
    idle: u64,
    tested: u64,
    /// How long the client waits that has waited longest, in microseconds.
    longest: u64,
}

impl Pool {
    fn count<'a>(sockets: impl Iterator<Item = &'a Peer>, is_client: bool) -> Self {
        let mut pool = Self::default();
        for socket in sockets {
            let count = match (is_client, socket.standing) {
                (true, PeerState::LoggingIn) => &mut pool.waiting,
                (true, _) if socket.waits_for == WAITS_FOR_POOL => &mut pool.waiting,
                (true, _) => &mut pool.clients,
                (false, PeerState::Idle) => &mut pool.idle,
                (false, PeerState::Tested) => &mut pool.tested,
                // It is counted with its client.
                (false, PeerState::LoggingIn) => &mut pool.logging_in,
                (false, PeerState::Active) => &mut pool.active,
            };
            *count += 1;
            pool.longest = pool.longest.max(socket.waiting);
        }
        pool
    }
}

/// The sockets by what `key` says of them.
fn grouped<K: Ord>(sockets: &[Peer], key: impl Fn(&Peer) -> K) -> BTreeMap<K, Vec<&Peer>> {
    let mut groups = BTreeMap::<K, Vec<&Peer>>::new();
    for socket in sockets {
        groups.entry(key(socket)).or_default().push(socket);
    }
    groups
}

fn pools(facts: &Facts) -> Vec<Vec<Cell>> {
    let who = |socket: &Peer| (socket.database.clone(), socket.user.clone());
    let (clients, servers) = (grouped(&facts.clients, who), grouped(&facts.servers, who));
    let guests = grouped(&facts.guests, |guest| guest.user.clone());
    let mut names: Vec<_> = clients.keys().chain(servers.keys()).cloned().collect();
    let waiting = |login: &WaitingLogins| (login.database.clone(), login.user.clone());
    names.extend(facts.logins.iter().map(waiting));
    names.sort_unstable();
    names.dedup();
    let members = |of: &BTreeMap<_, Vec<&Peer>>, name, is_client| {
        let members = of.get(name).into_iter().flatten().copied();
        Pool::count(members, is_client)
    };
    let mut rows: Vec<_> = names
        .iter()
        .map(|name| {
            let (mut clients, servers) = (
                members(&clients, name, true),
                members(&servers, name, false),
            );
            for login in facts.logins.iter().filter(|login| waiting(login) == *name) {
                clients.waiting += login.count as u64;
                let longest = u64::try_from(login.longest.as_micros());
                clients.longest = clients.longest.max(longest.unwrap_or(u64::MAX));
            }
            let mode = mode_of(facts, lead_of(facts, &name.0), &name.1);
            pool(name, [clients, servers], mode)
        })
        .collect();
    rows.extend(guests.into_iter().map(|(user, guests)| {
        let clients = Pool::count(guests.into_iter(), true);
        let name = (super::NAMES[0].to_owned(), user);
        pool(&name, [clients, Pool::default()], "statement")
    }));
    rows
}

fn pool(
    (database, user): &(String, String),
    [clients, servers]: [Pool; 2],
    mode: &'static str,
) -> Vec<Cell> {
    let counts = [
        clients.clients,
        clients.waiting,
        0,
        0,
        servers.active,
        0,
        0,
        servers.idle,
        0,
        servers.tested,
        servers.logging_in,
        clients.longest / SECOND,
        clients.longest % SECOND,
    ];
    let names = [database.clone().into(), user.clone().into()];
    let counts = counts.into_iter().map(Cell::from);
    let rest = [mode.into(), Cell::Null];
    names.into_iter().chain(counts).chain(rest).collect()
}

fn databases(facts: &Facts) -> Vec<Vec<Cell>> {
    let of = |socket: &Peer| socket.database.clone();
    let (clients, servers) = (grouped(&facts.clients, of), grouped(&facts.servers, of));
    let count =
        |groups: &BTreeMap<String, Vec<&Peer>>, name: &str| groups.get(name).map_or(0, Vec::len);
    let met = facts.counted.keys().chain(clients.keys());
    let met = met.chain(facts.halted.names());
    let mut names: Vec<&String> = met.chain(facts.leads.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let row = |name: &str, lead: Option<&Lead>, counts: [usize; 2], mode: &'static str| {
        let shown = |text: Option<&str>| text.map_or(Cell::Null, |text| text.to_owned().into());
        let port = lead.map_or(0, |lead| lead.port);
        let dbname = lead.and_then(|lead| lead.dbname.as_deref());
        // Clients that keep their connections have as many as there are clients.
        let by_default = lead
            .is_some_and(|lead| lead.gives_back)
            .then_some(facts.pool_size);
        let pool = lead.and_then(|lead| lead.pool).or(by_default);
        vec![
            name.to_owned().into(),
            shown(lead.map(|lead| lead.hosts.as_str())),
            u32::from(port).into(),
            shown(Some(dbname.unwrap_or(name))),
            shown(lead.and_then(|lead| lead.user.as_deref())),
            pool.unwrap_or(0).into(),
            lead.map_or(0, |lead| lead.least).into(),
            lead.map_or(0, |lead| lead.reserve).into(),
            facts.server_lifetime.into(),
            mode.into(),
            Cell::Null,
            lead.map_or(0, |lead| lead.most).into(),
            counts[0].into(),
            lead.map_or(0, |lead| lead.clients).into(),
            counts[1].into(),
            u64::from(facts.halted.is_paused(name.as_bytes())).into(),
            u64::from(facts.halted.is_disabled(name.as_bytes())).into(),
        ]
    };
    let rows = names.into_iter().map(|name| {
        let counts = [count(&servers, name), count(&clients, name)];
        let lead = lead_of(facts, name);
        row(name, lead, counts, pool_mode(lead))
    });
    let guests = [0, facts.guests.len()];
    let console = row(super::NAMES[0], None, guests, "statement");
    rows.chain([console]).collect()
}

fn users(facts: &Facts) -> Vec<Vec<Cell>> {
    let of = |socket: &Peer| socket.user.clone();
    let (clients, servers) = (grouped(&facts.clients, of), grouped(&facts.servers, of));
    let guests = grouped(&facts.guests, of);
    let count =
        |groups: &BTreeMap<String, Vec<&Peer>>, name: &String| groups.get(name).map_or(0, Vec::len);
    let mut names: Vec<&String> = clients.keys().chain(guests.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let row = |name: &String| {
        let own = facts.limits.get(name).copied().unwrap_or_default();
        let shown = |text: Option<String>| text.map_or(Cell::Null, Into::into);
        let number = |number: Option<usize>| shown(number.map(|number| number.to_string()));
        let [most, most_clients] = facts.most_of_user;
        vec![
            name.clone().into(),
            number(own.pool),
            number(own.reserve),
            shown(own.gives_back.map(|it| mode(it).to_owned())),
            own.most.unwrap_or(most).into(),
            count(&servers, name).into(),
            own.clients.unwrap_or(most_clients).into(),
            (count(&clients, name) + count(&guests, name)).into(),
        ]
    };
    names.into_iter().map(row).collect()
}

fn lists(facts: &Facts) -> Vec<Vec<Cell>> {
    let used = facts.clients.len() + facts.guests.len();
    let is_new = |client: &&Peer| client.standing == PeerState::LoggingIn;
    let logins: usize = facts.logins.iter().map(|login| login.count).sum();
    let used_servers = facts.servers.len();
    let rows = [
        ("databases", databases(facts).len()),
        ("users", users(facts).len()),
        ("peers", facts.instances.len()),
        ("pools", pools(facts).len()),
        ("peer_pools", 0),
        ("free_clients", facts.max_clients.saturating_sub(used)),
        ("used_clients", used),
        (
            "login_clients",
            facts.clients.iter().filter(is_new).count() + logins,
        ),
        ("free_servers", 0),
        ("used_servers", used_servers),
        ("dns_names", 0),
        ("dns_zones", 0),
        ("dns_queries", 0),
        ("dns_pending", 0),
    ];
    rows.map(|(name, count)| vec![name.into(), count.into()])
        .to_vec()
}

fn config(facts: &Facts) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for setting in &facts.settings {
        let changeable = if setting.is_changeable { "yes" } else { "no" };
        rows.push(vec![
            setting.key.into(),
            setting.value.clone().into(),
            setting.default.into(),
            changeable.into(),
        ]);
    }
    // Under the names that programs look for.
    let known = [
        ("max_client_conn", facts.max_clients),
        ("log_pooler_errors", 0),
    ];
    for (name, value) in known {
        let value = value.to_string();
        rows.push(vec![name.into(), value.into(), Cell::Null, "no".into()]);
    }
    rows
}

/// As in `PgBouncer`, `paused` is about all databases together.
fn state(facts: &Facts) -> Vec<Vec<Cell>> {
    let (active, paused) = match facts.halted.is_all() {
        true => ("no", "yes"),
        false => ("yes", "no"),
    };
    let rows = [("active", active), ("paused", paused), ("suspended", "no")];
    rows.map(|(name, value)| vec![name.into(), value.into()])
        .to_vec()
}

fn mem(facts: &Facts) -> Vec<Vec<Cell>> {
    let shapes = facts.shapes.len();
    let row = |name: &'static str, used: Cell, total: Cell| {
        vec![name.into(), Cell::Null, used, Cell::Null, total]
    };
    let resident = facts.snapshot.process.resident;
    vec![
        row("shapes", shapes.into(), facts.shape_bytes.into()),
        row("process", Cell::Null, resident.into()),
        row(
            "statements_on_servers",
            Cell::Null,
            facts.snapshot.summary.statement_memory().into(),
        ),
    ]
}

#[cfg(test)]
#[path = "bouncer_tests.rs"]
mod tests;
