//! Clients and server connections, one a row: by kind, and all together.

use super::SECOND;
use crate::admin::console::facts::{Facts, Peer, PeerState, Totals, WAITS_FOR_POOL};
use crate::admin::console::value::Cell;
use crate::admin::date;

/// Where a buffer is, and how full: nothing of that is known of sockets here.
const POSITIONS: usize = 7;

/// The columns that clients and servers have in common.
fn socket(socket: &Peer, kind: &'static str, state: &'static str) -> Vec<Cell> {
    let address = |address: Option<std::net::SocketAddr>| match address {
        Some(address) => (address.ip().to_canonical().to_string(), address.port()),
        None => ("unix".to_owned(), 0),
    };
    let ((peer, port), (local, local_port)) = (address(socket.peer), address(socket.local));
    vec![
        kind.into(),
        socket.user.clone().into(),
        socket.database.clone().into(),
        if socket.replicates { "yes" } else { "none" }.into(),
        state.into(),
        peer.into(),
        u32::from(port).into(),
        local.into(),
        u32::from(local_port).into(),
        date::text(socket.since).into(),
        date::text(socket.heard).into(),
        (socket.waiting / SECOND).into(),
        (socket.waiting % SECOND).into(),
        u64::from(socket.closes).into(),
        socket.name.clone().into(),
        socket.link.clone().unwrap_or_default().into(),
        socket.process.unwrap_or_default().into(),
        socket.tls.clone().unwrap_or_default().into(),
        socket.application.clone().into(),
        socket.statements.into(),
        socket.id.into(),
    ]
}

/// The clients, with what they have sent, and who is at the console.
pub(super) fn clients(facts: &Facts) -> Vec<Vec<Cell>> {
    let all = facts.clients.iter().chain(&facts.guests);
    all.map(|client| {
        let state = match client.standing {
            PeerState::LoggingIn => "waiting",
            _ if client.waits_for == WAITS_FOR_POOL => "waiting",
            _ => "active",
        };
        let mut row = socket(client, "C", state);
        let Totals {
            queries,
            converted,
            received,
            sent,
            ..
        } = client.totals;
        row.extend([queries, converted, received, sent].map(Cell::from));
        row.push(client.waits_for.into());
        row
    })
    .collect()
}

/// The server connections, with what their statements take.
pub(super) fn servers(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |server: &Peer| {
        let state = match server.standing {
            PeerState::LoggingIn => "new",
            PeerState::Active => "active",
            PeerState::Idle => "idle",
            PeerState::Tested => "tested",
        };
        let mut row = socket(server, "S", state);
        row.push(server.statement_bytes.into());
        row
    };
    facts.servers.iter().map(row).collect()
}

/// All of them, in `PgBouncer`'s words for their states.
pub(super) fn sockets(facts: &Facts) -> Vec<Vec<Cell>> {
    let clients = facts.clients.iter().chain(&facts.guests);
    rows(clients, facts.servers.iter())
}

/// Those on which something is under way. `PgBouncer` shows who has bytes in a buffer; here it is
/// who waits for anybody but the client.
pub(super) fn active_sockets(facts: &Facts) -> Vec<Vec<Cell>> {
    let clients: Vec<_> = facts
        .clients
        .iter()
        .filter(|it| it.waits_for != "client")
        .collect();
    let is_used = |server: &&Peer| match server.standing {
        PeerState::LoggingIn | PeerState::Tested => true,
        PeerState::Idle => false,
        PeerState::Active => {
            let mut links = clients.iter().filter_map(|client| client.link.as_ref());
            links.any(|link| *link == server.name)
        }
    };
    rows(
        clients.iter().copied(),
        facts.servers.iter().filter(is_used),
    )
}

fn rows<'a>(
    clients: impl Iterator<Item = &'a Peer>,
    servers: impl Iterator<Item = &'a Peer>,
) -> Vec<Vec<Cell>> {
    let clients = clients.map(|client| {
        let state = match client.standing {
            PeerState::LoggingIn => "cl_login",
            _ if client.waits_for == WAITS_FOR_POOL => "cl_waiting",
            _ => "cl_active",
        };
        socket(client, "C", state)
    });
    let servers = servers.map(|server| {
        let state = match server.standing {
            PeerState::LoggingIn => "sv_login",
            PeerState::Active => "sv_active",
            PeerState::Idle => "sv_idle",
            PeerState::Tested => "sv_tested",
        };
        socket(server, "S", state)
    });
    let all = clients.chain(servers);
    all.map(|mut row| {
        row.extend([const { Cell::Number(0) }; POSITIONS]);
        row
    })
    .collect()
}
