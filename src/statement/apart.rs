//! Values that must differ: columns that are compared with equal literals are equal to each other
//! for the planner.
//!
//! It merges the classes of expressions that are known to be equal when they share a constant
//! (`process_equivalence` in `equivclass.c`, which compares constants by type and bytes), and then
//! takes two tables for joined that are not (`have_relevant_eclass_joinclause`): of three tables
//! and more it may join others first, and the rows come in another order. Of two it expects another
//! number of rows where there is a foreign key of both columns (`get_foreign_key_join_selectivity`
//! in `costsize.c`), and other groups of both (`exprs_known_equal`). Two parameters are never one
//! constant.

use crate::sql::oid;
use crate::sql::scan::{Form, Literal};
use crate::sql::value::token;

/// The most arguments that are compared with each other, at each execution.
pub const MAX_APART: usize = 16;

/// A literal, and the type of the argument it is.
pub(super) type Typed<'a> = (&'a Literal, u32);

/// Whether it can be told of two values of this type that they differ.
#[must_use]
pub fn can_tell(type_oid: u32) -> bool {
    matches!(
        type_oid,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::UUID
    )
}

/// Whether two literals of `text` may be one constant. True also if that would take work to find
/// out. Lists are none.
pub(super) fn may_be_equal(text: &[u8], one: Typed<'_>, other: Typed<'_>) -> bool {
    if one.1 != other.1 {
        return false;
    }
    let values = (plain(text, one.0), plain(text, other.0));
    let (Some(first), Some(second)) = values else {
        return one.0.form != Form::List && other.0.form != Form::List;
    };
    match one.1 {
        oid::INT2 | oid::INT4 | oid::INT8 => match (number(first), number(second)) {
            (Some(first), Some(second)) => first == second,
            _ => true,
        },
        // It may be written with braces, hyphens and large letters.
        oid::UUID => digits(first).eq(digits(second)),
        // Spaces behind may count or not.
        _ => first.trim_ascii_end() == second.trim_ascii_end(),
    }
}

/// What stands in the text for the value, if that is all there is to it.
fn plain<'a>(text: &'a [u8], literal: &Literal) -> Option<&'a [u8]> {
    let token = token(text, literal);
    match literal.form {
        Form::Plain => token.get(1..token.len().saturating_sub(1)),
        Form::Number => Some(token),
        Form::Doubled | Form::Escape | Form::Dollar | Form::List | Form::Word => None,
    }
}

fn number(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn digits(value: &[u8]) -> impl Iterator<Item = u8> {
    let digits = value.iter().filter(|byte| byte.is_ascii_hexdigit());
    digits.map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::scan::sample;

    fn may(type_oid: u32, one: &str, other: &str) -> bool {
        let (text, one) = sample(one);
        let (behind, mut other) = sample(other);
        // Both literals stand in one text.
        let shift = u32::try_from(text.len()).expect("a short text");
        (other.start, other.end) = (other.start + shift, other.end + shift);
        let text = text + &behind;
        may_be_equal(text.as_bytes(), (&one, type_oid), (&other, type_oid))
    }

    #[test]
    fn numbers_are_equal_however_they_are_written() {
        for (one, other) in [("5", "5"), ("5", "'5'"), ("'05'", "5"), ("'-7'", "-7")] {
            assert!(may(oid::INT4, one, other), "{one} {other}");
        }
        assert!(!may(oid::INT4, "5", "6") && !may(oid::INT8, "'5'", "'15'"));
        // Not clear, so they may be.
        for (one, other) in [("' 5'", "6"), ("E'5'", "6"), ("$$5$$", "'6'")] {
            assert!(may(oid::INT4, one, other), "{one} {other}");
        }
    }

    #[test]
    fn texts_are_equal_but_for_spaces_behind_and_identifiers_but_for_their_writing() {
        assert!(may(oid::TEXT, "'a'", "'a'") && may(oid::BPCHAR, "'a'", "'a  '"));
        assert!(!may(oid::TEXT, "'a'", "'A'") && !may(oid::TEXT, "'a'", "' a'"));
        let upper = "'{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'";
        assert!(may(oid::UUID, "'a0eebc999c0b4ef8bb6d6bb9bd380a11'", upper));
        assert!(!may(oid::UUID, "'a0eebc999c0b4ef8bb6d6bb9bd380a12'", upper));
    }

    #[test]
    fn what_is_of_two_types_is_not_one_constant() {
        let (text, literal) = sample("5");
        let (one, other) = ((&literal, oid::INT4), (&literal, oid::INT8));
        assert!(!may_be_equal(text.as_bytes(), one, other));
        assert!(may_be_equal(text.as_bytes(), one, one));
    }
}
