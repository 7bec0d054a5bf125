//! Where clients and operators come in, which may become other addresses while the proxy runs.
//!
//! Invariants:
//! - what is new is listened on before anything else changes, and only then is closed what is gone;
//! - who waits at a socket that closes is accepted first, and who was accepted stays;
//! - where the sockets are another process's, too, nothing changes: neither with `takeover_socket`,
//!   nor those that a service manager has opened.

use super::listener::Listener;
use crate::config::{Address, Config, settings};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{mpsc, oneshot};

/// Who comes in at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Clients,
    Http,
}

/// A socket that is to be attended to.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) of: Use,
    pub(super) listener: Arc<Listener>,
    /// Resolves when it is to be closed.
    pub(super) closes: oneshot::Receiver<()>,
}

/// A socket that is attended to.
#[derive(Debug)]
struct Open {
    of: Use,
    /// It is closed as soon as nobody attends to it, whatever is known here.
    listener: Weak<Listener>,
    /// It is to be closed when this is gone.
    _close: oneshot::Sender<()>,
}

/// What will be open.
#[derive(Debug)]
pub(super) struct Change {
    opened: Vec<(Use, Listener)>,
    all: Vec<(Use, Address)>,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<Open>,
    /// To whoever attends to them; none where nothing may change.
    opening: Option<mpsc::UnboundedSender<Entrance>>,
}

impl State {
    fn open(&mut self, of: Use, listener: Listener) -> Entrance {
        let (close, closes) = oneshot::channel();
        let listener = Arc::new(listener);
        self.open.push(Open {
            of,
            listener: Arc::downgrade(&listener),
            _close: close,
        });
        Entrance {
            of,
            listener,
            closes,
        }
    }
}

/// What is open now.
#[derive(Debug, Default)]
pub(super) struct Entrances(Mutex<State>);

impl Entrances {
    /// Begins with these; returns what is to be attended to.
    pub(super) fn begin(
        &self,
        clients: Vec<Listener>,
        http: Vec<Listener>,
        is_fixed: bool,
    ) -> mpsc::UnboundedReceiver<Entrance> {
        let (opening, coming) = mpsc::unbounded_channel();
        let mut state = self.state();
        let clients = clients.into_iter().map(|it| (Use::Clients, it));
        let all = clients.chain(http.into_iter().map(|it| (Use::Http, it)));
        for (of, listener) in all {
            let entrance = state.open(of, listener);
            // It has just been made.
            let _ = opening.send(entrance);
        }
        state.opening = (!is_fixed).then_some(opening);
        coming
    }

    /// Whether nothing may change.
    pub(super) fn are_fixed(&self) -> bool {
        let opening = &self.state().opening;
        opening.as_ref().is_none_or(|it| it.is_closed())
    }

    /// Has the configuration say what is, where nothing may change.
    pub(super) fn settle(&self, before: &Config, after: &mut Config) {
        if self.are_fixed() {
            after.listen.clone_from(&before.listen);
            after.http_listen.clone_from(&before.http_listen);
            let keys = [settings::LISTEN.key, settings::HTTP_LISTEN.key];
            after.shows_as(before, |key| keys.contains(&key));
        }
    }

    /// Listens where this configuration says and nobody does yet.
    ///
    /// # Errors
    /// An address cannot be listened on: nothing has changed then.
    pub(super) fn prepare(
        &self,
        before: &Config,
        after: &Config,
    ) -> Result<Option<Change>, String> {
        if before.listen == after.listen && before.http_listen == after.http_listen {
            return Ok(None);
        }
        let state = self.state();
        let clients = after.listen.iter().map(|it| (Use::Clients, it.clone()));
        let http = after.http_listen.iter().map(|it| (Use::Http, it.clone()));
        let all: Vec<_> = clients.chain(http).collect();
        let is_wanted = |one: &Open, listener: &Listener| {
            let mut all = all.iter();
            all.any(|(of, address)| *of == one.of && listener.is_of(address))
        };
        let (mut kept, mut closing) = (Vec::new(), Vec::new());
        for one in &state.open {
            match one.listener.upgrade() {
                Some(listener) if is_wanted(one, &listener) => kept.push((one.of, listener)),
                Some(listener) => closing.push(listener),
                None => {}
            }
        }
        let mut opened = Vec::new();
        for (of, address) in &all {
            let mut kept = kept.iter();
            if kept.any(|(known, listener)| known == of && listener.is_of(address)) {
                continue;
            }
            let (mode, reuses) = (after.unix_socket_mode, after.so_reuseport);
            let listener = Listener::bind_beside(address, (mode, reuses), &closing);
            let why = |error| format!("cannot listen on {address}: {error}");
            opened.push((*of, listener.map_err(why)?));
        }
        Ok(Some(Change { opened, all }))
    }

    /// From now on these are open, and no others.
    pub(super) fn install(&self, change: Option<Change>) {
        let Some(Change { opened, all }) = change else {
            return;
        };
        let mut state = self.state();
        state.open.retain(|one| {
            let listener = one.listener.upgrade();
            let is_of = |listener: &Arc<Listener>| {
                let mut all = all.iter();
                all.any(|(of, address)| *of == one.of && listener.is_of(address))
            };
            let stays = listener.as_ref().is_some_and(is_of);
            if let (Some(Ok(address)), false) = (listener.map(|it| it.address()), stays) {
                tracing::info!(%address, "listening no more");
            }
            stays
        });
        for (of, listener) in opened {
            if let Ok(address) = listener.address() {
                tracing::info!(%address, "listening");
            }
            let entrance = state.open(of, listener);
            // If nobody attends to it the proxy ends, and it is closed.
            let _ = state.opening.as_ref().map(|opening| opening.send(entrance));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
