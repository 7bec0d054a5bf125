//! What is read of certificates: DER, as far as that takes.

/// A number.
const INTEGER: u8 = 0x02;
/// The name of an algorithm, or of an attribute.
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
/// Text.
const UTF8: u8 = 0x0c;
/// Text of letters, digits and a few signs.
const PRINTABLE: u8 = 0x13;
/// Text in ASCII.
const IA5: u8 = 0x16;
/// A sequence.
pub(super) const SEQUENCE: u8 = 0x30;
/// A set.
const SET: u8 = 0x31;
/// The version of a certificate, which may be missing.
const VERSION: u8 = 0xa0;

/// From here on a length is written in more bytes.
const LONG: u8 = 0x80;

/// `commonName`, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The name of whom a certificate in DER is for (`CN`). `None` if it has no such name, more than
/// one, or one that could be read in more than one way.
pub(super) fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (signed, _) = element(inside, SEQUENCE)?;
    let rest = element(signed, VERSION).map_or(signed, |(_, rest)| rest);
    let (_serial, rest) = element(rest, INTEGER)?;
    let (_algorithm, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (_validity, rest) = element(rest, SEQUENCE)?;
    let (mut subject, _) = element(rest, SEQUENCE)?;
    let mut found = None;
    while !subject.is_empty() {
        let (mut attributes, rest) = element(subject, SET)?;
        subject = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = element(attributes, SEQUENCE)?;
            attributes = rest;
            let (name, value) = element(attribute, OBJECT_IDENTIFIER)?;
            if name != COMMON_NAME {
                continue;
            }
            let kinds = [UTF8, PRINTABLE, IA5];
            let (text, rest) = kinds.iter().find_map(|kind| element(value, *kind))?;
            let is_clear = rest.is_empty() && !text.is_empty() && !text.contains(&0);
            if found.replace(text).is_some() || !is_clear {
                return None;
            }
        }
    }
    found
}

/// What stands in the first element, which must be of this kind, and what follows it.
pub(super) fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = bytes else {
        return None;
    };
    if *first != kind {
        return None;
    }
    let (length, rest) = match length.checked_sub(LONG) {
        None => (usize::from(*length), rest),
        // So many bytes say how long it is.
        Some(count @ 1..=4) => {
            let (digits, rest) = rest.split_at_checked(usize::from(count))?;
            let add = |sum: usize, digit: &u8| sum << 8 | usize::from(*digit);
            (digits.iter().fold(0, add), rest)
        }
        Some(_) => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};

    fn certificate(names: &[(DnType, DnValue)]) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn text(value: &str) -> DnValue {
        DnValue::Utf8String(value.to_owned())
    }

    /// A certificate of nothing but what is read, with this subject.
    fn bare(subject: &[u8]) -> Vec<u8> {
        let wrap = |kind: u8, body: &[u8]| [&[kind, body.len() as u8], body].concat();
        let parts = [
            wrap(INTEGER, &[1]),
            wrap(SEQUENCE, b""),
            wrap(SEQUENCE, b""),
            wrap(SEQUENCE, b""),
            wrap(SEQUENCE, subject),
        ];
        wrap(SEQUENCE, &wrap(SEQUENCE, &parts.concat()))
    }

    /// One attribute of that kind.
    fn named(kind: u8, value: &[u8]) -> Vec<u8> {
        let value = [&[kind, value.len() as u8], value].concat();
        let attribute = [&[6, 3], COMMON_NAME, &value].concat();
        let attribute = [&[SEQUENCE, attribute.len() as u8], &attribute[..]].concat();
        [&[SET, attribute.len() as u8], &attribute[..]].concat()
    }

    #[test]
    fn the_name_is_that_of_the_subject() {
        let of = |names: &[_]| common_name(&certificate(names)).map(<[u8]>::to_vec);
        let organization = (DnType::OrganizationName, text("somebody else"));
        let name = (DnType::CommonName, text("j\u{f6}rg"));
        let expected = Some("j\u{f6}rg".as_bytes().to_vec());
        assert_eq!(of(&[organization.clone(), name.clone()]), expected);
        assert_eq!(of(&[name, organization.clone()]), expected);
        assert_eq!(of(&[organization]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_name_that_is_not_clear_is_none() {
        for kind in [UTF8, PRINTABLE, IA5] {
            assert_eq!(common_name(&bare(&named(kind, b"me"))), Some(&b"me"[..]));
        }
        let twice = [named(UTF8, b"me"), named(UTF8, b"you")].concat();
        let same = named(UTF8, b"me").repeat(2);
        for subject in [
            named(0x1e, b"\0m\0e"),
            named(0x14, b"me"),
            named(UTF8, b"me\0you"),
            named(UTF8, b""),
            twice,
            same,
        ] {
            assert_eq!(common_name(&bare(&subject)), None, "{subject:?}");
        }
        // Nor what comes behind the text, or is cut.
        let mut more = named(UTF8, b"me");
        let length = more.len();
        more.push(0);
        more[1] += 1;
        more[3] += 1;
        assert_eq!(common_name(&bare(&more)), None, "{length}");
        let whole = bare(&named(UTF8, b"me"));
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None, "{end}");
        }
        for at in 0..whole.len() {
            for change in [1, 0x7f, 0x80] {
                let mut bad = whole.clone();
                bad[at] = bad[at].wrapping_add(change);
                let _ = common_name(&bad);
            }
        }
    }
}
