//! The keys of SCRAM-SHA-256 (RFC 5802 and 7677), and how they follow from a password.
//!
//! None of this is compared but in constant time, printed, or left in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use std::fmt;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// The bytes of a key, of a signature and of a proof.
pub(super) const KEY: usize = 32;

/// The iterations of a secret that the proxy makes itself, which are the server's default.
pub(super) const ITERATIONS: u32 = 4096;

/// The most iterations with which the proxy derives keys: some 0.3 s. Whoever names more costs it
/// that time, whether a server or a file does (CVE-2026-42198 of postgres-protocol).
pub(super) const MAX_ITERATIONS: u32 = 1_000_000;

/// The longest salt that is taken; PostgreSQL's have 16 bytes.
pub(super) const MAX_SALT: usize = 1024;

/// A key, a signature or a proof.
#[derive(Clone)]
pub(super) struct Key(Zeroizing<[u8; KEY]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub(super) fn new(bytes: [u8; KEY]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads one as it is written in base64.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
        Some(Self::new(bytes.as_slice().try_into().ok()?))
    }

    /// How it is written in base64.
    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.0))
    }

    /// Whether two are equal, in a time that does not depend on them.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }

    /// HMAC with this key.
    pub(super) fn sign(&self, message: &[u8]) -> Self {
        hmac(&*self.0, &[message])
    }

    pub(super) fn hash(&self) -> Self {
        Self::new(Sha256::digest(*self.0).into())
    }

    pub(super) fn xor(&self, other: &Self) -> Self {
        let mut out = self.clone();
        let pairs = out.0.iter_mut().zip(&*other.0);
        pairs.for_each(|(byte, other)| *byte ^= other);
        out
    }

    /// The first bytes, as a salt.
    pub(super) fn salt(&self) -> [u8; 16] {
        let mut salt = [0; 16];
        salt.copy_from_slice(self.0.split_at(16).0);
        salt
    }
}

/// HMAC-SHA-256 of the parts in a row.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    // HMAC takes keys of any length, so the other arm is never met.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Key::new([0; KEY]);
    };
    parts.iter().for_each(|part| mac.update(part));
    Key::new(mac.finalize().into_bytes().into())
}

/// The password as SCRAM takes it: prepared by SASLprep if that can be done, else as it is, as
/// PostgreSQL does (`pg_saslprep`).
fn prepared(password: &[u8]) -> Zeroizing<Vec<u8>> {
    let text = std::str::from_utf8(password).ok();
    let prepared = text.and_then(|text| stringprep::saslprep(text).ok());
    Zeroizing::new(match prepared {
        Some(text) => text.as_bytes().to_vec(),
        None => password.to_vec(),
    })
}

/// `Hi` of RFC 5802, which is PBKDF2 with HMAC-SHA-256 and one block.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(password) else {
        return Key::new([0; KEY]);
    };
    let sign = |parts: [&[u8]; 2]| {
        let mut mac = mac.clone();
        parts.iter().for_each(|part| mac.update(part));
        Key::new(mac.finalize().into_bytes().into())
    };
    let mut last = sign([salt, &1_u32.to_be_bytes()]);
    let mut all = last.clone();
    for _ in 1..iterations {
        last = sign([&*last.0, b""]);
        all = all.xor(&last);
    }
    all
}

/// The keys of a password: what proves to the server that somebody knows it, and to the client that
/// the server does.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// ClientKey.
    pub(super) client: Key,
    /// ServerKey.
    pub(super) server: Key,
}

impl Keys {
    /// Derives them, which takes a millisecond or more.
    pub(super) fn derive(password: &[u8], salt: &[u8], iterations: u32) -> Self {
        let iterations = iterations.clamp(1, MAX_ITERATIONS);
        let salted = salted(&prepared(password), salt, iterations);
        Self {
            client: salted.sign(b"Client Key"),
            server: salted.sign(b"Server Key"),
        }
    }
}

/// What a server keeps of a password, by which it can be proven and not be told.
#[derive(Debug, Clone)]
pub struct Verifier {
    /// How often the password was hashed.
    pub(super) iterations: u32,
    pub(super) salt: Vec<u8>,
    /// StoredKey.
    pub(super) stored: Key,
    /// ServerKey.
    pub(super) server: Key,
}

/// How PostgreSQL's begin.
pub(super) const PREFIX: &[u8] = b"SCRAM-SHA-256$";

impl Verifier {
    /// Reads one as it stands in pg_authid:
    /// `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let (how, keys) = halves(rest, b'$')?;
        let (iterations, salt) = halves(how, b':')?;
        let (stored, server) = halves(keys, b':')?;
        let salt = STANDARD.decode(salt).ok()?;
        let is_sane = (1..=MAX_SALT).contains(&salt.len());
        Some(Self {
            iterations: number(iterations).filter(|_| is_sane)?,
            salt,
            stored: Key::read(stored)?,
            server: Key::read(server)?,
        })
    }

    /// That of a password whose keys these are.
    pub(super) fn of(keys: &Keys, salt: &[u8], iterations: u32) -> Self {
        Self {
            iterations,
            salt: salt.to_vec(),
            stored: keys.client.hash(),
            server: keys.server.clone(),
        }
    }

    /// The keys of this password, if it is the one. Takes a millisecond or more.
    pub(super) fn keys_of(&self, password: &[u8]) -> Option<Keys> {
        if self.iterations > MAX_ITERATIONS {
            return None;
        }
        let keys = Keys::derive(password, &self.salt, self.iterations);
        // Both, so that what is used towards the server later is what it would accept.
        let is_it = self.stored.is(&keys.client.hash()) & self.server.is(&keys.server);
        is_it.then_some(keys)
    }

    /// The keys of whoever has made this proof, if it is one: ClientKey is what is left of it.
    pub(super) fn keys_behind(&self, proof: &Key, message: &[u8]) -> Option<Keys> {
        let client = proof.xor(&self.stored.sign(message));
        self.stored.is(&client.hash()).then(|| Keys {
            client,
            server: self.server.clone(),
        })
    }

    /// Whether both are the same, in a time that does not depend on the keys.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.iterations == other.iterations
            && self.salt == other.salt
            && self.stored.is(&other.stored) & self.server.is(&other.server)
    }
}

/// What stands before and behind the first of these bytes.
pub(super) fn halves(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// A number of digits only, which is not zero.
pub(super) fn number(text: &[u8]) -> Option<u32> {
    let is_plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_plain)?;
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange that RFC 7677 shows: user "user", password "pencil".
    const MESSAGE: &str = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
        r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
        c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const PROOF: &[u8] = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SIGNATURE: &str = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn salt() -> Vec<u8> {
        STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap()
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let keys = Keys::derive(b"pencil", &salt(), 4096);
        let message = MESSAGE.as_bytes();
        let proof = keys.client.xor(&keys.client.hash().sign(message));
        assert_eq!(proof.text().as_bytes(), PROOF);
        assert_eq!(*keys.server.sign(message).text(), SIGNATURE);
        let verifier = Verifier::of(&keys, &salt(), 4096);
        let found = verifier.keys_behind(&Key::read(PROOF).unwrap(), message);
        let found = found.unwrap();
        assert!(found.client.is(&keys.client) && found.server.is(&keys.server));
        assert!(verifier.keys_behind(&Key::new([0; KEY]), message).is_none());
        assert!(verifier.keys_behind(&proof, b"another message").is_none());
        assert!(verifier.keys_of(b"pencil").is_some());
        assert!(verifier.keys_of(b"pencil ").is_none() && verifier.keys_of(b"").is_none());
    }

    #[test]
    fn keys_are_those_of_an_independent_library() {
        for password in ["pencil", "ünïcode\u{a0}x", "\u{200b}", "IX\u{ad}"] {
            let text = postgres_protocol::password::scram_sha_256(password.as_bytes());
            let verifier = Verifier::read(text.as_bytes()).unwrap();
            assert!(
                verifier.keys_of(password.as_bytes()).is_some(),
                "{password}"
            );
            assert!(verifier.keys_of(b"another").is_none());
        }
        // SASLprep makes one of both.
        let text = postgres_protocol::password::scram_sha_256(b"IX");
        let verifier = Verifier::read(text.as_bytes()).unwrap();
        assert!(verifier.keys_of("I\u{ad}X".as_bytes()).is_some());
        assert!(verifier.keys_of(b"\xff\xfe").is_none(), "not Unicode");
    }

    #[test]
    fn verifiers_are_read_as_the_server_writes_them_and_no_other_way() {
        let good = postgres_protocol::password::scram_sha_256(b"x");
        let verifier = Verifier::read(good.as_bytes()).unwrap();
        assert_eq!((verifier.iterations, verifier.salt.len()), (4096, 16));
        assert!(verifier.is(&verifier.clone()));
        assert!(
            !verifier.is(&Verifier::read(
                postgres_protocol::password::scram_sha_256(b"x").as_bytes()
            )
            .unwrap()),
            "another salt"
        );
        for bad in [
            good.replace("4096", "0"),
            good.replace("4096", "-1"),
            good.replace("4096", "+1"),
            good.replace("4096", "99999999999"),
            good.replace("4096", ""),
            good.replace("SCRAM-SHA-256", "SCRAM-SHA-1"),
            good.replace('$', ":"),
            format!("{good}x"),
            good[..good.len() - 4].to_owned(),
            good.replacen(&good[19..43], "", 1),
            good.replacen(&good[19..43], "!!!!", 1),
            good.replacen(&good[19..43], &STANDARD.encode([0; MAX_SALT + 1]), 1),
            String::new(),
        ] {
            assert!(Verifier::read(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn nobody_is_made_to_count_for_hours() {
        let text = postgres_protocol::password::scram_sha_256(b"x").replace("4096", "4294967295");
        let verifier = Verifier::read(text.as_bytes()).unwrap();
        assert!(verifier.keys_of(b"x").is_none());
    }

    #[test]
    fn keys_are_not_shown() {
        let shown = format!("{:?}", Keys::derive(b"x", b"salt", 1));
        assert_eq!(shown, "Keys { client: Key, server: Key }");
    }
}
