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
    /// TLS was asked for: answer `S`, shake hands, and go on inside.
    Encrypt,
    /// TLS has begun without having been asked for, as clients of PostgreSQL 17 may do: shake hands
    /// with the bytes that are there, see that the client has named the protocol, and go on inside.
    EncryptAtOnce,
    /// Cancel the query of the connection with this key; nothing is answered.
    Cancel {
        /// The process id of BackendKeyData.
        pid: u32,
        /// The secret key of BackendKeyData.
        key: Vec<u8>,
        /// Another instance has passed it on.
        is_passed_on: bool,
    },
    /// Log in: the whole StartupMessage, to be relayed as it is.
    Login(Login),
}

/// A StartupMessage and what the proxy needs to know of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Login {
    /// The packet, as it came or as the server is to see it.
    pub packet: Vec<u8>,
    /// The database asked for; the user's name if none was.
    pub database: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
    /// A replication connection, which is only relayed.
    pub replication: bool,
}

impl Login {
    /// Whether the packet names a database, so that it is not the user's name that counts.
    #[must_use]
    pub fn names_database(&self) -> bool {
        match packet(&self.packet) {
            Ok(Some((Packet::Startup(startup), _))) => startup
                .parameter(b"database")
                .is_some_and(|name| !name.is_empty()),
            _ => false,
        }
    }

    /// Whether it is for physical replication, which belongs to no database; logical does, and is
    /// asked for by this word (`ProcessStartupPacket` in PostgreSQL's `backend_startup.c`).
    #[must_use]
    pub fn is_physical_replication(&self) -> bool {
        let value = match packet(&self.packet) {
            Ok(Some((Packet::Startup(startup), _))) => startup.parameter(b"replication"),
            _ => None,
        };
        self.replication && value != Some(b"database")
    }
}

/// Encryption requests answered on one connection. libpq sends at most one of each kind; more would
/// be somebody keeping a connection busy before login.
const MAX_REFUSALS: u8 = 4;

/// SSLRequest, in the server's words.
const SSL_REQUEST: &str = "SSL request";

/// The first byte of a connection that begins with TLS: a record of a handshake.
const HANDSHAKE: u8 = 0x16;

/// Reads what comes before the login.
#[derive(Debug, Default)]
pub struct Greeting {
    refusals: u8,
    /// TLS may be asked for.
    offers_tls: bool,
    /// What was asked for last, if nothing has come since.
    asked: Option<&'static str>,
}

impl Greeting {
    /// A connection that may be encrypted by TLS, or that may not.
    #[must_use]
    pub const fn new(offers_tls: bool) -> Self {
        Self {
            refusals: 0,
            offers_tls,
            asked: None,
        }
    }

    /// Looks at the front of `bytes`; returns the next step and how many bytes it used.
    ///
    /// # Errors
    /// What [`packet`] finds wrong, one encryption request too many, or bytes that have not waited
    /// for the answer to one: the server refuses these, too.
    pub fn step(&mut self, bytes: &[u8]) -> Result<(Asks, usize), Error> {
        if let Some(request) = self.asked.take()
            && !bytes.is_empty()
        {
            return Err(Error::Unencrypted { request });
        }
        if self.offers_tls && self.refusals == 0 && bytes.first() == Some(&HANDSHAKE) {
            self.offers_tls = false;
            return Ok((Asks::EncryptAtOnce, 0));
        }
        let Some((packet, size)) = packet(bytes)? else {
            return Ok((Asks::Wait, 0));
        };
        let step = match packet {
            Packet::Ssl if self.offers_tls => {
                let request = SSL_REQUEST;
                if bytes.len() > size {
                    return Err(Error::Unencrypted { request });
                }
                self.offers_tls = false;
                Asks::Encrypt
            }
            Packet::Ssl | Packet::Gssenc => {
                self.asked = Some(match packet {
                    Packet::Ssl => SSL_REQUEST,
                    _ => "GSSAPI encryption request",
                });
                self.refusals += 1;
                if self.refusals > MAX_REFUSALS {
                    return Err(Error::StartupLayout);
                }
                Asks::Refuse(b'N')
            }
            Packet::Cancel {
                pid,
                key,
                is_passed_on,
            } => Asks::Cancel {
                pid,
                key: key.to_vec(),
                is_passed_on,
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

    const SSL: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
    const GSSENC: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

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
        let packet = startup(b"user\0me\0\0");
        assert_eq!(greeting.step(SSL), Ok((Asks::Refuse(b'N'), 8)));
        assert_eq!(greeting.step(b""), Ok((Asks::Wait, 0)));
        let (step, used) = greeting.step(&packet).unwrap();
        let login = Login {
            packet: packet.clone(),
            database: b"me".to_vec(),
            user: b"me".to_vec(),
            replication: false,
        };
        assert_eq!((step, used), (Asks::Login(login), packet.len()));
    }

    #[test]
    fn what_does_not_wait_for_the_answer_to_a_request_for_encryption_is_refused() {
        for request in [SSL, GSSENC] {
            let mut greeting = Greeting::default();
            let both = [request, b"\0"].concat();
            assert_eq!(greeting.step(&both), Ok((Asks::Refuse(b'N'), 8)));
            assert!(matches!(
                greeting.step(&both[8..]),
                Err(Error::Unencrypted { .. })
            ));
        }
        let mut greeting = Greeting::new(true);
        let both = [SSL, &startup(b"user\0me\0\0")].concat();
        assert!(matches!(
            greeting.step(&both),
            Err(Error::Unencrypted { .. })
        ));
    }

    #[test]
    fn tls_begins_once_where_it_is_offered() {
        let mut greeting = Greeting::new(true);
        assert_eq!(greeting.step(GSSENC), Ok((Asks::Refuse(b'N'), 8)));
        assert_eq!(greeting.step(b""), Ok((Asks::Wait, 0)));
        assert_eq!(greeting.step(SSL), Ok((Asks::Encrypt, 8)));
        assert_eq!(greeting.step(SSL), Ok((Asks::Refuse(b'N'), 8)));

        let hello = b"\x16\x03\x01\0\0";
        let mut greeting = Greeting::new(true);
        assert_eq!(greeting.step(hello), Ok((Asks::EncryptAtOnce, 0)));
        assert!(greeting.step(hello).is_err());
        assert!(Greeting::new(false).step(hello).is_err());
        let mut greeting = Greeting::new(true);
        assert!(greeting.step(GSSENC).is_ok() && greeting.step(b"").is_ok());
        assert!(greeting.step(hello).is_err());
    }

    #[test]
    fn endless_encryption_requests_end_the_connection() {
        let mut greeting = Greeting::default();
        let answers = (0..9)
            .take_while(|_| greeting.step(SSL).is_ok() && greeting.step(b"").is_ok())
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
        crate::wire::startup::passed_on_cancel(&mut bytes, 9, b"key!");
        let cancel = |is_passed_on| Asks::Cancel {
            pid: 9,
            key: b"key!".to_vec(),
            is_passed_on,
        };
        let step = |bytes| Greeting::default().step(bytes);
        assert_eq!(step(&bytes), Ok((cancel(false), 16)));
        assert_eq!(step(&bytes[16..]), Ok((cancel(true), 16)));
    }
}
