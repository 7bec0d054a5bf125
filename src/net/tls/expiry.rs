//! When a certificate begins and ends (`notBefore` and `notAfter` of RFC 5280).

use super::der::any;
use super::fields::validity;
use crate::admin::date;

/// A moment whose year has two digits.
const UTC_TIME: u8 = 0x17;
/// One whose year has four.
const GENERALIZED_TIME: u8 = 0x18;

/// The last moment of a certificate in DER, in seconds since 1970. `None` if it cannot be read.
pub(super) fn end(certificate: &[u8]) -> Option<u64> {
    let (validity, _) = validity(certificate)?;
    let (_, _begin, rest) = any(validity)?;
    let (kind, text, _) = any(rest)?;
    moment(kind, text)
}

/// Its first moment and its last one.
pub(super) fn times(certificate: &[u8]) -> Option<(u64, u64)> {
    let (kind, text, _) = any(validity(certificate)?.0)?;
    Some((moment(kind, text)?, end(certificate)?))
}

fn moment(kind: u8, text: &[u8]) -> Option<u64> {
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            // RFC 5280, 4.1.2.5.1.
            (if year >= 50 { 1900 + year } else { 2000 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        _ => return None,
    };
    let (digits, b"Z") = rest.split_at_checked(10)? else {
        return None;
    };
    let mut parts = [year; 6];
    for (part, digits) in parts[1..].iter_mut().zip(digits.chunks(2)) {
        *part = number(digits)?;
    }
    date::seconds(parts)
}

/// The number that these digits are.
fn number(digits: &[u8]) -> Option<u64> {
    let are_digits = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| are_digits)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn until(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms() {
        // From 2050 on the year has four digits.
        for (at, seconds) in [
            ((2026, 11, 28), 1_795_824_000),
            ((2049, 12, 31), 2_524_521_600),
            ((2050, 1, 1), 2_524_608_000),
            ((4096, 2, 29), 67_095_216_000),
        ] {
            let (year, month, day) = at;
            assert_eq!(end(&until(year, month, day)), Some(seconds), "{at:?}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let der = until(2030, 1, 1);
        assert_eq!(end(&der[..der.len() / 2]), None);
        for at in 0..der.len() {
            let mut bad = der.clone();
            bad[at] = bad[at].wrapping_add(0x7f);
            let _ = end(&bad);
        }
        for text in [
            &b""[..],
            b"260101000000",
            b"260101000000+",
            b"2601010000x0Z",
            b"261301000000Z",
        ] {
            assert_eq!(moment(UTC_TIME, text), None, "{text:?}");
        }
        assert_eq!(moment(UTC_TIME, b"700101000001Z"), Some(1));
        assert_eq!(moment(GENERALIZED_TIME, b"19700101000001Z"), Some(1));
        assert_eq!(moment(0x16, b"700101000001Z"), None);
    }
}
