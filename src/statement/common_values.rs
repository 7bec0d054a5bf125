//! Common values: a server's statistics count them one by one, so each may get a plan of its own.
//!
//! Equality with a column is estimated from the column's most common values (`var_eq_const` in
//! `selfuncs.c`): each of them has its own frequency, all others share one. So all values that are
//! not common get the same plan, and a plan proven for one of them is proven for all.

use crate::sql::oid;
use crate::sql::scan::{Form, Literal};
use crate::sql::value::token;
use foldhash::quality::RandomState;
use std::collections::HashSet;

/// The values of one argument that a generic plan may not be used for, or those alone that it may
/// be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The argument's index.
    pub argument: usize,
    values: Values,
    /// It is for these values alone that it may be used.
    permits: bool,
}

/// Common values by how equality compares them. The seed of their hashes is secret, because the
/// user who fills the table must not choose which values collide.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    Integers(HashSet<i64, RandomState>),
    Texts(HashSet<Box<[u8]>, RandomState>),
    /// Texts that are compared without their trailing spaces.
    Padded(HashSet<Box<[u8]>, RandomState>),
    /// Values of which one way of writing each is known.
    Written(Spelling, HashSet<Box<[u8]>, RandomState>),
}

/// The types whose values are compared as they are written in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// A day of four digits, two, and two, as it is read and written whatever `DateStyle` says.
    Date,
    /// Digits, perhaps with a sign and a point; without the zeros that say nothing.
    Numeric,
    /// Groups of small hexadecimal digits.
    Uuid,
}

impl Common {
    /// Takes the values of a column of this type, as the type's output function writes them. `None`
    /// if the type may write equal values in different ways.
    #[must_use]
    pub fn new(argument: usize, type_oid: u32, values: &[String]) -> Option<Self> {
        let bytes = values.iter().map(String::as_bytes);
        let values = match type_oid {
            oid::INT2 | oid::INT4 | oid::INT8 => {
                let numbers: Option<_> = values.iter().map(|value| value.parse().ok()).collect();
                Values::Integers(numbers?)
            }
            oid::TEXT | oid::VARCHAR => Values::Texts(bytes.map(Into::into).collect()),
            oid::BPCHAR => Values::Padded(bytes.map(|text| unpadded(text).into()).collect()),
            _ => {
                let form = Spelling::of(type_oid)?;
                let written: Option<_> = bytes.map(|value| form.written(value)).collect();
                Values::Written(form, written?)
            }
        };
        Some(Self {
            argument,
            values,
            permits: false,
        })
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match &self.values {
            Values::Integers(numbers) => numbers.len(),
            Values::Texts(all) | Values::Padded(all) | Values::Written(_, all) => all.len(),
        }
    }

    /// The values as their type writes them.
    #[must_use]
    pub fn written(&self) -> Vec<Box<[u8]>> {
        let written = |number: &i64| number.to_string().into_bytes().into();
        match &self.values {
            Values::Integers(numbers) => numbers.iter().map(written).collect(),
            Values::Texts(all) | Values::Padded(all) | Values::Written(_, all) => {
                all.iter().cloned().collect()
            }
        }
    }

    /// Whether it is for these values alone that the generic plan may be used.
    #[must_use]
    pub const fn permits(&self) -> bool {
        self.permits
    }

    /// A value that is none of them, as their type writes it.
    #[must_use]
    pub fn other(&self) -> Box<[u8]> {
        let is_other = |value: &Vec<u8>| !self.has(value);
        // One of so many is not among them.
        let numbers = 1..=self.count() + 1;
        let mut others = numbers.map(|number| match self.values {
            Values::Written(form, _) => form.nth(number).into_bytes(),
            _ => number.to_string().into_bytes(),
        });
        others.find(is_other).unwrap_or_default().into()
    }

    /// Takes these values, some of those written, from among them.
    pub fn remove<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        for value in values {
            match &mut self.values {
                Values::Integers(numbers) => {
                    integer(value).is_some_and(|number| numbers.remove(&number))
                }
                Values::Texts(all) | Values::Padded(all) | Values::Written(_, all) => {
                    all.remove(value)
                }
            };
        }
    }

    /// Leaves only these of the values, and has the generic plan used for them and no others.
    pub fn permit<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) {
        let values: HashSet<_> = values.collect();
        match &mut self.values {
            Values::Integers(numbers) => {
                let numbers_in: HashSet<_> = values.into_iter().filter_map(integer).collect();
                numbers.retain(|number| numbers_in.contains(number));
            }
            Values::Texts(all) | Values::Padded(all) | Values::Written(_, all) => {
                all.retain(|text| values.contains(&**text));
            }
        }
        self.permits = true;
    }

    /// Whether the generic plan may be used for all values.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.count() == 0 && !self.permits
    }

    /// The memory that the values take, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = |texts: &HashSet<Box<[u8]>, RandomState>| {
            let sizes = texts
                .iter()
                .map(|text| text.len() + 3 * size_of::<Box<[u8]>>());
            sizes.sum()
        };
        size_of::<Self>()
            + match &self.values {
                Values::Integers(numbers) => numbers.len() * 2 * size_of::<i64>(),
                Values::Texts(all) | Values::Padded(all) | Values::Written(_, all) => texts(all),
            }
    }

    /// Whether the generic plan may not be used for the literal. True also if that would take work
    /// to find out.
    #[must_use]
    pub fn holds(&self, text: &[u8], literal: &Literal) -> bool {
        let token = token(text, literal);
        let value = match literal.form {
            Form::Plain => token
                .get(1..token.len().saturating_sub(1))
                .unwrap_or_default(),
            Form::Number => token,
            Form::Doubled | Form::Escape | Form::Dollar | Form::List | Form::Word => return true,
        };
        match &self.values {
            Values::Integers(_) if integer(value).is_none() => true,
            Values::Written(form, _) if form.written(value).is_none() => true,
            _ => self.has(value) != self.permits,
        }
    }

    fn has(&self, value: &[u8]) -> bool {
        match &self.values {
            Values::Integers(numbers) => {
                integer(value).is_some_and(|number| numbers.contains(&number))
            }
            Values::Texts(texts) => texts.contains(value),
            Values::Padded(texts) => texts.contains(unpadded(value)),
            Values::Written(form, all) => form.written(value).is_some_and(|it| all.contains(&it)),
        }
    }
}

impl Spelling {
    const fn of(type_oid: u32) -> Option<Self> {
        match type_oid {
            oid::DATE => Some(Self::Date),
            oid::NUMERIC => Some(Self::Numeric),
            oid::UUID => Some(Self::Uuid),
            _ => None,
        }
    }

    /// The one way in which this value is written; `None` if that would take work to find out.
    fn written(self, value: &[u8]) -> Option<Box<[u8]>> {
        let has_form = |pattern: &[u8], is_digit: fn(&u8) -> bool| {
            let fits = |(byte, part): (&u8, &u8)| match part {
                b'0' => is_digit(byte),
                _ => byte == part,
            };
            value.len() == pattern.len() && value.iter().zip(pattern).all(fits)
        };
        match self {
            Self::Date => has_form(b"0000-00-00", u8::is_ascii_digit).then(|| value.into()),
            Self::Uuid => {
                let pattern = b"00000000-0000-0000-0000-000000000000";
                has_form(pattern, u8::is_ascii_hexdigit).then(|| value.to_ascii_lowercase().into())
            }
            Self::Numeric => numeric(value),
        }
    }

    /// A value that is written so, another for each number.
    fn nth(self, number: usize) -> String {
        match self {
            Self::Date => format!("{:04}-01-01", number % 9999 + 1),
            Self::Numeric => number.to_string(),
            Self::Uuid => format!("00000000-0000-0000-0000-{number:012x}"),
        }
    }
}

/// A number without an exponent, without leading zeros, and without those at the end of a fraction.
fn numeric(value: &[u8]) -> Option<Box<[u8]>> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = digits.split_at(point.unwrap_or(digits.len()));
    let fraction = fraction.get(1..).unwrap_or_default();
    let are_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if whole.is_empty() && fraction.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let is_some = |byte: &u8| *byte != b'0';
    let whole = &whole[whole.iter().position(is_some).unwrap_or(whole.len())..];
    let fraction = &fraction[..fraction
        .iter()
        .rposition(is_some)
        .map_or(0, |last| last + 1)];
    let mut written = Vec::with_capacity(value.len() + 1);
    if digits.len() < value.len() && !(whole.is_empty() && fraction.is_empty()) {
        written.push(b'-');
    }
    written.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    if !fraction.is_empty() {
        written.push(b'.');
        written.extend_from_slice(fraction);
    }
    Some(written.into())
}

fn integer(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn unpadded(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|byte| *byte != b' ');
    text.get(..last.map_or(0, |last| last + 1))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::scan::sample;

    fn holds(type_oid: u32, values: &[&str], token: &str) -> bool {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let common = Common::new(0, type_oid, &values).expect("a type that is understood");
        let (text, literal) = sample(token);
        common.holds(text.as_bytes(), &literal)
    }

    #[test]
    fn integers_are_compared_by_value() {
        for token in ["5", "-7", "'5'", "'05'", "005"] {
            assert!(holds(23, &["5", "-7"], token), "{token}");
        }
        for token in ["6", "7", "'55'"] {
            assert!(!holds(23, &["5", "-7"], token), "{token}");
        }
        // Whether these are common is not clear, so they are.
        for token in ["- 8", "'x'", "' 6'", "1.5", "99999999999999999999", "E'6'"] {
            assert!(holds(20, &["5"], token), "{token}");
        }
    }

    #[test]
    fn a_value_that_is_taken_out_is_not_common() {
        for (type_oid, values) in [(23, ["-5", "7"]), (25, ["a ", "b"]), (1042, ["a", "b"])] {
            let values = values.map(str::to_owned);
            let mut common = Common::new(0, type_oid, &values).expect("a type that is understood");
            let mut written = common.written();
            written.sort();
            assert_eq!(written.len(), common.count());
            for (index, value) in written.iter().enumerate() {
                let (text, literal) = sample(&format!("'{}'", String::from_utf8_lossy(value)));
                assert!(common.holds(text.as_bytes(), &literal));
                assert_ne!(common.other(), *value);
                common.remove([&**value].into_iter());
                assert!(!common.holds(text.as_bytes(), &literal));
                assert_eq!(common.count(), 1 - index);
            }
            assert!(common.is_void());
        }
    }

    #[test]
    fn what_permits_some_values_permits_no_others() {
        let values = ["1", "2", "5"].map(str::to_owned);
        let mut common = Common::new(0, 23, &values).expect("a type that is understood");
        assert_eq!(*common.other(), *b"3");
        common.permit([&b"5"[..], b"2"].into_iter());
        for (token, held) in [("5", false), ("'02'", false), ("1", true), ("7", true)] {
            let (text, literal) = sample(token);
            assert_eq!(common.holds(text.as_bytes(), &literal), held, "{token}");
        }
        for token in ["'x'", "E'5'", "$$5$$"] {
            let (text, literal) = sample(token);
            assert!(common.holds(text.as_bytes(), &literal), "{token}");
        }
        common.permit(std::iter::empty());
        assert!(common.count() == 0 && !common.is_void());
    }

    #[test]
    fn texts_are_compared_by_bytes() {
        assert!(holds(25, &["a", ""], "'a'") && holds(25, &["a", ""], "''"));
        assert!(!holds(25, &["a"], "'a '") && !holds(1043, &["a"], "'A'"));
        assert!(holds(25, &["a"], "'b''c'") && holds(25, &["a"], "$$b$$"));
    }

    #[test]
    fn trailing_spaces_of_characters_do_not_count() {
        assert!(holds(1042, &["ab   "], "'ab'") && holds(1042, &["ab"], "'ab  '"));
        assert!(holds(1042, &["   "], "''") && !holds(1042, &["ab "], "' ab'"));
    }

    #[test]
    fn types_with_several_ways_of_writing_a_value_are_not_understood() {
        for type_oid in [700, 1114, 16_400] {
            assert_eq!(Common::new(0, type_oid, &["1".to_owned()]), None);
        }
    }

    #[test]
    fn days_numbers_and_uuids_are_compared_as_they_are_written_in_one_way() {
        let uuid = "5f0c0a3e-0000-4000-8000-00000000000a";
        for (type_oid, value, same, others, unclear) in [
            (
                1082,
                "2024-01-05",
                vec!["'2024-01-05'"],
                vec!["'2024-01-06'", "'2024-02-30'"],
                vec![
                    "'5.1.2024'",
                    "'20240105'",
                    "'2024-1-5'",
                    "'now'",
                    "'2024-01-05 BC'",
                ],
            ),
            (
                1700,
                "-10.50",
                vec!["-10.5", "'-010.500'"],
                vec!["10.5", "-10.05", "'-105'", "0", "'-.5'", "7."],
                vec!["'1e2'", "'NaN'", "' 7'", "'+7'", "'1_0'", "'.'", "'-'"],
            ),
            (
                2950,
                uuid,
                vec!["'5F0C0A3E-0000-4000-8000-00000000000a'"],
                vec!["'5f0c0a3e-0000-4000-8000-00000000000b'"],
                vec!["'{5f0c0a3e-0000-4000-8000-00000000000b}'", "'x'"],
            ),
        ] {
            let held = |token: &str| holds(type_oid, &[value], token);
            assert!(same.into_iter().chain(unclear).all(held), "{value}");
            assert!(others.into_iter().all(|token| !held(token)), "{value}");
            let mut common = Common::new(0, type_oid, &[value.to_owned()]).expect("a value");
            let other = common.other();
            assert!(!held(&format!("'{}'", String::from_utf8_lossy(&other))));
            let written = common.written();
            common.remove(written.iter().map(|value| &**value));
            assert!(common.is_void(), "{value}");
        }
        for (type_oid, value) in [(1082, "05.01.2024"), (1082, "infinity"), (1700, "NaN")] {
            assert_eq!(
                Common::new(0, type_oid, &[value.to_owned()]),
                None,
                "{value}"
            );
        }
        assert!(holds(1700, &["0.00"], "0") && holds(1700, &["0"], "'-0.0'"));
    }
}
