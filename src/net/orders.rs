//! The mailbox of a worker: the one way for other threads to tell it something.
//!
//! A worker reads its mailbox when it is woken, behind the events of that moment, so that none of
//! them is about a connection that was not there yet.

use super::admission::Admission;
use super::attendance::Attendee;
use super::cancel::Registration;
use super::endpoint::Endpoint;
use super::halts::{Held, Pass};
use super::news::{Berth, News, Place, Tells};
use super::pools::Pool;
use super::stream::Handover;
use super::survey::{EndClient, Survey};
use super::ways::Way;
use crate::admin::ServerCounts;
use crate::auth::Credential;
use crate::client::{CancelKey, Cancels, Login};
use crate::config::Config;
use crate::error::ConnectionError;
use crate::hub::{Mover, Precedent, Welcome};
use crate::ids::{ClientId, UpstreamId};
use mio::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use tokio::sync::oneshot;

/// A client and how it reaches the server.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) client: Handover,
    pub(super) via: Via,
    /// As the server is to see it.
    pub(super) login: Login,
    /// To the servers of its database.
    pub(super) way: Arc<Way>,
    /// What the server can be shown, if the proxy has let the client in.
    pub(super) credential: Option<Arc<Credential>>,
    /// What the client is to be sent first.
    pub(super) prelude: Vec<u8>,
    /// What the client has sent behind its startup packet.
    pub(super) pending: Vec<u8>,
    pub(super) key: CancelKey,
    /// When the login must be over.
    pub(super) deadline: std::time::Instant,
    /// When the login began.
    pub(super) began: std::time::Instant,
    /// The server connection is needed only to see what the server says to such a login.
    pub(super) is_spare: bool,
    /// The server had no room for its first try.
    pub(super) is_second: bool,
    /// Whose connections it has.
    pub(super) pool: Option<Arc<Pool>>,
    /// Whether it gives its connection back to the pool while it can do without.
    pub(super) gives_back: bool,
    /// For its connection, if that is of a pool and is still to be opened.
    pub(super) place: Option<Place>,
    /// The promise of a warm connection of a pool.
    pub(super) berth: Option<Berth>,
    /// Counts it as on its way until the worker has it.
    pub(super) pass: Pass,
    /// Counts it among the clients of its database and its user.
    pub(super) attendee: Option<Attendee>,
    /// Its place, if the server is to let it in: it may have to make room.
    pub(super) admission: Option<Admission>,
}

/// A server connection that was opened for a client that has none.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) client: ClientId,
    /// With which it has waited.
    pub(super) ticket: u64,
    pub(super) place: Place,
    pub(super) startup: Vec<u8>,
    pub(super) database: Vec<u8>,
    pub(super) way: Arc<Way>,
    /// The count of what may have changed logins, when this one began.
    pub(super) logins: u64,
    pub(super) outcome: Result<Reached, ConnectionError>,
}

/// A client on its way to the worker that has its next home.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) mover: Mover,
    pub(super) berth: Berth,
    pub(super) client: Handover,
    /// What it has sent.
    pub(super) pending: Vec<u8>,
    /// It sends nothing more.
    pub(super) ended: bool,
    /// The cancel requests that had come when what it has sent did.
    pub(super) cancels_seen: u32,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) number: u64,
    pub(super) cancels: Arc<Cancels>,
    pub(super) registration: Option<Registration>,
    pub(super) began: std::time::Instant,
    pub(super) credential: Option<Arc<Credential>>,
    pub(super) way: Arc<Way>,
    pub(super) pool: Arc<Pool>,
    pub(super) open: OpenClient,
    /// Bytes that have come from it, and that have gone to it.
    pub(super) counted: (u64, u64),
}

/// A server connection, on which a startup packet has been sent.
#[derive(Debug)]
pub(super) struct Reached {
    pub(super) upstream: Handover,
    /// What the server has said already: nothing, unless the proxy has waited for that.
    pub(super) said: Vec<u8>,
    /// The server.
    pub(super) endpoint: Arc<Endpoint>,
}

/// How a client reaches the server.
#[derive(Debug)]
pub(super) enum Via {
    /// By this connection, on which its startup packet has been sent.
    Connection(Reached),
    /// By one that is to be opened.
    Dial,
    /// By a warm connection of its worker.
    Warm(UpstreamId),
    /// By none until it sends something.
    Adrift(Box<Welcomed>),
}

/// How a client is welcomed that has no server connection yet.
#[derive(Debug)]
pub(super) struct Welcomed {
    /// The server that would have let it in.
    pub(super) endpoint: Arc<Endpoint>,
    /// What it is told.
    pub(super) welcome: Arc<Welcome>,
    /// How its session begins.
    pub(super) precedent: Precedent,
    /// When that was known to be so.
    pub(super) known: std::time::Instant,
}

/// A client on its way to a worker.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) joined: Joined,
    /// What it is called in the log.
    pub(super) number: u64,
    /// Counts the client as open until the connection ends.
    pub(super) open: OpenClient,
}

/// One client counted among those open on a worker and in all, and among those of its database and
/// its user.
#[derive(Debug)]
pub(super) struct OpenClient(Vec<Arc<AtomicUsize>>, Option<Attendee>);

impl OpenClient {
    pub(super) fn count(counts: &[&Arc<AtomicUsize>]) -> Self {
        for count in counts {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Self(counts.iter().copied().cloned().collect(), None)
    }

    /// The same, counted so, too.
    pub(super) fn counted_as(mut self, attendee: Option<Attendee>) -> Self {
        self.1 = attendee;
        self
    }
}

impl Drop for OpenClient {
    fn drop(&mut self) {
        for count in &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The halts of the console are to be seen to.
#[derive(Debug, Default)]
pub(super) struct Halting {
    /// Clients are ended.
    pub(super) ends: bool,
    /// Those of this database, or all.
    pub(super) database: Option<Arc<str>>,
    /// Learns how many are not held back yet.
    pub(super) answer: Option<oneshot::Sender<Held>>,
}

/// What a worker is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Serve this client.
    Serve(Box<Arrival>),
    /// No other client will come.
    NoMore,
    /// The proxy is ending: idle clients go, busy ones may finish.
    Drain,
    /// Whatever is still open is cut off.
    CutOff,
    /// Somebody asks whether the worker is there.
    Answer(oneshot::Sender<()>),
    /// What it shares with others has changed.
    News(News),
    /// A cancel request that the worker has asked for, for this connection, has reached the server,
    /// or cannot.
    Hastened(UpstreamId),
    /// The server connections are to be counted.
    Count(oneshot::Sender<ServerCounts>),
    /// Somebody at the console wants to see some of the ports.
    Survey(Survey),
    /// Somebody at the console ends a client.
    End(EndClient),
    /// A server connection was opened for a client of the worker, or could not be.
    Opened(Box<Opened>),
    /// A client comes from another worker.
    Move(Box<Moving>),
    /// The console's halts have changed, or it wants to know how far they are.
    Halt(Halting),
    /// This configuration is in force.
    Configure(Arc<Config>),
    /// Server connections are to be closed as they become free: those of this database, or all.
    Reconnect(Option<Arc<str>>),
}

/// Where orders for a worker are put.
#[derive(Debug, Clone)]
pub(super) struct Mailbox {
    orders: mpsc::Sender<Order>,
    waker: Arc<Waker>,
}

impl Tells for Mailbox {
    fn tell(&self, news: News) {
        self.put(Order::News(news));
    }
}

impl Mailbox {
    /// A mailbox, and the end at which the worker reads it, which `waker` wakes.
    pub(super) fn new(waker: Waker) -> (Self, mpsc::Receiver<Order>) {
        let (orders, incoming) = mpsc::channel();
        let waker = Arc::new(waker);
        (Self { orders, waker }, incoming)
    }

    /// Puts an order in. The queue is bounded by the limit of clients: each has at most one order
    /// of its own in it, and a cancel request for each that was relayed. Whether the worker is
    /// there is asked again only after the answer, and the console asks one thing of all workers at
    /// a time.
    pub(super) fn put(&self, order: Order) {
        // A worker that has ended has run out of time to drain; its clients see their sockets
        // close.
        let _ = self.orders.send(order);
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "a worker could not be woken");
        }
    }
}
