//! What a worker hears from those who do not know what a worker is: the lists of what it shares
//! with others.

use super::session::Session;
use crate::client::Insister;
use crate::hub::Unheard;
use crate::ids::{ClientId, UpstreamId};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a worker hears.
#[derive(Debug)]
pub(super) enum News {
    /// A cancel request has reached the server, or cannot: somebody may wait for that.
    Delivered,
    /// Somebody waits until all that has come before is done.
    Answer(oneshot::Sender<()>),
    /// A cancel request for a client with these has reached the server; somebody asks whether the
    /// query that it means runs all the same, and tells the server once more then.
    Insists(Insister, oneshot::Sender<Unheard>),
    /// Which has been done.
    Relents(Insister),
    /// Warm connections that are no longer listed are to be closed.
    Sweep,
    /// This connection, which nobody has, is to make room for another.
    Close(UpstreamId),
    /// Somebody waits for a server connection of the pool with this number.
    Yield(u64),
    /// A client has waited with this ticket, and this came of it.
    Granted(ClientId, u64, Grant),
    /// A server connection that was promised to somebody was not taken.
    Return(UpstreamId),
    /// Somebody needs the place of this client, unless it has been let in.
    Needed(ClientId),
}

/// By which a worker hears.
pub(super) trait Tells: Debug + Send + Sync {
    /// Tells it.
    fn tell(&self, news: News);
}

/// What comes of waiting for a server connection.
#[derive(Debug)]
pub(super) enum Grant {
    /// This one.
    Warm(Berth),
    /// One may be opened.
    Open(Place),
}

/// Whoever counts places.
pub(super) trait Frees: Debug + Send + Sync {
    /// A place is free.
    fn free(self: Arc<Self>);

    /// Gives those who wait what there is.
    fn serve(self: Arc<Self>);

    /// Whether an idle connection is to stay, however long it has been idle.
    fn keeps(&self) -> bool;

    /// The server has let a client in that begins this session.
    fn is_entered(self: Arc<Self>, session: &dyn Fn() -> Session);

    /// Its number, which no other has.
    fn number(&self) -> u64;
}

/// The right to have one server connection open, of a pool or of none.
#[derive(Debug)]
pub(super) struct Place(Arc<dyn Frees>);

impl Place {
    pub(super) fn new(of: Arc<dyn Frees>) -> Self {
        Self(of)
    }

    /// Whoever counts it.
    pub(super) fn keeper(&self) -> Arc<dyn Frees> {
        Arc::clone(&self.0)
    }

    /// Whether its connection is to stay, however long it is idle.
    pub(super) fn is_kept(&self) -> bool {
        self.0.keeps()
    }

    /// The number of the pool; zero if it is of none.
    pub(super) fn pool(&self) -> u64 {
        self.0.number()
    }

    /// Whether it is one of a pool.
    pub(super) fn is_of_pool(&self) -> bool {
        self.pool() != 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        Arc::clone(&self.0).free();
    }
}

/// An idle connection that was promised to somebody. It is offered to others again if it is not
/// taken.
#[derive(Debug)]
pub(super) struct Berth {
    /// The number of the worker that has it.
    pub(super) worker: usize,
    id: UpstreamId,
    /// Its worker hears so.
    by: Option<Arc<dyn Tells>>,
}

impl Berth {
    pub(super) const fn new(worker: usize, id: UpstreamId, by: Option<Arc<dyn Tells>>) -> Self {
        Self { worker, id, by }
    }

    /// Which it is.
    pub(super) const fn id(&self) -> UpstreamId {
        self.id
    }

    /// It is taken, or found to be of no use.
    pub(super) fn take(mut self) -> UpstreamId {
        self.by = None;
        self.id
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        if let Some(by) = self.by.take() {
            by.tell(News::Return(self.id));
        }
    }
}
