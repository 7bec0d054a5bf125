//! Whether the server still lets in who says a startup packet: the proxy says it, and leaves again.

use super::stream::{Stream, read, write_all};
use crate::hub::{self, Welcome};
use crate::wire::frontend;
use std::io;
use std::time::Duration;

/// The longest answer to a login that is read, in bytes. A welcome is much shorter.
const MAX_ANSWER: usize = 16 * 1024;

/// How the server lets in the client whose startup packet it was sent by `upstream`, if it does,
/// asks it for nothing more, and takes no longer than `limit` for that. It has said this much
/// already.
pub(super) async fn is_let_in(
    mut upstream: Stream,
    said: Vec<u8>,
    limit: Duration,
) -> Option<Welcome> {
    let welcomed = tokio::time::timeout(limit, is_welcomed(&mut upstream, said)).await;
    let welcome = welcomed.ok()?.ok()??;
    // What the server does not hear, it sees.
    let _ = write_all(&mut upstream, frontend::TERMINATE_FRAME).await;
    Some(welcome)
}

/// All that the server answers to a login, if that is a welcome, as it would be said again.
async fn is_welcomed(upstream: &mut Stream, mut answer: Vec<u8>) -> io::Result<Option<Welcome>> {
    loop {
        if let Some(welcome) = hub::welcome_in(&answer) {
            return Ok(welcome);
        }
        let mut chunk = [0; 1024];
        let count = read(upstream, &mut chunk).await?;
        answer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if count == 0 || answer.len() > MAX_ANSWER {
            return Ok(None);
        }
    }
}
