//! Guards: conditions on an argument's value under which a generic plan behaves as the literal
//! would.
//!
//! The planner evaluates what is constant before anything runs. A literal that does not fit its
//! column fails there, even if no row is ever touched; a parameter of a generic plan fails only
//! where and when it is used, or not at all (H-11 of the fidelity rules). A generic plan may have
//! to convert or combine its parameters. Then a guard admits only values for which that cannot
//! fail. Queries with other values are passed through, and the server says what it always says.

use crate::sql::scan::{Class, Form, Literal};
use std::net::IpAddr;

/// A condition on one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The argument's index.
    pub argument: usize,
    /// What must hold for the argument's value.
    pub check: Check,
}

/// What must hold for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The value has at most this many bytes, hence at most as many characters.
    Length(usize),
    /// The value is a plain decimal number whose magnitude is at most this.
    Magnitude(u64),
    /// The same of a whole number, without a point.
    Whole(u64),
    /// The value is a whole number of at most this, without a sign.
    Natural(u64),
    /// The value is a plain decimal number with at most this many digits before the point and at
    /// most 30 behind it.
    Digits(usize),
    /// The value is empty, or such a whole number.
    WholeOrEmpty(u64),
    /// The value holds no backslash, so as a pattern it cannot end in its escape character.
    NoBackslash,
    /// The value is empty.
    Empty,
    /// The value is empty, or an address of version 4 or 6, with or without the bits of its
    /// network.
    Address,
    /// The value is a whole number of bits, at most [`Check::MAX_SHIFT`].
    Shift,
    /// The value is a list of at most this many elements.
    Elements(usize),
    /// The value is a number and a unit of time, or hours, minutes and seconds, and less than two
    /// thousand years.
    Interval,
}

/// Fraction digits beyond which a number might underflow a `real`.
const FRACTION: usize = 30;

impl Guard {
    /// Whether the literal in `text` that has these elements may be bound.
    #[must_use]
    #[inline]
    pub fn admits(&self, text: &[u8], elements: &[Literal]) -> bool {
        match self.check {
            Check::Elements(most) => elements.len() <= most,
            check => elements.iter().all(|element| check.admits(text, element)),
        }
    }
}

impl Check {
    /// The most bits by which a number may be shifted.
    pub const MAX_SHIFT: u64 = 32;

    fn admits(self, text: &[u8], literal: &Literal) -> bool {
        let token = text.get(literal.start as usize..literal.end as usize);
        let token = token.unwrap_or_default();
        let inner = match (literal.class, literal.form) {
            (Class::Text, Form::Plain) => token.get(1..token.len().saturating_sub(1)),
            (Class::Text, _) => None,
            _ => Some(token),
        };
        match self {
            Self::Elements(_) => true,
            _ if literal.form == Form::Word => true,
            // What is written is never shorter than what it means.
            Self::Length(bytes) => inner.unwrap_or(token).len() <= bytes,
            Self::NoBackslash => {
                literal.form != Form::Escape && memchr::memchr(b'\\', token).is_none()
            }
            Self::Magnitude(limit) => inner.and_then(whole_part).is_some_and(|n| n <= limit),
            Self::Whole(limit) => inner.is_some_and(|number| is_whole(number, limit)),
            Self::Natural(limit) => inner.is_some_and(|number| is_natural(number, limit)),
            Self::WholeOrEmpty(limit) => {
                inner.is_some_and(|number| number.is_empty() || is_whole(number, limit))
            }
            Self::Empty => inner.is_some_and(<[u8]>::is_empty),
            Self::Address => inner.is_some_and(|inner| inner.is_empty() || is_address(inner)),
            Self::Shift => inner.is_some_and(|bits| is_natural(bits, Self::MAX_SHIFT)),
            Self::Digits(digits) => inner.is_some_and(|number| fits(number, digits)),
            Self::Interval => inner.is_some_and(Self::is_short),
        }
    }
}

impl Check {
    /// Whether the server takes this for an interval with any setting, and for one that leads from
    /// the present to a moment that there is (`DecodeInterval` in `datetime.c`).
    #[must_use]
    pub fn is_short(text: &[u8]) -> bool {
        // The units with the digits that their number may have. The calendar begins 4,713 years
        // before the first (`MIN_TIMESTAMP` in `datatype/timestamp.h`).
        const UNITS: [(&[u8], usize); 10] = [
            (b"sec", 5),
            (b"second", 5),
            (b"min", 5),
            (b"minute", 5),
            (b"hour", 5),
            (b"day", 5),
            (b"week", 5),
            (b"mon", 4),
            (b"month", 4),
            (b"year", 3),
        ];
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = text.split_at(digits);
        if let [b':', rest @ ..] = rest {
            let is_two = |part: &[u8]| matches!(part, [b'0'..=b'5', b'0'..=b'9']);
            let mut parts = rest.split(|byte| *byte == b':');
            return (1..=4).contains(&number.len()) && rest.len() <= 5 && parts.all(is_two);
        }
        let unit = rest.strip_prefix(b" ").unwrap_or(rest);
        let one = unit.strip_suffix(b"s").unwrap_or(unit);
        UNITS.into_iter().any(|(known, digits)| {
            one.eq_ignore_ascii_case(known) && (1..=digits).contains(&number.len())
        })
    }
}

/// Whether the server takes this for an address, whatever else it may take for one (`inet_net_pton`
/// in `inet_net_pton.c`, where the bits behind a version 6 have no zeros in front).
fn is_address(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) if !address.contains('.') => 128,
        _ => return false,
    };
    let is_number = |bits: &str| bits.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = |bits: &str| is_number(bits) && (bits == "0" || !bits.starts_with('0'));
    bits.is_none_or(|bits| is_plain(bits) && bits.parse().is_ok_and(|bits: u64| bits <= most))
}

fn is_natural(number: &[u8], limit: u64) -> bool {
    number.iter().all(u8::is_ascii_digit)
        && std::str::from_utf8(number).is_ok_and(|n| n.parse::<u64>().is_ok_and(|n| n <= limit))
}

fn is_whole(number: &[u8], limit: u64) -> bool {
    memchr::memchr(b'.', number).is_none() && whole_part(number).is_some_and(|n| n <= limit)
}

/// The magnitude of a plain decimal number, rounded up.
fn whole_part(number: &[u8]) -> Option<u64> {
    let (whole, fraction) = split(number)?;
    let whole = whole.iter().try_fold(0_u64, |n, digit| {
        n.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    whole.checked_add(u64::from(!fraction.is_empty()))
}

fn fits(number: &[u8], digits: usize) -> bool {
    // Rounding may carry into one more digit, as 9.99 does to one place.
    split(number).is_some_and(|(whole, fraction)| {
        let spare = usize::from(!fraction.is_empty());
        whole.len() + spare <= digits && fraction.len() <= FRACTION
    })
}

/// The digits before and after the point; `None` for anything but sign, digits and one point.
fn split(number: &[u8]) -> Option<(&[u8], &[u8])> {
    let number = match number {
        [b'-', rest @ ..] => rest,
        rest => rest,
    };
    let point = memchr::memchr(b'.', number).unwrap_or(number.len());
    let (whole, fraction) = number.split_at(point);
    let fraction = fraction.get(1..).unwrap_or_default();
    let plain = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    (plain(whole) && plain(fraction) && number.len() > usize::from(point < number.len()))
        .then_some((whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::scan::sample;

    fn admits(check: Check, token: &str) -> bool {
        let (text, literal) = sample(token);
        let guard = Guard { argument: 0, check };
        guard.admits(text.as_bytes(), &[literal])
    }

    #[test]
    fn lengths_are_counted_in_bytes_as_written() {
        assert!(admits(Check::Length(3), "'abc'"));
        assert!(!admits(Check::Length(3), "'abcd'"));
        assert!(
            !admits(Check::Length(3), "'éé'"),
            "two characters, four bytes"
        );
        assert!(
            !admits(Check::Length(3), "'a''b'"),
            "as written, with its quotes"
        );
    }

    #[test]
    fn addresses_are_written_plainly() {
        for token in [
            "''",
            "'0.0.0.0'",
            "'10.1.2.255'",
            "'10.1.2.3/24'",
            "'10.0.0.0/0'",
            "'::'",
            "'::1'",
            "'fe80::a:B'",
            "'1:2:3:4:5:6:7:8/128'",
        ] {
            assert!(admits(Check::Address, token), "{token}");
        }
        for token in [
            "' '",
            "'10.1.2'",
            "'10.1.2.256'",
            "'10.1.2.03'",
            "'10.1.2.3/33'",
            "'10.1.2.3/'",
            "'10.1.2.3/+1'",
            "'10.1.2.3/0024'",
            "'::1/064'",
            "'::1/00'",
            "'::/129'",
            "'::1.2.3.4'",
            "'fe80::1%eth0'",
            "':::'",
            "'1:2'",
            "10",
            "E'::1'",
            "$$::1$$",
        ] {
            assert!(!admits(Check::Address, token), "{token}");
        }
        assert!(admits(Check::Empty, "''") && !admits(Check::Empty, "' '"));
        assert!(!admits(Check::Empty, "0") && !admits(Check::Empty, "E''"));
    }

    #[test]
    fn intervals_are_short() {
        for token in [
            "'7 days'",
            "'1 day'",
            "'90min'",
            "'99999 Seconds'",
            "'2 mons'",
            "'9999 months'",
            "'999 years'",
            "'01:30'",
            "'9999:59:59'",
        ] {
            assert!(admits(Check::Interval, token), "{token}");
        }
        for token in [
            "'days'",
            "'7'",
            "7",
            "'-7 days'",
            "'7  days'",
            "'100000 days'",
            "'1000 years'",
            "'10000 mons'",
            "'1 year 2 mons'",
            "'1 fortnight'",
            "'1 dayss'",
            "'1 s'",
            "'10000:00'",
            "'1:60'",
            "'1:00:00:00'",
            "'1:'",
            "':30'",
            "''",
            "E'7 days'",
        ] {
            assert!(!admits(Check::Interval, token), "{token}");
        }
    }

    #[test]
    fn shifts_are_by_few_bits() {
        for token in ["0", "32", "'7'"] {
            assert!(admits(Check::Shift, token), "{token}");
        }
        for token in ["33", "-1", "1.0", "1e1", "''", "' 7'"] {
            assert!(!admits(Check::Shift, token), "{token}");
        }
    }

    #[test]
    fn numbers_are_plain_and_small() {
        for token in ["32767", "-32767", "'32767'", "32766.5"] {
            assert!(admits(Check::Magnitude(32767), token), "{token}");
        }
        for token in [
            "32768",
            "32767.5",
            "1e3",
            "'x'",
            "''",
            "99999999999999999999",
        ] {
            assert!(!admits(Check::Magnitude(32767), token), "{token}");
        }
        assert!(admits(Check::Digits(3), "999") && admits(Check::Digits(3), "99.9"));
        assert!(!admits(Check::Digits(3), "999.9") && !admits(Check::Digits(3), "1e2"));
    }

    #[test]
    fn whole_numbers_have_no_point() {
        for token in ["32767", "'-32767'", "007"] {
            assert!(admits(Check::Whole(32767), token), "{token}");
        }
        for token in [
            "32768", "5.5", "'5.'", "'.5'", "' 5'", "'-'", "1e1", "'0x1'",
        ] {
            assert!(!admits(Check::Whole(32767), token), "{token}");
            assert!(!admits(Check::WholeOrEmpty(32767), token), "{token}");
        }
        let (whole, or_empty) = (Check::Whole(32767), Check::WholeOrEmpty(32767));
        assert!(!admits(whole, "''") && admits(or_empty, "''") && admits(or_empty, "'-32767'"));
    }

    #[test]
    fn natural_numbers_have_no_sign() {
        let natural = Check::Natural(2_147_483_647);
        for token in ["0", "2147483647", "'5'", "007"] {
            assert!(admits(natural, token), "{token}");
        }
        for token in [
            "2147483648",
            "'-5'",
            "''",
            "5.0",
            "' 5'",
            "0x1",
            "1_0",
            "99999999999999999999",
        ] {
            assert!(!admits(natural, token), "{token}");
        }
    }

    #[test]
    fn patterns_have_no_escape() {
        assert!(admits(Check::NoBackslash, "'a%'"));
        assert!(!admits(Check::NoBackslash, "'a\\'"));
        assert!(!admits(Check::NoBackslash, "E'a\\\\'"));
    }
}
