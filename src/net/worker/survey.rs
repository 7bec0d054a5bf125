//! What a worker tells the console, and what it does by its orders.

use super::Worker;
use super::ports::{ClientPort, PortId, Seeks, UpstreamPort};
use crate::admin::ServerCounts;
use crate::admin::console::{Counted, Peer, PeerState, Totals, WAITS_FOR_POOL};
use crate::client::{Client, Turn};
use crate::error::ConnectionError;
use crate::ids::{ClientId, Slot, UpstreamId};
use crate::net::port::Port;
use crate::net::survey::{EndClient, Ends, PLACES, Slice, Survey, shown};
use crate::statement::context::Origin;
use crate::wire::startup::{Packet, packet};
use std::time::{Duration, Instant, SystemTime};

/// Databases that are counted apart. Whoever logs in to more of them is counted with the others.
const MOST_DATABASES: usize = 1024;

/// Where those are counted.
const OTHERS: &str = "(others)";

impl Worker {
    /// Tells of some of the ports.
    #[cold]
    pub(super) fn survey(&self, survey: Survey) {
        let Survey { ends, from, answer } = survey;
        let slice = match ends {
            Ends::Clients => {
                let (ports, next) = self.clients.slice(from, PLACES);
                let peers = ports.filter_map(|(slot, port)| self.client(slot, port));
                Slice {
                    peers: peers.collect(),
                    next,
                    counted: match from {
                        0 => self.counted.clone(),
                        _ => Counted::new(),
                    },
                }
            }
            Ends::Servers => {
                let (ports, next) = self.upstreams.slice(from, PLACES);
                let peers = ports.filter_map(|(slot, _)| self.server(slot));
                Slice {
                    peers: peers.collect(),
                    next,
                    counted: Counted::new(),
                }
            }
        };
        // Who has asked may have gone.
        let _ = answer.send(slice);
    }

    fn client(&self, slot: Slot, port: &ClientPort) -> Option<Peer> {
        let known = self.hub.client(ClientId(slot))?;
        let standing = match known.is_logged_in() {
            true => PeerState::Active,
            false => PeerState::LoggingIn,
        };
        let adrift = port.adrift.as_deref().map(|adrift| &adrift.seeks);
        let waiting = match adrift {
            Some(Seeks::Turn(_, since) | Seeks::Connection(.., since)) => since.elapsed(),
            _ => Duration::ZERO,
        };
        let waits_for = match &known.turn {
            _ if matches!(adrift, Some(Seeks::Turn(..) | Seeks::Connection(..))) => WAITS_FOR_POOL,
            Turn::Login => "login",
            Turn::Free if self.hub.is_idle(ClientId(slot)) => "client",
            Turn::Free | Turn::Executing => "server",
            Turn::Visiting => "host",
            Turn::Barred(_) => "guests",
            Turn::Learning | Turn::Settling(_) | Turn::Discarding(_) => "oracle",
            Turn::Cancelled(_) => "cancel",
            Turn::Reopening(_) => "transaction",
        };
        Some(Peer {
            id: port.number,
            replicates: known.relay_only,
            link: port.adrift.is_none().then(|| self.name(port.link.0)),
            waits_for,
            waiting: u64::try_from(waiting.as_micros()).unwrap_or(u64::MAX),
            totals: self.totals(ClientId(slot), port),
            database: shown(self.database_of(ClientId(slot))?),
            heard: self.heard(port),
            ..self.peer(
                slot,
                self.hub.origin(ClientId(slot))?,
                standing,
                &port.port,
                port.began,
            )
        })
    }

    /// Who holds a server connection, and what state that is in.
    fn held(&self, server: &UpstreamPort) -> (Option<&Client>, PeerState) {
        let holder = self.clients.get(server.holder.0);
        let client = holder.and_then(|_| self.hub.client(server.holder));
        let standing = match (client, server.parked) {
            (_, Some(_)) => PeerState::Idle,
            (Some(client), _) if client.is_logged_in() => PeerState::Active,
            (Some(_), _) => PeerState::LoggingIn,
            (None, _) => PeerState::Tested,
        };
        (client, standing)
    }

    /// Counts the server connections, all in one go: nothing is copied, so ten thousand take less
    /// than the turn of a loop may.
    #[cold]
    pub(super) fn server_counts(&self) -> ServerCounts {
        let mut counts = ServerCounts::default();
        let (ports, _) = self.upstreams.slice(0, usize::MAX);
        for (_, server) in ports {
            let count = match self.held(server).1 {
                PeerState::Active => &mut counts.active,
                PeerState::Idle => &mut counts.idle,
                PeerState::LoggingIn => &mut counts.login,
                PeerState::Tested => &mut counts.tested,
            };
            *count += 1;
        }
        counts
    }

    fn server(&self, slot: Slot) -> Option<Peer> {
        let id = UpstreamId(slot);
        let server = self.upstreams.get(slot)?;
        let (client, standing) = self.held(server);
        let known = &self.hub.upstream(id)?.standing;
        let mirror = &known.mirror;
        Some(Peer {
            replicates: client.is_some_and(|client| client.relay_only),
            closes: server.dies.is_some_and(|dies| dies <= Instant::now()),
            link: client.map(|_| self.name(server.holder.0)),
            heard: match self.clients.get(server.holder.0) {
                Some(client) => self.heard(client),
                None => seconds_of(server.opened),
            },
            process: server.process,
            statements: mirror.len(),
            statement_bytes: mirror.bytes(),
            database: shown(self.database_at(id)?),
            ..self.peer(slot, &known.origin, standing, &server.port, server.opened)
        })
    }

    /// What clients and server connections have in common.
    fn peer(
        &self,
        slot: Slot,
        origin: &Origin,
        standing: PeerState,
        port: &Port,
        since: Instant,
    ) -> Peer {
        let startup = match packet(origin.packet()) {
            Ok(Some((Packet::Startup(startup), _))) => Some(startup),
            _ => None,
        };
        let parameter = |name: &[u8]| startup.and_then(|startup| startup.parameter(name));
        let parameter = |name: &[u8]| shown(parameter(name).unwrap_or_default());
        let [peer, local] = port.socket.addresses();
        Peer {
            id: 0,
            standing,
            user: parameter(b"user"),
            database: String::new(),
            application: parameter(b"application_name"),
            replicates: false,
            peer,
            local,
            since: seconds_of(since),
            heard: seconds_of(since),
            tls: port.encryption(),
            name: self.name(slot),
            link: None,
            process: None,
            closes: false,
            statements: 0,
            statement_bytes: 0,
            waits_for: "",
            waiting: 0,
            totals: Totals::default(),
        }
    }

    /// When a client has last sent something, in seconds since 1970.
    fn heard(&self, client: &ClientPort) -> u64 {
        seconds_of(self.started + Duration::from_micros(client.heard.0))
    }

    /// How a port is called, among those of its kind.
    fn name(&self, slot: Slot) -> String {
        format!("{}.{}", self.number, slot.index())
    }

    /// What was counted of a client so far.
    fn totals(&self, id: ClientId, port: &ClientPort) -> Totals {
        let known = self.hub.client(id);
        let counts = known.map(|client| client.counts).unwrap_or_default();
        Totals {
            clients: known.is_some_and(|client| client.is_logged_in()).into(),
            queries: counts.queries,
            converted: counts.converted,
            executes: counts.executes,
            transactions: counts.transactions,
            micros: counts.micros,
            xact_micros: counts.micros + counts.between,
            waited: counts.waited,
            parses: counts.parses,
            prepared: counts.prepared,
            binds: counts.binds,
            received: port.received,
            sent: port.sent,
        }
    }

    /// Adds what was counted of a client that is about to go to what those before it had counted.
    /// One that was never let in counts nothing, because it may have named any database.
    pub(super) fn settle(&mut self, id: ClientId, port: &ClientPort) {
        let totals = self.totals(id, port);
        let Some(origin) = self.hub.origin(id).filter(|_| totals.clients > 0) else {
            return;
        };
        let named = port.way.name.as_deref();
        let mut name = shown(named.unwrap_or_else(|| origin.database()));
        if self.counted.len() >= MOST_DATABASES && !self.counted.contains_key(&name) {
            OTHERS.clone_into(&mut name);
        }
        self.counted.entry(name).or_default().add(&totals);
    }

    /// Ends the client of this number, if there is one.
    #[cold]
    pub(super) fn end_by_order(&mut self, ending: EndClient) {
        let slots = self.clients.slots();
        let mut numbers = slots.into_iter().filter_map(|slot| {
            let port = self.clients.get(slot)?;
            (port.number == ending.number).then_some(ClientId(slot))
        });
        let found = numbers.next();
        if let Some(id) = found {
            self.end_with_query(id, ConnectionError::Terminated);
        }
        // Who has asked may have gone.
        let _ = ending.answer.send(found.is_some());
    }

    /// Closes the server connections of a database, or all, as they become free: those without a
    /// client now, the others when theirs has left, or has come to the end of its transaction.
    #[cold]
    pub(super) fn reconnect(&mut self, database: Option<&str>) {
        let now = Instant::now();
        self.renewed = Some(now);
        let is_fast = self.config.server_fast_close;
        for slot in self.upstreams.slots() {
            let id = UpstreamId(slot);
            let of = self.database_at(id);
            let is_meant = database.is_none_or(|name| of == Some(name.as_bytes()));
            if !is_meant {
                continue;
            }
            if let Some(server) = self.upstreams.get_mut(slot) {
                server.dies = Some(now);
                server.is_stale = is_fast;
                let holder = server.holder;
                if is_fast {
                    self.has_stale = true;
                    self.make_dirty(PortId::Client(holder));
                }
            }
            self.close_parked(id);
        }
    }
}

/// A time of the past in seconds since 1970.
fn seconds_of(at: Instant) -> u64 {
    let at = SystemTime::now().checked_sub(at.elapsed());
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.unwrap_or_default().as_secs()
}
