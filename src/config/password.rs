//! A password that the configuration holds, which nobody is shown.

use std::fmt;
use zeroize::Zeroizing;

/// What stands in the place of one in what people are shown.
pub(super) const NOT_SHOWN: &str = "# password is not shown";

/// What a secret begins with by which a client can be checked, but nobody can log in.
const VERIFIER: &str = "SCRAM-SHA-256$";

/// A user's password, or its MD5 hash as the server keeps it.
///
/// Its bytes are wiped when they are no longer needed, and never printed. They are compared with
/// those of another configuration only, and not with what a client sends.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Reads one as it was written; `None` if nobody could log in by it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let is_one = !text.is_empty() && !text.contains('\0') && !text.starts_with(VERIFIER);
        is_one.then(|| Self(text.as_bytes().to_vec().into()))
    }

    /// It itself.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_it_is_and_never_printed() {
        let read = |text| Password::read(text);
        let one = read("it's ä $1").expect("a password");
        assert_eq!(one.bytes(), "it's ä $1".as_bytes());
        assert_eq!(format!("{one:?}"), "Password");
        assert!(read("it's ä $1") == Some(one) && read("a") != read("b"));
        assert!(read("md5d4578b9ed73a8a3f0b9a7e1f2c6f4d11").is_some());
        for none in ["", "a\0b", "SCRAM-SHA-256$4096:c2FsdA==$a:b"] {
            assert!(read(none).is_none(), "{none:?}");
        }
    }
}
