//! Where the parts of a certificate are that are read.

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, element};

/// A truth value.
const BOOLEAN: u8 = 0x01;
/// A number.
pub(super) const INTEGER: u8 = 0x02;
/// Bytes.
const OCTETS: u8 = 0x04;
/// The version of a certificate, which may be missing.
const VERSION: u8 = 0xa0;
/// Numbers of whom it is from and for, which nobody uses.
const UNIQUE: [u8; 2] = [0x81, 0x82];
/// Its extensions.
const EXTENSIONS: u8 = 0xa3;

/// What stands in the validity of a certificate, and what follows it.
pub(super) fn validity(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (signed, _) = element(inside, SEQUENCE)?;
    let rest = element(signed, VERSION).map_or(signed, |(_, rest)| rest);
    let (_serial, rest) = element(rest, INTEGER)?;
    let (_algorithm, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    element(rest, SEQUENCE)
}

/// What stands in the subject of a certificate, and what follows it.
pub(super) fn subject(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_validity, rest) = validity(certificate)?;
    element(rest, SEQUENCE)
}

/// What the extension of this name says; none inside if there is no such one. `None` if it comes
/// twice, or could be read in more than one way.
pub(super) fn extension<'c>(certificate: &'c [u8], wanted: &[u8]) -> Option<Option<&'c [u8]>> {
    let (_, rest) = subject(certificate)?;
    let (_key, mut rest) = element(rest, SEQUENCE)?;
    for number in UNIQUE {
        rest = element(rest, number).map_or(rest, |(_, rest)| rest);
    }
    if rest.is_empty() {
        return Some(None);
    }
    let (extensions, rest) = element(rest, EXTENSIONS)?;
    let (mut extensions, behind) = element(extensions, SEQUENCE)?;
    if !rest.is_empty() || !behind.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.is_empty() {
        let (extension, rest) = element(extensions, SEQUENCE)?;
        extensions = rest;
        let (name, value) = element(extension, OBJECT_IDENTIFIER)?;
        if name != wanted {
            continue;
        }
        let value = element(value, BOOLEAN).map_or(value, |(_, rest)| rest);
        let (value, rest) = element(value, OCTETS)?;
        if !rest.is_empty() || found.replace(value).is_some() {
            return None;
        }
    }
    Some(found)
}
