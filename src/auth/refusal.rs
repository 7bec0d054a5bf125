//! How a client is told that it does not come in.

use super::MAX_NAME;
use super::hba::Caller;
use crate::reason::LoginRefused;
use crate::wire::backend;
use std::borrow::Cow;

/// How many names of a certificate stand in the log at most.
const NAMES_SHOWN: usize = 4;

/// Why a client is refused, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    sqlstate: &'static str,
    why: LoginRefused,
    /// Without the name of the user.
    reason: Cow<'static, str>,
    /// What the client is told, if that is not the reason.
    text: Option<Vec<u8>>,
}

impl Refusal {
    /// What the client has sent is no login that is known.
    pub(super) const fn new(sqlstate: &'static str, reason: &'static str) -> Self {
        Self::why(LoginRefused::Protocol, sqlstate, reason)
    }

    const fn why(why: LoginRefused, sqlstate: &'static str, reason: &'static str) -> Self {
        Self {
            sqlstate,
            why,
            reason: Cow::Borrowed(reason),
            text: None,
        }
    }

    /// A password that is none.
    pub(super) const fn no_password(reason: &'static str) -> Self {
        Self::why(LoginRefused::Password, "28P01", reason)
    }

    pub(super) const fn protocol(reason: &'static str) -> Self {
        Self::new("08P01", reason)
    }

    /// What a wrong password leads to, and everything that is not to be told from one.
    #[must_use]
    pub fn failed(user: &[u8]) -> Self {
        let text = [b"password authentication failed for user \"", user, b"\""].concat();
        Self {
            text: Some(text),
            ..Self::no_password("password authentication failed")
        }
    }

    /// The same to the client, with another reason for the log.
    #[must_use]
    pub fn because(mut self, reason: &'static str) -> Self {
        self.reason = Cow::Borrowed(reason);
        self
    }

    /// There is no such user, and nothing was asked that would keep that secret.
    #[must_use]
    pub fn stranger(user: &[u8]) -> Self {
        let text = [b"role \"", user, b"\" does not exist"].concat();
        Self {
            text: Some(text),
            ..Self::why(LoginRefused::User, "28000", "the proxy knows no such user")
        }
    }

    /// The certificate that was shown is for others than this user, of these names, or none was
    /// shown. Which they are is for the log alone.
    #[must_use]
    pub fn no_certificate(user: &[u8], names: &[&[u8]]) -> Self {
        let front = b"certificate authentication failed for user \"";
        let text = [&front[..], user, b"\""].concat();
        let reason = match names {
            [] => Cow::Borrowed("no certificate for the user was shown"),
            names => {
                let names = names.iter().take(NAMES_SHOWN).map(|name| {
                    let name = String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name));
                    format!("{name:?}")
                });
                let names = names.collect::<Vec<_>>().join(", ");
                Cow::Owned(format!(
                    "the certificate that was shown is for another: {names}"
                ))
            }
        };
        Self {
            text: Some(text),
            reason,
            ..Self::why(LoginRefused::Certificate, "28000", "")
        }
    }

    /// Whoever has connected is not this user of the machine.
    #[must_use]
    pub fn no_peer(user: &[u8]) -> Self {
        let text = [b"Peer authentication failed for user \"", user, b"\""].concat();
        Self {
            text: Some(text),
            ..Self::why(
                LoginRefused::Peer,
                "28000",
                "it is not that user of this machine",
            )
        }
    }

    /// No rule is about such clients (`ClientAuthentication` in PostgreSQL's `auth.c`).
    #[must_use]
    pub fn no_rule(caller: &Caller<'_>) -> Self {
        let front: [&[u8]; 2] = [
            b"no pg_hba.conf entry for host",
            b"no pg_hba.conf entry for replication connection from host",
        ];
        Self::by_rules(front, caller, "no rule fits")
    }

    /// A rule rejects such clients.
    #[must_use]
    pub fn rejected(caller: &Caller<'_>) -> Self {
        let front: [&[u8]; 2] = [
            b"pg_hba.conf rejects connection for host",
            b"pg_hba.conf rejects replication connection for host",
        ];
        Self::by_rules(front, caller, "a rule rejects it")
    }

    /// `front` is for a connection, and for one of physical replication, which has no database.
    fn by_rules(front: [&[u8]; 2], caller: &Caller<'_>, reason: &'static str) -> Self {
        let host = match caller.address {
            Some(address) => address.to_string(),
            None => "[local]".to_owned(),
        };
        let front = front[usize::from(caller.is_physical)];
        let parts = [front, b" \"", host.as_bytes(), b"\", user \"", caller.user];
        let mut text = parts.concat();
        if !caller.is_physical {
            text.extend_from_slice(b"\", database \"");
            text.extend_from_slice(caller.database);
        }
        text.extend_from_slice(match caller.is_encrypted {
            true => b"\", SSL encryption",
            false => b"\", no encryption",
        });
        Self {
            text: Some(text),
            ..Self::why(LoginRefused::Rule, "28000", reason)
        }
    }

    /// There is no such database, in the words of the server, which says so to whom it has let in.
    #[must_use]
    pub fn no_database(database: &[u8]) -> Self {
        let text = [b"database \"", database, b"\" does not exist"].concat();
        Self {
            text: Some(text),
            ..Self::why(
                LoginRefused::Database,
                "3D000",
                "no table is for the database",
            )
        }
    }

    /// The database is disabled at the console, in the words in which the server says so of one
    /// that allows no connections (`InitPostgres` in postinit.c).
    #[must_use]
    pub fn disabled(database: &[u8]) -> Self {
        let behind = b"\" is not currently accepting connections";
        let text = [b"database \"", database, behind].concat();
        Self {
            text: Some(text),
            ..Self::why(LoginRefused::Disabled, "55000", "the database is disabled")
        }
    }

    /// There are as many clients of the database, or of the user, as this setting allows; in the
    /// words in which `PgBouncer` says so of `max_client_conn`.
    #[must_use]
    pub fn too_many(bound: &'static str) -> Self {
        let text = format!("no more connections allowed ({bound})").into_bytes();
        Self {
            text: Some(text),
            ..Self::why(LoginRefused::Full, "53300", bound)
        }
    }

    /// Nobody was named.
    #[must_use]
    pub const fn nameless() -> Self {
        Self::new(
            "28000",
            "no PostgreSQL user name specified in startup packet",
        )
    }

    /// Why, as it is counted.
    #[must_use]
    pub const fn counted(&self) -> LoginRefused {
        self.why
    }

    /// Why, without the user's name.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Appends the ErrorResponse.
    pub fn put(&self, out: &mut Vec<u8>) {
        let text = self.text.as_deref().unwrap_or(self.reason.as_bytes());
        backend::error_response(out, "FATAL", self.sqlstate, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_certificate_was_shown_is_for_the_log_alone() {
        let refused = |names: &[&[u8]]| {
            let refusal = Refusal::no_certificate(b"joe", names);
            let mut out = Vec::new();
            refusal.put(&mut out);
            let said = String::from_utf8_lossy(&out).into_owned();
            assert!(said.contains("certificate authentication failed for user \"joe\""));
            assert!(!said.contains("bob"), "{said}");
            refusal.reason().to_owned()
        };
        assert_eq!(refused(&[]), "no certificate for the user was shown");
        let front = "the certificate that was shown is for another: ";
        assert_eq!(refused(&[b"bob"]), format!("{front}\"bob\""));
        let names = [&b"bob\n\"INFO"[..], b"b", b"c", b"d", b"e"];
        let expected = format!("{front}\"bob\\n\\\"INFO\", \"b\", \"c\", \"d\"");
        assert_eq!(refused(&names), expected);
        let long = [b'x'; 5000];
        assert!(refused(&[&long]).len() < 200);
    }

    /// The texts are those of `auth.c`.
    #[test]
    fn who_has_no_rule_is_told_in_the_words_of_the_server() {
        let caller = Caller {
            user: b"joe",
            database: b"app",
            aliases: &[],
            is_physical: false,
            address: "::1".parse().ok(),
            is_encrypted: true,
        };
        let message = |refusal: Refusal| {
            let mut out = Vec::new();
            refusal.put(&mut out);
            out
        };
        let said = message(Refusal::no_rule(&caller));
        let expected =
            b"E\0\0\0\x6bSFATAL\0VFATAL\0C28000\0Mno pg_hba.conf entry for host \"::1\", \
            user \"joe\", database \"app\", SSL encryption\0\0";
        assert_eq!(said, expected);
        let local = Caller {
            is_physical: true,
            address: None,
            is_encrypted: false,
            ..caller
        };
        let said = message(Refusal::rejected(&local));
        let expected = b"Mpg_hba.conf rejects replication connection for host \
            \"[local]\", user \"joe\", no encryption\0\0";
        assert!(said.ends_with(expected), "{said:?}");
    }
}
