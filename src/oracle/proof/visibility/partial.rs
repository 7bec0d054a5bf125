//! What the predicates of partial indexes say, as `pg_get_expr` writes them (`ruleutils.c`).
//!
//! Premise: a condition that such a predicate implies is not shown in a plan. Of an equality it
//! implies one only if it holds one itself (`operator_predicate_proof` in `predtest.c`): of the
//! same constant, so of one of the same type.

use crate::sql::oid;

/// What kind a constant is of, by how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Truth,
    Integer,
    Text,
}

const STRINGS: [u32; 3] = [oid::TEXT, oid::VARCHAR, oid::BPCHAR];
const NUMBERS: [u32; 3] = [oid::INT2, oid::INT4, oid::INT8];
/// The types whose constants are written as no text, no number, and no truth value.
const OTHERS: [u32; 5] = [
    oid::UUID,
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
];

/// Whether the predicates may name this column: the word, or the name in quotes.
pub(super) fn names(predicates: &str, column: &str) -> bool {
    let quoted = column.replace('"', "\"\"");
    let is_whole = |(start, found): (usize, &str)| {
        let (before, behind) = (&predicates[..start], &predicates[start + found.len()..]);
        let before = before.as_bytes().last();
        !before.is_some_and(is_word) && !behind.as_bytes().first().is_some_and(is_word)
    };
    // A whole row is all its columns.
    predicates.contains(".*")
        || predicates.match_indices(column).any(is_whole)
        || predicates.match_indices(&*quoted).any(is_whole)
}

/// Whether they may imply that a column is equal to a constant that an argument may be, too, which
/// is compared with columns of these types.
pub(super) fn may_imply_equal(predicates: &str, types: &[u32]) -> bool {
    let mut equals = predicates.match_indices(" = ");
    // An operator that is named with its schema is none that is known.
    predicates.contains("OPERATOR(")
        || equals.any(|(at, equal)| {
            let behind = &predicates[at + equal.len()..];
            match behind.strip_prefix("ANY (") {
                Some(list) => !has_two(list),
                None => constant(behind).is_none_or(|(kind, ..)| kind.may_be_of(types)),
            }
        })
}

/// Whether the list begins with two values that no value is both equal to. No collation of the
/// database finds different strings equal where an argument is text, as the proof demands of its
/// column; else the strings are none that an argument may be.
fn has_two(list: &str) -> bool {
    let list = list.strip_prefix('(').unwrap_or(list);
    let two = || {
        let (kind, one, rest) = constant(list.strip_prefix("ARRAY[")?)?;
        let (other_kind, other, _) = constant(rest.strip_prefix(", ")?)?;
        Some(kind != Kind::Truth && kind == other_kind && one != other)
    };
    two() == Some(true)
}

/// The constant that this begins with: its kind, how it is written, and what follows.
fn constant(text: &str) -> Option<(Kind, &str, &str)> {
    let ends = |rest: &str| !matches!(rest.as_bytes().first(), Some(byte) if is_word(byte));
    if let Some(body) = text.strip_prefix('\'') {
        let end = end_of_string(body)?;
        let cast = &body[end + 1..];
        let known = ["::text", "::character varying"].iter();
        let rest = known
            .filter_map(|cast_to| cast.strip_prefix(cast_to))
            .next();
        return rest
            .filter(|rest| ends(rest) && !rest.starts_with('('))
            .map(|rest| (Kind::Text, &body[..end], rest));
    }
    let length = text.bytes().take_while(is_word).count();
    let (word, rest) = text.split_at(length);
    let kind = match word {
        "true" | "false" => Kind::Truth,
        _ if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => Kind::Integer,
        _ => return None,
    };
    (!rest.starts_with(['.', ':'])).then_some((kind, word, rest))
}

/// Where the string ends that begins here, behind its first quote.
fn end_of_string(body: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += body.get(at..)?.find('\'')?;
        if !body[at + 1..].starts_with('\'') {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether the byte may be part of an identifier.
pub(super) const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(*byte, b'_' | b'$' | 0x80..)
}

impl Kind {
    /// Whether a constant of this kind may be a value of one of these types.
    fn may_be_of(self, types: &[u32]) -> bool {
        let may_be = |of: &u32| match self {
            Self::Text => !(OTHERS.contains(of) || NUMBERS.contains(of) || *of == oid::BOOL),
            Self::Integer => !(OTHERS.contains(of) || STRINGS.contains(of) || *of == oid::BOOL),
            Self::Truth => !(OTHERS.contains(of) || STRINGS.contains(of) || NUMBERS.contains(of)),
        };
        types.iter().any(may_be)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_names_a_column_by_the_whole_word() {
        let paid = "((status)::text = ANY (ARRAY['new'::text, 'paid'::text]))";
        assert!(!names(paid, "id"));
        assert!(names(paid, "status"));
        assert!(names("(id > 5)", "id"));
        assert!(names("(id$ > 5)", "id$"));
        assert!(!names("(order_id > 5) AND (id2 > 5)", "id"));
        assert!(names("(\"a \"\"b\" IS NULL)", "a \"b"));
        assert!(names("(\"Id\" IS NULL)", "Id"));
        assert!(names("(t.* IS NULL)", "id"));
    }

    #[test]
    fn a_predicate_implies_an_equality_of_a_constant_of_its_type() {
        let implies = |predicate: &str, of: u32| may_imply_equal(predicate, &[of]);
        let text = "((status)::text = 'it''s'::text)";
        assert!(implies(text, oid::TEXT) && implies(text, oid::VARCHAR));
        assert!(implies(text, oid::NAME) && implies(text, 16_400));
        assert!(!implies(text, oid::INT4) && !implies(text, oid::UUID));
        assert!(implies("(kind = 1)", oid::INT8) && implies("(kind = 1)", oid::NUMERIC));
        assert!(!implies("(kind = 1)", oid::TEXT));
        assert!(implies("(gone = false)", oid::BOOL) && !implies("(gone = false)", oid::INT4));
        assert!(!implies("(NOT gone)", oid::BOOL));
        // One that does not is none beside one that does.
        assert!(implies("(gone = false) (kind = 1)", oid::INT4));
        assert!(!may_imply_equal(text, &[oid::INT4, oid::UUID]));
        assert!(may_imply_equal(text, &[oid::INT4, oid::TEXT]));
    }

    #[test]
    fn what_is_one_of_two_is_equal_to_neither() {
        let implies = |predicate: &str| may_imply_equal(predicate, &[oid::INT4, oid::TEXT]);
        assert!(!implies(
            "((a)::text = ANY ((ARRAY['new'::character varying, \
             'paid'::character varying])::text[]))"
        ));
        assert!(!implies("(kind = ANY (ARRAY[1, 2]))"));
        for one in [
            "(kind = ANY (ARRAY[1]))",
            "(kind = ANY (ARRAY[1, 1]))",
            "(kind = ANY (ARRAY['1'::numeric, 1.0]))",
            "(kind = ANY (ARRAY[1.0, 1.00]))",
            "(a = ANY (ARRAY['x'::bpchar, 'x '::bpchar]))",
            "(a = ANY (ARRAY['x'::character varying(1), 'x'::character varying(2)]))",
            "(a = ANY (b))",
            "(a = E'\\\\'::text)",
            "(a = ROW(1, 2))",
            "(a = 'x",
            "(a OPERATOR(pg_catalog.=) 1)",
        ] {
            assert!(implies(one), "{one}");
        }
    }
}
