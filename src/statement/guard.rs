//! Guards: conditions on an argument's value under which a generic plan behaves as the literal
//! would.
//!
//! The planner evaluates what is constant before anything runs. A literal that does not fit its
//! column fails there, even if no row is ever touched; a parameter of a generic plan fails only
//! where and when it is used, or not at all (H-11 of the fidelity rules). A generic plan may have
//! to convert or combine its parameters. Then a guard admits only values for which that cannot
//! fail. Queries with other values are passed through, and the server says what it always says.

use crate::sql::scan::{Class, Form, Literal};

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
    /// The value is a plain decimal number with at most this many digits before the point and at
    /// most 30 behind it.
    Digits(usize),
    /// The value holds no backslash, so as a pattern it cannot end in its escape character.
    NoBackslash,
    /// The value is a list of at most this many elements.
    Elements(usize),
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
            Self::Digits(digits) => inner.is_some_and(|number| fits(number, digits)),
        }
    }
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
    fn patterns_have_no_escape() {
        assert!(admits(Check::NoBackslash, "'a%'"));
        assert!(!admits(Check::NoBackslash, "'a\\'"));
        assert!(!admits(Check::NoBackslash, "E'a\\\\'"));
    }
}
