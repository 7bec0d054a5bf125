//! How a client proves who it is: the proxy's side of the exchange.
//!
//! ```text
//!   begin ─▶ a challenge ─▶ take ─▶ Say: another ─▶ take ─▶ Proven: evidence ─▶ check
//! ```
//!
//! What is sent, and when, is what PostgreSQL sends (`CheckPasswordAuth`, `CheckMD5Auth` and
//! `CheckSASLAuth` in its `auth.c` and `auth-sasl.c`), whether there is such a user or not.

use super::keys::{Key, Verifier};
use super::refusal::Refusal;
use super::role::{Credential, Mock, Role};
use super::scram::{self, Binding, First, Flag};
use super::secret::{Secret, Wiped, is_same, md5_response, md5_secret};
use crate::wire::frame::{HEADER, cstr};
use crate::wire::{authentication as messages, frontend};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// The longest message of SASL that PostgreSQL takes (`PG_MAX_SASL_MESSAGE_LENGTH`).
const MAX_SASL: usize = 1024;

/// The longest message with a password that it takes (`PG_MAX_AUTH_TOKEN_LENGTH`).
const MAX_PASSWORD: usize = 65_535;

/// What a client is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Nothing: it is believed.
    Nothing,
    /// Its password.
    Password,
    /// A hash of it.
    Md5,
    /// To prove by SCRAM-SHA-256 that it knows it.
    Scram,
}

/// What must be different each time, so that nothing that was heard can be said again.
#[derive(Debug, Clone, Copy)]
pub struct Chance {
    /// For MD5.
    pub salt: [u8; 4],
    /// For SCRAM.
    pub nonce: [u8; 18],
}

/// What a message of the client's leads to.
#[derive(Debug)]
pub enum Heard {
    /// These bytes are to be sent, and another message awaited.
    Say(Vec<u8>),
    /// It has said all: [`Evidence::check`].
    Proven(Evidence),
}

/// What a client has shown. It may be checked more than once.
#[derive(Debug)]
pub struct Evidence {
    user: Vec<u8>,
    shown: Shown,
}

enum Shown {
    Password(Wiped),
    Md5 {
        salt: [u8; 4],
        response: Wiped,
    },
    Scram {
        /// What it was asked with.
        asked: Verifier,
        /// What both have said.
        message: Vec<u8>,
        proof: Key,
    },
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Password",
            Self::Md5 { .. } => "Md5",
            Self::Scram { .. } => "Scram",
        })
    }
}

/// A client has proven who it is.
#[derive(Debug)]
pub struct Accepted {
    /// What the server can be shown.
    pub credential: Credential,
    /// What the client is to be sent before AuthenticationOk.
    pub prelude: Vec<u8>,
}

impl Evidence {
    /// Whether [`Self::check`] against this user takes a millisecond or more. For who has sent a
    /// password it does even if there is no such user, so that the time does not tell.
    #[must_use]
    pub fn is_costly(&self, role: &Role) -> bool {
        let is_hashed = !matches!(role.secret(), Some(Secret::Plain(_) | Secret::Md5(_)));
        match self.shown {
            Shown::Password(_) => is_hashed,
            Shown::Md5 { .. } => false,
            Shown::Scram { .. } => role.is_costly(),
        }
    }

    /// Whether it proves that somebody knows the secret of this user.
    #[must_use]
    pub fn check(&self, role: &Arc<Role>, mock: &Mock) -> Option<Accepted> {
        let credential = Credential::new(&self.user, Arc::clone(role));
        let accepted = |credential| Accepted {
            credential,
            prelude: Vec::new(),
        };
        match &self.shown {
            Shown::Password(password) => {
                let credential = self.check_password(password, role, mock, credential)?;
                Some(accepted(credential))
            }
            Shown::Md5 { salt, response } => {
                let hash = match role.secret()? {
                    Secret::Plain(password) => md5_secret(&self.user, password),
                    Secret::Md5(hash) => hash.clone(),
                    Secret::Scram(_) => return None,
                };
                is_same(&md5_response(&hash, *salt), response).then(|| accepted(credential))
            }
            Shown::Scram {
                asked,
                message,
                proof,
            } => {
                // The proof was made with the salt that was sent, so another's is of no use.
                let verifier = role.verifier(mock, &self.user);
                let keys = verifier.keys_behind(proof, message);
                let is_known = |secret: &Secret| !matches!(secret, Secret::Md5(_));
                let is_possible = role.secret().is_some_and(is_known);
                let keys = keys.filter(|_| is_possible && verifier.is(asked))?;
                let mut prelude = Vec::new();
                let signature = verifier.server.sign(message);
                let text = [b"v=", signature.text().as_bytes()].concat();
                messages::put_sasl_final(&mut prelude, &text);
                let credential = match role.secret() {
                    Some(Secret::Scram(_)) => credential.with_keys(keys),
                    _ => credential,
                };
                Some(Accepted {
                    credential,
                    prelude,
                })
            }
        }
    }

    fn check_password(
        &self,
        password: &Wiped,
        role: &Role,
        mock: &Mock,
        credential: Credential,
    ) -> Option<Credential> {
        match role.secret() {
            Some(Secret::Plain(known)) => is_same(known, password).then_some(credential),
            Some(Secret::Md5(hash)) => is_same(hash, &md5_secret(&self.user, password))
                .then(|| credential.with_password(password, None)),
            Some(Secret::Scram(verifier)) => verifier
                .keys_of(password)
                .map(|keys| credential.with_password(password, Some(keys))),
            None => {
                let _ = role.verifier(mock, &self.user).keys_of(password);
                None
            }
        }
    }
}

/// What is awaited of a client.
#[derive(Debug)]
enum Awaits {
    Password,
    Md5([u8; 4]),
    /// The mechanism, and maybe its first message.
    ScramBegin,
    /// Its first message.
    ScramFirst {
        has_chosen_plus: bool,
    },
    ScramLast {
        flag: Flag,
        /// All that is signed but the last message.
        message: Vec<u8>,
        /// Ours behind the client's.
        nonce: Vec<u8>,
    },
}

/// The exchange with one client.
#[derive(Debug)]
pub struct Reception {
    user: Vec<u8>,
    verifier: Option<Verifier>,
    nonce: [u8; 18],
    binding: Option<Vec<u8>>,
    awaits: Awaits,
}

impl Reception {
    /// Begins it. Returns it with the first challenge, or nothing if there is none to be sent:
    /// whoever is asked for nothing has only to be there ([`Role::exists`]).
    ///
    /// It may take a millisecond or more if [`Role::is_costly`] says so.
    #[must_use]
    pub fn begin(
        asking: Asking,
        user: &[u8],
        (role, mock): (&Role, &Mock),
        chance: Chance,
        binding: Binding<'_>,
    ) -> Option<(Self, Vec<u8>)> {
        let mut challenge = Vec::new();
        let mut verifier = None;
        let awaits = match asking {
            Asking::Nothing => return None,
            Asking::Password => {
                messages::put_cleartext(&mut challenge);
                Awaits::Password
            }
            Asking::Md5 => {
                messages::put_md5(&mut challenge, chance.salt);
                Awaits::Md5(chance.salt)
            }
            Asking::Scram => {
                messages::put_scram(&mut challenge, binding.is_some());
                verifier = Some(role.verifier(mock, user));
                Awaits::ScramBegin
            }
        };
        let reception = Self {
            user: user.to_vec(),
            verifier,
            nonce: chance.nonce,
            binding: binding.map(<[u8]>::to_vec),
            awaits,
        };
        Some((reception, challenge))
    }

    /// Whether a message of this type and size, its header included, may be awaited.
    ///
    /// # Errors
    /// It may not, and the server would say so.
    pub fn admit(&self, tag: u8, size: usize) -> Result<(), Refusal> {
        let (most, other) = match self.awaits {
            Awaits::Password | Awaits::Md5(_) => (MAX_PASSWORD, "expected password response"),
            _ => (MAX_SASL, "expected SASL response"),
        };
        if tag != frontend::PASSWORD {
            return Err(Refusal::protocol(other));
        }
        match size <= most + HEADER {
            true => Ok(()),
            false => Err(Refusal::failed(&self.user)),
        }
    }

    /// Takes a message that was admitted.
    ///
    /// # Errors
    /// It is none that can follow.
    pub fn take(&mut self, body: &[u8]) -> Result<Heard, Refusal> {
        match self.awaits {
            Awaits::Password => {
                let password = password(body)?.to_vec().into();
                Ok(self.proven(Shown::Password(password)))
            }
            Awaits::Md5(salt) => {
                let response = password(body)?.to_vec().into();
                Ok(self.proven(Shown::Md5 { salt, response }))
            }
            Awaits::ScramBegin => self.begin_scram(body),
            Awaits::ScramFirst { has_chosen_plus } => self.scram_first(body, has_chosen_plus),
            Awaits::ScramLast { .. } => self.scram_last(body),
        }
    }

    fn proven(&self, shown: Shown) -> Heard {
        let user = self.user.clone();
        Heard::Proven(Evidence { user, shown })
    }

    fn begin_scram(&mut self, body: &[u8]) -> Result<Heard, Refusal> {
        let malformed = Refusal::protocol("invalid message format");
        let (mechanism, data) = messages::initial_response(body).ok_or(malformed)?;
        let has_chosen_plus = match mechanism {
            messages::SCRAM => false,
            messages::SCRAM_PLUS if self.binding.is_some() => true,
            _ => {
                let text = "client selected an invalid SASL authentication mechanism";
                return Err(Refusal::protocol(text));
            }
        };
        match data {
            Some(data) => self.scram_first(data, has_chosen_plus),
            None => {
                self.awaits = Awaits::ScramFirst { has_chosen_plus };
                let mut more = Vec::new();
                messages::put_sasl_continue(&mut more, b"");
                Ok(Heard::Say(more))
            }
        }
    }

    fn scram_first(&mut self, data: &[u8], has_chosen_plus: bool) -> Result<Heard, Refusal> {
        let First { flag, bare, nonce } =
            scram::first(data, has_chosen_plus, self.binding.as_deref())?;
        let Some(verifier) = &self.verifier else {
            return Err(Refusal::failed(&self.user));
        };
        let nonce = [nonce, STANDARD.encode(self.nonce).as_bytes()].concat();
        let (salt, count) = (
            STANDARD.encode(&verifier.salt),
            verifier.iterations.to_string(),
        );
        let rest = [b",s=", salt.as_bytes(), b",i=", count.as_bytes()].concat();
        let reply = [b"r=", &*nonce, &rest].concat();
        let mut more = Vec::new();
        messages::put_sasl_continue(&mut more, &reply);
        let message = [bare, b",", &reply, b","].concat();
        self.awaits = Awaits::ScramLast {
            flag,
            message,
            nonce,
        };
        Ok(Heard::Say(more))
    }

    fn scram_last(&self, body: &[u8]) -> Result<Heard, Refusal> {
        let Awaits::ScramLast {
            flag,
            message,
            nonce,
        } = &self.awaits
        else {
            return Err(Refusal::failed(&self.user));
        };
        let last = scram::last(body, *flag, self.binding.as_deref())?;
        if last.nonce != nonce {
            return Err(Refusal::protocol("invalid SCRAM response"));
        }
        let Some(asked) = self.verifier.clone() else {
            return Err(Refusal::failed(&self.user));
        };
        let message = [message, last.without_proof].concat();
        Ok(self.proven(Shown::Scram {
            asked,
            message,
            proof: last.proof,
        }))
    }
}

/// The text of a PasswordMessage, which must be one and not empty.
fn password(body: &[u8]) -> Result<&[u8], Refusal> {
    match cstr(body) {
        Some((b"", [])) => Err(Refusal::no_password("empty password returned by client")),
        Some((password, [])) => Ok(password),
        _ => Err(Refusal::protocol("invalid password packet size")),
    }
}
