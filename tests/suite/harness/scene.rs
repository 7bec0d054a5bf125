//! A client, a scripted server and the proxy between them, which is reached over sockets or in
//! memory.

use super::client::Client;
use super::frames::{self, complete, execution, frame, ready, row};
use super::script::{Oracle, Peer};
use std::io::{Read, Write};

/// Where a scene is played.
pub(crate) trait Stage: Sized {
    /// A client's connection.
    type Client: Read + Write;
    /// The server's end of a connection.
    type Server: Read + Write;

    /// A proxy with some settings changed.
    fn with(changes: &[(&str, &str)]) -> Self;

    /// Logs a client in.
    fn login(&self) -> (Client<Self::Client>, Peer<Self::Server>);
}

/// A client, its server, and the statement both have already agreed on.
pub(crate) struct Scene<S: Stage> {
    pub(crate) client: Client<S::Client>,
    pub(crate) peer: Peer<S::Server>,
    pub(crate) name: String,
    pub(crate) stage: S,
}

impl<S: Stage> Scene<S> {
    /// Logs another client in.
    pub(crate) fn login(&self) -> (Client<S::Client>, Peer<S::Server>) {
        self.stage.login()
    }
}

pub(crate) const SQL: &str = "SELECT name FROM t WHERE id = 42";

/// A client that has logged in and sent nothing. Audits come only where they are wanted.
pub(crate) fn met<S: Stage>(changes: &[(&str, &str)]) -> Scene<S> {
    let mut changes = changes.to_vec();
    if !changes.contains(&("audit", "on")) {
        changes.push(("audit", "off"));
    }
    let stage = S::with(&changes);
    let (client, peer) = stage.login();
    Scene {
        client,
        peer,
        name: String::new(),
        stage,
    }
}

/// A client whose query has been learned and executed once.
pub(crate) fn learned<S: Stage>(
    sql: &str,
    oracle: &Oracle<'_>,
    changes: &[(&str, &str)],
) -> Scene<S> {
    let mut scene = met(changes);
    scene.client.send(&frames::query(sql));
    scene.peer.answer_context();
    scene.name = scene.peer.answer_oracle(oracle);
    let up = execution(&scene.name, &["42"]);
    scene.peer.expect_at_once(&up);
    scene.peer.send(&answer(oracle, b'I'));
    scene.client.expect(&seen(oracle, b'I'));
    scene
}

/// The server's answer to an execution.
pub(crate) fn answer(oracle: &Oracle<'_>, status: u8) -> Vec<u8> {
    let closed = match status {
        b'I' => Vec::new(),
        _ if oracle.columns.is_empty() => Vec::new(),
        _ => frame(b'3', b""),
    };
    [bound(oracle), result(oracle), closed, ready(status)].concat()
}

/// What the client is to see of it.
pub(crate) fn seen(oracle: &Oracle<'_>, status: u8) -> Vec<u8> {
    let description = match oracle.columns {
        [] => Vec::new(),
        columns => frames::description(columns),
    };
    [description, result(oracle), ready(status)].concat()
}

/// BindComplete and the description of the result.
pub(crate) fn bound(oracle: &Oracle<'_>) -> Vec<u8> {
    let description = match oracle.columns {
        [] => frame(b'n', b""),
        columns => frames::description(columns),
    };
    [frame(b'2', b""), description].concat()
}

fn result(oracle: &Oracle<'_>) -> Vec<u8> {
    match oracle.columns {
        [] => complete("INSERT 0 1"),
        _ => [row(&["Ann"]), row(&["Bob"]), complete("SELECT 2")].concat(),
    }
}

/// Sends `BEGIN` through to the server.
pub(crate) fn begin(scene: &mut Scene<impl Stage>) {
    relay(scene, "BEGIN", &[complete("BEGIN"), ready(b'T')].concat());
}

/// Sends a query that is not converted.
pub(crate) fn relay(scene: &mut Scene<impl Stage>, sql: &str, answer: &[u8]) {
    scene.client.send(&frames::query(sql));
    scene.peer.expect_at_once(&frames::query(sql));
    scene.peer.send(answer);
    scene.client.expect(answer);
}
