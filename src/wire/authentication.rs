//! The messages of a login: what the server asks for, and how the client answers.
//!
//! Both sides are here, because the proxy is the server of its clients and the client of its
//! server.

use super::backend::AUTHENTICATION;
use super::frame::{cstr, put, put_cstr};
use super::frontend::PASSWORD;

/// The name of SCRAM without channel binding.
pub const SCRAM: &[u8] = b"SCRAM-SHA-256";
/// The name of SCRAM bound to the certificate of TLS.
pub const SCRAM_PLUS: &[u8] = b"SCRAM-SHA-256-PLUS";

const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// What an Authentication message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge<'a> {
    /// The login is accepted.
    Ok,
    /// The password itself is asked for.
    Password,
    /// An MD5 hash of the password is asked for.
    Md5 {
        /// The salt of the outer hash.
        salt: [u8; 4],
    },
    /// One of these mechanisms is to be begun.
    Sasl {
        /// Their names, each with its zero byte.
        mechanisms: &'a [u8],
    },
    /// The mechanism goes on.
    SaslContinue(&'a [u8]),
    /// The mechanism has ended well.
    SaslFinal(&'a [u8]),
    /// Something else, by its number.
    Other(u32),
}

impl<'a> Challenge<'a> {
    /// Reads the body of an Authentication message.
    #[must_use]
    pub fn read(body: &'a [u8]) -> Option<Self> {
        let (code, rest) = body.split_first_chunk::<4>()?;
        Some(match u32::from_be_bytes(*code) {
            OK => Self::Ok,
            CLEARTEXT => Self::Password,
            MD5 => Self::Md5 {
                salt: rest.try_into().ok()?,
            },
            SASL => Self::Sasl { mechanisms: rest },
            SASL_CONTINUE => Self::SaslContinue(rest),
            SASL_FINAL => Self::SaslFinal(rest),
            other => Self::Other(other),
        })
    }
}

/// Whether a list of mechanisms names this one.
#[must_use]
pub fn offers(mut mechanisms: &[u8], wanted: &[u8]) -> bool {
    while let Some((name, rest)) = cstr(mechanisms).filter(|(name, _)| !name.is_empty()) {
        if name == wanted {
            return true;
        }
        mechanisms = rest;
    }
    false
}

fn ask(out: &mut Vec<u8>, code: u32, rest: &[u8]) {
    put(out, AUTHENTICATION, |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(rest);
    });
}

/// Appends AuthenticationOk.
pub fn put_ok(out: &mut Vec<u8>) {
    ask(out, OK, b"");
}

/// Appends an AuthenticationCleartextPassword.
pub fn put_cleartext(out: &mut Vec<u8>) {
    ask(out, CLEARTEXT, b"");
}

/// Appends an AuthenticationMD5Password.
pub fn put_md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    ask(out, MD5, &salt);
}

/// Appends an AuthenticationSASL that offers SCRAM, bound first if that is possible.
pub fn put_scram(out: &mut Vec<u8>, binds: bool) {
    let plain = [SCRAM, b"\0\0"].concat();
    match binds {
        true => ask(out, SASL, &[SCRAM_PLUS, b"\0", &plain].concat()),
        false => ask(out, SASL, &plain),
    }
}

/// Appends an AuthenticationSASLContinue.
pub fn put_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    ask(out, SASL_CONTINUE, data);
}

/// Appends an AuthenticationSASLFinal.
pub fn put_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    ask(out, SASL_FINAL, data);
}

/// Appends a PasswordMessage.
pub fn put_password(out: &mut Vec<u8>, text: &[u8]) {
    put(out, PASSWORD, |out| put_cstr(out, text));
}

/// Appends a SASLInitialResponse.
pub fn put_initial_response(out: &mut Vec<u8>, mechanism: &[u8], data: &[u8]) {
    put(out, PASSWORD, |out| {
        put_cstr(out, mechanism);
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends a SASLResponse.
pub fn put_response(out: &mut Vec<u8>, data: &[u8]) {
    put(out, PASSWORD, |out| out.extend_from_slice(data));
}

/// Reads the body of a SASLInitialResponse: the mechanism, and its data if there are any. The
/// length says how many bytes follow, all of them, or is -1.
#[must_use]
pub fn initial_response(body: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (mechanism, rest) = cstr(body)?;
    let (length, data) = rest.split_first_chunk::<4>()?;
    match i32::from_be_bytes(*length) {
        -1 => data.is_empty().then_some((mechanism, None)),
        length if usize::try_from(length) == Ok(data.len()) => Some((mechanism, Some(data))),
        _ => None,
    }
}

/// Feeds arbitrary bytes to every reader: for fuzzers and hostile-bytes tests.
#[doc(hidden)]
pub fn fuzz_readers(body: &[u8]) -> bool {
    let known = Challenge::read(body).is_some();
    offers(body, SCRAM) || initial_response(body).is_some() || known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn bytes_of_what_is_asked() {
        assert_eq!(written(put_ok), b"R\0\0\0\x08\0\0\0\0");
        assert_eq!(written(put_cleartext), b"R\0\0\0\x08\0\0\0\x03");
        assert_eq!(
            written(|o| put_md5(o, *b"salt")),
            b"R\0\0\0\x0c\0\0\0\x05salt"
        );
        assert_eq!(
            written(|o| put_scram(o, false)),
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
        );
        assert_eq!(
            written(|o| put_scram(o, true)),
            b"R\0\0\0\x2a\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"
        );
        let more = written(|o| put_sasl_continue(o, b"r=x"));
        assert_eq!(more, b"R\0\0\0\x0b\0\0\0\x0br=x");
        let last = written(|o| put_sasl_final(o, b"v=x"));
        assert_eq!(last, b"R\0\0\0\x0b\0\0\0\x0cv=x");
    }

    #[test]
    fn bytes_of_the_answers() {
        assert_eq!(written(|o| put_password(o, b"pw")), b"p\0\0\0\x07pw\0");
        assert_eq!(
            written(|o| put_initial_response(o, SCRAM, b"n,,")),
            b"p\0\0\0\x19SCRAM-SHA-256\0\0\0\0\x03n,,"
        );
        assert_eq!(written(|o| put_response(o, b"c=")), b"p\0\0\0\x06c=");
    }

    #[test]
    fn what_is_written_is_read() {
        let read = |write: &dyn Fn(&mut Vec<u8>)| written(|out| write(out));
        let sasl = read(&|o| put_scram(o, true));
        let Some(Challenge::Sasl { mechanisms }) = Challenge::read(&sasl[5..]) else {
            panic!("no list");
        };
        assert!(offers(mechanisms, SCRAM) && offers(mechanisms, SCRAM_PLUS));
        assert!(!offers(mechanisms, b"SCRAM-SHA-1") && !offers(mechanisms, b""));
        let md5 = read(&|o| put_md5(o, *b"salt"));
        let salt = *b"salt";
        assert_eq!(Challenge::read(&md5[5..]), Some(Challenge::Md5 { salt }));
        assert_eq!(Challenge::read(&[0; 4]), Some(Challenge::Ok));
        assert_eq!(Challenge::read(&[0, 0, 0, 7]), Some(Challenge::Other(7)));
        assert_eq!(Challenge::read(b"\0\0\0\x05sal"), None);
        assert_eq!(Challenge::read(b"\0\0\0"), None);
        let first = read(&|o| put_initial_response(o, SCRAM, b"n,,"));
        let both = Some((SCRAM, Some(&b"n,,"[..])));
        assert_eq!(initial_response(&first[5..]), both);
        assert_eq!(
            initial_response(b"x\0\xff\xff\xff\xff"),
            Some((&b"x"[..], None))
        );
        assert_eq!(
            initial_response(b"x\0\0\0\0\0"),
            Some((&b"x"[..], Some(&b""[..])))
        );
    }

    #[test]
    fn a_length_that_is_not_that_of_the_data_is_refused() {
        // CVE-2026-6664 of PgBouncer: the bound was computed with the length that was sent.
        for length in [-2, 2, 4, i32::MAX, i32::MIN, -1] {
            let body = [b"x\0", &length.to_be_bytes()[..], b"abc"].concat();
            assert_eq!(initial_response(&body), None, "{length}");
        }
        assert_eq!(initial_response(b"x\0\0\0\0"), None);
        assert_eq!(initial_response(b"SCRAM-SHA-256"), None);
        assert_eq!(initial_response(b""), None);
    }
}
