//! Whether there is room for a client that comes, and for how long.

use crate::error::ConnectionError;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a client that was turned away may take to send its startup packet: it must have been
/// read before the answer, or closing the socket would destroy the answer on its way.
pub(super) const REFUSAL: Duration = Duration::from_secs(2);

/// Whether there is room for a client.
#[derive(Debug)]
pub(super) enum Admission {
    /// There is; resolves when others need its place. Once it is let in, by the proxy or by the
    /// server, it is dropped: from then on nobody can ask for the place.
    Admitted(oneshot::Receiver<()>),
    /// There is none, so it may only cancel; resolves when others need its place.
    Refused(oneshot::Receiver<()>),
}

impl Admission {
    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// How long a client may take that may else take so long.
    pub(super) const fn limit(&self, login: Duration) -> Duration {
        match self {
            Self::Admitted(_) => login,
            Self::Refused(_) => REFUSAL,
        }
    }

    /// Waits until the client has to leave without having been let in, and says why.
    pub(super) async fn is_over(&mut self) -> ConnectionError {
        let (Self::Admitted(over) | Self::Refused(over)) = self;
        // The acceptor keeps the sender until it is used.
        match over.await {
            Ok(()) => ConnectionError::TooManyClients,
            Err(_) => std::future::pending().await,
        }
    }

    /// The same for who waits for a server to let it in: a worker, which is no task. It asks again
    /// when it is woken, unless it has been told that nobody will need the place any more.
    pub(super) fn poll_is_over(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<ConnectionError>> {
        let (Self::Admitted(over) | Self::Refused(over)) = self;
        Pin::new(over).poll(context).map(|needed| {
            let is_needed = needed.is_ok();
            is_needed.then_some(ConnectionError::TooManyClients)
        })
    }
}
