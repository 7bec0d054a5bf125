//! The relay of startup and authentication: no password is decoded, only the cancel key is
//! replaced.

use super::{ServerKey, Session, Turn, Worker};
use crate::wire::backend::{self, Status};
use crate::wire::frame::HEADER;
use crate::wire::frontend;

/// Whether a client may send this before it is logged in. Anything else waits for ReadyForQuery, so
/// that the ledger starts even with the server.
pub(super) const fn may_precede_login(tag: u8) -> bool {
    matches!(tag, frontend::PASSWORD | frontend::TERMINATE)
}

impl Session {
    pub(super) fn login_reply(
        &mut self,
        tag: u8,
        frame: &[u8],
        worker: &Worker,
        on_key: &mut dyn FnMut(ServerKey),
    ) {
        let body = &frame[HEADER..];
        match tag {
            backend::BACKEND_KEY_DATA => {
                let Some((pid, secret)) = backend::backend_key_data(body) else {
                    self.to_client.extend_from_slice(frame);
                    return;
                };
                // As long as the server's: protocol 3.0 knows keys of four bytes only.
                let ours = self.key.secret;
                let ours = &ours[..secret.len().clamp(4, ours.len())];
                backend::put_backend_key_data(&mut self.to_client, pid, ours);
                on_key(ServerKey {
                    pid,
                    secret: secret.to_vec(),
                    ours: ours.to_vec(),
                });
                return;
            }
            backend::READY_FOR_QUERY => {
                self.upstream.status = Status::read(body).unwrap_or(Status::Failed);
                // Not before: a name is anybody's to choose until the server has accepted it.
                self.upstream.database = worker.table.database(self.memory.origin.database());
                self.turn = Turn::Free;
            }
            _ => {}
        }
        self.to_client.extend_from_slice(frame);
    }
}
