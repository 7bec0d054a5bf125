//! One client before it has logged in: the untagged packets, answered or turned into what to do
//! next.
//!
//! Sans-IO: bytes in, a step out. An attacker who never logs in can make this hold one startup
//! packet, at most [`crate::wire::startup::MAX_STARTUP`] bytes; how long is for the
//! acceptor to say.

use crate::wire::Error;
use crate::wire::startup::{Packet, packet};

/// What the bytes a client has sent so far ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asks {
    /// More bytes are needed.
    Wait,
    /// Encryption was asked for: answer with this one byte and go on.
    Refuse(u8),
    /// Cancel the query of the connection with this key; nothing is answered.
    Cancel {
        /// The process id of BackendKeyData.
        pid: u32,
        /// The secret key of BackendKeyData.
        key: Vec<u8>,
    },
    /// Log in: the whole StartupMessage, to be relayed as it is.
    Login(Login),
}

/// A StartupMessage and what the proxy needs to know of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Login {
    /// The packet as it came.
    pub packet: Vec<u8>,
    /// The database asked for; the user's name if none was.
    pub database: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
    /// A replication connection, which is only relayed.
    pub replication: bool,
}

/// Encryption requests answered on one connection. libpq sends at most one of each kind; more would
/// be somebody keeping a connection busy before login.
const MAX_REFUSALS: u8 = 4;

/// Reads what comes before the login.
#[derive(Debug, Default)]
pub struct Greeting {
    refusals: u8,
}

impl Greeting {
    /// Looks at the front of `bytes`; returns the next step and how many bytes it used.
    ///
    /// # Errors
    /// What [`packet`] finds wrong, or one encryption request too many.
    pub fn step(&mut self, bytes: &[u8]) -> Result<(Asks, usize), Error> {
        let Some((packet, size)) = packet(bytes)? else {
            return Ok((Asks::Wait, 0));
        };
        let step = match packet {
            Packet::Ssl | Packet::Gssenc => {
                self.refusals += 1;
                if self.refusals > MAX_REFUSALS {
                    return Err(Error::StartupLayout);
                }
                Asks::Refuse(b'N')
            }
            Packet::Cancel { pid, key } => Asks::Cancel {
                pid,
                key: key.to_vec(),
            },
            Packet::Startup(startup) => {
                let user = startup.parameter(b"user").unwrap_or_default();
                let database = startup.parameter(b"database").unwrap_or_default();
                let replication = startup.parameter(b"replication").unwrap_or_default();
                Asks::Login(Login {
                    packet: bytes.get(..size).unwrap_or_default().to_vec(),
                    database: if database.is_empty() { user } else { database }.to_vec(),
                    user: user.to_vec(),
                    replication: asks_for_replication(replication),
                })
            }
        };
        Ok((step, size))
    }
}

/// Anything but a clear no counts: relaying a session that could have been converted is harmless.
fn asks_for_replication(value: &[u8]) -> bool {
    let no: [&[u8]; 5] = [b"", b"false", b"off", b"no", b"0"];
    !no.iter().any(|no| value.eq_ignore_ascii_case(no))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn startup(body: &[u8]) -> Vec<u8> {
        let mut out = u32::try_from(body.len() + 8)
            .unwrap()
            .to_be_bytes()
            .to_vec();
        out.extend_from_slice(&[0, 3, 0, 0]);
        out.extend_from_slice(body);
        out
    }

    #[test]
    fn encryption_is_refused_and_login_follows() {
        let mut greeting = Greeting::default();
        let mut bytes = b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec();
        let packet = startup(b"user\0me\0\0");
        bytes.extend_from_slice(&packet);
        assert_eq!(greeting.step(&bytes), Ok((Asks::Refuse(b'N'), 8)));
        let (step, used) = greeting.step(&bytes[8..]).unwrap();
        let login = Login {
            packet: packet.clone(),
            database: b"me".to_vec(),
            user: b"me".to_vec(),
            replication: false,
        };
        assert_eq!((step, used), (Asks::Login(login), packet.len()));
    }

    #[test]
    fn endless_encryption_requests_end_the_connection() {
        let mut greeting = Greeting::default();
        let answers = (0..9)
            .take_while(|_| greeting.step(b"\0\0\0\x08\x04\xd2\x16\x2f").is_ok())
            .count();
        assert_eq!(answers, usize::from(MAX_REFUSALS));
    }

    #[test]
    fn replication_is_recognised() {
        for (value, expected) in [
            ("database", true),
            ("true", true),
            ("1", true),
            ("off", false),
        ] {
            let packet = startup(format!("user\0u\0replication\0{value}\0\0").as_bytes());
            let Ok((Asks::Login(login), _)) = Greeting::default().step(&packet) else {
                panic!("no login");
            };
            assert_eq!(login.replication, expected, "{value}");
        }
    }

    #[test]
    fn cancel_carries_its_key() {
        let mut bytes = Vec::new();
        crate::wire::startup::cancel_request(&mut bytes, 9, b"key!");
        let cancel = Asks::Cancel {
            pid: 9,
            key: b"key!".to_vec(),
        };
        assert_eq!(Greeting::default().step(&bytes), Ok((cancel, 16)));
    }
}
