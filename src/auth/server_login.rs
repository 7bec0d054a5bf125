//! How the proxy logs in to the server for a client that has proven who it is, or for itself.
//!
//! What a server may ask for and get: nothing; a password, where nobody can listen; its MD5 hash;
//! SCRAM-SHA-256, bound to the server's certificate if both can. A server that was given a proof
//! must prove in turn that it knows the password, before anything else it says is believed.

use super::keys::{Key, Keys, MAX_ITERATIONS, MAX_SALT, number};
use super::role::Credential;
use super::scram::{Binding, END_POINT, attribute, is_printable};
use super::secret::{Wiped, md5_response};
use crate::wire::authentication::{self as messages, Challenge, SCRAM, SCRAM_PLUS};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The longest nonce that is taken; PostgreSQL's, with ours before it, has 48 bytes.
const MAX_NONCE: usize = 1024;

/// Why the proxy cannot log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The server's message is none that can follow.
    #[error("the server sent a malformed or unexpected authentication message")]
    Malformed,
    /// The server has not proven that it knows the password.
    #[error("the server has not proven that it knows the password")]
    NotProven,
    /// It would have to be told the password where somebody might listen.
    #[error("the server asks for the password itself, over a network and without TLS")]
    Exposed,
    /// What is known of the user's password is not what the server asks for.
    #[error("the server asks for what does not follow from the secret that the proxy has: {asked}")]
    Secret {
        /// What it asks for.
        asked: &'static str,
    },
    /// Nothing is known of the user's password.
    #[error(
        "the server asks for {asked}, and the proxy has no secret of the user: no line in \
         auth_file, and none that auth_query has found"
    )]
    NoSecret {
        /// What it asks for.
        asked: &'static str,
    },
    /// The server's way of authentication is not known here.
    #[error("the server asks for authentication method {0}, which the proxy does not know")]
    Method(u32),
}

/// What a message of the server's leads to.
#[derive(Debug)]
pub enum LoginStep {
    /// These bytes are to be sent, if there are any, and another message awaited.
    Say(Wiped),
    /// The login is accepted.
    Accepted,
}

#[derive(Debug)]
enum Phase {
    /// Nothing was asked, or all was answered and no proof is owed.
    Open,
    /// SCRAM was begun.
    Begun { bare: Vec<u8>, header: Vec<u8> },
    /// The server has been given a proof, and owes this.
    Owed(Key),
}

/// The login of one user to the server.
#[derive(Debug)]
pub struct ServerLogin {
    credential: Credential,
    nonce: [u8; 18],
    binding: Option<Vec<u8>>,
    /// Nobody can listen.
    is_private: bool,
    phase: Phase,
}

impl ServerLogin {
    /// A login of which the startup packet is sent. `nonce` must be new each time; `binding` is the
    /// hash of the server's certificate if there is TLS; `is_private` says that nobody can listen.
    #[must_use]
    pub fn new(
        credential: Credential,
        nonce: [u8; 18],
        binding: Binding<'_>,
        is_private: bool,
    ) -> Self {
        Self {
            credential,
            nonce,
            binding: binding.map(<[u8]>::to_vec),
            is_private,
            phase: Phase::Open,
        }
    }

    /// Why it cannot be told what it asks for.
    fn lacks(&self, asked: &'static str) -> LoginError {
        match self.credential.is_empty() {
            true => LoginError::NoSecret { asked },
            false => LoginError::Secret { asked },
        }
    }

    /// Whether [`Self::take`] of this takes a millisecond or more.
    #[must_use]
    pub fn is_costly(&self, body: &[u8]) -> bool {
        match Challenge::read(body) {
            Some(Challenge::SaslContinue(data)) => First::read(data)
                .is_some_and(|first| self.credential.is_costly(&first.salt, first.iterations)),
            _ => false,
        }
    }

    /// Takes the body of an Authentication message.
    ///
    /// # Errors
    /// The login cannot go on.
    pub fn take(&mut self, body: &[u8]) -> Result<LoginStep, LoginError> {
        let challenge = Challenge::read(body).ok_or(LoginError::Malformed)?;
        let mut out = Vec::new();
        match (challenge, &self.phase) {
            (Challenge::Ok, Phase::Open) => return Ok(LoginStep::Accepted),
            (Challenge::Ok, _) => return Err(LoginError::NotProven),
            (Challenge::Password, Phase::Open) => {
                if !self.is_private {
                    return Err(LoginError::Exposed);
                }
                let asked = "the password";
                let password = self.credential.password();
                messages::put_password(&mut out, password.ok_or_else(|| self.lacks(asked))?);
            }
            (Challenge::Md5 { salt }, Phase::Open) => {
                let asked = "an MD5 hash";
                let secret = self.credential.md5_secret();
                let secret = secret.ok_or_else(|| self.lacks(asked))?;
                messages::put_password(&mut out, &md5_response(&secret, salt));
            }
            (Challenge::Sasl { mechanisms }, Phase::Open) => self.begin(mechanisms, &mut out)?,
            (Challenge::SaslContinue(data), Phase::Begun { .. }) => self.go_on(data, &mut out)?,
            (Challenge::SaslFinal(data), Phase::Owed(expected)) => {
                let signature = data.strip_prefix(b"v=").and_then(Key::read);
                if !signature.is_some_and(|signature| expected.is(&signature)) {
                    return Err(LoginError::NotProven);
                }
                self.phase = Phase::Open;
            }
            (Challenge::Other(method), Phase::Open) => return Err(LoginError::Method(method)),
            _ => return Err(LoginError::Malformed),
        }
        Ok(LoginStep::Say(out.into()))
    }

    fn begin(&mut self, mechanisms: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        let offers = |name| messages::offers(mechanisms, name);
        let (mechanism, flag, hash): (_, &[u8], &[u8]) = match &self.binding {
            Some(hash) if offers(SCRAM_PLUS) => (SCRAM_PLUS, END_POINT, hash),
            // A server that has offered more is told that somebody has taken it out.
            Some(_) if offers(SCRAM) => (SCRAM, b"y,,", b""),
            None if offers(SCRAM) => (SCRAM, b"n,,", b""),
            _ => {
                let asked = "a mechanism of SASL other than SCRAM-SHA-256";
                return Err(LoginError::Secret { asked });
            }
        };
        let header = [flag, hash].concat();
        // The startup packet has said who it is.
        let bare = [b"n=,r=", STANDARD.encode(self.nonce).as_bytes()].concat();
        messages::put_initial_response(out, mechanism, &[flag, &bare].concat());
        self.phase = Phase::Begun { bare, header };
        Ok(())
    }

    fn go_on(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), LoginError> {
        let Phase::Begun { bare, header } = &self.phase else {
            return Err(LoginError::Malformed);
        };
        let first = First::read(data).ok_or(LoginError::Malformed)?;
        let own = STANDARD.encode(self.nonce);
        let is_ours = first.nonce.starts_with(own.as_bytes()) && first.nonce.len() > own.len();
        if !is_ours {
            return Err(LoginError::Malformed);
        }
        let asked = "SCRAM-SHA-256";
        let keys = self.credential.keys(&first.salt, first.iterations);
        let Keys { client, server } = keys.ok_or_else(|| self.lacks(asked))?;
        let bound = STANDARD.encode(header);
        let last = [b"c=", bound.as_bytes(), b",r=", first.nonce].concat();
        let message = [bare, &b","[..], data, b",", &last].concat();
        let proof = client.xor(&client.hash().sign(&message));
        messages::put_response(out, &[&*last, b",p=", proof.text().as_bytes()].concat());
        self.phase = Phase::Owed(server.sign(&message));
        Ok(())
    }
}

/// The server's first message.
struct First<'a> {
    nonce: &'a [u8],
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> First<'a> {
    /// Reads it: nonce, salt and count, and nothing else.
    fn read(data: &'a [u8]) -> Option<Self> {
        let (nonce, rest) = attribute(data, b'r')?;
        let (salt, rest) = attribute(rest?, b's')?;
        let (count, rest) = attribute(rest?, b'i')?;
        let is_sane = rest.is_none()
            && is_printable(nonce)
            && nonce.len() <= MAX_NONCE
            && salt.len() <= 2 * MAX_SALT;
        let salt = is_sane.then(|| STANDARD.decode(salt).ok()).flatten()?;
        let iterations = number(count).filter(|count| *count <= MAX_ITERATIONS)?;
        (1..=MAX_SALT).contains(&salt.len()).then_some(Self {
            nonce,
            salt,
            iterations,
        })
    }
}
