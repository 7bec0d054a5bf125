//! Whose a certificate is, by the names in it.

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, any, element};
use super::fields::{extension, subject};
use crate::config::CertName;

/// Text.
const UTF8: u8 = 0x0c;
/// Text of letters, digits and a few signs.
const PRINTABLE: u8 = 0x13;
/// Text in ASCII.
const IA5: u8 = 0x16;
/// A set.
const SET: u8 = 0x31;
/// The choices of `GeneralName` for hosts and addresses.
const DNS: u8 = 0x82;
const ADDRESS: u8 = 0x87;

/// `commonName`, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `subjectAltName`, 2.5.29.17.
const ALTERNATIVE: &[u8] = &[0x55, 0x1d, 0x11];

/// The names of this kind in a certificate in DER; none if anything about them is not clear.
pub(super) fn names(certificate: &[u8], kind: CertName) -> Vec<&[u8]> {
    // The choices of `GeneralName`.
    let tag = match kind {
        CertName::Common => return common_name(certificate).into_iter().collect(),
        CertName::Email => 0x81,
        CertName::Dns => DNS,
        CertName::Uri => 0x86,
    };
    alternative_names(certificate, tag).unwrap_or_default()
}

/// The name of whom a certificate is for (`CN`). `None` if it has no such name, more than one, or
/// one that could be read in more than one way.
fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let (mut subject, _) = subject(certificate)?;
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

/// The names for this choice among the alternative ones. `None` if there are none at all, they come
/// twice, or one could be read in more than one way.
fn alternative_names(certificate: &[u8], kind: u8) -> Option<Vec<&[u8]>> {
    let value = extension(certificate, ALTERNATIVE)??;
    let (mut all, behind) = element(value, SEQUENCE)?;
    if !behind.is_empty() {
        return None;
    }
    let mut names = Vec::new();
    while !all.is_empty() {
        let (tag, text, rest) = any(all)?;
        all = rest;
        if tag != kind {
            continue;
        }
        // They are in ASCII, so a byte of another value has no meaning, and 0 an end for some.
        let is_clear = !text.is_empty() && text.iter().all(u8::is_ascii) && !text.contains(&0);
        if !is_clear {
            return None;
        }
        names.push(text);
    }
    Some(names)
}

/// Whether a certificate names this host as whom it is for (`CN`), and has no alternative names of
/// hosts or addresses, which would be its only ones: as libpq compares them.
pub(super) fn is_common_name(certificate: &[u8], host: &str) -> bool {
    let Some(others) = extension(certificate, ALTERNATIVE) else {
        return false;
    };
    if let Some(others) = others {
        let Some((mut all, [])) = element(others, SEQUENCE) else {
            return false;
        };
        while !all.is_empty() {
            match any(all) {
                Some((DNS | ADDRESS, ..)) | None => return false,
                Some((_, _, rest)) => all = rest,
            }
        }
    }
    common_name(certificate).is_some_and(|name| is_host(name, host.as_bytes()))
}

/// Whether a name is this host, or stands for it: `*.` for one part of its name. An address has no
/// parts.
fn is_host(name: &[u8], host: &[u8]) -> bool {
    let is_address = host.contains(&b':') || host.iter().all(|it| b"0123456789.".contains(it));
    match name.strip_prefix(b"*") {
        Some(domain) if domain.len() > 2 && domain.starts_with(b".") && !is_address => {
            let part = memchr::memchr(b'.', host).filter(|part| *part > 0);
            part.is_some_and(|part| host[part..].eq_ignore_ascii_case(domain))
        }
        _ => name.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::INTEGER;
    use super::*;
    use rcgen::{CertificateParams, CustomExtension, DnType, DnValue, KeyPair, SanType};

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

    /// A certificate with these alternative names.
    fn alternative(names: Vec<SanType>, more: Vec<CustomExtension>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "common");
        params.subject_alt_names = names;
        params.custom_extensions = more;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn alternative_names_are_told_apart_by_what_they_name() {
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        let certificate = alternative(
            vec![
                dns("one.example"),
                SanType::IpAddress([10, 0, 0, 1].into()),
                SanType::Rfc822Name("jo@example.org".try_into().unwrap()),
                SanType::URI("spiffe://example.org/jo".try_into().unwrap()),
                dns("two"),
            ],
            Vec::new(),
        );
        for (kind, expected) in [
            (CertName::Common, &["common"][..]),
            (CertName::Dns, &["one.example", "two"]),
            (CertName::Email, &["jo@example.org"]),
            (CertName::Uri, &["spiffe://example.org/jo"]),
        ] {
            let expected: Vec<_> = expected.iter().map(|name| name.as_bytes()).collect();
            assert_eq!(names(&certificate, kind), expected, "{kind:?}");
        }
        let none = alternative(Vec::new(), Vec::new());
        assert!(names(&none, CertName::Dns).is_empty());
        assert_eq!(names(&none, CertName::Common), [b"common"]);
        // Cut or changed anywhere, it is read to no harm.
        for end in 0..certificate.len() {
            let _ = names(&certificate[..end], CertName::Dns);
        }
        for at in 0..certificate.len() {
            for change in [1, 0x7f, 0x80] {
                let mut bad = certificate.clone();
                bad[at] = bad[at].wrapping_add(change);
                let _ = names(&bad, CertName::Dns);
            }
        }
    }

    #[test]
    fn alternative_names_that_are_not_clear_are_none() {
        let extension = |names: &[&[u8]]| {
            let all: Vec<u8> = names
                .iter()
                .flat_map(|name| [&[0x82, name.len() as u8], *name].concat())
                .collect();
            let content = [&[SEQUENCE, all.len() as u8], &all[..]].concat();
            CustomExtension::from_oid_content(&[2, 5, 29, 17], content)
        };
        let of = |extensions: Vec<CustomExtension>| {
            let certificate = alternative(Vec::new(), extensions);
            let names = names(&certificate, CertName::Dns);
            names.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(of(vec![extension(&[b"a", b"b"])]), [b"a", b"b"]);
        for bad in [
            vec![extension(&[b"a", b"postgres\0.example"])],
            vec![extension(&[b"a", b"\xff"])],
            vec![extension(&[b"a", b""])],
            vec![extension(&[b"a"]), extension(&[b"b"])],
        ] {
            assert!(of(bad).is_empty());
        }
        // What comes behind the names.
        let mut more = vec![SEQUENCE, 3, 0x82, 1, b'a'];
        more.push(0);
        let more = CustomExtension::from_oid_content(&[2, 5, 29, 17], more);
        assert!(of(vec![more]).is_empty());
    }

    #[test]
    fn a_host_is_named_by_the_subject_if_by_nothing_else() {
        let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
        let address = || SanType::IpAddress([10, 0, 0, 1].into());
        let email = || SanType::Rfc822Name("jo@example.org".try_into().unwrap());
        for (others, expected) in [
            (vec![], true),
            (vec![email()], true),
            (vec![dns("other")], false),
            (vec![dns("common")], false),
            (vec![email(), address()], false),
        ] {
            let certificate = alternative(others.clone(), Vec::new());
            assert_eq!(
                is_common_name(&certificate, "Common"),
                expected,
                "{others:?}"
            );
            assert!(!is_common_name(&certificate, "commons"));
        }
        let unclear = CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![SEQUENCE, 9, 0x81]);
        assert!(!is_common_name(
            &alternative(Vec::new(), vec![unclear]),
            "common"
        ));
        for (name, host, expected) in [
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "DB.Example.ORG", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", ".example.org", false),
            ("*", "db", false),
            ("*.", "db.", false),
            ("d*.example.org", "db.example.org", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("::1", "::1", true),
        ] {
            assert_eq!(
                is_host(name.as_bytes(), host.as_bytes()),
                expected,
                "{name} {host}"
            );
        }
    }
}
