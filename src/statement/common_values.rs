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

/// The values of one argument that a generic plan may not be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The argument's index.
    pub argument: usize,
    values: Values,
}

/// Common values by how equality compares them. The seed of their hashes is secret, because the
/// user who fills the table must not choose which values collide.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    Integers(HashSet<i64, RandomState>),
    Texts(HashSet<Box<[u8]>, RandomState>),
    /// Texts that are compared without their trailing spaces.
    Padded(HashSet<Box<[u8]>, RandomState>),
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
            _ => return None,
        };
        Some(Self { argument, values })
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
                Values::Texts(values) | Values::Padded(values) => texts(values),
            }
    }

    /// Whether the literal is a common value. True also if that would take work to find out.
    #[must_use]
    pub fn holds(&self, text: &[u8], literal: &Literal) -> bool {
        let token = token(text, literal);
        let value = match literal.form {
            Form::Plain => token
                .get(1..token.len().saturating_sub(1))
                .unwrap_or_default(),
            Form::Number => token,
            Form::Doubled | Form::Escape | Form::Dollar | Form::List | Form::Word => {
                return true;
            }
        };
        match &self.values {
            Values::Integers(numbers) => {
                let number = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                number.is_none_or(|number: i64| numbers.contains(&number))
            }
            Values::Texts(texts) => texts.contains(value),
            Values::Padded(texts) => texts.contains(unpadded(value)),
        }
    }
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
        for type_oid in [700, 1700, 1082, 1114, 2950, 16_400] {
            assert_eq!(Common::new(0, type_oid, &["1".to_owned()]), None);
        }
    }
}
