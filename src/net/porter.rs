//! Whoever attends to the entrances: accepts who comes, until they are closed or the proxy ends.

use super::acceptor::Acceptor;
use super::entrances::{Entrance, Use};
use super::http::Desk;
use super::phase::Phase;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Attends to all entrances as long as the proxy serves, and then to their ends.
pub(super) async fn attend(
    mut coming: mpsc::UnboundedReceiver<Entrance>,
    acceptor: Arc<Acceptor>,
    desk: Arc<Desk>,
    phase: watch::Receiver<Phase>,
) {
    let mut ending = phase.clone();
    let mut attended = JoinSet::new();
    let mut is_noting = false;
    loop {
        tokio::select! {
            biased;
            Some(entrance) = coming.recv() => {
                if entrance.of == Use::Http && !std::mem::replace(&mut is_noting, true) {
                    desk.begin_notes();
                }
                let (acceptor, desk) = (Arc::clone(&acceptor), Arc::clone(&desk));
                attended.spawn(attend_to(entrance, acceptor, desk, phase.clone()));
            }
            _ = ending.wait_for(|phase| *phase != Phase::Serving) => break,
            Some(_) = attended.join_next() => {}
        }
    }
    coming.close();
    // As long as there are acceptors, workers wait for clients.
    drop(acceptor);
    while attended.join_next().await.is_some() {}
}

async fn attend_to(
    entrance: Entrance,
    acceptor: Arc<Acceptor>,
    desk: Arc<Desk>,
    phase: watch::Receiver<Phase>,
) {
    let Entrance {
        of,
        listener,
        closes,
    } = entrance;
    // Whoever has an acceptor keeps workers waiting.
    let waiting = Arc::downgrade(&acceptor);
    let listening = Arc::clone(&listener);
    let attending = async {
        match of {
            Use::Clients => acceptor.accept_until(listening, phase).await,
            Use::Http => {
                drop(acceptor);
                desk.serve_until(listening, phase).await;
            }
        }
    };
    tokio::select! {
        () = attending => {}
        _ = closes => {
            if let (Use::Clients, Some(acceptor)) = (of, waiting.upgrade()) {
                acceptor.accept_waiting(&listener);
            }
        }
    }
}
