//! Logging in to a server as a client of this program's own: the startup packet, and passwords.

use anyhow::{Context, bail, ensure};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use crate::wire::frame::cstr;
use crate::wire::frontend;

/// Protocol version 3.0.
const VERSION: u32 = 196_608;

/// Who logs in, and where to.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) password: Option<String>,
}

impl Account {
    /// The StartupMessage, with the parameters `more` after user and database.
    pub(crate) fn startup(&self, more: &[(&str, &str)]) -> Vec<u8> {
        let mut body = VERSION.to_be_bytes().to_vec();
        let who = [("user", &*self.user), ("database", &*self.database)];
        for (name, value) in who.iter().chain(more) {
            for word in [name, value] {
                body.extend(word.as_bytes());
                body.push(0);
            }
        }
        body.push(0);
        framed(&body)
    }
}

/// The answers to a server's authentication requests.
pub(crate) struct Authentication<'a> {
    account: &'a Account,
    scram: Option<ScramSha256>,
}

impl<'a> Authentication<'a> {
    pub(crate) const fn new(account: &'a Account) -> Self {
        Self {
            account,
            scram: None,
        }
    }

    /// The frame that answers the body of an authentication request, if it wants an answer.
    pub(crate) fn answer(&mut self, request: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        let (kind, rest) = request
            .split_first_chunk::<4>()
            .context("the server sent a malformed authentication request")?;
        match u32::from_be_bytes(*kind) {
            0 => Ok(None),
            3 => Ok(Some(terminated(self.password()?))),
            5 => {
                let salt = *rest.first_chunk().context("an MD5 request has no salt")?;
                let hash = md5_hash(self.account.user.as_bytes(), self.password()?, salt);
                Ok(Some(terminated(hash.as_bytes())))
            }
            10 => self.begin_scram(rest).map(Some),
            11 => {
                let scram = self.scram.as_mut().context("SCRAM continues unbegun")?;
                scram.update(rest)?;
                Ok(Some(password(scram.message())))
            }
            12 => {
                let scram = self.scram.as_mut().context("SCRAM ends unbegun")?;
                scram.finish(rest)?;
                Ok(None)
            }
            kind => bail!("the server asks for authentication method {kind}, not supported here"),
        }
    }

    fn begin_scram(&mut self, mut mechanisms: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut offered = false;
        while let Some((name, rest)) = cstr(mechanisms).filter(|(name, _)| !name.is_empty()) {
            offered |= name == SCRAM_SHA_256.as_bytes();
            mechanisms = rest;
        }
        ensure!(offered, "the server offers no {SCRAM_SHA_256}");
        let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
        let first = scram.message();
        let length = u32::try_from(first.len()).unwrap_or(u32::MAX).to_be_bytes();
        let body = [SCRAM_SHA_256.as_bytes(), b"\0", &length, first].concat();
        self.scram = Some(scram);
        Ok(password(&body))
    }

    fn password(&self) -> anyhow::Result<&'a [u8]> {
        let password = self.account.password.as_deref();
        let password = password.context("the server asks for a password: set PGPASSWORD")?;
        Ok(password.as_bytes())
    }
}

/// A password message whose body is a C string.
fn terminated(text: &[u8]) -> Vec<u8> {
    password(&[text, b"\0"].concat())
}

fn password(body: &[u8]) -> Vec<u8> {
    [&[frontend::PASSWORD][..], &framed(body)].concat()
}

/// `body` behind its length.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(password: Option<&str>) -> Account {
        Account {
            user: "u".into(),
            database: "d".into(),
            password: password.map(str::to_owned),
        }
    }

    #[test]
    fn startup_bytes() {
        assert_eq!(
            account(None).startup(&[("a", "b")]),
            b"\0\0\0\x1f\0\x03\0\0user\0u\0database\0d\0a\0b\0\0"
        );
    }

    #[test]
    fn requests_are_answered_in_their_kind() {
        let account = account(Some("p"));
        let mut authentication = Authentication::new(&account);
        let mut answer = |request: &[u8]| authentication.answer(request).unwrap();
        assert_eq!(answer(&[0, 0, 0, 0]), None);
        assert_eq!(answer(&[0, 0, 0, 3]), Some(b"p\0\0\0\x06p\0".to_vec()));
        let md5 = answer(b"\0\0\0\x05salt").unwrap();
        assert!(md5[5..].starts_with(b"md5") && md5.len() == 5 + 35 + 1);
        let first = answer(b"\0\0\0\x0aSCRAM-SHA-256\0\0").unwrap();
        assert_eq!(first[5..19], *b"SCRAM-SHA-256\0");
    }

    #[test]
    fn what_cannot_be_answered_is_said() {
        let account = account(None);
        let mut authentication = Authentication::new(&account);
        let mut error = |request: &[u8]| authentication.answer(request).unwrap_err().to_string();
        assert!(error(&[0, 0, 0, 3]).contains("PGPASSWORD"));
        assert!(error(&[0, 0, 0, 7]).contains("method 7"));
        assert!(error(b"\0\0\0\x0aOTHER\0\0").contains("SCRAM-SHA-256"));
        assert!(error(b"").contains("malformed"));
    }
}
