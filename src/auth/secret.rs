//! What is known of a user's password: the password itself, its MD5 hash, or its verifier.

use super::keys::{PREFIX, Verifier};
use md5::{Digest as _, Md5};
use std::fmt;
use std::ops::Deref;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Bytes that are wiped when they are no longer needed, and are neither printed nor compared but
/// by [`is_same`].
#[derive(Clone)]
pub struct Wiped(Zeroizing<Vec<u8>>);

impl From<Vec<u8>> for Wiped {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Wiped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wiped")
    }
}

/// What is known of a user's password.
#[derive(Clone)]
pub enum Secret {
    /// The password.
    Plain(Wiped),
    /// The MD5 hash of password and user name, as 32 digits.
    Md5(Wiped),
    /// What SCRAM takes.
    Scram(Verifier),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Md5(_) => "Md5",
            Self::Scram(_) => "Scram",
        })
    }
}

/// The bytes of an MD5 hash in hexadecimal digits.
const MD5_DIGITS: usize = 32;

impl Secret {
    /// Reads one as it stands in a file of users or in pg_authid. What only looks like one of the
    /// kinds that are not passwords is none at all, and neither is an empty text.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if text.starts_with(PREFIX) {
            return Verifier::read(text).map(Self::Scram);
        }
        let digits = text.strip_prefix(b"md5").filter(|digits| {
            let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            digits.len() == MD5_DIGITS && digits.iter().all(is_digit)
        });
        Some(match digits {
            Some(digits) => Self::Md5(digits.to_vec().into()),
            None => Self::Plain(text.to_vec().into()),
        })
    }

    /// Whether both are the same, in a time that does not depend on what they hold.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(one), Self::Plain(two)) | (Self::Md5(one), Self::Md5(two)) => {
                is_same(one, two)
            }
            (Self::Scram(one), Self::Scram(two)) => one.is(two),
            _ => false,
        }
    }
}

/// Whether both are the same, in a time that depends on their lengths only.
#[must_use]
pub fn is_same(one: &[u8], two: &[u8]) -> bool {
    one.ct_eq(two).into()
}

/// The MD5 hash of the two in a row, as digits.
fn md5(first: &[u8], second: &[u8]) -> Wiped {
    let hash = Md5::new()
        .chain_update(first)
        .chain_update(second)
        .finalize();
    let digits = b"0123456789abcdef";
    let digit = |half: u8| digits.get(usize::from(half)).copied().unwrap_or_default();
    let pairs = hash
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    pairs.collect::<Vec<_>>().into()
}

/// The hash that the server keeps of this password, without its `md5`.
pub(super) fn md5_secret(user: &[u8], password: &[u8]) -> Wiped {
    md5(password, user)
}

/// How a client that knows the secret answers this salt.
pub(super) fn md5_response(secret: &[u8], salt: [u8; 4]) -> Wiped {
    [b"md5", &*md5(secret, &salt)].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_an_independent_library() {
        let secret = md5_secret(b"user", b"password");
        assert_eq!(
            postgres_protocol::password::md5(b"password", "user").as_bytes(),
            [b"md5", &*secret].concat()
        );
        let expected = postgres_protocol::authentication::md5_hash(b"user", b"password", *b"salt");
        assert_eq!(*md5_response(&secret, *b"salt"), *expected.into_bytes());
    }

    #[test]
    fn secrets_are_told_apart() {
        let kind = |text: &[u8]| Secret::read(text).map(|secret| format!("{secret:?}"));
        let md5 = format!("md5{}", "0f".repeat(16));
        assert_eq!(kind(md5.as_bytes()).unwrap(), "Md5");
        assert_eq!(kind(&md5.as_bytes()[..34]).unwrap(), "Plain");
        assert_eq!(kind(md5.to_uppercase().as_bytes()).unwrap(), "Plain");
        assert_eq!(kind(b"hunter2").unwrap(), "Plain");
        assert_eq!(format!("{:?}", Wiped::from(b"hunter2".to_vec())), "Wiped");
        let scram = postgres_protocol::password::scram_sha_256(b"x");
        assert_eq!(kind(scram.as_bytes()).unwrap(), "Scram");
        assert_eq!(kind(b"SCRAM-SHA-256$what?"), None);
        assert_eq!(kind(b""), None);
        let read = |text: &[u8]| Secret::read(text).unwrap();
        assert!(read(b"a").is(&read(b"a")) && !read(b"a").is(&read(b"b")));
        assert!(!read(b"a").is(&read(md5.as_bytes())));
        assert!(read(md5.as_bytes()).is(&read(md5.as_bytes())));
        assert!(read(scram.as_bytes()).is(&read(scram.as_bytes())));
    }
}
