//! The relay of startup and authentication: no password is decoded, only the cancel key is
//! replaced.

use super::Hop;
use crate::client::Turn;
use crate::hub::{LoginOutcome, ServerKey, Task};
use crate::reason::LoginRefused;
use crate::upstream::{Welcome, given};
use crate::wire::backend::{self, Status};
use crate::wire::frame::HEADER;
use crate::wire::{fields, frontend};

/// Whether a client may send this before it is logged in. Anything else waits for ReadyForQuery, so
/// that the ledger starts even with the server.
pub(super) const fn may_precede_login(tag: u8) -> bool {
    matches!(tag, frontend::PASSWORD | frontend::TERMINATE)
}

/// Whether the server waits for a message of the client after this Authentication message.
fn is_challenge(body: &[u8]) -> bool {
    const OK: u32 = 0;
    const SASL_FINAL: u32 = 12;
    let code = body.first_chunk().map(|code| u32::from_be_bytes(*code));
    code.is_some_and(|code| code != OK && code != SASL_FINAL)
}

impl Hop<'_> {
    /// Whether `rest` is no answer to the server's challenge. The server refuses a login by the
    /// first byte of such a message, so it gets all that comes as it is, and the proxy follows no
    /// further.
    #[cold]
    #[inline(never)]
    pub(super) fn spoils_login(&mut self, rest: &[u8]) -> bool {
        let answers = rest.first() == Some(&frontend::PASSWORD);
        // One answer: what comes behind it is meant for after the login, or for the next challenge.
        let spoils = std::mem::take(&mut self.client.is_challenged) && !answers;
        if spoils {
            self.client.relay_only = true;
            self.client.skip = usize::MAX;
        }
        spoils
    }

    /// The server has no room, and may have some when connections are closed that wait for nobody:
    /// what it has said so far is kept. Else that is sent.
    fn is_crowded_out(&mut self, tag: u8, frame: &[u8]) -> bool {
        const TOO_MANY_CONNECTIONS: &[u8] = b"53300";
        let is_crowded = tag == backend::ERROR
            && fields::field(&frame[HEADER..], fields::SQLSTATE) == Some(TOO_MANY_CONNECTIONS);
        let is_new = self
            .upstream
            .welcome
            .as_deref()
            .is_some_and(Welcome::says_nothing);
        if is_crowded && is_new && !self.client.is_second {
            self.client.query.extend_from_slice(frame);
            self.upstream.welcome = None;
            self.outbox.tasks.push_back(Task::Crowded(self.client.id));
            return true;
        }
        self.client.out.append(&mut self.client.query);
        false
    }

    fn decided_login(&mut self, outcome: LoginOutcome) {
        let task = Task::Login(self.client.id, outcome);
        self.outbox.tasks.push_back(task);
    }

    /// A reply of the server's to the login.
    pub(super) fn login_reply(&mut self, tag: u8, frame: &[u8]) {
        let body = &frame[HEADER..];
        if self.is_crowded_out(tag, frame) {
            return;
        }
        if tag == backend::BACKEND_KEY_DATA {
            let named = backend::backend_key_data(body);
            self.upstream.standing.process = named.map(|(pid, _)| pid);
        }
        let welcome = self.upstream.welcome.as_deref_mut();
        if welcome.is_some_and(|welcome| !welcome.keep(tag, frame)) {
            self.upstream.welcome = None;
            // Nobody will ask what is left.
            if !self.lent.settings.shares {
                self.upstream.standing.is_not_kept();
            }
        }
        match tag {
            backend::ERROR => {
                let why = LoginRefused::by_server(fields::field(body, fields::SQLSTATE));
                self.lent.counters().refused(why);
                self.decided_login(LoginOutcome::Refused);
            }
            backend::AUTHENTICATION => {
                self.client.is_challenged = is_challenge(body);
                // The client waits for more in any case.
                if self.upstream.welcome.is_some() {
                    self.client.query.extend_from_slice(frame);
                    return;
                }
                if self.client.hides_binding
                    && backend::put_without_binding(&mut self.client.out, body)
                {
                    return;
                }
            }
            backend::BACKEND_KEY_DATA => {
                let Some((pid, secret)) = backend::backend_key_data(body) else {
                    self.client.out.extend_from_slice(frame);
                    return;
                };
                let ours = given(secret, &self.client.key.secret);
                backend::put_backend_key_data(&mut self.client.out, pid, ours);
                let key = ServerKey {
                    pid,
                    secret: secret.to_vec(),
                    ours: ours.to_vec(),
                };
                let task = Task::Remember(self.client.id, key);
                self.outbox.tasks.push_back(task);
                return;
            }
            backend::READY_FOR_QUERY => {
                let standing = &mut self.upstream.standing;
                standing.status = Status::read(body).unwrap_or(Status::Failed);
                // Not before: a name is anybody's to choose until the server has accepted it.
                let origin = &standing.origin;
                let shapes = &self.lent.shapes;
                standing.database = shapes.database(origin.server(), origin.database());
                standing.may_be_pooled(self.now);
                self.client.turn = Turn::Free;
                self.outbox.timers.clear(self.client.id);
                self.decided_login(match self.upstream.welcome {
                    Some(_) => LoginOutcome::Open,
                    None => LoginOutcome::Guarded,
                });
                self.client.out.extend_from_slice(frame);
                return self.settle_at_first();
            }
            _ => {}
        }
        self.client.out.extend_from_slice(frame);
    }
}
